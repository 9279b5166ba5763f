//! The residues of values modulo 0xffff, see [`ir::analysis::ones_complement`].

use super::value::{Expr, Facts, Values, Vn};
use ir::BinOp;
use ir::analysis::ones_complement::{MODULUS, Residue, weight};

/// Longer sums become values of their own.
const MOST_TERMS: usize = 8;
const DEPTH: u32 = 12;

/// A number plus multiples of values, modulo 0xffff.
pub type Linear = Residue<Vn>;

/// Whether a sum is short enough to be used.
pub fn is_short(sum: &Linear) -> bool {
    sum.len() <= MOST_TERMS
}

/// The residue of a value at a point of the program.
pub fn linear(values: &Values, value: Vn, facts: &Facts) -> Linear {
    of(values, value, facts, DEPTH)
}

fn of(values: &Values, value: Vn, facts: &Facts, depth: u32) -> Linear {
    let sum = depth.checked_sub(1).and_then(|depth| parts(values, value, facts, depth));
    sum.filter(is_short).unwrap_or_else(|| Linear::only(value))
}

/// The residue that follows from a value's operands, if it is known.
fn parts(values: &Values, value: Vn, facts: &Facts, depth: u32) -> Option<Linear> {
    if let Expr::Const(number) = values.expr(value) {
        return Some(Linear::number(number));
    }
    if let Some(residue) = values.residues.get(&value) {
        return Some(residue.clone());
    }
    let mut sum = Linear::default();
    let mut add = |part: Vn, times: u64| sum.add(&of(values, part, facts, depth), times);
    let range = |value| values.range(value, facts);
    match values.expr(value) {
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
                sum.add_number(MODULUS - less % MODULUS);
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
            add(a, weight(by as u32));
        }
        Expr::Bin(BinOp::Xor, a, ones) => {
            // A complement of whole words: words of ones only are congruent to 0.
            let ones = values
                .number(ones)
                .filter(|ones| matches!(*ones, 0xffff | 0xffff_ffff | 0xffff_ffff_ffff | u64::MAX))?;
            if range(a).hi > ones {
                return None;
            }
            add(a, MODULUS - 1);
        }
        Expr::Csum(checksum, old, new, _) => {
            // See `Values::csum`; its operands are truncated to their widths.
            add(checksum, 1);
            add(old, 1);
            add(new, MODULUS - 1);
        }
        _ => return None,
    }
    Some(sum)
}
