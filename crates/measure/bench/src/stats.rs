//! Summaries of several rounds of a measurement, and histograms of many values.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer latencies are counted as this many nanoseconds: 68 s.
const LONGEST_NS: u64 = 1 << 36;
/// Significant digits of latencies: within a thousandth.
const DIGITS: u8 = 3;

/// A histogram of nanoseconds, within a thousandth of each value.
pub fn histogram() -> Histogram<u64> {
    // The constant bounds and digits are valid.
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap_or_else(|_| unreachable!("constant bounds"))
}

/// The median of these values; `None` where there are none, or one is not a number.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    Quantiles::of(figures).map(|spread| spread.median)
}

/// Median and range of some figures.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Quantiles {
    /// The middle value; of an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Quantiles {
    /// The median and range of these values; `None` where there are none, or one is not a number.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Quantiles> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        if figures.iter().any(|figure| figure.is_nan()) {
            return None;
        }
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let half = figures.len() / 2;
        let upper = *figures.get(half)?;
        let median = match half.checked_sub(1).and_then(|below| figures.get(below)) {
            Some(lower) if figures.len().is_multiple_of(2) => f64::midpoint(*lower, upper),
            _ => upper,
        };
        Some(Quantiles { median, min, max })
    }

    /// The median and range of one value.
    pub fn single(figure: f64) -> Quantiles {
        Quantiles { median: figure, min: figure, max: figure }
    }

    /// Applies a monotonic function to each value.
    #[must_use]
    pub fn map(self, function: impl Fn(f64) -> f64) -> Quantiles {
        let (one, other) = (function(self.min), function(self.max));
        Quantiles { median: function(self.median), min: one.min(other), max: one.max(other) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(Quantiles::of([3.0, 1.0, 2.0]), Some(Quantiles { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Quantiles::of([4.0, 1.0, 2.0, 8.0]), Some(Quantiles { median: 3.0, min: 1.0, max: 8.0 }));
        assert_eq!(Quantiles::of([5.0]), Some(Quantiles { median: 5.0, min: 5.0, max: 5.0 }));
        assert_eq!(Quantiles::of([]), None);
        assert_eq!(Quantiles::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn a_falling_function_turns_the_range() {
        let spread = Quantiles { median: 4.0, min: 2.0, max: 8.0 };
        assert_eq!(spread.map(|x| 8.0 / x), Quantiles { median: 2.0, min: 1.0, max: 4.0 });
    }

    proptest! {
        #[test]
        fn the_median_lies_in_the_range(figures in proptest::collection::vec(-1e9..1e9f64, 1..20)) {
            let spread = Quantiles::of(figures.iter().copied()).expect("numbers");
            prop_assert!(spread.min <= spread.median && spread.median <= spread.max);
            let below = figures.iter().filter(|figure| **figure < spread.median).count();
            let above = figures.iter().filter(|figure| **figure > spread.median).count();
            prop_assert!(below <= figures.len() / 2 && above <= figures.len() / 2);
        }
    }
}
