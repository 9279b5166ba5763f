//! What was measured by turns, as curves.

use crate::figure::{Point, Series};

/// A value of a curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The curve's name.
    pub series: String,
    /// Where on it.
    pub x: f64,
    /// What was measured.
    pub y: f64,
    /// Whether something else had the core for too long.
    pub disturbed: bool,
}

/// Curves that are being measured, in the order in which they were begun.
#[derive(Debug, Default)]
pub struct Curves(Vec<Curve>);

#[derive(Debug)]
struct Curve {
    name: String,
    /// By place: values, and whether each was disturbed.
    points: Vec<(f64, Vec<(f64, bool)>)>,
}

impl Curves {
    /// Adds a value to its curve.
    pub fn push(&mut self, sample: Sample) {
        let Sample { series, x, y, disturbed } = sample;
        let at = self.0.iter().position(|curve| curve.name == series).unwrap_or_else(|| {
            self.0.push(Curve { name: series, points: vec![] });
            self.0.len() - 1
        });
        let Some(curve) = self.0.get_mut(at) else { return };
        match curve.points.iter_mut().find(|(known, _)| *known == x) {
            Some((_, values)) => values.push((y, disturbed)),
            None => curve.points.push((x, vec![(y, disturbed)])),
        }
    }

    /// The curves, their points from left to right: disturbed are those that were in most turns.
    pub fn series(self) -> Vec<Series> {
        self.0.into_iter().map(Curve::series).collect()
    }
}

impl Curve {
    fn series(mut self) -> Series {
        self.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let points = self.points.into_iter().filter_map(|(x, values)| {
            let disturbed = 2 * values.iter().filter(|(_, disturbed)| *disturbed).count() > values.len();
            Point::of(x, values.into_iter().map(|(y, _)| y), disturbed)
        });
        Series::own(self.name, points.collect())
    }
}
