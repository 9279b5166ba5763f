//! What functions cost: cycles per packet of the workloads that the field compares, beside
//! `dpdk-testpmd` on the same kind of port and next to what FastClick and BESS reached.
//!
//! A [`workload`] is a few Click files and the traffic for them. [`scene`] lays one out in a folder as
//! an ordinary chain file on ports of one kind. [`schedule`] measures all of them, one after the other,
//! round by round, so that what the machine does meanwhile hits all alike; every measurement is a process
//! of its own ([`child`] starts it, [`measure`] is what it does, [`testpmd`] drives the other program),
//! because DPDK starts once per process and because a process's luck with memory is part of the spread.
//! [`report`] makes tables of it, with the figures of [`peers`].
//!
//! Cycles are those of the time-stamp counter, over the time that the packet thread had its core: time
//! in which it was ready and another thread ran is left out, and told ([`crate::machine::core_time`]).
//!
//! What this module does not do: rate searches ([`crate::search`] does), latency, several cores.

pub mod child;
pub mod full_table;
pub mod isp;
mod layout;
pub mod measure;
pub mod peers;
pub mod report;
pub mod scene;
pub mod schedule;
pub mod testpmd;
pub mod workload;

pub use measure::{MeasureOptions, Sample, measure_chain};
pub use report::Report;
pub use scene::PortKind;
pub use schedule::{LaidOut, Options, lay_out, run};
