//! A token bucket, stored as one time: the generic cell rate algorithm (ITU-T I.371, annex A), which needs no
//! refill.

/// A rate, and the size of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    bits_per_s: u64,
    burst_ns: u64,
}

impl Limit {
    /// A limit; frames count without FCS. The rate must not be 0.
    pub fn new(bits_per_s: u64, burst_bytes: u64) -> Limit {
        let bits_per_s = bits_per_s.max(1);
        Limit { bits_per_s, burst_ns: time_ns(burst_bytes, bits_per_s) }
    }
}

fn time_ns(bytes: u64, bits_per_s: u64) -> u64 {
    let time = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(bits_per_s);
    u64::try_from(time).unwrap_or(u64::MAX / 4)
}

/// A source's bucket.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bucket {
    /// When it will be full again: the time at which the last bit would leave at the rate alone.
    full_ns: u64,
}

impl Bucket {
    /// Takes a packet; returns when it may leave. `None`, and nothing is taken, when that is later than
    /// `most_delay_ns` from now.
    pub fn take(&mut self, limit: Limit, bytes: u64, now_ns: u64, most_delay_ns: u64) -> Option<u64> {
        let full_ns = self.full_ns.max(now_ns) + time_ns(bytes, limit.bits_per_s);
        let at = full_ns.saturating_sub(limit.burst_ns).max(now_ns);
        if at - now_ns > most_delay_ns {
            return None;
        }
        self.full_ns = full_ns;
        Some(at)
    }

    /// The time at which it is full again.
    pub fn full_ns(&self) -> u64 {
        self.full_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Mbit/s: a byte per microsecond.
    const LIMIT: fn() -> Limit = || Limit::new(8_000_000, 3_000);

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = Bucket::default();
        let mut take = |now_us: u64| bucket.take(LIMIT(), 1_000, now_us * 1_000, 0).is_some();
        assert_eq!([take(1), take(1), take(1), take(1)], [true, true, true, false]);
        assert_eq!([take(500), take(1_001), take(1_001)], [false, true, false]);
        // A long pause does not increase the burst.
        assert_eq!([take(90_000), take(90_000), take(90_000), take(90_000)], [true, true, true, false]);
    }

    #[test]
    fn a_queue_leaves_at_the_rate_and_has_an_end() {
        let mut bucket = Bucket::default();
        let mut take = || bucket.take(LIMIT(), 1_000, 1_000, 2_500_000);
        let times: Vec<Option<u64>> = (0..7).map(|_| take()).collect();
        let at = |us: u64| Some(1_000 + us * 1_000);
        assert_eq!(times, [at(0), at(0), at(0), at(1_000), at(2_000), None, None]);
    }
}
