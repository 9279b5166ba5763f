//! A tester: loads for any system that stands behind two devices.
//!
//! [`Wire`] sends the frames of a generated set out of one port and receives what the system sends on another, in one
//! thread. Frames are due at times that the load sets, whether the system or the tester is ready or not, and each says
//! its number and when it was due ([`crate::load::stamp`]): what is lost, late, out of order or there twice is counted
//! exactly, and a stall counts for all that waited in it. By how much the tester itself was late is measured for every
//! frame ([`Observed::pacing`]).
//!
//! - [`schedule`]: when which frame is due.
//! - [`trial`]: the loop that sends and receives.
//! - [`between`]: a tester with its own devices and frames, for [`crate::trial::Trials`].
//! - [`devices`]: opens the two ports, over any DPDK driver, in a network namespace where that is wanted.
//!
//! A frame that the tester could not send by the end of a trial is not in [`Observed::arrived`]: the system never saw
//! it. Frames that it did not send itself (ARP, neighbour discovery, LLDP) are counted apart and otherwise passed over.
//!
//! What this module does not do: start systems, or search ([`crate::search`] does).

pub mod between;
pub mod devices;
mod options;
pub mod schedule;
#[cfg(test)]
mod tests;
mod trial;

pub use between::{Ways, between};
pub use devices::Devices;
pub use options::{Ends, WireOptions};
pub use trial::Counts;

use crate::BenchError;
use crate::load::stamp::LEAST_BYTES;
use crate::load::{Observed, Offer, UnderTest};
use crate::machine::core_time::Thread;
use crate::trial::{REPEATS, again};
use port::FrameSet;
use rustix::thread::{CpuSet, sched_setaffinity};
use schedule::Schedule;
use std::sync::Arc;
use traffic::TrafficError;
use trial::Trial;

/// Frames that the share is taken from that a system lets through, at least.
const LEAST_FRAMES: u64 = 500;
/// How long warming up takes.
const WARM_UP_S: f64 = 0.2;

/// A system behind two ports, to which loads are offered.
pub struct Wire {
    ends: Ends,
    /// Those that only this tester uses: its ports are theirs.
    _devices: Option<Devices>,
    frames: Arc<FrameSet>,
    options: WireOptions,
    /// The number of the next trial's first frame: numbers are never given twice.
    number: u64,
    passed: f64,
    counts: Counts,
}

impl Wire {
    /// For frames that are sent in turn: frames whose numbers differ by a multiple of the set's length are one flow.
    ///
    /// # Errors
    /// When there are no frames, or some have no room for a stamp.
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
        let options = WireOptions { burst: options.burst.clamp(1, 256), ..options };
        Ok(Wire { ends, _devices: None, frames, options, number: 0, passed: 1.0, counts: Counts::default() })
    }

    /// Sends every flow twice at leisure, and finds out how much of that comes out where nothing is lost.
    ///
    /// # Errors
    /// When nothing comes through.
    pub fn warm_up(&mut self) -> Result<Observed, BenchError> {
        let frames = (2 * self.frames.count() as u64).max(LEAST_FRAMES);
        let offer = Offer::stamped(frames as f64 / WARM_UP_S, WARM_UP_S);
        self.offer(&offer)?;
        let is_short = |observed: &Observed| observed.is_disturbed() || observed.sent != observed.arrived;
        let (observed, _) = again(REPEATS, || self.offer(&offer), is_short)?;
        if observed.sent == 0 || observed.arrived == 0 {
            let told = format!(
                "of {} frames {} came through the system: there is nothing to measure",
                observed.arrived, observed.sent
            );
            return Err(BenchError::Measurement(told));
        }
        let passed = observed.sent as f64 / observed.arrived as f64;
        // What a disturbance took of so few is not what the system drops on purpose.
        self.passed = if passed > 0.99 { 1.0 } else { passed };
        Ok(observed)
    }

    /// What else was counted in the last trial.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl UnderTest for Wire {
    /// Frames are always stamped: counting them exactly costs little beside a device.
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        let schedule = Schedule::new(offer)?;
        let trial = Trial::new(&mut self.ends, &self.frames, schedule, self.number, &self.options);
        let core = self.options.core;
        let ran = std::thread::scope(|scope| {
            let run = move || {
                if let Some(core) = core.filter(|core| *core < CpuSet::MAX_CPU) {
                    let mut set = CpuSet::new();
                    set.set(core);
                    // Where it may not run there, it runs where it may: pacing tells what came of it.
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
        let (done, waited_ns) = ran.map_err(BenchError::Measurement)?;
        self.number += schedule.frames;
        let seen = done.recorder.seen();
        let observed = Observed {
            intended: schedule.frames,
            arrived: done.offered,
            missed: 0,
            // What found the tester's own ring full did come out.
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
