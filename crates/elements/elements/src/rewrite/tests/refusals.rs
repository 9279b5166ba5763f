//! Full tables, ports that run out, and mappings in each other's way.

use super::{EXTERNAL, INSIDE, OTHER, REMOTE, SECOND_NS, expect, expect_drop, udp};
use crate::testing::{Exit, Rig, TestPacket};

#[test]
fn ports_run_out_for_one_remote_end_and_come_back() {
    let config = "pattern 203.0.113.1 1024-1025# - - 0 0, UDP_TIMEOUT 20";
    let mut rig = Rig::new("IPRewriter", config, 1, 1);
    for (host, port) in [(4000, 1024), (4001, 1025)] {
        expect(&rig.push_one(0, &udp(("10.0.0.5", host), REMOTE, b"")), 0, (EXTERNAL, port), REMOTE);
    }
    let third = udp(("10.0.0.5", 4002), REMOTE, b"");
    expect_drop(&rig.push_one(0, &third), "port-exhausted");
    expect_drop(&rig.push_one(0, &third), "port-exhausted");
    let elsewhere = ("198.51.100.9", 53);
    expect(&rig.push_one(0, &udp(("10.0.0.5", 4002), elsewhere, b"")), 0, (EXTERNAL, 1024), elsewhere);
    assert_eq!((rig.read("mapping_failures").as_str(), rig.read("nmappings").as_str()), ("2", "3"));
    for _ in 0..30 {
        rig.advance(SECOND_NS);
    }
    assert_eq!(rig.read("nmappings"), "0");
    expect(&rig.push_one(0, &third), 0, (EXTERNAL, 1025), REMOTE);
}

#[test]
fn a_large_range_is_used_to_its_last_port_and_refused_quickly_after() {
    for order in ["", "?", "#"] {
        let config = format!("pattern 203.0.113.1 2000-4999{order} - - 0 0, SEED 1, UDP_TIMEOUT 20");
        let mut rig = Rig::new("IPRewriter", &config, 1, 1);
        let flow = |n: u16| udp(("10.1.1.1", 5000 + n), REMOTE, b"");
        let packets: Vec<TestPacket> = (0..3000).map(flow).collect();
        let mut used: Vec<u16> = vec![];
        for packet in packets.iter().cycle() {
            let out = rig.push_one(0, packet);
            match out.exit {
                // While the bitmap of free ports is being built, a port may be missed.
                Exit::Dropped(reason) => assert_eq!(reason, "port-exhausted"),
                Exit::Port(_) => used.push(super::seen(&out.packet.bytes).1),
            }
            used.sort_unstable();
            used.dedup();
            if used.len() == 3000 {
                break;
            }
        }
        assert_eq!((used[0], used[2999]), (2000, 4999), "range with `{order}`");
        expect_drop(&rig.push_one(0, &flow(3001)), "port-exhausted");
        for _ in 0..40 {
            rig.advance(SECOND_NS);
        }
        assert_eq!(rig.read("nmappings"), "0");
        assert_eq!(rig.push_one(0, &flow(3001)).exit, Exit::Port(0));
    }
}

#[test]
fn a_full_table_pushes_out_who_ends_first_but_nobody_guaranteed() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 0, MAPPING_CAPACITY 2, UDP_GUARANTEE 5";
    let mut rig = Rig::new("IPRewriter", config, 1, 1);
    let flow = |n: u16| udp(("10.0.0.5", n), REMOTE, b"");
    rig.push_one(0, &flow(1));
    rig.advance(SECOND_NS);
    rig.push_one(0, &flow(2));
    rig.advance(SECOND_NS);
    expect_drop(&rig.push_one(0, &flow(3)), "table-full");
    rig.advance(5 * SECOND_NS);
    // The first is the oldest and goes; the second may stay. (The refused flow had its turn.)
    expect(&rig.push_one(0, &flow(3)), 0, (EXTERNAL, 1027), REMOTE);
    rig.advance(1);
    assert_eq!((rig.read("nmappings").as_str(), rig.read("evictions").as_str()), ("2", "1"));
    expect(&rig.push_one(0, &flow(2)), 0, (EXTERNAL, 1025), REMOTE);
    // Now both were just used.
    expect_drop(&rig.push_one(0, &flow(1)), "table-full");
    assert_eq!(rig.read("mapping_failures"), "2");
}

#[test]
fn a_burst_of_new_flows_survives_a_small_table() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 0, MAPPING_CAPACITY 10, UDP_GUARANTEE 0, SEED 2";
    let mut rig = Rig::new("IPRewriter", config, 1, 1);
    for round in 0..20 {
        let packets: Vec<TestPacket> =
            (0..64).map(|n| udp(("10.0.0.5", round * 64 + n + 1), REMOTE, b"")).collect();
        assert!(rig.push(0, &packets).iter().all(|out| out.exit == Exit::Port(0)));
        rig.advance(1_000_000);
        assert_eq!(rig.read("nmappings"), "10");
    }
}

#[test]
fn the_latest_of_two_mappings_with_one_reply_flow_gets_the_replies() {
    // A fixed source port: two hosts become the same outside, as in Click.
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 99 - - 0 0", 1, 1);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 99), REMOTE);
    expect(&rig.push_one(0, &udp(OTHER, REMOTE, b"")), 0, (EXTERNAL, 99), REMOTE);
    expect(&rig.push_one(0, &udp(REMOTE, (EXTERNAL, 99), b"")), 0, REMOTE, OTHER);
    rig.advance(1);
    assert_eq!(rig.read("nmappings"), "1");
    expect(&rig.push_one(0, &udp(REMOTE, (EXTERNAL, 99), b"")), 0, REMOTE, OTHER);
}

#[test]
fn a_mapping_in_the_way_of_replies_makes_way() {
    // The server spoke to the client first; then the client comes in through the port forwarding.
    let mut rig = Rig::new("IPRewriter", "keep 0 0, pattern - - 10.0.0.9 80 0 0", 2, 1);
    let (server, client) = (("10.0.0.9", 80), ("198.51.100.7", 777));
    rig.push_one(0, &udp(server, client, b""));
    let request = udp(client, (EXTERNAL, 80), b"");
    expect_drop(&rig.push_one(1, &request), "mapping-conflict");
    rig.advance(1);
    expect(&rig.push_one(1, &request), 0, client, server);
    expect(&rig.push_one(0, &udp(server, client, b"")), 0, (EXTERNAL, 80), client);
}

#[test]
fn later_packets_of_a_flow_that_is_its_own_reply_are_replies() {
    for class in ["IPRewriter", "IPAddrPairRewriter"] {
        let mut rig = Rig::new(class, "keep 0 1", 1, 2);
        let packet = udp(INSIDE, INSIDE, b"");
        assert_eq!(rig.push_one(0, &packet).exit, Exit::Port(0), "{class}");
        assert_eq!(rig.push_one(0, &packet).exit, Exit::Port(1), "{class}");
        rig.write("clear", "").unwrap();
        assert_eq!(rig.read("size"), "0", "{class}");
        assert_eq!(rig.push_one(0, &packet).exit, Exit::Port(0), "{class}");
    }
}
