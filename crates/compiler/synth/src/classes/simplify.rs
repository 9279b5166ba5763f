//! Construction of expressions in a normal form: equal expressions have one representation.
//!
//! Facts about a path decide conditions ([`Maker::is_in`], comparisons, minima), but never replace a
//! value by a number: paths with the same behaviour should have the same expressions, so that their
//! classes become one.

use super::expr::{Atom, BIAS, Bits, Id, Node, Pool, quotients, signed};
use super::facts::Facts;
use ir::BinOp;
use ir::analysis::interval::{IntervalSet, ones};
use std::collections::BTreeMap;

/// Runs of ones in a mask that are split; a mask with more runs stays whole.
const MAX_RUNS: usize = 6;
/// Parts of a number that a comparison considers one by one.
const MAX_PARTS: usize = 6;

/// Builds expressions on a path.
pub struct Maker<'a> {
    /// The pool that stores them.
    pub pool: &'a mut Pool,
    /// The facts about the path.
    pub facts: &'a Facts,
}

/// A constant and multiples of terms.
struct Linear {
    constant: u64,
    terms: Vec<(Id, u64)>,
}

impl Linear {
    fn scaled(mut self, by: u64) -> Linear {
        self.constant = self.constant.wrapping_mul(by);
        self.terms.iter_mut().for_each(|(_, own)| *own = own.wrapping_mul(by));
        self
    }

    fn plus(mut self, other: Linear) -> Linear {
        self.constant = self.constant.wrapping_add(other.constant);
        self.terms.extend(other.terms);
        self
    }
}

/// The factor of each term, without terms of factor 0.
fn collected(terms: impl IntoIterator<Item = (Id, u64)>) -> BTreeMap<Id, u64> {
    let mut by_term: BTreeMap<Id, u64> = BTreeMap::new();
    for (term, by) in terms {
        let own = by_term.entry(term).or_default();
        *own = own.wrapping_add(by);
    }
    by_term.retain(|_, by| *by != 0);
    by_term
}

impl Maker<'_> {
    /// A number.
    pub fn number(&mut self, number: u64) -> Id {
        self.pool.number(number)
    }

    fn hull(&self, id: Id) -> (u64, u64) {
        self.facts.hull(self.pool, id)
    }

    fn linear(&self, id: Id) -> Linear {
        match self.pool.node(id) {
            Node::Const(number) => Linear { constant: *number, terms: vec![] },
            Node::Sum(constant, terms) => Linear { constant: *constant, terms: terms.to_vec() },
            Node::Cat(parts) => {
                let constant = parts.first().and_then(|(_, part)| self.pool.constant(*part));
                let terms = parts.iter().skip(usize::from(constant.is_some()));
                let terms = terms.map(|(low, part)| (*part, 1 << low)).collect();
                Linear { constant: constant.unwrap_or(0), terms }
            }
            _ => Linear { constant: 0, terms: vec![(id, 1)] },
        }
    }

    fn sum_of(&mut self, mut sum: Linear) -> Id {
        let mut by_term = collected(sum.terms);
        self.join_bits(&mut by_term);
        self.fold(&mut by_term, &mut sum.constant);
        let terms: Vec<(Id, u64)> = by_term.into_iter().collect();
        match (sum.constant, terms.as_slice()) {
            (number, []) => return self.number(number),
            (0, [(only, 1)]) => return *only,
            _ => {}
        }
        let mut used = sum.constant;
        let apart = terms.iter().all(|(term, by)| {
            let low = by.trailing_zeros() as u8;
            let fits = by.is_power_of_two() && low + self.pool.width(*term) <= 64;
            let mask = if fits { ones(self.pool.width(*term)) << low } else { u64::MAX };
            let free = used & mask == 0;
            used |= mask;
            fits && free
        });
        if apart {
            let parts = terms.iter().map(|(term, by)| (by.trailing_zeros() as u8, *term));
            let constant = (sum.constant != 0).then(|| (0, self.pool.number(sum.constant)));
            let mut parts: Vec<(u8, Id)> = parts.collect();
            parts.sort_unstable();
            let parts = constant.into_iter().chain(parts).collect();
            return self.pool.add(Node::Cat(parts));
        }
        self.pool.add(Node::Sum(sum.constant, terms.into()))
    }

    /// Joins adjacent bits, up to a number of 64 bits.
    pub(super) fn join_bits(&mut self, terms: &mut BTreeMap<Id, u64>) {
        loop {
            let bits: Vec<(Bits, Id, u64)> = terms
                .iter()
                .filter_map(|(id, by)| match self.pool.node(*id) {
                    Node::Atom(Atom::Bits(bits)) => Some((*bits, *id, *by)),
                    _ => None,
                })
                .collect();
            let pair = bits.iter().find_map(|(low, low_id, low_by)| {
                let high = bits.iter().find(|(high, _, by)| {
                    high.root == low.root
                        && high.end() == low.bit
                        && high.width + low.width <= 64
                        && low_by.checked_shl(low.width.into()) == Some(*by)
                        && low_by << low.width >> low.width == *low_by
                });
                high.map(|(high, high_id, _)| (*high, *high_id, *low, *low_id, *low_by))
            });
            let Some((high, high_id, low, low_id, by)) = pair else { return };
            terms.remove(&high_id);
            terms.remove(&low_id);
            let whole = Bits { width: high.width + low.width, ..high };
            let whole = self.pool.atom(Atom::Bits(whole));
            let own = terms.entry(whole).or_default();
            *own = own.wrapping_add(by);
        }
    }

    /// Finds the two halves of a one's complement sum.
    fn fold(&mut self, terms: &mut BTreeMap<Id, u64>, constant: &mut u64) {
        let pair = terms.iter().find_map(|(low, by)| {
            let high = terms.iter().find_map(|(high, same)| {
                self.pool.folded(*low, *high).filter(|_| by == same).map(|sum| (*high, sum))
            });
            high.map(|(high, sum)| (*low, high, sum, *by))
        });
        if let Some((low, high, sum, by)) = pair {
            terms.remove(&low);
            terms.remove(&high);
            let (folded, by) = match self.update_of_fold(sum) {
                // Whoever writes the checksum writes the complement.
                Some(update) => {
                    *constant = constant.wrapping_add(0xffff_u64.wrapping_mul(by));
                    (update, by.wrapping_neg())
                }
                None => (self.pool.add(Node::Fold(sum)), by),
            };
            let own = terms.entry(folded).or_default();
            *own = own.wrapping_add(by);
            terms.retain(|_, by| *by != 0);
        }
    }

    /// Adjacent parts, each with the position of its lowest bit.
    pub fn cat(&mut self, parts: &[(u8, Id)]) -> Id {
        let mut flat = Linear { constant: 0, terms: vec![] };
        for &(low, part) in parts {
            flat = flat.plus(match self.pool.node(part) {
                Node::Cat(_) | Node::Const(_) | Node::Sum(..) => self.linear(part).scaled(1 << low),
                _ => Linear { constant: 0, terms: vec![(part, 1 << low)] },
            });
        }
        self.sum_of(flat)
    }

    /// `a + b * by`, wrapping.
    pub fn add(&mut self, a: Id, b: Id, by: u64) -> Id {
        let sum = self.linear(a).plus(self.linear(b).scaled(by));
        self.sum_of(sum)
    }

    /// The offset that is `by` bytes after another one.
    pub fn offset(&mut self, place: Id, by: i64) -> Id {
        let mut sum = self.linear(place);
        sum.constant = sum.constant.wrapping_add(by as u64);
        self.sum_of(sum)
    }

    /// The offset with numbers for the terms of which the facts know the value.
    pub fn settled(&mut self, place: Id) -> Id {
        let Linear { mut constant, terms } = self.linear(place);
        let mut open = vec![];
        for (term, by) in terms {
            match self.facts.known(self.pool, term).only() {
                Some(number) => constant = constant.wrapping_add(number.wrapping_mul(by)),
                None => open.push((term, by)),
            }
        }
        self.sum_of(Linear { constant, terms: open })
    }

    /// An offset without its constant part, and the constant part.
    pub fn root(&mut self, place: Id) -> (Id, i64) {
        let mut sum = self.linear(place);
        let constant = std::mem::take(&mut sum.constant);
        (self.sum_of(sum), constant as i64)
    }

    /// `a - b` over the integers, if both are known to be small and not to wrap: the sum's constant and
    /// terms.
    fn difference(&self, a: Id, b: Id) -> Option<(i128, Vec<(Id, u64)>)> {
        for side in [a, b] {
            let Linear { constant, terms } = self.linear(side);
            self.facts.small_sum(self.pool, constant, &terms).filter(|(low, _)| *low >= 0)?;
        }
        let sum = self.linear(a).plus(self.linear(b).scaled(u64::MAX));
        Some((signed(sum.constant), collected(sum.terms).into_iter().collect()))
    }

    /// The smallest and the largest value of `a - b`, if they do not wrap.
    pub fn gap(&self, a: Id, b: Id) -> Option<(i128, i128)> {
        let (constant, terms) = self.difference(a, b)?;
        let (mut low, mut high) = self.facts.small_sum(self.pool, 0, &terms)?;
        // A difference that a condition bounds also bounds every other difference, by the terms that the
        // two do not share.
        for (first, last, other) in self.facts.differences(self.pool) {
            for sign in [1, u64::MAX] {
                let less = other.iter().map(|(term, by)| (*term, by.wrapping_mul(sign).wrapping_neg()));
                let rest = collected(terms.iter().copied().chain(less));
                if rest.len() >= terms.len() + other.len() {
                    continue;
                }
                let rest: Vec<(Id, u64)> = rest.into_iter().collect();
                let Some((least, most)) = self.facts.small_sum(self.pool, 0, &rest) else { continue };
                let (first, last) = if sign == 1 { (first, last) } else { (-last, -first) };
                (low, high) = (low.max(first + least), high.min(last + most));
            }
        }
        Some((low + constant, high + constant))
    }

    /// Bits of a number: the lowest bit, and the number of bits.
    pub fn slice(&mut self, id: Id, low: u8, width: u8) -> Id {
        let bits = self.pool.width(id);
        if low >= bits || width == 0 {
            return self.number(0);
        }
        let width = width.min(bits - low);
        if low == 0 && self.hull(id).1 <= ones(width) {
            return id;
        }
        match self.pool.node(id).clone() {
            Node::Const(number) => self.number(number >> low & ones(width)),
            Node::Atom(Atom::Bits(bits)) => self.pool.atom(Atom::Bits(bits.part(low, width))),
            Node::Read(log, bits) => self.read_after(log, bits.part(low, width)),
            Node::Slice(of, inner, _) => self.slice(of, inner + low, width),
            Node::Cat(parts) => {
                let parts = parts.iter().map(|(at, part)| (*at, *part, self.pool.width(*part)));
                let parts: Vec<(u8, Id, u8)> = parts.collect();
                self.slice_of_parts(&parts, low, width)
            }
            Node::Sum(constant, terms) => match self.halves(constant, &terms) {
                Some((at, [least, most])) => self.slice_of_halves(at, [least, most], low, width),
                None => self.pool.add(Node::Slice(id, low, width)),
            },
            _ => self.pool.add(Node::Slice(id, low, width)),
        }
    }

    /// Bits of adjacent parts, each with the position of its lowest bit and its number of bits.
    fn slice_of_parts(&mut self, parts: &[(u8, Id, u8)], low: u8, width: u8) -> Id {
        let (from, to) = (u32::from(low), u32::from(low) + u32::from(width));
        let mut kept = vec![];
        for &(at, part, bits) in parts {
            let (start, end) = (u32::from(at), u32::from(at) + u32::from(bits));
            let (first, last) = (start.max(from), end.min(to));
            if first < last {
                let piece = self.slice(part, (first - start) as u8, (last - first) as u8);
                kept.push(((first - from) as u8, piece));
            }
        }
        self.cat(&kept)
    }

    /// Bits of a number of two halves.
    fn slice_of_halves(&mut self, at: u8, [least, most]: [Linear; 2], low: u8, width: u8) -> Id {
        let end = low + width;
        let mut parts = vec![];
        if low < at {
            let least = self.sum_of(least);
            parts.push((0, self.slice(least, low, end.min(at) - low)));
        }
        if end > at {
            let (most, from) = (self.sum_of(most), low.max(at));
            parts.push((from - low, self.slice(most, from - at, end - from)));
        }
        self.cat(&parts)
    }

    /// The halves of a sum, where the facts know that they have no bit in common, and the lowest bit of the upper one: a
    /// TTL that was decremented is still one byte beside the protocol, since it was not 0.
    fn halves(&mut self, constant: u64, terms: &[(Id, u64)]) -> Option<(u8, [Linear; 2])> {
        let all = terms.iter().map(|(_, by)| *by).chain([constant]);
        let mut starts: Vec<u8> = all.map(|by| by.trailing_zeros() as u8).collect();
        starts.retain(|at| (1..64).contains(at));
        starts.sort_unstable();
        starts.dedup();
        starts.into_iter().rev().find_map(|at| self.halves_at(at, constant, terms))
    }

    fn halves_at(&mut self, at: u8, constant: u64, terms: &[(Id, u64)]) -> Option<(u8, [Linear; 2])> {
        let shifted = |number: u64| (signed(number) >> at) as u64;
        let (mut least, mut most) = (vec![], vec![]);
        for &(term, by) in terms {
            let low = by.trailing_zeros() as u8;
            let is_plain = matches!(self.pool.node(term), Node::Atom(Atom::Bits(_)));
            if low >= at {
                most.push((term, shifted(by)));
            } else if by.is_power_of_two() && is_plain && low + self.pool.width(term) > at {
                let within = at - low;
                least.push((self.slice(term, 0, within), by));
                most.push((self.slice(term, within, 64 - within), 1));
            } else {
                least.push((term, by));
            }
        }
        // What the constant adds to the lower half may be less than 0.
        let inner = constant & ones(at);
        let inner = [inner, inner.wrapping_sub(1 << at)].into_iter().find(|inner| {
            let range = self.facts.small_sum_around(self.pool, *inner, &least);
            range.is_some_and(|(_, last)| last <= i128::from(ones(at)))
        })?;
        let most = Linear { constant: shifted(constant.wrapping_sub(inner)), terms: most };
        Some((at, [Linear { constant: inner, terms: least }, most]))
    }

    /// Bits that may be set.
    fn mask(&self, id: Id) -> u64 {
        match self.pool.node(id) {
            Node::Const(number) => *number,
            Node::Cat(parts) => parts.iter().fold(0, |all, (low, part)| all | self.mask(*part) << low),
            Node::Sum(constant, terms) => {
                let all = terms.iter().fold(*constant, |all, (_, by)| all | by);
                let low = all.trailing_zeros().min(63);
                ones(64 - self.hull(id).1.leading_zeros() as u8) >> low << low
            }
            _ => ones(self.pool.width(id)),
        }
    }

    /// At most one operand of the following three is a constant.
    fn and(&mut self, a: Id, b: Id) -> Id {
        match (self.pool.constant(a), self.pool.constant(b)) {
            (Some(_), None) => return self.and(b, a),
            (None, Some(mask)) => {
                let mask = mask & ones(self.pool.width(a));
                let runs = runs(mask);
                if runs.len() <= MAX_RUNS {
                    let parts: Vec<(u8, Id)> =
                        runs.into_iter().map(|(low, width)| (low, self.slice(a, low, width))).collect();
                    return self.cat(&parts);
                }
            }
            (None, None) if a == b => return a,
            // Only the lowest bit of the other operand remains, which is a truth value as well.
            (None, None) if self.pool.is_truth(a) || self.pool.is_truth(b) => {
                let (a, b) = (self.slice(a, 0, 1), self.slice(b, 0, 1));
                return self.connected(BinOp::And, a, b);
            }
            _ => {}
        }
        self.pool.add(Node::Bin(BinOp::And, a.min(b), a.max(b)))
    }

    fn or(&mut self, a: Id, b: Id) -> Id {
        if a == b {
            return a;
        }
        if self.mask(a) & self.mask(b) == 0 {
            return self.cat(&[(0, a), (0, b)]);
        }
        if self.pool.is_truth(a) && self.pool.is_truth(b) {
            return self.connected(BinOp::Or, a, b);
        }
        self.pool.add(Node::Bin(BinOp::Or, a.min(b), a.max(b)))
    }

    fn xor(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = if self.pool.constant(a).is_some() { (b, a) } else { (a, b) };
        match (self.pool.constant(a), self.pool.constant(b)) {
            (None, Some(0)) => return a,
            // All ones minus a number that is not larger.
            (None, Some(all)) if all.wrapping_add(1) & all == 0 && self.hull(a).1 <= all => {
                let constant = self.number(all);
                return self.add(constant, a, u64::MAX);
            }
            _ if a == b => return self.number(0),
            _ => {}
        }
        self.pool.add(Node::Bin(BinOp::Xor, a.min(b), a.max(b)))
    }

    /// Two-operand arithmetic.
    pub fn bin(&mut self, op: BinOp, a: Id, b: Id) -> Id {
        let (x, y) = (self.pool.constant(a), self.pool.constant(b));
        if let (Some(x), Some(y)) = (x, y) {
            return self.number(op.apply(x, y));
        }
        match (op, x, y) {
            (BinOp::Add, ..) => self.add(a, b, 1),
            (BinOp::Sub, ..) => self.add(a, b, u64::MAX),
            (BinOp::Mul, Some(by), _) => self.scaled(b, by),
            (BinOp::Mul, _, Some(by)) => self.scaled(a, by),
            (BinOp::Mul, ..) => self.pool.add(Node::Bin(op, a.min(b), a.max(b))),
            (BinOp::Rem, _, Some(by)) if by.is_power_of_two() => self.slice(a, 0, by.trailing_zeros() as u8),
            (BinOp::Rem, _, Some(0)) => self.number(0),
            (BinOp::And, ..) => self.and(a, b),
            (BinOp::Or, ..) => self.or(a, b),
            (BinOp::Xor, ..) => self.xor(a, b),
            (BinOp::Shl | BinOp::Shr, _, Some(64..)) => self.number(0),
            (BinOp::Shl, _, Some(by)) => self.scaled(a, 1 << by),
            (BinOp::Shr, _, Some(by)) => self.slice(a, by as u8, 64 - by as u8),
            (BinOp::Eq, ..) => self.equal(a, b),
            (BinOp::Ne, ..) => {
                let equal = self.equal(a, b);
                self.not(equal)
            }
            (BinOp::Le, ..) => self.at_most(a, b),
            (BinOp::Lt, ..) => {
                let other = self.at_most(b, a);
                self.not(other)
            }
            (BinOp::Min, ..) => self.smaller(a, b),
            (BinOp::Rem | BinOp::Shl | BinOp::Shr, ..) => self.pool.add(Node::Bin(op, a, b)),
        }
    }

    pub(super) fn scaled(&mut self, id: Id, by: u64) -> Id {
        let low = by.trailing_zeros() as u8;
        // Bits that are shifted out are removed first, so that fields stay fields.
        let moved = match by.is_power_of_two() && low < 64 && !matches!(self.pool.node(id), Node::Sum(..)) {
            true => self.slice(id, 0, 64 - low),
            false => id,
        };
        let sum = match self.pool.node(moved) {
            Node::Slice(..) => Linear { constant: 0, terms: vec![(moved, by)] },
            _ => self.linear(moved).scaled(by),
        };
        self.sum_of(sum)
    }

    fn smaller(&mut self, a: Id, b: Id) -> Id {
        let orders = [self.at_most(a, b), self.at_most(b, a)];
        match orders.map(|order| self.pool.constant(order)) {
            [Some(1), _] | [_, Some(0)] => a,
            [Some(_), _] | [_, Some(_)] => b,
            [None, None] => self.pool.add(Node::Bin(BinOp::Min, a.min(b), a.max(b))),
        }
    }

    fn equal(&mut self, a: Id, b: Id) -> Id {
        if a == b {
            return self.number(1);
        }
        match (self.pool.constant(a), self.pool.constant(b)) {
            (_, Some(number)) => return self.is_in(a, &IntervalSet::one(number)),
            (Some(number), None) => return self.is_in(b, &IntervalSet::one(number)),
            _ => {}
        }
        if let Some((low, high)) = self.gap(a, b) {
            if low > 0 || high < 0 {
                return self.number(0);
            }
            return self.biased(a, b, IntervalSet::one);
        }
        let difference = self.add(a, b, u64::MAX);
        match self.pool.constant(difference) {
            Some(number) => self.number(u64::from(number == 0)),
            None => self.pool.add(Node::Bin(BinOp::Eq, a.min(b), a.max(b))),
        }
    }

    /// Whether `a <= b`.
    pub fn at_most(&mut self, a: Id, b: Id) -> Id {
        if a == b {
            return self.number(1);
        }
        match (self.pool.constant(a), self.pool.constant(b)) {
            (Some(x), Some(y)) => return self.number(u64::from(x <= y)),
            (None, Some(most)) => return self.is_in(a, &IntervalSet::range(0, most)),
            (Some(least), None) => return self.is_in(b, &IntervalSet::range(least, u64::MAX)),
            _ => {}
        }
        let (from, to) = (self.hull(a), self.hull(b));
        if from.1 <= to.0 || from.0 > to.1 {
            return self.number(u64::from(from.1 <= to.0));
        }
        if let Some((low, high)) = self.gap(b, a) {
            if low >= 0 || high < 0 {
                return self.number(u64::from(low >= 0));
            }
            return self.biased(b, a, |zero| IntervalSet::range(zero, u64::MAX));
        }
        self.pool.add(Node::Bin(BinOp::Le, a, b))
    }

    /// Whether `a - b`, which does not wrap, is in a set of numbers to which [`BIAS`] was added. The
    /// difference is normalised: without its constant and its sign, so that one expression serves all
    /// conditions on it.
    fn biased(&mut self, a: Id, b: Id, set: impl Fn(u64) -> IntervalSet) -> Id {
        let Some((constant, mut terms)) = self.difference(a, b) else { return self.number(0) };
        let mut set = set((i128::from(BIAS) - constant) as u64);
        if terms.first().is_some_and(|(_, by)| signed(*by) < 0) {
            terms.iter_mut().for_each(|(_, by)| *by = by.wrapping_neg());
            let turned = set.intervals().iter().map(|(first, last)| {
                let turn =
                    |n: u64| (2 * i128::from(BIAS) - i128::from(n)).clamp(0, i128::from(u64::MAX)) as u64;
                (turn(*last), turn(*first))
            });
            set = IntervalSet::from_intervals(turned);
        }
        if let [(term, by)] = *terms {
            return self.is_in(term, &unscaled(&set, BIAS, signed(by)));
        }
        let sum = self.pool.add(Node::Sum(BIAS, terms.into()));
        self.is_in(sum, &set)
    }

    /// Whether a number is not 0.
    pub fn truth(&mut self, id: Id) -> Id {
        match self.pool.node(id) {
            Node::In(..) => id,
            _ if self.pool.connective(id).is_some() => id,
            _ => self.is_in(id, &IntervalSet::range(1, u64::MAX)),
        }
    }

    /// Whether a truth value is 0.
    pub fn not(&mut self, id: Id) -> Id {
        self.is_in(id, &IntervalSet::one(0))
    }

    /// Two truth values under `and` or `or`.
    fn connected(&mut self, op: BinOp, a: Id, b: Id) -> Id {
        let (a, b) = (self.truth(a), self.truth(b));
        // If one side has this value, it decides.
        let decisive = u64::from(op == BinOp::Or);
        match (self.pool.constant(a), self.pool.constant(b)) {
            (Some(side), _) | (_, Some(side)) if side == decisive => return self.number(decisive),
            (Some(_), _) => return b,
            (_, Some(_)) => return a,
            _ if a == b => return a,
            _ => {}
        }
        if let (Node::In(of, set), Node::In(same, other)) = (self.pool.node(a), self.pool.node(b))
            && of == same
        {
            let set = if op == BinOp::Or { set.union(other) } else { set.intersection(other) };
            return self.is_in(*of, &set);
        }
        self.pool.add(Node::Bin(op, a.min(b), a.max(b)))
    }

    /// Whether a number is in a set, as a condition on the simplest number that decides it.
    pub fn is_in(&mut self, id: Id, set: &IntervalSet) -> Id {
        let set = set.intersection(&IntervalSet::range(0, self.pool.max(id)));
        let known = self.facts.known(self.pool, id);
        if set.covers(&known) {
            return self.number(1);
        }
        if !set.meets(&known) {
            return self.number(0);
        }
        if let Some((op, a, b)) = self.pool.connective(id) {
            if set.contains(1) {
                return id;
            }
            let (a, b) = (self.not(a), self.not(b));
            return self.connected(if op == BinOp::And { BinOp::Or } else { BinOp::And }, a, b);
        }
        match self.pool.node(id).clone() {
            // A truth value that is 0, or 1: all other cases were decided above.
            Node::In(of, inner) => match set.contains(1) {
                true => id,
                false => {
                    let others = inner.complement(self.pool.max(of));
                    self.is_in(of, &others)
                }
            },
            // It is not 0 where one of the two is not 0.
            Node::Bin(BinOp::Or, a, b) if set.complement(self.pool.max(id)) == IntervalSet::one(0) => {
                let (a, b) = (self.truth(a), self.truth(b));
                self.connected(BinOp::Or, a, b)
            }
            Node::Bin(BinOp::Or, a, b) if set == IntervalSet::one(0) => {
                let (a, b) = (self.not(a), self.not(b));
                self.connected(BinOp::And, a, b)
            }
            Node::Cat(parts) => self.cat_in(id, &parts, &set),
            Node::Sum(constant, terms) => match *terms {
                [(term, 1)] => self.is_in(term, &set.shifted_down(constant)),
                [(term, by)] if self.facts.small_sum_around(self.pool, constant, &terms).is_some() => {
                    self.is_in(term, &unscaled(&set, constant, signed(by)))
                }
                _ => self.pool.add(Node::In(id, set)),
            },
            Node::Select(c, a, b) => {
                let (yes, no) = (self.is_in(a, &set), self.is_in(b, &set));
                match (self.pool.constant(yes), self.pool.constant(no)) {
                    (Some(yes), Some(no)) if yes == no => self.number(yes),
                    (Some(1), Some(_)) => self.truth(c),
                    (Some(_), Some(_)) => {
                        let c = self.truth(c);
                        self.not(c)
                    }
                    _ => self.pool.add(Node::In(id, set)),
                }
            }
            _ => self.pool.add(Node::In(id, set)),
        }
    }

    /// A number of parts equals a number if each part equals its share; it is not 0 if one part is not 0.
    fn cat_in(&mut self, id: Id, parts: &[(u8, Id)], set: &IntervalSet) -> Id {
        if let [(low, part)] = *parts {
            return self.is_in(part, &unscaled(set, 0, 1 << low));
        }
        let others = set.complement(self.pool.max(id));
        let (number, all) = match (set.only(), others.only()) {
            (Some(number), _) => (number, true),
            (None, Some(number)) => (number, false),
            _ => return self.pool.add(Node::In(id, set.clone())),
        };
        if parts.len() > MAX_PARTS || number & !self.mask(id) != 0 {
            return match number & !self.mask(id) != 0 {
                true => self.number(u64::from(!all)),
                false => self.pool.add(Node::In(id, set.clone())),
            };
        }
        let mut result = self.number(1);
        for &(low, part) in parts {
            let share = match self.pool.constant(part) {
                Some(own) => {
                    let fits = number & own == own;
                    self.number(u64::from(fits))
                }
                None => {
                    let share = number >> low & ones(self.pool.width(part));
                    self.is_in(part, &IntervalSet::one(share))
                }
            };
            result = self.connected(BinOp::And, result, share);
        }
        if all { result } else { self.not(result) }
    }

    /// The second operand where the first is not 0, else the third.
    pub fn select(&mut self, c: Id, a: Id, b: Id) -> Id {
        let c = self.truth(c);
        match (self.pool.constant(c), self.pool.constant(a), self.pool.constant(b)) {
            (Some(0), ..) => b,
            (Some(_), ..) => a,
            _ if a == b => a,
            (_, Some(1), Some(0)) => c,
            (_, Some(0), Some(1)) => self.not(c),
            _ => self.pool.add(Node::Select(c, a, b)),
        }
    }

    /// Simplifies a truth value again, with the facts that are known now.
    pub fn again(&mut self, id: Id) -> Id {
        if let Some((op, a, b)) = self.pool.connective(id) {
            let (a, b) = (self.again(a), self.again(b));
            return self.connected(op, a, b);
        }
        match self.pool.node(id).clone() {
            Node::In(of, set) => {
                let of = match self.pool.node(of).clone() {
                    Node::Select(c, a, b) => {
                        let c = self.again(c);
                        self.select(c, a, b)
                    }
                    Node::Bin(BinOp::Min, a, b) => self.smaller(a, b),
                    Node::Bin(BinOp::Le, a, b) => self.at_most(a, b),
                    Node::Bin(BinOp::Eq, a, b) => self.equal(a, b),
                    _ => of,
                };
                self.is_in(of, &set)
            }
            Node::Bin(BinOp::Le, a, b) => self.at_most(a, b),
            Node::Bin(BinOp::Eq, a, b) => self.equal(a, b),
            _ => id,
        }
    }
}

/// The numbers `n` for which `constant + n * by`, which does not wrap, is in the set.
fn unscaled(set: &IntervalSet, constant: u64, by: i128) -> IntervalSet {
    let without = |number: u64| i128::from(number) - signed(constant);
    let parts = set.intervals().iter();
    let parts = parts.filter_map(|(first, last)| quotients(without(*first), without(*last), by));
    IntervalSet::from_intervals(parts)
}

/// Runs of ones: the lowest bit of each, and its length.
fn runs(mut mask: u64) -> Vec<(u8, u8)> {
    let mut found = vec![];
    let mut at = 0u32;
    while mask != 0 {
        let skip = mask.trailing_zeros();
        mask >>= skip;
        at += skip;
        let run = mask.trailing_ones();
        found.push((at as u8, run as u8));
        mask = mask.checked_shr(run).unwrap_or(0);
        at += run;
    }
    found
}
