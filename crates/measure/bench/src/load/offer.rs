//! What is offered to something under test, and what became of it: the same for a chain in this process and for another
//! system behind devices.

use super::recorder::FlowRecord;
use crate::BenchError;
use serde::{Deserialize, Serialize};

/// When frames arrive.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// One after the other, evenly.
    #[default]
    Even,
    /// So many at once, the bursts evenly.
    Bursts(u64),
}

impl Arrival {
    /// Frames that are due at once.
    pub(crate) fn burst(self) -> u64 {
        match self {
            Arrival::Even => 1,
            Arrival::Bursts(frames) => frames.max(1),
        }
    }
}

/// A load that is offered in one trial.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// Frames a second, at all ports together.
    pub load: f64,
    /// For how long, in seconds.
    pub duration_s: f64,
    /// When they arrive.
    pub arrival: Arrival,
    /// Whether every frame says its number and when it was due, and is looked for behind the system: latency, and exact
    /// counts of what is lost, late or there twice. It costs some cycles a frame.
    pub stamped: bool,
    /// Where frames have stamps, one of so many has: 1 for all of them. Only rings in this process leave some out.
    pub stamp_every: u64,
}

/// Frames of which one has a stamp where that is to cost next to nothing: a prime, so that all flows have their turn.
const SAMPLED: u64 = 31;
/// Frames a second from which on that leaves enough.
const MANY: f64 = 500_000.0;

impl Offer {
    /// Frames one after the other, without stamps.
    pub fn even(load: f64, duration_s: f64) -> Offer {
        Offer { load, duration_s, arrival: Arrival::Even, stamped: false, stamp_every: 1 }
    }

    /// The same, with stamps in as many as latency asks for and no more: a stamp takes up to 20 ns of a frame's time,
    /// which is much where a chain is busy.
    pub fn sampled(load: f64, duration_s: f64) -> Offer {
        Offer { stamp_every: if load < MANY { 1 } else { SAMPLED }, ..Offer::stamped(load, duration_s) }
    }

    /// Frames one after the other, with stamps.
    pub fn stamped(load: f64, duration_s: f64) -> Offer {
        Offer { stamped: true, ..Offer::even(load, duration_s) }
    }

    /// Frames in all.
    pub fn frames(&self) -> u64 {
        (self.load * self.duration_s).floor().max(1.0) as u64
    }
}

/// What became of an offer.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Frames that should have arrived at the system.
    pub intended: u64,
    /// Those that did; fewer where the tester could not make as many.
    pub arrived: u64,
    /// Those of them for which a receive ring had no room, where that is known.
    pub missed: u64,
    /// Frames that came out.
    pub sent: u64,
    /// The share of the time in which a packet thread was ready and something else had its core, where that is known.
    pub disturbed: f64,
    /// Whether the cores that share packets were further apart, before or after, than at other times.
    pub is_far: bool,
    /// What stamps say, where the offer had them.
    pub seen: Option<FlowRecord>,
    /// By how many nanoseconds frames were sent later than they were due, where a tester sends them: its own error.
    /// Frames of rings in this process are due when they are, and have none.
    pub pacing: Option<hdrhistogram::Histogram<u64>>,
}

/// Something that frames can be offered to.
pub trait UnderTest {
    /// Offers a load, and waits until the system has worked it off.
    ///
    /// # Errors
    /// When nothing can be measured.
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError>;

    /// Frames that come out for each that goes in, where nothing is lost: below 1 where a system drops some on purpose.
    fn passed(&self) -> f64;

    /// Ends it; whether all packets are accounted for, which is `true` where nobody keeps books.
    ///
    /// # Errors
    /// When it does not end.
    fn end(self: Box<Self>) -> Result<bool, BenchError>;
}

/// The share of a trial for which a packet thread may be without its core before the trial is repeated.
pub const DISTURBED: f64 = 0.02;

impl Observed {
    /// Frames that were lost, as a share of those that should have arrived. What a tester could not offer counts as
    /// lost. `passed` is [`UnderTest::passed`].
    pub fn loss_ratio(&self, passed: f64) -> f64 {
        let intended = self.intended.max(self.arrived).max(1) as f64;
        let through = self.sent as f64 / passed;
        // One frame in ten thousand more or less comes out where not all flows are let through.
        let doubt = if passed < 1.0 { intended * 1e-4 } else { 1.0 };
        let lost = intended - through;
        if lost <= doubt && self.missed == 0 { 0.0 } else { (lost / intended).clamp(0.0, 1.0) }
    }

    /// Whether something else had a core for too long, or the cores were far apart.
    pub fn is_disturbed(&self) -> bool {
        self.is_far || self.disturbed > DISTURBED
    }
}
