//! Value numbering: expressions that always yield the same value have the same number.
//!
//! A number stands for the value of an expression in one run of a program for one packet. That is well
//! defined for every number, since blocks form no cycle and run once. The expression of a number is valid
//! everywhere. Facts that hold on some paths only are in [`Facts`]; a simplification that uses them yields a
//! number that is valid at that point only.

use ir::BinOp;
use ir::analysis::interval::{Interval, fill};
use ir::analysis::ones_complement::Residue;
use std::collections::HashMap;

/// The number of a value.
pub type Vn = u32;

/// A version of the packet's bytes. Equal versions have the same bytes at the same locations.
pub type Version = u32;

/// How a value is computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// A constant.
    Const(u64),
    /// Arithmetic.
    Bin(BinOp, Vn, Vn),
    /// A choice.
    Select(Vn, Vn, Vn),
    /// A checksum, updated.
    Csum(Vn, Vn, Vn, u8),
    /// The content of a location before any write to it since a version: anchor, bit, width.
    Load(Version, u32, i64, u8),
    /// Bytes from a location to the end of the first segment.
    Avail(Version, u32, i64),
    /// Bytes of the packet.
    Len(Version),
    /// Whether a value is in a set of numbers.
    In(Vn, u32),
    /// An input that is constant during the run: clock, time, hash, port.
    Given(u8),
    /// Equal to no other value.
    Own(u32),
}

#[derive(Clone, Copy)]
struct Node {
    expr: Expr,
    range: Interval,
    /// Bits that may be set.
    bits: u64,
}

/// All values of a program.
#[derive(Default)]
pub struct Values {
    nodes: Vec<Node>,
    known: HashMap<Expr, Vn>,
    sets: HashMap<Vec<u64>, u32>,
    own: u32,
    /// What values are congruent to modulo 0xffff, beside what follows from their expressions.
    pub(super) residues: HashMap<Vn, Residue<Vn>>,
}

/// Facts about some values at one point of the program: intervals, by value number.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Facts(Vec<(Vn, Interval)>);

/// Whether it only states the outcome of a test.
fn is_truth(fact: &(Vn, Interval)) -> bool {
    fact.1.hi <= 1
}

/// Beyond this number facts are discarded, the oldest outcomes of tests first: the work per block stays
/// bounded.
const MOST_FACTS: usize = 96;
/// The depth to which intervals are derived again from facts about operands.
const RANGE_DEPTH: u32 = 4;

impl Facts {
    fn get(&self, value: Vn) -> Option<Interval> {
        let at = self.0.binary_search_by_key(&value, |fact| fact.0).ok()?;
        Some(self.0[at].1)
    }

    pub(super) fn set(&mut self, value: Vn, range: Interval) {
        match self.0.binary_search_by_key(&value, |fact| fact.0) {
            Ok(at) => self.0[at].1 = range,
            Err(at) => {
                self.0.insert(at, (value, range));
                if self.0.len() > MOST_FACTS {
                    let least = self.0.iter().position(is_truth).unwrap_or(0);
                    self.0.remove(least);
                }
            }
        }
    }

    /// The values that are one number.
    pub fn numbers(&self) -> impl Iterator<Item = (Vn, u64)> {
        self.0.iter().filter_map(|(value, range)| Some((*value, range.number()?)))
    }

    /// Keeps only the facts that hold on another path, too.
    pub fn meet(&mut self, other: &Facts) {
        self.0.retain_mut(|(value, range)| {
            let Some(theirs) = other.get(*value) else { return false };
            *range = range.hull(theirs);
            true
        });
    }
}

fn commutes(op: BinOp) -> bool {
    use BinOp::{Add, And, Eq, Min, Mul, Ne, Or, Xor};
    matches!(op, Add | Mul | And | Or | Xor | Eq | Ne | Min)
}

impl Values {
    /// The expression of a value.
    pub fn expr(&self, value: Vn) -> Expr {
        self.nodes[value as usize].expr
    }

    /// The number, if it is a constant.
    pub fn number(&self, value: Vn) -> Option<u64> {
        match self.expr(value) {
            Expr::Const(number) => Some(number),
            _ => None,
        }
    }

    /// Bits that may be set.
    pub fn bits(&self, value: Vn) -> u64 {
        self.nodes[value as usize].bits
    }

    pub(super) fn intern(&mut self, expr: Expr, range: Interval, bits: u64) -> Vn {
        let next = self.nodes.len() as Vn;
        let value = *self.known.entry(expr).or_insert(next);
        if value == next {
            let range = range.and(Interval::up_to(fill(bits))).unwrap_or(range);
            self.nodes.push(Node { expr, range, bits: bits & fill(range.hi) });
        }
        value
    }

    /// A constant.
    pub fn constant(&mut self, number: u64) -> Vn {
        self.intern(Expr::Const(number), Interval::only(number), number)
    }

    /// A value that is equal to no other.
    pub fn own(&mut self, range: Interval) -> Vn {
        self.own += 1;
        self.intern(Expr::Own(self.own), range, fill(range.hi))
    }

    /// A version or number that was not used before.
    pub fn fresh(&mut self) -> u32 {
        self.own += 1;
        self.own
    }

    /// A value without operands.
    pub fn leaf(&mut self, expr: Expr, hi: u64) -> Vn {
        self.intern(expr, Interval::up_to(hi), fill(hi))
    }

    /// Whether a value is one of these numbers, which are sorted.
    pub fn within(&mut self, value: Vn, numbers: Vec<u64>) -> Vn {
        let next = self.sets.len() as u32;
        let set = *self.sets.entry(numbers).or_insert(next);
        self.leaf(Expr::In(value, set), 1)
    }

    /// The possible numbers of a value at a point of the program.
    pub fn range(&self, value: Vn, facts: &Facts) -> Interval {
        self.range_to(value, facts, RANGE_DEPTH)
    }

    fn range_to(&self, value: Vn, facts: &Facts, depth: u32) -> Interval {
        let node = self.nodes[value as usize];
        let mut range = node.range;
        if depth > 0 && range.number().is_none() && !facts.0.is_empty() {
            let inner = match node.expr {
                Expr::Bin(op, a, b) => {
                    Interval::of(op, self.range_to(a, facts, depth - 1), self.range_to(b, facts, depth - 1))
                }
                Expr::Select(_, a, b) => {
                    self.range_to(a, facts, depth - 1).hull(self.range_to(b, facts, depth - 1))
                }
                _ => Interval::ALL,
            };
            range = range.and(inner).unwrap_or(range);
        }
        facts.get(value).and_then(|fact| range.and(fact)).unwrap_or(range)
    }

    /// Whether a value is known to be not 0, or to be 0.
    pub fn truth(&self, value: Vn, facts: &Facts) -> Option<bool> {
        let range = self.range(value, facts);
        if range.lo > 0 {
            return Some(true);
        }
        (range.hi == 0).then_some(false)
    }

    /// Whether `a <= b` is known.
    pub fn is_at_most(&mut self, a: Vn, b: Vn, facts: &Facts) -> bool {
        let test = self.bin(BinOp::Le, a, b, facts);
        self.truth(test, facts) == Some(true)
    }

    fn raw(&mut self, op: BinOp, a: Vn, b: Vn) -> Vn {
        let (left, right) = (self.nodes[a as usize], self.nodes[b as usize]);
        let mut range = Interval::of(op, left.range, right.range);
        let count = right.range.number().and_then(|by| u32::try_from(by).ok());
        let bits = match op {
            BinOp::And => left.bits & right.bits,
            BinOp::Or | BinOp::Xor => left.bits | right.bits,
            BinOp::Shl => count.map_or(u64::MAX, |by| left.bits.checked_shl(by).unwrap_or(0)),
            BinOp::Shr => count.map_or(fill(left.bits), |by| left.bits.checked_shr(by).unwrap_or(0)),
            _ => u64::MAX,
        };
        if op == BinOp::Add
            && let Some(whole) = self.end_around(a, b)
            && self.nodes[whole as usize].range.hi <= 0x1_fffe
        {
            range = range.and(Interval::up_to(0xffff)).unwrap_or(range);
        }
        self.intern(Expr::Bin(op, a, b), range, bits)
    }

    /// `x` where the operands of a sum are `x & 0xffff` and `x >> 16`, in any order: one end-around carry.
    /// For `x` up to 0x1fffe the sum is at most 0xffff: with a carry of 1 the low half is below 0xffff.
    pub fn end_around(&self, a: Vn, b: Vn) -> Option<Vn> {
        let halves = |low: Vn, carry: Vn| match (self.expr(low), self.expr(carry)) {
            (Expr::Bin(BinOp::And, x, mask), Expr::Bin(BinOp::Shr, y, by))
                if x == y && self.number(mask) == Some(0xffff) && self.number(by) == Some(16) =>
            {
                Some(x)
            }
            _ => None,
        };
        halves(a, b).or_else(|| halves(b, a))
    }

    /// Arithmetic at a point of the program.
    pub fn bin(&mut self, op: BinOp, a: Vn, b: Vn, facts: &Facts) -> Vn {
        let value = self.simple(op, a, b, facts);
        self.settled(value, facts)
    }

    /// The constant that a value is at a point of the program, else the value.
    pub fn settled(&mut self, value: Vn, facts: &Facts) -> Vn {
        match self.range(value, facts).number() {
            Some(number) => self.constant(number),
            None => value,
        }
    }

    /// A computed value with another one in the place of one that it is computed from, by at most so many steps.
    pub fn with(&mut self, value: Vn, of: Vn, other: Vn, steps: u32) -> Vn {
        if value == of {
            return other;
        }
        match self.expr(value) {
            Expr::Bin(op, a, b) if steps > 0 => {
                let [a, b] = [a, b].map(|part| self.with(part, of, other, steps - 1));
                self.bin(op, a, b, &Facts::default())
            }
            _ => value,
        }
    }

    /// Arithmetic with a constant at a point of the program.
    pub fn bin_const(&mut self, op: BinOp, a: Vn, number: u64, facts: &Facts) -> Vn {
        let number = self.constant(number);
        self.bin(op, a, number, facts)
    }

    /// The value and the constant that an operation was applied to.
    pub fn with_const(&self, op: BinOp, value: Vn) -> Option<(Vn, u64)> {
        match self.expr(value) {
            Expr::Bin(found, x, c) if found == op => self.number(c).map(|number| (x, number)),
            _ => None,
        }
    }

    /// `x` and `c` where a value is `x + c` without wrapping; `c` may be negative.
    fn offset(&self, value: Vn, facts: &Facts) -> Option<(Vn, i64)> {
        let (x, by) = self.with_const(BinOp::Add, value)?;
        let by = by as i64;
        let range = self.range(x, facts);
        let fits = if by < 0 {
            range.lo >= by.unsigned_abs()
        } else {
            range.hi.checked_add(by.unsigned_abs()).is_some()
        };
        fits.then_some((x, by))
    }

    fn simple(&mut self, op: BinOp, a: Vn, b: Vn, facts: &Facts) -> Vn {
        let (mut a, mut b) = (self.settled(a, facts), self.settled(b, facts));
        if let (Some(a), Some(b)) = (self.number(a), self.number(b)) {
            return self.constant(op.apply(a, b));
        }
        // Constants are on the right, else the older value is on the left.
        if commutes(op) && (self.number(a).is_some() || self.number(b).is_none() && a > b) {
            (a, b) = (b, a);
        }
        if a == b {
            match op {
                BinOp::Sub | BinOp::Xor | BinOp::Ne | BinOp::Lt | BinOp::Rem => return self.constant(0),
                BinOp::Eq | BinOp::Le => return self.constant(1),
                BinOp::And | BinOp::Or | BinOp::Min => return a,
                _ => {}
            }
        }
        match self.number(b) {
            Some(number) => self.simple_const(op, a, number, facts),
            None => self.simple_two(op, a, b, facts),
        }
    }

    fn simple_two(&mut self, op: BinOp, a: Vn, b: Vn, facts: &Facts) -> Vn {
        let (left, right) = (self.range(a, facts), self.range(b, facts));
        match op {
            BinOp::Min if left.hi <= right.lo => return a,
            BinOp::Min if right.hi <= left.lo => return b,
            BinOp::Rem if right.lo > left.hi => return a,
            BinOp::Lt => {
                // Both directions of a comparison are one expression.
                let not = self.bin(BinOp::Le, b, a, facts);
                return self.not(not, facts);
            }
            BinOp::Le => {
                if let Some(number) = self.number(a) {
                    if number == 0 {
                        return self.constant(1);
                    }
                    if let Some((x, by)) = self.offset(b, facts)
                        && let Ok(number) = i64::try_from(number)
                        && let Some(Ok(number)) = number.checked_sub(by).map(u64::try_from)
                    {
                        return self.number_at_most(number, x, facts);
                    }
                }
                // `x + a <= x + b`: the ends of the ranges decide.
                let (x, by) = self.offset(a, facts).unwrap_or((a, 0));
                let (y, other) = self.offset(b, facts).unwrap_or((b, 0));
                if x == y {
                    return self.constant(u64::from(by <= other));
                }
            }
            BinOp::Or if self.bits(a) & self.bits(b) == 0 => {
                // Adjacent parts of one value.
                if let Some(whole) = self.joined(a, b).or_else(|| self.joined(b, a)) {
                    return whole;
                }
            }
            _ => {}
        }
        self.raw(op, a, b)
    }

    fn number_at_most(&mut self, number: u64, x: Vn, facts: &Facts) -> Vn {
        let number = self.constant(number);
        self.bin(BinOp::Le, number, x, facts)
    }

    /// `x` where a value is `x & high` and the other `x & low`, and there are no other bits in `x`.
    fn joined(&self, a: Vn, b: Vn) -> Option<Vn> {
        let ((x, high), (y, low)) = (self.with_const(BinOp::And, a)?, self.with_const(BinOp::And, b)?);
        (x == y && self.bits(x) & !(high | low) == 0).then_some(x)
    }

    /// 1 where a comparison's result is 0, else 0.
    fn not(&mut self, test: Vn, facts: &Facts) -> Vn {
        self.bin_const(BinOp::Eq, test, 0, facts)
    }

    fn simple_const(&mut self, op: BinOp, a: Vn, number: u64, facts: &Facts) -> Vn {
        let range = self.range(a, facts);
        match op {
            BinOp::Sub => return self.bin_const(BinOp::Add, a, number.wrapping_neg(), facts),
            BinOp::Add | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr if number == 0 => return a,
            BinOp::Mul if number == 1 => return a,
            BinOp::Mul | BinOp::And | BinOp::Min if number == 0 => return self.constant(0),
            BinOp::Rem if range.hi < number => return a,
            BinOp::Min if range.hi <= number => return a,
            BinOp::And if fill(range.hi) & self.bits(a) & !number == 0 => return a,
            BinOp::Shr if number < 64 && self.bits(a) >> number == 0 => return self.constant(0),
            BinOp::Ne => {
                let equal = self.bin_const(BinOp::Eq, a, number, facts);
                return self.not(equal, facts);
            }
            // `a < n` is `a <= n - 1`, and that is not `n <= a`.
            BinOp::Lt if number == 0 => return self.constant(0),
            BinOp::Lt => {
                let above = self.number_at_most(number, a, facts);
                return self.not(above, facts);
            }
            BinOp::Le => match number.checked_add(1) {
                None => return self.constant(1),
                Some(number) => {
                    let above = self.number_at_most(number, a, facts);
                    return self.not(above, facts);
                }
            },
            _ => {}
        }
        if let Expr::Bin(inner, x, c) = self.expr(a)
            && let Some(by) = self.number(c)
            && let Some(value) = self.simple_pair((op, number), (inner, by), x, facts)
        {
            return value;
        }
        // The low bits of a sum are those of the sum of the low bits.
        if op == BinOp::And
            && number == fill(number)
            && let Some((x, by)) = self.with_const(BinOp::Add, a)
            && let Some((x, mask)) = self.with_const(BinOp::And, x)
            && number & !mask == 0
        {
            let sum = self.bin_const(BinOp::Add, x, by, facts);
            return self.bin_const(BinOp::And, sum, number, facts);
        }
        if op == BinOp::Eq
            && let Some(value) = self.simple_equal(a, number, range, facts)
        {
            return value;
        }
        // Of a shift and a mask, the shift comes first, so that parts of one value have the same form.
        if op == BinOp::Shr
            && let Some((x, mask)) = self.with_const(BinOp::And, a)
            && number < 64
        {
            let shifted = self.bin_const(BinOp::Shr, x, number, facts);
            return self.bin_const(BinOp::And, shifted, mask >> number, facts);
        }
        // A part of a value that was combined from parts.
        if (op == BinOp::And || op == BinOp::Shr)
            && let Expr::Bin(BinOp::Or, x, y) = self.expr(a)
        {
            let stays = |bits: u64| match op {
                BinOp::And => bits & number != 0,
                _ => number < 64 && bits >> number != 0,
            };
            match (stays(self.bits(x)), stays(self.bits(y))) {
                (true, false) => return self.bin_const(op, x, number, facts),
                (false, true) => return self.bin_const(op, y, number, facts),
                (false, false) => return self.constant(0),
                (true, true) => {}
            }
        }
        let number = self.constant(number);
        self.raw(op, a, number)
    }

    /// An operation with a constant on the result of an operation with a constant.
    fn simple_pair(
        &mut self,
        (op, number): (BinOp, u64),
        (inner, by): (BinOp, u64),
        x: Vn,
        facts: &Facts,
    ) -> Option<Vn> {
        let merged = match (op, inner) {
            (BinOp::Add, BinOp::Add) => number.wrapping_add(by),
            (BinOp::And, BinOp::And) => number & by,
            (BinOp::Or, BinOp::Or) => number | by,
            (BinOp::Xor, BinOp::Xor) => number ^ by,
            (BinOp::Min, BinOp::Min) => number.min(by),
            (BinOp::Shl, BinOp::Shl) | (BinOp::Shr, BinOp::Shr) => number.saturating_add(by),
            (BinOp::Shl, BinOp::Shr) if number == by && by < 64 => {
                return Some(self.bin_const(BinOp::And, x, u64::MAX << by, facts));
            }
            // A shift in one direction and back keeps the bits that were not shifted out.
            (BinOp::Shr, BinOp::Shl) if number < 64 && by < 64 => {
                let inside = u64::MAX >> by;
                if self.bits(x) & !inside != 0 {
                    return (number == by).then(|| self.bin_const(BinOp::And, x, inside, facts));
                }
                return Some(if number >= by {
                    self.bin_const(BinOp::Shr, x, number - by, facts)
                } else {
                    self.bin_const(BinOp::Shl, x, by - number, facts)
                });
            }
            (BinOp::Eq, BinOp::Add) => {
                return Some(self.bin_const(BinOp::Eq, x, number.wrapping_sub(by), facts));
            }
            (BinOp::Eq, BinOp::Xor) => return Some(self.bin_const(BinOp::Eq, x, number ^ by, facts)),
            // Bits that a mask removes cannot be equal to ones.
            (BinOp::Eq, BinOp::And) if number & !by != 0 => return Some(self.constant(0)),
            (BinOp::Eq, BinOp::Or) if by & !number != 0 => return Some(self.constant(0)),
            _ => return None,
        };
        Some(self.bin_const(op, x, merged, facts))
    }

    fn simple_equal(&mut self, a: Vn, number: u64, range: Interval, facts: &Facts) -> Option<Vn> {
        if number & !self.bits(a) != 0 {
            return Some(self.constant(0));
        }
        if range.hi > 1 {
            return None;
        }
        if number == 1 {
            return Some(a);
        }
        // A negation of a negation.
        let (x, 0) = self.with_const(BinOp::Eq, a)? else { return None };
        (self.range(x, facts).hi <= 1).then_some(x)
    }

    /// A choice at a point of the program.
    pub fn select(&mut self, test: Vn, yes: Vn, no: Vn, facts: &Facts) -> Vn {
        match self.truth(test, facts) {
            Some(true) => return self.settled(yes, facts),
            Some(false) => return self.settled(no, facts),
            None if yes == no => return self.settled(yes, facts),
            None => {}
        }
        let range = self.nodes[yes as usize].range.hull(self.nodes[no as usize].range);
        let bits = self.bits(yes) | self.bits(no);
        let value = self.intern(Expr::Select(test, yes, no), range, bits);
        self.settled(value, facts)
    }
}
