//! Templates of random programs, compared with the programs.

use super::{Tried, compare_templates};
use crate::Sample;
use crate::optimize::tests::random::{Choice, program, sample};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// A change of a packet that keeps its flow: new values of bytes, another change by its kind, and a number
/// for that.
type Change = (Vec<(u8, u8)>, u8, u8);

fn changed(first: &Sample, (bytes, kind, number): &Change) -> Sample {
    let mut other = first.clone();
    for (at, value) in bytes {
        let at = usize::from(*at) % 64;
        let is_key = matches!(at, 23 | 26..=37);
        if let Some(byte) = other.bytes.get_mut(at).filter(|_| !is_key) {
            *byte = *value;
        }
    }
    match kind % 10 {
        0 => other.fill = *number,
        1 => other.headroom = *number,
        2 => other.bytes.truncate(38 + usize::from(*number)),
        3 => other.bytes.extend(std::iter::repeat_n(*number, 9)),
        4 => other.headers[usize::from(*number) % 3] = None,
        5 if other.bytes.len() > 34 => {
            // The time to live, with a checksum that fits.
            other.bytes[22] = *number;
            let _ = packet::checksum::set_ipv4_header(&mut other.bytes[14..], 0, 20);
        }
        6 if other.bytes.len() > 34 => {
            other.bytes[18] = *number;
            let _ = packet::checksum::set_ipv4_header(&mut other.bytes[14..], 0, 20);
        }
        _ => {}
    }
    other
}

/// A chain that checks, routes and translates, with some other instructions.
fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let kind = prop_oneof![
        3 => Just(0u8), 3 => Just(3u8), 2 => Just(5u8), 1 => Just(6u8), 1 => Just(7u8), 3 => Just(8u8),
        2 => Just(10u8), 4 => Just(11u8), 2 => Just(12u8), 1 => Just(14u8), 3 => any::<u8>(),
    ];
    prop::collection::vec((kind, any::<u16>(), any::<u8>(), any::<u64>()), 0..16)
}

#[test]
fn a_template_does_what_the_program_does() {
    let cases = std::env::var("MILLRACE_PROGRAMS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1500);
    let first = (prop::collection::vec(any::<u8>(), 50..90), any::<[u8; 6]>(), any::<u64>()).prop_map(sample);
    let change = (prop::collection::vec(any::<(u8, u8)>(), 0..2), any::<u8>(), any::<u8>());
    let changes = prop::collection::vec(change, 1..20);
    let all = Cell::new(Tried::default());
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let tried = runner.run(&(choices(), first, changes), |(choices, mut first, changes)| {
        // Packets that pass the checks exercise the most code.
        (first.headroom, first.headers) = (first.headroom | 64, [Some(0), Some(14), Some(34)]);
        let others: Vec<Sample> = changes.iter().map(|change| changed(&first, change)).collect();
        let one = compare_templates(&program(&choices), &first, &others);
        let sum = all.get();
        all.set(Tried {
            followed: sum.followed + one.followed,
            taken: sum.taken + one.taken,
            guarded: sum.guarded + one.guarded,
        });
        Ok(())
    });
    tried.unwrap_or_else(|failed| panic!("{failed}"));
    let all = all.get();
    let least = cases as usize / 4;
    assert!(all.followed > least && all.taken > least && all.guarded > least, "{all:?} of {cases}");
}
