//! The samples of all turns, as curves.

use crate::figure::{Point, Series};

/// A value of a curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The curve's name.
    pub series: String,
    /// The x value.
    pub x: f64,
    /// The measured value.
    pub y: f64,
    /// Whether the measurement was disturbed: something else had the core for too long, or cores were far
    /// apart.
    pub disturbed: bool,
}

/// The curves of these values, in the order in which they were begun, their points from left to right:
/// disturbed are those that were in most turns.
pub fn curves(samples: &[Sample]) -> Vec<Series> {
    let mut names: Vec<&String> = vec![];
    for Sample { series, .. } in samples {
        if !names.contains(&series) {
            names.push(series);
        }
    }
    let curve = |name: &String| {
        let own = || samples.iter().filter(move |sample| sample.series == *name);
        let mut xs: Vec<f64> = own().map(|sample| sample.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let point = |x: f64| {
            let here: Vec<&Sample> = own().filter(|sample| sample.x == x).collect();
            let disturbed = 2 * here.iter().filter(|sample| sample.disturbed).count() > here.len();
            Point::of(x, here.iter().map(|sample| sample.y), disturbed)
        };
        Series::own(name, xs.into_iter().filter_map(point).collect())
    };
    names.into_iter().map(curve).collect()
}
