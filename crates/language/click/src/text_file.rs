//! Reads files that users name, whatever they are: within bounds of size and of time.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The most bytes of a text: many times of what a rule set of a provider takes.
pub const MOST_BYTES: u64 = 128 << 20;
/// How long a pipe may take to deliver its text.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait between two looks at a pipe.
const PAUSE: Duration = Duration::from_millis(2);
/// `O_NONBLOCK` of Linux: opening a pipe must not wait until somebody writes to it.
const NONBLOCK: i32 = 0o4000;

/// The bytes of a file or a pipe.
///
/// # Errors
/// If it cannot be read, has more than [`MOST_BYTES`], or is a pipe whose writer does not come to an end within ten
/// seconds.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    read_within(file, is_pipe, (MOST_BYTES, PATIENCE))
}

/// The same as text.
///
/// # Errors
/// As [`read_file`], and if it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_file(path)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

fn read_within(file: File, is_pipe: bool, (most, patience): (u64, Duration)) -> Result<Vec<u8>> {
    let (mut bytes, until) = (vec![], Instant::now() + patience);
    let mut rest = file.take(most + 1);
    loop {
        // What was read stays in `bytes` if it fails.
        match rest.read_to_end(&mut bytes) {
            // Nobody has opened the other end of a pipe yet.
            Ok(_) if bytes.is_empty() && is_pipe => {}
            Ok(_) if bytes.len() as u64 > most => {
                let what = format!("it has more than {} MiB, the most that is read", most >> 20);
                return Err(Error::new(ErrorKind::FileTooLarge, what));
            }
            Ok(_) => return Ok(bytes),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if Instant::now() >= until {
            let what = format!("it is a pipe whose writer did not end within {} s", patience.as_secs());
            return Err(Error::new(ErrorKind::TimedOut, what));
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{PipeWriter, Write, pipe};
    use std::os::fd::AsRawFd;

    /// The reading end of a pipe, opened as that of a file is, and what writes to it.
    fn opened_pipe() -> (File, PipeWriter) {
        let (reader, writer) = pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        (OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path).expect("opens"), writer)
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read_file(Path::new("/dev/zero")).expect_err("too much");
        assert_eq!(error.to_string(), "it has more than 128 MiB, the most that is read");
        assert_eq!(read_file(Path::new("/dev/null")).expect("nothing"), b"");
    }

    #[test]
    fn a_pipe_is_read_until_its_writer_ends() {
        let (reader, mut writer) = opened_pipe();
        let thread = std::thread::spawn(move || {
            for part in ["a :: ", "Idle", ";"] {
                std::thread::sleep(Duration::from_millis(20));
                writer.write_all(part.as_bytes()).expect("written");
            }
        });
        let read = read_within(reader, true, (100, PATIENCE)).expect("all of it");
        thread.join().expect("done");
        assert_eq!(read, b"a :: Idle;");
    }

    #[test]
    fn a_writer_that_does_not_end_is_not_waited_for() {
        let (reader, mut writer) = opened_pipe();
        writer.write_all(b"half").expect("written");
        let read = read_within(reader, true, (100, Duration::from_millis(50)));
        assert!(read.is_err_and(|error| error.kind() == ErrorKind::TimedOut));
        drop(writer);
    }

    #[test]
    fn files_are_read_up_to_their_limit() {
        let text = std::env::current_exe().expect("a file");
        let len = std::fs::metadata(&text).expect("there").len();
        let read = |most| read_within(File::open(&text).expect("opens"), false, (most, PATIENCE));
        assert_eq!(read(len).expect("fits").len() as u64, len);
        assert!(read(len - 1).is_err_and(|error| error.kind() == ErrorKind::FileTooLarge));
    }
}
