//! Intervals of 64-bit numbers, and the effect of instructions on them.
//!
//! An interval may contain more numbers than are possible, never fewer. All operations are those of programs:
//! they wrap, and their comparisons are unsigned.

mod set;

pub use set::{IntervalSet, ones};

use crate::program::{BinOp, Inst, Value};

/// The upper bound of a packet's offsets and lengths.
const MOST_BYTES: u64 = u32::MAX as u64;

/// The numbers from `lo` to `hi`, both included; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// The smallest.
    pub lo: u64,
    /// The largest.
    pub hi: u64,
}

/// All bits up to the highest one of a number.
pub fn fill(number: u64) -> u64 {
    u64::MAX.checked_shr(number.leading_zeros()).unwrap_or(0)
}

impl Interval {
    /// All numbers.
    pub const ALL: Interval = Interval { lo: 0, hi: u64::MAX };

    /// One number.
    pub fn only(number: u64) -> Interval {
        Interval { lo: number, hi: number }
    }

    /// The numbers from 0.
    pub fn up_to(hi: u64) -> Interval {
        Interval { lo: 0, hi }
    }

    /// The number, if the interval has only one.
    pub fn number(self) -> Option<u64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Numbers in both; `None` where they have none in common.
    pub fn and(self, other: Interval) -> Option<Interval> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Interval { lo, hi })
    }

    /// The smallest interval that contains both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    fn truth(yes: bool, no: bool) -> Interval {
        Interval { lo: u64::from(yes), hi: u64::from(!no) }
    }

    /// The possible results of an operation on numbers of two intervals.
    pub fn of(op: BinOp, a: Interval, b: Interval) -> Interval {
        if let (Some(a), Some(b)) = (a.number(), b.number()) {
            return Interval::only(op.apply(a, b));
        }
        let bits = Interval::up_to(fill(a.hi | b.hi));
        match op {
            BinOp::Add => match (a.lo.overflowing_add(b.lo), a.hi.overflowing_add(b.hi)) {
                // Either all sums wrap, or none does.
                ((lo, low), (hi, high)) if low == high => Interval { lo, hi },
                _ => Interval::ALL,
            },
            BinOp::Sub => match (a.lo.overflowing_sub(b.hi), a.hi.overflowing_sub(b.lo)) {
                ((lo, low), (hi, high)) if low == high => Interval { lo, hi },
                _ => Interval::ALL,
            },
            BinOp::Mul => match a.hi.checked_mul(b.hi) {
                Some(hi) => Interval { lo: a.lo * b.lo, hi },
                None => Interval::ALL,
            },
            // The remainder by 0 is 0.
            BinOp::Rem if b.lo > a.hi => a,
            BinOp::Rem => Interval::up_to(a.hi.min(b.hi.saturating_sub(1))),
            BinOp::And => match (a.number(), b.number()) {
                (_, Some(mask)) => a.masked(mask),
                (Some(mask), _) => b.masked(mask),
                _ => Interval::up_to(a.hi.min(b.hi)),
            },
            BinOp::Or => Interval { lo: a.lo.max(b.lo), ..bits },
            BinOp::Xor => match b.number() {
                Some(ones) if ones == fill(ones) && a.hi <= ones => {
                    Interval { lo: ones - a.hi, hi: ones - a.lo }
                }
                _ => bits,
            },
            BinOp::Shl => match b.number() {
                Some(by) if by < 64 && u64::from(a.hi.leading_zeros()) >= by => {
                    Interval { lo: a.lo << by, hi: a.hi << by }
                }
                Some(by) if by >= 64 => Interval::only(0),
                // Numbers and counts are so small that no bit is lost.
                None if b.hi < 64 && u64::from(a.hi.leading_zeros()) >= b.hi => {
                    Interval { lo: a.lo << b.lo, hi: a.hi << b.hi }
                }
                _ => Interval::ALL,
            },
            BinOp::Shr => match b.number() {
                Some(by) if by < 64 => Interval { lo: a.lo >> by, hi: a.hi >> by },
                Some(_) => Interval::only(0),
                None => Interval { lo: BinOp::Shr.apply(a.lo, b.hi), hi: BinOp::Shr.apply(a.hi, b.lo) },
            },
            BinOp::Eq => Interval::truth(false, a.and(b).is_none()),
            BinOp::Ne => Interval::truth(a.and(b).is_none(), false),
            BinOp::Lt => Interval::truth(a.hi < b.lo, a.lo >= b.hi),
            BinOp::Le => Interval::truth(a.hi <= b.lo, a.lo > b.hi),
            BinOp::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
        }
    }

    fn masked(self, mask: u64) -> Interval {
        // The low bits of numbers whose other bits are equal keep their order.
        if mask == fill(mask) && self.lo & !mask == self.hi & !mask {
            return Interval { lo: self.lo & mask, hi: self.hi & mask };
        }
        Interval::up_to(self.hi.min(mask))
    }
}

/// The possible results of an instruction whose operands are in the intervals that `of` returns;
/// [`Interval::ALL`] if it yields no value.
pub fn yields(inst: Inst, of: impl Fn(Value) -> Interval) -> Interval {
    match inst {
        Inst::Const(number) => Interval::only(number),
        Inst::Bin(op, a, b) => Interval::of(op, of(a), of(b)),
        Inst::Select(condition, a, b) => match of(condition) {
            Interval { lo: 1.., .. } => of(a),
            Interval { hi: 0, .. } => of(b),
            _ => of(a).hull(of(b)),
        },
        Inst::Load(field) => Interval::up_to(field.max_value()),
        Inst::LoadAnno(anno) => Interval::up_to(ones(anno.len.saturating_mul(8))),
        Inst::RecLoad(_, _, bytes) => Interval::up_to(ones(bytes.saturating_mul(8))),
        Inst::Len | Inst::Avail(_) => Interval::up_to(MOST_BYTES),
        Inst::FlowHash => Interval::up_to(u64::from(u32::MAX)),
        Inst::IpSum | Inst::TransportSum(_) | Inst::CsumUpdate(..) => Interval::up_to(0xffff),
        Inst::PacketType => Interval::up_to(0xff),
        Inst::Origin => Interval::up_to(0xffff),
        _ => Interval::ALL,
    }
}

#[cfg(test)]
mod tests;
