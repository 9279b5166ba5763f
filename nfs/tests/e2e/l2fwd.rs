//! The learning bridge, the one in Rust and the one in C.

use crate::c;
use crate::frames::{stations, udp};
use crate::run::{Frame, Outcome, Setup, shipped};
use std::path::Path;

fn station(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, number]
}

fn frame(from: u8, to: [u8; 6]) -> Frame {
    stations(udp("10.0.0.1:1", "10.0.0.2:2", &[from]), station(from), to)
}

fn bridged(program: &Path, config: &str) -> Outcome {
    let mut runt = frame(3, station(2));
    runt.truncate(13);
    let frames = [
        frame(1, station(2)),
        frame(2, station(1)), // From the same interface: the destination is there, too.
        frame(1, [0xff; 6]),
        frame(1, [1, 0x80, 0xc2, 0, 0, 0x0e]),
        stations(frame(1, station(2)), [3; 6], station(2)),
        runt,
    ];
    Setup::of(program, &["a", "b", "c"], config).input("a", &frames).run().sound()
}

#[test]
fn it_floods_what_it_does_not_know_and_drops_what_is_there_already() {
    for (name, program) in c::both("l2fwd") {
        let outcome = bridged(&program, "");
        let flooded = [frame(1, station(2)), frame(1, [0xff; 6])];
        assert_eq!((outcome.out("b"), outcome.out("c")), (&flooded[..], &flooded[..]), "{name}");
        let drops = [("bad-source", 1), ("link-local", 1), ("malformed", 1), ("same-interface", 1)];
        assert_eq!((outcome.drops(), outcome.out("a").len()), (drops.to_vec(), 0), "{name}");
        assert_eq!((outcome.counter("flooded"), outcome.counter("copies")), (2, 2), "{name}");
    }
}

#[test]
fn who_is_where_is_a_handler() {
    for (name, program) in c::both("l2fwd") {
        let frames = [frame(1, station(2)), frame(3, station(1))];
        let setup = Setup::of(&program, &["a", "b"], "").input("a", &frames).reading(&["table", "handlers"]);
        let outcome = setup.run().sound();
        let mut lines: Vec<&str> = outcome.handler("table").lines().collect();
        lines.sort_unstable();
        let old = |line: &&str, station: &str| {
            line.strip_prefix(station).and_then(|rest| rest.strip_suffix(" s"))?.parse().ok()
        };
        let ages: Vec<Option<u64>> = lines
            .iter()
            .zip(["02:00:00:00:01:01 a ", "02:00:00:00:01:03 a "])
            .map(|(line, station)| old(line, station))
            .collect();
        // The NF's clock starts with the NF.
        assert!(matches!(ages[..], [Some(0 | 1), Some(0 | 1)]), "{name}: {lines:?}");
        let all = outcome.handler("handlers");
        assert!(all.contains("counters\tr") && all.ends_with("table\tr\nforget\tw"), "{name}: {all}");
        // A write-only handler has no value to read.
        let told = Setup::of(&program, &["a", "b"], "").reading(&["forget"]).told();
        assert!(told.contains("`nf/process` has no read handler `forget`"), "{name}: {told}");
    }
}

#[test]
fn answers_go_only_to_who_asked() {
    for (name, program) in c::both("l2fwd") {
        let frames = [frame(1, station(2))];
        let outcome = Setup::of(&program, &["a", "b"], "").input("a", &frames).mirror("b").run().sound();
        assert_eq!(outcome.out("a").len(), 1, "{name}");
        assert_eq!((outcome.counter("flooded"), outcome.counter("forwarded")), (1, 1), "{name}");
    }
}

#[test]
fn what_the_configuration_says_is_known() {
    let config = "
        [[static]]
        mac = \"02:00:00:00:01:02\"
        interface = \"c\"
        [[next]]
        interface = \"c\"
        mac = \"02:00:00:00:09:09\"";
    let outcome = bridged(&shipped("l2fwd"), config);
    assert_eq!(outcome.out("b"), [frame(1, [0xff; 6])]);
    let to_next: Vec<&[u8]> = outcome.out("c").iter().map(|frame| &frame[..6]).collect();
    assert_eq!(to_next, [[2, 0, 0, 0, 9, 9]; 2]);
    // A frame whose source is a static address of another interface does not move that address.
    assert_eq!(outcome.counter("moved"), 0);
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("l2fwd", &["a", "b"], "age-s = 0\n[[static]]\nmac = \"x\"\ninterface = \"z\"\n").refused(&[
        "config:1: `age-s`: 0 is not a whole number",
        "config:3: `mac`: `x` is not an Ethernet address",
        "config:4: `interface`: there is no interface `z`, only a, b",
    ]);
}
