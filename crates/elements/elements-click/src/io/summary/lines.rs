//! Reads a text line by line and counts lines and bytes.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The most bytes of a line; longer lines are skipped.
const MOST_LINE_BYTES: u64 = 256 << 10;

/// A text being read.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
    at_bytes: u64,
}

impl Lines {
    /// The lines of a file; `-` is the standard input.
    ///
    /// # Errors
    /// If the system cannot open it.
    pub fn open(path: &Path) -> std::io::Result<Lines> {
        if path == Path::new("-") {
            return Ok(Lines::new(Box::new(BufReader::new(std::io::stdin()))));
        }
        Ok(Lines::new(Box::new(BufReader::new(std::fs::File::open(path)?))))
    }

    /// The lines of a text.
    pub fn of(text: &str) -> Lines {
        Lines::new(Box::new(std::io::Cursor::new(text.as_bytes().to_vec())))
    }

    fn new(reader: Box<dyn BufRead + Send>) -> Lines {
        Lines { reader, line: vec![], number: 0, at_bytes: 0 }
    }

    /// The next line without its line end; `None` at the end of the text. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// A sentence that states why the text cannot be read, or that a line is too long.
    pub fn read(&mut self) -> Result<Option<String>, String> {
        self.line.clear();
        let mut part = self.reader.by_ref().take(MOST_LINE_BYTES);
        let read = part.read_until(b'\n', &mut self.line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.at_bytes += read as u64;
        if read as u64 == MOST_LINE_BYTES && !self.line.ends_with(b"\n") {
            self.pass_line()?;
            return Err(format!("the line is longer than {MOST_LINE_BYTES} bytes"));
        }
        let end = self.line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |last| last + 1);
        Ok(Some(String::from_utf8_lossy(self.line.get(..end).unwrap_or_default()).into_owned()))
    }

    /// Skips the rest of a line.
    fn pass_line(&mut self) -> Result<(), String> {
        loop {
            let ahead = self.reader.fill_buf().map_err(|error| error.to_string())?;
            let (used, done) = match ahead.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (ahead.len(), ahead.is_empty()),
            };
            self.reader.consume(used);
            self.at_bytes += used as u64;
            if done {
                return Ok(());
            }
        }
    }

    /// Number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.at_bytes
    }
}
