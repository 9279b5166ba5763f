//! The rate limit of `RatedUnqueue`, `Shaper`, `RatedSplitter` and their bandwidth variants.

use super::token_bucket::TokenBucket;
use click::config::{Args, Names, Parsed, parse};
use diag::Spanned;
use element::Work;
use element::value::written;
use shm::burst::Vector;

/// The unit of a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    fn parse_rate(self) -> fn(&Spanned, &dyn Names) -> Parsed<u64> {
        match self {
            Unit::Packets => parse::u64,
            Unit::Bytes => parse::bandwidth_bytes_per_s,
        }
    }
}

/// A rate of packets or bytes.
pub(super) struct Limit {
    unit: Unit,
    burst_ns: u64,
    /// The burst in tokens, if it is given instead of a time.
    burst: Option<u64>,
    is_burst_given: bool,
    bucket: TokenBucket,
}

impl Limit {
    /// Reads `RATE`, and `BURST_DURATION` and `BURST_SIZE` (`BURST_BYTES`).
    pub(super) fn read(args: &mut Args<'_>, unit: Unit) -> Option<Limit> {
        let rate = args.mandatory_positional("RATE", unit.parse_rate());
        let duration = args.keyword("BURST_DURATION", parse::seconds_ns);
        let size = match unit {
            Unit::Packets => args.keyword("BURST_SIZE", parse::u64),
            Unit::Bytes => args.keyword("BURST_BYTES", parse::u64),
        };
        if duration.is_some() && size.is_some() {
            let span = args.span();
            args.error(span, "give BURST_DURATION or the size of a burst, not both");
            return None;
        }
        let (burst_ns, is_burst_given) =
            (duration.unwrap_or(20_000_000), duration.is_some() || size.is_some());
        let bucket = TokenBucket::new(rate?, 0);
        let mut limit = Limit { unit, burst_ns, burst: size, is_burst_given, bucket };
        let capacity = limit.capacity(limit.bucket.rate_per_s());
        limit.bucket = TokenBucket::new(limit.bucket.rate_per_s(), capacity);
        Some(limit)
    }

    fn capacity(&self, rate: u64) -> u64 {
        let in_burst_ns = u128::from(rate) * u128::from(self.burst_ns) / 1_000_000_000;
        let capacity = self.burst.unwrap_or(u64::try_from(in_burst_ns).unwrap_or(u64::MAX));
        // One packet must fit. Bytes need no minimum: the level may fall below zero.
        if self.unit == Unit::Packets { capacity.max(1) } else { capacity }
    }

    /// The handler `rate`: packets or bytes a second.
    pub(super) fn rate_text(&self) -> String {
        let rate = self.bucket.rate_per_s();
        match self.unit {
            Unit::Packets => rate.to_string(),
            Unit::Bytes => bandwidth_text(rate),
        }
    }

    /// Writes the handler `rate`.
    pub(super) fn set_rate(&mut self, value: &str) -> Result<(), String> {
        let rate = written(value, self.unit.parse_rate())?;
        self.bucket.adjust(rate, self.capacity(rate));
        Ok(())
    }

    /// Starts over: with a full bucket if a burst is asked for, else with one packet.
    pub(super) fn reset(&mut self) {
        self.bucket.set_level(if self.is_burst_given { u64::MAX } else { 1 });
    }

    /// Whether the rate allows a packet now.
    pub(super) fn allows(&mut self, now_ns: u64) -> bool {
        self.bucket.fill(now_ns);
        match self.unit {
            Unit::Packets => self.bucket.tokens() > 0,
            Unit::Bytes => self.bucket.may_go(),
        }
    }

    /// Adds the tokens since the last fill.
    pub(super) fn fill(&mut self, now_ns: u64) {
        self.bucket.fill(now_ns);
    }

    /// Whether the rate allows a packet of so many bytes now; its tokens are taken then.
    pub(super) fn admits(&mut self, bytes: u64) -> bool {
        let (admitted, tokens) = match self.unit {
            Unit::Packets => (self.bucket.tokens() > 0, 1),
            Unit::Bytes => (self.bucket.may_go(), bytes),
        };
        if admitted {
            self.bucket.take(tokens);
        }
        admitted
    }

    /// Tells the worker when the next token comes, so that it does not sleep for longer: a small bucket would
    /// overflow meanwhile.
    fn wake_in_time(&self, work: &mut Work<'_>) {
        let tokens = u64::from(self.unit == Unit::Packets);
        if let Some(wait_ns) = self.bucket.wait_ns(tokens) {
            work.wake_at(work.now_ns().saturating_add(wait_ns.max(1)));
        }
    }

    /// Pulls up to `most` packets from input 0, as the rate allows. Returns their number, and whether the
    /// rate allowed any.
    pub(super) fn pull(&mut self, most: usize, into: &mut Vector, work: &mut Work<'_>) -> (usize, bool) {
        let (count, allowed) = self.pull_now(most, into, work);
        if !allowed {
            self.wake_in_time(work);
        }
        (count, allowed)
    }

    fn pull_now(&mut self, most: usize, into: &mut Vector, work: &mut Work<'_>) -> (usize, bool) {
        self.bucket.fill(work.now_ns());
        match self.unit {
            Unit::Packets => {
                let tokens = usize::try_from(self.bucket.tokens()).unwrap_or(usize::MAX);
                let most = most.min(tokens);
                let count = if most > 0 { work.pull(0, most, into) } else { 0 };
                self.bucket.take(count as u64);
                (count, tokens > 0)
            }
            Unit::Bytes => {
                let allowed = self.bucket.may_go();
                let mut count = 0;
                // One by one, since the length of a packet is known only after it was pulled.
                while count < most && self.bucket.may_go() && work.pull(0, 1, into) == 1 {
                    count += 1;
                    let last = into.list().last().map_or(0, |index| into.packet(*index).total());
                    self.bucket.take(u64::from(last));
                }
                (count, allowed)
            }
        }
    }
}

/// A bandwidth as Click writes it: in bits per second, with the largest prefix that needs no fraction.
pub(super) fn bandwidth_text(bytes_per_s: u64) -> String {
    let bits = u128::from(bytes_per_s) * 8;
    let unit = [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps")];
    let unit = unit.into_iter().find(|(factor, _)| bits >= *factor && bits.is_multiple_of(*factor));
    let (factor, name) = unit.unwrap_or((1, "bps"));
    format!("{}{name}", bits / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_read_as_they_are_written() {
        for bytes_per_s in [0, 1, 125, 48_000, 125_000, 1_500_000, 125_000_000, 12_500_000_001] {
            assert_eq!(written(&bandwidth_text(bytes_per_s), parse::bandwidth_bytes_per_s), Ok(bytes_per_s));
        }
        assert_eq!(bandwidth_text(48_000), "384kbps");
    }
}
