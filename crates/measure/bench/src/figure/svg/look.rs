//! The styles that distinguish curves: colours, markers and lines.
//!
//! Millrace's curves are solid, other systems' thin with long dashes, papers' grey with short dashes. The ten colours
//! can be distinguished by colour-blind readers (Okabe and Ito's, Tol's). With seven markers, the combination of colour
//! and marker repeats after seventy curves.

use super::canvas::{Canvas, Pen, Rgb, Spot, WHITE};
use crate::figure::{Origin, Series};
use std::f64::consts::{FRAC_PI_2, TAU};

const COLORS: [Rgb; 10] = [
    Rgb(0, 114, 178),
    Rgb(213, 94, 0),
    Rgb(0, 140, 105),
    Rgb(204, 110, 160),
    Rgb(51, 34, 136),
    Rgb(230, 159, 0),
    Rgb(86, 180, 233),
    Rgb(136, 34, 85),
    Rgb(130, 130, 30),
    Rgb(20, 20, 20),
];
const GREYS: [Rgb; 3] = [Rgb(105, 105, 105), Rgb(150, 150, 150), Rgb(75, 75, 75)];
const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Regular { corners: 4, turn: 0.5 },
    Marker::Regular { corners: 3, turn: 0.0 },
    Marker::Regular { corners: 4, turn: 0.0 },
    Marker::Regular { corners: 3, turn: 0.5 },
    Marker::Regular { corners: 5, turn: 0.0 },
    Marker::Regular { corners: 6, turn: 0.5 },
];
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

#[derive(Clone, Copy, Debug)]
enum Marker {
    Circle,
    /// A regular polygon. Without a turn one corner is at the top; `turn` is a share of the angle between two corners.
    Regular {
        corners: u32,
        turn: f64,
    },
}

/// The styles of some curves.
pub fn looks(series: &[Series]) -> Vec<Look> {
    let (mut measured, mut printed) = (0, 0);
    let next = |count: &mut usize| {
        *count += 1;
        *count - 1
    };
    let look = |series: &Series| {
        let paper = matches!(series.origin, Origin::Paper(_));
        let at = next(if paper { &mut printed } else { &mut measured });
        let pick = |colors: &[Rgb]| colors.get(at % colors.len()).copied().unwrap_or(COLORS[0]);
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
fn pale(Rgb(red, green, blue): Rgb) -> Rgb {
    let mix = |part: u8| ((u16::from(part) + 2 * 255) / 3) as u8;
    Rgb(mix(red), mix(green), mix(blue))
}

impl Look {
    /// Draws the marker of a point, which is hollow for a disturbed point and for papers' values.
    pub fn mark(&self, canvas: &Canvas, (x, y): Spot, disturbed: bool) {
        let fill = if self.hollow || disturbed { WHITE } else { self.color };
        let outline = Pen::solid(self.color, 1.4);
        let Marker::Regular { corners, turn } = self.marker else {
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
