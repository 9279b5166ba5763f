//! Intervals of 64-bit numbers, and what arithmetic makes of them.

use ir::BinOp;

/// The numbers from `lo` to `hi`, both included; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The smallest.
    pub lo: u64,
    /// The largest.
    pub hi: u64,
}

/// All bits up to the highest one of a number.
pub fn fill(number: u64) -> u64 {
    u64::MAX.checked_shr(number.leading_zeros()).unwrap_or(0)
}

impl Range {
    /// All numbers.
    pub const ALL: Range = Range { lo: 0, hi: u64::MAX };

    /// One number.
    pub fn only(number: u64) -> Range {
        Range { lo: number, hi: number }
    }

    /// The numbers from 0.
    pub fn up_to(hi: u64) -> Range {
        Range { lo: 0, hi }
    }

    /// The number where there is but one.
    pub fn number(self) -> Option<u64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Numbers of both; `None` where they have none in common.
    pub fn and(self, other: Range) -> Option<Range> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Range { lo, hi })
    }

    /// The smallest interval that holds both.
    pub fn hull(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn truth(yes: bool, no: bool) -> Range {
        Range { lo: u64::from(yes), hi: u64::from(!no) }
    }

    /// What an operation may yield on numbers of two intervals.
    pub fn of(op: BinOp, a: Range, b: Range) -> Range {
        if let (Some(a), Some(b)) = (a.number(), b.number()) {
            return Range::only(op.apply(a, b));
        }
        let bits = Range::up_to(fill(a.hi | b.hi));
        match op {
            BinOp::Add => match (a.lo.overflowing_add(b.lo), a.hi.overflowing_add(b.hi)) {
                // All sums wrap, or none.
                ((lo, low), (hi, high)) if low == high => Range { lo, hi },
                _ => Range::ALL,
            },
            BinOp::Sub => match (a.lo.overflowing_sub(b.hi), a.hi.overflowing_sub(b.lo)) {
                ((lo, low), (hi, high)) if low == high => Range { lo, hi },
                _ => Range::ALL,
            },
            BinOp::Mul => match a.hi.checked_mul(b.hi) {
                Some(hi) => Range { lo: a.lo * b.lo, hi },
                None => Range::ALL,
            },
            // By 0 it is 0.
            BinOp::Rem if b.lo > a.hi => a,
            BinOp::Rem => Range::up_to(a.hi.min(b.hi.saturating_sub(1))),
            BinOp::And => match (a.number(), b.number()) {
                (_, Some(mask)) => a.masked(mask),
                (Some(mask), _) => b.masked(mask),
                _ => Range::up_to(a.hi.min(b.hi)),
            },
            BinOp::Or => Range { lo: a.lo.max(b.lo), ..bits },
            BinOp::Xor => match b.number() {
                Some(ones) if ones == fill(ones) && a.hi <= ones => {
                    Range { lo: ones - a.hi, hi: ones - a.lo }
                }
                _ => bits,
            },
            BinOp::Shl => match b.number() {
                Some(by) if by < 64 && u64::from(a.hi.leading_zeros()) >= by => {
                    Range { lo: a.lo << by, hi: a.hi << by }
                }
                Some(by) if by >= 64 => Range::only(0),
                _ => Range::ALL,
            },
            BinOp::Shr => match b.number() {
                Some(by) if by < 64 => Range { lo: a.lo >> by, hi: a.hi >> by },
                Some(_) => Range::only(0),
                None => Range::up_to(a.hi),
            },
            BinOp::Eq => Range::truth(false, a.and(b).is_none()),
            BinOp::Ne => Range::truth(a.and(b).is_none(), false),
            BinOp::Lt => Range::truth(a.hi < b.lo, a.lo >= b.hi),
            BinOp::Le => Range::truth(a.hi <= b.lo, a.lo > b.hi),
            BinOp::Min => Range { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        }
    }

    fn masked(self, mask: u64) -> Range {
        // The low bits of numbers that agree in the others keep their order.
        if mask == fill(mask) && self.lo & !mask == self.hi & !mask {
            return Range { lo: self.lo & mask, hi: self.hi & mask };
        }
        Range::up_to(self.hi.min(mask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some(shape: u8, a: u64, b: u64) -> (Range, u64) {
        let (a, b) = match shape % 4 {
            0 => (a % 32, b % 32),
            1 => (a, b),
            2 => (a % 8, b),
            _ => (u64::MAX - a % 32, u64::MAX - b % 32),
        };
        (Range { lo: a.min(b), hi: a.max(b) }, b)
    }

    fn inside(range: Range, pick: u64) -> u64 {
        match (range.hi - range.lo).checked_add(1) {
            Some(count) => range.lo + pick % count,
            None => pick,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]
        #[test]
        fn an_interval_holds_every_result(
            op in 0..BinOp::ALL.len(),
            a in any::<(u8, u64, u64, u64)>(),
            b in any::<(u8, u64, u64, u64)>(),
            same: bool,
        ) {
            let op = BinOp::ALL[op].0;
            let ((left, _), (mut right, single)) = (some(a.0, a.1, a.2), some(b.0, b.1, b.2));
            if same {
                right = Range::only(if b.0 > 100 { fill(single) } else { single });
            }
            let (x, y) = (inside(left, a.3), inside(right, b.3));
            let range = Range::of(op, left, right);
            let result = op.apply(x, y);
            prop_assert!(range.lo <= result && result <= range.hi, "{op:?} {left:?} {right:?} {x} {y}");
        }
    }

    #[test]
    fn intervals_of_small_numbers_are_right() {
        for (op, name) in BinOp::ALL {
            for (alo, ahi, blo, bhi) in (0..6u64).flat_map(|a| {
                (a..6).flat_map(move |b| (0..6u64).flat_map(move |c| (c..6).map(move |d| (a, b, c, d))))
            }) {
                let range = Range::of(op, Range { lo: alo, hi: ahi }, Range { lo: blo, hi: bhi });
                for (x, y) in (alo..=ahi).flat_map(|x| (blo..=bhi).map(move |y| (x, y))) {
                    let result = op.apply(x, y);
                    assert!(range.lo <= result && result <= range.hi, "{name} {x} {y}: {range:?}");
                }
            }
        }
    }
}
