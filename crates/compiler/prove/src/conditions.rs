//! The conditions of classes: their boundaries, where packets are worth trying, and the numbers that they tell apart.

use ir::analysis::interval::IntervalSet;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use synth::classes::Class;
use synth::classes::expr::{Id, Node, Pool};
use synth::classes::filter::{Factor, Filter, each_condition};

/// The first and the last number of each interval of these conditions.
pub fn ends(conditions: &[(Id, IntervalSet)]) -> Vec<(Id, u64)> {
    let intervals =
        conditions.iter().flat_map(|(of, set)| set.intervals().iter().map(move |ends| (*of, *ends)));
    intervals.flat_map(|(of, (first, last))| [(of, first), (of, last)]).collect()
}

/// All conditions of a filter that have boundaries.
pub fn conditions(factors: &[Factor]) -> Vec<(Id, IntervalSet)> {
    let mut all = vec![];
    each_condition(factors, &mut |id, set| all.push((id, set.clone())));
    all
}

/// For each condition on which it depends what a class stores into records and cells, a number for which it holds and one
/// for which it does not: ways that differ in that alone are one class.
pub fn of_stores(pool: &Pool, class: &Class) -> Vec<(Id, u64)> {
    let mut open: Vec<Id> = class.end.records.iter().map(|write| write.value).collect();
    open.extend(class.end.cells.values());
    let (mut all, mut seen) = (vec![], HashSet::new());
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        // Sums have conditions as terms, and numbers are parts of others.
        match pool.node(id) {
            Node::Select(..) | Node::Sum(..) | Node::Cat(_) | Node::Slice(..) => {
                open.extend(pool.children(id))
            }
            Node::In(of, set) => {
                let numbers = [set.min(), set.complement(pool.max(*of)).min()];
                all.extend(numbers.into_iter().flatten().map(|number| (*of, number)));
            }
            _ => {}
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The sets that filters have conditions for, by expression, in the order of the filters.
pub fn sets_by_expression<'f>(
    filters: impl IntoIterator<Item = &'f Filter>,
) -> BTreeMap<Id, Vec<&'f IntervalSet>> {
    let mut all: BTreeMap<Id, Vec<&IntervalSet>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for filter in filters {
        each_condition(&filter.0, &mut |id, set| {
            if seen.insert((id, set)) {
                all.entry(id).or_default().push(set);
            }
        });
    }
    all
}

/// All numbers, in parts of which each is in the same ones of these sets.
pub fn parts_of(sets: &[&IntervalSet]) -> BTreeMap<Vec<bool>, IntervalSet> {
    let intervals = || sets.iter().flat_map(|set| set.intervals());
    let starts = intervals().map(|(first, _)| *first);
    let ends = intervals().filter_map(|(_, last)| last.checked_add(1));
    let starts: BTreeSet<u64> = std::iter::once(0).chain(starts).chain(ends).collect();
    let mut parts: BTreeMap<Vec<bool>, Vec<(u64, u64)>> = BTreeMap::new();
    let mut rest = starts.iter().peekable();
    while let Some(first) = rest.next() {
        let last = rest.peek().map_or(u64::MAX, |next| **next - 1);
        let held = sets.iter().map(|set| set.contains(*first)).collect();
        parts.entry(held).or_default().push((*first, last));
    }
    parts.into_iter().map(|(held, part)| (held, IntervalSet::from_intervals(part))).collect()
}
