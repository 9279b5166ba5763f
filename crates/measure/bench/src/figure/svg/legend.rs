//! The legend below the plot, where it covers no data: full names, in as many columns as fit.

use super::canvas::{BODY, Canvas, INK, LETTER, Pencil, Spot};
use super::look::Look;
use crate::figure::words::{called, columns, plain, wrap};
use crate::figure::{Figure, Origin, Series};

/// Width of the sample of a curve in front of its name, in pixels.
const SAMPLE: f64 = 40.0;
/// Gap between columns, in pixels.
const GAP: f64 = 24.0;
/// Height of a line, in pixels.
const LINE: f64 = 18.0;

/// The names of all curves, laid out.
pub struct Legend {
    entries: Vec<Vec<String>>,
    across: usize,
    column: f64,
}

impl Legend {
    /// Lays out the legend for a width in pixels.
    pub fn of(figure: &Figure, width: f64) -> Legend {
        let most = ((width - SAMPLE) / (LETTER * BODY)) as usize;
        let name = |series: &Series| match &series.origin {
            Origin::Paper(place) if !place.is_empty() => format!("{} ({})", called(series), plain(place)),
            _ => called(series),
        };
        let names = figure.series.iter().map(name);
        let entries: Vec<Vec<String>> = names.map(|name| wrap(&name, most)).collect();
        let longest = entries.iter().flatten().map(|line| columns(line)).max().unwrap_or(0);
        let column = SAMPLE + longest as f64 * LETTER * BODY + GAP;
        Legend { entries, across: ((width + GAP) / column).max(1.0) as usize, column }
    }

    fn row_height(row: &[Vec<String>]) -> f64 {
        row.iter().map(Vec::len).max().unwrap_or(0) as f64 * LINE
    }

    /// Height of the legend, in pixels.
    pub fn height(&self) -> f64 {
        self.entries.chunks(self.across).map(Legend::row_height).sum()
    }

    /// Draws the legend with its upper left corner at a position; `sample` draws the sample of a curve around
    /// a position.
    pub fn draw(&self, canvas: &Canvas, (left, top): Spot, looks: &[Look], sample: impl Fn(&Look, Spot)) {
        let mut y = top + LINE / 2.0;
        for (row, looks) in self.entries.chunks(self.across).zip(looks.chunks(self.across)) {
            for (at, (lines, look)) in row.iter().zip(looks).enumerate() {
                let x = left + at as f64 * self.column;
                sample(look, (x + SAMPLE / 2.0 - 4.0, y));
                for (at, line) in lines.iter().enumerate() {
                    canvas.text(line, (x + SAMPLE, y + at as f64 * LINE), &Pencil::new(BODY, INK));
                }
            }
            y += Legend::row_height(row);
        }
    }
}
