//! Curves with markers and ranges, for numbers.

use super::canvas::{Canvas, Spot};
use super::frame::Frame;
use super::look::{Look, whisker};
use super::span::{Span, is_drawable};
use crate::figure::{Figure, Point};

/// Whether a point can be drawn.
pub fn is_placed(point: &Point) -> bool {
    is_drawable(point.x) && is_drawable(point.y.median)
}

/// Draws the curves in reverse order of the legend: the first one is on top.
pub fn draw(canvas: &Canvas, frame: &Frame, x: &Span, figure: &Figure, looks: &[Look]) {
    let spot = |point: &Point| (frame.across(x, point.x), frame.down(point.y.median));
    for (series, look) in figure.series.iter().zip(looks).rev() {
        // A point that cannot be drawn leaves a gap.
        for run in series.points.split(|point| !is_placed(point)) {
            let spots: Vec<Spot> = run.iter().map(spot).collect();
            if spots.len() > 1 {
                canvas.line(&spots, &look.pen);
            }
        }
        for point in series.points.iter().filter(|point| is_placed(point)) {
            if let Some(range) = frame.range(point) {
                whisker(canvas, look.color, spot(point).0, range, 3.5);
            }
        }
        for point in series.points.iter().filter(|point| is_placed(point)) {
            look.mark(canvas, spot(point), point.disturbed);
        }
    }
}
