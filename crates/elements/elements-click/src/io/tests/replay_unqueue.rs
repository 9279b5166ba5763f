//! `ReplayUnqueue` and `MultiReplayUnqueue`.

use super::stamped;
use crate::testing::{Exit, Out, Rig, TestPacket, dropped, mistakes};
use packet::anno::{AGGREGATE, PAINT};

const MS: u64 = 1_000_000;

fn numbers(out: &[Out]) -> Vec<u8> {
    out.iter().map(|out| out.packet.bytes[0]).collect()
}

/// What the task sends until it has nothing to do.
fn run(rig: &mut Rig) -> Vec<Out> {
    let mut out = vec![];
    loop {
        let (progress, sent) = rig.task();
        out.extend(sent);
        if progress == element::Progress::Idle {
            return out;
        }
    }
}

#[test]
fn packets_are_replayed_as_often_as_stop_says() {
    let mut rig = Rig::new("ReplayUnqueue", "STOP 2, VERBOSE true", 1, 1);
    assert!(run(&mut rig).is_empty());
    assert_eq!(rig.read("loaded"), "false");
    let long = TestPacket { net: Some(14), mac: None, ..stamped(&[2; 5000], 7) }.with_anno(AGGREGATE, 9);
    rig.feed(0, &[stamped(&[1; 60], 5), long.clone(), stamped(&[3; 60], 6)]);
    let out = run(&mut rig);
    assert_eq!(numbers(&out), [1, 2, 3, 1, 2, 3]);
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)));
    assert_eq!((&out[1].packet, &out[4].packet), (&long, &long));
    assert!(rig.host().stopped);
    assert_eq!(rig.host().printed[0], "e: loaded 3 packets; input 0 has no more");
    assert_eq!(
        (rig.read("active"), rig.read("count"), rig.read("stop")),
        ("false".into(), "3".into(), "0".into())
    );
    rig.write("reset", "").unwrap();
    rig.write("stop", "1").unwrap();
    rig.write("active", "true").unwrap();
    rig.feed(0, &[stamped(&[4; 60], 5)]);
    assert_eq!(numbers(&run(&mut rig)), [4]);
}

#[test]
fn a_replay_keeps_the_times_between_packets() {
    for (timing, every_ms) in [("1", 10), ("2", 5)] {
        let mut rig = Rig::new("ReplayUnqueue", &format!("STOP 1, TIMING {timing}"), 1, 1);
        rig.feed(0, &[stamped(&[1; 60], 100 * MS), stamped(&[2; 60], 110 * MS), stamped(&[3; 60], 120 * MS)]);
        assert_eq!(numbers(&run(&mut rig)), [1]);
        for number in [2, 3] {
            rig.advance((every_ms - 1) * MS);
            assert!(run(&mut rig).is_empty());
            rig.advance(MS);
            assert_eq!(numbers(&run(&mut rig)), [number]);
        }
        assert!(rig.host().stopped);
        assert_eq!(rig.read("timing"), timing);
    }
}

#[test]
fn loading_ends_at_a_limit_or_when_nothing_comes() {
    let mut rig = Rig::new("ReplayUnqueue", "STOP 1, LIMIT 2, BURST 1", 1, 1);
    rig.feed(0, &[1, 2, 3].map(|number| stamped(&[number; 60], 0)));
    assert_eq!(numbers(&run(&mut rig)), [1, 2]);
    let mut rig = Rig::new("ReplayUnqueue", "STOP 1, USE_SIGNAL true", 1, 1);
    rig.feed(0, &[stamped(&[1; 60], 0)]);
    rig.task();
    assert!(run(&mut rig).is_empty());
    rig.advance(99 * MS);
    rig.feed(0, &[stamped(&[2; 60], 0)]);
    rig.task();
    assert!(run(&mut rig).is_empty());
    rig.advance(100 * MS);
    assert_eq!(numbers(&run(&mut rig)), [1, 2]);
    assert_eq!(mistakes("ReplayUnqueue", "STOP x, BURST 0, QUEUE 3", 1, 1).len(), 3);
}

#[test]
fn several_inputs_are_merged_by_time_and_keep_their_outputs() {
    let mut rig = Rig::new("MultiReplayUnqueue", "STOP 2", 2, 2);
    rig.feed(0, &[stamped(&[1; 60], 10), stamped(&[3; 60], 30)]);
    rig.feed(1, &[stamped(&[2; 60], 20), stamped(&[4; 60], 40), stamped(&[5; 60], 50)]);
    let out = run(&mut rig);
    let sent: Vec<&Out> = out.iter().filter(|out| out.exit != dropped("left-over")).collect();
    let ports: Vec<(Exit, u8, u64)> =
        sent.iter().map(|out| (out.exit.clone(), out.packet.bytes[0], out.packet.anno(PAINT))).collect();
    let loop_ = [(Exit::Port(0), 1, 0), (Exit::Port(1), 2, 1), (Exit::Port(0), 3, 0)];
    assert_eq!(ports, [loop_.clone(), loop_].concat());
    assert_eq!(out.len() - sent.len(), 1, "the packet behind the end of input 0");
    assert!(mistakes("MultiReplayUnqueue", "TIMING 1", 2, 2)[0].contains("TIMING"));
    // What was pulled when a run ends is accounted for.
    let mut rig = Rig::new("MultiReplayUnqueue", "", 2, 2);
    rig.feed(0, &[stamped(&[1; 60], 10)]);
    run(&mut rig);
    rig.advance(100 * MS);
    run(&mut rig);
    assert_eq!(rig.warnings(), ["e: there are no packets to replay"]);
}
