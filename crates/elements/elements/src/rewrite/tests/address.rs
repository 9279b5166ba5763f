//! `IPAddrRewriter` and `IPAddrPairRewriter`.

use super::{ACK, INSIDE, OTHER, REMOTE, SECOND_NS, echo, expect, expect_drop, mistakes, seen, tcp, udp};
use crate::testing::{Exit, Rig, TestPacket};
use packet::anno;
use std::collections::BTreeSet;

#[test]
fn a_source_address_is_replaced_for_all_that_it_sends_and_gets() {
    let mut rig = Rig::new("IPAddrRewriter", "pattern 203.0.113.1-203.0.113.9# - 0 1, drop", 2, 2);
    for (inside, external) in [(INSIDE, "203.0.113.1"), (OTHER, "203.0.113.2")] {
        let out = rig.push_one(0, &udp(inside, REMOTE, b"x"));
        expect(&out, 0, (external, inside.1), REMOTE);
        assert_eq!(out.packet.anno(anno::DST_IP), 0, "only replies have it set");
        expect(
            &rig.push_one(0, &tcp(inside, ("192.0.2.1", 9), ACK, b"x")),
            0,
            (external, inside.1),
            ("192.0.2.1", 9),
        );
        // Anybody may send to the external address.
        let out = rig.push_one(1, &tcp(("192.0.2.2", 7), (external, 22), ACK, b""));
        expect(&out, 1, ("192.0.2.2", 7), (inside.0, 22));
        assert_ne!(out.packet.anno(anno::DST_IP), 0);
        let out = rig.push_one(1, &echo("192.0.2.2", external, 5, false, b"ping"));
        expect(&out, 1, ("192.0.2.2", 5), (inside.0, 5));
    }
    expect_drop(&rig.push_one(1, &udp(REMOTE, ("203.0.113.3", 1), b"")), "no-mapping");
    let table = rig.read("table");
    assert!(table.contains("10.0.0.5 => 203.0.113.1 [*0 1] i0 exp7200\n"), "{table}");
    assert!(table.contains("203.0.113.1 => 10.0.0.5 [0 *1] i0 exp7200\n"), "{table}");
}

#[test]
fn a_burst_finds_what_its_first_packets_made() {
    let mut rig = Rig::new("IPAddrRewriter", "pattern 203.0.113.1-203.0.113.9# - 0 1", 1, 2);
    let out = rig.push(
        0,
        &[
            udp(INSIDE, REMOTE, b""),
            udp(REMOTE, ("203.0.113.1", 4000), b""),
            udp(INSIDE, REMOTE, b""),
            udp(OTHER, ("203.0.113.1", 4000), b""),
        ],
    );
    expect(&out[0], 0, ("203.0.113.1", 4000), REMOTE);
    expect(&out[1], 1, REMOTE, INSIDE);
    expect(&out[2], 0, ("203.0.113.1", 4000), REMOTE);
    // Both addresses are known inside: the source comes first where it has a mapping.
    expect(&out[3], 1, OTHER, INSIDE);
    assert_eq!(rig.read("nmappings"), "1");
}

#[test]
fn a_prefix_leaves_out_its_ends_and_runs_out() {
    let mut rig = Rig::new("IPAddrRewriter", "pattern 203.0.113.8/29 - 0 0, SEED 1", 1, 1);
    assert_eq!(rig.read("patterns"), "203.0.113.9-203.0.113.14 -\n");
    let mut used = BTreeSet::new();
    for n in 1..=6u8 {
        let from: &'static str = format!("10.0.0.{n}").leak();
        let out = rig.push_one(0, &udp((from, 1), REMOTE, b""));
        used.insert(seen(&out.packet.bytes).0);
    }
    assert_eq!(used.len(), 6);
    assert!(used.iter().all(|address| address.starts_with("203.0.113.")));
    expect_drop(&rig.push_one(0, &udp(("10.0.0.7", 1), REMOTE, b"")), "port-exhausted");
    for _ in 0..730 {
        rig.advance(10 * SECOND_NS);
    }
    assert_eq!(rig.push_one(0, &udp(("10.0.0.7", 1), REMOTE, b"")).exit, Exit::Port(0));
}

#[test]
fn later_fragments_are_rewritten_without_their_payload_being_touched() {
    for (class, config) in
        [("IPAddrRewriter", "pattern 203.0.113.1 - 0 0"), ("IPAddrPairRewriter", "pattern 203.0.113.1 - 0 0")]
    {
        let mut rig = Rig::new(class, config, 1, 1);
        let mut later = udp(INSIDE, REMOTE, b"some payload");
        later.bytes[7] = 3;
        let out = rig.push_one(0, &later);
        assert_eq!(out.packet.bytes[20..], later.bytes[20..]);
        assert_eq!(out.packet.bytes[12..16], [203, 0, 113, 1]);
        // One word smaller by one in the sum of addresses and fragment offset: still right.
        let mut gre = udp(INSIDE, REMOTE, b"some payload");
        gre.bytes[9] = 47;
        let out = rig.push_one(0, &gre);
        assert_eq!(out.packet.bytes[20..], gre.bytes[20..]);
    }
}

#[test]
fn pairs_have_mappings_of_their_own() {
    let config = "pattern 203.0.113.1-203.0.113.2# 10.8.0.1 0 1, drop";
    let mut rig = Rig::new("IPAddrPairRewriter", config, 2, 2);
    expect(&rig.push_one(0, &tcp(INSIDE, REMOTE, ACK, b"x")), 0, ("203.0.113.1", 4000), ("10.8.0.1", 53));
    expect(&rig.push_one(0, &udp(OTHER, REMOTE, b"x")), 0, ("203.0.113.2", 4000), ("10.8.0.1", 53));
    // Same source, other destination: nothing is left towards 10.8.0.1.
    expect_drop(&rig.push_one(0, &udp(INSIDE, ("192.0.2.9", 5), b"")), "port-exhausted");
    let out = rig.push_one(1, &udp(("10.8.0.1", 53), ("203.0.113.2", 4000), b"y"));
    expect(&out, 1, REMOTE, OTHER);
    assert_eq!(out.packet.anno(anno::DST_IP), u64::from(u32::from_be_bytes([10, 0, 0, 6])));
    let table = rig.read("table");
    assert!(table.contains("(10.0.0.5, 198.51.100.7) => (203.0.113.1, 10.8.0.1) [*0 1] i0"), "{table}");
}

#[test]
fn patterns_with_ports_are_refused() {
    let found = mistakes("IPAddrRewriter", "pattern 1.0.0.1 5 - - 0 0", 1, 1);
    assert!(found[0].contains("IPAddrRewriter rewrites no ports"), "{found:?}");
    let found = mistakes("IPAddrRewriter", "pattern 1.0.0.1 2.0.0.1 0 0", 1, 1);
    assert!(found[0].contains("destination address must be `-`"), "{found:?}");
    let found = mistakes("IPAddrPairRewriter", "pattern 1.0.0.9-1.0.0.1 - 0 0, DST_ANNO true", 2, 1);
    assert!(found[0].contains("bad source address"), "{found:?}");
    assert!(
        mistakes("IPAddrPairRewriter", "pattern 1.0.0.0/0 - 0 0", 1, 1)[0].contains("bad source address")
    );
}

#[test]
fn packets_that_are_not_ipv4_are_dropped() {
    for class in ["IPAddrRewriter", "IPAddrPairRewriter"] {
        let mut rig = Rig::new(class, "keep 0 0", 1, 1);
        expect_drop(&rig.push_one(0, &TestPacket::ip(&[0x60; 40])), "no-ip-header");
        expect_drop(&rig.push_one(0, &TestPacket::frame(&[0; 60])), "no-ip-header");
    }
}
