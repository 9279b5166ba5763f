//! Searching for the rate that a device under test carries: RFC 9971 (MLRsearch), of which RFC 2544's throughput is a
//! special case.
//!
//! A [`Goal`] says which loss is borne, how sure one wants to be, and how narrow the answer is to be: NDR with no loss,
//! PDR with half a percent. [`search`] asks a [`Measurer`] for trials at loads of its choice, classifies each load for
//! each goal from all trials at it ([`bounds`]), and narrows the interval between what is carried and what is not.
//!
//! What this module does not do: send anything. A [`Measurer`] does.

pub mod bounds;
mod controller;
mod goal;

pub use bounds::{Bound, Trial};
pub use controller::{Limits, Measurer, search};
pub use goal::{Goal, GoalResult};

#[cfg(test)]
mod tests;
