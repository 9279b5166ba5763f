//! Which classes share no packet, and which have all packets of another one, by their conditions alone.
//!
//! Conditions of both sides are sets of numbers for expressions of one pool, so the same expression has the
//! same value for a packet. Two filters that require disjoint sets of one expression share no packet, and a
//! filter that requires no more than another one has all its packets. Most pairs of classes are decided that
//! way; what is left is the solver's.

use ir::analysis::interval::IntervalSet;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
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

/// The alternatives that are looked at one by one, of all classes of an entry together, each time that they are gone
/// through. Classes behind those that use them up are left to the solver.
pub const MOST_CASES: usize = 100_000;
/// Those of one class.
pub const MOST_OF_ONE: usize = 500;

/// What holds for all packets that pass some conditions: a weaker test than the solver's.
pub struct Known<'f> {
    pool: &'f Pool,
    facts: Facts,
    /// What they say of expressions that were asked for.
    sets: RefCell<HashMap<Id, Rc<IntervalSet>>>,
    factors: Vec<&'f Factor>,
    /// Alternatives that may still be looked at one by one.
    cases: &'f Cell<usize>,
    deadline: &'f Deadline,
    /// How many alternatives these are in.
    depth: usize,
}

/// Cases in cases that are looked at one by one.
const DEPTH: usize = 10;

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
        let factors = filter.0.iter().collect();
        Some(Known { pool, facts, sets: RefCell::default(), factors, cases, deadline, depth: 0 })
    }

    /// The numbers that an expression may have.
    fn set(&self, id: Id) -> Rc<IntervalSet> {
        let of = || Rc::new(self.facts.known(self.pool, id));
        Rc::clone(self.sets.borrow_mut().entry(id).or_insert_with(of))
    }

    /// Of the packets that pass further conditions as well; `None` if there are none.
    fn also<'k>(&'k self, list: &'k [Factor]) -> Option<Known<'k>> {
        let (mut facts, mut required) = (self.facts.clone(), BTreeMap::new());
        require(list, &mut required);
        if !required.iter().all(|(id, set)| facts.take(self.pool, *id, set)) {
            return None;
        }
        let factors = self.factors.iter().copied().chain(list).collect();
        Some(Known { facts, sets: RefCell::default(), factors, ..*self })
    }

    /// Of those that pass some conditions as well: those of one alternative of a factor, if they are.
    fn case<'k>(&'k self, of: Option<usize>, list: &'k [Factor]) -> Option<Known<'k>> {
        let mut known = self.also(list)?;
        if let Some(of) = of {
            known.factors.remove(of);
        }
        Some(known)
    }

    /// Whether each packet passes one of some filters, which need not be the same one for all of them.
    pub fn is_in_one(&self, filters: &[&Filter]) -> bool {
        let lists: Vec<&[Factor]> = filters.iter().map(|filter| &filter.0[..]).collect();
        self.implies_one(&lists)
    }

    /// Whether each packet passes these conditions, too.
    pub fn implies(&self, conditions: &[Factor]) -> bool {
        conditions.iter().all(|condition| {
            self.factors.contains(&condition)
                || match condition {
                    Factor::Is(id, set) => set.covers(&self.set(*id)),
                    Factor::Any(lists) => {
                        self.implies_one(&lists.iter().map(|list| &list[..]).collect::<Vec<_>>())
                    }
                }
        })
    }

    /// Whether each packet passes the conditions of one of the lists: which one may depend on the alternatives that it
    /// passes. Of these, those are looked at one by one that say most of what the lists ask for; then the packets that
    /// pass a condition of the lists, and all others.
    fn implies_one(&self, lists: &[&[Factor]]) -> bool {
        let possible: Vec<&[Factor]> = lists.iter().copied().filter(|list| !self.rules_out(list)).collect();
        if possible.iter().any(|list| self.implies(list)) {
            return true;
        }
        if self.depth == DEPTH {
            return false;
        }
        // If there is none, it may be that there are no such packets.
        let left = if possible.is_empty() { lists } else { &possible };
        let mut asked = BTreeMap::new();
        left.iter().for_each(|list| self.open(list, &mut asked));
        let mut best: Option<(_, usize, Vec<&[Factor]>)> = None;
        for (at, factor) in self.factors.iter().enumerate() {
            let Factor::Any(cases) = factor else { continue };
            let mut has = BTreeSet::new();
            note_asked(cases, &asked, &mut has);
            if !has.is_empty() {
                let cases = cases.iter().map(|case| &case[..]).filter(|case| !self.rules_out(case));
                let cases: Vec<&[Factor]> = cases.collect();
                let order = (cases.len() > 1, std::cmp::Reverse(has.len()), cases.len());
                if best.as_ref().is_none_or(|(before, ..)| order < *before) {
                    best = Some((order, at, cases));
                }
            }
        }
        let each = |of: Option<usize>, case: &[Factor], depth: usize| {
            let more = self.cases.get();
            self.cases.set(more.saturating_sub(1));
            more > 0
                && !self.deadline.is_over()
                && self.case(of, case).is_none_or(|known| Known { depth, ..known }.implies_one(left))
        };
        if let Some((_, at, cases)) = best {
            let depth = self.depth + usize::from(cases.len() > 1);
            return cases.iter().all(|case| each(Some(at), case, depth));
        }
        // The one that most of the lists ask for.
        let most = asked.iter().rev().max_by_key(|(_, asked)| asked.0).filter(|_| possible.len() > 1);
        most.is_some_and(|(id, (_, set))| {
            [(*set).clone(), set.complement(u64::MAX)]
                .into_iter()
                .all(|set| each(None, &[Factor::Is(*id, set)], self.depth + 1))
        })
    }

    /// Whether one of the conditions says that no packet passes.
    fn rules_out(&self, list: &[Factor]) -> bool {
        list.iter().any(|factor| match factor {
            Factor::Is(id, set) => !set.meets(&self.set(*id)),
            Factor::Any(lists) => lists.iter().all(|list| self.rules_out(list)),
        })
    }

    /// Adds the expressions of conditions that not each packet is known to pass: how many there are, and one of them.
    fn open<'l>(&self, list: &'l [Factor], asked: &mut BTreeMap<Id, (usize, &'l IntervalSet)>) {
        for factor in list.iter().filter(|factor| !self.factors.contains(factor)) {
            match factor {
                Factor::Is(id, set) if set.covers(&self.set(*id)) => {}
                Factor::Is(id, set) => asked.entry(*id).or_insert((0, set)).0 += 1,
                Factor::Any(lists) => lists.iter().for_each(|list| self.open(list, asked)),
            }
        }
    }
}

/// Adds those of these expressions that alternatives have a condition on.
fn note_asked(lists: &[Vec<Factor>], asked: &BTreeMap<Id, (usize, &IntervalSet)>, into: &mut BTreeSet<Id>) {
    for factor in lists.iter().flatten() {
        match factor {
            Factor::Is(id, _) => into.extend(asked.contains_key(id).then_some(*id)),
            Factor::Any(lists) => note_asked(lists, asked, into),
        }
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
        Index { count: all.len(), by_expression }
    }
}

/// Looks classes up in an index.
pub struct Meeting<'i> {
    index: &'i Index,
    /// The classes that a set excludes.
    excluded: HashMap<(Id, IntervalSet), Numbers>,
}

impl Meeting<'_> {
    /// For an index.
    pub fn among(index: &Index) -> Meeting<'_> {
        Meeting { index, excluded: HashMap::new() }
    }

    /// The classes that may share a packet with one that has these bounds, lowest first.
    pub fn with(&mut self, Bounds(bounds): &Bounds) -> Vec<usize> {
        let Index { count, by_expression } = self.index;
        let mut excluded = Numbers::none(*count);
        for (id, set) in bounds {
            let Some(sets) = by_expression.get(id) else { continue };
            let by_set = self.excluded.entry((*id, set.clone())).or_insert_with(|| {
                let mut excluded = Numbers::none(*count);
                sets.iter().filter(|(other, _)| !set.meets(other)).for_each(|(_, all)| excluded.add(all));
                excluded
            });
            excluded.add(by_set);
        }
        (0..*count).filter(|at| excluded.0[at / 64] >> (at % 64) & 1 == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_programs::by_three_bytes;
    use std::collections::BTreeSet;
    use synth::classes::expr::{Atom, Node};
    use synth::classes::{Classes, Options};

    /// A class is in several others together if each of its alternatives is in one of them, or both parts of a set that
    /// one of them asks for.
    #[test]
    fn a_class_is_in_several_others_together() {
        let Classes { pool, classes, .. } = Classes::of(&by_three_bytes(), &Options::default());
        let asked: BTreeSet<Id> =
            classes.iter().flat_map(|class| class.filter.conditions()).map(|(id, _)| id).collect();
        let is_bits = |id: &Id| matches!(pool.node(*id), Node::Atom(Atom::Bits(_)));
        let bytes: Vec<Id> = asked.into_iter().filter(is_bits).collect();
        let [.., a, b, c] = bytes[..] else { panic!("{bytes:?}") };
        let deadline = Deadline::default();
        let is = |id: Id, number: u64| Factor::Is(id, IntervalSet::one(number));
        let any = |lists: Vec<Vec<Factor>>| Factor::Any(lists.into());
        let is_in = |class: Vec<Factor>, others: Vec<Vec<Factor>>| {
            let (class, others) = (Filter(class), others.into_iter().map(Filter).collect::<Vec<_>>());
            let cases = Cell::new(MOST_OF_ONE);
            let known =
                Known::of(&pool, &class, &Bounds::of(&class), &cases, &deadline).expect("packets pass");
            known.is_in_one(&others.iter().collect::<Vec<_>>())
        };
        let class = || {
            let inner = any(vec![vec![is(b, 1)], vec![is(b, 2)]]);
            vec![any(vec![vec![is(a, 1), inner], vec![is(a, 2)]])]
        };
        let first = || vec![is(a, 1), is(b, 1)];
        let second = || vec![any(vec![vec![is(a, 1), is(b, 2)], vec![is(a, 2)]])];
        assert!(is_in(class(), vec![first(), second()]));
        for some in [vec![first()], vec![second()], vec![first(), vec![is(a, 2)]], vec![]] {
            assert!(!is_in(class(), some.clone()), "{some:?}");
        }
        // Two alternatives of the class that contradict each other have no packet.
        let both = || {
            vec![
                any(vec![vec![is(a, 1)], vec![is(a, 2), is(b, 1)]]),
                any(vec![vec![is(a, 3)], vec![is(a, 2)]]),
            ]
        };
        assert!(is_in(both(), vec![vec![is(a, 2)]]) && is_in(both(), vec![vec![is(b, 1)]]));
        assert!(!is_in(both(), vec![vec![is(b, 2)]]));
        // By a condition of the others.
        let others = || IntervalSet::one(0).complement(u64::MAX);
        let parted =
            |second: IntervalSet| vec![vec![is(c, 0), is(a, 1)], vec![Factor::Is(c, second), is(a, 1)]];
        assert!(is_in(vec![is(a, 1)], parted(others())));
        assert!(!is_in(vec![is(a, 1)], parted(IntervalSet::one(1))));
        assert!(!is_in(vec![is(b, 1)], parted(others())));
    }
}
