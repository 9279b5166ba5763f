//! The tables of a fused region, which its elements own.

use super::unions::Unions;
use crate::graph::Node;
use ir::{Table, Tables};

/// The tables of a fused region.
pub(crate) struct PartTables<'a> {
    pub nodes: &'a mut [Node],
    /// The nodes of its parts.
    pub parts: &'a [usize],
    /// The part of each table, and its number there.
    pub tables: &'a [(usize, usize)],
    /// The unions of tables that the program asks in a row.
    pub unions: Option<&'a Unions>,
}

impl Tables for PartTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        let (part, table) = *self.tables.get(index)?;
        self.nodes.get_mut(*self.parts.get(part)?)?.element.as_mut()?.table(table)
    }
    fn union(&mut self, row: usize) -> Option<&dyn Table> {
        let unions = self.unions?;
        unions.of(row, |table| Some(self.table(usize::from(table))?.cache_validity()?.changes))
    }
}
