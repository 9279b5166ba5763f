//! What the optimiser is told beside the program.

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
