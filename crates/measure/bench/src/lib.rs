//! Measuring: what functions cost, what a chain carries, and how long packets take through it.
//!
//! [`speed`] is the benchmark: cycles per packet of the workloads that the field compares.
//! [`search`] finds the rate that something carries, with loads that [`load`] offers to a chain.
//! [`start`] is how both start it. [`experiment`] has the experiments of papers, each a function that gives a
//! [`figure`]: the form in which they say what they found. [`trial`] is how all of them measure: by turns, and again
//! when something else disturbed it. [`machine`] is what it runs on, [`stats`] how measurements are summed up,
//! [`shape`] in which form a chain runs. [`capacity`] says what it takes to carry a load; [`units`] are those of rates
//! and times. [`wire`] offers loads to a system behind two devices, [`peer`] starts such systems.
//!
//! What this crate does not do: drive devices. Ports do.

pub mod capacity;
mod chain_file;
mod error;
pub mod experiment;
pub mod figure;
pub mod load;
pub mod machine;
pub mod peer;
pub mod process;
pub mod search;
pub mod shape;
pub mod speed;
pub mod start;
pub mod stats;
pub mod trial;
pub mod units;
pub mod wire;

pub use error::BenchError;
