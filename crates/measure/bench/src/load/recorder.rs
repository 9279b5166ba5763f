//! Records the stamped frames that came out, their order and their latency.

use super::parts::Parts;
use super::stamp::Stamp;
use crate::stats::histogram;
use hdrhistogram::Histogram;

/// The evaluation of the stamps of a trial.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Different stamped frames that came out.
    pub frames: u64,
    /// Frames that came out more than once, counted without the first time.
    pub duplicates: u64,
    /// Frames that came out after a later one of their flow (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Frames that came out without a stamp, or with one that was never given.
    pub strangers: u64,
    /// The time from when a frame was due until it came out, in nanoseconds. Frames are due whether the
    /// system or the tester is ready or not, so a stall counts for all frames that waited in it, not only for
    /// one (coordinated omission).
    pub latency: Histogram<u64>,
    /// The same by part, where the chain's parts are recorded.
    pub parts: Option<Box<Parts>>,
}

/// Records the frames that come out in one trial.
#[derive(Debug)]
pub struct Recorder {
    /// For every source, a bit for each number that was seen.
    bits: Vec<Vec<u64>>,
    /// For every source and flow, the highest number that was seen, plus one.
    highest: Vec<Vec<u64>>,
    seen: FlowRecord,
}

impl Recorder {
    /// For a trial in which each source sends up to `frames` frames. Each entry of `flows` is a source, with
    /// the number of frames after which its flows repeat: frames whose numbers differ by a multiple of it are
    /// one flow.
    pub fn new(frames: u64, flows: &[u64]) -> Recorder {
        let words = usize::try_from(frames.div_ceil(64)).unwrap_or(usize::MAX);
        let of_flows = |flows: &u64| vec![0; usize::try_from((*flows).max(1)).unwrap_or(usize::MAX)];
        let mut bits = vec![vec![1; words]; flows.len()];
        // Writes the memory now, so that it causes no page faults while packets are recorded.
        std::hint::black_box(&mut bits).iter_mut().for_each(|words| words.fill(0));
        Recorder {
            bits,
            highest: flows.iter().map(of_flows).collect(),
            seen: FlowRecord {
                frames: 0,
                duplicates: 0,
                reordered: 0,
                strangers: 0,
                latency: histogram(),
                parts: None,
            },
        }
    }

    /// Records parts of latencies, too.
    #[must_use]
    pub(super) fn with_parts(mut self) -> Recorder {
        self.seen.parts = Some(Box::default());
        self
    }

    /// Records the parts of a frame's latency, where it records parts.
    #[inline]
    pub(super) fn record_parts(&mut self, frame: &impl packet::Access, stamp: Stamp, now_ns: u64) {
        if let Some(parts) = &mut self.seen.parts {
            parts.record(frame, stamp, now_ns);
        }
    }

    /// Records a frame that came out at `now_ns`.
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

    /// Adds the record of another recorder of the same trial. Reordering is only known within each recorder,
    /// and so is which copy of a frame came first: where a frame came out at two sinks, both of its copies
    /// are among the latencies, as a bit for each frame does not say whose latency to take out.
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
        if let (Some(own), Some(others)) = (&mut self.seen.parts, &other.seen.parts) {
            own.add(others);
        }
    }

    /// The evaluation of the recorded stamps.
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
        // An unknown source, a number past the last one, and no stamp.
        record_late(&mut recorder, 2, 5, 1);
        record_late(&mut recorder, 0, 1_024, 1);
        recorder.record(None, 7);
        let seen = recorder.seen();
        assert_eq!((seen.frames, seen.duplicates, seen.strangers), (10, 1, 3));
        // Frame 5 came after 9, and they are one flow; 8 belongs to another flow.
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
