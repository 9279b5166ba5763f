//! Synthesis: the programs of a fused region of elements become one program.
//!
//! Source: Katsikas et al., "SNF: synthesizing high performance NFV service chains", PeerJ CS 2016.
//!
//! - [`link`]: programs of elements that are wired to each other, as one
//! - [`optimize`]: the same program with less to do
//! - [`template`]: what is left of it for packets of a flow that is known
//! - [`classes`]: which packets leave it how, and with which bytes

pub mod classes;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
pub mod link;
pub mod optimize;
pub mod template;

#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{Sample, compare, fuzz_optimize};
