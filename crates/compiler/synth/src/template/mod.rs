//! Flow-cache templates: the operations of a program on the packets of a known flow.
//!
//! Most of a chain's effect on a packet follows from its flow: matching rules, results of lookups, new
//! addresses and ports. [`Recorder::record`] walks a program along the path of one packet and separates two
//! kinds of results. Those that follow from the *flow key* (addresses, ports, protocol) and from the
//! guarantees of tables ([`ir::CacheValidity`]) are computed once. Operations that depend on the packet
//! remain. Of these, decisions become *guards*, and writes follow all guards: a packet for which a guard
//! fails is unchanged and runs through the whole program. The remaining operations are a [`Template`], the
//! same for many flows; the numbers of one flow for it are its *entry*.
//!
//! [`program`] makes a program of templates: one lookup of the flow key in a table of entries, guards, writes, exit. A
//! chain of any length then costs one lookup. The idea is from the megaflow cache of Open vSwitch (Pfaff et
//! al., NSDI 2015). In contrast, entries here contain rewrites and depend on state, and they are derived from
//! the program, not provided by elements.
//!
//! Numbers in records that each packet changes ([`ir::Lasting::Merged`]), such as the time of the last, are
//! counted in the entry ([`Tally`]); the host merges them into the records.

pub mod cache_entry;
mod code;
mod counting;
mod fault;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod key;
mod linear;
mod model;
mod noted_cells;
mod program;
mod record;
mod sum;
mod tally;
mod term;

#[cfg(any(test, feature = "fuzzing"))]
pub use fault::Fault;
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{Tried, compare_templates};
pub use key::{KEY_WORDS, Layout};
pub use model::Template;
pub use program::program;
pub use record::{Recorder, Recording, Saved};
pub use tally::{Merging, Tally};
pub use term::Refusal;

#[cfg(test)]
mod tests;
