//! Random schemas and rules of every kind.

use proptest::prelude::*;

use super::super::generate::{Profile, filters};
use super::super::{Limits, Rule, Schema};
use super::{assert_same, probes};
use crate::Random;

/// How the rules of one set are drawn in one dimension.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Any,
    Prefix,
    Range,
    Exact,
    /// Exact values out of very few.
    Few,
    /// Ranges that start low and end high: each overlaps all others.
    Nested,
    /// Prefixes out of few networks, with hosts in them.
    Clustered,
    Mixed,
}

const KINDS: [Kind; 8] = [
    Kind::Any,
    Kind::Prefix,
    Kind::Range,
    Kind::Exact,
    Kind::Few,
    Kind::Nested,
    Kind::Clustered,
    Kind::Mixed,
];

fn draw(random: &mut Random, schema: &Schema, rule: Rule, dim: usize, kind: Kind) -> Rule {
    let (max, bits) = (schema.max(dim), schema.bits(dim));
    let value = random.within(0, max);
    let drawn = match kind {
        Kind::Any => Ok(rule),
        Kind::Prefix => rule.prefix(schema, dim, value, random.within(0, bits.into()) as u8),
        Kind::Range => {
            let other = random.within(0, max);
            rule.range(schema, dim, value.min(other), value.max(other))
        }
        Kind::Exact => rule.range(schema, dim, value, value),
        Kind::Few => rule.range(schema, dim, value % 3 % (max.max(1)), value % 3 % (max.max(1))),
        Kind::Nested => {
            let half = max / 2;
            rule.range(schema, dim, random.within(0, half), random.within(half, max))
        }
        Kind::Clustered => {
            let network = (value % 5).wrapping_mul(0x1357_9bdf) & max & !0xf;
            let len = [bits, bits, bits.saturating_sub(4), bits / 2][random.below(4) as usize % 4];
            rule.prefix(schema, dim, network | (value >> 8 & 0xf & max), len)
        }
        Kind::Mixed => {
            let kind = KINDS[random.below(7) as usize % 7];
            return draw(random, schema, rule, dim, kind);
        }
    };
    drawn.expect("drawn inside the schema")
}

fn rule_set(widths: &[u8], kinds: &[Kind], count: usize, seed: u64) -> (Schema, Vec<Rule>) {
    let schema = Schema::new(widths).expect("widths are proper");
    let mut random = Random::new(seed);
    let rules = (0..count)
        .map(|_| {
            (0..schema.dims())
                .fold(Rule::any(&schema), |rule, dim| draw(&mut random, &schema, rule, dim, kinds[dim]))
        })
        .collect();
    (schema, rules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn same_as_linear_scan(
        (widths, kinds) in (1usize..=8).prop_flat_map(|dims| (
            prop::collection::vec(1u8..=32, dims),
            prop::collection::vec(prop::sample::select(&KINDS[..]), dims),
        )),
        count in prop_oneof![0usize..=40, 33usize..=400],
        seed: u64,
    ) {
        let (schema, rules) = rule_set(&widths, &kinds, count, seed);
        assert_same(&schema, &rules, Limits::default(), &probes(&schema, &rules, 300, seed ^ 1));
    }

    #[test]
    fn same_as_linear_scan_with_little_memory(
        kinds in prop::collection::vec(prop::sample::select(&KINDS[..]), 4),
        count in 33usize..=300,
        spare in 200usize..=40_000,
        seed: u64,
    ) {
        let (schema, rules) = rule_set(&[32, 32, 16, 8], &kinds, count, seed);
        let limits = Limits { max_bytes: count * 64 + spare, ..Limits::default() };
        assert_same(&schema, &rules, limits, &probes(&schema, &rules, 150, seed ^ 1));
    }
}

#[test]
fn same_as_linear_scan_on_made_up_filters() {
    let schema = Schema::ipv4_five_tuple();
    for profile in [Profile::Acl, Profile::Firewall, Profile::Chain] {
        for (count, seed) in [(33, 1), (250, 2), (2_000, 3)] {
            let rules: Vec<Rule> = filters(profile, count, seed)
                .iter()
                .map(|filter| filter.rule().expect("filters are proper"))
                .collect();
            assert_same(&schema, &rules, Limits::default(), &probes(&schema, &rules, 2_000, 9));
        }
    }
}
