//! Packets that have waited, beside a queue whose length the test tells.

use crate::testing::{Rig, TestPacket};
use elements::queue::length::QueueLength;
use packet::anno::FIRST_TIMESTAMP;
use std::sync::Arc;

const MS: u64 = 1_000_000;

fn codel(config: &str) -> Rig {
    let length = Arc::new(QueueLength::default());
    length.set(7);
    let rig = Rig::beside_queue("CoDel", config, 1, false, &length);
    rig.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Pulls a packet each millisecond, of which each has waited for so long or two milliseconds longer; two are always
/// left. Returns the number of drops.
fn drops(rig: &mut Rig, waited_ms: u64, steps: usize) -> u64 {
    let mut drops: u64 = rig.read("drops").parse().unwrap();
    for _ in 0..steps {
        rig.advance(MS);
        rig.pull(0, 1);
        let now: u64 = rig.read("drops").parse().unwrap();
        let since_ns = rig.host().now_ns - waited_ms * MS;
        let packet = TestPacket::frame(&[1; 60]).with_anno(FIRST_TIMESTAMP, since_ns);
        rig.feed(0, &vec![packet; 1 + (now - drops) as usize]);
        drops = now;
    }
    drops
}

#[test]
fn packets_that_wait_for_too_long_are_dropped_more_and_more_often() {
    let mut rig = codel("");
    let since_ns = rig.host().now_ns;
    rig.feed(0, &vec![TestPacket::frame(&[1; 60]).with_anno(FIRST_TIMESTAMP, since_ns); 2]);
    assert_eq!(drops(&mut rig, 1, 500), 0);
    // The first after two intervals; the next after 100, 71, 58, 50, 45, 41 ms.
    let after: Vec<u64> = (0..12).map(|_| drops(&mut rig, 9, 50)).collect();
    assert_eq!(after, [0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7]);
    // One packet that was fast ends it. Behind an interval it goes on about where it ended: after 45, 41 ms.
    drops(&mut rig, 1, 1);
    assert_eq!([drops(&mut rig, 9, 100), drops(&mut rig, 9, 99)], [7, 10]);
}

#[test]
fn what_has_no_time_passes_and_an_empty_queue_starts_anew() {
    let mut rig = codel("TARGET 5ms, INTERVAL 20ms");
    for _ in 0..100 {
        rig.advance(MS);
        rig.feed(0, &[TestPacket::frame(&[1; 60])]);
        assert_eq!(rig.pull(0, 2).len(), 1);
    }
    assert_eq!((rig.read("drops").as_str(), rig.read("queues").as_str()), ("0", "q"));
    assert_eq!(rig.read("stats"), "7 current queue\n0 drops");
    for _ in 0..100 {
        rig.advance(MS);
        let since_ns = rig.host().now_ns - 9 * MS;
        rig.feed(0, &[TestPacket::frame(&[1; 60]).with_anno(FIRST_TIMESTAMP, since_ns)]);
        assert_eq!(rig.pull(0, 5).len(), 1, "each time the queue is empty behind it");
    }
    assert_eq!(rig.read("drops"), "0");
}

#[test]
fn its_times_are_read_written_and_checked() {
    let mut rig = codel("0.005, 0.1, QUEUES q");
    assert_eq!((rig.read("target").as_str(), rig.read("codel_interval").as_str()), ("5ms", "100ms"));
    rig.write("codel_target", "7ms").unwrap();
    rig.write("interval", "1s").unwrap();
    assert_eq!((rig.read("codel_target").as_str(), rig.read("interval").as_str()), ("7ms", "1.000000s"));
    assert!(rig.write("target", "soon").is_err() && rig.write("drops", "0").is_err());
    for (config, part) in [("5 ms, x", "x"), ("QUEUES r", "there is no element `r`")] {
        let length = Arc::new(QueueLength::default());
        let mistakes = Rig::beside_queue("CoDel", config, 1, false, &length).err().unwrap();
        assert!(mistakes.contains(part), "{config}: {mistakes}");
    }
    assert!(Rig::try_new("CoDel", "", 1, 1).err().unwrap().contains("no queue"));
}
