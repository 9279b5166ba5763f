//! Loads, and the results of trials with them: the same for a chain in this process and for another system
//! behind devices.

use super::recorder::FlowRecord;
use crate::BenchError;
use serde::{Deserialize, Serialize};

/// When frames arrive.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Single frames, evenly spaced.
    #[default]
    Even,
    /// Bursts of this many frames, evenly spaced.
    Bursts(u64),
}

impl Arrival {
    /// The number of frames that are due at once.
    pub(crate) fn burst(self) -> u64 {
        match self {
            Arrival::Even => 1,
            Arrival::Bursts(frames) => frames.max(1),
        }
    }
}

/// The load of a trial.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// Frames a second, over all ports.
    pub load: f64,
    /// Length of the trial, in seconds.
    pub duration_s: f64,
    /// When frames arrive.
    pub arrival: Arrival,
    /// Whether frames have stamps with their number and the time at which they were due. Stamps give
    /// latencies, and exact counts of lost, reordered and duplicate frames. They cost some cycles per frame.
    pub stamped: bool,
    /// With stamps, one of this many frames has one: 1 for all of them. Only rings in this process omit
    /// stamps.
    pub stamp_every: u64,
}

/// The interval of stamps where they should cost almost nothing: a prime, so that all flows get some.
const SAMPLED: u64 = 31;
/// The load from which on that interval gives enough stamps, in frames a second.
const MANY: f64 = 500_000.0;

impl Offer {
    /// Evenly spaced frames without stamps.
    pub fn even(load: f64, duration_s: f64) -> Offer {
        Offer { load, duration_s, arrival: Arrival::Even, stamped: false, stamp_every: 1 }
    }

    /// Evenly spaced frames, with as many stamps as latency needs: a stamp takes up to 20 ns of a frame's
    /// time, which is much for a busy chain.
    pub fn sampled(load: f64, duration_s: f64) -> Offer {
        Offer { stamp_every: if load < MANY { 1 } else { SAMPLED }, ..Offer::stamped(load, duration_s) }
    }

    /// Evenly spaced frames, all with stamps.
    pub fn stamped(load: f64, duration_s: f64) -> Offer {
        Offer { stamped: true, ..Offer::even(load, duration_s) }
    }

    /// The number of frames.
    pub fn frames(&self) -> u64 {
        (self.load * self.duration_s).floor().max(1.0) as u64
    }
}

/// The result of a trial.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Frames that should have arrived at the system.
    pub intended: u64,
    /// Frames that arrived; fewer where the tester could not send as many.
    pub arrived: u64,
    /// Arrived frames for which a receive ring had no room, where that is known.
    pub missed: u64,
    /// Frames that came out.
    pub sent: u64,
    /// The share of the time in which a worker was ready but something else had its core, where that is
    /// known.
    pub disturbed: f64,
    /// Whether the cores that share packets were further apart, before or after the trial, than at other
    /// times.
    pub is_far: bool,
    /// The evaluation of the stamps, where the offer had them.
    pub seen: Option<FlowRecord>,
    /// The tester's pacing error: how many nanoseconds after their due time it sent frames. `None` for rings
    /// in this process, in which frames always arrive on time.
    pub pacing: Option<hdrhistogram::Histogram<u64>>,
}

/// A system to which frames can be offered.
pub trait UnderTest {
    /// Offers a load, and waits until the system has processed it.
    ///
    /// # Errors
    /// When nothing can be measured.
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError>;

    /// Frames that come out for each one that goes in, where nothing is lost: below 1 where a system drops
    /// some on purpose.
    fn passed(&self) -> f64;

    /// Ends the system; returns whether all packets are accounted for, and `true` where there is no packet
    /// accounting.
    ///
    /// # Errors
    /// When the system does not end.
    fn end(self: Box<Self>) -> Result<bool, BenchError>;
}

/// The share of a trial for which a worker may be without its core before the trial counts as disturbed.
pub const DISTURBED: f64 = 0.02;

impl Observed {
    /// The lost frames, as a share of those that should have arrived. Frames that a tester could not send
    /// count as lost. `passed` is [`UnderTest::passed`].
    pub fn loss_ratio(&self, passed: f64) -> f64 {
        let intended = self.intended.max(self.arrived).max(1) as f64;
        let through = self.sent as f64 / passed;
        // Where only a share of the flows passes, the number of frames that come out varies by one in ten
        // thousand.
        let doubt = if passed < 1.0 { intended * 1e-4 } else { 1.0 };
        let lost = intended - through;
        if lost <= doubt && self.missed == 0 { 0.0 } else { (lost / intended).clamp(0.0, 1.0) }
    }

    /// The latencies of frames with stamps, where some came out.
    pub fn latency(&self) -> Option<&hdrhistogram::Histogram<u64>> {
        self.seen.as_ref().map(|seen| &seen.latency).filter(|latency| !latency.is_empty())
    }

    /// Whether something else had a core for too long, or the cores were far apart.
    pub fn is_disturbed(&self) -> bool {
        self.is_far || self.disturbed > DISTURBED
    }
}
