//! The tester: offers loads to any system between two devices.
//!
//! [`Wire`] sends generated frames through one port and receives what the system sends on another, in one thread. The
//! load sets the times at which frames are due, whether the system or the tester is ready or not. Each frame
//! has a stamp with its number and its due time ([`crate::load::stamp`]), so that lost, late, reordered and
//! duplicate frames are counted exactly, and a stall counts for all frames that waited in it. The tester's
//! own delay is measured for every frame ([`Observed::pacing`]).
//!
//! - [`schedule`]: the due times of frames.
//! - [`trial`]: the loop that sends and receives.
//! - [`mod@between`]: a tester with its own devices and frames, for [`crate::trial::Trials`].
//! - [`devices`]: opens the two ports, with any DPDK driver, in a given network namespace or the current one.
//!
//! [`Observed::arrived`] does not include frames that the tester could not send by the end of a trial, because the
//! system never received them. Frames that it did not send itself (ARP, neighbour discovery, LLDP) are
//! counted separately and otherwise ignored.
//!
//! This module starts no systems and does not search ([`crate::search`] does).

pub mod between;
pub mod devices;
mod options;
pub mod schedule;
#[cfg(test)]
mod tests;
mod trial;

pub use between::between;
pub use devices::Devices;
pub use options::{Ends, WireOptions};
pub use trial::Counts;

use crate::BenchError;
use crate::load::stamp::LEAST_BYTES;
use crate::load::{Observed, Offer, UnderTest};
use crate::machine::core_time::Thread;
use crate::start::failed;
use crate::trial::{REPEATS, again};
use port::FrameSet;
use rustix::thread::{CpuSet, sched_setaffinity};
use schedule::Schedule;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traffic::TrafficError;
use trial::Trial;

/// The least frames of a warm-up, which measures the share that the system lets through.
const LEAST_FRAMES: u64 = 500;
/// Length of a warm-up, in seconds.
const WARM_UP_S: f64 = 0.2;
/// For how long a warm-up is repeated while nothing comes out.
const SILENCE: Duration = Duration::from_secs(5);

/// A system between two ports, to which loads are offered.
pub struct Wire {
    ends: Ends,
    /// Those that only this tester uses: its ports are theirs.
    _devices: Option<Devices>,
    frames: Arc<FrameSet>,
    options: WireOptions,
    /// The number of the next trial's first frame. Numbers are never reused.
    number: u64,
    passed: f64,
    counts: Counts,
}

impl Wire {
    /// A wire that sends these frames in turn: frames whose numbers differ by a multiple of the set's length
    /// are one flow.
    ///
    /// # Errors
    /// When there are no frames, or some are too short for a stamp or too long for a slot.
    pub fn new(ends: Ends, frames: Arc<FrameSet>, options: WireOptions) -> Result<Wire, BenchError> {
        let shortest = frames.iter().map(<[u8]>::len).min().unwrap_or(0);
        if shortest < LEAST_BYTES {
            let reason =
                format!("the tester's stamps need {LEAST_BYTES} bytes: ask for sizes of 64 bytes and more");
            return Err(TrafficError::BadFrame { len_bytes: shortest, reason }.into());
        }
        let longest = frames.iter().map(<[u8]>::len).max().unwrap_or(0);
        if longest > shm::chain::SEGMENT_BYTES {
            let reason = format!("the tester sends frames of up to {} bytes", shm::chain::SEGMENT_BYTES);
            return Err(TrafficError::BadFrame { len_bytes: longest, reason }.into());
        }
        Ok(Wire { ends, _devices: None, frames, options, number: 0, passed: 1.0, counts: Counts::default() })
    }

    /// Sends every flow twice at a low rate, and measures the share that comes out where nothing is lost.
    ///
    /// # Errors
    /// When nothing comes through.
    pub fn warm_up(&mut self) -> Result<Observed, BenchError> {
        let frames = (2 * self.frames.count() as u64).max(LEAST_FRAMES);
        let offer = Offer::stamped(frames as f64 / WARM_UP_S, WARM_UP_S);
        self.offer(&offer)?;
        let is_short = |observed: &Observed| observed.is_disturbed() || observed.sent != observed.arrived;
        let until = Instant::now() + SILENCE;
        let observed = loop {
            let (observed, _) = again(REPEATS, || self.offer(&offer), is_short)?;
            if observed.sent > 0 && observed.arrived > 0 {
                break observed;
            }
            // A busy host may keep a system from its core for a while.
            if Instant::now() >= until {
                return Err(failed(format!(
                    "of {} frames {} came through the system, and {} late ones of the trial before: there is nothing \
                     to measure",
                    observed.arrived, observed.sent, self.counts.stale
                )));
            }
        };
        let passed = observed.sent as f64 / observed.arrived as f64;
        // A small share that is missing was lost to a disturbance; the system does not drop it on purpose.
        self.passed = if passed > 0.99 { 1.0 } else { passed };
        Ok(observed)
    }

    /// The other counts of the last trial.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl UnderTest for Wire {
    /// Frames always have stamps: beside a device they cost little.
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        let schedule = Schedule::new(offer)?;
        let trial = Trial::new(&mut self.ends, &self.frames, schedule, self.number, &self.options);
        let core = self.options.core;
        let ran = std::thread::scope(|scope| {
            let run = move || {
                if let Some(core) = core.filter(|core| *core < CpuSet::MAX_CPU) {
                    let mut set = CpuSet::new();
                    set.set(core);
                    // If the thread may not run on that core it runs elsewhere, and the pacing shows the
                    // effect.
                    let _ = sched_setaffinity(None, &set);
                }
                let thread = Thread::current();
                let waited = || thread.as_ref().and_then(Thread::waited_ns).unwrap_or(0);
                let before = waited();
                let done = trial.run();
                (done, waited().saturating_sub(before))
            };
            let thread = std::thread::Builder::new().name("tester".into()).spawn_scoped(scope, run);
            thread.map_err(|error| error.to_string()).and_then(|thread| {
                thread.join().map_err(|_| "the tester's thread broke off; this is a defect".to_string())
            })
        });
        let (done, waited_ns) = ran.map_err(failed)?;
        self.number += schedule.frames;
        let seen = done.recorder.seen();
        let observed = Observed {
            intended: schedule.frames,
            arrived: done.offered,
            missed: 0,
            // Frames for which the tester's own ring was full did come out of the system.
            sent: (seen.frames + done.counts.missed).min(done.offered.max(seen.frames)),
            disturbed: waited_ns as f64 / (offer.duration_s * 1e9).max(1.0),
            is_far: false,
            seen: Some(seen),
            pacing: Some(done.pacing),
        };
        self.counts = done.counts;
        Ok(observed)
    }

    fn passed(&self) -> f64 {
        self.passed
    }

    fn end(self: Box<Self>) -> Result<bool, BenchError> {
        Ok(true)
    }
}
