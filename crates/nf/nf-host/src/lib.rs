//! The host's end of NFs in processes of their own, over shared packet memory and rings.
//!
//! - [`instance`]: the place of an NF in a chain, shared by the two who look after it
//! - [`supervisor`]: has processes started ([`process`]), shakes hands (`handshake`; see the crate `nf`), watches and
//!   ends them
//! - [`link`]: the worker's side: enqueues packets, takes completions, reclaims
//! - [`direct_group`]: NFs that hand packets to each other without the host; `direct_groups`: which those are;
//!   `member`: what such a group knows of each
//! - [`memory`]: the packet memory of the channels; [`boundary`]: how packets cross into a trust group's own
//! - `neighbours`: what processes want to know of theirs, and are told
//! - [`peer`]: who connected to a socket
//! - [`handlers`]: handlers of what runs in processes; `calls`: calls of those on their way
//! - [`log`]: keeps what processes write; `watchdog`: whether they live; [`doorbell`]: wakes the supervisor
//!
//! Any program that links the crate `nf` or its C library can be an NF. The supervisor starts what a
//! [`process::Launcher`] is registered for; containers are the crate `container`'s.
//!
//! Invariants: no packet thread waits for a process or for the supervisor; what an NF holds is used by nobody else
//! until the kernel says that nothing of it runs; what it writes anywhere is checked before it is used.

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
