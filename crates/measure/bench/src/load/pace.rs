//! The arrival of frames in receive rings, and the counts of a trial.

use super::offer::Offer;
use super::recorder::{FlowRecord, Recorder};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The recorder of a sink in a trial; `None` in trials without stamps.
pub type Notes = Arc<Mutex<Option<Recorder>>>;

/// When the frames of a trial arrive at each ring.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    start_ns: u64,
    end_ns: u64,
    /// From burst to burst.
    gap_ns: f64,
    /// Frames of a burst, and of how many one has a stamp: 1 at least, once a trial was started.
    burst: u64,
    stamp_every: u64,
}

/// A trial that ports carry out together. One thread starts trials, packet threads follow.
#[derive(Debug)]
pub struct Pace {
    epoch: Instant,
    /// Number of the trial, which is written last: a ring that sees a new one takes its arrivals, once.
    trial: AtomicU64,
    arrivals: Mutex<Arrivals>,
    is_stamped: AtomicBool,
    is_sampled: AtomicBool,
    /// Whether the parts of latencies are recorded.
    is_timed: AtomicBool,
    /// Frames that have arrived at a ring, those for which it had no room, and those that the chain sent.
    arrived: AtomicU64,
    missed: AtomicU64,
    sent: AtomicU64,
    notes: Mutex<Vec<Notes>>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            epoch: Instant::now(),
            trial: AtomicU64::default(),
            arrivals: Mutex::default(),
            is_stamped: AtomicBool::default(),
            is_sampled: AtomicBool::default(),
            is_timed: AtomicBool::default(),
            arrived: AtomicU64::default(),
            missed: AtomicU64::default(),
            sent: AtomicU64::default(),
            notes: Mutex::default(),
        }
    }
}

/// The counts of a trial so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that arrived.
    pub arrived: u64,
    /// Arrived frames for which there was no room.
    pub missed: u64,
    /// Frames that came out of the chain.
    pub sent: u64,
}

impl Pace {
    /// The current time on the ports' clock.
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Starts a trial. Its load is shared by as many rings as `flows` has entries; each entry is the number
    /// of frames after which the flows of a ring repeat.
    pub fn start(&self, offer: &Offer, flows: &[u64]) {
        let rings = flows.len().max(1);
        let burst = offer.arrival.burst();
        let each = offer.frames() / rings as u64 + burst;
        for notes in self.notes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let recorder = || {
                let recorder = Recorder::new(each, flows);
                if self.is_timed() { recorder.with_parts() } else { recorder }
            };
            let fresh = offer.stamped.then(recorder);
            *notes.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        for count in [&self.arrived, &self.missed, &self.sent] {
            count.store(0, Ordering::Release);
        }
        let (start_ns, stamp_every) = (self.now_ns(), offer.stamp_every.max(1));
        self.is_stamped.store(offer.stamped, Ordering::Release);
        self.is_sampled.store(stamp_every > 1, Ordering::Release);
        *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner) = Arrivals {
            start_ns,
            end_ns: start_ns + (offer.duration_s * 1e9) as u64,
            gap_ns: 1e9 * rings as f64 * burst as f64 / offer.load,
            burst,
            stamp_every,
        };
        self.trial.fetch_add(1, Ordering::AcqRel);
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let get = |count: &AtomicU64| count.load(Ordering::Acquire);
        Counts { arrived: get(&self.arrived), missed: get(&self.missed), sent: get(&self.sent) }
    }

    /// Takes the sinks' recorders of the trial and returns their sum; `None` where frames had no stamps.
    pub fn take_notes(&self) -> Option<FlowRecord> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = notes.iter().filter_map(|one| one.lock().unwrap_or_else(PoisonError::into_inner).take());
        let all = taken.reduce(|mut all, other| {
            all.add(&other);
            all
        });
        all.map(Recorder::seen)
    }

    /// Adds the recorder of one more sink.
    pub(super) fn notes(&self) -> Notes {
        let notes = Notes::default();
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&notes));
        notes
    }

    pub(super) fn is_stamped(&self) -> bool {
        self.is_stamped.load(Ordering::Relaxed)
    }

    /// Whether some frames of the trial have no stamp.
    pub(super) fn is_sampled(&self) -> bool {
        self.is_sampled.load(Ordering::Relaxed)
    }

    /// Has the trials from now on record the parts of latencies.
    pub fn time_parts(&self) {
        self.is_timed.store(true, Ordering::Release);
    }

    /// Whether the parts of latencies are recorded.
    pub(super) fn is_timed(&self) -> bool {
        self.is_timed.load(Ordering::Relaxed)
    }

    pub(super) fn count_sent(&self, packets: usize) {
        self.sent.fetch_add(packets as u64, Ordering::Relaxed);
    }
}

/// When a ring hands out waiting frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Batching {
    /// At every poll, as many as wait. At low rates no frame waits for others, and at high rates those that
    /// arrived meanwhile make a batch.
    #[default]
    Adaptive,
    /// Only when `frames` wait, or the first one has waited for `wait_ns`: like a device with interrupt
    /// moderation, and the fixed batches of Niu et al., "Unveiling Performance of NFV Software Dataplanes",
    /// section 5.
    Fixed {
        /// The number of frames.
        frames: u64,
        /// The longest time that the first frame waits.
        wait_ns: u64,
    },
}

/// A receive ring into which frames arrive.
#[derive(Debug)]
pub struct Ring {
    room: u64,
    batching: Batching,
    trial: u64,
    arrivals: Arrivals,
    /// Frames that arrived in this trial, and those of them that wait.
    arrived: u64,
    waiting: u64,
    /// The waiting frames, as runs of consecutive arrival numbers: the first number, and the count.
    rows: VecDeque<(u64, u64)>,
    /// Frames that were fetched in this trial.
    fetched: u64,
}

impl Ring {
    /// A ring with room for `room` frames.
    pub fn new(room: u64, batching: Batching) -> Ring {
        Ring {
            room,
            batching,
            trial: 0,
            arrivals: Arrivals::default(),
            arrived: 0,
            waiting: 0,
            rows: VecDeque::with_capacity(1024),
            fetched: 0,
        }
    }

    /// How many frames can be fetched, now that what is due has arrived.
    pub fn arrive(&mut self, pace: &Pace, now_ns: u64) -> u64 {
        let trial = pace.trial.load(Ordering::Acquire);
        if trial != self.trial {
            self.rows.clear();
            (self.trial, self.arrived, self.waiting, self.fetched) = (trial, 0, 0, 0);
            self.arrivals = *pace.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        }
        let Arrivals { start_ns, end_ns, gap_ns, burst, .. } = self.arrivals;
        if end_ns <= start_ns || gap_ns.is_nan() || gap_ns <= 0.0 {
            return self.waiting;
        }
        let elapsed_ns = now_ns.min(end_ns).saturating_sub(start_ns);
        let due = (elapsed_ns as f64 / gap_ns) as u64 * burst;
        let new = due.saturating_sub(self.arrived);
        let fit = new.min(self.room - self.waiting);
        if fit > 0 {
            match self.rows.back_mut() {
                Some((first, count)) if *first + *count == self.arrived => *count += fit,
                _ => self.rows.push_back((self.arrived, fit)),
            }
        }
        self.arrived += new;
        self.waiting += fit;
        if new > 0 {
            pace.arrived.fetch_add(new, Ordering::Relaxed);
            pace.missed.fetch_add(new - fit, Ordering::Relaxed);
        }
        match self.batching {
            Batching::Fixed { frames, wait_ns }
                if self.waiting < frames
                    && now_ns < end_ns
                    && now_ns < self.first_due_ns().saturating_add(wait_ns) =>
            {
                0
            }
            _ => self.waiting,
        }
    }

    /// When the frame with that arrival number was due.
    fn due_ns(&self, number: u64) -> u64 {
        let Arrivals { start_ns, gap_ns, burst, .. } = self.arrivals;
        start_ns + ((number / burst + 1) as f64 * gap_ns) as u64
    }

    /// When the first waiting frame was due.
    fn first_due_ns(&self) -> u64 {
        self.rows.front().map_or(u64::MAX, |(first, _)| self.due_ns(*first))
    }

    /// Fetches the first waiting frame; returns how many were fetched before it, and when it was due.
    pub fn fetch(&mut self) -> (u64, u64) {
        let number = self.fetched;
        let due_ns = self.first_due_ns();
        self.fetched(1);
        (number, due_ns)
    }

    /// The number of frames to fetch before the next one with a stamp, in trials with stamps.
    pub fn until_stamp(&self) -> usize {
        let every = self.arrivals.stamp_every.max(1);
        (every - 1 - (self.fetched + every - 1) % every) as usize
    }

    /// Removes this many fetched frames from the ring.
    pub fn fetched(&mut self, frames: usize) {
        let mut left = (frames as u64).min(self.waiting);
        (self.waiting, self.fetched) = (self.waiting - left, self.fetched + left);
        while let Some((first, count)) = self.rows.front_mut().filter(|_| left > 0) {
            let now = left.min(*count);
            (*first, *count) = (*first + now, *count - now);
            left -= now;
            if *count == 0 {
                self.rows.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Arrival;

    fn start_ns(pace: &Pace) -> u64 {
        pace.arrivals.lock().expect("whole").start_ns
    }

    #[test]
    fn frames_arrive_when_they_are_due_and_are_lost_where_there_is_no_room() {
        let pace = Pace::default();
        let mut ring = Ring::new(100, Batching::Adaptive);
        assert_eq!(ring.arrive(&pace, 5), 0, "no trial yet");
        pace.start(&Offer::even(1e6, 0.001), &[1]);
        let start = start_ns(&pace);
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
        // Two rings share a load, and a new trial begins with empty rings.
        pace.start(&Offer::even(1e6, 0.001), &[1, 1]);
        let start = start_ns(&pace);
        let mut other = Ring::new(1_000, Batching::Adaptive);
        assert_eq!((ring.arrive(&pace, start + 20_000), other.arrive(&pace, start + 20_000)), (10, 10));
        assert_eq!(pace.counts(), Counts { arrived: 20, missed: 0, sent: 0 });
    }

    #[test]
    fn a_frame_that_waited_was_due_when_it_arrived() {
        let pace = Pace::default();
        let mut ring = Ring::new(10, Batching::Adaptive);
        pace.start(&Offer::stamped(1e6, 0.001), &[1]);
        let start = start_ns(&pace);
        assert_eq!(ring.arrive(&pace, start + 20_500), 10);
        assert_eq!(ring.fetch(), (0, start + 1_000));
        assert_eq!(ring.fetch(), (1, start + 2_000));
        // Ten were lost; the next arrivals are the 21st and 22nd frames.
        assert_eq!(ring.arrive(&pace, start + 22_500), 10);
        ring.fetched(8);
        assert_eq!(ring.fetch(), (10, start + 21_000));
        assert_eq!(ring.fetch(), (11, start + 22_000));
        assert_eq!(pace.counts(), Counts { arrived: 22, missed: 10, sent: 0 });
    }

    #[test]
    fn of_many_frames_some_have_stamps() {
        let pace = Pace::default();
        let mut ring = Ring::new(1_000, Batching::Adaptive);
        pace.start(&Offer::sampled(1e6, 0.001), &[1]);
        let start = start_ns(&pace);
        assert_eq!((ring.arrive(&pace, start + 100_500), pace.is_sampled()), (100, true));
        assert_eq!((ring.until_stamp(), ring.fetch()), (0, (0, start + 1_000)));
        assert_eq!(ring.until_stamp(), 30);
        ring.fetched(10);
        assert_eq!(ring.until_stamp(), 20);
        ring.fetched(20);
        assert_eq!((ring.until_stamp(), ring.fetch()), (0, (31, start + 32_000)));
        // At low rates all frames have a stamp.
        pace.start(&Offer::sampled(1e5, 0.001), &[1]);
        ring.arrive(&pace, start_ns(&pace) + 100_500);
        assert_eq!((ring.fetch().0, ring.until_stamp(), pace.is_sampled()), (0, 0, false));
    }

    #[test]
    fn bursts_come_at_once_and_fixed_batches_are_waited_for() {
        let pace = Pace::default();
        let bursts = Offer { arrival: Arrival::Bursts(8), ..Offer::even(1e6, 0.001) };
        pace.start(&bursts, &[1]);
        let start = start_ns(&pace);
        let mut ring = Ring::new(100, Batching::Adaptive);
        assert_eq!((ring.arrive(&pace, start + 7_999), ring.arrive(&pace, start + 8_001)), (0, 8));
        assert_eq!((ring.fetch().1, ring.fetch().1), (start + 8_000, start + 8_000));
        pace.start(&Offer::even(1e6, 0.001), &[1]);
        let start = start_ns(&pace);
        let mut ring = Ring::new(100, Batching::Fixed { frames: 32, wait_ns: 50_000 });
        assert_eq!((ring.arrive(&pace, start + 31_500), ring.arrive(&pace, start + 32_500)), (0, 32));
        ring.fetched(32);
        // The first frame was due at 1 µs: the timer ends its wait, because too few frames arrived.
        let mut ring = Ring::new(100, Batching::Fixed { frames: 90, wait_ns: 50_000 });
        assert_eq!((ring.arrive(&pace, start + 50_500), ring.arrive(&pace, start + 51_500)), (0, 51));
        // After the end of the trial no frame waits for others.
        ring.fetched(51);
        assert_eq!(ring.arrive(&pace, start + 1_000_000), 100);
    }
}
