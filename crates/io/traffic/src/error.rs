//! The crate's one error type. A message states the fact, then the remedy.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Errors of generating, reading and writing traffic.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// A setting in text form is not valid.
    #[error("{what} `{text}`: {reason}")]
    BadSetting {
        /// The setting, in the user's words (`frame sizes`, `address range`).
        what: &'static str,
        /// The offending text.
        text: String,
        /// The error in the text and the valid form.
        reason: String,
    },
    /// Valid settings contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// The address and port ranges contain fewer 5-tuples than requested flows.
    #[error(
        "{wanted} flows were asked for, but the address and port ranges hold only {available} \
         distinct {class} 5-tuples; widen a range or ask for fewer flows"
    )]
    TooFewTuples {
        /// The number of requested flows.
        wanted: u64,
        /// Distinct 5-tuples in the ranges.
        available: u128,
        /// The kind of flow concerned (`IPv4 UDP`).
        class: &'static str,
    },
    /// A frame cannot be built with the requested length.
    #[error("a frame of {len_bytes} bytes (without FCS) cannot be built: {reason}")]
    BadFrame {
        /// The requested length, without FCS.
        len_bytes: usize,
        /// The reason.
        reason: String,
    },
    /// A rule or trace file has invalid lines.
    #[error("{message}")]
    BadLines {
        /// The file.
        path: PathBuf,
        /// Each line with file, number and error.
        message: String,
    },
    /// A file could not be opened, read or created.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// The operation (`open`, `read`, `create`).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
    /// A capture could not be read, or frames could not be prepared for a port.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// A capture could not be written to its end.
    #[error(
        "writing stopped after {frames} frames: {cause}; those frames are readable in {}",
        kept.display()
    )]
    CaptureCut {
        /// The number of whole frames in the file.
        frames: u64,
        /// The file that contains them.
        kept: PathBuf,
        /// The operating system's error.
        cause: std::io::Error,
    },
}

impl TrafficError {
    /// Something could not be done with a file; `action` names the attempt.
    pub fn file(action: &'static str, path: &Path, cause: std::io::Error) -> Self {
        Self::File { action, path: path.to_owned(), cause }
    }

    /// The error of a setting in text form.
    pub fn setting(what: &'static str, text: &str, reason: impl Into<String>) -> Self {
        Self::BadSetting { what, text: text.to_owned(), reason: reason.into() }
    }
}
