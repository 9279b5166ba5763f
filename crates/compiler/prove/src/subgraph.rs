//! The subject of a proof: elements, and the program that should be equivalent.

use ir::Verified;
use std::collections::BTreeSet;
use synth::link::{Linked, Part};

/// A fused region: its elements, and the program that should be equivalent.
pub struct FusedSubgraph<'a> {
    /// The inputs of elements, with their wires.
    pub parts: Vec<Part<'a>>,
    /// Where packets enter: element and input.
    pub entries: &'a [(usize, usize)],
    /// The entries that only ports feed, by their places in that list.
    pub from_ports: &'a BTreeSet<u16>,
    /// The linker's lists of the fused program's outputs, reasons, slow paths and tables.
    pub linked: &'a Linked,
    /// The fused program.
    pub fused: &'a Verified,
    /// Values of cells: those of one element after another, then those that count wires.
    pub cells: &'a [u64],
    /// Wires that a cell counts: element and output, in the order of the cells.
    pub counted: Vec<(usize, usize)>,
}

impl<'a> FusedSubgraph<'a> {
    /// The elements: of several inputs of one, the first.
    pub fn elements(&self) -> impl Iterator<Item = &Part<'a>> {
        self.parts.iter().filter(|part| part.shares.is_none())
    }

    pub(crate) fn next(&self, part: usize, port: usize) -> Option<(usize, usize)> {
        self.parts[part].next.get(port).copied().flatten()
    }
}
