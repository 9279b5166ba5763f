//! Sums modulo 0xffff: the effect of numbers on one's complement checksums (RFC 1071).
//!
//! 2^16 is 1 modulo 0xffff. A number of any width is therefore congruent to the sum of its 16-bit words, and
//! each bit has the weight of its position in its word. Complements of whole words, folds and end-around
//! carries are plain arithmetic. Zero has two 16-bit representations, 0 and 0xffff; folding yields 0 for 0
//! only.
//!
//! **RFC 1624, equation 3.** Write `m` for the largest word (0xffff or 0xffff_ffff, both multiples of 0xffff)
//! and `T` for `(0xffff - sum) + (m - old) + new`, of a checksum and words truncated to their widths. The
//! updated checksum is `0xffff - fold(T)`. Folding keeps the remainder modulo 0xffff, and yields 0 for 0
//! only. So the result is congruent to `sum + old - new` and in 0..=0xfffe, and it is the only such number,
//! except where `T` is 0: then the result is 0xffff. `T` is 0 only where `sum` is 0xffff, `old` is `m` and
//! `new` is 0.

use std::cmp::Ordering;

/// The modulus of the sums.
pub const MODULUS: u64 = 0xffff;

/// `x * INVERSE` is `x / MODULUS` for multiples of the modulus, and larger than [`MOST_QUOTIENT`] for all
/// other numbers.
pub const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
/// The largest multiple of [`MODULUS`], divided by it.
pub const MOST_QUOTIENT: u64 = u64::MAX / MODULUS;

const _: () = assert!(INVERSE.wrapping_mul(MODULUS) == 1);

/// The largest result of adding the upper bits of a number up to `most` to its low 16 bits: that of `most`,
/// or of the largest number below it whose low half is 0xffff.
pub fn largest_fold(most: u64) -> u64 {
    let (high, low) = (most >> 16, most & 0xffff);
    (high + low).max(high.saturating_sub(1) + 0xffff * u64::from(high > 0))
}

/// The weight of a bit, by its position from a number's lowest bit.
pub fn weight(bit: u32) -> u64 {
    (1 << (bit % 16)) % MODULUS
}

/// A signed multiple, as a multiple that [`Residue`] takes.
pub fn times(by: i128) -> u64 {
    by.rem_euclid(i128::from(MODULUS)) as u64
}

/// A number plus multiples of terms, modulo 0xffff. Equal residues are equal values; two unequal residues may
/// be congruent for some values of their terms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residue<T> {
    /// Below [`MODULUS`].
    number: u64,
    /// By term, with multiples from 1 to below [`MODULUS`].
    terms: Vec<(T, u64)>,
}

impl<T> Default for Residue<T> {
    /// Zero.
    fn default() -> Residue<T> {
        Residue { number: 0, terms: vec![] }
    }
}

impl<T: Copy + Ord> Residue<T> {
    /// A number.
    pub fn number(number: u64) -> Residue<T> {
        Residue { number: number % MODULUS, terms: vec![] }
    }

    /// A term.
    pub fn only(term: T) -> Residue<T> {
        Residue { number: 0, terms: vec![(term, 1)] }
    }

    /// Whether it is congruent to 0 for all values of the terms.
    pub fn is_zero(&self) -> bool {
        self.number == 0 && self.terms.is_empty()
    }

    /// Its terms, each with its multiple.
    pub fn terms(&self) -> impl Iterator<Item = (T, u64)> {
        self.terms.iter().copied()
    }

    /// The multiple of a term; 0 if it has none.
    pub fn times(&self, term: T) -> u64 {
        self.terms.binary_search_by_key(&term, |known| known.0).map_or(0, |at| self.terms[at].1)
    }

    /// The number beside its terms.
    pub fn rest(&self) -> u64 {
        self.number
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether it has no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds a multiple of a term.
    pub fn add_term(&mut self, term: T, times: u64) {
        let times = times % MODULUS;
        match self.terms.binary_search_by_key(&term, |known| known.0) {
            Ok(at) => {
                self.terms[at].1 = (self.terms[at].1 + times) % MODULUS;
                if self.terms[at].1 == 0 {
                    self.terms.remove(at);
                }
            }
            Err(at) if times != 0 => self.terms.insert(at, (term, times)),
            Err(_) => {}
        }
    }

    /// Adds a number.
    pub fn add_number(&mut self, number: u64) {
        self.number = (self.number + number % MODULUS) % MODULUS;
    }

    /// Adds a multiple of another one.
    pub fn add(&mut self, other: &Residue<T>, times: u64) {
        let times = times % MODULUS;
        if times == 0 {
            return;
        }
        self.add_number(other.number * times);
        if let [(term, by)] = other.terms[..] {
            self.add_term(term, by * times);
            return;
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut mine, mut theirs) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (Some(one), Some(other)) => one.0.cmp(&other.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let one = mine.next_if(|_| order.is_le());
            let other = theirs.next_if(|_| order.is_ge());
            let by = one.map_or(0, |one| one.1) + other.map_or(0, |other| other.1 * times);
            terms.extend(one.or(other).filter(|_| by % MODULUS != 0).map(|(term, _)| (*term, by % MODULUS)));
        }
        self.terms = terms;
    }

    /// The sum with a multiple of another residue.
    #[must_use]
    pub fn plus(mut self, other: &Residue<T>, times: u64) -> Residue<T> {
        self.add(other, times);
        self
    }

    /// Subtracts another residue.
    pub fn sub(&mut self, other: &Residue<T>) {
        self.add(other, MODULUS - 1);
    }

    /// Adds a number's change from `old` to `new`, shifted left by `shift` bits.
    pub fn change(&mut self, old: &Residue<T>, new: &Residue<T>, shift: u32) {
        self.add(new, weight(shift));
        self.add(old, MODULUS - weight(shift));
    }

    /// Its value, below [`MODULUS`], for values of the terms.
    pub fn worked_out(&self, of: impl Fn(T) -> u64) -> u64 {
        let terms = self.terms.iter().map(|(term, by)| of(*term) % MODULUS * by % MODULUS);
        (self.number + terms.sum::<u64>()) % MODULUS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{checksum_update, fold};
    use proptest::prelude::*;

    /// Words at the boundaries of one's complement arithmetic, and others.
    fn word(bits: u8) -> impl Strategy<Value = u64> {
        let most = if bits == 16 { 0xffff } else { 0xffff_ffff };
        prop_oneof![Just(0), Just(most), Just(1), Just(most - 1), 0..=most]
    }

    fn residue() -> impl Strategy<Value = Residue<u8>> {
        (any::<u64>(), prop::collection::vec((0u8..6, any::<u64>()), 0..8)).prop_map(|(number, terms)| {
            let mut residue = Residue::number(number);
            terms.into_iter().for_each(|(term, by)| residue.add_term(term, by));
            residue
        })
    }

    fn modulo(number: u128) -> u64 {
        (number % u128::from(MODULUS)) as u64
    }

    #[test]
    fn no_smaller_number_folds_to_more() {
        let add_halves = |number: u64| (number >> 16) + (number & 0xffff);
        let mut largest = 0;
        for most in 0..1 << 18 {
            largest = add_halves(most).max(largest);
            assert_eq!(largest_fold(most), largest, "{most}");
        }
        for below in 0..1 << 17 {
            assert!(add_halves(u64::MAX - below) <= largest_fold(u64::MAX));
        }
        assert_eq!(largest_fold(u64::MAX), add_halves(u64::MAX));
    }

    proptest! {
        #[test]
        fn sums_are_sums_of_values(
            a in residue(),
            b in residue(),
            by: u64,
            shift in 0u32..80,
            values in any::<[u64; 6]>(),
        ) {
            let of = |term: u8| values[usize::from(term)];
            let (x, y) = (u128::from(a.worked_out(of)), u128::from(b.worked_out(of)));
            let done = |change: &dyn Fn(&mut Residue<u8>)| {
                let mut residue = a.clone();
                change(&mut residue);
                assert!(residue.terms.is_sorted_by(|one, other| one.0 < other.0));
                assert!(residue.terms.iter().all(|term| (1..MODULUS).contains(&term.1)), "{residue:?}");
                u128::from(residue.worked_out(of))
            };
            let m = u128::from(MODULUS);
            prop_assert_eq!(done(&|sum| sum.add(&b, by)), (x + y * u128::from(by)) % m);
            prop_assert_eq!(done(&|sum| sum.sub(&b)), (x + m - y) % m);
            prop_assert_eq!(done(&|sum| sum.add_number(by)), (x + u128::from(by)) % m);
            prop_assert_eq!(done(&|sum| sum.add_term(3, by)), (x + u128::from(of(3)) * u128::from(by)) % m);
            let far = (1u128 << shift) % m;
            prop_assert_eq!(done(&|sum| sum.change(&a, &b, shift)), (x + (y + m - x) * far) % m);
            let mut nothing = a.clone();
            nothing.sub(&a);
            prop_assert!(nothing.is_zero());
        }

        #[test]
        fn a_signed_multiple_is_one(by: i64, value: u32) {
            let product = i128::from(by) * i128::from(value);
            prop_assert_eq!(modulo(u128::from(times(by.into())) * u128::from(value)), times(product));
        }

        /// The sum of bytes by their weights is the sum in a header's or segment's checksum.
        #[test]
        fn bytes_count_by_their_places(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut residue = Residue::<usize>::default();
            (0..bytes.len()).for_each(|at| residue.add_term(at, weight(8 * (1 - at as u32 % 2))));
            let folded = packet::checksum::Sum::ZERO.add_bytes(&bytes).fold();
            prop_assert_eq!(residue.worked_out(|at| bytes[at].into()), modulo(u128::from(folded)));
        }

        /// RFC 1624, equation 3, as the module states it.
        #[test]
        fn an_update_is_the_only_congruent_number(
            bits in prop::sample::select(vec![16u8, 32]),
            sum in word(16),
            words in (word(16), word(32), word(16), word(32)),
        ) {
            let (old, new, m) = if bits == 16 { (words.0, words.2, 0xffff) } else { (words.1, words.3, 0xffff_ffff) };
            let updated = checksum_update(sum, old, new, bits);
            let mut residue = Residue::<()>::number(sum);
            residue.change(&Residue::number(new), &Residue::number(old), 0);
            prop_assert_eq!(updated % MODULUS, residue.worked_out(|()| 0));
            prop_assert_eq!(updated == 0xffff, (sum, old, new) == (0xffff, m, 0));
            prop_assert_eq!(fold((0xffff - sum) + (m - old) + new) == 0, (sum, old, new) == (0xffff, m, 0));
        }
    }
}
