//! Patterns, their ranges, mappers, and patterns with names.

use super::chain::Chain;
use super::{EXTERNAL, INSIDE, OTHER, REMOTE, expect, expect_drop, seen, udp};
use crate::testing::{Rig, TestPacket};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn the_source_port_is_kept_where_it_can_be() {
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 1024-65535 - - 0 0, SEED 1", 1, 1);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 4000), REMOTE);
    // The same port of another host is taken: a random one.
    let second = seen(&rig.push_one(0, &udp(OTHER, REMOTE, b"")).packet.bytes).1;
    assert!(second >= 1024 && second != 4000);
    // A port outside of the range: a random one.
    let low = seen(&rig.push_one(0, &udp(("10.0.0.5", 80), REMOTE, b"")).packet.bytes).1;
    assert!(low >= 1024);
}

#[test]
fn a_question_mark_always_chooses_at_random_and_a_seed_repeats_it() {
    let ports = |seed: u64| -> Vec<u16> {
        let config = format!("pattern 203.0.113.1 1024-65535? - - 0 0, SEED {seed}");
        let mut rig = Rig::new("IPRewriter", &config, 1, 1);
        let flows: Vec<TestPacket> = (0..40).map(|n| udp(("10.0.0.5", 5000 + n), REMOTE, b"")).collect();
        rig.push(0, &flows).iter().map(|out| seen(&out.packet.bytes).1).collect()
    };
    let (one, again, two) = (ports(1), ports(1), ports(2));
    assert_eq!(one, again);
    assert_ne!(one, two);
    assert!(one.iter().enumerate().filter(|(n, port)| **port == 5000 + *n as u16).count() < 3);
    assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 40);
}

#[test]
fn workers_share_a_range_without_overlap() {
    let mut used = BTreeMap::new();
    for worker in 0..3 {
        let napt = ("nat", "IPRewriter", "pattern 203.0.113.1 2000-2099? - - 0 0", 1, 1);
        let mut chain = Chain::try_on(worker, 3, &[napt]).unwrap();
        let share = if worker == 2 { 34 } else { 33 };
        for n in 0..share {
            let out = chain.push("nat", 0, &udp(("10.0.0.5", 3000 + n), REMOTE, b""));
            assert!(used.insert(seen(&out.packet.bytes).1, worker).is_none());
        }
        expect_drop(&chain.push("nat", 0, &udp(OTHER, REMOTE, b"")), "port-exhausted");
    }
    assert_eq!((used.len(), used.keys().next(), used.keys().last()), (100, Some(&2000), Some(&2099)));
    let mistakes = Chain::try_on(0, 3, &[("nat", "IPRewriter", "pattern 1.0.0.1 5-6 - - 0 0", 1, 1)]);
    assert!(mistakes.err().unwrap().contains("2 values are too few for 3 workers"));
}

#[test]
fn a_round_robin_mapper_spreads_flows() {
    let mut chain = Chain::new(&[
        ("nat", "IPRewriter", "balance, drop", 2, 3),
        ("balance", "RoundRobinIPMapper", "- - 10.9.0.1 80 0 2, - - 10.9.0.2 80 1 2", 0, 0),
    ]);
    let service = ("203.0.113.9", 8080);
    for n in 0..4u16 {
        let (port, server) = [(0, "10.9.0.1"), (1, "10.9.0.2")][usize::from(n % 2)];
        let client = ("198.51.100.7", 1000 + n);
        for _ in 0..2 {
            expect(&chain.push("nat", 0, &udp(client, service, b"")), port, client, (server, 80));
        }
        expect(&chain.push("nat", 1, &udp((server, 80), client, b"")), 2, service, client);
    }
    assert!(chain.warnings("nat").is_empty());
}

#[test]
fn replies_of_a_mapper_are_dropped_without_a_way_back_wherever_it_is_declared() {
    let nat = ("nat", "IPRewriter", "balance", 1, 1);
    let balance = ("balance", "RoundRobinIPMapper", "- - 10.9.0.1 80 0 1", 0, 0);
    for elements in [[nat, balance], [balance, nat]] {
        let mut chain = Chain::new(&elements);
        let (client, service) = (("198.51.100.7", 1000), ("203.0.113.9", 8080));
        expect(&chain.push("nat", 0, &udp(client, service, b"")), 0, client, ("10.9.0.1", 80));
        expect_drop(&chain.push("nat", 0, &udp(("10.9.0.1", 80), client, b"")), "no-such-output");
    }
}

#[test]
fn a_mapper_goes_on_where_a_pattern_has_no_port_left() {
    let mut chain = Chain::new(&[
        ("balance", "RoundRobinIPMapper", "1.0.0.1 9-9 - - 0 0, 1.0.0.2 1000-1003# - - 0 0", 0, 0),
        ("nat", "IPRewriter", "balance", 1, 1),
    ]);
    let mut sources = vec![];
    for n in 0..5 {
        let out = chain.push("nat", 0, &udp(("10.0.0.5", 4000 + n), REMOTE, b""));
        let (src, port, ..) = seen(&out.packet.bytes);
        sources.push((src, port));
    }
    // A range of one value is not watched over, as in Click: it is used again and again.
    assert_eq!(sources.iter().filter(|(src, _)| src == "1.0.0.1").count(), 3);
}

#[test]
fn a_hash_mapper_sends_a_source_to_one_place_and_mostly_keeps_it() {
    let place = |patterns: &'static str| -> Vec<String> {
        let mut chain = Chain::new(&[
            ("balance", "SourceIPHashMapper", patterns, 0, 0),
            ("nat", "IPRewriter", "balance", 1, 1),
        ]);
        (0..200u32)
            .map(|n| {
                let source = std::net::Ipv4Addr::from(0x0a00_0000 + n * 7).to_string();
                let source: &'static str = source.leak();
                let one = seen(&chain.push("nat", 0, &udp((source, 1), REMOTE, b"")).packet.bytes).2;
                let two = seen(&chain.push("nat", 0, &udp((source, 2), REMOTE, b"")).packet.bytes).2;
                assert_eq!(one, two);
                one
            })
            .collect()
    };
    let three = place("50 7, - - 10.9.0.1 - 0 0 1, - - 10.9.0.2 - 0 0 2, - - 10.9.0.3 - 0 0 3");
    let two = place("50 7, - - 10.9.0.1 - 0 0 1, - - 10.9.0.2 - 0 0 2");
    for server in ["10.9.0.1", "10.9.0.2", "10.9.0.3"] {
        let share = three.iter().filter(|place| *place == server).count();
        assert!((30..110).contains(&share), "{share} of 200 at {server}");
    }
    let moved = three.iter().zip(&two).filter(|(a, b)| *a != "10.9.0.3" && a != b).count();
    assert_eq!(moved, 0, "only who was at the server that went has to move");
}

#[test]
fn mappers_and_their_rewriters_report_mistakes() {
    let mistakes = |elements: &[_]| Chain::try_on(0, 1, elements).err().expect("mistakes");
    for (config, what) in [
        ("", "no patterns given"),
        ("- - 10.0.0.1 80", "bad forward port"),
        ("- 10.0.0.1 80 4 5 0 0", "a pattern is"),
        ("- - 10.0.0.1 80 0 x", "bad reply port"),
        ("web 0 0", "no such pattern `web`"),
    ] {
        let found = mistakes(&[("m", "RoundRobinIPMapper", config, 0, 0)]);
        assert!(found.contains(what), "{config}: {found}");
    }
    for (config, what) in [
        ("", "no hash seed given"),
        ("1 2", "no patterns given"),
        ("1, - - - - 0 0 1", "expected the number of nodes"),
        ("1 2, - - - - 0 0 x", "bad server ID"),
    ] {
        let found = mistakes(&[("m", "SourceIPHashMapper", config, 0, 0)]);
        assert!(found.contains(what), "{config}: {found}");
    }
    let found = mistakes(&[("x", "Counter", "", 1, 1), ("nat", "IPRewriter", "x", 1, 1)]);
    assert!(found.contains("`x` is no mapper but a Counter"), "{found}");
    let mut chain = Chain::new(&[
        ("nat", "IPRewriter", "m", 1, 1),
        ("m", "RoundRobinIPMapper", "- - 10.0.0.1 80 5 0", 0, 0),
    ]);
    assert!(chain.warnings("nat")[0].contains("port 5 is out of range") || chain.warnings("nat").is_empty());
}

#[test]
fn elements_that_share_a_named_pattern_share_its_ports() {
    for order in [[0, 1, 2], [1, 2, 0]] {
        let all = [
            ("p", "IPRewriterPatterns", "out 203.0.113.1 1024-1027# - -, other 1.2.3.4 - - -", 0, 0),
            ("a", "IPRewriter", "pattern out 0 0", 1, 1),
            ("b", "UDPRewriter", "pattern out 0 0", 1, 1),
        ];
        let mut chain = Chain::new(&order.map(|at| all[at]));
        let mut ports = BTreeSet::new();
        for n in 0..4 {
            let name = ["a", "b"][usize::from(n % 2 == 1)];
            let out = chain.push(name, 0, &udp(("10.0.0.5", 4000 + n), REMOTE, b""));
            assert!(ports.insert(seen(&out.packet.bytes).1), "no port twice");
        }
        for name in ["a", "b"] {
            expect_drop(&chain.push(name, 0, &udp(OTHER, REMOTE, b"")), "port-exhausted");
        }
        assert_eq!(chain.read("a", "patterns"), "203.0.113.1 1024-1027 - - [2]\n");
        for _ in 0..400 {
            chain.advance(1_000_000_000);
        }
        expect(&chain.push("a", 0, &udp(OTHER, REMOTE, b"")), 0, (EXTERNAL, 1024), REMOTE);
    }
}

#[test]
fn mistakes_in_named_patterns_are_found() {
    let mistakes = |config| {
        let patterns = [("p", "IPRewriterPatterns", config, 0, 0)];
        Chain::try_on(0, 1, &patterns).err().expect("mistakes")
    };
    assert!(mistakes("a 1.2.3.4 - - -, a 1.2.3.4 - - -").contains("pattern `a` is defined twice"));
    assert!(mistakes("a").contains("expected `NAME SADDR SPORT DADDR DPORT`"));
    assert!(mistakes("a 1.2.3.4 - - x").contains("bad destination port"));
    let mut chain = Chain::new(&[("nat", "IPRewriter", "pattern nobody 0 0", 1, 1)]);
    assert!(chain.warnings("nat")[0].contains("there is no pattern `nobody`"));
    expect_drop(&chain.push("nat", 0, &udp(INSIDE, REMOTE, b"")), "port-exhausted");
}

#[test]
fn rewriters_may_share_a_capacity() {
    let mut chain = Chain::new(&[
        ("a", "IPRewriter", "keep 0 0, MAPPING_CAPACITY 2", 1, 1),
        ("b", "IPRewriter", "keep 0 0, MAPPING_CAPACITY a", 1, 1),
    ]);
    for name in ["a", "b"] {
        chain.push(name, 0, &udp(INSIDE, REMOTE, b""));
    }
    expect_drop(&chain.push("b", 0, &udp(OTHER, REMOTE, b"")), "table-full");
    assert_eq!((chain.read("a", "size"), chain.read("b", "size")), ("2".into(), "2".into()));
    assert_eq!((chain.read("a", "capacity"), chain.read("b", "capacity")), ("2".into(), "2".into()));
    assert_eq!(chain.read("a", "nmappings"), "1");
}

#[test]
fn packets_usually_leave_by_the_outputs_of_their_input() {
    let usual = |config: &'static str, inputs| -> Vec<Vec<usize>> {
        let chain = Chain::new(&[
            ("nat", "IPRewriter", config, inputs, 4),
            ("balance", "RoundRobinIPMapper", "- - 10.9.0.1 80 0 2, - - 10.9.0.2 80 1 2", 0, 0),
        ]);
        let of = |input| chain.usual_outputs("nat", input).expect("it is known");
        (0..inputs).map(of).collect()
    };
    let pattern = "pattern 203.0.113.1 1024-65535 - - 0 1";
    // Replies come by the input that makes no mappings, ...
    assert_eq!(usual("pattern 203.0.113.1 1024-65535 - - 0 1, drop", 2), [vec![0], vec![1]]);
    assert_eq!(usual("keep 0 1, pass 3", 2), [vec![0], vec![1, 3]]);
    assert_eq!(usual("keep 0 1, keep 0 2, drop", 3), [vec![0], vec![0], vec![1, 2]]);
    assert_eq!(usual("balance, drop", 2), [vec![0, 1], vec![2, 2]]);
    // ... and by those from another interface: outside 1 here, with a service in a third network.
    let dmz = "pattern 203.0.113.1 1024-65535 - - 0 1, pattern - - 10.9.0.80 80 2 0, drop";
    assert_eq!(usual(dmz, 3), [vec![0, 0], vec![2, 1], vec![1, 0]]);
    // ... else by the other inputs, or by the only one.
    assert_eq!(usual("keep 0 1, pattern - - 10.9.0.1 - 1 0", 2), [vec![0, 0], vec![1, 1]]);
    assert_eq!(usual(pattern, 1), [vec![0, 1]]);
    // Handlers may give it patterns.
    let chain = Chain::new(&[("nat", "IPRewriter", "drop, drop", 2, 2)]);
    assert_eq!(chain.usual_outputs("nat", 0), None);
}
