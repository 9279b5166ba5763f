//! When frames arrive, and what became of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A trial that ports carry out together. One thread starts trials, packet threads follow.
#[derive(Debug)]
pub struct Pace {
    epoch: Instant,
    /// Number of the trial, which is written last.
    trial: AtomicU64,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    /// Nanoseconds from frame to frame, as the bits of a number.
    gap_ns: AtomicU64,
    /// Frames that have arrived at a ring, those for which it had no room, and those that the chain sent.
    arrived: AtomicU64,
    missed: AtomicU64,
    sent: AtomicU64,
}

impl Default for Pace {
    fn default() -> Pace {
        let zero = || AtomicU64::new(0);
        Pace {
            epoch: Instant::now(),
            trial: zero(),
            start_ns: zero(),
            end_ns: zero(),
            gap_ns: zero(),
            arrived: zero(),
            missed: zero(),
            sent: zero(),
        }
    }
}

/// What a trial did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that arrived.
    pub arrived: u64,
    /// Those of them for which there was no room.
    pub missed: u64,
    /// Frames that came out of the chain.
    pub sent: u64,
}

impl Pace {
    /// Now, as ports tell time.
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Starts a trial: so many frames a second at each of `ports` rings, for so long, from now on.
    pub fn start(&self, load: f64, duration_s: f64, ports: usize) {
        // Ports look at the number first: none takes half of a trial.
        let now_ns = self.now_ns();
        self.end_ns.store(0, Ordering::Release);
        for count in [&self.arrived, &self.missed, &self.sent] {
            count.store(0, Ordering::Release);
        }
        self.gap_ns.store((1e9 * ports.max(1) as f64 / load).to_bits(), Ordering::Release);
        self.start_ns.store(now_ns, Ordering::Release);
        self.end_ns.store(now_ns + (duration_s * 1e9) as u64, Ordering::Release);
        self.trial.fetch_add(1, Ordering::AcqRel);
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Acquire);
        Counts { arrived: get(&self.arrived), missed: get(&self.missed), sent: get(&self.sent) }
    }

    pub(super) fn count_sent(&self, packets: usize) {
        self.sent.fetch_add(packets as u64, Ordering::Relaxed);
    }
}

/// A receive ring into which frames arrive.
#[derive(Debug)]
pub struct Ring {
    room: u64,
    trial: u64,
    /// Frames that arrived in this trial, and those of them that wait.
    arrived: u64,
    waiting: u64,
}

impl Ring {
    /// With room for so many frames.
    pub fn new(room: u64) -> Ring {
        Ring { room, trial: 0, arrived: 0, waiting: 0 }
    }

    /// How many frames wait, now that what is due has arrived.
    pub fn arrive(&mut self, pace: &Pace, now_ns: u64) -> u64 {
        let trial = pace.trial.load(Ordering::Acquire);
        if trial != self.trial {
            *self = Ring { trial, ..Ring::new(self.room) };
        }
        let (start_ns, end_ns) = (pace.start_ns.load(Ordering::Acquire), pace.end_ns.load(Ordering::Acquire));
        let gap_ns = f64::from_bits(pace.gap_ns.load(Ordering::Acquire));
        if trial == 0 || end_ns <= start_ns || gap_ns.is_nan() || gap_ns <= 0.0 {
            return self.waiting;
        }
        let elapsed_ns = now_ns.min(end_ns).saturating_sub(start_ns);
        let due = (elapsed_ns as f64 / gap_ns) as u64;
        let new = due.saturating_sub(self.arrived);
        let fit = new.min(self.room - self.waiting);
        self.arrived += new;
        self.waiting += fit;
        if new > 0 {
            pace.arrived.fetch_add(new, Ordering::Relaxed);
            pace.missed.fetch_add(new - fit, Ordering::Relaxed);
        }
        self.waiting
    }

    /// Says that so many were fetched.
    pub fn fetched(&mut self, frames: usize) {
        self.waiting = self.waiting.saturating_sub(frames as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_when_they_are_due_and_are_lost_where_there_is_no_room() {
        let pace = Pace::default();
        let mut ring = Ring::new(100);
        assert_eq!(ring.arrive(&pace, 5), 0, "no trial yet");
        pace.start(1e6, 0.001, 1);
        let start = pace.start_ns.load(Ordering::Relaxed);
        assert_eq!(ring.arrive(&pace, start + 10_500), 10);
        ring.fetched(4);
        assert_eq!(ring.arrive(&pace, start + 50_000), 46);
        assert_eq!(ring.arrive(&pace, start + 200_000), 100);
        assert_eq!(pace.counts(), Counts { arrived: 200, missed: 96, sent: 0 });
        ring.fetched(100);
        // Nothing arrives after the end.
        assert_eq!(ring.arrive(&pace, start + 1_000_000), 100);
        ring.fetched(100);
        assert_eq!(ring.arrive(&pace, start + 9_000_000), 0);
        assert_eq!(pace.counts().arrived, 1_000);
        // Two rings share a load, and a new trial begins with empty ones.
        pace.start(1e6, 0.001, 2);
        let start = pace.start_ns.load(Ordering::Relaxed);
        let mut other = Ring::new(1_000);
        assert_eq!((ring.arrive(&pace, start + 20_000), other.arrive(&pace, start + 20_000)), (10, 10));
        assert_eq!(pace.counts(), Counts { arrived: 20, missed: 0, sent: 0 });
    }
}
