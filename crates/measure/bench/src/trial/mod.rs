//! How measurements are made: variants take turns, disturbed measurements are repeated, and the results of
//! all turns are curves.
//!
//! - [`turns`]: measures every variant once in each round, so that changes of the machine affect all
//!   variants.
//! - [`again`]: repeats a disturbed measurement, a few times.
//! - [`curve`]: the samples of all turns as curves.
//! - [`closed`]: a chain in this process at saturation.
//! - [`offered`]: loads at a set rate for a system under test.
//!
//! The callers select what is measured, and the cores: [`crate::speed`], [`crate::experiment`],
//! [`crate::capacity`].

mod again;
pub mod closed;
mod curve;
mod offered;
mod turns;

pub use again::{REPEATS, again};
pub use curve::{Sample, curves};
pub use offered::{Tally, Trials};
pub use turns::{Order, by_turns};
