//! Exponentially weighted moving averages of counts, as Click's `rate` handlers return.
//!
//! Time is divided into *epochs* of 2^20 ns, about a millisecond (Click: a jiffy). At the end of an epoch the
//! average moves by a 16th of its distance to the count of the epoch. An epoch without packets lowers it by a
//! 16th; idle epochs are applied at once. An epoch ends with the first tick behind it, so that no packet has
//! to look at the clock: a program that does is different for each packet, and no flow cache can take its
//! place.

/// Binary logarithm of an epoch's nanoseconds.
const EPOCH_SHIFT: u64 = 20;
/// Bits of an average behind the point.
pub(super) const SCALE: u32 = 10;
/// Binary logarithm of the part by which the average moves.
const STABILITY: u64 = 4;
/// Bits behind the point of the decay factors.
const FACTOR_SHIFT: u64 = 24;
/// Longer idle times decay as much as this one: (15/16)^255 is 7e-8.
const MOST_IDLE: u64 = 255;

/// The part of an average that is left after 1, 2, 4, ... 128 idle epochs.
const FACTORS: [u64; 8] = {
    let one = 1u128 << 32;
    let mut factor = one / 16 * 15;
    let mut factors = [0; 8];
    let mut at = 0;
    while at < factors.len() {
        factors[at] = (factor >> (32 - FACTOR_SHIFT)) as u64;
        factor = factor * factor / one;
        at += 1;
    }
    factors
};

/// The averages of several totals.
#[derive(Clone, Debug)]
pub(super) struct Averages<const COUNT: usize> {
    /// The epoch that is counted; `None` until the clock is known.
    epoch: Option<u64>,
    averages: [Average; COUNT],
}

/// The average of a total.
#[derive(Clone, Copy, Default, Debug)]
struct Average {
    /// The total when the epoch began.
    mark: u64,
    /// The average for an epoch, scaled.
    average: u64,
}

impl Average {
    /// The scaled average at the end of an epoch, and of `idle` ones behind it.
    fn closed(self, total: u64, idle: u64) -> u64 {
        let counted = total.wrapping_sub(self.mark);
        let average = self.average - (self.average >> STABILITY);
        let average = average.saturating_add(counted << (u64::from(SCALE) - STABILITY));
        let idle = idle.min(MOST_IDLE);
        let factors = FACTORS.iter().enumerate().filter(|(bit, _)| idle >> bit & 1 == 1);
        factors.fold(average, |average, (_, factor)| average.saturating_mul(*factor) >> FACTOR_SHIFT)
    }
}

impl<const COUNT: usize> Averages<COUNT> {
    /// Of totals that are 0. What comes before the first tick is counted in the epoch that it ends.
    pub(super) fn new() -> Averages<COUNT> {
        Averages { epoch: None, averages: [Average::default(); COUNT] }
    }

    /// The epochs that passed since the one that is counted.
    fn passed(&self, now_ns: u64) -> Option<u64> {
        let now = now_ns >> EPOCH_SHIFT;
        let epoch = self.epoch.unwrap_or_else(|| now.saturating_sub(1));
        now.checked_sub(epoch).filter(|epochs| *epochs > 0)
    }

    /// Ends the epoch if another one has begun.
    pub(super) fn tick(&mut self, totals: [u64; COUNT], now_ns: u64) {
        let Some(passed) = self.passed(now_ns) else { return };
        for (average, total) in self.averages.iter_mut().zip(totals) {
            *average = Average { mark: total, average: average.closed(total, passed - 1) };
        }
        self.epoch = Some(now_ns >> EPOCH_SHIFT);
    }

    /// The scaled average per second of one of the totals at a time.
    pub(super) fn rate(&self, which: usize, total: u64, now_ns: u64) -> Option<u64> {
        let average = self.averages.get(which)?;
        let scaled = match self.passed(now_ns) {
            Some(passed) => average.closed(total, passed - 1),
            None => average.average,
        };
        Some(((u128::from(scaled) * 1_000_000_000) >> EPOCH_SHIFT) as u64)
    }
}
