//! A text file that keeps whole lines when the disk is full or fails.

use port::OutputFile;
use port::records::{FailedWrite, RecordFile};
use std::path::Path;

/// Bytes that are buffered before they are written.
const HOLD_BYTES: usize = 64 << 10;

/// A file being written. It is replaced by the first [`LineFile::flush`].
pub struct LineFile {
    shown: String,
    /// Its records are the packets, each with its lines.
    file: RecordFile,
}

impl LineFile {
    /// Creates or replaces a file.
    ///
    /// # Errors
    /// A sentence that states why it cannot be created.
    pub fn create(path: &Path, shown: &str) -> Result<LineFile, String> {
        let file = OutputFile::open(path).map_err(|error| error.to_string())?;
        Ok(LineFile { shown: shown.into(), file: RecordFile::new(file, HOLD_BYTES) })
    }

    /// Adds lines before those of the packets.
    pub fn header(&mut self, lines: &str) {
        self.file.header(lines.as_bytes());
    }

    /// Adds a packet's lines.
    ///
    /// # Errors
    /// If the disk is full or fails: a sentence with the number of packets in the file. Later calls fail,
    /// too.
    pub fn packet(&mut self, lines: &str) -> Result<(), String> {
        if self.file.has_failed() {
            return Err(format!("writing {} has failed before", self.shown));
        }
        self.file.buffer().extend_from_slice(lines.as_bytes());
        self.file.end_record().map_err(|failed| self.stopped(&failed))
    }

    /// Packets whose lines are in the file.
    pub fn written_packets(&self) -> u64 {
        self.file.written()
    }

    /// Writes the buffered lines.
    ///
    /// # Errors
    /// As [`LineFile::packet`].
    pub fn flush(&mut self) -> Result<(), String> {
        self.file.flush().map_err(|failed| self.stopped(&failed))
    }

    fn stopped(&self, FailedWrite { error, missing }: &FailedWrite) -> String {
        let (shown, written, lost) = (&self.shown, self.file.written(), missing.len());
        format!(
            "writing {shown} stopped: {error}; the file holds {written} whole packets, {lost} packets were lost so far"
        )
    }
}
