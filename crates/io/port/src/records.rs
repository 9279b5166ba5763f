//! A file of records that contains whole records only, as far as the system permits: when a write fails, the
//! file is truncated to the last whole record.

use crate::OutputFile;
use std::path::Path;

/// A file being written, with a buffer. The first [`RecordFile::flush`] replaces the file, even without any
/// records. Dropping it writes what is buffered, but only `flush` returns an error.
pub struct RecordFile {
    file: OutputFile,
    held: Vec<u8>,
    /// The end of each record in `held`.
    ends: Vec<usize>,
    /// The end of the file's header in `held`; 0 once that is written.
    header_end: usize,
    hold_bytes: usize,
    /// Bytes in the file: its header and whole records.
    written_bytes: u64,
    written: u64,
    failed: bool,
}

/// A failed write.
#[derive(Debug)]
pub struct FailedWrite {
    /// The system's error.
    pub error: std::io::Error,
    /// The lengths of the records that were buffered and are not in the file, in bytes.
    pub missing: Vec<usize>,
}

impl RecordFile {
    /// An opened file, which is written when more than `hold_bytes` are buffered.
    pub fn new(file: OutputFile, hold_bytes: usize) -> RecordFile {
        RecordFile {
            file,
            held: Vec::with_capacity(hold_bytes),
            ends: vec![],
            header_end: 0,
            hold_bytes,
            written_bytes: 0,
            written: 0,
            failed: false,
        }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Records in the file.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether a write failed: nothing more is written then.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Adds a part of the header, which stands before all records.
    pub fn header(&mut self, bytes: &[u8]) {
        debug_assert!(self.ends.is_empty(), "records follow the header");
        if self.failed {
            return;
        }
        self.held.extend_from_slice(bytes);
        self.header_end = self.held.len();
    }

    /// The buffer, to append parts of a record to.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    /// Ends a record, which consists of all that was appended since the last one.
    ///
    /// # Errors
    ///
    /// As [`RecordFile::flush`].
    pub fn end_record(&mut self) -> Result<(), FailedWrite> {
        self.ends.push(self.held.len());
        if self.held.len() >= self.hold_bytes { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    ///
    /// When the disk is full or fails: the file then ends with its last whole record.
    pub fn flush(&mut self) -> Result<(), FailedWrite> {
        if self.failed {
            return Ok(());
        }
        if let Err((at, error)) = self.file.write_all(&self.held) {
            return Err(self.give_up(at, error));
        }
        self.written_bytes += self.held.len() as u64;
        self.written += self.ends.len() as u64;
        self.empty();
        Ok(())
    }

    /// Truncates the file to whole records after a write stopped `at` bytes into the buffer.
    fn give_up(&mut self, at: usize, error: std::io::Error) -> FailedWrite {
        self.failed = true;
        let whole = self.ends.iter().take_while(|end| **end <= at).count();
        let last = whole.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        // A part of a header is as useless as one of a record.
        let end = last.unwrap_or(if at < self.header_end { 0 } else { self.header_end });
        self.written += whole as u64;
        self.written_bytes += end as u64;
        self.file.cut_back(self.written_bytes);
        let starts = std::iter::once(end.max(self.header_end)).chain(self.ends.iter().skip(whole).copied());
        let missing =
            self.ends.iter().skip(whole).zip(starts).map(|(end, start)| end.saturating_sub(start)).collect();
        self.empty();
        FailedWrite { error, missing }
    }

    fn empty(&mut self) {
        self.held.clear();
        self.ends.clear();
        self.header_end = 0;
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if self.file.has_begun() || !self.ends.is_empty() {
            let _ = self.flush();
        }
    }
}
