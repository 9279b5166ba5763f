//! A figure as a table: x values down, curves across.

use super::words::{called, plain, value};
use super::{Figure, Point};
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// The cells of a table.
pub struct Grid {
    /// The titles of the columns.
    pub header: Vec<String>,
    /// For each x value its name and the values of the curves; `-` where a curve has none.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// All points of a figure.
    pub fn of(figure: &Figure) -> Grid {
        let points = figure.series.iter().flat_map(|series| &series.points);
        // Adding 0 turns -0 into 0.
        let mut xs: Vec<f64> = points.map(|point| point.x + 0.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup_by(|a, b| a.total_cmp(b).is_eq());
        let cell = |points: &[Point], x: f64| {
            let here = points.iter().filter(|point| (point.x + 0.0).total_cmp(&x).is_eq());
            let told: Vec<String> = here.map(value).collect();
            if told.is_empty() { "-".into() } else { told.join("; ") }
        };
        let row = |x: &f64| {
            let values = figure.series.iter().map(|series| cell(&series.points, *x));
            std::iter::once(plain(&figure.x.value(*x))).chain(values).collect()
        };
        let header = std::iter::once(plain(&figure.x.title())).chain(figure.series.iter().map(called));
        Grid { header: header.collect(), rows: xs.iter().map(row).collect() }
    }

    /// A table in one of comfy-table's presets, with each cell escaped by `escape`.
    pub fn table(&self, preset: &str, escape: impl Fn(&str) -> String) -> Table {
        let mut table = Table::new();
        table.load_preset(preset).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.header.iter().map(|cell| escape(cell)));
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| escape(cell)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}
