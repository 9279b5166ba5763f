//! Sampling and pacing for sources that read files.

use element::random;

/// Fraction bits of a sampling probability, as in Click.
pub(super) const SAMPLING_SHIFT: u32 = 28;
const ALWAYS: u32 = 1 << SAMPLING_SHIFT;

/// Samples packets at random. The choice is the same in every run.
pub(super) struct Sampler {
    probability: u32,
    state: u64,
}

impl Sampler {
    /// Samples with this probability, a fixed-point number; above 1 counts as 1.
    pub fn new(probability: u32) -> Sampler {
        Sampler { probability: probability.min(ALWAYS), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Whether the next packet is in the sample.
    pub fn picks(&mut self) -> bool {
        if self.probability == ALWAYS {
            return true;
        }
        ((random::next_number(&mut self.state) >> 32) as u32 & (ALWAYS - 1)) < self.probability
    }

    /// The probability as the shortest decimal number that is read as the same.
    pub fn text(&self) -> String {
        let value = f64::from(self.probability) / f64::from(ALWAYS);
        let means_it = |text: &str| {
            let read: f64 = text.parse().unwrap_or(-1.0);
            (read * f64::from(ALWAYS)).round() == f64::from(self.probability)
        };
        let candidates = (0..10).map(|digits| format!("{value:.digits$}"));
        candidates.into_iter().find(|text| means_it(text)).unwrap_or_else(|| value.to_string())
    }
}

/// Replays the times between packets; the first packet is due at once.
pub(super) struct Pace {
    /// Percent of the original speed.
    percent: u64,
    /// The clock and the packet's timestamp when the first packet was due.
    start_ns: Option<(u64, u64)>,
}

impl Pace {
    /// With this percentage of the original speed.
    pub fn new(percent: u64) -> Pace {
        Pace { percent: percent.max(1), start_ns: None }
    }

    /// Whether a packet with that timestamp is due.
    pub fn is_due(&mut self, timestamp_ns: u64, now_ns: u64) -> bool {
        let (clock_ns, first_ns) = *self.start_ns.get_or_insert((now_ns, timestamp_ns));
        let since_ns = u128::from(timestamp_ns.saturating_sub(first_ns)) * 100 / u128::from(self.percent);
        u128::from(now_ns.saturating_sub(clock_ns)) >= since_ns
    }

    /// Starts over with the next packet.
    pub fn reset(&mut self) {
        self.start_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_picks_about_as_often_as_it_is_told_and_says_so() {
        let mut half = Sampler::new(ALWAYS / 2);
        let picked = (0..10_000).filter(|_| half.picks()).count();
        assert!((4_500..5_500).contains(&picked), "{picked}");
        assert!((0..1_000).all(|_| Sampler::new(u32::MAX).picks()));
        assert!(!(0..1_000).any(|_| Sampler::new(0).picks()));
        let texts = [0, 26_843_546, ALWAYS / 2, ALWAYS].map(|probability| Sampler::new(probability).text());
        assert_eq!(texts, ["0", "0.1", "0.5", "1"]);
    }

    #[test]
    fn pace_keeps_distances_and_scales_them() {
        let mut pace = Pace::new(200);
        assert!(pace.is_due(5_000, 1_000_000));
        assert!(!pace.is_due(7_000, 1_000_999) && pace.is_due(7_000, 1_001_000));
        assert!(pace.is_due(4_000, 1_000_000), "times may go back");
        pace.reset();
        assert!(pace.is_due(u64::MAX, 0));
    }
}
