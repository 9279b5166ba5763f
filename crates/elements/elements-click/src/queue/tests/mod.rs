use crate::testing::{Exit, Rig, TestPacket};
use element::element::Progress;
use element::work::NodeCounter;

mod codel;
mod red;

/// Packets numbered by their bytes.
fn packets(numbers: std::ops::Range<u8>) -> Vec<TestPacket> {
    numbers.map(|number| TestPacket::frame(&[number; 60])).collect()
}

fn numbers<'a>(packets: impl IntoIterator<Item = &'a TestPacket>) -> Vec<u8> {
    packets.into_iter().map(|packet| packet.bytes[0]).collect()
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// Packets that leave in a number of milliseconds, with more always waiting upstream.
fn moved_in(rig: &mut Rig, ms: usize, len: usize) -> usize {
    let (mut moved, mut fed) = (0, 0);
    for _ in 0..ms {
        while fed < moved + 8 {
            rig.feed(0, &[TestPacket::frame(&vec![0; len])]);
            fed += 1;
        }
        moved += rig.task().1.len();
        rig.advance(MS);
    }
    moved
}

#[test]
fn rated_unqueue_keeps_its_rate() {
    let mut rig = Rig::new("RatedUnqueue", "1000, BURST_SIZE 5", 1, 1);
    assert_eq!(moved_in(&mut rig, 300, 60), 304);
    assert_eq!(rig.read("rate"), "1000");
    rig.write("rate", "100").unwrap();
    let moved = moved_in(&mut rig, 300, 60);
    assert!((29..=36).contains(&moved), "{moved}");
    assert!(rig.read("calls").starts_with("600 calls to run_task()\n"));
    rig.write("active", "false").unwrap();
    assert_eq!((moved_in(&mut rig, 20, 60), rig.read("active").as_str()), (0, "false"));
    assert!(rig.write("rate", "fast").is_err() && rig.write("calls", "").is_err());
    // The rate may be saved up for 20 ms.
    let mut rig = Rig::new("RatedUnqueue", "1000", 1, 1);
    rig.advance(SECOND);
    rig.feed(0, &packets(0..60));
    assert_eq!((rig.task().1.len(), rig.task().1.len()), (20, 0));
    let mut rig = Rig::new("RatedUnqueue", "10", 1, 1);
    assert_eq!(rig.task().0, Progress::Idle);
    assert!(rig.read("calls").contains("1 failed pulls"));
}

#[test]
fn the_next_token_wakes_the_worker() {
    let mut rig = Rig::new("RatedUnqueue", "1000, BURST_SIZE 1", 1, 1);
    rig.feed(0, &packets(0..3));
    assert_eq!((rig.task().1.len(), rig.task().1.len()), (1, 0));
    let now_ns = rig.host().now_ns;
    assert_eq!(rig.host().wake_at, Some(now_ns + MS));
    // It holds until the task runs again.
    rig.host().wake_at = None;
    assert_eq!((rig.task().1.len(), rig.host().wake_at), (0, Some(now_ns + MS)));
    rig.advance(MS);
    assert_eq!((rig.task().1.len(), rig.task().1.len()), (1, 0));
    assert_eq!(rig.host().wake_at, Some(now_ns + 2 * MS));
}

#[test]
fn bandwidth_is_kept_whatever_the_length() {
    for len in [60, 1500] {
        // 60,000 bytes a second, and none saved up.
        let mut rig = Rig::new("BandwidthRatedUnqueue", "480kbps, BURST_BYTES 0", 1, 1);
        let bytes = moved_in(&mut rig, 500, len) * len;
        assert!((30_000..=30_000 + len).contains(&bytes), "{bytes} of {len}");
        assert_eq!(rig.read("rate"), "480kbps");
        rig.write("rate", "1MBps").unwrap();
        assert_eq!(rig.read("rate"), "8Mbps");
    }
}

#[test]
fn shapers_let_through_what_the_rate_allows() {
    let mut rig = Rig::new("Shaper", "1000, BURST_SIZE 3", 1, 1);
    rig.feed(0, &packets(0..60));
    assert_eq!(numbers(&rig.pull(0, 10)), [0, 1, 2]);
    assert!(rig.pull(0, 10).is_empty());
    rig.advance(2 * MS);
    assert_eq!(numbers(&rig.pull(0, 1)), [3]);
    assert_eq!(numbers(&rig.pull(0, 9)), [4]);
    rig.write("reset", "").unwrap();
    assert_eq!(rig.pull(0, 10).len(), 3);
    rig.write("rate", "1").unwrap();
    rig.advance(3 * SECOND);
    assert_eq!((rig.pull(0, 10).len(), rig.read("rate").as_str()), (3, "1"));

    let mut rig = Rig::new("BandwidthShaper", "1000, BURST_BYTES 100", 1, 1);
    rig.feed(0, &packets(0..60));
    // 100 bytes are there: the second packet takes what is not.
    assert_eq!(rig.pull(0, 10).len(), 2);
    rig.advance(19 * MS);
    assert!(rig.pull(0, 10).is_empty());
    rig.advance(MS);
    assert_eq!(rig.pull(0, 10).len(), 1);
}

#[test]
fn the_second_output_of_a_shaper_has_what_the_rate_does_not_allow() {
    for (class, config) in [("Shaper", "1000, BURST_SIZE 2"), ("BandwidthShaper", "60000, BURST_BYTES 60")] {
        let mut rig = Rig::new(class, config, 1, 2);
        rig.feed(0, &packets(0..9));
        assert!(rig.pull(1, 3).is_empty(), "{class}: the rate allows them");
        assert_eq!(numbers(&rig.pull(0, 5)), [0, 1], "{class}");
        rig.advance(MS / 2);
        assert_eq!(numbers(&rig.pull(1, 2)), [2, 3], "{class}");
        rig.advance(MS);
        assert!(rig.pull(1, 3).is_empty(), "{class}");
        assert_eq!(numbers(&rig.pull(0, 5)), [4], "{class}");
    }
}

#[test]
fn a_shaper_without_a_burst_starts_over_with_one_packet() {
    let mut rig = Rig::new("Shaper", "500", 1, 1);
    rig.feed(0, &packets(0..30));
    assert_eq!(rig.pull(0, 30).len(), 10);
    rig.write("reset", "").unwrap();
    assert_eq!(rig.pull(0, 30).len(), 1);
}

#[test]
fn a_link_is_busy_for_the_length_of_each_packet() {
    // 12,500 bytes a second: 60 bytes take 4.8 ms.
    const EACH: u64 = 4_800_000;
    let mut rig = Rig::new("LinkUnqueue", "5ms, 100kbps", 1, 1);
    let start_ns = rig.host().now_ns;
    rig.feed(0, &packets(0..4));
    assert_eq!(rig.task().1.len(), 0);
    assert_eq!((rig.read("size"), rig.host().wake_at), ("1".into(), Some(start_ns + EACH)));
    // The worker comes late, and the link goes on as if it had not.
    rig.advance(EACH + 100_000);
    assert_eq!((rig.task().1.len(), rig.read("size")), (0, "2".into()));
    let mut left = vec![];
    for _ in 0..40 {
        rig.advance(MS / 2);
        left.extend(rig.task().1.iter().map(|out| out.packet.timestamp_ns - start_ns));
    }
    assert_eq!(left, [1, 2, 3, 4].map(|count| 5 * MS + count * EACH));
    // A link that was idle begins with the next packet.
    rig.advance(SECOND);
    rig.task();
    let now_ns = rig.host().now_ns;
    rig.feed(0, &packets(0..1));
    rig.task();
    rig.advance(5 * MS + EACH);
    assert_eq!(rig.task().1[0].packet.timestamp_ns, now_ns + 5 * MS + EACH);
    assert_eq!([rig.read("latency"), rig.read("bandwidth")], ["5ms", "12500"]);
    rig.write("latency", "1.5s").unwrap();
    rig.write("bandwidth", "8Mbps").unwrap();
    assert_eq!([rig.read("latency"), rig.read("bandwidth")], ["1.500000s", "1000000"]);
    assert!(rig.write("bandwidth", "0").is_err() && rig.write("latency", "soon").is_err());
    let mistakes = |config: &str| Rig::try_new("LinkUnqueue", config, 1, 1).err().unwrap();
    assert!(mistakes("1ms, 0").contains("no packet would ever leave"));
    assert_eq!(mistakes("soon").lines().count(), 2);
}

#[test]
fn rates_are_checked() {
    for class in ["RatedUnqueue", "BandwidthRatedUnqueue", "Shaper", "BandwidthShaper"] {
        let mistakes = |config: &str| Rig::try_new(class, config, 1, 1).err().unwrap();
        assert_eq!(mistakes("").lines().count(), 1, "{class}");
        assert_eq!(mistakes("fast, BURST_DURATION soon, COLOR 1").lines().count(), 3, "{class}");
    }
    let both = Rig::try_new("Shaper", "1, BURST_SIZE 1, BURST_DURATION 1", 1, 1).err().unwrap();
    assert!(both.contains("not both"), "{both}");
}

#[test]
fn delays_count_from_the_timestamp() {
    let mut rig = Rig::new("DelayUnqueue", "10ms", 1, 1);
    let now_ns = rig.host().now_ns;
    let stamped = |timestamp_ns| TestPacket { timestamp_ns, ..TestPacket::frame(&[1; 60]) };
    rig.feed(0, &[stamped(now_ns - 20 * MS), stamped(now_ns - 4 * MS), stamped(0)]);
    let out = rig.task().1;
    assert_eq!((out.len(), out[0].packet.timestamp_ns), (1, now_ns - 10 * MS));
    rig.advance(5 * MS);
    assert_eq!(rig.task().0, Progress::Idle);
    rig.advance(MS);
    // The third is pulled now, and gets the time of now.
    assert_eq!(rig.task().1.len(), 1);
    rig.advance(9 * MS);
    assert!(rig.task().1.is_empty());
    rig.advance(MS);
    let out = rig.task().1;
    assert_eq!((out.len(), out[0].packet.timestamp_ns), (1, now_ns + 16 * MS));
    rig.write("delay", "1").unwrap();
    assert_eq!(rig.read("delay"), "1.000000s");
    rig.feed(0, &[stamped(0)]);
    assert!(rig.task().1.is_empty());
    assert!(rig.write("delay", "long").is_err() && rig.write("rate", "1").is_err());
    assert_eq!(Rig::try_new("DelayUnqueue", "", 1, 1).err().unwrap().lines().count(), 1);
}

#[test]
fn a_delay_shaper_waits_to_be_pulled() {
    let mut rig = Rig::new("DelayShaper", "1ms", 1, 1);
    rig.feed(0, &packets(0..3));
    assert!(rig.pull(0, 8).is_empty());
    rig.advance(MS);
    // Only the first was pulled a millisecond ago.
    assert_eq!(numbers(&rig.pull(0, 8)), [0]);
    rig.advance(MS);
    assert_eq!(numbers(&rig.pull(0, 8)), [1]);
}

#[test]
fn round_robin_takes_turns_and_passes_over_the_empty() {
    for class in ["RoundRobinSched", "SimpleRoundRobinSched"] {
        let mut rig = Rig::new(class, "", 3, 1);
        rig.feed(0, &packets(0..3));
        rig.feed(2, &packets(20..25));
        assert_eq!(numbers(&rig.pull(0, 5)), [0, 20, 1, 21, 2]);
        assert_eq!(numbers(&rig.pull(0, 9)), [22, 23, 24]);
        assert!(rig.pull(0, 9).is_empty());
    }
}

#[test]
fn priority_goes_before_order() {
    for class in ["PrioSched", "SimplePrioSched"] {
        let mut rig = Rig::new(class, "", 3, 1);
        rig.feed(1, &packets(10..13));
        rig.feed(2, &packets(20..22));
        assert_eq!(numbers(&rig.pull(0, 2)), [10, 11]);
        rig.feed(0, &packets(0..1));
        assert_eq!(numbers(&rig.pull(0, 9)), [0, 12, 20, 21]);
    }
}

#[test]
fn strides_share_by_tickets() {
    let mut rig = Rig::new("StrideSched", "1, 3, 0", 3, 1);
    for input in 0..3 {
        rig.feed(input, &packets(input as u8 * 50..input as u8 * 50 + 50));
    }
    let got = numbers(&rig.pull(0, 40));
    assert_eq!((got.iter().filter(|number| **number < 50).count(), got.len()), (10, 40));
    assert!(got.iter().all(|number| *number < 100));
    rig.write("tickets2", "4").unwrap();
    assert_eq!([rig.read("tickets0"), rig.read("tickets2")], ["1", "4"]);
    assert!(rig.pull(0, 20).iter().any(|packet| packet.bytes[0] >= 100));
    assert!(rig.write("tickets3", "1").is_err() && rig.write("tickets0", "-1").is_err());
    assert_eq!(rig.pull(0, 200).len(), 90);
    let mistakes = Rig::try_new("StrideSched", "1, -7", 3, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 2, "{mistakes}");
    let mut rig = Rig::new("StrideSched", "70000", 1, 1);
    assert_eq!(rig.read("tickets0"), "65536");
    rig.write("tickets0", "99999").unwrap();
    assert_eq!(rig.read("tickets0"), "65536");
}

#[test]
fn deficit_round_robin_shares_bytes() {
    let mut rig = Rig::new("DRRSched", "500", 2, 1);
    rig.feed(0, &vec![TestPacket::frame(&[0; 1500]); 20]);
    rig.feed(1, &vec![TestPacket::frame(&[1; 100]); 200]);
    let got = rig.pull(0, 128);
    let bytes = |input: u8| -> usize {
        got.iter().filter(|packet| packet.bytes[0] == input).map(|packet| packet.bytes.len()).sum()
    };
    assert!(bytes(0).abs_diff(bytes(1)) <= 1500, "{} {}", bytes(0), bytes(1));
    assert!(bytes(0) >= 9000);
    // An input alone gets everything.
    let mut rig = Rig::new("DRRSched", "", 2, 1);
    rig.feed(1, &packets(0..30));
    assert_eq!(rig.pull(0, 64).len(), 30);
    assert!(rig.pull(0, 64).is_empty());
    let held = rig.host().node_counters[NodeCounter::Held as usize];
    assert_eq!(held, rig.host().node_counters[NodeCounter::Released as usize]);
    assert_eq!(Rig::try_new("DRRSched", "0", 2, 1).err().unwrap().lines().count(), 1);
}

fn stamped(times_ns: &[u64]) -> Vec<TestPacket> {
    times_ns.iter().map(|at| TestPacket { timestamp_ns: *at, ..TestPacket::frame(&[0; 60]) }).collect()
}

fn times(packets: &[TestPacket]) -> Vec<u64> {
    packets.iter().map(|packet| packet.timestamp_ns).collect()
}

#[test]
fn streams_are_merged_by_time() {
    for (config, first, merged, well_ordered) in [
        ("", [1, 2, 10, 12, 55], [1, 2, 3, 8, 9, 10, 12, 14, 55], true),
        ("", [1, 10, 2, 12, 55], [1, 3, 8, 9, 10, 2, 12, 14, 55], false),
        ("BUFFER 3", [10, 2, 1, 12, 55], [1, 2, 3, 8, 9, 10, 12, 14, 55], true),
        ("BUFFER 2", [10, 2, 1, 12, 55], [2, 1, 3, 8, 9, 10, 12, 14, 55], false),
    ] {
        let mut rig = Rig::new("TimeSortedSched", config, 2, 1);
        rig.feed(0, &stamped(&first));
        rig.feed(1, &stamped(&[3, 8, 9, 14]));
        let mut got = times(&rig.pull(0, 4));
        got.extend(times(&rig.pull(0, 100)));
        assert_eq!(got, merged, "{config} {first:?}");
        assert_eq!(rig.read("well_ordered"), well_ordered.to_string(), "{config} {first:?}");
        assert!(!rig.host().stopped);
    }
    assert_eq!(Rig::try_new("TimeSortedSched", "BUFFER 0, STOP 2", 2, 1).err().unwrap().lines().count(), 2);
}

#[test]
fn a_time_sorted_scheduler_stops_when_nothing_comes_any_more() {
    let mut rig = Rig::new("TimeSortedSched", "STOP true", 2, 1);
    rig.feed(0, &stamped(&[1]));
    assert_eq!(rig.pull(0, 8).len(), 1);
    assert!(rig.pull(0, 8).is_empty());
    rig.advance(99 * MS);
    assert!(rig.pull(0, 8).is_empty());
    rig.feed(1, &stamped(&[2]));
    assert_eq!(rig.pull(0, 8).len(), 1);
    for (passed_ns, stopped) in [(0, false), (99 * MS, false), (MS, true)] {
        rig.advance(passed_ns);
        assert!(rig.pull(0, 8).is_empty());
        assert_eq!(rig.host().stopped, stopped);
    }
    // What it holds when a run ends is accounted for.
    let mut rig = Rig::new("TimeSortedSched", "BUFFER 4", 1, 1);
    rig.feed(0, &stamped(&[1, 2, 3]));
    assert_eq!(rig.pull(0, 1).len(), 1);
}

#[test]
fn a_timed_sink_takes_a_packet_now_and_then() {
    let mut rig = Rig::new("TimedSink", "0.01", 1, 0);
    rig.feed(0, &packets(0..60));
    assert!(rig.task().1.is_empty());
    rig.advance(10 * MS);
    assert_eq!((rig.task().1.len(), rig.task().1.len()), (1, 0));
    rig.advance(35 * MS);
    assert_eq!(rig.task().1.len(), 3);
    rig.advance(5 * MS);
    assert_eq!(rig.task().1.len(), 1);
    assert_eq!(rig.read("interval"), "10ms");
    rig.write("interval", "1").unwrap();
    assert!(rig.write("interval", "0").is_err());
    assert_eq!(Rig::try_new("TimedSink", "0", 1, 0).err().unwrap().lines().count(), 1);
    assert_eq!(Rig::new("TimedSink", "", 1, 0).read("interval"), "500ms");
}

#[test]
fn splitters_part_traffic_at_a_rate() {
    use crate::testing::{Exit, dropped};
    let count =
        |out: Vec<crate::testing::Out>, exit: &Exit| out.iter().filter(|out| out.exit == *exit).count();
    let frames = |len: usize| vec![TestPacket::frame(&vec![0; len]); 40];
    let mut rig = Rig::new("RatedSplitter", "1000, BURST_SIZE 5", 1, 2);
    assert_eq!(count(rig.push(0, &frames(60)), &Exit::Port(0)), 5);
    rig.advance(3 * MS);
    assert_eq!(count(rig.push(0, &frames(60)), &Exit::Port(0)), 3);
    rig.write("rate", "10").unwrap();
    assert_eq!(rig.read("rate"), "10");
    let mut rig = Rig::new("RatedSplitter", "1000", 1, 1);
    rig.advance(SECOND);
    assert_eq!(count(rig.push(0, &frames(60)), &dropped("above-rate")), 20);

    // The numbers of Click's own test, in 10 s of 20 packets a second, of 100 bytes.
    for (config, every_ms, passed) in [
        ("RATE 200Bps", 50, 20),
        ("RATE 200Bps, BURST_BYTES 5000", 50, 70),
        ("RATE 200Bps, BURST_DURATION 25", 50, 70),
        ("RATE 10000Bps, BURST_BYTES 100", 5, 1001),
    ] {
        let mut rig = Rig::new("BandwidthRatedSplitter", config, 1, 2);
        let mut through = 0;
        for _ in 0..10_000 / every_ms {
            through += count(rig.push(0, &[TestPacket::frame(&[0; 100])]), &Exit::Port(0));
            rig.advance(every_ms * MS);
        }
        assert_eq!(through, passed, "{config}");
    }
}

#[test]
fn a_round_robin_unqueue_pushes_out_of_the_output_of_the_input() {
    let mut rig = Rig::new("RoundRobinUnqueue", "2", 3, 3);
    rig.feed(0, &packets(0..5));
    rig.feed(2, &packets(10..13));
    let mut turns = vec![];
    while let (Progress::Worked, out) = rig.task() {
        let exits: Vec<_> = out.iter().map(|out| out.exit.clone()).collect();
        turns.push((exits[0].clone(), numbers(out.iter().map(|out| &out.packet))));
        assert!(exits.iter().all(|exit| *exit == exits[0]));
    }
    let expected = [(0, vec![0, 1]), (2, vec![10, 11]), (0, vec![2, 3]), (2, vec![12]), (0, vec![4])];
    assert_eq!(turns, expected.map(|(port, numbers)| (Exit::Port(port), numbers)));
    assert_eq!(rig.read("packets"), "8 packets");
    let mut rig = Rig::new("RoundRobinUnqueue", "0", 1, 1);
    rig.feed(0, &packets(0..100));
    assert_eq!(rig.task().1.len(), 100);
    assert!(Rig::try_new("RoundRobinUnqueue", "-1", 1, 1).is_err());
}
