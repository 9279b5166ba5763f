//! Facts about values on a path through a program.
//!
//! Conditions of the path are sets of numbers for expressions. Consequences for other expressions are
//! stored beside them and are no conditions of their own. Facts may be weaker than the truth, never
//! stronger: an impossible path may remain, a possible path is never lost.

use super::expr::{Atom, BIAS, Bits, Id, Log, NO_WRITES, Node, Pool, quotients, signed, sum_range};
use ir::analysis::interval::IntervalSet;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The facts about one path.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    sets: BTreeMap<Id, IntervalSet>,
    implied: BTreeMap<Id, IntervalSet>,
    related: Related,
}

/// The expressions that conditions are about, by what relates them to other ones, in their order. Every value that is
/// looked at is compared with all of a kind, and most conditions are of another.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Related {
    /// Bits as they arrived, or behind writes.
    bits: Vec<(Id, Log, Bits)>,
    /// Bits of a number: the number, their lowest bit, and how many they are.
    slices: Vec<(Id, Id, u8, u8)>,
    sums: Vec<Id>,
}

impl Related {
    fn add(&mut self, pool: &Pool, id: Id) {
        fn insert<T>(all: &mut Vec<T>, new: T, id: impl Fn(&T) -> Id) {
            let at = all.partition_point(|other| id(other) < id(&new));
            all.insert(at, new);
        }
        match *pool.node(id) {
            Node::Slice(of, low, width) => insert(&mut self.slices, (id, of, low, width), |slice| slice.0),
            Node::Sum(..) => insert(&mut self.sums, id, |sum| *sum),
            ref node => {
                if let Some((log, bits)) = bits_of(node) {
                    insert(&mut self.bits, (id, log, bits), |bits| bits.0);
                }
            }
        }
    }

    fn retain(&mut self, has: impl Fn(Id) -> bool) {
        self.bits.retain(|bits| has(bits.0));
        self.slices.retain(|slice| has(slice.0));
        self.sums.retain(|sum| has(*sum));
    }
}

/// The bits that an expression is, and the writes before.
fn bits_of(node: &Node) -> Option<(Log, Bits)> {
    match node {
        Node::Atom(Atom::Bits(bits)) => Some((NO_WRITES, *bits)),
        Node::Read(log, bits) => Some((*log, *bits)),
        _ => None,
    }
}

/// The depth to which expressions are examined.
const DEPTH: usize = 10;
/// Above this, sums are not analysed: they may wrap.
const LARGE: i128 = 1 << 61;

impl Facts {
    /// The possible values of an expression.
    pub fn known(&self, pool: &Pool, id: Id) -> IntervalSet {
        self.at_depth(pool, id, DEPTH)
    }

    /// The smallest and the largest value that an expression may have.
    pub fn hull(&self, pool: &Pool, id: Id) -> (u64, u64) {
        self.hull_at(pool, id, DEPTH)
    }

    fn hull_at(&self, pool: &Pool, id: Id, depth: usize) -> (u64, u64) {
        let set = self.at_depth(pool, id, depth);
        // Where no value is possible, any answer is valid.
        (set.min().unwrap_or(0), set.max().unwrap_or_else(|| pool.max(id)))
    }

    fn at_depth(&self, pool: &Pool, id: Id, depth: usize) -> IntervalSet {
        if let Node::Const(number) = pool.node(id) {
            return IntervalSet::one(*number);
        }
        let mut set = IntervalSet::range(0, pool.max(id));
        if let Some(depth) = depth.checked_sub(1) {
            set = set.intersection(&self.of_parts(pool, id, depth));
        }
        for sets in [&self.sets, &self.implied] {
            if let Some(known) = sets.get(&id) {
                set = set.intersection(known);
            }
        }
        set
    }

    fn of_parts(&self, pool: &Pool, id: Id, depth: usize) -> IntervalSet {
        let hull = |id: Id| self.hull_at(pool, id, depth);
        let all = IntervalSet::full();
        match pool.node(id) {
            Node::Atom(Atom::Bits(bits)) => self.of_bits(NO_WRITES, *bits),
            Node::Read(log, bits) => self.of_bits(*log, *bits),
            Node::Cat(parts) => {
                let sum = |end: fn((u64, u64)) -> u64| {
                    parts.iter().fold(0, |sum: u64, (low, part)| sum | end(hull(*part)) << low)
                };
                IntervalSet::range(sum(|hull| hull.0), sum(|hull| hull.1))
            }
            Node::Slice(of, low, width) => {
                let known = self.at_depth(pool, *of, depth).project(*low, *width);
                known.intersection(&self.of_slices(id, (*of, *low, *width)))
            }
            Node::Sum(constant, terms) => match sum_range(*constant, terms, hull) {
                (low, high) if low >= 0 && high <= i128::from(u64::MAX) => {
                    IntervalSet::range(low as u64, high as u64)
                }
                _ => all,
            },
            Node::Bin(ir::BinOp::Min, a, b) => {
                let (a, b) = (hull(*a), hull(*b));
                IntervalSet::range(a.0.min(b.0), a.1.min(b.1))
            }
            Node::In(of, set) => {
                let known = self.at_depth(pool, *of, depth);
                IntervalSet::range(u64::from(set.covers(&known)), u64::from(set.meets(&known)))
            }
            Node::Select(_, a, b) => self.at_depth(pool, *a, depth).union(&self.at_depth(pool, *b, depth)),
            Node::Record(_) => IntervalSet::range(1, u64::MAX),
            _ => all,
        }
    }

    /// The facts about some bits that follow from overlapping bits, as they arrived or after the same writes.
    fn of_bits(&self, log: Log, bits: Bits) -> IntervalSet {
        let mut set = IntervalSet::full();
        for (other, same, around) in &self.related.bits {
            if around.root != bits.root || *same != log || *around == bits {
                continue;
            }
            let low = bits.end() - around.end();
            set = of_others(set, bits.width, || &self.sets[other], (low, around.width));
        }
        set
    }

    /// The facts about some bits of a number, from the lowest of them on, that follow from others of its bits. Of bits
    /// around these, what still others say counts as well: a number of which one of two values is excluded has one, and so
    /// has its lower half.
    fn of_slices(&self, id: Id, (of, low, width): (Id, u8, u8)) -> IntervalSet {
        let narrowed = |set, (own, width): (u8, u8), known: &IntervalSet, (low, bits): (u8, u8)| {
            of_others(set, width, || known, (i32::from(low) - i32::from(own), bits))
        };
        self.slices(id, of).fold(IntervalSet::full(), |set, (other, condition, bits)| {
            let is_around = bits.0 <= low && low + width <= bits.0 + bits.1;
            if !is_around {
                return narrowed(set, (low, width), condition, bits);
            }
            let others = self.slices(other, of);
            let known = others
                .fold(condition.clone(), |set, (_, condition, more)| narrowed(set, bits, condition, more));
            narrowed(set, (low, width), &known, bits)
        })
    }

    /// The conditions on bits of a number other than `but`: with the lowest of them, and how many they are.
    fn slices(&self, but: Id, of: Id) -> impl Iterator<Item = (Id, &IntervalSet, (u8, u8))> {
        let slices = self.related.slices.iter();
        let others = slices.filter(move |(other, same, ..)| *same == of && *other != but);
        others.map(|(other, _, low, width)| (*other, &self.sets[other], (*low, *width)))
    }

    /// The smallest and the largest value of a sum over the integers, if it is small.
    pub fn small_sum(&self, pool: &Pool, constant: u64, terms: &[(Id, u64)]) -> Option<(i128, i128)> {
        let (low, high) = sum_range(constant, terms, |term| self.hull(pool, term));
        (low > -LARGE && high < LARGE).then_some((low, high))
    }

    /// The path's condition on an expression.
    pub fn condition(&self, id: Id) -> Option<&IntervalSet> {
        self.sets.get(&id)
    }

    /// Every condition.
    pub fn conditions(&self) -> impl Iterator<Item = (Id, &IntervalSet)> {
        self.sets.iter().map(|(id, set)| (*id, set))
    }

    /// Differences that conditions bound: the smallest and the largest value, and the terms.
    pub fn differences<'a>(
        &'a self,
        pool: &'a Pool,
    ) -> impl Iterator<Item = (i128, i128, &'a [(Id, u64)])> + use<'a> {
        let bias = i128::from(BIAS);
        self.related.sums.iter().filter_map(move |id| match pool.node(*id) {
            Node::Sum(BIAS, terms) => {
                let set = &self.sets[id];
                Some((i128::from(set.min()?) - bias, i128::from(set.max()?) - bias, &**terms))
            }
            _ => None,
        })
    }

    /// Adds a condition; false if it cannot hold.
    #[must_use]
    pub fn take(&mut self, pool: &Pool, id: Id, set: &IntervalSet) -> bool {
        if !self.known(pool, id).meets(set) {
            return false;
        }
        match self.sets.entry(id) {
            Entry::Occupied(mut before) => *before.get_mut() = before.get().intersection(set),
            Entry::Vacant(new) => {
                new.insert(set.clone());
                self.related.add(pool, id);
            }
        }
        self.imply_from(pool, id);
        (0..2).all(|_| self.follow_sums(pool)) && self.holds_for_bits(pool, id)
    }

    /// All that conditions say together; `None` if they cannot hold.
    pub fn of(pool: &Pool, conditions: impl IntoIterator<Item = (Id, IntervalSet)>) -> Option<Facts> {
        let mut facts = Facts { sets: conditions.into_iter().collect(), ..Facts::default() };
        let ids: Vec<Id> = facts.sets.keys().copied().collect();
        ids.iter().for_each(|id| facts.related.add(pool, *id));
        ids.iter().for_each(|id| facts.imply_from(pool, *id));
        let holds = (0..2).all(|_| facts.follow_sums(pool));
        (holds && ids.iter().all(|id| !facts.known(pool, *id).is_empty())).then_some(facts)
    }

    /// Removes conditions that do not hold on another path as well.
    pub fn join(&mut self, other: &Facts) {
        let join = |mine: &mut BTreeMap<Id, IntervalSet>, theirs: &BTreeMap<Id, IntervalSet>| {
            mine.retain(|id, set| match theirs.get(id) {
                Some(other) => {
                    *set = set.union(other);
                    true
                }
                None => false,
            });
        };
        join(&mut self.sets, &other.sets);
        join(&mut self.implied, &other.implied);
        self.related.retain(|id| self.sets.contains_key(&id));
    }

    fn imply(&mut self, pool: &Pool, id: Id, set: &IntervalSet) -> bool {
        let before = self.known(pool, id);
        let after = before.intersection(set);
        if after != before {
            self.implied.insert(id, after.clone());
        }
        !after.is_empty()
    }

    /// Derives the consequences of one condition alone.
    fn imply_from(&mut self, pool: &Pool, id: Id) {
        match pool.node(id) {
            Node::Atom(Atom::Reach(base)) if !self.known(pool, id).contains(0) => {
                if let Some(place) = pool.find(&Node::Atom(Atom::Place(*base))) {
                    self.imply(pool, place, &IntervalSet::range(0, 0xfffe));
                }
            }
            Node::Bin(ir::BinOp::Min, a, b) => {
                let (a, b) = (*a, *b);
                let at_least = IntervalSet::range(self.known(pool, id).min().unwrap_or(0), u64::MAX);
                self.imply(pool, a, &at_least);
                self.imply(pool, b, &at_least);
            }
            _ => {}
        }
    }

    /// Derives, from conditions on sums, facts about their terms.
    fn follow_sums(&mut self, pool: &Pool) -> bool {
        (0..self.related.sums.len()).all(|at| {
            let id = self.related.sums[at];
            let Node::Sum(constant, terms) = pool.node(id) else { return true };
            let Some(whole) = self.small_sum_around(pool, *constant, terms) else { return true };
            let known = self.known(pool, id);
            let (Some(least), Some(most)) = (known.min(), known.max()) else { return false };
            let (least, most) = (i128::from(least), i128::from(most));
            terms.iter().all(|(term, by)| {
                let (low, high) = self.hull(pool, *term);
                let by = signed(*by);
                let own = (by * i128::from(low), by * i128::from(high));
                let own = (own.0.min(own.1), own.0.max(own.1));
                // The values that the other terms leave for this one.
                let (from, to) = (least - (whole.1 - own.1), most - (whole.0 - own.0));
                quotients(from, to, by)
                    .is_some_and(|(from, to)| self.imply(pool, *term, &IntervalSet::range(from, to)))
            })
        })
    }

    /// [`Facts::small_sum`] for sums whose constant is large by design.
    pub fn small_sum_around(&self, pool: &Pool, constant: u64, terms: &[(Id, u64)]) -> Option<(i128, i128)> {
        self.small_sum(pool, 0, terms)
            .map(|(low, high)| (low + signed(constant), high + signed(constant)))
            .filter(|(low, _)| *low >= 0)
    }

    /// Bits that contain those of a new condition must still have a possible value.
    fn holds_for_bits(&self, pool: &Pool, id: Id) -> bool {
        let Some((log, bits)) = bits_of(pool.node(id)) else { return true };
        self.related.bits.iter().all(|(other, same, around)| {
            *same != log || bits.common(*around).is_none() || !self.known(pool, *other).is_empty()
        })
    }
}

/// What a number of `width` bits may be, when other bits of the same have a value of `known`: their lowest bit, counted
/// from the number's lowest, and how many they are.
fn of_others<'s>(
    set: IntervalSet,
    width: u8,
    known: impl FnOnce() -> &'s IntervalSet,
    (low, bits): (i32, u8),
) -> IntervalSet {
    let end = low + i32::from(bits);
    if low <= 0 && i32::from(width) <= end {
        set.intersection(&known().project(low.unsigned_abs() as u8, width))
    } else if low > 0 && end == i32::from(width) {
        // The highest bits are known.
        set.intersection(&known().widen(low.unsigned_abs()))
    } else {
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::expr::Root;

    /// What conditions say together of bits of a number: nothing that is false for a number that meets them all, and a
    /// half of which the other conditions leave one value.
    #[test]
    fn bits_are_known_by_all_conditions_on_bits_around_them() {
        let mut pool = Pool::default();
        let word = pool.atom(Atom::Bits(Bits { root: Root::Anno, bit: 0, width: 64 }));
        let record = pool.add(Node::Record(word));
        let number = pool.add(Node::RecLoad(super::super::expr::NO_WRITES, record, 0, 8));
        let mut slice = |low, width| pool.add(Node::Slice(number, low, width));
        let [all, high, low, middle] = [slice(0, 32), slice(8, 24), slice(0, 16), slice(4, 20)];
        let mut facts = Facts::default();
        let (first, second) = (0x0afe_0102, 0x0afe_0201);
        let two = IntervalSet::one(first).union(&IntervalSet::one(second));
        assert!(facts.take(&pool, all, &two));
        assert_eq!(facts.known(&pool, low), IntervalSet::one(0x0102).union(&IntervalSet::one(0x0201)));
        assert!(facts.take(&pool, high, &IntervalSet::one(second >> 8).complement(0xff_ffff)));
        assert_eq!(facts.known(&pool, low), IntervalSet::one(0x0102));
        assert!(facts.known(&pool, middle).contains(first >> 4 & 0xf_ffff));
        assert!(!facts.take(&pool, low, &IntervalSet::one(0x0201)));
    }
}
