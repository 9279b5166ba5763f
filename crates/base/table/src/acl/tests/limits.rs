//! The limits of a build, tested with rule sets that would exceed them, and the rule sets that it
//! refuses.

use std::time::Instant;

use super::super::generate::{Profile, filters};
use super::super::{AclError, Classifier, Limits, Rule, Schema};
use super::{assert_same, probes};
use crate::Random;

/// Every rule overlaps every other in every dimension: no cut separates any two.
fn overlapping(schema: &Schema, count: usize, seed: u64) -> Vec<Rule> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            (0..schema.dims()).fold(Rule::any(schema), |rule, dim| {
                let half = schema.max(dim) / 2;
                let (lo, hi) = (random.within(0, half), random.within(half, schema.max(dim)));
                rule.range(schema, dim, lo, hi).expect("dimension is there")
            })
        })
        .collect()
}

/// Slabs: each rule is narrow in one dimension and whole in all others.
fn slabs(schema: &Schema, count: usize) -> Vec<Rule> {
    (0..count)
        .map(|at| {
            let dim = at % schema.dims();
            let value = (at as u32).wrapping_mul(0x9e37_79b9) & schema.max(dim);
            Rule::any(schema).range(schema, dim, value, value).expect("dimension is there")
        })
        .collect()
}

#[test]
fn bytes_stay_below_the_limit_on_hostile_sets() {
    let schema = Schema::ipv4_five_tuple();
    for rules in [overlapping(&schema, 1_500, 1), slabs(&schema, 1_500)] {
        for max_bytes in [1_500 * 64 + 200, 200_000, 2 << 20, 64 << 20] {
            let limits = Limits { max_bytes, ..Limits::default() };
            assert_same(&schema, &rules, limits, &probes(&schema, &rules, 150, 4));
        }
    }
}

#[test]
fn rules_behind_one_that_matches_all_cost_nothing() {
    let schema = Schema::ipv4_five_tuple();
    let mut rules = slabs(&schema, 100);
    rules.push(Rule::any(&schema));
    let short = Classifier::build(&schema, &rules, Limits::default()).expect("builds");
    rules.extend(overlapping(&schema, 3_000, 7));
    let long = assert_same(&schema, &rules, Limits::default(), &probes(&schema, &rules, 300, 8));
    assert_eq!(long.shape().rows, short.shape().rows);
}

#[test]
fn bytes_are_counted_right_at_every_size() {
    // Small margins at sizes around whole blocks, where leaves change from rows to blocks.
    let schema = Schema::ipv4_five_tuple();
    for count in 33..120 {
        let rules = [slabs(&schema, count / 2), overlapping(&schema, count - count / 2, 3)].concat();
        for spare in [128, 200, 1_000, 5_000] {
            let max_bytes = count * 64 + spare;
            let limits = Limits { max_bytes, ..Limits::default() };
            let classifier = Classifier::build(&schema, &rules, limits).expect("builds");
            assert!(classifier.bytes() <= max_bytes, "{count} rules, {spare} bytes to spare");
        }
    }
}

#[test]
fn no_time_still_gives_a_right_classifier() {
    let schema = Schema::ipv4_five_tuple();
    let rules: Vec<Rule> = filters(Profile::Chain, 1_000, 5)
        .iter()
        .map(|filter| filter.rule().expect("filters are proper"))
        .collect();
    let limits = Limits { max_build_ms: 0, ..Limits::default() };
    let classifier = assert_same(&schema, &rules, limits, &probes(&schema, &rules, 400, 6));
    // One leaf, as long as the list up to its first rule that matches everything.
    assert_eq!(classifier.shape().leaves, 1);
    assert!(classifier.shape().longest_leaf > 900);
}

#[test]
fn building_ends_soon_after_its_time() {
    // A generous factor: this must detect an unbounded build (minutes), not a busy machine.
    let schema = Schema::new(&[32; 8]).expect("proper widths");
    for rules in [overlapping(&schema, 20_000, 2), slabs(&schema, 20_000)] {
        let limits = Limits { max_build_ms: 200, ..Limits::default() };
        let start = Instant::now();
        let classifier = Classifier::build(&schema, &rules, limits).expect("builds");
        let took_ms = start.elapsed().as_millis();
        assert!(took_ms < 10_000, "{took_ms} ms");
        assert!(classifier.bytes() <= limits.max_bytes);
    }
}

#[test]
fn refuses_what_it_cannot_hold() {
    let schema = Schema::ipv4_five_tuple();
    let rules = vec![Rule::any(&schema); 100];
    let limits = Limits { max_bytes: 6_399, ..Limits::default() };
    let refused = Classifier::build(&schema, &rules, limits);
    assert!(matches!(refused, Err(AclError::OutOfBytes { rules: 100, limit: 6_399, .. })));
    let refused = Classifier::build(&schema, &rules[..4], Limits { max_bytes: 60, ..limits });
    assert!(matches!(refused, Err(AclError::OutOfBytes { rules: 4, limit: 60, .. })));
}

#[test]
fn refuses_rules_that_contradict_the_schema() {
    let schema = Schema::ipv4_five_tuple();
    let any = Rule::any(&schema);
    let build = |rule: Rule| Classifier::build(&schema, &[any, rule], Limits::default()).err();
    let swapped = any.range(&schema, 3, 80, 79).expect("dimension 3 is there");
    assert_eq!(build(swapped), Some(AclError::EmptyInterval { rule: 1, dim: 3, lo: 80, hi: 79 }));
    let large = any.range(&schema, 4, 0, 256).expect("dimension 4 is there");
    assert_eq!(build(large), Some(AclError::TooLarge { rule: 1, dim: 4, hi: 256, bits: 8 }));
    assert_eq!(any.range(&schema, 5, 0, 0), Err(AclError::NoSuchDimension { dim: 5, dims: 5 }));
    assert_eq!(any.prefix(&schema, 2, 0, 17), Err(AclError::PrefixLength { dim: 2, len: 17, bits: 16 }));
    assert_eq!(any.masked(&schema, 4, 6, 0x0f), Err(AclError::MaskHoles { dim: 4, mask: 0x0f }));
    assert_eq!(any.masked(&schema, 4, 6, 0), Ok(any));
    assert_eq!(any.masked(&schema, 4, 6, 0xff), any.range(&schema, 4, 6, 6));
    assert_eq!(Schema::new(&[]), Err(AclError::Dimensions(0)));
    assert_eq!(Schema::new(&[8; 9]), Err(AclError::Dimensions(9)));
    assert_eq!(Schema::new(&[8, 33]), Err(AclError::Width { dim: 1, bits: 33 }));
    assert_eq!(Schema::new(&[0]), Err(AclError::Width { dim: 0, bits: 0 }));
}
