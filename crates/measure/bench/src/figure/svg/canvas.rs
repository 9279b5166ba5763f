//! Lines, shapes and texts on plotters' SVG backend.
//!
//! The backend counts in whole pixels, too coarse for whiskers and small steps. It draws tenths of them here, and the
//! picture is shown at a tenth of the size.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{
    Circle, DashedPathElement, Drawable, PathElement, PointCollection, Polygon, Rectangle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle};

/// Units of the backend in a pixel.
const FINE: f64 = 10.0;
/// Plotters divides font sizes by this.
const FONT: f64 = 1.24;
/// How wide a letter of a proportional font is at most on average, as a share of its size.
pub const LETTER: f64 = 0.6;

/// A place, in pixels from the upper left.
pub type Spot = (f64, f64);

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Pen {
    /// Its colour.
    pub color: RGBColor,
    /// Its width, in pixels.
    pub width: f64,
    /// Pixels drawn and left out, where it is dashed.
    pub dash: Option<(f64, f64)>,
}

/// How a text is written.
#[derive(Clone, Copy)]
pub struct Pencil {
    /// Its size, in pixels.
    pub size: f64,
    /// Its colour.
    pub color: RGBColor,
    /// Which end of it is at the place.
    pub anchor: HPos,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it runs upward.
    pub upward: bool,
}

/// A picture that is being drawn.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Pen {
    /// Without gaps.
    pub fn solid(color: RGBColor, width: f64) -> Pen {
        Pen { color, width, dash: None }
    }

    fn style(&self) -> ShapeStyle {
        ShapeStyle::from(&self.color).stroke_width((self.width * FINE) as u32)
    }
}

impl Pencil {
    /// From left to right, beginning at the place.
    pub fn new(size: f64, color: RGBColor) -> Pencil {
        Pencil { size, color, anchor: HPos::Left, bold: false, upward: false }
    }
}

impl<'a> Canvas<'a> {
    /// An empty one of this size, white: it may lie on a dark page.
    pub fn new(out: &'a mut String, (width, height): Spot) -> Canvas<'a> {
        let (fine_width, fine_height) = whole((width, height));
        let size = (fine_width.unsigned_abs(), fine_height.unsigned_abs());
        let canvas = Canvas { area: SVGBackend::with_string(out, size).into_drawing_area() };
        canvas.rectangle((0.0, 0.0), (width, height), plotters::style::WHITE);
        canvas
    }

    /// Drawing into a string cannot fail.
    fn draw<Element>(&self, element: &Element)
    where
        for<'b> &'b Element: PointCollection<'b, (i32, i32)>,
        Element: Drawable<SVGBackend<'a>>,
    {
        let _ = self.area.draw(element);
    }

    /// A line through these places.
    pub fn line(&self, spots: &[Spot], pen: &Pen) {
        let points: Vec<(i32, i32)> = spots.iter().copied().map(whole).collect();
        match pen.dash {
            None => self.draw(&PathElement::new(points, pen.style())),
            Some((drawn, left_out)) => {
                let (drawn, left_out) = ((drawn * FINE) as i32, (left_out * FINE) as i32);
                self.draw(&DashedPathElement::new(points, drawn, left_out, pen.style()));
            }
        }
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&self, from: Spot, to: Spot, color: RGBColor) {
        let (left, top) = whole((from.0.min(to.0), from.1.min(to.1)));
        let (right, bottom) = whole((from.0.max(to.0), from.1.max(to.1)));
        self.draw(&Rectangle::new([(left, top), (right, bottom)], ShapeStyle::from(&color).filled()));
    }

    /// A filled shape with an outline.
    pub fn polygon(&self, corners: &[Spot], fill: RGBColor, outline: &Pen) {
        let mut points: Vec<(i32, i32)> = corners.iter().copied().map(whole).collect();
        self.draw(&Polygon::new(points.clone(), ShapeStyle::from(&fill).filled()));
        points.extend(points.first().copied());
        // Further along the first edge, so that its corner is no notch.
        points.extend(points.get(1).copied());
        self.draw(&PathElement::new(points, outline.style()));
    }

    /// A filled circle with an outline.
    pub fn circle(&self, center: Spot, radius: f64, fill: RGBColor, outline: &Pen) {
        let radius = (radius * FINE) as i32;
        self.draw(&Circle::new(whole(center), radius, ShapeStyle::from(&fill).filled()));
        self.draw(&Circle::new(whole(center), radius, outline.style()));
    }

    /// A text, its middle at the height of a place.
    pub fn text(&self, text: &str, spot: Spot, pencil: &Pencil) {
        let style = if pencil.bold { FontStyle::Bold } else { FontStyle::Normal };
        let turn = if pencil.upward { FontTransform::Rotate270 } else { FontTransform::None };
        let font = FontDesc::new(FontFamily::SansSerif, pencil.size * FINE * FONT, style).transform(turn);
        let style = TextStyle::from(font).color(&pencil.color).pos(Pos::new(pencil.anchor, VPos::Center));
        self.draw(&Text::new(text.to_string(), whole(spot), style));
    }
}

/// In the backend's units. Whatever is far outside stays outside; sums of two such numbers are in range.
fn whole((x, y): Spot) -> (i32, i32) {
    let whole = |at: f64| (at * FINE).round().clamp(-1e8, 1e8) as i32;
    (whole(x), whole(y))
}

/// Shows a finished picture at its size, with a title for those who hear it.
pub fn finish(drawn: &str, (width, height): Spot, title: &str) -> String {
    let (fine_width, fine_height) = whole((width, height));
    let wide = format!("width=\"{fine_width}\" height=\"{fine_height}\"");
    let shown = format!("width=\"{width}\" height=\"{}\" role=\"img\"", height.round());
    let title = maud::html! { title { (title) } }.into_string();
    drawn.replacen(&wide, &shown, 1).replacen(">\n", &format!(">\n{title}\n"), 1)
}
