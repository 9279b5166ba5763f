//! Token buckets: limit a rate.
//!
//! Levels are exact: a token has a billion parts, and each nanosecond adds as many parts as the rate has
//! tokens per second. A level may fall below zero if the size of a packet is known only after it was pulled.

/// Parts of a token.
const PARTS: i128 = 1_000_000_000;

/// A bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TokenBucket {
    rate_per_s: u64,
    capacity: u64,
    level_parts: i128,
    /// The time of the last fill; `None` before the first.
    filled_at_ns: Option<u64>,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(rate_per_s: u64, capacity: u64) -> TokenBucket {
        let level_parts = i128::from(capacity) * PARTS;
        TokenBucket { rate_per_s, capacity, level_parts, filled_at_ns: None }
    }

    /// Changes rate and capacity; the level is cut to the capacity.
    pub(crate) fn adjust(&mut self, rate_per_s: u64, capacity: u64) {
        (self.rate_per_s, self.capacity) = (rate_per_s, capacity);
        self.set(self.level_parts);
    }

    /// Tokens a second.
    pub(crate) fn rate_per_s(&self) -> u64 {
        self.rate_per_s
    }

    fn set(&mut self, level_parts: i128) {
        self.level_parts = level_parts.min(i128::from(self.capacity) * PARTS);
    }

    /// Sets the level.
    pub(crate) fn set_level(&mut self, tokens: u64) {
        self.set(i128::from(tokens) * PARTS);
    }

    /// Adds the tokens since the last fill.
    pub(crate) fn fill(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.filled_at_ns.unwrap_or(now_ns));
        self.filled_at_ns = Some(now_ns);
        let brought = i128::from(since_ns).saturating_mul(i128::from(self.rate_per_s));
        self.set(self.level_parts.saturating_add(brought));
    }

    /// Whole tokens in the bucket.
    pub(crate) fn tokens(&self) -> u64 {
        u64::try_from(self.level_parts / PARTS).unwrap_or(0)
    }

    /// Whether a packet may leave: the level is not below zero.
    pub(crate) fn may_go(&self) -> bool {
        self.level_parts >= 0
    }

    /// Nanoseconds until the bucket has so many tokens; `None` if it never has.
    pub(crate) fn wait_ns(&self, tokens: u64) -> Option<u64> {
        let missing = i128::from(tokens) * PARTS - self.level_parts;
        match (missing, i128::from(self.rate_per_s)) {
            (..=0, _) => Some(0),
            (_, 0) => None,
            (missing, rate) => u64::try_from((missing + rate - 1) / rate).ok(),
        }
    }

    /// Removes tokens; the level may fall below zero.
    pub(crate) fn take(&mut self, tokens: u64) {
        self.level_parts -= i128::from(tokens) * PARTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_a_long_time_the_rate_holds_exactly() {
        let mut bucket = TokenBucket::new(3, 2);
        let mut gone = 0;
        for now_ns in (0..=100_000_000_000u64).step_by(7_777_777) {
            bucket.fill(now_ns);
            gone += bucket.tokens();
            bucket.take(bucket.tokens());
        }
        // Two at the start, and three a second for the 100 seconds less the last step.
        assert!((301..=302).contains(&gone), "{gone}");
    }

    #[test]
    fn a_wait_ends_with_the_token() {
        let mut bucket = TokenBucket::new(3, 2);
        bucket.fill(0);
        bucket.take(2);
        let wait_ns = bucket.wait_ns(1).unwrap();
        assert_eq!(wait_ns, 333_333_334);
        bucket.fill(wait_ns - 1);
        assert_eq!(bucket.tokens(), 0);
        bucket.fill(wait_ns);
        assert_eq!((bucket.tokens(), bucket.wait_ns(1)), (1, Some(0)));
        bucket.take(5);
        assert!(bucket.wait_ns(0) > Some(1_000_000_000));
        assert_eq!(TokenBucket::new(0, 0).wait_ns(1), None);
    }

    #[test]
    fn a_bucket_holds_no_more_than_its_capacity() {
        let mut bucket = TokenBucket::new(u64::MAX, 5);
        bucket.fill(0);
        bucket.fill(u64::MAX);
        assert_eq!(bucket.tokens(), 5);
        bucket.take(9);
        assert!(!bucket.may_go() && bucket.tokens() == 0);
        bucket.adjust(4, 1);
        bucket.fill(u64::MAX);
        bucket.set_level(3);
        assert_eq!((bucket.tokens(), bucket.rate_per_s()), (1, 4));
        // A clock that goes back brings nothing.
        bucket.take(1);
        bucket.fill(0);
        assert_eq!(bucket.tokens(), 0);
    }
}
