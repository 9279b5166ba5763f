//! Synthesis: the programs of a stretch of elements become one program.
//!
//! Source: Katsikas et al., "SNF: synthesizing high performance NFV service chains", PeerJ CS 2016.
//!
//! - [`link`]: programs of elements that are wired to each other, as one
//! - [`optimize`]: the same program with less to do
//! - [`classes`]: which packets leave it how, and with which bytes

pub mod classes;
mod fuzz;
pub mod link;
pub mod optimize;

pub use fuzz::{Sample, compare, fuzz_optimize};
