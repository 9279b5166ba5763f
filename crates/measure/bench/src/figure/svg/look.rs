//! The styles that distinguish curves: colours, markers and lines.
//!
//! Millrace's curves are solid, other systems' thin with long dashes, papers' grey with short dashes. The ten
//! colours can be distinguished by colour-blind readers (Okabe and Ito's, Tol's). With seven markers, the
//! combination of colour and marker repeats after seventy curves.

use super::canvas::{Canvas, Pen, Rgb, Spot, WHITE};
use crate::figure::{Origin, Series};
use std::f64::consts::{FRAC_PI_2, TAU};

const COLORS: [u32; 10] =
    [0x0072b2, 0xd55e00, 0x008c69, 0xcc6ea0, 0x332288, 0xe69f00, 0x56b4e9, 0x882255, 0x82821e, 0x141414];
const GREYS: [u32; 3] = [0x696969, 0x969696, 0x4b4b4b];
const MARKERS: [Marker; 7] =
    [None, Some((4, 0.5)), Some((3, 0.0)), Some((4, 0.0)), Some((3, 0.5)), Some((5, 0.0)), Some((6, 0.5))];
/// Radius of a marker, in pixels.
const RADIUS: f64 = 4.0;

/// The style of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its colour.
    pub color: Rgb,
    /// Its line.
    pub pen: Pen,
    /// The fill colour of bars.
    pub fill: Rgb,
    marker: Marker,
    hollow: bool,
}

/// A circle, or a regular polygon: its corners, and its turn as a share of the angle between two corners.
/// Without a turn one corner is at the top.
type Marker = Option<(u32, f64)>;

/// The styles of some curves.
pub fn looks(series: &[Series]) -> Vec<Look> {
    let (mut measured, mut printed) = (0, 0);
    let next = |count: &mut usize| {
        *count += 1;
        *count - 1
    };
    let look = |series: &Series| {
        let paper = series.place().is_some();
        let at = next(if paper { &mut printed } else { &mut measured });
        let pick = |colors: &[u32]| Rgb(colors.get(at % colors.len()).copied().unwrap_or(COLORS[0]));
        let marker = MARKERS[at % MARKERS.len()];
        let (color, width, dash) = match series.origin {
            Origin::Own => (pick(&COLORS), 2.0, None),
            Origin::Peer => (pick(&COLORS), 1.5, Some((10.0, 4.0))),
            Origin::Paper(_) => (pick(&GREYS), 1.2, Some((3.0, 3.0))),
        };
        let fill = match series.origin {
            Origin::Own => color,
            Origin::Peer => pale(color),
            Origin::Paper(_) => WHITE,
        };
        Look { color, pen: Pen { color, width, dash }, fill, marker, hollow: paper }
    };
    series.iter().map(look).collect()
}

/// A colour mixed with white.
fn pale(Rgb(color): Rgb) -> Rgb {
    let mix = |shift: u32| (((color >> shift & 0xff) + 2 * 0xff) / 3) << shift;
    Rgb(mix(16) | mix(8) | mix(0))
}

impl Look {
    /// Draws the marker of a point, which is hollow for a disturbed point and for papers' values.
    pub fn mark(&self, canvas: &Canvas, (x, y): Spot, disturbed: bool) {
        let fill = if self.hollow || disturbed { WHITE } else { self.color };
        let outline = Pen::solid(self.color, 1.4);
        let Some((corners, turn)) = self.marker else {
            return canvas.circle((x, y), RADIUS, fill, &outline);
        };
        // A polygon with few corners covers less of its circumcircle.
        let radius = if corners == 3 { RADIUS * 1.3 } else { RADIUS * 1.15 };
        let corner = |at: u32| {
            let angle = (f64::from(at) + turn) / f64::from(corners) * TAU - FRAC_PI_2;
            (x + radius * angle.cos(), y + radius * angle.sin())
        };
        let corners: Vec<Spot> = (0..corners).map(corner).collect();
        canvas.polygon(&corners, fill, &outline);
    }
}

/// Draws a line with caps from the smallest to the largest of the repeats.
pub fn whisker(canvas: &Canvas, color: Rgb, x: f64, (top, bottom): (f64, f64), cap: f64) {
    let pen = Pen::solid(color, 1.2);
    canvas.line(&[(x, top), (x, bottom)], &pen);
    for y in [top, bottom] {
        canvas.line(&[(x - cap, y), (x + cap, y)], &pen);
    }
}
