//! The conditions of a filter, whose boundaries are where packets are worth trying.

use ir::analysis::interval::IntervalSet;
use synth::classes::Class;
use synth::classes::expr::{Id, Node, Pool};
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

/// For each condition on which it depends what a class stores into records, a number for which it holds and one for which
/// it does not: ways that differ in that alone are one class.
pub fn of_stores(pool: &Pool, class: &Class) -> Vec<(Id, u64)> {
    let mut open: Vec<Id> = class.end.records.iter().map(|write| write.value).collect();
    let mut all = vec![];
    while let Some(id) = open.pop() {
        let Node::Select(condition, a, b) = pool.node(id) else { continue };
        open.extend([a, b]);
        if let Node::In(of, set) = pool.node(*condition) {
            let numbers = [set.min(), set.complement(pool.max(*of)).min()];
            all.extend(numbers.into_iter().flatten().map(|number| (*of, number)));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}
