//! Sums modulo 0xffff: what one's complement checksums know of numbers.
//!
//! 2^16 is 1 modulo 0xffff, so a number of any width is congruent to the sum of its 16-bit words, and
//! complements, folds and end-around carries are plain arithmetic.

use super::value::{Expr, Facts, Values, Vn};
use ir::BinOp;

const MODULUS: u64 = 0xffff;
/// Longer sums are taken as values of their own.
const MOST_TERMS: usize = 8;
const DEPTH: u32 = 12;

/// A number plus multiples of values, modulo 0xffff.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Linear {
    number: u64,
    /// By value, without multiples of 0.
    terms: Vec<(Vn, u64)>,
}

impl Linear {
    fn only(value: Vn) -> Linear {
        Linear { number: 0, terms: vec![(value, 1)] }
    }

    /// Whether it is congruent to 0 whatever the values are.
    pub fn is_zero(&self) -> bool {
        self.number == 0 && self.terms.is_empty()
    }

    /// Adds a multiple of another sum.
    pub fn add(&mut self, other: &Linear, times: u64) {
        self.number = (self.number + other.number * times) % MODULUS;
        for &(value, by) in &other.terms {
            let by = by * times % MODULUS;
            match self.terms.binary_search_by_key(&value, |term| term.0) {
                Ok(at) => {
                    self.terms[at].1 = (self.terms[at].1 + by) % MODULUS;
                    if self.terms[at].1 == 0 {
                        self.terms.remove(at);
                    }
                }
                Err(at) if by != 0 => self.terms.insert(at, (value, by)),
                Err(_) => {}
            }
        }
    }

    /// Adds a number's change from `old` to `new`, shifted left by `shift` bits.
    pub fn change(&mut self, old: &Linear, new: &Linear, shift: u32) {
        let times = (1u64 << (shift % 16)) % MODULUS;
        self.add(new, times);
        self.add(old, MODULUS - times);
    }

    /// What it is for values of which each is known.
    #[cfg(test)]
    pub fn worked_out(&self, of: impl Fn(Vn) -> u64) -> u64 {
        let terms = self.terms.iter().map(|(value, by)| of(*value) % MODULUS * by % MODULUS);
        (self.number + terms.sum::<u64>()) % MODULUS
    }

    /// Whether it is short enough to go on with.
    pub fn is_short(&self) -> bool {
        self.terms.len() <= MOST_TERMS
    }
}

/// What a value is congruent to, at a place.
pub fn linear(values: &Values, value: Vn, facts: &Facts) -> Linear {
    of(values, value, facts, DEPTH)
}

fn of(values: &Values, value: Vn, facts: &Facts, depth: u32) -> Linear {
    let sum = depth.checked_sub(1).and_then(|depth| parts(values, value, facts, depth));
    sum.filter(Linear::is_short).unwrap_or_else(|| Linear::only(value))
}

/// What it is congruent to by what it is made from, where that is known.
fn parts(values: &Values, value: Vn, facts: &Facts, depth: u32) -> Option<Linear> {
    let mut sum = Linear::default();
    let mut add = |part: Vn, times: u64| sum.add(&of(values, part, facts, depth), times);
    let range = |value| values.range(value, facts);
    match values.expr(value) {
        Expr::Const(number) => sum.number = number % MODULUS,
        Expr::Bin(BinOp::Add, a, b) => {
            if let Some(whole) = values.end_around(a, b) {
                add(whole, 1);
            } else if range(a).hi.checked_add(range(b).hi).is_some() {
                add(a, 1);
                add(b, 1);
            } else {
                // A difference, where it does not wrap.
                let less = values.number(b)?.wrapping_neg();
                if range(a).lo < less {
                    return None;
                }
                add(a, 1);
                sum.number = (sum.number + MODULUS - less % MODULUS) % MODULUS;
            }
        }
        Expr::Bin(BinOp::Sub, a, b) if range(a).lo >= range(b).hi => {
            add(a, 1);
            add(b, MODULUS - 1);
        }
        Expr::Bin(BinOp::Or, a, b) if values.bits(a) & values.bits(b) == 0 => {
            add(a, 1);
            add(b, 1);
        }
        Expr::Bin(BinOp::Shl, a, by) => {
            let by =
                values.number(by).filter(|by| *by <= u64::from(range(a).hi.leading_zeros()) && *by < 64)?;
            add(a, (1 << (by % 16)) % MODULUS);
        }
        Expr::Bin(BinOp::Xor, a, ones) => {
            // A complement in whole words: those of ones only are 0.
            let ones = values
                .number(ones)
                .filter(|ones| matches!(*ones, 0xffff | 0xffff_ffff | 0xffff_ffff_ffff | u64::MAX))?;
            if range(a).hi > ones {
                return None;
            }
            add(a, MODULUS - 1);
        }
        Expr::Csum(checksum, old, new, _) => {
            // See `Values::csum`; its operands are cut to their widths.
            add(checksum, 1);
            add(old, 1);
            add(new, MODULUS - 1);
        }
        Expr::Load(..) => {
            let (new, old) = *values.deltas.get(&value)?;
            add(new, 1);
            add(old, MODULUS - 1);
        }
        _ => return None,
    }
    Some(sum)
}
