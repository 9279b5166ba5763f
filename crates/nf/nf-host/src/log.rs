//! The output of NF processes, line by line: into a log, or to standard error.
//!
//! A process gets a pipe and never a descriptor that this process uses, too. Through a shared descriptor it
//! could set the file non-blocking, read a terminal, or truncate the file. The pipe is read no faster than
//! [`PACE`]: a process that writes more blocks.

use crate::member::lock;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most bytes that are read at once without an end of line.
const MOST_BYTES: u64 = 64 << 10;
/// The most bytes that are read in the given time, with [`LINE_BYTES`] added for each line.
const PACE: (usize, Duration) = (256 << 10, Duration::from_millis(100));
/// The bytes that each line counts in addition to its own.
const LINE_BYTES: usize = 64;

/// Lines that a log stores.
const LOG_LINES: usize = 2000;
/// Bytes of a line that are stored.
const KEPT_BYTES: usize = 2000;

/// Where the output of a process is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NfOutput {
    /// To this process's standard error.
    #[default]
    Inherit,
    /// Into the log of its NF.
    Log,
}

/// The log of an NF: the last lines that its processes wrote, and the host's lines about them.
#[derive(Debug, Default)]
pub struct LogBuffer(Mutex<LogLines>);

/// The stored lines of a log.
#[derive(Clone, Debug, Default)]
pub struct LogLines {
    /// The number of the first stored line: how many lines were removed before it.
    pub first: u64,
    /// The lines, the last one last.
    pub lines: VecDeque<String>,
}

impl LogBuffer {
    /// Appends a line, cut to the maximum length, and removes the oldest line if there are too many.
    pub fn push(&self, mut line: String) {
        line.truncate(line.floor_char_boundary(KEPT_BYTES));
        let mut kept = lock(&self.0);
        if kept.lines.len() >= LOG_LINES {
            kept.lines.pop_front();
            kept.first += 1;
        }
        kept.lines.push_back(line);
    }

    /// Whether processes of the NF wrote any of the lines.
    pub(crate) fn has_lines_of_nf(&self) -> bool {
        lock(&self.0).lines.iter().any(|line| !line.starts_with("-- "))
    }

    /// A copy of the stored lines.
    pub fn lines(&self) -> LogLines {
        lock(&self.0).clone()
    }
}

/// Creates a pipe for an NF's output. A thread reads its other end until no process has the pipe open any
/// more.
///
/// # Errors
///
/// When the system has no pipe or no thread.
pub fn pipe(nf: &str, output: NfOutput, log: Arc<LogBuffer>) -> std::io::Result<(OwnedFd, JoinHandle<()>)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let name = format!("log-{nf}");
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        let mut lines = BufReader::new(File::from(read));
        let (mut line, mut spent, mut since) = (vec![], 0, Instant::now());
        loop {
            line.clear();
            match lines.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => spent += bytes + LINE_BYTES,
            }
            let text = plain(String::from_utf8_lossy(&line).trim_end());
            match output {
                NfOutput::Log => log.push(text),
                // A write error is no reason to end: standard error may have no reader.
                NfOutput::Inherit => drop(writeln!(std::io::stderr(), "{text}")),
            }
            if spent >= PACE.0 {
                std::thread::sleep(PACE.1.saturating_sub(since.elapsed()));
                (spent, since) = (0, Instant::now());
            }
        }
    })?;
    Ok((write, thread))
}

/// The text without control characters.
pub fn plain(text: &str) -> String {
    text.replace(|character: char| character.is_control() && character != '\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_nf_writes_does_nothing_to_a_terminal() {
        assert_eq!(plain("a\tb\x1b[2Jc\r\u{9b}d\0"), "a\tb [2Jc  d ");
    }
}
