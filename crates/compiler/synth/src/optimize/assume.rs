//! Facts about operands that follow from the outcome of a test.

use super::value::{Expr, Facts, Values, Vn};
use ir::BinOp;
use ir::analysis::interval::{Interval, fill};

/// The depth of operands for which facts are derived.
const ASSUME_DEPTH: u32 = 8;

impl Values {
    /// Records the consequences of a value being 0 or not; false if that is impossible.
    #[must_use]
    pub fn assume(&mut self, value: Vn, truth: bool, facts: &mut Facts) -> bool {
        self.assume_to(value, truth, facts, ASSUME_DEPTH)
    }

    fn assume_to(&mut self, value: Vn, truth: bool, facts: &mut Facts, depth: u32) -> bool {
        let range = if truth { Interval { lo: 1, hi: u64::MAX } } else { Interval::only(0) };
        if !self.assume_range(value, range, facts) {
            return false;
        }
        let Some(depth) = depth.checked_sub(1) else { return true };
        match (self.expr(value), truth) {
            (Expr::Bin(BinOp::Eq, a, b), _) => match self.number(b) {
                Some(0) => self.assume_to(a, !truth, facts, depth),
                _ if truth => {
                    let (left, right) = (self.range(a, facts), self.range(b, facts));
                    self.assume_range(a, right, facts) && self.assume_range(b, left, facts)
                }
                Some(number) => self.assume_not(a, number, facts),
                None => true,
            },
            (Expr::Bin(BinOp::Le, a, b), true) => {
                let (left, right) = (self.range(a, facts), self.range(b, facts));
                self.assume_range(a, Interval::up_to(right.hi), facts)
                    && self.assume_range(b, Interval { lo: left.lo, hi: u64::MAX }, facts)
            }
            (Expr::Bin(BinOp::Le, a, b), false) => {
                let (left, right) = (self.range(a, facts), self.range(b, facts));
                let (Some(above), Some(below)) = (right.lo.checked_add(1), left.hi.checked_sub(1)) else {
                    return false;
                };
                self.assume_range(a, Interval { lo: above, hi: u64::MAX }, facts)
                    && self.assume_range(b, Interval::up_to(below), facts)
            }
            (Expr::Bin(BinOp::And, a, b), true) => {
                // They have bits in common: neither is 0.
                self.assume_to(a, true, facts, depth) && self.assume_to(b, true, facts, depth)
            }
            (Expr::Bin(BinOp::Or, a, b), false) => {
                self.assume_to(a, false, facts, depth) && self.assume_to(b, false, facts, depth)
            }
            _ => true,
        }
    }

    /// Records that a value is not a number.
    #[must_use]
    pub fn assume_not(&mut self, value: Vn, number: u64, facts: &mut Facts) -> bool {
        let Interval { lo, hi } = self.range(value, facts);
        if lo == hi {
            return lo != number;
        }
        let range = match number {
            _ if number == lo => Interval { lo: lo + 1, hi },
            _ if number == hi => Interval { lo, hi: hi - 1 },
            _ => return true,
        };
        self.assume_range(value, range, facts)
    }

    /// Records that a value is in an interval, with the consequences for its operands.
    #[must_use]
    pub fn assume_range(&mut self, value: Vn, range: Interval, facts: &mut Facts) -> bool {
        let now = self.range(value, facts);
        let Some(both) = now.and(range) else { return false };
        if both == now {
            return true;
        }
        facts.set(value, both);
        let Expr::Bin(op, x, c) = self.expr(value) else { return true };
        let Some(by) = self.number(c) else { return true };
        match op {
            BinOp::Add => {
                // Only if the interval of the operand does not wrap.
                let (lo, hi) = (both.lo.wrapping_sub(by), both.hi.wrapping_sub(by));
                if lo <= hi { self.assume_range(x, Interval { lo, hi }, facts) } else { true }
            }
            BinOp::Shr if by < 64 => {
                let low = fill(1 << by >> 1);
                let (lo, hi) = (both.lo << by, both.hi << by | low);
                self.assume_range(x, Interval { lo, hi }, facts)
            }
            BinOp::Shl if by < 64 && self.bits(x) & !(u64::MAX >> by) == 0 => {
                let (lo, hi) = (both.lo.div_ceil(1 << by), both.hi >> by);
                if lo > hi {
                    return false;
                }
                self.assume_range(x, Interval { lo, hi }, facts)
            }
            BinOp::And => self.assume_range(x, Interval { lo: both.lo, hi: u64::MAX }, facts),
            _ => true,
        }
    }
}
