//! Endpoint-independent mapping, open filtering and hairpins (RFC 4787, RFC 5382).

use super::{EXTERNAL, INSIDE, OTHER, REMOTE, SECOND_NS, expect, expect_drop, udp};
use crate::testing::Rig;

const MAPPING: &str = "pattern 203.0.113.1 1024-1027# - - 0 1, drop, MAPPING ENDPOINT_INDEPENDENT, \
                       UDP_TIMEOUT 60";

#[test]
fn an_inside_endpoint_keeps_its_outside_endpoint_whoever_it_talks_to() {
    let mut rig = Rig::new("IPRewriter", MAPPING, 2, 2);
    for remote in [REMOTE, ("198.51.100.8", 53), ("198.51.100.8", 54)] {
        expect(&rig.push_one(0, &udp(INSIDE, remote, b"")), 0, (EXTERNAL, 1024), remote);
        expect(&rig.push_one(1, &udp(remote, (EXTERNAL, 1024), b"")), 1, remote, INSIDE);
    }
    // Another inside endpoint has another one, towards everybody.
    expect(&rig.push_one(0, &udp(OTHER, ("198.51.100.9", 1), b"")), 0, (EXTERNAL, 1025), ("198.51.100.9", 1));
    // Who was not talked to is not let in.
    expect_drop(&rig.push_one(1, &udp(("192.0.2.1", 9), (EXTERNAL, 1024), b"")), "no-mapping");
}

#[test]
fn an_outside_endpoint_is_free_again_when_its_last_mapping_went() {
    let mut rig = Rig::new("IPRewriter", MAPPING, 2, 2);
    for host in 0..4u16 {
        rig.push_one(0, &udp(("10.0.0.5", 5000 + host), REMOTE, b""));
    }
    rig.push_one(0, &udp(("10.0.0.5", 5000), ("198.51.100.8", 53), b""));
    expect_drop(&rig.push_one(0, &udp(OTHER, ("192.0.2.9", 9), b"")), "port-exhausted");
    for _ in 0..10 {
        rig.advance(8 * SECOND_NS);
        // One of the first endpoint's two mappings stays in use.
        expect(
            &rig.push_one(0, &udp(("10.0.0.5", 5000), ("198.51.100.8", 53), b"")),
            0,
            (EXTERNAL, 1024),
            ("198.51.100.8", 53),
        );
    }
    assert_eq!(rig.read("nmappings"), "1");
    expect(&rig.push_one(0, &udp(OTHER, REMOTE, b"")), 0, (EXTERNAL, 1025), REMOTE);
}

#[test]
fn open_filtering_lets_anybody_in_while_the_endpoint_lives() {
    let config = format!("{MAPPING}, FILTERING ENDPOINT_INDEPENDENT");
    let mut rig = Rig::new("IPRewriter", &config, 2, 2);
    let stranger = ("192.0.2.1", 9);
    expect_drop(&rig.push_one(1, &udp(stranger, (EXTERNAL, 1024), b"")), "no-mapping");
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    expect(&rig.push_one(1, &udp(stranger, (EXTERNAL, 1024), b"")), 1, stranger, INSIDE);
    expect(&rig.push_one(0, &udp(INSIDE, stranger, b"")), 0, (EXTERNAL, 1024), stranger);
    expect_drop(&rig.push_one(1, &udp(stranger, (EXTERNAL, 1025), b"")), "no-mapping");
    assert!(rig.read("udp_table").lines().count() == 4);
    for _ in 0..20 {
        rig.advance(5 * SECOND_NS);
    }
    assert_eq!(rig.read("size"), "0");
    expect_drop(&rig.push_one(1, &udp(stranger, (EXTERNAL, 1024), b"")), "no-mapping");
}

#[test]
fn two_inside_hosts_meet_through_their_outside_endpoints() {
    let mut rig = Rig::new("IPRewriter", MAPPING, 2, 2);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 1024), REMOTE);
    expect(&rig.push_one(0, &udp(OTHER, REMOTE, b"")), 0, (EXTERNAL, 1025), REMOTE);
    // RFC 4787 REQ-9: the peer sees the external source address, and answers to it.
    let hairpin = udp(INSIDE, (EXTERNAL, 1025), b"hello");
    expect(&rig.push_one(0, &hairpin), 1, (EXTERNAL, 1024), OTHER);
    expect(&rig.push_one(0, &udp(OTHER, (EXTERNAL, 1024), b"hello!")), 1, (EXTERNAL, 1025), INSIDE);
    expect(&rig.push_one(0, &hairpin), 1, (EXTERNAL, 1024), OTHER);
    assert_eq!(rig.read("nmappings"), "3");
    rig.write("clear", "").unwrap();
    expect(&rig.push_one(0, &udp(OTHER, REMOTE, b"")), 0, (EXTERNAL, 1026), REMOTE);
}
