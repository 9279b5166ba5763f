//! The experiments that papers of the field report, on this machine.
//!
//! Each is a function from its options to a [`crate::figure::Figure`], or to several. What a machine lacks is told in the
//! figure ([`crate::figure::Skipped`]), and the rest is measured; whatever was started has ended when the function
//! returns, however it returns.
//!
//! - [`breakdown`]: where a chain's cycles go, stage by stage (NetVM, table I)
//! - [`deploy`]: how long it takes until an NF works that was not there (NetVM, figure 17)
//! - [`dos`]: an attack is noticed and filtered (NetVM, figure 18)
//! - [`steering`]: what several instances of an NF carry, and how evenly (NetVM, figure 16)
//! - [`taps`]: what NFs cost that share a virtual device (MVMP, figure 6)
//! - [`peers`]: Millrace beside other systems, on the same ports
//! - [`workloads`]: Millrace beside dpdk-testpmd on DPDK's net_pcap
//! - [`repeat`], [`colocation`], [`scale`], [`loss`], [`acl`]: a chain of the user's in a row, beside others, over flows and
//!   cores, with too much offered; many rules
//! - [`paper`]: all that five papers report, with what they state beside
//! - [`lab`]: how thoroughly, on which cores, and points that are measured by turns; [`growth`]: fits
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

pub use lab::{Effort, Lab};
pub use live::Setting;
pub use script::Script;
