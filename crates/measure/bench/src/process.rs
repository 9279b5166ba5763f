//! Processes that this one has started.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Waits for the end of a process, and makes one if it does not come in time: then there is no status.
///
/// # Errors
/// When the kernel does not say whether it has ended.
pub fn end_within(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            None => {
                // It may have ended this moment; either way it must be waited for.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
        }
    }
}
