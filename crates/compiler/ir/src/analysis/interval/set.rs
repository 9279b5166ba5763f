//! Sets of numbers as intervals: the field filters of SNF ("Packet unit representation").
//!
//! Invariants: intervals are sorted, disjoint and not adjacent, so that equal sets are equal values.

use smallvec::{SmallVec, smallvec};

/// A set of 64-bit numbers. Most are one interval, which has no memory of its own.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct IntervalSet(SmallVec<[(u64, u64); 1]>);

impl IntervalSet {
    /// Every number.
    pub fn full() -> IntervalSet {
        IntervalSet::range(0, u64::MAX)
    }

    /// The numbers from `first` to `last`; none where `first` is larger.
    pub fn range(first: u64, last: u64) -> IntervalSet {
        IntervalSet(if first <= last { smallvec![(first, last)] } else { smallvec![] })
    }

    /// One number.
    pub fn one(number: u64) -> IntervalSet {
        IntervalSet::range(number, number)
    }

    /// The numbers in any of the intervals; an interval with its ends swapped is empty.
    pub fn from_intervals(intervals: impl IntoIterator<Item = (u64, u64)>) -> IntervalSet {
        let mut all: Vec<(u64, u64)> = intervals.into_iter().filter(|(first, last)| first <= last).collect();
        all.sort_unstable();
        let mut joined: SmallVec<[(u64, u64); 1]> = SmallVec::new();
        for (first, last) in all {
            match joined.last_mut() {
                Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        IntervalSet(joined)
    }

    /// The intervals, sorted.
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest number, where there is one.
    pub fn min(&self) -> Option<u64> {
        self.0.first().map(|interval| interval.0)
    }

    /// The largest number, where there is one.
    pub fn max(&self) -> Option<u64> {
        self.0.last().map(|interval| interval.1)
    }

    /// The only number, where there is exactly one.
    pub fn only(&self) -> Option<u64> {
        match self.0.as_slice() {
            [(first, last)] if first == last => Some(*first),
            _ => None,
        }
    }

    /// Whether it holds the number.
    pub fn contains(&self, number: u64) -> bool {
        let behind = self.0.partition_point(|interval| interval.0 <= number);
        behind > 0 && self.0.get(behind - 1).is_some_and(|interval| number <= interval.1)
    }

    /// Whether it holds all of the other's numbers.
    pub fn covers(&self, other: &IntervalSet) -> bool {
        other.0.iter().all(|(first, last)| {
            let behind = self.0.partition_point(|interval| interval.0 <= *first);
            behind > 0 && self.0.get(behind - 1).is_some_and(|interval| *last <= interval.1)
        })
    }

    /// Numbers in either set.
    #[must_use]
    pub fn union(&self, other: &IntervalSet) -> IntervalSet {
        IntervalSet::from_intervals(self.0.iter().chain(&other.0).copied())
    }

    /// Numbers in both sets.
    #[must_use]
    pub fn intersection(&self, other: &IntervalSet) -> IntervalSet {
        if let ([a], [b]) = (self.intervals(), other.intervals()) {
            return IntervalSet::range(a.0.max(b.0), a.1.min(b.1));
        }
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = SmallVec::new();
        while let (Some(&&(a_first, a_last)), Some(&&(b_first, b_last))) = (a.peek(), b.peek()) {
            let (first, last) = (a_first.max(b_first), a_last.min(b_last));
            if first <= last {
                both.push((first, last));
            }
            if a_last <= b_last {
                a.next();
            } else {
                b.next();
            }
        }
        IntervalSet(both)
    }

    /// Numbers up to `max` that are not in the set.
    #[must_use]
    pub fn complement(&self, max: u64) -> IntervalSet {
        let mut others: Vec<(u64, u64)> = vec![];
        let mut from = Some(0u64);
        for (first, last) in &self.0 {
            if let (Some(start), Some(end)) = (from, first.checked_sub(1)) {
                others.push((start, end.min(max)));
            }
            from = last.checked_add(1);
        }
        others.extend(from.map(|start| (start, max)));
        IntervalSet(others.into_iter().filter(|(first, last)| first <= last).collect())
    }

    /// Whether they have a number in common.
    pub fn meets(&self, other: &IntervalSet) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The numbers `n` for which `n + by`, wrapping, is in the set.
    #[must_use]
    pub fn shifted_down(&self, by: u64) -> IntervalSet {
        let parts = self
            .0
            .iter()
            .flat_map(|(first, last)| around(first.wrapping_sub(by), last.wrapping_sub(by), u64::MAX));
        IntervalSet::from_intervals(parts)
    }

    /// The numbers that are 0 together with one of the set, wrapping.
    #[must_use]
    pub fn negated(&self) -> IntervalSet {
        let parts = self
            .0
            .iter()
            .flat_map(|(first, last)| around(last.wrapping_neg(), first.wrapping_neg(), u64::MAX));
        IntervalSet::from_intervals(parts)
    }

    /// The possible values of the `width` bits from bit `low` on, of the set's numbers.
    #[must_use]
    pub fn project(&self, low: u8, width: u8) -> IntervalSet {
        let max = ones(width);
        let parts = self.0.iter().flat_map(|(first, last)| {
            let (first, last) = (first >> low, last >> low);
            if last - first >= max {
                return [(0, max), (1, 0)];
            }
            around(first & max, last & max, max)
        });
        IntervalSet::from_intervals(parts)
    }

    /// The numbers whose leading bits are a number of the set, with `bits` more bits after them. The set's
    /// numbers are small enough that no bit is lost.
    #[must_use]
    pub fn widen(&self, bits: u32) -> IntervalSet {
        let low = 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1);
        let wide = |&(first, last): &(u64, u64)| {
            (first.checked_shl(bits).unwrap_or(0), last.checked_shl(bits).unwrap_or(0) | low)
        };
        IntervalSet(self.0.iter().map(wide).collect())
    }
}

/// The largest number of that many bits.
pub fn ones(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The intervals from `first` on to `last`, which may be below it: numbers go on with 0 behind `max`.
fn around(first: u64, last: u64, max: u64) -> [(u64, u64); 2] {
    if first <= last { [(first, last), (1, 0)] } else { [(0, last), (first, max)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Small numbers, and numbers at both ends.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..20u64, u64::MAX - 20..=u64::MAX]
    }

    fn set() -> impl Strategy<Value = IntervalSet> {
        prop::collection::vec((number(), number()), 0..6).prop_map(IntervalSet::from_intervals)
    }

    fn probes() -> impl Iterator<Item = u64> {
        (0..24).chain(u64::MAX - 24..=u64::MAX)
    }

    fn holds(set: &IntervalSet) -> bool {
        set.0.windows(2).all(|pair| pair[0].1 < u64::MAX && pair[0].1 + 1 < pair[1].0)
            && set.0.iter().all(|(first, last)| first <= last)
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(a in set(), b in set(), by in number(), max in number()) {
            for result in [a.union(&b), a.intersection(&b), a.complement(max), a.shifted_down(by), a.negated()] {
                prop_assert!(holds(&result), "{result:?}");
            }
            for n in probes() {
                let (in_a, in_b) = (a.contains(n), b.contains(n));
                prop_assert_eq!(in_a, a.0.iter().any(|(first, last)| (*first..=*last).contains(&n)));
                prop_assert_eq!(a.union(&b).contains(n), in_a || in_b);
                prop_assert_eq!(a.intersection(&b).contains(n), in_a && in_b);
                prop_assert_eq!(a.complement(max).contains(n), n <= max && !in_a);
                prop_assert_eq!(a.shifted_down(by).contains(n), a.contains(n.wrapping_add(by)));
                prop_assert_eq!(a.negated().contains(n), a.contains(n.wrapping_neg()));
            }
            prop_assert_eq!(a.covers(&b), a.union(&b) == a);
            prop_assert_eq!(a.meets(&b), !a.intersection(&b).is_empty());
            prop_assert_eq!(a.min(), probes().find(|n| a.contains(*n)).or(a.min()));
        }

        #[test]
        fn a_set_of_leading_bits_is_one_of_numbers(parts in any::<Vec<(u8, u8)>>(), bits in 0..6u32, more in 0..64u64) {
            let set = IntervalSet::from_intervals(parts.iter().map(|(a, b)| (u64::from(*a), u64::from(*b))));
            let wide = set.widen(bits);
            prop_assert!(holds(&wide));
            for number in 0..=255 {
                prop_assert_eq!(wide.contains(number << bits | more & ones(bits as u8)), set.contains(number));
            }
        }
        #[test]
        fn bits_of_a_set(first in 0..600u64, len in 0..300u64, low in 0..6u8, width in 1..6u8) {
            let set = IntervalSet::from_intervals([(first, first + len), (1000, 1003)]);
            let bits: Vec<u64> =
                (first..=first + len).chain(1000..=1003).map(|n| n >> low & ones(width)).collect();
            let found = set.project(low, width);
            prop_assert!(holds(&found));
            for n in 0..=ones(width) {
                prop_assert_eq!(found.contains(n), bits.contains(&n), "{} of {:?}", n, set);
            }
        }
    }
}
