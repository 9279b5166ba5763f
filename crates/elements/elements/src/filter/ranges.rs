//! Sets of numbers as closed intervals.

/// A set of numbers: sorted intervals that neither meet nor touch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// The numbers from `first` to `last`; none where `first` is the larger one.
    pub fn one(first: u64, last: u64) -> Ranges {
        Ranges(if first <= last { vec![(first, last)] } else { vec![] })
    }

    /// One number.
    pub fn single(value: u64) -> Ranges {
        Ranges::one(value, value)
    }

    /// Intervals in any order.
    pub fn of(intervals: impl IntoIterator<Item = (u64, u64)>) -> Ranges {
        let mut sorted: Vec<(u64, u64)> = intervals.into_iter().filter(|(a, b)| a <= b).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u64, u64)> = vec![];
        for (first, last) in sorted {
            match merged.last_mut() {
                Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Ranges(merged)
    }

    /// The intervals.
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Whether there is no number in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number is in it.
    #[cfg(test)]
    pub fn contains(&self, value: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&value))
    }

    /// The numbers up to `max` that are not in it.
    pub fn complement(&self, max: u64) -> Ranges {
        let mut rest = vec![];
        let mut next = Some(0);
        for &(first, last) in &self.0 {
            if let Some(from) = next
                && from < first
            {
                rest.push((from, (first - 1).min(max)));
            }
            next = last.checked_add(1);
        }
        rest.extend(next.filter(|from| *from <= max).map(|from| (from, max)));
        Ranges(rest)
    }

    /// The numbers in both.
    pub fn intersection(&self, other: &Ranges) -> Ranges {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = vec![];
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let (first, last) = (x.0.max(y.0), x.1.min(y.1));
            if first <= last {
                both.push((first, last));
            }
            if x.1 < y.1 {
                a.next();
            } else {
                b.next();
            }
        }
        Ranges(both)
    }

    /// The numbers in one of them.
    pub fn union(&self, other: &Ranges) -> Ranges {
        Ranges::of(self.0.iter().chain(&other.0).copied())
    }

    /// Each interval with all numbers that have it as their leading bits, `bits` more of them.
    pub fn widen(&self, bits: u32) -> Ranges {
        let low = 1u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1);
        let wide = |&(first, last): &(u64, u64)| {
            (first.checked_shl(bits).unwrap_or(0), last.checked_shl(bits).unwrap_or(0) | low)
        };
        Ranges(self.0.iter().map(wide).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_behave_as_sets(a in any::<Vec<(u8, u8)>>(), b in any::<Vec<(u8, u8)>>()) {
            let of = |list: &[(u8, u8)]| Ranges::of(list.iter().map(|(x, y)| (u64::from(*x), u64::from(*y))));
            let (a, b) = (of(&a), of(&b));
            for value in 0..=255 {
                let (in_a, in_b) = (a.contains(value), b.contains(value));
                prop_assert_eq!(a.complement(255).contains(value), !in_a);
                prop_assert_eq!(a.intersection(&b).contains(value), in_a && in_b);
                prop_assert_eq!(a.union(&b).contains(value), in_a || in_b);
                prop_assert_eq!(a.widen(3).contains(value * 8 + value % 8), in_a);
            }
            prop_assert_eq!(a.complement(255).complement(255), a.intersection(&Ranges::one(0, 255)));
        }
    }
}
