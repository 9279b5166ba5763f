//! Which classes share no packet, and which have all packets of another one, by their conditions alone.
//!
//! Conditions of both sides are sets of numbers for expressions of one pool, so the same expression has the
//! same value for a packet. Two filters that require disjoint sets of one expression share no packet, and a
//! filter that requires no more than another one has all its packets. Most pairs of classes are decided that
//! way; what is left is the solver's.

use ir::analysis::interval::IntervalSet;
use std::collections::{BTreeMap, HashMap};
use synth::classes::expr::Id;
use synth::classes::filter::{Factor, Filter};

/// The numbers that expressions have for every packet that passes a filter. More packets may have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds(BTreeMap<Id, IntervalSet>);

impl Bounds {
    /// Those of a filter.
    pub fn of(filter: &Filter) -> Bounds {
        Bounds(required(&filter.0))
    }
}

fn required(factors: &[Factor]) -> BTreeMap<Id, IntervalSet> {
    let mut all: BTreeMap<Id, IntervalSet> = BTreeMap::new();
    let mut narrow = |id: Id, set: &IntervalSet| {
        all.entry(id).and_modify(|own| *own = own.intersection(set)).or_insert_with(|| set.clone());
    };
    for factor in factors {
        match factor {
            Factor::Is(id, set) => narrow(*id, set),
            // What each of the alternatives requires.
            Factor::Any(lists) => {
                let each = lists.iter().map(|list| required(list)).reduce(|mut all, other| {
                    all.retain(|id, set| match other.get(id) {
                        Some(other) => {
                            *set = set.union(other);
                            true
                        }
                        None => false,
                    });
                    all
                });
                each.iter().flatten().for_each(|(id, set)| narrow(*id, set));
            }
        }
    }
    all
}

/// Whether each packet that passes `filter`, whose bounds these are, passes these conditions, too: a weaker
/// test than the solver's.
pub fn implies(bounds: &Bounds, filter: &[Factor], conditions: &[Factor]) -> bool {
    conditions.iter().all(|condition| {
        filter.contains(condition)
            || match condition {
                Factor::Is(id, set) => bounds.0.get(id).is_some_and(|own| set.covers(own)),
                Factor::Any(lists) => lists.iter().any(|list| implies(bounds, filter, list)),
            }
    })
}

/// Some classes, as bits by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    fn none(count: usize) -> Numbers {
        Numbers(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn add(&mut self, other: &Numbers) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

/// Classes by the sets that they require.
pub struct Index {
    count: usize,
    by_expression: HashMap<Id, Vec<(IntervalSet, Numbers)>>,
    /// The classes that a set excludes.
    excluded: HashMap<(Id, IntervalSet), Numbers>,
}

impl Index {
    /// Of the classes with these bounds.
    pub fn of(all: &[Bounds]) -> Index {
        let mut by_expression: HashMap<Id, HashMap<&IntervalSet, Numbers>> = HashMap::new();
        for (at, Bounds(bounds)) in all.iter().enumerate() {
            for (id, set) in bounds {
                let of_set = by_expression.entry(*id).or_default().entry(set);
                of_set.or_insert_with(|| Numbers::none(all.len())).insert(at);
            }
        }
        let owned = |sets: HashMap<&IntervalSet, Numbers>| {
            sets.into_iter().map(|(set, numbers)| (set.clone(), numbers)).collect()
        };
        let by_expression = by_expression.into_iter().map(|(id, sets)| (id, owned(sets))).collect();
        Index { count: all.len(), by_expression, excluded: HashMap::new() }
    }

    /// The classes that may share a packet with one that has these bounds, lowest first.
    pub fn meeting(&mut self, Bounds(bounds): &Bounds) -> Vec<usize> {
        let mut excluded = Numbers::none(self.count);
        for (id, set) in bounds {
            let Some(sets) = self.by_expression.get(id) else { continue };
            let by_set = self.excluded.entry((*id, set.clone())).or_insert_with(|| {
                let mut excluded = Numbers::none(self.count);
                sets.iter().filter(|(other, _)| !set.meets(other)).for_each(|(_, all)| excluded.add(all));
                excluded
            });
            excluded.add(by_set);
        }
        (0..self.count).filter(|at| excluded.0[at / 64] >> (at % 64) & 1 == 0).collect()
    }
}
