//! Confines an NF's process: a user id without rights, the system calls of an ordinary program, the granted
//! files and sockets, limits on resources, and an end that leaves no process running.
//!
//! A [`Confinement`] is plain data. [`Confinement::spawn`] starts a [`std::process::Command`] under it and
//! returns a [`Confined`], which lists what was enforced ([`Applied`]). [`probe()`] lists the mechanisms of
//! this machine.
//!
//! Invariants:
//!
//! - **Everything that [`Applied`] lists as enforced is enforced.** Missing mechanisms are detected before
//!   the process is created; a step that fails later fails the start.
//! - **An NF has ended when nothing of it runs.** [`Confined::try_wait`] reports the end of a process only
//!   when no process that it created, directly or indirectly, can access shared memory any more. If the
//!   machine has neither a PID namespace nor a control group to ensure this, the NF cannot create processes.
//! - **Between fork and exec nothing allocates or locks**: everything is prepared before (`steps`).
//!
//! An [`Enclosure`] is the counterpart for container runtimes, which confine by themselves: it removes no
//! rights and ensures the end. [`Profile`] is the filter of system calls by names, for runtimes.
//!
//! NFs cannot read each other's memory: the filter refuses `ptrace`, `process_vm_readv` and similar calls,
//! and the kernel does not open `/proc/PID/mem` for another user id or from another Landlock domain. Exec
//! makes a process dumpable again, which does not matter for this.
//!
//! This crate deliberately does not choose the descriptors that an NF inherits (the caller marks the others
//! close-on-exec), and does not give an NF a file system, a network or users of its own (a container runtime
//! does). It does not protect against vulnerabilities of the kernel, or against side channels between two NFs
//! through shared caches.

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
pub use group::{Finding, control_group_trees, cpu_shares, ran_out_of_memory, remove_control_group};
pub use mounts::Access;
pub use probe::{Offer, ProbeState, probe};
pub use seccomp::{CallRule, Comparison, Condition, Profile};
