use std::collections::{HashMap, HashSet};
use std::hash::Hasher;

use etherparse::{SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;

/// FNV-1a: a digest that is the same with every toolchain.
#[derive(Default)]
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
}

fn digest(spec: &TrafficSpec, count: usize) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    for (timestamp_ns, frame) in spec.frames().expect("valid").take(count) {
        hasher.write(&timestamp_ns.to_le_bytes());
        hasher.write(&frame);
    }
    hasher.finish()
}

fn busy_spec() -> TrafficSpec {
    toml::from_str(
        r#"
        seed = 42
        size = "data-centre"
        flows = 500
        order = "zipf:1.1"
        protocols = "tcp:80,udp:15,icmp:5"
        ipv6-percent = 30
        vlan = "200,100:3"
        tcp = "session:4"
        payload = "random"
        spacing = "poisson"
        "#,
    )
    .expect("valid specification")
}

/// If these values change, captures that users generate with the same seed change. Such a change must be
/// intended and named in the changelog.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(digest(&TrafficSpec::default(), 2_000), PLAIN_DIGEST);
    assert_eq!(digest(&busy_spec(), 2_000), BUSY_DIGEST);
    let other = TrafficSpec { seed: 2, ..TrafficSpec::default() };
    assert_ne!(digest(&other, 2_000), PLAIN_DIGEST);
}

const PLAIN_DIGEST: u64 = 11_849_847_769_289_695_633;
const BUSY_DIGEST: u64 = 11845920186247403286;

#[test]
fn sizes_do_not_move_flows() {
    let small = TrafficSpec { order: FlowOrder::Uniform, ..TrafficSpec::default() };
    let large = TrafficSpec { size: SizeMix::Imix, ..small.clone() };
    let flows = |spec: &TrafficSpec| {
        let frames = spec.frames().expect("valid").take(200);
        frames.map(|(_, frame)| frame[26..38].to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(flows(&small), flows(&large));
}

#[test]
fn round_robin_shows_every_flow_once_a_round() {
    let spec = TrafficSpec { flows: 300, ..TrafficSpec::default() };
    let set = spec.prepare(600).expect("valid");
    assert_eq!(set.count(), 600);
    assert_eq!(set.iter().map(<[u8]>::len).sum::<usize>(), 600 * 60);
    let key = |index: usize| set.get(index).expect("there")[26..38].to_vec();
    let round: HashSet<_> = (0..300).map(key).collect();
    assert_eq!(round.len(), 300);
    assert!((0..300).all(|index| key(index) == key(index + 300)));
    assert_eq!(set.iter().count(), 600);
    assert_eq!(set.get(600), None);
}

#[test]
fn sessions_open_carry_data_and_close() {
    let spec = TrafficSpec {
        size: SizeMix::fixed(200),
        flows: 3,
        protocols: "tcp".parse().expect("valid"),
        tcp: TcpFlags::Session { data_frames: 2 },
        ..TrafficSpec::default()
    };
    let mut seen: HashMap<u16, Vec<(String, u32, usize)>> = HashMap::new();
    for (_, frame) in spec.frames().expect("valid").take(18) {
        let read = SlicedPacket::from_ethernet(&frame).expect("reads");
        let Some(TransportSlice::Tcp(tcp)) = read.transport else { panic!("no TCP") };
        let flags = [(tcp.syn(), "S"), (tcp.fin(), "F"), (tcp.psh(), "P"), (tcp.ack(), "A")];
        let flags = flags.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
        let payload = tcp.payload().len();
        seen.entry(tcp.source_port()).or_default().push((flags, tcp.sequence_number(), payload));
    }
    assert_eq!(seen.len(), 3);
    for segments in seen.values() {
        let start = segments[0].1;
        // 196 bytes without FCS minus 54 of headers leave 142 of data.
        let expected =
            [("S", 0, 0), ("A", 1, 0), ("PA", 1, 142), ("PA", 143, 142), ("FA", 285, 0), ("S", 286, 0)];
        for (segment, (flags, offset, payload)) in segments.iter().zip(expected) {
            assert_eq!(*segment, (flags.to_owned(), start.wrapping_add(offset), payload));
        }
    }
}

#[test]
fn timestamps_keep_the_rate() {
    let even = TrafficSpec { rate_pps: 3, start_ns: 5, ..TrafficSpec::default() };
    let times: Vec<_> = even.frames().expect("valid").take(4).map(|(ns, _)| ns).collect();
    assert_eq!(times, [5, 333_333_338, 666_666_671, 1_000_000_005]);
    let poisson = TrafficSpec { rate_pps: 1_000, spacing: Spacing::Poisson, ..even };
    let times: Vec<_> = poisson.frames().expect("valid").take(10_001).map(|(ns, _)| ns).collect();
    assert!(times.is_sorted());
    let seconds = (times[10_000] - times[0]) as f64 / 1e9;
    assert!((seconds - 10.0).abs() < 0.5, "10,000 gaps of 1 ms took {seconds} s");
}

#[test]
fn sizes_below_the_headers_are_raised_and_counted() {
    let spec =
        TrafficSpec { ipv6_percent: 100, protocols: "tcp".parse().expect("valid"), ..TrafficSpec::default() };
    let mut frames = spec.frames().expect("valid");
    let mut summary = Summary::default();
    let mut bytes = Vec::new();
    for _ in 0..10 {
        let meta = frames.append_next(&mut bytes).expect("builds");
        summary.count(&meta);
    }
    assert_eq!(summary.raised, 10);
    assert_eq!(summary.min_median_max_bytes(), Some((74, 74, 74)));
    assert_eq!((summary.flows(), summary.bytes, summary.frames), (10, 740, 10));
    assert_eq!(summary.classes()[1], (65, 127, 10));
}

#[test]
fn contradictions_are_refused() {
    let broken = [
        "flows = 0",
        "flows = 200000000",
        "ipv6-percent = 101",
        "rate-pps = 0",
        "dscp = 64",
        "src = \"::1\"",
        "dst6 = \"10.0.0.1\"",
        "flows = 65536\nsrc = \"10.0.0.1\"\ndst = \"10.0.0.2\"\ndst-port = \"80\"",
        "[acl]\nrules = \"/nonexistent\"",
        "[acl]\nmiss-percent = 101",
    ];
    for text in broken {
        let spec: TrafficSpec = toml::from_str(text).expect("reads");
        assert!(spec.frames().is_err(), "{text} was accepted");
    }
    for text in ["sise = \"64\"", "size = \"0\"", "size = 64", "order = \"zipf:x\"", "fcs = \"x\""] {
        assert!(toml::from_str::<TrafficSpec>(text).is_err(), "{text} was read");
    }
}

#[test]
fn a_specification_survives_toml() {
    let spec = busy_spec();
    let text = toml::to_string(&spec).expect("prints");
    assert_eq!(toml::from_str::<TrafficSpec>(&text).expect("reads back"), spec);
}

#[test]
fn traces_come_in_order_with_misses_between() {
    let folder = tempfile::tempdir().expect("folder");
    let trace = folder.path().join("trace");
    let lines: Vec<_> =
        (0..10).map(|line| format!("{line} 2 3 {line} {}\n", [6, 17, 1, 47, 58][line % 5])).collect();
    std::fs::write(&trace, lines.concat()).expect("written");
    let mut spec = TrafficSpec { ..TrafficSpec::default() };
    spec.acl.trace = Some(trace);
    let hosts = |spec: &TrafficSpec| {
        let frames = spec.frames().expect("valid").take(20);
        frames.map(|(_, frame)| frame[29]).collect::<Vec<_>>()
    };
    let twice: Vec<u8> = (0..10).chain(0..10).collect();
    assert_eq!(hosts(&spec), twice);
    spec.acl.miss_percent = 50;
    let frames: Vec<_> = spec.frames().expect("valid").take(10).collect();
    let misses = frames.iter().filter(|(_, frame)| frame[26] == 198).count();
    assert_eq!(misses, 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_accepted_specification_makes_readable_frames(
        size in prop_oneof![
            Just("imix".to_owned()), Just("data-centre".to_owned()), (1u16..=9220).prop_map(|s| s.to_string()),
        ],
        no_fcs: bool,
        seed: u64,
        flows in 1u64..5_000,
        weights in (0u32..3, 0u32..3, 1u32..3),
        ipv6_percent in 0u8..=100,
        vlan in prop_oneof![Just(""), Just("7"), Just("200,100")],
        tcp in prop_oneof![Just("ack"), Just("syn"), Just("session"), Just("session:1")],
        order in prop_oneof![Just("round-robin"), Just("uniform"), Just("zipf:0.9")],
        payload in prop_oneof![Just("zero"), Just("random"), Just("counting"), Just("0xff")],
    ) {
        let spec = TrafficSpec {
            seed,
            size: size.parse().expect("valid"),
            fcs: if no_fcs { FcsCounting::NotCounted } else { FcsCounting::Counted },
            flows,
            order: order.parse().expect("valid"),
            protocols: ProtocolMix { tcp: weights.0, udp: weights.1, icmp: weights.2 },
            ipv6_percent,
            vlan: vlan.parse().expect("valid"),
            tcp: tcp.parse().expect("valid"),
            payload: payload.parse().expect("valid"),
            ..TrafficSpec::default()
        };
        let mut frames = spec.frames().expect("valid");
        let mut bytes = Vec::new();
        for _ in 0..20 {
            bytes.clear();
            let meta = frames.append_next(&mut bytes).expect("builds");
            prop_assert_eq!(meta.len_bytes, bytes.len());
            prop_assert!(meta.flow < flows);
            let read = SlicedPacket::from_ethernet(&bytes);
            prop_assert!(read.is_ok_and(|packet| packet.transport.is_some()));
        }
    }
}
