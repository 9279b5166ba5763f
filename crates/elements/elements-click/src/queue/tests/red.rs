//! Packets in, packets out, beside a queue whose length the test tells.

use crate::testing::{Exit, Out, Rig, TestPacket};
use elements::queue::length::QueueLength;
use std::sync::Arc;

fn red(config: &str, outputs: usize, downstream: bool) -> (Rig, impl Fn(usize)) {
    beside_queue("RED", config, outputs, downstream)
}

fn beside_queue(class: &str, config: &str, outputs: usize, downstream: bool) -> (Rig, impl Fn(usize)) {
    let length = Arc::new(QueueLength::default());
    let rig = Rig::beside_queue(class, config, outputs, downstream, &length);
    let rig = rig.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    (rig, move |packets| length.set(packets))
}

fn packets(count: usize) -> Vec<TestPacket> {
    vec![TestPacket::frame(&[1; 60]); count]
}

fn marked(out: &[Out]) -> usize {
    out.iter().filter(|out| out.exit == Exit::Dropped("early-drop".into())).count()
}

#[test]
fn short_queues_lose_nothing_and_long_ones_all() {
    let (mut rig, set_length) = red("10, 20, 0.1, STABILITY 0", 1, false);
    set_length(9);
    assert_eq!(marked(&rig.push(0, &packets(1))), 0);
    assert_eq!((rig.read("avg_queue_size"), rig.read("queues")), ("9.000".into(), "q".into()));
    set_length(40);
    assert_eq!(marked(&rig.push(0, &packets(30))), 30);
    assert_eq!(
        (rig.read("drops"), rig.read("stats")),
        ("30".into(), "40 current queue\n40.000 avg queue\n30 drops".into())
    );
    let (mut two, set_length) = red("10, 20, 0.1, STABILITY 0", 2, false);
    set_length(40);
    assert!(two.push(0, &packets(3)).iter().all(|out| out.exit == Exit::Port(1)));
}

/// After a mark the next comes with one of the following 1 to 1/p packets, each as likely.
#[test]
fn between_the_thresholds_the_share_grows() {
    for (length, low, high) in [(15, 0.08, 0.12), (20, 0.16, 0.22), (30, 0.62, 0.75)] {
        let (mut rig, set_length) = red("10, 20, 0.1, STABILITY 0", 1, false);
        set_length(length);
        let mut drops = 0;
        // One at a time, so that none is beside it.
        for _ in 0..4000 {
            drops += marked(&rig.push(0, &packets(1)));
        }
        let share = drops as f64 / 4000.0;
        assert!((low..high).contains(&share), "{length}: {share}");
    }
}

#[test]
fn the_average_follows_slowly_and_a_pushed_burst_is_no_queue() {
    let (mut rig, set_length) = red("500, 1000, 1, STABILITY 1", 1, true);
    set_length(8);
    rig.push(0, &packets(1));
    assert_eq!(rig.read("avg_queue_size"), "4.000");
    rig.push(0, &packets(2));
    assert_eq!(rig.read("avg_queue_size"), "7.000");
    // An empty queue forgets with time.
    set_length(0);
    rig.advance(3_000_000);
    rig.push(0, &packets(1));
    assert_eq!(rig.read("avg_queue_size"), "0.875");
    // Pulled: the second has left the queue when the first is looked at.
    let (mut rig, set_length) = red("500, 1000, 1, STABILITY 0", 1, false);
    set_length(4);
    rig.push(0, &packets(3));
    assert_eq!(rig.read("avg_queue_size"), "4.000");
}

#[test]
fn without_gentle_all_are_marked_above_the_second_threshold() {
    for (config, low) in [("10, 20, 0.1, STABILITY 0", 0), ("10, 20, 0.1, STABILITY 0, GENTLE false", 100)] {
        let (mut rig, set_length) = red(config, 1, false);
        set_length(21);
        let drops: usize = (0..100).map(|_| marked(&rig.push(0, &packets(1)))).sum();
        assert!((low..=low.max(50)).contains(&drops), "{config}: {drops}");
    }
}

#[test]
fn an_adaptive_one_aims_at_its_target() {
    const HALF_SECOND: u64 = 500_000_000;
    let (mut rig, set_length) = beside_queue("AdaptiveRED", "50, 0.1, STABILITY 0", 1, false);
    assert_eq!((rig.read("min_thresh").as_str(), rig.read("max_thresh").as_str()), ("25", "75"));
    set_length(60);
    rig.push(0, &packets(1));
    assert_eq!(rig.read("max_p"), "0.1");
    rig.advance(HALF_SECOND);
    assert_eq!(rig.read("max_p"), "0.11");
    // However long nothing comes, it does not grow without end.
    rig.advance(1000 * HALF_SECOND);
    let most: f64 = rig.read("max_p").parse().unwrap();
    assert!((0.5..0.51).contains(&most), "{most}");
    set_length(30);
    rig.push(0, &packets(1));
    rig.advance(HALF_SECOND);
    let less: f64 = rig.read("max_p").parse().unwrap();
    assert!((less - most * 0.9).abs() < 0.001, "{less}");
    rig.advance(1000 * HALF_SECOND);
    let least: f64 = rig.read("max_p").parse().unwrap();
    assert!((0.008..0.0101).contains(&least), "{least}");
    let (mut rig, _) = beside_queue("AdaptiveRED", "1, 0.02", 1, true);
    assert_eq!((rig.read("min_thresh").as_str(), rig.read("max_thresh").as_str()), ("5", "15"));
    for (config, part) in
        [("50", "required argument MAX_P"), ("50, 2", "MAX_P"), ("50, 0.1, GENTLE true", "GENTLE")]
    {
        let length = Arc::new(QueueLength::default());
        let mistakes = Rig::beside_queue("AdaptiveRED", config, 1, true, &length).err().unwrap();
        assert!(mistakes.contains(part), "{config}: {mistakes}");
    }
}

#[test]
fn thresholds_are_read_written_and_checked() {
    let (mut rig, _) = red("5, 50, 0.02", 1, true);
    let read = |rig: &mut Rig| ["min_thresh", "max_thresh", "max_p"].map(|name| rig.read(name)).join(" ");
    assert_eq!(read(&mut rig), "5 50 0.02");
    rig.write("min_thresh", "7").unwrap();
    rig.write("max_thresh", "9").unwrap();
    rig.write("max_p", "0.5").unwrap();
    assert_eq!(read(&mut rig), "7 9 0.5");
    assert!(rig.write("max_thresh", "6").unwrap_err().contains("MIN_THRESH"));
    assert!(rig.write("max_p", "1.5").is_err() && rig.write("drops", "0").is_err());
    assert_eq!(read(&mut rig), "7 9 0.5");
}

#[test]
fn mistakes_are_told() {
    for (config, part) in [
        ("60, 50, 0.02", "MIN_THRESH 60 is greater"),
        ("5, 50, 1.5", "MAX_P"),
        ("5, 50", "required argument MAX_P"),
        ("5, 50, 0.1, QUEUES q r", "there is no element `r`"),
    ] {
        let mistakes =
            Rig::beside_queue("RED", config, 1, true, &Arc::new(QueueLength::default())).err().unwrap();
        assert!(mistakes.contains(part) && mistakes.lines().count() == 1, "{config}: {mistakes}");
    }
    let alone = Rig::try_new("RED", "5, 50, 0.1", 1, 1).err().unwrap();
    assert!(alone.contains("no queue downstream"), "{alone}");
}
