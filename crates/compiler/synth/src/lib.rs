//! Synthesis: the programs of a fused region's elements become one program.
//!
//! Source: Katsikas et al., "SNF: synthesizing high performance NFV service chains", PeerJ CS 2016.
//!
//! - [`link`]: programs of elements that are wired to each other, as one
//! - [`optimize`]: the same program with fewer operations
//! - [`fast_path`]: straight code for the usual path through a chain of routers, in front of a program
//! - [`separate`]: code of their own for ways that part
//! - [`template`]: the operations that remain for packets of a known flow
//! - [`deadline`]: when work that could go on for long has to end
//! - [`classes`]: the sets of packets that the program treats alike, with their exits and bytes

pub mod classes;
mod copy;
pub mod deadline;
pub mod fast_path;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
pub mod link;
pub mod optimize;
pub mod separate;
pub mod template;

#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{Sample, compare, fuzz_optimize, same};
