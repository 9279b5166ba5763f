//! The residues of values modulo 0xffff, see [`ir::analysis::ones_complement`].

use super::value::{Expr, Facts, Values, Vn};
use ir::BinOp;
use ir::analysis::interval::ones;
use ir::analysis::ones_complement::{MODULUS, Residue, weight};

/// Longer sums become values of their own.
const MOST_TERMS: usize = 16;
const DEPTH: u32 = 12;

/// A number plus multiples of values, modulo 0xffff.
pub type Linear = Residue<Vn>;

/// Whether a sum is short enough to be used.
pub fn is_short(sum: &Linear) -> bool {
    sum.len() <= MOST_TERMS
}

/// The residue of a value at a point of the program.
pub fn linear(values: &mut Values, value: Vn, facts: &Facts) -> Linear {
    let sum = of(values, value, facts, DEPTH);
    settled(&sum, values, facts)
}

/// The same residue with what is known of its terms at a point of the program: that they, or the second addresses of
/// pairs, are numbers, and what they are sums of where these do not wrap there. It stays as it is where it would get too
/// long.
pub fn settled(sum: &Linear, values: &mut Values, facts: &Facts) -> Linear {
    let mut settled = Linear::number(sum.rest());
    for (mut term, times) in sum.terms() {
        let mut number = values.range(term, facts).number();
        if number.is_none() && values.bits(term) >> 32 != 0 {
            let low = values.bin_const(BinOp::And, term, ones(32), &Facts::default());
            if let Some(low) = values.range(low, facts).number() {
                settled.add_number(low % MODULUS * times);
                term = values.bin_const(BinOp::Shr, term, 32, &Facts::default());
                number = values.range(term, facts).number();
            }
        }
        match number {
            Some(number) => settled.add_number(number % MODULUS * times),
            None => settled.add(&of(values, term, facts, DEPTH), times),
        }
    }
    if is_short(&settled) { settled } else { sum.clone() }
}

/// A sum that is congruent to 0 at a point of the program. The first is a term that it has once: what the rest adds up to.
pub type ZeroSum = (Vn, Linear);

/// Beyond this number no more of them are looked for.
const MOST_ZERO_SUMS: usize = 8;

/// What follows where a value is a number that is otherwise known as a sum of others: these add up to that number. None
/// has the term that another one says something of.
pub fn zero_sums(values: &mut Values, facts: &Facts) -> Vec<ZeroSum> {
    let mut zeros: Vec<ZeroSum> = vec![];
    for (value, number) in facts.numbers() {
        let Some(sum) = values.residues.get(&value).filter(|sum| !sum.is_empty()).cloned() else { continue };
        let mut sum = without(settled(&sum, values, facts), &zeros);
        sum.add_number(MODULUS - number % MODULUS);
        // Of the newest one, so that others are said by what was there before.
        let Some((term, times)) = sum.terms().filter(|(_, times)| [1, MODULUS - 1].contains(times)).last()
        else {
            continue;
        };
        // 1 and -1 are their own inverses.
        let zero = Linear::default().plus(&sum, times);
        for (_, other) in &mut zeros {
            other.add(&zero, MODULUS - other.times(term));
        }
        zeros.push((term, zero));
        if zeros.len() == MOST_ZERO_SUMS {
            break;
        }
    }
    zeros
}

/// The same sum without the terms of which others say what they are.
pub fn without(mut sum: Linear, zeros: &[ZeroSum]) -> Linear {
    for (term, zero) in zeros {
        sum.add(zero, MODULUS - sum.times(*term));
    }
    sum
}

fn of(values: &mut Values, value: Vn, facts: &Facts, depth: u32) -> Linear {
    let sum = depth.checked_sub(1).and_then(|depth| parts(values, value, facts, depth));
    sum.filter(is_short).unwrap_or_else(|| Linear::only(value))
}

/// The residue that follows from a value's operands, if it is known.
fn parts(values: &mut Values, value: Vn, facts: &Facts, depth: u32) -> Option<Linear> {
    const LESS: u64 = MODULUS - 1;
    if let Expr::Const(number) = values.expr(value) {
        return Some(Linear::number(number));
    }
    if let Some(residue) = values.residues.get(&value) {
        return Some(residue.clone());
    }
    let mut sum = Linear::default();
    let range = |value| values.range(value, facts);
    let terms = match values.expr(value) {
        Expr::Bin(BinOp::Add, a, b) => {
            if let Some(whole) = values.end_around(a, b) {
                vec![(whole, 1)]
            } else if range(a).hi.checked_add(range(b).hi).is_some() {
                vec![(a, 1), (b, 1)]
            } else {
                // A difference, where it does not wrap.
                let less = values.number(b)?.wrapping_neg();
                if range(a).lo < less {
                    return None;
                }
                sum.add_number(MODULUS - less % MODULUS);
                vec![(a, 1)]
            }
        }
        Expr::Bin(BinOp::Sub, a, b) if range(a).lo >= range(b).hi => vec![(a, 1), (b, LESS)],
        Expr::Bin(BinOp::Or, a, b) if values.bits(a) & values.bits(b) == 0 => vec![(a, 1), (b, 1)],
        Expr::Bin(BinOp::And, a, mask) => {
            let mask = values.number(mask)?;
            let low = [16, 32, 48].into_iter().find(|low| [ones(*low), !ones(*low)].contains(&mask))?;
            let high = values.bin_const(BinOp::Shr, a, low.into(), &Facts::default());
            // The low words are all of it less the others, as a pair of addresses is both of them.
            if mask == ones(low) { vec![(a, 1), (high, LESS)] } else { vec![(high, 1)] }
        }
        Expr::Bin(BinOp::Shl, a, by) => {
            let by = values.number(by).filter(|by| *by < 64)? as u32;
            let mut terms = vec![(a, weight(by))];
            if by > range(a).hi.leading_zeros() {
                // The bits that leave it at the top: 2^64 is 1, too.
                let out = values.bin_const(BinOp::Shr, a, u64::from(64 - by), &Facts::default());
                terms.push((out, LESS));
            }
            terms
        }
        Expr::Bin(BinOp::Xor, a, ones) => {
            // A complement of whole words: words of ones only are congruent to 0.
            let ones = values
                .number(ones)
                .filter(|ones| matches!(*ones, 0xffff | 0xffff_ffff | 0xffff_ffff_ffff | u64::MAX))?;
            if range(a).hi > ones {
                return None;
            }
            vec![(a, LESS)]
        }
        // See `Values::csum`; its operands are truncated to their widths.
        Expr::Csum(checksum, old, new, _) => vec![(checksum, 1), (old, 1), (new, LESS)],
        _ => return None,
    };
    for (part, times) in terms {
        sum.add(&of(values, part, facts, depth), times);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::analysis::interval::Interval;
    use proptest::prelude::*;

    const WORDS: usize = 5;

    /// Multiples of words, and a number beside them.
    fn sum() -> impl Strategy<Value = (Vec<(usize, u64)>, u64)> {
        let times = prop_oneof![Just(1), Just(MODULUS - 1), Just(256), 1..MODULUS];
        (prop::collection::vec((0..WORDS, times), 0..4), 0..MODULUS)
    }

    proptest! {
        /// What is said to be 0 is, where the facts hold; and a sum without it is the same.
        #[test]
        fn zero_sums_are_zero(
            words in prop::collection::vec((0..MODULUS, prop::bool::weighted(0.2)), WORDS),
            sums in prop::collection::vec(sum(), 1..12),
            other in sum(),
        ) {
            let (mut values, mut facts) = (Values::default(), Facts::default());
            let own: Vec<Vn> = words.iter().map(|_| values.own(Interval::up_to(0xffff))).collect();
            let of_words = |(terms, number): &(Vec<(usize, u64)>, u64)| {
                let mut sum = Linear::number(*number);
                terms.iter().for_each(|(word, times)| sum.add_term(own[*word], *times));
                sum
            };
            let work_out = |sum: &Linear| {
                sum.worked_out(|value| words[own.iter().position(|own| *own == value).expect("a word")].0)
            };
            for ((word, is_known), value) in words.iter().zip(&own) {
                if *is_known {
                    facts.set(*value, Interval::only(*word));
                }
            }
            for sum in &sums {
                let (value, residue) = (values.own(Interval::up_to(0xffff)), of_words(sum));
                facts.set(value, Interval::only(work_out(&residue)));
                values.residues.insert(value, residue);
            }
            let zeros = zero_sums(&mut values, &facts);
            for (term, zero) in &zeros {
                prop_assert_eq!(work_out(zero), 0, "{:?}", zero);
                let having = zeros.iter().filter(|(_, zero)| zero.times(*term) != 0);
                prop_assert!(zero.times(*term) == 1 && having.count() == 1, "{:?}", zeros);
            }
            let other = of_words(&other);
            let less = without(other.clone(), &zeros);
            prop_assert_eq!(work_out(&less), work_out(&other));
            prop_assert!(zeros.iter().all(|(term, _)| less.times(*term) == 0), "{:?}", less);
        }
    }
}
