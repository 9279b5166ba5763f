//! Virtual time: a clock that goes on when every worker is idle, to the time at which the next thing happens.
//!
//! A run on it takes as long as its work does, whatever time passes in it: waits, rates, delays and timeouts cost
//! nothing. A turn in which a worker did something takes [`TURN_NS`], so that a source that never rests does not stop
//! the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The time that a turn with work takes, in nanoseconds.
const TURN_NS: u64 = 1_000;
/// How long nothing happens, nor is due, until the time ends.
const QUIET_NS: u64 = 3_600_000_000_000;

/// The clock of a run's workers.
#[derive(Debug)]
pub struct VirtualClock {
    now_ns: AtomicU64,
    /// The time at which it stands still.
    end_ns: AtomicU64,
    /// When a worker did something for the last time.
    worked_ns: AtomicU64,
    /// Turns in which a worker did something, and times that passed: what a worker said before is out of date.
    epoch: AtomicU64,
    /// What each worker said when it was idle: the epoch in which its turn began, and when it has something to do.
    /// `None` for one that has ended.
    idle: Mutex<Vec<Option<(u64, u64)>>>,
}

impl VirtualClock {
    /// A clock of so many workers that stands at a time, in nanoseconds since the epoch, and goes on to another one.
    pub fn new(workers: usize, start_ns: u64, end_ns: Option<u64>) -> VirtualClock {
        VirtualClock {
            now_ns: AtomicU64::new(start_ns),
            end_ns: AtomicU64::new(end_ns.unwrap_or(u64::MAX)),
            worked_ns: AtomicU64::new(start_ns),
            epoch: AtomicU64::new(1),
            idle: Mutex::new(vec![Some((0, 0)); workers]),
        }
    }

    /// The time.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Acquire)
    }

    /// Whether it has come to its end: the time that was set, or an hour in which nothing happened, and after which
    /// nothing is due.
    pub fn is_at_end(&self) -> bool {
        self.now_ns() >= self.end_ns.load(Ordering::Acquire)
    }

    fn go_on_to(&self, at_ns: u64) {
        self.now_ns.fetch_max(at_ns.min(self.end_ns.load(Ordering::Acquire)), Ordering::AcqRel);
    }

    /// The epoch in which a turn begins.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Lets the time pass that a turn takes, begun at a time, in which a worker did something.
    pub(crate) fn worked(&self, began_ns: u64) {
        self.worked_ns.fetch_max(began_ns, Ordering::AcqRel);
        self.go_on_to(began_ns.saturating_add(TURN_NS));
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// Says that a worker did nothing in a turn that began in an epoch, and will have something to do at a time,
    /// [`u64::MAX`] for never. If all workers are idle, the time goes on by a step, but not past the first of theirs.
    /// Returns whether it did.
    pub(crate) fn idle(&self, worker: usize, epoch: u64, due_ns: u64, step_ns: u64) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle[worker] = Some((epoch, due_ns));
        let now = self.epoch();
        if idle.iter().flatten().any(|(epoch, _)| *epoch != now) {
            return false;
        }
        let first_ns = idle.iter().flatten().map(|(_, due_ns)| *due_ns).min().unwrap_or(u64::MAX);
        let now_ns = self.now_ns();
        let is_quiet = now_ns.saturating_sub(self.worked_ns.load(Ordering::Acquire)) > QUIET_NS;
        if first_ns == u64::MAX && is_quiet {
            self.end_ns.fetch_min(now_ns, Ordering::AcqRel);
        }
        self.go_on_to(first_ns.min(now_ns.saturating_add(step_ns)));
        self.epoch.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Says that a worker has ended: the others do not wait for it.
    pub(crate) fn leave(&self, worker: usize) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)[worker] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_all_are_idle_to_the_first_of_their_times() {
        let clock = VirtualClock::new(2, 1_000, Some(9_000));
        let epoch = clock.epoch();
        assert!(!clock.idle(0, epoch, 5_000, 9_000));
        // The other one hands it a packet: what it said is out of date.
        clock.worked(1_000);
        assert_eq!(clock.now_ns(), 2_000);
        let epoch = clock.epoch();
        assert!(!clock.idle(1, epoch, 7_000, 9_000) && clock.now_ns() == 2_000);
        assert!(clock.idle(0, epoch, 5_000, 9_000) && clock.now_ns() == 5_000);
        assert!(!clock.idle(0, clock.epoch(), 6_000, 9_000));
        clock.leave(1);
        assert!(clock.idle(0, clock.epoch(), u64::MAX, 3_000) && clock.now_ns() == 8_000);
        assert!(clock.idle(0, clock.epoch(), u64::MAX, 3_000) && clock.is_at_end());
        clock.worked(9_000);
        assert_eq!(clock.now_ns(), 9_000);
    }

    #[test]
    fn a_time_in_which_nothing_will_happen_ends_after_an_hour() {
        let clock = VirtualClock::new(1, 1_000, None);
        let idle = |due_ns, step_ns| clock.idle(0, clock.epoch(), due_ns, step_ns);
        assert!(idle(3 * QUIET_NS, 2 * QUIET_NS) && idle(3 * QUIET_NS, QUIET_NS) && !clock.is_at_end());
        clock.worked(clock.now_ns());
        assert!(idle(u64::MAX, QUIET_NS - TURN_NS) && idle(u64::MAX, 1_000) && !clock.is_at_end());
        assert!(idle(u64::MAX, 1_000) && clock.is_at_end());
    }
}
