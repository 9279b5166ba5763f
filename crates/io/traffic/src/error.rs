//! The crate's one error type. A message states the fact, then the remedy.

use std::path::PathBuf;

use thiserror::Error;

/// Everything that can go wrong while making, reading or writing traffic.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// A textual setting could not be read.
    #[error("{what} `{text}`: {reason}")]
    BadSetting {
        /// Which setting, in the user's words (`frame sizes`, `address range`).
        what: &'static str,
        /// The offending text.
        text: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// Settings that are fine one by one contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// The address and port ranges hold fewer 5-tuples than flows were asked for.
    #[error(
        "{wanted} flows were asked for, but the address and port ranges hold only {available} \
         distinct {class} 5-tuples; widen a range or ask for fewer flows"
    )]
    TooFewTuples {
        /// Flows asked for.
        wanted: u64,
        /// Distinct 5-tuples in the ranges.
        available: u128,
        /// Which kind of flow ran out (`IPv4 UDP`).
        class: &'static str,
    },
    /// A frame cannot be built at the length asked for.
    #[error("a frame of {len_bytes} bytes (without FCS) cannot be built: {reason}")]
    BadFrame {
        /// Length asked for, without FCS.
        len_bytes: usize,
        /// Why not.
        reason: String,
    },
    /// A rule or trace file has lines that cannot be read.
    #[error("{message}")]
    BadLines {
        /// The file.
        path: PathBuf,
        /// Each line with file, number and what is wrong with it.
        message: String,
    },
    /// A file could not be opened, read or created.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// What was tried (`open`, `read`, `create`).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        cause: std::io::Error,
    },
    /// A capture that could not be read.
    #[error("{0}")]
    Capture(String),
    /// A capture could not be written to its end.
    #[error(
        "writing stopped after {frames} frames: {cause}; those frames are readable in {}",
        kept.display()
    )]
    CaptureCut {
        /// Whole frames that reached the file.
        frames: u64,
        /// Where they are.
        kept: PathBuf,
        /// The operating system's answer.
        cause: std::io::Error,
    },
}

impl TrafficError {
    /// A textual setting that could not be read.
    pub fn setting(what: &'static str, text: &str, reason: impl Into<String>) -> Self {
        Self::BadSetting { what, text: text.to_owned(), reason: reason.into() }
    }
}
