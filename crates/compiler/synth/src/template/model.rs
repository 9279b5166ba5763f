//! A template, and the offsets of a flow's numbers in its entry.

use super::cache_entry::PARAMS;
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
    /// The numbers of the flow in the entry: offset and bytes.
    pub params: Vec<(u16, u8)>,
    /// The packet's exit.
    pub exit: Exit,
}

impl Template {
    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.params.last().map_or(usize::from(PARAMS), |(at, bytes)| usize::from(*at) + usize::from(*bytes))
    }
}
