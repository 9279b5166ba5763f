//! The experiments of the field's papers, on this machine.
//!
//! Each experiment is a function from its options to a [`crate::figure::Figure`], or to several. The figure
//! lists what the machine cannot measure ([`crate::figure::Skipped`]), and the rest is measured. When the
//! function returns, even with an error, every process that it started has ended.
//!
//! - [`breakdown`]: the cycles of each stage of a chain (NetVM, table I)
//! - [`deploy`]: time to deployment of an NF (NetVM, figure 17)
//! - [`dos`]: detection and mitigation of an attack (NetVM, figure 18)
//! - [`steering`]: throughput of several instances of an NF, and how evenly they share packets (NetVM, figure
//!   16)
//! - [`taps`]: the cost of NFs that share a virtual device (MVMP, figure 6)
//! - [`peers`]: Millrace beside other systems, on the same ports
//! - [`workloads`]: Millrace beside dpdk-testpmd on DPDK's net_pcap
//! - [`repeat`], [`colocation`], [`scale`], [`loss`]: a user's chain several times in a row, several chains
//!   at once, throughput over flows and cores, and loss over the offered load
//! - [`acl`]: a chain with many rules
//! - [`paper`]: the experiments of five papers, with the values that the papers state
//! - [`lab`]: effort, cores, and points that are measured by turns; [`growth`]: fits
//! - [`script`] and [`live`]: chains that experiments write and run in this process

pub mod acl;
pub mod breakdown;
pub mod colocation;
pub mod deploy;
pub mod dos;
pub mod growth;
pub mod lab;
pub mod live;
pub mod loss;
pub mod paper;
pub mod peers;
pub mod repeat;
pub mod scale;
pub mod script;
pub mod steering;
pub mod taps;
pub mod workloads;

pub use lab::{Effort, Lab, sentence_of};
pub use script::Script;
