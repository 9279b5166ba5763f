//! Which classes share no packet, and which have all packets of another one, by their conditions alone.
//!
//! Conditions of both sides are sets of numbers for expressions of one pool, so the same expression has the
//! same value for a packet. Two filters that require disjoint sets of one expression share no packet, and a
//! filter that requires no more than another one has all its packets. Most pairs of classes are decided that
//! way; what is left is the solver's.

use ir::analysis::interval::IntervalSet;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use synth::classes::expr::{Id, Pool};
use synth::classes::facts::Facts;
use synth::classes::filter::{Factor, Filter, require};
use synth::deadline::Deadline;

/// The numbers that expressions have for every packet that passes a filter. More packets may have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds(BTreeMap<Id, IntervalSet>);

impl Bounds {
    /// Those of a filter.
    pub fn of(filter: &Filter) -> Bounds {
        Bounds(filter.required())
    }

    /// The expressions with their numbers.
    pub fn sets(&self) -> impl Iterator<Item = (Id, &IntervalSet)> {
        self.0.iter().map(|(id, set)| (*id, set))
    }

    /// The numbers that an expression may have, where the filter says something of it.
    pub fn set(&self, id: Id) -> Option<&IntervalSet> {
        self.0.get(&id)
    }
}

/// The alternatives that are looked at one by one, of all classes of an entry together. Classes behind those that use
/// them up are left to the solver.
pub const MOST_CASES: usize = 30_000;

/// What holds for all packets that pass some conditions: a weaker test than the solver's.
pub struct Known<'f> {
    pool: &'f Pool,
    facts: Facts,
    factors: Vec<&'f Factor>,
    /// Alternatives that may still be looked at one by one.
    cases: &'f Cell<usize>,
    deadline: &'f Deadline,
    /// The first of the factors that are those of the innermost alternative: all, if these are of none.
    own: usize,
    /// How many alternatives these are in.
    depth: usize,
}

/// Alternatives in alternatives that are looked at one by one.
const DEPTH: usize = 3;

impl<'f> Known<'f> {
    /// Of a filter with these bounds; `None` if no packet passes it.
    pub fn of(
        pool: &'f Pool,
        filter: &'f Filter,
        Bounds(bounds): &Bounds,
        cases: &'f Cell<usize>,
        deadline: &'f Deadline,
    ) -> Option<Known<'f>> {
        let facts = Facts::of(pool, bounds.clone())?;
        Some(Known { pool, facts, factors: filter.0.iter().collect(), cases, deadline, own: 0, depth: 0 })
    }

    /// Of the packets that pass further conditions as well; `None` if there are none.
    fn also<'k>(&'k self, list: &'k [Factor]) -> Option<Known<'k>> {
        let mut bounds = self.facts.conditions().map(|(id, set)| (id, set.clone())).collect();
        require(list, &mut bounds);
        let facts = Facts::of(self.pool, bounds)?;
        let factors = self.factors.iter().copied().chain(list).collect();
        Some(Known { facts, factors, ..*self })
    }

    /// Of those that pass one alternative as well.
    fn case<'k>(&'k self, list: &'k [Factor]) -> Option<Known<'k>> {
        Some(Known { own: self.factors.len(), depth: self.depth + 1, ..self.also(list)? })
    }

    /// Whether each packet passes one of some filters: one for all, or one for those in a set that it asks for and one for
    /// the others.
    pub fn is_in_one(&self, filters: &[&Filter]) -> bool {
        filters.iter().any(|filter| self.implies(&filter.0))
            || filters.len() > 1 && filters.iter().any(|filter| self.is_parted_by(filter, filters))
    }

    fn is_parted_by(&self, filter: &Filter, filters: &[&Filter]) -> bool {
        let open = |factor: &&Factor| !self.implies(std::slice::from_ref(*factor));
        filter.0.iter().filter(|factor| matches!(factor, Factor::Is(..))).filter(open).any(|factor| {
            let Factor::Is(id, set) = factor else { return false };
            let others = self.facts.known(self.pool, *id).intersection(&set.complement(u64::MAX));
            let parts = [set.clone(), others].map(|set| [Factor::Is(*id, set)]);
            parts.iter().all(|part| {
                let known = self.also(part);
                known.is_none_or(|known| filters.iter().any(|filter| known.implies(&filter.0)))
            })
        })
    }

    /// Whether each packet passes these conditions, too.
    pub fn implies(&self, conditions: &[Factor]) -> bool {
        conditions.iter().all(|condition| {
            self.factors.contains(&condition)
                || match condition {
                    Factor::Is(id, set) => set.covers(&self.facts.known(self.pool, *id)),
                    Factor::Any(lists) => self.implies_one(lists),
                }
        })
    }

    /// Whether each packet passes the conditions of one of the lists: which one may depend on the alternative that it
    /// passes.
    fn implies_one(&self, lists: &[Vec<Factor>]) -> bool {
        let one = |known: &Known<'_>| lists.iter().any(|list| known.implies(list));
        let one_each = |cases: &'f [Vec<Factor>]| {
            cases.iter().all(|case| {
                let left = self.cases.get();
                self.cases.set(left.saturating_sub(1));
                left > 0 && !self.deadline.is_over() && self.case(case).is_none_or(|known| one(&known))
            })
        };
        // Inside alternatives, those that begin with the same expression: they are the same ones, mostly.
        let suit = |cases: &[Vec<Factor>]| self.depth == 0 || first_of(cases) == first_of(lists);
        one(self)
            || self.depth < DEPTH
                && self.factors[self.own..].iter().any(|factor| match factor {
                    Factor::Any(cases) => suit(cases) && one_each(cases),
                    Factor::Is(..) => false,
                })
    }
}

/// The first expression that alternatives have a condition on.
fn first_of(lists: &[Vec<Factor>]) -> Option<Id> {
    match lists.first()?.first()? {
        Factor::Is(id, _) => Some(*id),
        Factor::Any(lists) => first_of(lists),
    }
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
