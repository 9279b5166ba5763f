//! Writes generated traffic to a pcap file.
//!
//! Frames are streamed: memory does not grow with their number. A regular file is written under a second name
//! (`OUT.part`) and renamed when it is complete, so an old capture is never partly overwritten. When writing stops
//! early (a full disk), the partial file is truncated to its last whole frame and stays readable. Pipes and devices are
//! written directly.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::TrafficError;
use crate::{Frames, Summary};

/// The unit of a capture's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resolution {
    /// Nanoseconds (magic number 0xa1b23c4d).
    #[default]
    Nanoseconds,
    /// Microseconds (magic number 0xa1b2c3d4), for readers without support for nanoseconds.
    Microseconds,
}

/// Records are written to the operating system in pieces of about this size.
const BUFFER_BYTES: usize = 1 << 20;
const SNAP_BYTES: u32 = 262_144;
const LINK_TYPE_ETHERNET: u32 = 1;

/// A destination of records; unlike a plain [`Write`], it can be truncated.
pub trait CaptureSink: Write {
    /// Truncates to `len_bytes`; does nothing where that is impossible (a pipe).
    ///
    /// # Errors
    ///
    /// When the operating system returns an error.
    fn cut(&mut self, len_bytes: u64) -> io::Result<()>;
}

impl CaptureSink for File {
    fn cut(&mut self, len_bytes: u64) -> io::Result<()> {
        if self.metadata()?.is_file() {
            self.set_len(len_bytes)?;
        }
        Ok(())
    }
}

impl CaptureSink for io::Stdout {
    fn cut(&mut self, _len_bytes: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A pcap stream of Ethernet frames that keeps the ends of its records.
struct CaptureWriter<'a> {
    sink: &'a mut dyn CaptureSink,
    resolution: Resolution,
    buffer: Vec<u8>,
    /// The end of each record in the buffer.
    ends: Vec<usize>,
    written_bytes: u64,
    written_frames: u64,
}

/// A capture that ended early: its number of whole frames, and the cause.
struct Cut {
    frames: u64,
    cause: io::Error,
}

impl<'a> CaptureWriter<'a> {
    fn new(sink: &'a mut dyn CaptureSink, resolution: Resolution) -> Self {
        let magic: u32 = match resolution {
            Resolution::Nanoseconds => 0xa1b2_3c4d,
            Resolution::Microseconds => 0xa1b2_c3d4,
        };
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + 16 * 1024);
        buffer.extend_from_slice(&magic.to_le_bytes());
        // Version 2.4, no time zone, no accuracy.
        buffer.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        buffer.extend_from_slice(&SNAP_BYTES.to_le_bytes());
        buffer.extend_from_slice(&LINK_TYPE_ETHERNET.to_le_bytes());
        Self { sink, resolution, buffer, ends: Vec::new(), written_bytes: 0, written_frames: 0 }
    }

    fn write(&mut self, timestamp_ns: u64, frame: &[u8]) -> Result<(), Cut> {
        let fraction_ns = timestamp_ns % 1_000_000_000;
        let fraction = match self.resolution {
            Resolution::Nanoseconds => fraction_ns,
            Resolution::Microseconds => fraction_ns / 1_000,
        };
        // The format's seconds have 32 bits and end in 2106.
        for field in
            [(timestamp_ns / 1_000_000_000) as u32, fraction as u32, frame.len() as u32, frame.len() as u32]
        {
            self.buffer.extend_from_slice(&field.to_le_bytes());
        }
        self.buffer.extend_from_slice(frame);
        self.ends.push(self.buffer.len());
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Cut> {
        let mut done = 0;
        while let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) {
            let failed = match self.sink.write(rest) {
                Ok(0) => io::Error::from(io::ErrorKind::WriteZero),
                Ok(bytes) => {
                    done += bytes;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return Err(self.cut_after(done, failed));
        }
        self.written_bytes += done as u64;
        self.written_frames += self.ends.len() as u64;
        self.buffer.clear();
        self.ends.clear();
        match self.sink.flush() {
            Ok(()) => Ok(()),
            Err(cause) => Err(self.cut_after(0, cause)),
        }
    }

    /// Truncates the file to its last whole record; `done` bytes of the buffer were written to it.
    fn cut_after(&mut self, done: usize, cause: io::Error) -> Cut {
        let whole = self.ends.iter().take_while(|end| **end <= done).count();
        let kept = match whole.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(end) => *end as u64,
            // No further record is complete. The file header is kept if it was written now.
            None if self.written_bytes == 0 => done.min(24) as u64,
            None => 0,
        };
        // The first error is reported; an error of the truncation would not help the user.
        let _ = self.sink.cut(self.written_bytes + kept);
        Cut { frames: self.written_frames + whole as u64, cause }
    }
}

/// Writes `count` frames to the capture file `path` (`-` is standard output) and returns a summary of them. `progress`
/// is called from time to time with the number of frames made.
///
/// # Errors
///
/// When the file cannot be created, or writing stopped early; the error then contains the number of readable frames and
/// the name of their file.
pub fn write_capture(
    path: &Path,
    resolution: Resolution,
    frames: &mut Frames,
    count: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, TrafficError> {
    let create = |cause| TrafficError::File { action: "create", path: path.to_owned(), cause };
    if path == Path::new("-") {
        let mut sink = io::stdout();
        return write_frames(&mut sink, path, resolution, frames, count, progress);
    }
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let mut sink = OpenOptions::new().write(true).open(path).map_err(create)?;
        return write_frames(&mut sink, path, resolution, frames, count, progress);
    }
    let part = part_name(path);
    let mut sink = File::create(&part).map_err(create)?;
    let summary = write_frames(&mut sink, &part, resolution, frames, count, progress)?;
    // With delayed allocation, a full disk is reported only here, so this precedes the renaming.
    sink.sync_all().map_err(|cause| TrafficError::CaptureCut {
        frames: summary.frames(),
        kept: part.clone(),
        cause,
    })?;
    std::fs::rename(&part, path).map_err(|cause| TrafficError::File {
        action: "put the finished capture in place of",
        path: path.to_owned(),
        cause,
    })?;
    Ok(summary)
}

fn part_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Writes `count` frames to `sink`; `kept` is its name in errors.
///
/// # Errors
///
/// As [`write_capture`].
pub fn write_frames(
    sink: &mut dyn CaptureSink,
    kept: &Path,
    resolution: Resolution,
    frames: &mut Frames,
    count: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, TrafficError> {
    let cut =
        |cut: Cut| TrafficError::CaptureCut { frames: cut.frames, kept: kept.to_owned(), cause: cut.cause };
    let mut writer = CaptureWriter::new(sink, resolution);
    let mut summary = Summary::default();
    let mut frame = Vec::new();
    for index in 0..count {
        frame.clear();
        let meta = frames.append_next(&mut frame)?;
        writer.write(meta.timestamp_ns, &frame).map_err(cut)?;
        summary.count(&meta);
        if index % PROGRESS_FRAMES == PROGRESS_FRAMES - 1 {
            progress(index + 1);
        }
    }
    writer.flush().map_err(cut)?;
    Ok(summary)
}

const PROGRESS_FRAMES: u64 = 65_536;

#[cfg(test)]
mod tests;
