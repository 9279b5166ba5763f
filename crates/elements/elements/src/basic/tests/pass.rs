//! Elements that let packets pass, drop them, or show them.

use super::{dropped, mistakes, packet};
use crate::testing::{Exit, Rig, differential};

#[test]
fn null_and_align_change_nothing() {
    let pipeliner = "BLOCKING false, CAPACITY 4, ALWAYS_UP true";
    for (class, config) in [
        ("Null", ""),
        ("PushNull", ""),
        ("Align", "4, 2"),
        ("EnsureDPDKBuffer", "true, EXTRA_HEADROOM 4"),
        ("Pipeliner", pipeliner),
        ("CPUSwitch", ""),
        ("ExactCPUSwitch", ""),
        ("SpinlockAcquire", "lock"),
        ("SpinlockRelease", "lock"),
        ("SpinlockPush", "lock"),
        ("PathSpinlock", "lock"),
    ] {
        let mut rig = Rig::new(class, config, 1, 1);
        let packet = packet(3, 61);
        let out = rig.push_one(0, &packet);
        assert_eq!((out.exit, out.packet), (Exit::Port(0), packet));
        differential(class, config, 1, 1);
    }
    assert_eq!(mistakes("Null", "1", 1, 1).len(), 1);
    assert_eq!(mistakes("SpinlockAcquire", "", 1, 1).len(), 1);
    assert!(mistakes("Align", "3, 0", 1, 1)[0].contains("2, 4 or 8"));
    assert!(mistakes("Align", "4, 4", 1, 1)[0].contains("smaller than MODULUS"));
}

#[test]
fn pull_null_passes_what_is_pulled() {
    let mut rig = Rig::new("PullNull", "", 1, 1);
    rig.feed(0, &[packet(3, 61), packet(4, 61)]);
    assert_eq!((rig.pull(0, 1)[0].bytes[0], rig.pull(0, 8)[0].bytes[0]), (3, 4));
    assert!(rig.pull(0, 8).is_empty());
}

#[test]
fn information_elements_take_whatever_they_are_told() {
    for class in ["AlignmentInfo", "ScheduleInfo", "ClickyInfo", "JiffieClock", "TSCClock", "SpinlockInfo"] {
        Rig::new(class, "a 4 0, b 1, C 3", 0, 0);
    }
    Rig::new("BalancedThreadSched", "500, false", 0, 0);
    assert_eq!(mistakes("BalancedThreadSched", "soon, 2", 0, 0).len(), 2);
}

#[test]
fn idle_drops_what_comes_in() {
    for class in ["Idle", "SimpleIdle"] {
        let mut rig = Rig::new(class, "", 2, 1);
        assert_eq!(rig.push_one(0, &packet(0, 60)).exit, dropped("idle"));
        assert_eq!(rig.push_one(1, &packet(0, 60)).exit, dropped("idle"));
        assert!(rig.pull(0, 8).is_empty());
    }
}
