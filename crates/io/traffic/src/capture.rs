//! Writes generated traffic to a pcap file.
//!
//! Frames are streamed: memory does not grow with their number. A regular file is written under a second name
//! (`OUT.part`) and renamed when it is complete, so an old capture is never partly overwritten. When writing
//! stops early (a full disk), the partial file is truncated to its last whole frame and stays readable. Pipes
//! and devices are written directly.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use port::capture::CaptureWriter;
pub use port::capture::Resolution;
use port::{LINK_ETHERNET, OutputFile, PortError};

use crate::TrafficError;
use crate::{Frames, Summary};

/// Writes `count` frames to the capture file `path` (`-` is standard output) and returns a summary of them.
/// `progress` is called from time to time with the number of frames made.
///
/// # Errors
///
/// When the file cannot be created, or writing stopped early; the error then contains the number of readable
/// frames and the name of their file.
pub fn write_capture(
    path: &Path,
    resolution: Resolution,
    frames: &mut Frames,
    count: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, TrafficError> {
    let create = |cause| TrafficError::file("create", path, cause);
    if path == Path::new("-") {
        return write_frames(OutputFile::begun(path, io::stdout()), resolution, frames, count, progress);
    }
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let sink = OpenOptions::new().write(true).open(path).map_err(create)?;
        return write_frames(OutputFile::begun(path, sink), resolution, frames, count, progress);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let file = File::create(&part).map_err(create)?;
    let output = OutputFile::begun(&part, file.try_clone().map_err(create)?);
    let summary = write_frames(output, resolution, frames, count, progress)?;
    // With delayed allocation, a full disk is reported only here, so this precedes the renaming.
    file.sync_all().map_err(|cause| TrafficError::CaptureCut {
        frames: summary.frames,
        kept: part.clone(),
        cause,
    })?;
    let replace = |cause| TrafficError::file("put the finished capture in place of", path, cause);
    std::fs::rename(&part, path).map_err(replace)?;
    Ok(summary)
}

/// Writes `count` frames to an output.
///
/// # Errors
///
/// As [`write_capture`].
fn write_frames(
    output: OutputFile,
    resolution: Resolution,
    frames: &mut Frames,
    count: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, TrafficError> {
    let mut writer = CaptureWriter::with_resolution(output, LINK_ETHERNET, resolution);
    let mut summary = Summary::default();
    let mut frame = Vec::new();
    for index in 0..count {
        frame.clear();
        let meta = frames.append_next(&mut frame)?;
        writer.write(meta.timestamp_ns, meta.len_bytes as u32, &frame).map_err(cut)?;
        summary.count(&meta);
        if index % PROGRESS_FRAMES == PROGRESS_FRAMES - 1 {
            progress(index + 1);
        }
    }
    writer.flush().map_err(cut)?;
    Ok(summary)
}

fn cut(error: PortError) -> TrafficError {
    match error {
        PortError::CaptureStopped { path: kept, whole_frames: frames, source: cause, .. } => {
            TrafficError::CaptureCut { frames, kept, cause }
        }
        other => other.into(),
    }
}

const PROGRESS_FRAMES: u64 = 65_536;

#[cfg(test)]
mod tests;
