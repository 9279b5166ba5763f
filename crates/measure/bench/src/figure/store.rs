//! Writes and reads reports as files.

use super::name::file_names;
use super::{Report, csv, html, markdown, svg};
use crate::BenchError;
use std::path::{Path, PathBuf};

/// Writes `report.html`, `report.json`, `report.md`, and for each figure `NAME.svg` and `NAME.csv`; returns
/// the files.
///
/// JSON has no infinite numbers. Points with one are omitted from all files, and a note says so.
///
/// # Errors
/// When the folder or a file cannot be written.
pub fn write(report: &Report, folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let report = &with_numbers_only(report);
    std::fs::create_dir_all(folder).map_err(|cause| BenchError::file("create", folder, cause))?;
    let json = serde_json::to_string_pretty(report)
        .map_err(|error| BenchError::file("write", &folder.join("report.json"), error.into()))?;
    let mut files = vec![
        ("report.html".to_string(), html(report)),
        ("report.json".to_string(), json + "\n"),
        ("report.md".to_string(), markdown(report, Some("."))),
    ];
    for (figure, name) in report.figures.iter().zip(file_names(report)) {
        files.push((format!("{name}.svg"), svg(figure)));
        files.push((format!("{name}.csv"), csv(figure)?));
    }
    let write = |(name, content): (String, String)| {
        let path = folder.join(name);
        std::fs::write(&path, content).map_err(|cause| BenchError::file("write", &path, cause))?;
        Ok(path)
    };
    files.into_iter().map(write).collect()
}

/// Reads a `report.json`.
///
/// # Errors
/// When it cannot be read or holds no report.
pub fn read(path: &Path) -> Result<Report, BenchError> {
    let text = std::fs::read_to_string(path).map_err(|cause| BenchError::file("read", path, cause))?;
    serde_json::from_str(&text).map_err(|error| {
        let path_shown = path.display();
        let hint = "reports are the files `report.json` of `millrace bench`";
        BenchError::bad_lines(path, format!("{path_shown}: no report: {error}; {hint}"))
    })
}

pub(super) fn with_numbers_only(report: &Report) -> Report {
    let mut report = report.clone();
    let finite = |number: f64| if number.is_finite() { number } else { 0.0 };
    report.took_s = finite(report.took_s);
    report.machine.tsc_ghz = finite(report.machine.tsc_ghz);
    report.machine.load = finite(report.machine.load);
    for figure in &mut report.figures {
        for series in &mut figure.series {
            let before = series.points.len();
            let is_number = |number: f64| number.is_finite();
            series.points.retain(|point| {
                [point.x, point.y.median, point.y.min, point.y.max].into_iter().all(is_number)
            });
            let lost = before - series.points.len();
            if lost > 0 {
                figure.notes.push(format!(
                    "{}: {lost} of {before} points are no finite numbers and left out",
                    series.name
                ));
            }
        }
    }
    report
}
