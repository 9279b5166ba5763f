//! What came out: which stamped frames, in which order, and how long they took.

use super::stamp::Stamp;
use crate::stats::histogram;
use hdrhistogram::Histogram;

/// What stamps say of a trial.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Stamped frames that came out, each counted once.
    pub frames: u64,
    /// Frames that came out again.
    pub duplicates: u64,
    /// Frames that came out behind a later one of their flow (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Frames that came out without a stamp, or with one that was never given.
    pub strangers: u64,
    /// From when a frame was due until it came out, in nanoseconds. Frames are due whether the system or the tester is
    /// ready or not, so that a stall counts for all that waited in it, and not only for one (coordinated omission).
    pub latency: Histogram<u64>,
}

/// Takes notes of what comes out in one trial.
#[derive(Debug)]
pub struct Recorder {
    /// For every source and number, whether it was seen.
    bits: Vec<Vec<u64>>,
    /// For every source and flow, the highest number that was seen, plus one.
    highest: Vec<Vec<u64>>,
    seen: FlowRecord,
}

impl Recorder {
    /// For a trial in which each source sends up to so many frames. There are as many sources as `flows` has entries:
    /// for each, after how many frames its flows come again, so that frames whose numbers differ by a multiple of that
    /// are of one flow.
    pub fn new(frames: u64, flows: &[u64]) -> Recorder {
        let words = usize::try_from(frames.div_ceil(64)).unwrap_or(usize::MAX);
        let of_flows = |flows: &u64| vec![0; usize::try_from((*flows).max(1)).unwrap_or(usize::MAX)];
        let mut bits = vec![vec![1; words]; flows.len()];
        // Memory that was never written would be fetched from the kernel while packets are noted.
        std::hint::black_box(&mut bits).iter_mut().for_each(|words| words.fill(0));
        Recorder {
            bits,
            highest: flows.iter().map(of_flows).collect(),
            seen: FlowRecord { frames: 0, duplicates: 0, reordered: 0, strangers: 0, latency: histogram() },
        }
    }

    /// Notes a frame that came out at that time.
    #[inline]
    pub fn record(&mut self, stamp: Option<Stamp>, now_ns: u64) {
        let found = stamp.and_then(|stamp| {
            let word = self.bits.get_mut(usize::from(stamp.source))?.get_mut((stamp.number / 64) as usize)?;
            let highest = self.highest.get_mut(usize::from(stamp.source))?;
            let flow = stamp.number as usize % highest.len();
            let highest = highest.get_mut(flow)?;
            Some((stamp, word, highest))
        });
        let Some((stamp, word, highest)) = found else {
            self.seen.strangers += 1;
            return;
        };
        let bit = 1 << (stamp.number % 64);
        if *word & bit != 0 {
            self.seen.duplicates += 1;
            return;
        }
        *word |= bit;
        self.seen.frames += 1;
        if stamp.number + 1 < *highest {
            self.seen.reordered += 1;
        } else {
            *highest = stamp.number + 1;
        }
        self.seen.latency.saturating_record(now_ns.saturating_sub(stamp.time_ns).max(1));
    }

    /// Adds what another has noted of the same trial. Order is known only within each.
    pub fn add(&mut self, other: &Recorder) {
        let words = self.bits.iter_mut().flatten().zip(other.bits.iter().flatten());
        for (own, other) in words {
            let twice = u64::from((*own & *other).count_ones());
            self.seen.duplicates += twice;
            self.seen.frames -= twice;
            *own |= *other;
        }
        self.seen.frames += other.seen.frames;
        self.seen.duplicates += other.seen.duplicates;
        self.seen.reordered += other.seen.reordered;
        self.seen.strangers += other.seen.strangers;
        self.seen.latency += &other.seen.latency;
    }

    /// What was noted.
    pub fn seen(self) -> FlowRecord {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_late(recorder: &mut Recorder, source: u8, number: u64, late_ns: u64) {
        recorder.record(Some(Stamp { source, number, time_ns: 1_000 }), 1_000 + late_ns);
    }

    #[test]
    fn what_is_late_lost_or_there_twice_is_counted() {
        let mut recorder = Recorder::new(1_000, &[4, 4]);
        for number in [0, 1, 2, 3, 4, 9, 5, 8, 8, 999] {
            record_late(&mut recorder, 0, number, 500 + number);
        }
        record_late(&mut recorder, 1, 5, 2_000);
        // Of neither source, past the last number, none at all.
        record_late(&mut recorder, 2, 5, 1);
        record_late(&mut recorder, 0, 1_024, 1);
        recorder.record(None, 7);
        let seen = recorder.seen();
        assert_eq!((seen.frames, seen.duplicates, seen.strangers), (10, 1, 3));
        // 5 came behind 9, and they are one flow; 8 is of another.
        assert_eq!(seen.reordered, 1);
        assert_eq!((seen.latency.len(), seen.latency.min(), seen.latency.max()), (10, 500, 2_000));
    }

    #[test]
    fn two_are_added_up() {
        let (mut one, mut other) = (Recorder::new(100, &[1]), Recorder::new(100, &[1]));
        for number in 0..50 {
            record_late(&mut one, 0, number, 10);
        }
        for number in 49..100 {
            record_late(&mut other, 0, number, 20);
        }
        one.add(&other);
        let seen = one.seen();
        assert_eq!((seen.frames, seen.duplicates, seen.reordered), (100, 1, 0));
    }
}
