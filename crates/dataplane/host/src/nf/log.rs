//! What the processes of NFs write, line by line: into the logs of their seats, or on to standard error.
//!
//! A process gets a pipe and never a descriptor that this one uses, too: whoever shares one can make it non-blocking,
//! read a terminal by it, or empty the file behind it. It is read no faster than [`PACE`]: whoever writes more waits.

use super::seat::{NfOutput, Seat};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest stretch without an end of line that is read at once.
const MOST_BYTES: u64 = 64 << 10;
/// What is read at most in that time: bytes, with those that a line costs beside its own.
const PACE: (usize, Duration) = (256 << 10, Duration::from_millis(100));
/// Bytes that a line costs.
const LINE_BYTES: usize = 64;

/// A pipe to write to, whose other end is read on a thread of its own, until nobody has the pipe open any more.
///
/// # Errors
///
/// When the system has no pipe or no thread.
pub fn pipe(seat: Arc<Seat>) -> std::io::Result<(OwnedFd, JoinHandle<()>)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let name = format!("log-{}", seat.spec.name);
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
            match seat.spec.output {
                NfOutput::Log => seat.log(text),
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
