//! Keeps an NF's process to what it was given: a user id without rights, the system calls of an ordinary program,
//! the files and sockets it was granted, limits on what it uses, and an end that leaves nothing running.
//!
//! A [`Confinement`] is plain data; [`Confinement::spawn`] starts a [`std::process::Command`] under it and returns a
//! [`Confined`], which also says what was enforced ([`Applied`]). [`probe()`] says what this machine has.
//!
//! Invariants:
//!
//! - **What [`Applied`] calls enforced is enforced.** What the machine lacks is found out before the process is
//!   made; a step that fails after that fails the start.
//! - **An NF is gone when nothing of it runs.** [`Confined::try_wait`] reports the end of a process only when no
//!   process that it made, however distant, can touch shared memory any more. Where the machine has neither a PID
//!   namespace nor a control group to know this by, the NF can make no processes.
//! - **Between fork and exec nothing allocates or locks**: everything is prepared before (`steps`).
//!
//! An [`Enclosure`] is the other half for container runtimes, which confine by themselves: it takes no rights away and
//! sees to the end. [`Profile`] is the filter of system calls by names, as runtimes take it.
//!
//! What keeps NFs from each other's memory: `ptrace`, `process_vm_readv` and the like are no system calls of an NF's;
//! `/proc/PID/mem` opens neither for another user id nor out of another Landlock domain. That a process is dumpable,
//! which exec sets anew, adds nothing to this.
//!
//! What this deliberately does not do: choose which descriptors an NF inherits (the caller marks the others
//! close-on-exec), give an NF a file system, a network or users of its own (a container runtime does), or guard
//! against the kernel's own faults and against what two NFs learn from each other by shared caches.

mod applied;
mod ask;
mod confined;
mod confinement;
mod enclosure;
mod error;
mod files;
mod group;
mod mounts;
mod probe;
pub mod program;
mod seccomp;
mod spawn_plan;
mod spawner;
mod step;
mod steps;

pub use applied::{Applied, Measure, Mechanism};
pub use confined::Confined;
pub use confinement::{Confinement, Sockets};
pub use enclosure::Enclosure;
pub use error::Error;
pub use group::Finding;
pub use mounts::Access;
pub use probe::{Offer, ProbeState, probe};
pub use seccomp::{CallRule, Comparison, Condition, Profile};
