//! Offers loads at a set rate to a chain in this process: the open-loop side of measuring.
//!
//! An [`Offer`] is a load for a time, and [`Observed`] its result: the same for everything that is
//! [`UnderTest`]. [`crate::trial::Trials`] repeats disturbed trials, for [`crate::search`] and for latencies.
//! A [`Stamp`] in a frame has the frame's number and the time at which it was due; a [`Recorder`] evaluates
//! the stamps of the frames that came out.
//!
//! For a chain in this process a [`pace::Pace`] sets the times at which frames arrive. [`ports`] puts a
//! receive ring in front of every port with generated traffic. As in a device, frames arrive in the ring when
//! they are due, whether the chain fetches them or not, and are lost when it is full. Ports that discard
//! count the frames that the chain sends. [`chain::ChainUnderTest`] is such a chain.
//!
//! [`Parts`] tells how much of a latency each part of the way takes: the ring, the worker, an NF in a
//! process.
//!
//! The worker that fetches a frame copies it from its template; this copy is part of what is measured.

pub mod chain;
pub mod offer;
pub mod pace;
pub mod parts;
pub mod ports;
pub mod recorder;
pub mod stamp;
mod timed_link;

pub use chain::{ChainOptions, ChainUnderTest};
pub use offer::{Arrival, DISTURBED, Observed, Offer, UnderTest};
pub use pace::Batching;
pub use parts::Parts;
pub use recorder::{FlowRecord, Recorder};
pub use stamp::Stamp;
