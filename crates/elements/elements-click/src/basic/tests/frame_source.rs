//! Elements that make packets.

use super::mistakes;
use crate::testing::{Exit, Out, Rig};
use element::element::Progress;
use element::work::NodeCounter;

const MS: u64 = 1_000_000;
const DEFAULT_BYTES: usize = 69;

fn run(rig: &mut Rig) -> Vec<Out> {
    let (_, out) = rig.task();
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)));
    out
}

#[test]
fn infinite_source_makes_bursts_up_to_its_limit() {
    let mut rig = Rig::new("InfiniteSource", "\\<01 02 ff>, 70", 0, 1);
    let counts: Vec<usize> = (0..4).map(|_| run(&mut rig).len()).collect();
    assert_eq!((counts, rig.read("count").as_str()), (vec![32, 32, 6, 0], "70"));
    assert_eq!(rig.task().0, Progress::Idle);
    assert!(!rig.host().stopped);
    rig.write("reset", "").unwrap();
    let out = run(&mut rig);
    assert_eq!(
        (&out[0].packet.bytes[..], out[0].packet.timestamp_ns),
        (&[1, 2, 0xff][..], rig.host().now_ns)
    );
    assert_eq!(rig.host().node_counters[NodeCounter::Made as usize], 102);
}

#[test]
fn infinite_source_fills_packets_as_told() {
    let mut rig = Rig::new("InfiniteSource", "DATA \"abc\", LENGTH 8, BURST 1, TIMESTAMP false", 0, 1);
    let out = run(&mut rig);
    assert_eq!((out.len(), &out[0].packet.bytes[..]), (1, &b"abcabcab"[..]));
    assert_eq!(out[0].packet.timestamp_ns, 0);
    for (length, bytes) in
        [("2", "ab".to_string()), ("-1", "abc".into()), ("5000", "abc".repeat(1667)[..5000].into())]
    {
        rig.write("length", length).unwrap();
        assert_eq!(
            (run(&mut rig)[0].packet.bytes.as_slice(), rig.read("datasize").as_str()),
            (bytes.as_bytes(), length)
        );
    }
    rig.write("datasize", "-1").unwrap();
    rig.write("data", "x\\n").unwrap();
    assert_eq!((run(&mut rig)[0].packet.bytes.as_slice(), rig.read("data").as_str()), (&b"x\\n"[..], "x\\n"));
    rig.write("burst", "3").unwrap();
    assert_eq!((run(&mut rig).len(), rig.read("burstsize").as_str()), (3, "3"));
    rig.write("active", "0").unwrap();
    assert!(run(&mut rig).is_empty());
    assert_eq!(rig.read("active"), "false");
    assert!(rig.write("burst", "0").is_err() && rig.write("length", "70000").is_err());
    assert!(rig.write("rate", "1").is_err());
    let mut rig = Rig::new("InfiniteSource", "LENGTH 4, DATA \"\"", 0, 1);
    assert_eq!(run(&mut rig)[0].packet.bytes, [0; 4]);
    let mut rig = Rig::new("InfiniteSource", "", 0, 1);
    assert_eq!(run(&mut rig)[0].packet.bytes.len(), DEFAULT_BYTES);
}

#[test]
fn sources_call_a_handler_when_they_are_done() {
    let mut rig = Rig::new("InfiniteSource", "LIMIT 1, STOP true", 0, 1);
    run(&mut rig);
    assert!(!rig.host().stopped);
    run(&mut rig);
    assert!(rig.host().stopped);
    let mut rig = Rig::new("RatedSource", "LIMIT 1, END_CALL a.b c", 0, 1);
    run(&mut rig);
    run(&mut rig);
    assert_eq!(rig.host().handlers.remove("a.b").as_deref(), Some("c"));
    run(&mut rig);
    assert!(rig.host().handlers.is_empty());
    rig.write("limit", "2").unwrap();
    rig.advance(200 * MS);
    assert_eq!(run(&mut rig).len(), 1);
    run(&mut rig);
    assert_eq!(rig.host().handlers.len(), 1);
    for class in ["InfiniteSource", "RatedSource"] {
        assert!(mistakes(class, "STOP true, END_CALL a.b", 0, 1)[0].contains("mutually exclusive"));
        let all = mistakes(class, "LIMIT x, ACTIVE maybe, LENGTH -2, COLOR 1", 0, 1);
        assert_eq!(all.len(), 4, "{all:?}");
    }
}

#[test]
fn rated_source_keeps_its_rate() {
    for (config, per_second) in [("RATE 1000", 1000), ("", 10), ("BANDWIDTH 8kbps, LENGTH 100", 10)] {
        let mut rig = Rig::new("RatedSource", config, 0, 1);
        let mut count = 0;
        for _ in 0..2000 {
            count += run(&mut rig).len();
            rig.advance(MS);
        }
        assert!((2 * per_second..=2 * per_second + 1).contains(&count), "{config}: {count}");
    }
    let mut rig = Rig::new("RatedSource", "RATE 100000", 0, 1);
    run(&mut rig);
    rig.write("rate", "500").unwrap();
    assert_eq!(rig.read("rate"), "500");
    // Five may be saved up, however long nobody asks.
    rig.advance(1000 * MS);
    assert_eq!(run(&mut rig).len(), 5);
    assert!(rig.write("rate", "-5").is_err() && rig.write("burst", "1").is_err());
    assert_eq!(rig.read("length"), "-1");
}

#[test]
fn timed_source_makes_a_packet_every_interval() {
    let mut rig = Rig::new("TimedSource", "0.1, \"hi\", LIMIT 3, STOP true", 0, 1);
    let mut times = vec![];
    for ms in 0..450 {
        for out in run(&mut rig) {
            assert_eq!(out.packet.bytes, b"hi");
            times.push(ms);
        }
        rig.advance(MS);
    }
    assert_eq!(times, [100, 200, 300]);
    assert!(rig.host().stopped);
    rig.write("interval", "20ms").unwrap();
    rig.write("reset", "").unwrap();
    assert_eq!(run(&mut rig).len(), 1);
    assert!(run(&mut rig).is_empty());
    rig.advance(20 * MS);
    assert_eq!(run(&mut rig).len(), 1);
    assert_eq!([rig.read("interval"), rig.read("count"), rig.read("limit")], ["20ms", "2", "3"]);
    assert!(rig.write("interval", "0").is_err() && rig.write("length", "1").is_err());
    assert_eq!(mistakes("TimedSource", "soon", 0, 1).len(), 1);
}

#[test]
fn the_longest_interval_is_never_over() {
    let mut rig = Rig::new("TimedSource", "18446744073s", 0, 1);
    rig.advance(MS);
    assert!(run(&mut rig).is_empty());
    // The end of the interval would be beyond the clock's last nanosecond.
    let mut rig = Rig::new("TimedSource", "1s", 0, 1);
    rig.advance(1_000_000 * MS);
    rig.write("interval", "18446744073s").unwrap();
    assert_eq!(run(&mut rig).len(), 1);
    rig.advance(1_000_000 * MS);
    assert!(run(&mut rig).is_empty());
}

#[test]
fn sources_make_do_with_the_packets_that_there_are() {
    let mut rig = Rig::new("InfiniteSource", "BURST 256, LENGTH 65535", 0, 1);
    // 32 slots a packet, and 2,048 slots.
    assert_eq!(run(&mut rig).len(), 64);
    assert_eq!(rig.read("count"), "64");
}

#[test]
fn sources_whose_output_is_pulled_make_packets_then() {
    let pulled = |class: &str, config: &str| {
        Rig::beside_queue(class, config, 1, false, &std::sync::Arc::new(())).unwrap()
    };
    let mut rig = pulled("InfiniteSource", "abc, LIMIT 5, STOP true");
    assert_eq!((rig.pull(0, 3).len(), rig.pull(0, 8).len()), (3, 2));
    assert!(rig.pull(0, 8).is_empty() && rig.host().stopped);
    let mut rig = pulled("RatedSource", "RATE 1000");
    assert_eq!((rig.pull(0, 8).len(), rig.pull(0, 8).len()), (1, 0));
    rig.advance(2_000_000);
    assert_eq!(rig.pull(0, 8)[1].bytes.len(), 69);
}
