//! The due times of a trial's frames.

use crate::BenchError;
use crate::load::Offer;
use crate::load::stamp::NUMBERS;
use crate::start::failed;

/// The times of a trial, in nanoseconds from its start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Schedule {
    /// The number of frames.
    pub frames: u64,
    /// The end of the trial: no frame is due later.
    pub end_ns: u64,
    gap_ns: f64,
    burst: u64,
}

impl Schedule {
    /// The schedule of an offer.
    ///
    /// # Errors
    /// When the offer is not a valid load.
    pub fn new(offer: &Offer) -> Result<Schedule, BenchError> {
        let Offer { load, duration_s, .. } = *offer;
        let is_load = load > 0.0 && load.is_finite() && duration_s > 0.0 && duration_s.is_finite();
        if !is_load || load * duration_s >= NUMBERS as f64 {
            let told = format!("{load} frames a second for {duration_s} s are no load that can be offered");
            return Err(failed(told));
        }
        let burst = offer.arrival.burst();
        Ok(Schedule { frames: offer.frames(), end_ns: (duration_s * 1e9) as u64, gap_ns: 1e9 / load, burst })
    }

    /// When a frame is due.
    #[inline]
    pub fn due_ns(&self, frame: u64) -> u64 {
        ((frame / self.burst * self.burst) as f64 * self.gap_ns) as u64
    }

    /// The number of frames that are due by a time, including earlier ones.
    #[inline]
    pub fn due_by(&self, now_ns: u64) -> u64 {
        let bursts = (now_ns as f64 / (self.gap_ns * self.burst as f64)) as u64 + 1;
        bursts.saturating_mul(self.burst).min(self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Arrival;
    use proptest::prelude::*;

    #[test]
    fn frames_are_due_one_after_the_other_or_so_many_at_once() {
        let even = Schedule::new(&Offer::even(1e6, 0.001)).expect("a load");
        assert_eq!((even.frames, even.end_ns), (1_000, 1_000_000));
        assert_eq!([0, 1, 999].map(|frame| even.due_ns(frame)), [0, 1_000, 999_000]);
        assert_eq!([0, 999, 1_500, 998_500, 9_000_000].map(|now| even.due_by(now)), [1, 1, 2, 999, 1_000]);
        let bursts = Offer { arrival: Arrival::Bursts(32), ..Offer::even(1e6, 0.001) };
        let bursts = Schedule::new(&bursts).expect("a load");
        assert_eq!([0, 31, 32, 63].map(|frame| bursts.due_ns(frame)), [0, 0, 32_000, 32_000]);
        assert_eq!([0, 31_000, 33_000, 9_000_000].map(|now| bursts.due_by(now)), [32, 32, 64, 1_000]);
    }

    #[test]
    fn what_is_no_load_is_refused() {
        for (load, duration_s) in [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1e9, 0.0), (1e12, 1e6)] {
            assert!(Schedule::new(&Offer::even(load, duration_s)).is_err(), "{load} {duration_s}");
        }
    }

    proptest! {
        #[test]
        fn what_is_due_by_a_time_was_due_before_it(
            load in 1.0..1e8f64, burst in 1..200u64, now_ns in 0..10_000_000_000u64,
        ) {
            let offer = Offer { arrival: Arrival::Bursts(burst), ..Offer::even(load, 10.0) };
            let schedule = Schedule::new(&offer).expect("a load");
            let due = schedule.due_by(now_ns);
            // Within the precision of a 53-bit mantissa.
            prop_assert!(due == 0 || schedule.due_ns(due - 1) <= now_ns + 2);
            prop_assert!(due == schedule.frames || schedule.due_ns(due) + 2 >= now_ns);
        }
    }
}
