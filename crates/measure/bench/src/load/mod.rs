//! Loads at a set rate for a chain in this process: the open-loop side of measuring.
//!
//! An [`Offer`] is a load for a while, and [`Observed`] what became of it: the same for everything that is
//! [`UnderTest`]. [`crate::trial::Trials`] makes those again that something disturbed, for [`crate::search`] and for
//! latencies. A [`Stamp`] inside a frame says which it is and when it was due, and a [`Recorder`] what came out.
//!
//! For a chain in this process a [`pace::Pace`] says when frames arrive. [`ports`] puts a receive ring in front of
//! every port with generated traffic: frames arrive in it when they are due, whether the chain fetches them or not, and
//! are lost when it is full, as in a device. What the chain sends to a port without a device is counted.
//! [`chain::ChainUnderTest`] is such a chain.
//!
//! Frames are copied out of their templates by the packet thread that fetches them, which is part of what is measured.

pub mod chain;
pub mod offer;
pub mod pace;
pub mod ports;
pub mod recorder;
pub mod stamp;

pub use chain::{ChainOptions, ChainUnderTest};
pub use offer::{Arrival, DISTURBED, Observed, Offer, UnderTest};
pub use pace::Batching;
pub use recorder::{FlowRecord, Recorder};
pub use stamp::Stamp;
