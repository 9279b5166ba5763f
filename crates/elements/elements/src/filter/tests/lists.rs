//! Long lists: boxes, tables, and what stands between them.

use super::{expr, headers, packets};
use crate::filter::acl::{Acl, AclBuilder, AclTable, LIMITS};
use crate::filter::boxes::{Boxer, NO_PORTS, SIDES};
use crate::filter::classbench::configuration;
use crate::filter::expr::{Expr, Headers};
use crate::testing::{Exit, Rig, TestPacket};
use ir::Table;
use proptest::prelude::*;
use std::sync::Arc;
use table::acl::classbench::{Filter, parse_filters, parse_trace};
use table::acl::generate::{Profile, filters, headers as made_headers};
use table::acl::{Rule, Schema, first_match};

/// What the sides of a box are for a packet, by the packet's bytes.
fn sides(headers: &Headers<'_>, boxer: &Boxer) -> [u64; SIDES] {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte));
    let net = headers.net;
    let ports = number(&net[6..8]) & 0x1fff == 0 && headers.trans.len() >= 4;
    let (sport, dport) = match ports {
        true => (number(&headers.trans[..2]), number(&headers.trans[2..4])),
        false => (NO_PORTS, 0),
    };
    let bit = |at: usize| {
        let test = boxer.tests.get(at);
        u64::from(test.is_some_and(|test| Expr::Test(*test).matches(headers)))
    };
    [number(&net[12..16]), number(&net[16..20]), sport, dport, u64::from(net[9]), bit(0), bit(1), bit(2)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn boxes_hold_the_packets_that_match(expr in expr(), seed in any::<u64>()) {
        let mut boxer = Boxer::default();
        let Some(boxes) = boxer.boxes(&expr) else { return Ok(()) };
        for packet in packets(seed, 48) {
            let headers = headers(&packet);
            if headers.net.len() < 20 {
                continue;
            }
            let sides = sides(&headers, &boxer);
            let inside = boxes.iter().any(|cuboid| cuboid.contains(sides));
            prop_assert_eq!(inside, expr.matches(&headers), "{}", expr);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn long_lists_decide_as_their_rules_say(
        rules in proptest::collection::vec(expr(), 33..90),
        seed in any::<u64>(),
    ) {
        super::lowering::check(&rules, &packets(seed, 128));
    }
}

#[test]
fn runs_of_boxes_become_tables_and_others_stay_between() {
    let run =
        |from: usize| (0..20).map(move |at| format!("allow src 10.0.0.{} && dst port {}", from + at, at));
    let odd = ["deny ip ttl 1", "deny ip id 7", "deny ip tos 9", "deny ip hl 6", "1 ip len 60"];
    let odd: Vec<String> = odd.iter().map(|rule| rule.to_string()).collect();
    let rules: Vec<String> = run(0).chain(odd).chain(run(100)).chain(["deny all".to_string()]).collect();
    let mut rig = Rig::new("IPFilter", &rules.join(","), 1, 2);
    let program = rig.read("steps");
    assert_eq!(program.matches("table of ").count(), 2, "{program}");
    assert!(program.ends_with("all->[deny]"), "{program}");
}

#[test]
fn rules_of_any_size_are_lowered_to_bounded_programs() {
    let many = |test: &str, count: u32| {
        let values: Vec<String> = (0..count).map(|value| format!("{test} {}", value * 7 % 65_536)).collect();
        values.join(" or ")
    };
    let ports = format!("allow {}", many("src port", 3_000));
    let mut rig = Rig::new("IPFilter", &ports, 1, 1);
    let lines = rig.read("steps").lines().count();
    assert!(lines < 3_010, "{lines} lines for 3000 tests");
    assert_eq!(rig.push_one(0, &packet([1, 2, 2_999 * 7, 4, 6])).exit, Exit::Port(0));
    assert_eq!(rig.push_one(0, &packet([1, 2, 1, 4, 6])).exit, Exit::Dropped("no-match".into()));
    // Rules that are none for a table.
    let odd: Vec<String> = (0..1_000).map(|at| format!("deny ip id {at} and ip ttl {}", at % 251)).collect();
    let mut rig = Rig::new("IPFilter", &format!("{}, allow all", odd.join(",")), 1, 1);
    let lines = rig.read("steps").lines().count();
    assert!(lines < 2_010, "{lines} lines for 2000 tests");
    assert_eq!(rig.push_one(0, &packet([1, 2, 3, 4, 6])).exit, Exit::Port(0));
}

/// The packet of a five-tuple.
fn packet([src, dst, sport, dport, proto]: [u32; 5]) -> TestPacket {
    let mut bytes = vec![0; 40];
    bytes[0] = 0x45;
    bytes[3] = 40;
    bytes[8..10].copy_from_slice(&[64, proto as u8]);
    bytes[12..16].copy_from_slice(&src.to_be_bytes());
    bytes[16..20].copy_from_slice(&dst.to_be_bytes());
    bytes[20..22].copy_from_slice(&(sport as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&(dport as u16).to_be_bytes());
    TestPacket::ip(&bytes)
}

/// Holds an `IPFilter` of a filter set to a linear scan over the filters.
fn check_set(set: &[Filter], keys: &[[u32; 5]]) {
    let rules: Vec<Rule> = set.iter().map(|filter| filter.rule().expect("a rule")).collect();
    let action = |at: usize| ["allow", "1", "deny"][at % 3];
    let mut rig = Rig::new("IPFilter", &configuration(set, action), 1, 2);
    assert_eq!(rig.read("steps").matches("table of ").count(), 1, "one table for the whole set");
    let packets: Vec<TestPacket> = keys.iter().map(|key| packet(*key)).collect();
    for (key, out) in keys.iter().zip(rig.push(0, &packets)) {
        let wanted = match first_match(&rules, key) {
            table::acl::MISS => Exit::Dropped("no-match".into()),
            rule if rule % 3 == 2 => Exit::Dropped("denied".into()),
            rule => Exit::Port(rule as usize % 3),
        };
        assert_eq!(out.exit, wanted, "{key:?}");
    }
}

#[test]
fn made_up_sets_are_classified_as_a_linear_scan_does() {
    for (profile, count) in [(Profile::Acl, 40), (Profile::Firewall, 150), (Profile::Chain, 700)] {
        let mut set = filters(profile, count, 3);
        // Ports are those of TCP and UDP; ClassBench knows filters that name ports of others.
        set.retain(|filter| {
            matches!(filter.proto, (6 | 17, 0xff))
                || (filter.sport, filter.dport) == ((0, 0xffff), (0, 0xffff))
        });
        let schema = Schema::ipv4_five_tuple();
        let rules: Vec<Rule> = set.iter().map(|filter| filter.rule().expect("a rule")).collect();
        let keys = made_headers(&schema, &rules, 400, 0.1, 4);
        check_set(&set, &keys.iter().map(|key| std::array::from_fn(|at| key[at])).collect::<Vec<_>>());
    }
}

#[test]
fn published_sets_are_classified_as_a_linear_scan_does() {
    for size in [251, 713, 8550] {
        let set = parse_filters(&testkit::data::text(&format!("acl/acl1_{size}.rules"))).unwrap();
        let trace = parse_trace(&testkit::data::text(&format!("acl/acl1_{size}.trace"))).unwrap();
        let step = trace.len().div_ceil(600);
        let keys: Vec<[u32; 5]> = trace.iter().step_by(step).map(|header| header.key).collect();
        check_set(&set, &keys);
    }
}

/// A table of rules that decide their own number modulo 3.
fn acl(rules: &[&str]) -> Acl {
    let mut builder = AclBuilder::default();
    for (at, rule) in rules.iter().enumerate() {
        assert!(builder.add(&super::read(rule).unwrap(), at as u32 % 3), "{rule}");
    }
    builder.build(LIMITS).unwrap()
}

#[test]
fn a_table_finds_records_of_decisions_and_nothing_else() {
    let acl = Arc::new(acl(&["src 10.0.0.1", "dst udp port 53", "tcp", "syn", "src 10.0.0.2"]));
    assert_eq!(acl.decisions().collect::<Vec<_>>(), [0, 1, 2]);
    let mut table = AclTable::new(acl);
    let decision =
        |table: &AclTable, key: [u64; 2]| table.lookup(&key).map(|record| table.record_load(record, 0, 4));
    assert_eq!(decision(&table, [0x0a00_0001_0000_0000, 17 << 32]), Some(0));
    assert_eq!(decision(&table, [0, 17 << 32 | 53]), Some(1));
    assert_eq!(decision(&table, [0, 17 << 32 | 53 << 16]), None);
    assert_eq!(decision(&table, [0, 17 << 32 | 1 << 40 | 53]), None);
    assert_eq!(decision(&table, [0, 6 << 32 | 1 << 40]), Some(2));
    assert_eq!(decision(&table, [0, 1 << 41]), Some(0));
    assert_eq!(table.lookup(&[0]), None);
    assert_eq!(table.create(&[0, 0], &[], 0), ir::Created::Refused);
    assert_eq!((table.record_load(0, 0, 8), table.record_load(u64::MAX, 7, 1)), (0, 0));
}

#[test]
fn more_rules_than_the_memory_holds_are_refused() {
    // A rule takes 64 bytes at least.
    let rules = configuration(&filters(Profile::Acl, 40_000, 7), |_| "allow");
    let mistakes =
        Rig::try_new("IPFilter", &format!("TABLE_MEMORY 2, {rules} deny all"), 1, 1).err().unwrap();
    assert!(mistakes.contains("boxes of rules take 3 MiB at least, more than 2"), "{mistakes}");
    assert!(mistakes.contains("`TABLE_MEMORY 3`"), "{mistakes}");
    let fits = Rig::try_new("IPFilter", &format!("TABLE_MEMORY 4, TABLE_TIME 0.1, {rules} deny all"), 1, 1);
    assert!(fits.is_ok(), "{:?}", fits.err());
}

#[test]
fn a_table_tells_what_it_takes() {
    let rules: Vec<String> = filters(Profile::Acl, 500, 3)
        .iter()
        .map(|filter| crate::filter::classbench::rule("", filter).trim().to_string())
        .collect();
    let table = acl(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    let size = AclTable::new(Arc::new(table)).size().expect("told");
    assert!(size.entries >= 400 && size.bytes >= size.entries * 64, "{size:?}");
    assert!(size.how.starts_with("trees: ") && size.how.contains("limits: 1500 ms, 64 MiB"), "{size:?}");
}
