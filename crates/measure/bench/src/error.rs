//! The crate's one error type. A message states the fact, then the remedy.

use std::path::Path;
use thiserror::Error;
use traffic::TrafficError;

/// An error of a measurement.
#[derive(Debug, Error)]
pub enum BenchError {
    /// Generated traffic, a capture, a setting or a file has an error.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// The chain to measure or a system's adapter has errors: all of them, rendered.
    #[error("{0}")]
    BadText(String),
    /// A measurement gave no result.
    #[error("no figure: {0}")]
    Measurement(String),
}

impl BenchError {
    /// A file has lines that cannot be read; `message` names each.
    pub(crate) fn bad_lines(path: &Path, message: String) -> BenchError {
        TrafficError::BadLines { path: path.to_owned(), message }.into()
    }

    /// A file could not be opened, read or written; `action` names the attempt.
    pub(crate) fn file(action: &'static str, path: &Path, cause: std::io::Error) -> BenchError {
        TrafficError::file(action, path, cause).into()
    }

    /// A setting's text could not be read.
    pub(crate) fn setting(what: &'static str, text: &str, reason: impl Into<String>) -> BenchError {
        TrafficError::setting(what, text, reason).into()
    }

    /// Settings contradict each other.
    pub(crate) fn contradiction(message: String) -> BenchError {
        TrafficError::Contradiction(message).into()
    }
}
