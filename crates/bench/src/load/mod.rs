//! Loads at a set rate for a chain in this process: the open-loop side of measuring.
//!
//! A [`pace::Pace`] says when frames arrive. [`ports`] puts a receive ring in front of every port with made-up traffic:
//! frames arrive in it when they are due, whether the chain fetches them or not, and are lost when it is full, as in a
//! device. What the chain sends to a port without a device is counted. [`chain::ChainUnderTest`] offers one load after
//! the other to a running chain, for [`crate::search`].
//!
//! Frames are copied out of their templates by the packet thread that fetches them, which is part of what is measured.

pub mod chain;
pub mod offer;
pub mod pace;
pub mod ports;
pub mod recorder;
pub mod stamp;

pub use chain::{ChainOptions, ChainUnderTest};
pub use offer::{Arrival, Observed, Offer, UnderTest};
pub use recorder::{Recorder, Seen};
pub use stamp::Stamp;
