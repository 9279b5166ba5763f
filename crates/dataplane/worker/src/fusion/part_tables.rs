//! The tables of a fused region, which its elements own.

use crate::graph::Node;
use ir::{Table, Tables};

/// The tables of a fused region.
pub(crate) struct PartTables<'a> {
    pub nodes: &'a mut [Node],
    /// The nodes of its parts.
    pub parts: &'a [usize],
    /// The part of each table, and its number there.
    pub tables: &'a [(usize, usize)],
}

impl Tables for PartTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        let (part, table) = *self.tables.get(index)?;
        self.nodes.get_mut(*self.parts.get(part)?)?.element.as_mut()?.table(table)
    }
}
