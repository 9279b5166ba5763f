//! Templates: what a program does to the packets of a flow, once the flow is known.
//!
//! Most of what a chain does to a packet follows from its flow: which rules match, what tables find, what
//! addresses and ports become. [`Recorder::record`] walks a program as one packet takes it and parts it in two: what
//! follows from the *flow key* (addresses, ports, protocol) and from what tables promise to keep
//! ([`ir::CacheValidity`]) is worked out and done; what hangs on the packet stays. Of that, decisions become
//! *guards*, and writes come behind all of them: a packet for which a guard fails is untouched and takes the
//! whole program. What is left is a [`Template`], the same for many flows, and the numbers that a flow puts
//! into it: its *entry*.
//!
//! [`program`] makes a program of templates: one lookup of the flow key in a table of entries, guards,
//! writes, exit. So a chain of any length costs one lookup. Source of the idea: the megaflow cache of Open
//! vSwitch (Pfaff et al., NSDI 2015); here it holds rewrites and goes through state, and what it does is
//! derived from the program, not told by elements.
//!
//! Times in records ([`ir::Lasting::Time`]) are brought up to date once in half a lease: that packet of the
//! flow takes the whole program, and the entry lives on.

pub mod cache_entry;
mod code;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod key;
mod linear;
mod model;
mod program;
mod record;
mod sum;
mod term;

#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{Tried, compare_templates};
pub use key::{KEY_WORDS, Layout};
pub use model::Template;
pub use program::{Leases, program};
pub use record::{Recorder, Recording};
pub use term::Refusal;

#[cfg(test)]
mod tests;
