//! Tables on terminals.

use crate::text::count;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use std::ops::Range;

/// A table without lines.
pub fn table<'h>(header: impl IntoIterator<Item = &'h str>) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    table
}

/// Aligns these columns to the right, for numbers.
pub fn align_right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Named numbers on one line, separated by commas.
pub fn named(numbers: &[(String, u64)]) -> String {
    let each: Vec<String> =
        numbers.iter().map(|(name, number)| format!("{name} {}", count(*number))).collect();
    each.join(", ")
}
