//! What the processes of NFs write, line by line: into a log, or on to standard error.
//!
//! A process gets a pipe and never a descriptor that this one uses, too: whoever shares one can make it non-blocking,
//! read a terminal by it, or empty the file behind it. It is read no faster than [`PACE`]: whoever writes more waits.

use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest run of bytes without an end of line that is read at once.
const MOST_BYTES: u64 = 64 << 10;
/// What is read at most in that time: bytes, with those that a line costs beside its own.
const PACE: (usize, Duration) = (256 << 10, Duration::from_millis(100));
/// Bytes that a line costs.
const LINE_BYTES: usize = 64;

/// Lines of a log that are kept.
const LOG_LINES: usize = 2000;
/// Bytes of a line that are kept.
const KEPT_BYTES: usize = 2000;

/// Where what a process writes goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NfOutput {
    /// To this process's standard error.
    #[default]
    Inherit,
    /// Into the log of its NF.
    Log,
}

/// The log of an NF: the last lines that its processes wrote, or that are told of them.
#[derive(Debug, Default)]
pub struct LogBuffer(Mutex<LogLines>);

/// The lines of a log that are kept.
#[derive(Clone, Debug, Default)]
pub struct LogLines {
    /// The number of the first line that is kept: so many were written before it.
    pub first: u64,
    /// The lines, the last one last.
    pub lines: VecDeque<String>,
}

impl LogBuffer {
    fn lock(&self) -> MutexGuard<'_, LogLines> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Keeps a line, cut where it is long, and forgets the oldest where there are many.
    pub fn push(&self, mut line: String) {
        let end = (0..=KEPT_BYTES.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        let mut kept = self.lock();
        if kept.lines.len() >= LOG_LINES {
            kept.lines.pop_front();
            kept.first += 1;
        }
        kept.lines.push_back(line);
    }

    /// The lines that are kept, as they are now.
    pub fn lines(&self) -> LogLines {
        self.lock().clone()
    }
}

/// A pipe to write to, for an NF of that name, whose other end is read on a thread of its own, until nobody has the
/// pipe open any more.
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
                // One that nobody reads is no reason to end.
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

/// A text that does nothing to a terminal.
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
