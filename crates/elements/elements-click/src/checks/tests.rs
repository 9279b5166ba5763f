//! Tasks, and packets that are as they should be or not.

use crate::testing::{Exit, Rig, TestPacket, mistakes};
use element::element::Progress;

#[test]
fn a_null_task_runs_until_its_limit() {
    let mut rig = Rig::new("NullTask", "LIMIT 3, STOP true", 0, 0);
    let turns = [0; 5].map(|_| rig.task().0);
    assert_eq!(turns[..4], [Progress::Worked, Progress::Worked, Progress::Worked, Progress::Idle]);
    assert_eq!((rig.read("count").as_str(), rig.read("scheduled").as_str()), ("3", "false"));
    assert!(rig.host().stopped);
    rig.write("reset", "").unwrap();
    rig.write("limit", "0").unwrap();
    rig.write("scheduled", "true").unwrap();
    assert!((0..9).all(|_| rig.task().0 == Progress::Worked));
    assert_eq!((rig.read("count").as_str(), rig.read("limit").as_str()), ("9", "0"));
    let mut rig = Rig::new("NullTask", "ACTIVE false", 0, 0);
    assert_eq!((rig.task().0, rig.host().stopped), (Progress::Idle, false));
    assert_eq!(mistakes("NullTask", "LIMIT -1, STOP 2, x", 0, 0).len(), 3);
}

#[test]
fn a_handler_task_calls_its_handler_when_it_is_scheduled() {
    let mut rig = Rig::new("HandlerTask", "stop", 0, 0);
    assert_eq!((rig.task().0, rig.task().0), (Progress::Worked, Progress::Idle));
    assert!(rig.host().stopped);
    rig.write("scheduled", "true").unwrap();
    assert_eq!((rig.task().0, rig.read("count").as_str()), (Progress::Worked, "2"));
    let mut rig = Rig::new("HandlerTask", "stop, ACTIVE false, RESCHEDULE true", 0, 0);
    assert_eq!((rig.task().0, rig.host().stopped), (Progress::Idle, false));
    rig.write("scheduled", "1").unwrap();
    assert!((0..4).all(|_| rig.task().0 == Progress::Worked));
    rig.write("reschedule", "false").unwrap();
    assert_eq!((rig.task().0, rig.task().0), (Progress::Worked, Progress::Idle));
    assert_eq!((rig.read("count").as_str(), rig.read("scheduled").as_str()), ("5", "false"));
    assert_eq!(mistakes("HandlerTask", "", 0, 0).len(), 1);
}

#[test]
fn packets_that_differ_are_printed_and_pass() {
    for (config, lines) in [
        ("", &[][..]),
        ("LENGTH 4, DATA abcd", &[]),
        ("DATA cd, DATA_OFFSET 2, LENGTH_GE 4", &[]),
        ("LENGTH_LE 4, ALIGNMENT 4 2", &[]),
        ("LENGTH 5", &["x: bad length 4 (wanted 5)"]),
        ("LENGTH_GE 5, DATA abce", &["x: bad length 4 (wanted at least 5)", "x: bad data (does not match)"]),
        ("LENGTH_LE 3", &["x: bad length 4 (wanted at most 3)"]),
        ("DATA abc", &["x: data too long (4 bytes, wanted 3)"]),
        ("DATA cde, DATA_OFFSET 2", &["x: data too short (4 bytes, wanted 5)"]),
        ("DATA x, DATA_OFFSET 9", &["x: data too short (4 bytes, wanted 10)"]),
    ] {
        let mut rig = Rig::new("CheckPacket", config, 1, 1);
        let packet = TestPacket::frame(b"abcd");
        let out = rig.push_one(0, &packet);
        assert_eq!((out.exit, &out.packet), (Exit::Port(0), &packet));
        let printed: Vec<&str> = rig
            .host()
            .printed
            .iter()
            .map(|line| line.split_once(": ").map_or("", |(_, text)| text))
            .collect();
        let expected: Vec<&str> = lines.iter().map(|line| line.trim_start_matches("x: ")).collect();
        assert_eq!(printed, expected, "{config}");
    }
    assert_eq!(mistakes("CheckPacket", "LENGTH_GE 3, LENGTH_LE 5", 1, 1).len(), 1);
}

#[test]
fn a_random_seed_is_taken_and_shown() {
    let mut rig = Rig::new("RandomSeed", "17", 0, 0);
    assert_eq!(rig.read("seed"), "17");
    rig.write("seed", "").unwrap();
    assert_eq!(rig.read("seed"), "");
    assert!(rig.write("seed", "x").is_err() && Rig::try_new("RandomSeed", "x", 0, 0).is_err());
}
