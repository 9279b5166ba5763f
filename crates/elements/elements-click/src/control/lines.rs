//! What a client sends, in lines and blocks of bytes, each of a bounded length and within a bounded time.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

/// The most bytes of a line, and of a value.
pub const MOST_BYTES: usize = 64 << 10;
/// Bytes that are read at once.
const CHUNK: usize = 4096;

/// Why there is no more to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The client has closed its side, or was asked to go.
    Closed,
    /// A line or a value is too long.
    TooLong,
    /// A command took too long.
    TooSlow,
}

/// The bytes of a client. Its reads return after a short time without bytes ([`ErrorKind::WouldBlock`]).
pub struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    /// The last line ended with a CR: an LF behind it is of that line.
    after_cr: bool,
    /// For a whole command.
    patience: Duration,
    /// When the current command began.
    since: Option<Instant>,
    is_closed: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(from: R, patience: Duration) -> Lines<R> {
        Lines { from, bytes: vec![], after_cr: false, patience, since: None, is_closed: false }
    }

    /// Says that a command is complete: the next one has its own time.
    pub fn next_command(&mut self) {
        self.since = None;
    }

    /// Reads more; `goes_on` is asked while there is nothing.
    fn fill(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), End> {
        if self.is_closed {
            return Err(End::Closed);
        }
        if self.bytes.len() > MOST_BYTES {
            return Err(End::TooLong);
        }
        loop {
            if !goes_on() {
                return Err(End::Closed);
            }
            if self.since.is_some_and(|since| since.elapsed() > self.patience) {
                return Err(End::TooSlow);
            }
            let mut chunk = [0; CHUNK];
            match self.from.read(&mut chunk) {
                Ok(0) => {
                    self.is_closed = true;
                    return Err(End::Closed);
                }
                Ok(count) => {
                    self.since.get_or_insert_with(Instant::now);
                    self.bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return Ok(());
                }
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                    if !self.bytes.is_empty() {
                        self.since.get_or_insert_with(Instant::now);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(End::Closed),
            }
        }
    }

    /// The next line without its end: CR, LF or both. The last one needs no end.
    ///
    /// # Errors
    /// Why there is none.
    pub fn line(&mut self, goes_on: &dyn Fn() -> bool) -> Result<String, End> {
        let mut seen = 0;
        loop {
            if self.after_cr && !self.bytes.is_empty() {
                self.after_cr = false;
                if self.bytes[0] == b'\n' {
                    self.bytes.remove(0);
                    seen = 0;
                }
            }
            let end = self.bytes.iter().skip(seen).position(|byte| matches!(byte, b'\r' | b'\n'));
            if let Some(end) = end.map(|end| end + seen) {
                self.after_cr = self.bytes[end] == b'\r';
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            seen = self.bytes.len();
            match self.fill(goes_on) {
                Err(End::Closed) if self.is_closed && !self.bytes.is_empty() => {
                    let rest = std::mem::take(&mut self.bytes);
                    return Ok(String::from_utf8_lossy(&rest).into_owned());
                }
                filled => filled?,
            }
        }
    }

    /// So many bytes, at most [`MOST_BYTES`].
    ///
    /// # Errors
    /// Why there are fewer.
    pub fn block(&mut self, count: usize, goes_on: &dyn Fn() -> bool) -> Result<String, End> {
        if count > MOST_BYTES {
            return Err(End::TooLong);
        }
        let wanted =
            |this: &Lines<R>| count + usize::from(this.after_cr && this.bytes.first() == Some(&b'\n'));
        while self.bytes.len() < wanted(self).max(usize::from(self.after_cr && count > 0)) {
            self.fill(goes_on)?;
        }
        if self.after_cr && self.bytes.first() == Some(&b'\n') {
            self.bytes.remove(0);
        }
        self.after_cr = false;
        let block: Vec<u8> = self.bytes.drain(..count).collect();
        Ok(String::from_utf8_lossy(&block).into_owned())
    }
}
