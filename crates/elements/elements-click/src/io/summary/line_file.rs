//! A text file that keeps whole lines when the disk is full or fails.

use port::OutputFile;
use std::path::Path;

/// Bytes that are buffered before they are written.
const HOLD_BYTES: usize = 64 << 10;

/// A file being written. It is replaced by the first [`LineFile::flush`].
pub struct LineFile {
    shown: String,
    file: OutputFile,
    held: Vec<u8>,
    /// Where in `held` each packet's lines end.
    ends: Vec<usize>,
    written_bytes: u64,
    written_packets: u64,
    failed: bool,
}

impl LineFile {
    /// Creates or replaces a file.
    ///
    /// # Errors
    /// A sentence that states why it cannot be created.
    pub fn create(path: &Path, shown: &str) -> Result<LineFile, String> {
        let file = OutputFile::open(path).map_err(|error| error.to_string())?;
        let (held, ends) = (Vec::with_capacity(HOLD_BYTES), vec![]);
        Ok(LineFile {
            shown: shown.into(),
            file,
            held,
            ends,
            written_bytes: 0,
            written_packets: 0,
            failed: false,
        })
    }

    /// Adds lines before those of the packets.
    pub fn header(&mut self, lines: &str) {
        if !self.failed {
            self.held.extend_from_slice(lines.as_bytes());
        }
    }

    /// Adds a packet's lines.
    ///
    /// # Errors
    /// If the disk is full or fails: a sentence with the number of packets in the file. Later calls fail,
    /// too.
    pub fn packet(&mut self, lines: &str) -> Result<(), String> {
        if self.failed {
            return Err(format!("writing {} has failed before", self.shown));
        }
        self.held.extend_from_slice(lines.as_bytes());
        self.ends.push(self.held.len());
        if self.held.len() >= HOLD_BYTES { self.flush() } else { Ok(()) }
    }

    /// Packets whose lines are in the file.
    pub fn written_packets(&self) -> u64 {
        self.written_packets
    }

    /// Writes the buffered lines.
    ///
    /// # Errors
    /// As [`LineFile::packet`].
    pub fn flush(&mut self) -> Result<(), String> {
        if self.failed {
            return Ok(());
        }
        if let Err((at, error)) = self.file.write_all(&self.held) {
            return Err(self.give_up(at, error));
        }
        self.written_bytes += self.held.len() as u64;
        self.written_packets += self.ends.len() as u64;
        self.held.clear();
        self.ends.clear();
        Ok(())
    }

    /// Cuts the file back to whole packets after a write stopped `at` bytes into the buffer.
    fn give_up(&mut self, at: usize, error: std::io::Error) -> String {
        self.failed = true;
        let whole = self.ends.iter().take_while(|end| **end <= at).count();
        let end = whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        self.written_packets += whole as u64;
        self.written_bytes += end as u64;
        self.file.cut_back(self.written_bytes);
        let lost = self.ends.len() - whole;
        self.held.clear();
        self.ends.clear();
        format!(
            "writing {} stopped: {error}; the file holds {} whole packets, {lost} packets were lost so far",
            self.shown, self.written_packets
        )
    }
}

impl Drop for LineFile {
    fn drop(&mut self) {
        if self.file.has_begun() || !self.ends.is_empty() {
            let _ = self.flush();
        }
    }
}
