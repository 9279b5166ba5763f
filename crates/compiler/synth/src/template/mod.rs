//! Shortcuts: what a program does to the packets of a flow, once the flow is known.
//!
//! Most of what a chain does to a packet follows from its flow: which rules match, what tables find, what
//! addresses and ports become. [`Follower::follow`] walks a program as one packet takes it and parts it in two: what
//! follows from the *flow key* (addresses, ports, protocol) and from what tables promise to keep
//! ([`ir::Lease`]) is worked out and done; what hangs on the packet stays. Of that, decisions become
//! *guards*, and writes come behind all of them: a packet for which a guard fails is untouched and takes the
//! whole program. What is left is a [`Shortcut`], the same for many flows, and the numbers that a flow puts
//! into it: its *entry*.
//!
//! [`program`] makes a program of shortcuts: one lookup of the flow key in a table of entries, guards,
//! writes, exit. So a chain of any length costs one lookup. Source of the idea: the megaflow cache of Open
//! vSwitch (Pfaff et al., NSDI 2015); here it holds rewrites and goes through state, and what it does is
//! derived from the program, not told by elements.
//!
//! Times in records ([`ir::Lasting::Time`]) are brought up to date once in half a lease: that packet of the
//! flow takes the whole program, and the entry lives on.

mod code;
mod follow;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
mod fuzz;
mod key;
mod linear;
mod program;
mod sum;

pub use follow::{Followed, Follower, Refusal};
#[cfg(any(test, feature = "fuzzing"))]
pub use fuzz::{Tried, compare_shortcuts};
pub use key::{KEY_WORDS, Layout};
pub use program::{Leases, entry, program};

use ir::Inst;
use ir::eval::Exit;
use ir::program::Value;

/// What a program does to packets of a kind of flow, when its tables have been asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Shortcut {
    /// Bytes that must lie in the packet's first segment.
    pub need: u16,
    /// Bytes of headroom that must be free.
    pub room: u16,
    /// What is computed. The instruction at `n` yields value `n + 1`; value 0 is the entry.
    pub insts: Vec<Inst>,
    /// Values that must be other than 0, or 0.
    pub guards: Vec<(Value, bool)>,
    /// What is done when all hold.
    pub effects: Vec<Inst>,
    /// Where in the entry the numbers lie that are the flow's: offset and bytes.
    pub params: Vec<(u16, u8)>,
    /// Where the packet goes.
    pub exit: Exit,
}

impl Shortcut {
    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.params
            .last()
            .map_or(usize::from(entry::PARAMS), |(at, bytes)| usize::from(*at) + usize::from(*bytes))
    }
}

#[cfg(test)]
mod tests;
