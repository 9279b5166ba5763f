//! A trial: sends due frames, receives frames, and records them.
//!
//! In a turn the loop sends a burst and receives one. It reads the clock up to three times a turn and
//! allocates nothing. The time at which a frame came out is known to within a turn; [`Counts::turns`] has the
//! lengths of turns.

use super::options::{Ends, WireOptions};
use super::schedule::Schedule;
use crate::load::Recorder;
use crate::load::ports::read;
use crate::load::stamp::{self, Stamp};
use crate::stats::histogram;
use hdrhistogram::Histogram;
use port::{FrameSet, Moved, PortStats};
use shm::{Frame, Packet, Pool};
use std::time::{Duration, Instant};

/// Burst size for sending and receiving, in frames.
const BURST: usize = 64;
/// How long the system may take to process its frames after all were sent.
const DRAIN: Duration = Duration::from_secs(2);

/// The other counts of a tester.
#[derive(Clone, Debug)]
pub struct Counts {
    /// Frames that the tester did not send.
    pub foreign: u64,
    /// Late frames of an earlier trial.
    pub stale: u64,
    /// Frames that came out while the tester's receive ring was full, where the device counts them.
    pub missed: u64,
    /// Frames that the tester's sending port accepted and could not send.
    pub unsent: u64,
    /// The time between two polls of the receiving port, in nanoseconds. Measured latencies are too long by
    /// up to this time.
    pub turns: Histogram<u64>,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { foreign: 0, stale: 0, missed: 0, unsent: 0, turns: histogram() }
    }
}

/// The results of a trial.
pub(super) struct Done {
    /// Frames that the tester sent.
    pub offered: u64,
    pub recorder: Recorder,
    pub pacing: Histogram<u64>,
    pub counts: Counts,
}

/// A trial under way.
pub(super) struct Trial<'a> {
    ends: &'a mut Ends,
    frames: &'a FrameSet,
    schedule: Schedule,
    /// Number of the first frame.
    first: u64,
    options: WireOptions,
    /// The number of frames that were created, and the index of the next one in the set.
    created: u64,
    next: usize,
    unsent: Vec<Packet>,
    list: Vec<u16>,
    /// The range of `list` with frames that were created and not sent yet.
    held: std::ops::Range<usize>,
    inbox: Vec<Packet>,
    done: Done,
}

impl<'a> Trial<'a> {
    pub fn new(
        ends: &'a mut Ends,
        frames: &'a FrameSet,
        schedule: Schedule,
        first: u64,
        options: &WireOptions,
    ) -> Trial<'a> {
        Trial {
            ends,
            frames,
            schedule,
            first,
            options: *options,
            created: 0,
            next: 0,
            unsent: vec![Packet::EMPTY; BURST],
            list: (0..BURST as u16).collect(),
            held: 0..0,
            inbox: vec![Packet::EMPTY; BURST],
            done: Done {
                offered: 0,
                recorder: Recorder::new(schedule.frames, &[frames.count() as u64]),
                pacing: histogram(),
                counts: Counts::default(),
            },
        }
    }

    /// Runs the trial.
    pub fn run(mut self) -> Done {
        let (sending, receiving) = self.stats();
        let start = Instant::now();
        let now_ns = || start.elapsed().as_nanos() as u64;
        let last_ns = self.schedule.end_ns + (self.schedule.end_ns as f64 * self.options.grace) as u64;
        let quiet_ns = self.options.quiet.as_nanos() as u64;
        let drain_ns = DRAIN.as_nanos() as u64;
        // The times when all was sent, when a frame was last received, and when the receiving port was last
        // polled.
        let (mut over_ns, mut busy_ns, mut looked_ns) = (None, 0, None);
        loop {
            if over_ns.is_none() {
                let now = now_ns();
                let is_all = self.created == self.schedule.frames && self.held.is_empty();
                if is_all || now > last_ns {
                    self.give_up();
                    over_ns = Some(now);
                    busy_ns = now;
                } else {
                    self.make(now);
                    if !self.held.is_empty() {
                        self.send(now_ns());
                    }
                }
            }
            let moved = self.receive();
            let now = now_ns();
            if let Some(before) = looked_ns.replace(now) {
                self.done.counts.turns.saturating_record(now - before);
            }
            if moved.packets > 0 {
                self.record(moved.packets, now);
                busy_ns = now;
            } else if let Some(over_ns) = over_ns
                && now - busy_ns.min(now) > quiet_ns
                && now >= over_ns
            {
                break;
            } else {
                std::hint::spin_loop();
            }
            if over_ns.is_some_and(|over_ns| now - over_ns.min(now) > drain_ns) {
                break;
            }
        }
        let (sending_after, receiving_after) = self.stats();
        self.done.counts.unsent = sending_after.tx_errors.saturating_sub(sending.tx_errors);
        self.done.offered = self.done.offered.saturating_sub(self.done.counts.unsent);
        self.done.counts.missed =
            receiving_after.rx_dropped.total().saturating_sub(receiving.rx_dropped.total());
        self.done
    }

    fn stats(&self) -> (PortStats, PortStats) {
        let sending = self.ends.send.stats();
        (sending, self.ends.receive.as_ref().map_or(sending, |port| port.stats()))
    }

    /// Creates the due frames, up to a burst, once the previous burst was sent.
    fn make(&mut self, now_ns: u64) {
        let due = self.schedule.due_by(now_ns) - self.created;
        if !self.held.is_empty() || due == 0 {
            return;
        }
        let most = self.unsent.len().min(usize::try_from(due).unwrap_or(usize::MAX));
        let fresh = self.unsent.get_mut(..most).unwrap_or_default();
        let got = self.ends.pool.alloc(fresh);
        for packet in fresh.iter_mut().take(got) {
            let frame = self.frames.get(self.next).unwrap_or_default();
            let stamp = Stamp {
                source: 0,
                number: self.first + self.created,
                time_ns: self.schedule.due_ns(self.created),
            };
            fill(packet, frame, &stamp);
            self.created += 1;
            self.next = if self.next + 1 == self.frames.count() { 0 } else { self.next + 1 };
        }
        self.held = 0..got;
    }

    fn send(&mut self, now_ns: u64) {
        let Some(list) = self.list.get(self.held.clone()) else { return };
        let moved = self.ends.send.send(&mut self.ends.pool, &mut self.unsent, list);
        let first = self.created - self.held.len() as u64;
        for frame in first..first + moved.packets as u64 {
            let late_ns = now_ns.saturating_sub(self.schedule.due_ns(frame));
            self.done.pacing.saturating_record(late_ns);
        }
        self.done.offered += moved.packets as u64;
        self.held.start += moved.packets;
    }

    /// Drops the frames that could not be sent in time.
    fn give_up(&mut self) {
        self.ends.pool.free_all(self.unsent.get(self.held.clone()).unwrap_or_default());
        self.held = 0..0;
    }

    fn receive(&mut self) -> Moved {
        let port = self.ends.receive.as_mut().unwrap_or(&mut self.ends.send);
        port.receive(&mut self.ends.pool, &mut self.inbox)
    }

    fn record(&mut self, packets: usize, now_ns: u64) {
        let packets = self.inbox.get(..packets).unwrap_or_default();
        for packet in packets {
            match read(packet) {
                Some(stamp) if stamp.number < self.first => self.done.counts.stale += 1,
                Some(stamp) => {
                    let stamp = Stamp { number: stamp.number - self.first, ..stamp };
                    self.done.recorder.record(Some(stamp), now_ns);
                }
                None => self.done.counts.foreign += 1,
            }
        }
        self.ends.pool.free_all(packets);
    }
}

/// Fills a new packet with a frame and its stamp.
#[inline]
fn fill(packet: &mut Packet, frame: &[u8], stamp: &Stamp) {
    packet.mac = packet.data();
    // It fits: `Wire::new` refuses frames that are too long.
    let _ = packet.fill(frame);
    let tail = frame.first_chunk().and_then(|head| stamp::room(head, frame.len()));
    if let Some((at, before)) = tail.and_then(|at| Some((at, frame.get(at..)?.first_chunk()?))) {
        let _ = Frame::of(packet).write(at, &stamp.encode(before));
    }
}
