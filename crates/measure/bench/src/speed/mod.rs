//! The benchmark: cycles per packet of the workloads that the field compares, beside `dpdk-testpmd` on the
//! same kind of port, and beside the results of FastClick and BESS.
//!
//! A [`workload`] is a few Click files and their traffic. [`scene`] writes one into a folder as an ordinary
//! chain file on ports of one kind. [`schedule`] measures all of them one after the other, round by round, so
//! that changes of the machine affect all of them alike. Every measurement is a process of its own: [`child`]
//! starts it, [`measure`] runs in it, and [`testpmd`] controls the other program. DPDK starts only once per
//! process, and the memory layout of a process is part of the spread. [`report`] prints tables of the
//! results, with the values of [`peers`].
//!
//! Cycles are those of the time stamp counter, over the time that the worker had its core: the time in which
//! it was ready while another thread ran is subtracted and reported ([`crate::machine::core_time`]).
//!
//! This module does not search rates ([`crate::search`] does), and measures neither latency nor several
//! cores.

mod both_ways;
mod child;
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
