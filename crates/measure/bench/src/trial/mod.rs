//! One way to measure: variants take turns, what something else disturbed is measured again, and what comes of all
//! turns is a curve.
//!
//! - [`turns`]: every variant once a round, so that whatever changes on the machine meanwhile is shared by all.
//! - [`again`]: a disturbed measurement is repeated, a few times.
//! - [`curve`]: the samples of all turns as curves.
//! - [`closed`]: a chain in this process as fast as it goes.
//! - [`offered`]: loads at a set rate for whatever is under test.
//!
//! What is measured, and on which cores, is said by those who use this: [`crate::speed`], [`crate::experiment`],
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
