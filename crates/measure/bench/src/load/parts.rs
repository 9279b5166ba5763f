//! The parts of a frame's latency, by times that are written into stamped frames on their way.
//!
//! The times take the 32 bytes in front of the stamp: when the worker received the frame, when it enqueued it
//! to an NF in a process and collected it from there, and how long the NF had it. Frames have to be longer
//! than [`LEAST_BYTES`], and a checksum over their payload no longer holds: chains that check it drop them.

use super::stamp::{MARK, Stamp, offset};
use crate::stats::histogram;
use hdrhistogram::Histogram;
use packet::Access;

/// The shortest frame whose times are recorded, in bytes without FCS.
pub const LEAST_BYTES: usize = 110;
/// The length of all times, in bytes.
const TIMES_BYTES: usize = 32;
/// The length of one.
const TIME_BYTES: usize = 8;

/// A time in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// When the worker received it.
    Received,
    /// When it was enqueued to an NF in a process.
    Enqueued,
    /// How long the NF's function had it.
    InNf,
    /// When its completion was collected.
    Collected,
}

/// All times of a frame, by [`Time`], in nanoseconds; 0 where it has none.
type Times = [u64; 4];

/// Where a frame's times are; `None` where it has no stamp, or no room for them.
fn times_at(frame: &impl Access) -> Option<usize> {
    let stamp = offset(frame.len()).filter(|_| frame.len() >= LEAST_BYTES)?;
    (frame.u16(stamp)? == MARK).then_some(stamp - TIMES_BYTES)
}

/// Writes a time into a frame that has a stamp and room for it.
pub fn write(frame: &mut impl Access, time: Time, ns: u64) {
    if let Some(at) = times_at(frame) {
        let _ = frame.copy_in(at + time as usize * TIME_BYTES, &ns.to_be_bytes());
    }
}

/// Begins the times of a frame that was received just now: it has no others yet.
pub(super) fn begin(frame: &mut impl Access, received_ns: u64) {
    if let Some(at) = times_at(frame) {
        let _ = frame.copy_in(at, &[0; TIMES_BYTES]);
    }
    write(frame, Time::Received, received_ns);
}

fn read(frame: &impl Access) -> Option<Times> {
    let at = times_at(frame)?;
    let mut times = Times::default();
    for (number, time) in times.iter_mut().enumerate() {
        *time = frame.u64(at + number * TIME_BYTES)?;
    }
    (times[Time::Received as usize] > 0).then_some(times)
}

/// The latencies of frames by part, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Parts {
    /// From when a frame was due until the worker received it: its wait in the port's ring.
    pub port: Histogram<u64>,
    /// From then until it was enqueued to the NF; until it was sent, where no NF runs in a process.
    pub worker: Histogram<u64>,
    /// The time between the host and the NF that was not the NF's: both rings, and its waking.
    pub nf_ring: Histogram<u64>,
    /// The time for which the NF's function had it.
    pub nf: Histogram<u64>,
    /// From when it came back until it was sent.
    pub sending: Histogram<u64>,
}

impl Default for Parts {
    fn default() -> Parts {
        let [port, worker, nf_ring, nf, sending] = std::array::from_fn(|_| histogram());
        Parts { port, worker, nf_ring, nf, sending }
    }
}

impl Parts {
    /// All parts, in the order of a frame's way.
    pub fn all(&self) -> [&Histogram<u64>; 5] {
        [&self.port, &self.worker, &self.nf_ring, &self.nf, &self.sending]
    }

    /// Adds the parts of another sink.
    pub(super) fn add(&mut self, other: &Parts) {
        self.port += &other.port;
        self.worker += &other.worker;
        self.nf_ring += &other.nf_ring;
        self.nf += &other.nf;
        self.sending += &other.sending;
    }

    /// Records a frame that is sent at `now_ns`.
    pub(super) fn record(&mut self, frame: &impl Access, stamp: Stamp, now_ns: u64) {
        let Some([received, enqueued, in_nf, collected]) = read(frame) else { return };
        let passed = |from: u64, to: u64| to.saturating_sub(from);
        self.port.saturating_record(passed(stamp.time_ns, received));
        if enqueued == 0 || collected == 0 {
            self.worker.saturating_record(passed(received, now_ns));
            return;
        }
        self.worker.saturating_record(passed(received, enqueued));
        let outside = passed(enqueued, collected);
        self.nf_ring.saturating_record(passed(in_nf, outside));
        self.nf.saturating_record(in_nf.min(outside));
        self.sending.saturating_record(passed(collected, now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped() -> Vec<u8> {
        let mut frame = vec![0; 124];
        let stamp = Stamp { source: 0, number: 7, time_ns: 1_000 };
        let at = offset(frame.len()).expect("room");
        let before: [u8; 18] = frame[at..at + 18].try_into().expect("18 bytes");
        frame[at..at + 18].copy_from_slice(&stamp.encode(&before));
        frame
    }

    const STAMP: Stamp = Stamp { source: 0, number: 7, time_ns: 1_000 };

    #[test]
    fn parts_of_a_frame_add_up_to_its_latency() {
        let (mut frame, mut parts) = (stamped(), Parts::default());
        begin(&mut frame, 1_100);
        write(&mut frame, Time::Enqueued, 1_150);
        write(&mut frame, Time::InNf, 70);
        write(&mut frame, Time::Collected, 1_400);
        parts.record(&frame, STAMP, 1_425);
        assert_eq!(parts.all().map(|part| part.max()), [100, 50, 180, 70, 25]);
        assert_eq!(parts.all().map(|part| part.max()).iter().sum::<u64>(), 1_425 - 1_000);
        // Received again: the times of its last way are forgotten, and no NF had it this time.
        begin(&mut frame, 2_000);
        parts.record(&frame, STAMP, 2_300);
        assert_eq!((parts.worker.max(), parts.worker.len(), parts.nf.len()), (300, 2, 1));
    }

    #[test]
    fn frames_without_room_or_stamp_are_left_alone() {
        let (mut short, mut plain) = (vec![0; LEAST_BYTES - 1], vec![7; 124]);
        for frame in [&mut short, &mut plain] {
            let before = frame.clone();
            begin(frame, 5);
            write(frame, Time::InNf, 5);
            assert_eq!(*frame, before);
            let mut parts = Parts::default();
            parts.record(frame, STAMP, 9);
            assert!(parts.all().iter().all(|part| part.is_empty()));
        }
    }
}
