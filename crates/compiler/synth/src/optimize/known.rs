//! Facts for the optimiser beside the program.

use std::collections::BTreeMap;

/// Facts about a program's packets and state that are not in the program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Known {
    /// The MAC header, where it is set at an entry, is the packet's first byte, as in frames that ports deliver.
    pub mac_at_data: bool,
    /// Cells that keep this value while the program runs. If a handler writes one, the program has to be compiled
    /// again.
    pub cells: BTreeMap<u16, u64>,
    /// The changes of checksums that records contain.
    pub deltas: Vec<Delta>,
}

/// A guarantee of a table: each of its records contains the change of a checksum for replacing a word of the record's
/// key by a word of the record. Modulo 0xffff, the delta is the new word minus the old one. Neither is written while a
/// burst is processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delta {
    /// The table.
    pub table: u16,
    /// The word of the key that is replaced.
    pub word: usize,
    /// The offset of the new word in the record, and its bytes.
    pub new: (u16, u8),
    /// The offset of the delta: 2 bytes.
    pub at: u16,
}
