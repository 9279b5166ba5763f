//! Lines, shapes and texts as SVG elements.

use maud::{Markup, PreEscaped, html};
use std::cell::RefCell;
use std::fmt;

/// The average width of a letter of a proportional font, as a share of its size: an upper bound.
pub const LETTER: f64 = 0.6;
/// The background colour.
pub const WHITE: Rgb = Rgb(0xffffff);
/// The colour of the main texts.
pub const INK: Rgb = Rgb(0x222222);
/// The colour of axes and remarks.
pub const SOFT: Rgb = Rgb(0x5f5f5f);
/// The colour of grid lines.
pub const GRID: Rgb = Rgb(0xdedede);
/// Size of a title, in pixels.
pub const TITLE: f64 = 16.0;
/// Size of labels and of a legend's names, in pixels.
pub const BODY: f64 = 13.0;
/// Size of an axis' numbers and of remarks, in pixels.
pub const SMALL: f64 = 12.0;

/// A position, in pixels from the upper left.
pub type Spot = (f64, f64);

/// A colour: a byte each of red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rgb(pub u32);

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Pen {
    /// Its colour.
    pub color: Rgb,
    /// Its width, in pixels.
    pub width: f64,
    /// The lengths of dashes and gaps in pixels, for a dashed line.
    pub dash: Option<(f64, f64)>,
}

/// How a text is written.
#[derive(Clone, Copy)]
pub struct Pencil {
    /// Its size, in pixels.
    pub size: f64,
    /// Its colour.
    pub color: Rgb,
    /// The part of the text that is at its position.
    pub anchor: Anchor,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it runs upward.
    pub upward: bool,
}

/// The part of a text that is at its position.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn.
pub struct Canvas {
    size: Spot,
    /// The elements drawn so far. In a `RefCell`, so that a legend can draw samples while it is drawn.
    shapes: RefCell<String>,
}

impl Pen {
    /// A solid line.
    pub fn solid(color: Rgb, width: f64) -> Pen {
        Pen { color, width, dash: None }
    }
}

impl Pencil {
    /// A text from left to right that begins at its position.
    pub fn new(size: f64, color: Rgb) -> Pencil {
        Pencil { size, color, anchor: Anchor::Start, bold: false, upward: false }
    }
}

impl Canvas {
    /// A white canvas of this size: the page around it may be dark.
    pub fn new(size: Spot) -> Canvas {
        let canvas = Canvas { size, shapes: RefCell::default() };
        canvas.rectangle((0.0, 0.0), size, WHITE);
        canvas
    }

    fn draw(&self, shape: Markup) {
        let mut shapes = self.shapes.borrow_mut();
        shapes.push_str(&shape.into_string());
        shapes.push('\n');
    }

    /// Draws a line through these positions.
    pub fn line(&self, spots: &[Spot], pen: &Pen) {
        let dash = pen.dash.map(|(drawn, left_out)| format!("{} {}", Pixels(drawn), Pixels(left_out)));
        self.draw(html! {
            polyline points=(Points(spots)) fill="none" stroke=(pen.color) stroke-width=(Pixels(pen.width))
                stroke-dasharray=[dash] {}
        });
    }

    /// Draws a filled rectangle between two corners.
    pub fn rectangle(&self, from: Spot, to: Spot, color: Rgb) {
        let (left, top) = (from.0.min(to.0), from.1.min(to.1));
        let (width, height) = ((from.0 - to.0).abs(), (from.1 - to.1).abs());
        self.draw(html! {
            rect x=(Pixels(left)) y=(Pixels(top)) width=(Pixels(width)) height=(Pixels(height)) fill=(color) {}
        });
    }

    /// Draws a filled polygon with an outline.
    pub fn polygon(&self, corners: &[Spot], fill: Rgb, outline: &Pen) {
        self.draw(html! {
            polygon points=(Points(corners)) fill=(fill) stroke=(outline.color)
                stroke-width=(Pixels(outline.width)) {}
        });
    }

    /// Draws a filled circle with an outline.
    pub fn circle(&self, (x, y): Spot, radius: f64, fill: Rgb, outline: &Pen) {
        self.draw(html! {
            circle cx=(Pixels(x)) cy=(Pixels(y)) r=(Pixels(radius)) fill=(fill) stroke=(outline.color)
                stroke-width=(Pixels(outline.width)) {}
        });
    }

    /// Draws a text, vertically centred at a position.
    pub fn text(&self, text: &str, (x, y): Spot, pencil: &Pencil) {
        let (x, y) = (Pixels(x), Pixels(y));
        let turn = pencil.upward.then(|| format!("rotate(270 {x} {y})"));
        let anchor = match pencil.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.draw(html! {
            text x=(x) y=(y) dy="0.5ex" text-anchor=(anchor) font-size=(Pixels(pencil.size)) fill=(pencil.color)
                font-weight=[pencil.bold.then_some("bold")] transform=[turn] { (text) }
        });
    }

    /// The finished SVG, with a title for screen readers.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (Pixels(self.size.0), Pixels(self.size.1.round()));
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
                viewBox={ "0 0 " (width) " " (height) } role="img" font-family="sans-serif"
            {
                title { (title) }
                "\n"
                (PreEscaped(self.shapes.into_inner()))
            }
        };
        picture.into_string() + "\n"
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#{:06x}", self.0)
    }
}

/// A length or a coordinate, rounded to hundredths. Values far outside are clamped to a range in which
/// viewers can calculate.
#[derive(Clone, Copy)]
struct Pixels(f64);

impl fmt::Display for Pixels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", (self.0.clamp(-1e7, 1e7) * 100.0).round() / 100.0)
    }
}

/// The points of a line or of a polygon.
struct Points<'a>(&'a [Spot]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (x, y)) in self.0.iter().enumerate() {
            let gap = if at > 0 { " " } else { "" };
            write!(out, "{gap}{},{}", Pixels(*x), Pixels(*y))?;
        }
        Ok(())
    }
}
