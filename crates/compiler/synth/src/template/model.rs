//! A template, and the place of a flow's numbers in its entry.

use super::cache_entry::PARAMS;
use ir::Inst;
use ir::eval::Exit;
use ir::program::Value;

/// What a program does to packets of a kind of flow, when its tables have been asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Template {
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

impl Template {
    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> usize {
        self.params.last().map_or(usize::from(PARAMS), |(at, bytes)| usize::from(*at) + usize::from(*bytes))
    }
}
