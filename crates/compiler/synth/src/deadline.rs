//! When work that could go on for long has to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A time, and a request to end sooner, such as a signal. Whoever works asks [`Deadline::is_over`] at each
/// step.
#[derive(Clone, Default, Debug)]
pub struct Deadline {
    until: Option<Instant>,
    stop: Arc<AtomicBool>,
}

impl Deadline {
    /// At that time, or once `stop` is set.
    pub fn new(until: Instant, stop: Arc<AtomicBool>) -> Deadline {
        Deadline { until: Some(until), stop }
    }

    /// The same, and at that time at the latest.
    pub fn at_the_latest(&self, until: Instant) -> Deadline {
        Deadline { until: Some(self.soonest(until)), stop: Arc::clone(&self.stop) }
    }

    /// That time, or its own where that is sooner.
    pub fn soonest(&self, until: Instant) -> Instant {
        self.until.map_or(until, |own| own.min(until))
    }

    /// Whether work has to end now.
    pub fn is_over(&self) -> bool {
        self.is_stopped() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Whether it was requested to end sooner.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
