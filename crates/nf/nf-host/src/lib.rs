//! The host's end of NFs in processes of their own, over shared packet memory and rings.
//!
//! - [`instance`]: an NF instance of a chain, shared by its link and the supervisor
//! - [`supervisor`]: has processes started ([`process`]), performs the handshake (`handshake`; see the crate
//!   `nf`), watches and ends them
//! - [`link`]: the worker's side: enqueues packets, takes completions, reclaims
//! - [`direct_group`]: NFs that pass packets to each other by direct rings; `direct_groups`: the groups of a
//!   chain; `member`: the state that a group shares of each
//! - [`memory`]: the packet memory of the channels; [`boundary`]: the copies that cross a trust boundary
//! - `neighbours`: the neighbours that processes requested, and the answers
//! - [`peer`]: which process connected to a socket
//! - [`handlers`]: handlers of NFs in processes; `calls`: pending calls of them
//! - [`log`]: stores the output of processes; `watchdog`: checks that they make progress; [`doorbell`]: wakes
//!   the supervisor
//!
//! Any program that links the crate `nf` or its C library can be an NF. The supervisor starts an NF with the
//! [`process::Launcher`] that is registered for its execution mode; the launchers for containers are in the
//! crate `container`.
//!
//! Invariants: no packet thread waits for a process or for the supervisor. No other holder uses the packets
//! of an NF until the kernel reports that nothing of it runs. All data that an NF writes is checked before it
//! is used.

pub mod boundary;
mod calls;
pub mod direct_group;
mod direct_groups;
pub mod doorbell;
pub mod handlers;
mod handshake;
pub mod instance;
pub mod link;
pub mod log;
mod member;
pub mod memory;
mod neighbours;
pub mod peer;
pub mod process;
mod rings;
#[cfg(test)]
mod simulation;
pub mod supervisor;
mod watchdog;

pub use direct_groups::DirectGroups;
pub use instance::{Command, Instance, NfSpec, NfState};
pub use log::NfOutput;
pub use supervisor::Supervisor;
