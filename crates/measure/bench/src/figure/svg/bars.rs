//! Groups of bars, for categories.

use super::canvas::{Anchor, Canvas, INK, LETTER, Pen, Pencil, SMALL, Spot, WHITE};
use super::frame::Frame;
use super::look::{Look, whisker};
use super::span::is_drawable;
use crate::figure::words::{columns, number};
use crate::figure::{Figure, Point};

/// The share of a category's slot that its bars take.
const GROUP: f64 = 0.8;
/// Widest bar, in pixels.
const WIDEST: f64 = 60.0;

/// The number of a point's category, if it has one.
pub fn slot(figure: &Figure, point: &Point) -> Option<usize> {
    let is_one = point.x >= 0.0 && point.x < figure.x.categories.len() as f64 && is_drawable(point.y.median);
    is_one.then_some(point.x as usize)
}

/// Draws the bars with their ranges, and their medians if there is room for all.
pub fn draw(canvas: &Canvas, frame: &Frame, figure: &Figure, looks: &[Look]) {
    let slots = figure.x.categories.len().max(1) as f64;
    let bar = (frame.width / slots * GROUP / figure.series.len().max(1) as f64).min(WIDEST);
    let medians = figure.series.iter().flat_map(|series| &series.points).map(|point| number(point.y.median));
    let widest = medians.map(|told| columns(&told)).max().unwrap_or(0) as f64 * LETTER * SMALL;
    let base = frame.down(0.0);
    for (at, (series, look)) in figure.series.iter().zip(looks).enumerate() {
        for point in &series.points {
            let Some(slot) = slot(figure, point) else { continue };
            let middle = frame.left + frame.width * (slot as f64 + 0.5) / slots;
            let left = middle + (at as f64 - figure.series.len() as f64 / 2.0) * bar;
            let value = frame.down(point.y.median);
            piece(canvas, look, (left, value), (left + bar, base), point.disturbed);
            let range = frame.range(point);
            if let Some(range) = range {
                // Dark ink with a white edge is visible on dark and on light bars.
                canvas.line(
                    &[(left + bar / 2.0, range.0), (left + bar / 2.0, range.1)],
                    &Pen::solid(WHITE, 3.0f64.min(bar / 3.0)),
                );
                whisker(canvas, INK, left + bar / 2.0, range, (bar / 5.0).min(4.0));
            }
            if widest < bar + 4.0 {
                let above = range.map_or(value, |(top, _)| top).min(value);
                let pencil = Pencil { anchor: Anchor::Middle, ..Pencil::new(SMALL - 1.0, INK) };
                canvas.text(&number(point.y.median), (left + bar / 2.0, above - 9.0), &pencil);
            }
        }
    }
}

/// Draws a bar; a disturbed one is hollow.
pub fn piece(canvas: &Canvas, look: &Look, from: Spot, to: Spot, disturbed: bool) {
    // Bars have a gap between them, but are never without width.
    let gap = ((to.0 - from.0) * 0.08).min(1.5);
    let (left, right) = (from.0 + gap, to.0 - gap);
    let fill = if disturbed { WHITE } else { look.fill };
    canvas.rectangle((left, from.1), (right, to.1), fill);
    // A value of 0 is a line on the axis, which shows that it was measured.
    let outline = Pen { width: 1.2, ..look.pen };
    canvas.line(&[(left, to.1), (left, from.1), (right, from.1), (right, to.1), (left, to.1)], &outline);
}
