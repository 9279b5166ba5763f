//! A figure as CSV, for other programs: a line for each point.

use super::words::plain;
use super::{Figure, Origin};
use crate::BenchError;

/// The columns. `x_name` is the category's name and empty for numbers; `origin` is `own`, `peer` or `paper:
/// PLACE`.
const COLUMNS: &str = "figure,series,origin,x,x_name,x_unit,median,min,max,repeats,disturbed,y_unit";

/// All points of a figure in long form, with a header.
///
/// # Errors
/// None that a user could cause.
pub fn csv(figure: &Figure) -> Result<String, BenchError> {
    let name = format!("{}.csv", plain(&figure.name));
    let broken = |cause: std::io::Error| BenchError::file("write", name.as_ref(), cause);
    let mut writer = ::csv::Writer::from_writer(vec![]);
    writer.write_record(COLUMNS.split(',')).map_err(|error| broken(error.into()))?;
    for series in &figure.series {
        let origin = match &series.origin {
            Origin::Own => "own".into(),
            Origin::Peer => "peer".into(),
            Origin::Paper(place) => format!("paper: {}", plain(place)),
        };
        for point in &series.points {
            let has_names = !figure.x.categories.is_empty();
            let record = [
                plain(&figure.name),
                plain(&series.name),
                origin.clone(),
                point.x.to_string(),
                if has_names { plain(&figure.x.value(point.x)) } else { String::new() },
                plain(&figure.x.unit),
                point.y.median.to_string(),
                point.y.min.to_string(),
                point.y.max.to_string(),
                point.repeats.to_string(),
                point.disturbed.to_string(),
                plain(&figure.y.unit),
            ];
            writer.write_record(&record).map_err(|error| broken(error.into()))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| broken(std::io::Error::other(error.to_string())))?;
    String::from_utf8(bytes).map_err(|error| broken(std::io::Error::other(error)))
}
