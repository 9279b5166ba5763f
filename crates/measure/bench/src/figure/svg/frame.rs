//! The rectangle of the plot: positions of values, axes, grid lines and their labels.

use super::canvas::{Anchor, BODY, Canvas, GRID, INK, LETTER, Pen, Pencil, SMALL, SOFT};
use super::span::{Span, is_drawable};
use crate::figure::Point;
use crate::figure::words::{columns, wrap};

/// The most columns of a category's name that is written upward.
const UPWARD: usize = 26;
/// Width of a slot from which on names are written across even if words have to be broken, in pixels.
const ROOMY: f64 = 90.0;
/// Height of a line of small text, in pixels.
const LINE: f64 = 15.0;

/// The plot's rectangle, in pixels.
pub struct Frame {
    /// Left end of the x axis.
    pub left: f64,
    /// Length of the x axis.
    pub width: f64,
    /// Upper end of the y axis.
    pub top: f64,
    /// Length of the y axis.
    pub height: f64,
    /// The y axis.
    pub y: Span,
}

/// The names of the categories, below the plot.
pub struct Names {
    lines: Vec<Vec<String>>,
    upward: bool,
    /// Height of all names, in pixels.
    pub height: f64,
}

impl Names {
    /// Lays out names in slots of `slot` pixels: across in up to four lines where words fit, otherwise
    /// upward.
    pub fn of(names: &[String], slot: f64) -> Names {
        let fits = (slot / (LETTER * SMALL)) as usize;
        let across: Vec<Vec<String>> = names.iter().map(|name| wrap(name, fits.saturating_sub(1))).collect();
        let is_whole = |name: &String| name.split_whitespace().all(|word| columns(word) < fits);
        let most = across.iter().map(Vec::len).max().unwrap_or(0);
        if most <= 4 && (slot >= ROOMY || names.iter().all(is_whole)) {
            return Names { lines: across, upward: false, height: most as f64 * LINE };
        }
        let room = (slot / LINE).max(1.0) as usize;
        let cut = |name: &String| {
            let mut lines = wrap(name, UPWARD);
            if lines.len() > room {
                lines.truncate(room);
                lines.last_mut().into_iter().for_each(|line| line.push('…'));
            }
            lines
        };
        let lines: Vec<Vec<String>> = names.iter().map(cut).collect();
        let longest = lines.iter().flatten().map(|line| columns(line)).max().unwrap_or(0);
        Names { lines, upward: true, height: longest as f64 * LETTER * SMALL }
    }

    /// Draws the names below the plot.
    pub fn draw(&self, canvas: &Canvas, frame: &Frame) {
        let slot = frame.width / self.lines.len().max(1) as f64;
        let pencil = Pencil { anchor: Anchor::Middle, ..Pencil::new(SMALL, INK) };
        let upward = Pencil { anchor: Anchor::End, upward: true, ..pencil };
        // Where slots are narrower than a line, some names are left out.
        let every = (LINE / slot).ceil().max(1.0) as usize;
        for (at, lines) in self.lines.iter().enumerate() {
            let (middle, top) = (frame.left + (at as f64 + 0.5) * slot, frame.bottom() + 8.0);
            for (line, told) in lines.iter().enumerate() {
                let down = line as f64 * LINE;
                if !self.upward {
                    canvas.text(told, (middle, top + LINE / 2.0 + down), &pencil);
                } else if at.is_multiple_of(every) {
                    let first = middle - (lines.len() - 1) as f64 * LINE / 2.0;
                    canvas.text(told, (first + down, top), &upward);
                }
            }
        }
    }
}

impl Frame {
    /// Width of the y axis' numbers, in pixels.
    pub fn beside(y: &Span) -> f64 {
        y.ticks.iter().map(|tick| columns(&tick.label)).max().unwrap_or(0) as f64 * LETTER * SMALL
    }

    /// Lower end of the y axis.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Right end of the x axis.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// The vertical position of a y value.
    pub fn down(&self, value: f64) -> f64 {
        self.bottom() - self.y.share(value) * self.height
    }

    /// The horizontal position of an x value.
    pub fn across(&self, x: &Span, value: f64) -> f64 {
        self.left + x.share(value) * self.width
    }

    /// The vertical positions of the top and the bottom of a point's range, if it has one.
    pub fn range(&self, point: &Point) -> Option<(f64, f64)> {
        let (top, bottom) = (self.down(point.y.max), self.down(point.y.min));
        let is_range = point.y.min < point.y.max && is_drawable(point.y.max - point.y.min);
        is_range.then_some((top, bottom))
    }

    /// Draws grid lines and axes, the numbers of the y axis and its label, which may have several lines.
    pub fn draw(&self, canvas: &Canvas, titles: &[String]) {
        for value in &self.y.faint {
            let at = self.down(*value);
            canvas.line(&[(self.left, at), (self.right(), at)], &Pen::solid(GRID, 0.5));
        }
        let pencil = Pencil { anchor: Anchor::End, ..Pencil::new(SMALL, INK) };
        for tick in &self.y.ticks {
            let at = self.down(tick.at);
            canvas.line(&[(self.left, at), (self.right(), at)], &Pen::solid(GRID, 1.0));
            canvas.line(&[(self.left - 4.0, at), (self.left, at)], &Pen::solid(SOFT, 1.0));
            canvas.text(&tick.label, (self.left - 8.0, at), &pencil);
        }
        let corner = (self.left, self.bottom());
        canvas.line(&[(self.left, self.top), corner, (self.right(), self.bottom())], &Pen::solid(SOFT, 1.0));
        let pencil = Pencil { anchor: Anchor::Middle, upward: true, ..Pencil::new(BODY, INK) };
        for (at, line) in titles.iter().enumerate() {
            canvas.text(line, (28.0 + at as f64 * 17.0, self.top + self.height / 2.0), &pencil);
        }
    }

    /// Draws the ticks of the x axis.
    pub fn draw_ticks(&self, canvas: &Canvas, x: &Span) {
        let pencil = Pencil { anchor: Anchor::Middle, ..Pencil::new(SMALL, INK) };
        for tick in &x.ticks {
            let at = self.across(x, tick.at);
            canvas.line(&[(at, self.bottom()), (at, self.bottom() + 4.0)], &Pen::solid(SOFT, 1.0));
            canvas.line(&[(at, self.top), (at, self.bottom())], &Pen::solid(GRID, 0.5));
            canvas.text(&tick.label, (at, self.bottom() + 8.0 + LINE / 2.0), &pencil);
        }
    }
}
