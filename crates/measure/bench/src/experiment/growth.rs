//! Fits of growth to measured points.

use crate::figure::{Figure, Series};

/// Fits a straight line to points, by least squares: returns its slope and its value at 0. `None` for fewer
/// than two x values.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / count, y / count);
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (spread > 0.0).then(|| (both / spread, y - both / spread * x))
}

/// Fits the exponent with which y grows with x, by least squares over logarithms: 0 for constant, 1 for
/// proportional. `None` for fewer than two x values, or values that have no logarithm.
pub fn power(points: &[(f64, f64)]) -> Option<f64> {
    let is_positive = |(x, y): &(f64, f64)| *x > 0.0 && *y > 0.0;
    if !points.iter().all(is_positive) {
        return None;
    }
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    line(&logs).map(|(slope, _)| slope)
}

/// The cost of one more `each` (such as `NF`), for each curve of a figure in Mpps: a line fitted to the time
/// per packet.
pub fn per_nf(figure: &Figure, each: &str) -> Vec<String> {
    let of = |series: &Series| {
        let points: Vec<(f64, f64)> =
            series.points.iter().map(|point| (point.x, 1e3 / point.y.median)).collect();
        let (slope, start) = line(&points)?;
        Some(format!("{}: {start:.1} ns and {slope:.1} ns for each {each} (least squares)", series.name))
    };
    figure.series.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_are_exact_where_points_are() {
        let (slope, start) = line(&[(1.0, 5.0), (2.0, 8.0), (4.0, 14.0)]).expect("a line");
        assert!((slope - 3.0).abs() < 1e-12 && (start - 2.0).abs() < 1e-12);
        assert!(line(&[(1.0, 5.0), (1.0, 6.0)]).is_none() && line(&[]).is_none());
        let power = power(&[(1.0, 3.0), (10.0, 30.0 * 10f64.sqrt()), (100.0, 3e3)]).expect("a power");
        assert!((power - 1.5).abs() < 1e-12, "{power}");
        assert!(super::power(&[(0.0, 1.0), (1.0, 2.0)]).is_none());
    }
}
