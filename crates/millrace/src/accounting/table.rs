//! Tables on terminals.

use crate::console;
use crate::text::count;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table};
use std::ops::Range;

/// How text looks on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// Whether it has colours.
    pub colours: bool,
    /// The width of the terminal, in which tables fit by breaking the lines of long cells; `None` if it is not
    /// known.
    pub columns: Option<u16>,
}

impl Look {
    /// That of standard output.
    pub fn of_stdout() -> Look {
        let columns = Table::new().width().filter(|columns| *columns > 0);
        Look { colours: console::colours(&std::io::stdout()), columns }
    }

    /// A table without lines.
    pub fn table<'h>(self, header: impl IntoIterator<Item = &'h str>) -> Table {
        let mut table = Table::new();
        table.load_preset(NOTHING).set_header(header);
        if let Some(columns) = self.columns {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        if self.colours {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        table
    }

    /// A text that reports a loss if `is_loss`: it is red then.
    pub fn loss(self, text: String, is_loss: bool) -> String {
        if is_loss && self.colours { format!("\x1b[31m{text}\x1b[0m") } else { text }
    }
}

/// A cell that reports a loss if `is_loss`: it is red then, in a table with colours.
pub fn loss(text: String, is_loss: bool) -> Cell {
    let cell = Cell::new(text);
    if is_loss { cell.fg(Color::Red) } else { cell }
}

/// Aligns these columns to the right and keeps their cells on one line, for numbers.
pub fn align_right(table: &mut Table, columns: Range<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

/// A table without lines, of the width that its cells need and without colours.
pub fn table<'h>(header: impl IntoIterator<Item = &'h str>) -> Table {
    Look::default().table(header)
}

/// Named numbers on one line, separated by commas.
pub fn named(numbers: &[(String, u64)]) -> String {
    let each: Vec<String> =
        numbers.iter().map(|(name, number)| format!("{name} {}", count(*number))).collect();
    each.join(", ")
}
