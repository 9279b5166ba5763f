//! Measuring: made-up traffic, the captures that hold it, and what functions cost.
//!
//! [`traffic`] makes frames, repeatably, from a [`traffic::TrafficSpec`]; [`capture`] writes them
//! to a pcap file. Both the `millrace gen` command and the in-memory generator port draw from
//! here, so a figure measured in memory can be repeated from a file.
//!
//! [`speed`] is the benchmark: cycles per packet of the workloads that the field compares.
//! [`search`] finds the rate that something carries, with loads that [`load`] offers to a chain.
//! [`start`] is how both start it. [`experiment`] has the experiments of papers, each a function that gives a [`figure`]:
//! the form in which they say what they found.
//! [`plan`] says what it takes to carry a load.
//! [`wire`] offers loads to a system behind two devices, [`peer`] starts such systems.
//!
//! What this crate does not do: drive devices. Ports do.

pub mod capture;
mod error;
pub mod experiment;
pub mod figure;
pub mod load;
pub mod peer;
pub mod plan;
pub mod search;
pub mod speed;
pub mod start;
pub mod traffic;
pub mod wire;

pub use error::BenchError;
