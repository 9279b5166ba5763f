//! Waits for child processes.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Waits for a process to end, and kills it after `patience`: then there is no status.
///
/// # Errors
/// When the kernel does not report whether the process has ended.
pub fn end_within(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            None => {
                // It may have just ended; either way it must be reaped.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
        }
    }
}
