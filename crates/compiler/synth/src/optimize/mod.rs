//! The optimiser of packet programs: what a person would write by hand for a whole chain. One read, one
//! write, one checksum update, no check done twice.
//!
//! [`optimize`] keeps, for every packet: its exit; its bytes, annotations, header bases and type where
//! somebody gets it (out of a port or on a slow path; after a drop nobody sees it); cells and records;
//! and the lookups in each table with their keys and arguments, but for one that is repeated with
//! nothing made in between. It takes and gives programs that [`ir::verify`] accepts.
//!
//! Each round walks forwards (`forward`: what is known, is not done again), backwards (`dead`: what
//! nobody sees, is not done) and over the graph (`shape`). The work of a round is proportional to the
//! program: what is known at a block is bounded.

mod assume;
mod csum;
mod dead;
mod extent;
mod forward;
mod header;
mod linear;
mod make;
mod note;
mod order;
mod place;
mod range;
mod report;
mod shape;
mod state;
mod value;
mod ways;

#[cfg(test)]
pub(crate) mod tests;

pub use report::{Counts, Report};

use ir::Program;
use std::collections::BTreeMap;

/// What is known of a program's packets and state that the program does not say.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Known {
    /// The MAC header, where it is set at an entry, is the packet's first byte: so ports deliver frames.
    pub mac_at_data: bool,
    /// Cells that hold a number for as long as the program runs: nobody writes them.
    pub cells: BTreeMap<u16, u64>,
    /// What records say of the change that they make to a checksum.
    pub deltas: Vec<Delta>,
}

/// A promise of a table: in each of its records stands by how much a checksum changes when a word of the
/// record's key is replaced by a word of the record. One's complement says: modulo 0xffff, the delta is the
/// new word less the old one. Neither is written while a burst is worked on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delta {
    /// The table.
    pub table: u16,
    /// Which word of the key is replaced.
    pub word: usize,
    /// Where the new word stands in the record, and its bytes.
    pub new: (u16, u8),
    /// Where the delta stands: 2 bytes.
    pub at: u16,
}

/// Rounds change less and less.
const MOST_ROUNDS: usize = 6;

/// The same program with less to do.
pub fn optimize(program: &Program) -> Program {
    optimize_with(program, &Known::default()).0
}

/// The same with what else is known, and what became of the program.
pub fn optimize_with(program: &Program, known: &Known) -> (Program, Report) {
    let (before, packet_before) = (Counts::of(program), Counts::at_most(program));
    let mut now = program.clone();
    let mut rounds = 0;
    while rounds < MOST_ROUNDS {
        rounds += 1;
        let mut rewritten = forward::rewrite(&now, known);
        dead::remove(&mut rewritten);
        let mut next = rewritten.program;
        shape::tidy(&mut next);
        if next == now {
            break;
        }
        now = next;
    }
    let (after, packet_after) = (Counts::of(&now), Counts::at_most(&now));
    (now, Report { before, after, packet_before, packet_after, rounds })
}
