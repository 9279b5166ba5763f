//! The crate's one error type. A message states the fact, then the remedy.

use std::path::Path;
use thiserror::Error;
use traffic::TrafficError;

/// Everything that can go wrong while measuring.
#[derive(Debug, Error)]
pub enum BenchError {
    /// Generated traffic, a capture, a setting or a file.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A chain that was to be measured has mistakes.
    #[error("{message}")]
    BadChain {
        /// All of them.
        message: String,
    },
    /// A system's adapter that has mistakes.
    #[error("{message}")]
    BadPeer {
        /// All of them.
        message: String,
    },
    /// A measurement that gave no figure.
    #[error("no figure: {0}")]
    Measurement(String),
}

impl BenchError {
    /// A file with lines that cannot be read, each of which `message` names.
    pub(crate) fn bad_lines(path: &Path, message: String) -> BenchError {
        TrafficError::BadLines { path: path.to_owned(), message }.into()
    }

    /// A file that could not be opened, read or written; `action` says what was tried.
    pub(crate) fn file(action: &'static str, path: &Path, cause: std::io::Error) -> BenchError {
        TrafficError::File { action, path: path.to_owned(), cause }.into()
    }

    /// A textual setting that could not be read.
    pub(crate) fn setting(what: &'static str, text: &str, reason: impl Into<String>) -> BenchError {
        TrafficError::setting(what, text, reason).into()
    }

    /// Settings that contradict each other.
    pub(crate) fn contradiction(message: String) -> BenchError {
        TrafficError::Contradiction(message).into()
    }
}
