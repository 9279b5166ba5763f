//! Layers come off, and nothing else.

use super::*;
use crate::testing::{differential, random_frames};
use packet::anno;
use proptest::prelude::*;

const OUTER: [u8; 12] = [2, 9, 9, 9, 9, 2, 2, 9, 9, 9, 9, 1];

/// A frame with outer addresses, and what follows them.
fn outer(parts: &[&[u8]]) -> Vec<u8> {
    [&OUTER[..], &parts.concat()].concat()
}

/// An IPv4 header with a protocol around bytes, with options or without.
fn ip4(protocol: u8, options: usize, carried: &[u8]) -> Vec<u8> {
    let total = 20 + options + carried.len();
    let mut bytes = vec![
        0x45 + (options / 4) as u8,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        1,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
    ];
    bytes.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    bytes.extend(vec![1; options]);
    [bytes, carried.to_vec()].concat()
}

fn ip6(protocol: u8, carried: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, (carried.len() >> 8) as u8, carried.len() as u8, protocol, 64];
    bytes.extend([0x20; 32]);
    [bytes, carried.to_vec()].concat()
}

fn to_port(port: u16, carried: &[u8]) -> Vec<u8> {
    let length = 8 + carried.len();
    let mut bytes = vec![0xc0, 1, (port >> 8) as u8, port as u8, (length >> 8) as u8, length as u8, 0, 0];
    bytes.extend(carried);
    bytes
}

fn vxlan(inner: &[u8]) -> Vec<u8> {
    to_port(4789, &[&[8, 0, 0, 0, 0, 0, 42, 0][..], inner].concat())
}

fn geneve(options: usize, kind: [u8; 2], inner: &[u8]) -> Vec<u8> {
    let header = [(options / 4) as u8, 0, kind[0], kind[1], 0, 0, 7, 0];
    to_port(6081, &[&header[..], &vec![3; options], inner].concat())
}

/// The inner frame, and the same as a packet with the outer addresses.
fn inner() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let frame = udp([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), &[7; 20]);
    let packet = frame[14..].to_vec();
    let readdressed = outer(&[&[8, 0], &packet]);
    (frame, packet, readdressed)
}

/// What comes out of a frame that is peeled.
fn peeled(config: &str, frame: &[u8]) -> Vec<u8> {
    let out = Rig::new("Peel", config, 1, 1).push_one(0, &TestPacket::frame(frame));
    assert_eq!((out.exit, out.packet.mac), (Exit::Port(0), Some(0)), "{config}: {frame:02x?}");
    out.packet.bytes
}

fn refused(config: &str, frame: &[u8]) -> Exit {
    Rig::new("Peel", config, 1, 1).push_one(0, &TestPacket::frame(frame)).exit
}

#[test]
fn tags_come_off() {
    let (_, packet, plain) = inner();
    let one = outer(&[&[0x81, 0, 0x20, 5, 8, 0], &packet]);
    let two = outer(&[&[0x88, 0xa8, 0, 9, 0x81, 0, 0x20, 5, 8, 0], &packet]);
    assert_eq!(peeled("vlan", &one), plain);
    assert_eq!(peeled("vlan", &two), one);
    assert_eq!(peeled("qinq", &two), plain);
    assert_eq!(peeled("vlan, vlan", &two), plain);
    // One tag is no stack of two.
    assert_eq!(peeled("qinq", &one), one);
    assert_eq!(peeled("qinq, vlan", &one), plain);
    let out = Rig::new("Peel", "qinq", 1, 1).push_one(0, &TestPacket::frame(&two));
    assert_eq!(out.packet.anno(anno::VLAN_TCI), 0x2005);
}

#[test]
fn labels_come_off() {
    let (_, packet, plain) = inner();
    let labels = |count: usize| {
        let mut labels = vec![[0, 1, 0x20, 64]; count];
        labels.last_mut().expect("a label")[2] |= 1;
        outer(&[&[0x88, 0x47], &labels.concat(), &packet])
    };
    for count in 1..=8 {
        assert_eq!(peeled("mpls", &labels(count)), plain, "{count} labels");
    }
    assert_eq!(refused("mpls", &labels(9)), dropped("malformed"));
    let six = outer(&[&[0x88, 0x48, 0, 1, 0x21, 64], &ip6(17, &[0; 8])]);
    assert_eq!(peeled("mpls", &six), outer(&[&[0x86, 0xdd], &ip6(17, &[0; 8])]));
    let other = outer(&[&[0x88, 0x47, 0, 1, 0x21, 64], &[0; 30]]);
    assert_eq!(refused("mpls", &other), dropped("unknown-payload"));
}

#[test]
fn tunnels_come_off_whatever_carries_them() {
    let (frame, packet, plain) = inner();
    let gre = |flags: u8, kind: [u8; 2], more: usize, inner: &[u8]| {
        [&[flags, 0, kind[0], kind[1]][..], &vec![5; more], inner].concat()
    };
    let cases: Vec<(&str, u8, Vec<u8>, &[u8])> = vec![
        ("gre", 47, gre(0, [8, 0], 0, &packet), &plain),
        ("gre", 47, gre(0x80, [8, 0], 4, &packet), &plain),
        ("gre", 47, gre(0x20, [8, 0], 4, &packet), &plain),
        ("gre", 47, gre(0xb0, [8, 0], 12, &packet), &plain),
        ("gre", 47, gre(0x20, [0x65, 0x58], 4, &frame), &frame),
        ("vxlan", 17, vxlan(&frame), &frame),
        ("geneve", 17, geneve(0, [0x65, 0x58], &frame), &frame),
        ("geneve", 17, geneve(12, [0x65, 0x58], &frame), &frame),
        ("geneve", 17, geneve(252, [8, 0], &packet), &plain),
    ];
    for (layer, protocol, tunnel, inside) in cases {
        for (kind, ip) in [
            ([8, 0], ip4(protocol, 0, &tunnel)),
            ([8, 0], ip4(protocol, 24, &tunnel)),
            ([0x86, 0xdd], ip6(protocol, &tunnel)),
        ] {
            let whole = outer(&[&kind, &ip]);
            assert_eq!(peeled(layer, &whole), inside, "{layer} {tunnel:02x?}");
            // Behind a tag it is not outermost; without the tag it is.
            let tagged = outer(&[&[0x81, 0, 0, 1], &kind, &ip]);
            assert_eq!(peeled(layer, &tagged), tagged);
            assert_eq!(peeled(&format!("vlan, {layer}"), &tagged), inside);
            assert_eq!(refused(&format!("{layer}, STRICT true"), &tagged), dropped("no-layer"));
            // Cut off anywhere, it is dropped for a reason; what is no tunnel yet passes.
            let mut rig = Rig::new("Peel", layer, 1, 1);
            for len in 0..whole.len() {
                let out = rig.push_one(0, &TestPacket::frame(&whole[..len]));
                let fixed = if kind == [8, 0] { 34 } else { 54 };
                let expected = if len < fixed { Exit::Port(0) } else { dropped("truncated") };
                assert_eq!(out.exit, expected, "{layer}, {len} bytes");
            }
        }
    }
}

#[test]
fn layers_come_off_in_the_order_written() {
    let (frame, ..) = inner();
    let nested = outer(&[&[0x81, 0, 0, 5, 8, 0], &ip4(17, 0, &vxlan(&frame))]);
    assert_eq!(peeled("vlan, vxlan", &nested), frame);
    assert_eq!(peeled("vxlan, vlan", &nested), outer(&[&[8, 0], &ip4(17, 0, &vxlan(&frame))]));
    let deep = outer(&[&[8, 0], &ip4(17, 0, &vxlan(&nested))]);
    let mut rig = Rig::new("Peel", "vxlan, vlan, vxlan", 1, 1);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&deep)).packet.bytes, frame);
    assert_eq!(rig.read("peeled"), "vxlan 1\nvlan 1\nvxlan 1");
    assert_eq!(rig.push_one(0, &TestPacket::frame(&frame)).packet.bytes, frame);
    assert_eq!(rig.read("peeled"), "vxlan 1\nvlan 1\nvxlan 1");
}

#[test]
fn what_contradicts_itself_is_dropped() {
    let (frame, packet, _) = inner();
    let at = |bytes: &[u8], place: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] = value;
        bytes
    };
    let tunnel = outer(&[&[8, 0], &ip4(17, 0, &vxlan(&frame))]);
    let (malformed, fragment) = (|| dropped("malformed"), || dropped("fragment"));
    assert_eq!(refused("vxlan", &at(&tunnel, 14, 0x44)), malformed());
    assert_eq!(refused("vxlan", &at(&tunnel, 14, 0x65)), malformed());
    assert_eq!(refused("vxlan", &at(&tunnel, 39, 255)), malformed(), "the length of UDP");
    assert_eq!(refused("vxlan", &at(&tunnel, 39, 15)), malformed(), "the length of UDP");
    assert_eq!(refused("vxlan", &at(&tunnel, 42, 0)), malformed(), "no network identifier");
    assert_eq!(refused("vxlan", &at(&tunnel, 17, 10)), malformed(), "the length of IP");
    assert_eq!(refused("vxlan", &at(&tunnel, 16, 9)), dropped("truncated"));
    assert_eq!(refused("vxlan", &at(&tunnel, 20, 0x20)), fragment());
    // Nobody sees of a later fragment where it goes.
    assert_eq!(refused("vxlan", &at(&tunnel, 21, 1)), Exit::Port(0));
    let short = outer(&[&[8, 0], &ip4(17, 0, &vxlan(&frame[..13])), &[0; 9]]);
    assert_eq!(refused("vxlan", &short), malformed());
    let gre = outer(&[&[8, 0], &ip4(47, 0, &[&[0, 0, 8, 0][..], &packet].concat())]);
    assert_eq!(refused("gre", &at(&gre, 35, 1)), malformed(), "another version");
    assert_eq!(refused("gre", &at(&gre, 34, 0x40)), malformed(), "source routes");
    assert_eq!(refused("gre", &at(&gre, 21, 1)), fragment());
    let little = outer(&[&[8, 0], &ip4(47, 0, &[0xb0, 0, 8, 0, 0, 0]), &[0; 30]]);
    assert_eq!(refused("gre", &little), malformed(), "shorter than its flags say");
    let geneve = outer(&[&[8, 0], &ip4(17, 0, &geneve(0, [8, 0], &packet))]);
    assert_eq!(refused("geneve", &at(&geneve, 42, 0x40)), malformed(), "another version");
    assert_eq!(refused("geneve", &at(&geneve, 42, 63)), malformed(), "more options than bytes");
    for config in ["", "vlann", "vlan, vlan, vlan, vlan, vlan, vlan, vlan, vlan, vlan", "ip"] {
        assert!(!mistakes("Peel", config, 1).is_empty(), "{config}");
    }
    assert!(mistakes("Peel", "vlann", 1).contains("did you mean `vlan`?"));
}

#[test]
fn frames_that_lack_a_layer_may_leave_elsewhere() {
    let (_, packet, plain) = inner();
    let mut rig = Rig::new("Peel", "vlan, STRICT true", 1, 2);
    let tagged = outer(&[&[0x81, 0, 0, 1, 8, 0], &packet]);
    let out = rig.push(0, &[TestPacket::frame(&plain), TestPacket::frame(&tagged)]);
    assert_eq!((&out[0].exit, &out[0].packet.bytes), (&Exit::Port(1), &plain));
    assert_eq!((&out[1].exit, &out[1].packet.bytes), (&Exit::Port(0), &plain));
}

#[test]
fn programs_agree_on_random_packets() {
    for config in [
        "vlan",
        "qinq, vlan",
        "mpls",
        "gre",
        "vxlan",
        "geneve, STRICT true",
        "vlan, gre, vxlan, geneve, mpls",
    ] {
        differential("Peel", config, 1, 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Tunnels with any byte changed: evaluator and machine code do the same, and nothing panics.
    #[test]
    fn no_byte_of_a_tunnel_is_trusted(seed in any::<u64>(), place in 0usize..64, value in any::<u8>(), cut in 0usize..40) {
        let (frame, packet, _) = inner();
        let mut rig = Rig::new("Peel", "vlan, mpls, gre, vxlan, geneve", 1, 1);
        let noise = random_frames(seed, 4);
        let mut bytes = vec![];
        for inside in [&frame, &noise[0], &noise[1]] {
            bytes.push(outer(&[&[8, 0], &ip4(17, 4, &vxlan(inside))]));
            bytes.push(outer(&[&[8, 0], &ip4(17, 0, &geneve(8, [0x65, 0x58], inside))]));
            bytes.push(outer(&[&[0x86, 0xdd], &ip6(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1][..], inside].concat())]));
        }
        bytes.push(outer(&[&[0x88, 0x47, 0, 0, 0x10, 1, 0, 0, 0x11, 1], &packet]));
        let packets: Vec<TestPacket> = bytes
            .into_iter()
            .map(|mut bytes| {
                bytes.truncate(bytes.len() - cut);
                if let Some(byte) = bytes.get_mut(12 + place) {
                    *byte = value;
                }
                TestPacket::frame(&bytes)
            })
            .collect();
        prop_assert_eq!(rig.push(0, &packets).len(), packets.len());
    }
}
