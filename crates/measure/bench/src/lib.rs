//! Measures what NFs cost, what load a chain carries, and how long packets take through it.
//!
//! - [`speed`]: the benchmark, in cycles per packet, of the workloads that the field compares
//! - [`search`]: finds the rate that a system carries, with loads from [`load`]
//! - [`load`]: offers frames to a chain in this process at a set rate
//! - [`start`]: loads and starts chains for [`speed`] and [`load`]
//! - [`experiment`]: the experiments of papers; each is a function that returns a [`figure`]
//! - [`trial`]: measurements by turns, repeated where something else disturbed them
//! - [`machine`]: the machine that measurements run on
//! - [`stats`]: summaries of measurements
//! - [`shape`]: the execution mode of a chain
//! - [`capacity`]: plans what is needed to carry a load
//! - [`units`]: rates and times
//! - [`wire`]: offers loads to a system behind two devices
//! - [`peer`]: starts other systems
//!
//! This crate does not drive devices: ports do.

pub mod capacity;
mod chain_file;
mod error;
pub mod experiment;
pub mod figure;
pub mod load;
pub mod machine;
pub mod peer;
pub mod search;
pub mod shape;
pub mod speed;
pub mod start;
pub mod stats;
pub mod trial;
pub mod units;
pub mod wire;

pub use error::BenchError;
