//! A template, and the offsets of a flow's numbers in its entry.

use super::cache_entry::PARAMS;
use super::tally::{Merging, Tally};
use ir::Inst;
use ir::eval::Exit;
use ir::program::Value;

/// The operations of a program on packets of similar flows, without its lookups.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Template {
    /// Bytes that the packet's first segment must have.
    pub need: u16,
    /// Bytes of headroom that must be free.
    pub room: u16,
    /// Computations. The instruction at `n` yields value `n + 1`; value 0 is the entry.
    pub insts: Vec<Inst>,
    /// Values that must not be 0, or must be 0.
    pub guards: Vec<(Value, bool)>,
    /// Effects, if all guards hold.
    pub effects: Vec<Inst>,
    /// What the entry counts, with its offset.
    pub tallies: Vec<(Tally, u16)>,
    /// The numbers of the flow in the entry: offset and bytes.
    pub params: Vec<(u16, u8)>,
    /// The tables of the records that the flow uses, in the order in which they are found. Each reports its
    /// removed records. The records' addresses are in the entry, from [`Template::line_at`].
    pub lines: Vec<u16>,
    /// Into what the host merges the entry's tallies.
    pub merges: Vec<Merging>,
    /// The packet's exit.
    pub exit: Exit,
}

impl Template {
    /// The offset of the address of a record, by its index in `lines`.
    pub fn line_at(&self, line: usize) -> usize {
        let tallies = self.tallies.iter().map(|(tally, at)| (*at, tally.bytes()));
        let ends = tallies.chain(self.params.iter().copied()).map(|(at, bytes)| at + u16::from(bytes));
        usize::from(ends.max().unwrap_or(PARAMS)).next_multiple_of(8) + 8 * line
    }

    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.line_at(self.lines.len())
    }
}
