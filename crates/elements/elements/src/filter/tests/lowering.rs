//! Expressions to machine code: the same decisions as the expressions' own meaning.

use super::{expr, headers, packets};
use crate::filter::expr::Expr;
use crate::filter::{chain, diagram, filter_plan::NO_MATCH, formula::Formula, graph::Graph, graph::To};
use crate::testing::{Exit, Rig, TestPacket};
use proptest::prelude::*;

/// What rules decide, by their meaning.
fn decide(rules: &[Expr], packet: &TestPacket) -> Exit {
    let headers = headers(packet);
    match rules.iter().position(|rule| rule.matches(&headers)) {
        Some(rule) if rule % 3 == 2 => Exit::Dropped("denied".into()),
        Some(rule) => Exit::Port(rule % 3),
        None => Exit::Dropped("no-match".into()),
    }
}

/// An `IPFilter` configuration of rules that go to output 0, to output 1, nowhere, and so on.
fn config(rules: &[Expr]) -> String {
    let actions = ["allow", "1", "drop"];
    let rules = rules.iter().enumerate().map(|(at, rule)| format!("{} {rule}", actions[at % 3]));
    rules.collect::<Vec<_>>().join(",\n")
}

pub(super) fn check(rules: &[Expr], packets: &[TestPacket]) {
    let config = config(rules);
    let mut rig = Rig::new("IPFilter", &config, 1, 2);
    for (packet, out) in packets.iter().zip(rig.push(0, packets)) {
        assert_eq!(out.exit, decide(rules, packet), "{config}\n{:02x?}", packet.bytes);
        assert_eq!(out.packet, *packet);
    }
}

/// What a graph decides for a packet, for the two ways to make one.
fn walk(graph: &Graph, packet: &TestPacket) -> u32 {
    use crate::filter::formula::Var;
    use packet::field::{Base, IP_FRAG};
    let headers = headers(packet);
    let of = |base| match base {
        Base::Net => headers.net,
        Base::Trans => headers.trans,
        _ => headers.mac,
    };
    let mut at = graph.root;
    loop {
        let node = match at {
            To::Leaf(decision) => return decision,
            To::Node(node) => &graph.nodes[node],
        };
        let value = match node.var {
            Var::Field(field) => field.read(of(field.base)).expect("the field is there"),
            Var::Reach(base, bytes) => {
                let first = base != Base::Trans || IP_FRAG.read(headers.net) == Some(0);
                u64::from(first && of(base).len() >= usize::from(bytes))
            }
        };
        at = node.spans().find(|(first, last, _)| (*first..=*last).contains(&value)).expect("an arm").2;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn machine_code_decides_as_the_expressions_say(
        rules in proptest::collection::vec(expr(), 1..6),
        seed in any::<u64>(),
    ) {
        check(&rules, &packets(seed, 192));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn diagrams_and_chains_decide_alike(
        rules in proptest::collection::vec(expr(), 1..8),
        seed in any::<u64>(),
    ) {
        let formulas: Vec<(Formula, u32)> =
            rules.iter().enumerate().map(|(at, rule)| (Formula::from(rule), at as u32)).collect();
        let chain = chain::chain(&formulas, NO_MATCH);
        let diagram = diagram::diagram(&formulas, NO_MATCH);
        for packet in packets(seed, 64) {
            if headers(&packet).net.len() < 20 {
                continue;
            }
            let matching = rules.iter().position(|rule| rule.matches(&headers(&packet)));
            let wanted = matching.map_or(NO_MATCH, |at| at as u32);
            prop_assert_eq!(walk(&chain, &packet), wanted);
            if let Ok(diagram) = &diagram {
                prop_assert_eq!(walk(diagram, &packet), wanted);
            }
        }
    }
}

/// Threading led the arm for TCP and UDP to where the other arm had led, and then both on from there.
#[test]
fn arms_of_a_chain_are_led_on_each_by_itself() {
    let proto = |values: &[u64]| {
        let set =
            ir::analysis::interval::IntervalSet::from_intervals(values.iter().map(|value| (*value, *value)));
        Formula::Atom(crate::filter::formula::Var::Field(packet::field::IP_PROTO), set)
    };
    let first = Formula::All(vec![proto(&[6, 17]), proto(&[1])]);
    let second = Formula::Any(vec![proto(&[6]), proto(&[6, 17])]);
    let chain = chain::chain(&[(first, 0), (second, 1)], NO_MATCH);
    for (proto, decision) in [(1, NO_MATCH), (6, 1), (17, 1), (47, NO_MATCH)] {
        let mut ip = [0; 20];
        (ip[0], ip[9]) = (0x45, proto);
        assert_eq!(walk(&chain, &TestPacket::ip(&ip)), decision, "protocol {proto}: {chain:?}");
    }
}
