//! The classifier compared with the linear scan, on generated, hostile and real rule sets.

mod limits;
mod property;
mod real_sets;
mod text;

use super::generate::inside;
use super::{Classifier, Limits, MAX_DIMS, MISS, Rule, Schema, first_match};
use crate::Random;

/// Keys inside rules, next to their ends, and random ones, including the smallest and the largest.
fn probes(schema: &Schema, rules: &[Rule], count: usize, seed: u64) -> Vec<[u32; MAX_DIMS]> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let mut key = [0; MAX_DIMS];
            if let Some(rule) = rules.get(random.below(rules.len() as u64) as usize) {
                key = inside(&mut random, schema, rule);
            }
            for (dim, value) in key.iter_mut().enumerate().take(schema.dims()) {
                match random.below(12) {
                    0 => *value = value.wrapping_add(1) & schema.max(dim),
                    1 => *value = value.wrapping_sub(1) & schema.max(dim),
                    2 => *value = random.within(0, schema.max(dim)),
                    _ => {}
                }
            }
            key
        })
        .chain([[0; MAX_DIMS], std::array::from_fn(|dim| schema.max(dim))])
        .collect()
}

/// Every lookup function, with every kind of vector that the machine has, must agree with the linear
/// scan.
#[track_caller]
fn assert_same(schema: &Schema, rules: &[Rule], limits: Limits, keys: &[[u32; MAX_DIMS]]) -> Classifier {
    let wanted: Vec<u32> = keys.iter().map(|key| first_match(rules, &key[..schema.dims()])).collect();
    let mut classifier = Classifier::build(schema, rules, limits).expect("rules are proper");
    assert!(classifier.bytes() <= limits.max_bytes, "{} bytes", classifier.bytes());
    for bits in [0, 256, 512] {
        classifier = classifier.with_vector_bits(bits);
        for (key, &wanted) in keys.iter().zip(&wanted) {
            assert_eq!(classifier.classify(&key[..schema.dims()]), wanted, "one key, {bits}: {key:?}");
        }
        for stride in [schema.dims(), MAX_DIMS] {
            let flat: Vec<u32> = keys.iter().flat_map(|key| key[..stride].to_vec()).collect();
            // All packets except every seventh, in reverse order: the list need not be sorted.
            let list: Vec<u16> = (0..keys.len() as u16).rev().filter(|p| p % 7 != 3).collect();
            let mut out = vec![0xdead_beef; keys.len()];
            classifier.classify_batch(&flat, stride, &list, &mut out);
            for (packet, (&found, &wanted)) in out.iter().zip(&wanted).enumerate() {
                let wanted = if packet % 7 == 3 { 0xdead_beef } else { wanted };
                assert_eq!(found, wanted, "packet {packet}, {bits}, stride {stride}");
            }
        }
    }
    classifier
}

#[test]
fn no_rules_match_nothing() {
    let schema = Schema::ipv4_five_tuple();
    let classifier = assert_same(&schema, &[], Limits::default(), &probes(&schema, &[], 50, 1));
    assert_eq!(classifier.classify(&[1, 2, 3, 4, 5]), MISS);
}

#[test]
fn first_of_equal_rules_wins() {
    let schema = Schema::ipv4_five_tuple();
    for count in [1, 15, 16, 17, 31, 32, 33, 64, 500] {
        let rules = vec![Rule::any(&schema); count];
        let classifier = assert_same(&schema, &rules, Limits::default(), &probes(&schema, &rules, 80, 2));
        assert_eq!(classifier.classify(&[1, 2, 3, 4, 5]), 0);
    }
}

#[test]
fn zero_key_misses_in_a_part_filled_block() {
    // Unused slots of a block compare equal to an all-zero key.
    let schema = Schema::ipv4_five_tuple();
    let rule = Rule::any(&schema).range(&schema, 4, 6, 6).expect("dimension 4 is there");
    for count in [1, 15, 16, 17, 31] {
        let classifier = assert_same(&schema, &vec![rule; count], Limits::default(), &[[0; 8]]);
        assert_eq!(classifier.classify(&[0; 5]), MISS);
    }
}

#[test]
fn edges_of_the_value_range_are_inside() {
    let schema = Schema::new(&[32, 1]).expect("proper widths");
    let rules: Vec<Rule> = (0..100u32)
        .map(|at| {
            let top = u32::MAX - at;
            let rule = Rule::any(&schema).range(&schema, 0, top, top).expect("there");
            rule.range(&schema, 1, at & 1, 1).expect("there")
        })
        .chain([Rule::any(&schema).range(&schema, 0, 0, 0).expect("there")])
        .collect();
    let classifier = assert_same(&schema, &rules, Limits::default(), &probes(&schema, &rules, 400, 3));
    assert_eq!(classifier.classify(&[u32::MAX, 1]), 0);
    assert_eq!(classifier.classify(&[0, 0]), 100);
}
