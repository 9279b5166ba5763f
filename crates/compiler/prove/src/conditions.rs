//! The conditions of a filter, whose boundaries are where packets are worth trying.

use ir::analysis::interval::IntervalSet;
use synth::classes::expr::Id;
use synth::classes::filter::Factor;

/// The first and the last number of each interval of these conditions.
pub fn ends(conditions: &[(Id, IntervalSet)]) -> Vec<(Id, u64)> {
    let intervals =
        conditions.iter().flat_map(|(of, set)| set.intervals().iter().map(move |ends| (*of, *ends)));
    intervals.flat_map(|(of, (first, last))| [(of, first), (of, last)]).collect()
}

/// All conditions of a filter that have boundaries.
pub fn conditions(factors: &[Factor], into: &mut Vec<(Id, IntervalSet)>) {
    for factor in factors {
        match factor {
            Factor::Is(id, set) => into.push((*id, set.clone())),
            Factor::Any(lists) => lists.iter().for_each(|list| conditions(list, into)),
        }
    }
}
