//! What the processes of NFs write, line by line, into the logs of their seats.

use super::seat::Seat;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// The longest stretch without an end of line that is read at once.
const MOST_BYTES: u64 = 64 << 10;

/// A pipe to write to, whose other end is read into the seat's log on a thread of its own, until nobody has the pipe
/// open any more.
///
/// # Errors
///
/// When the system has no pipe or no thread.
pub fn pipe(seat: Arc<Seat>) -> std::io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let name = format!("log-{}", seat.spec.name);
    std::thread::Builder::new().name(name).spawn(move || {
        let mut lines = BufReader::new(File::from(read));
        let mut line = vec![];
        loop {
            line.clear();
            match lines.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => seat.log(String::from_utf8_lossy(&line).trim_end().to_string()),
            }
        }
    })?;
    Ok(write)
}
