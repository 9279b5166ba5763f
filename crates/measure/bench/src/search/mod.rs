//! Searches for the rate that a device under test carries: RFC 9971 (MLRsearch), with RFC 2544's throughput
//! as a special case.
//!
//! A [`Goal`] sets the accepted loss, the number and length of trials, and the width of the result: NDR
//! accepts no loss, PDR half a percent. [`search`] selects loads, asks a [`Measurer`] for trials, classifies
//! each load for each goal from all trials at it ([`bounds`]), and narrows the interval between the loads
//! that are carried and those that are not.
//!
//! [`sustained`] says whether the trials of a search were long enough for the buffers of what was measured.
//!
//! This module sends nothing: a [`Measurer`] does.

pub mod bounds;
mod controller;
mod goal;
mod sustained;

pub use bounds::{Bound, Trial};
pub use controller::{Limits, Measurer, search, search_one};
pub use goal::{Goal, GoalResult};
pub use sustained::{Sustained, sustained};

#[cfg(test)]
mod tests;
