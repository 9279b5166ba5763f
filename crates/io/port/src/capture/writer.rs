//! Writes pcap captures (this machine's byte order).
//!
//! The file contains whole frames only, as far as the system permits: when a write fails, the file is
//! truncated to the last whole frame, and the error contains the number of frames.

use super::format::{FILE_HEADER_BYTES, LONGEST_RECORD_BYTES, RECORD_HEADER_BYTES, Resolution};
use super::is_compressed_name;
use crate::records::{FailedWrite, RecordFile};
use crate::{OutputFile, PortError, Result};
use shm::{Packet, PacketBytes};
use std::path::Path;

/// Bytes that are buffered before a write.
const HOLD_BYTES: usize = 256 << 10;

/// A capture being written. The first [`CaptureWriter::flush`] replaces the file, even without any frames.
/// Dropping the writer writes the buffered frames, but only `flush` returns an error.
pub struct CaptureWriter {
    file: RecordFile,
    resolution: Resolution,
    lost_frames: LostFrames,
}

/// Frames that a writer took and that are not in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LostFrames {
    /// The number of frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl CaptureWriter {
    /// Opens a file that the capture will create or replace.
    ///
    /// # Errors
    ///
    /// When the file cannot be created, or has the name of a compressed one.
    pub fn create(path: impl AsRef<Path>, link_type: u32) -> Result<CaptureWriter> {
        if is_compressed_name(path.as_ref()) {
            return Err(PortError::CompressedOutput { path: path.as_ref().to_owned() });
        }
        Ok(CaptureWriter::new(OutputFile::open(path)?, link_type))
    }

    /// A capture in an opened file, with timestamps in nanoseconds.
    pub fn new(file: OutputFile, link_type: u32) -> CaptureWriter {
        CaptureWriter::with_resolution(file, link_type, Resolution::Nanoseconds)
    }

    /// The same, with timestamps of that resolution.
    pub fn with_resolution(file: OutputFile, link_type: u32, resolution: Resolution) -> CaptureWriter {
        let mut header = Vec::with_capacity(FILE_HEADER_BYTES);
        header.extend_from_slice(&(resolution as u32).to_ne_bytes());
        header.extend_from_slice(&2u16.to_ne_bytes());
        header.extend_from_slice(&4u16.to_ne_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&LONGEST_RECORD_BYTES.to_ne_bytes());
        header.extend_from_slice(&link_type.to_ne_bytes());
        let mut file = RecordFile::new(file, HOLD_BYTES);
        file.header(&header);
        CaptureWriter { file, resolution, lost_frames: LostFrames::default() }
    }

    /// Frames that are in the file.
    pub fn written_frames(&self) -> u64 {
        self.file.written()
    }

    /// Frames that could not be written.
    pub fn lost_frames(&self) -> LostFrames {
        self.lost_frames
    }

    /// Adds a frame.
    ///
    /// # Errors
    ///
    /// When the disk is full or fails: see [`CaptureWriter::flush`]. After an error no frame can be added.
    pub fn write(&mut self, timestamp_ns: u64, original_bytes: u32, frame: &[u8]) -> Result<()> {
        self.start_record(timestamp_ns, original_bytes, frame.len())?;
        self.file.buffer().extend_from_slice(frame);
        self.end_record()
    }

    /// Adds a packet's bytes, over all its segments.
    ///
    /// # Errors
    ///
    /// As [`CaptureWriter::write`].
    pub fn write_packet(&mut self, timestamp_ns: u64, original_bytes: u32, packet: &Packet) -> Result<()> {
        let bytes = PacketBytes::new(packet);
        let len = packet::access::Access::len(&bytes);
        self.start_record(timestamp_ns, original_bytes, len)?;
        let held = self.file.buffer();
        let at = held.len();
        held.resize(at + len, 0);
        if let Some(room) = held.get_mut(at..) {
            // `room` is as long as the view, so the copy is complete.
            let _ = packet::access::Access::copy_out(&bytes, 0, room);
        }
        self.end_record()
    }

    fn start_record(&mut self, timestamp_ns: u64, original_bytes: u32, len: usize) -> Result<()> {
        if self.file.has_failed() {
            self.lost_frames.frames += 1;
            self.lost_frames.bytes += len as u64;
            return Err(self.stopped(std::io::Error::other("an earlier write failed")));
        }
        let captured = len as u32;
        // The format's seconds have 32 bits and end in 2106.
        let seconds = u32::try_from(timestamp_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let fraction = (timestamp_ns % 1_000_000_000 / self.resolution.unit_ns()) as u32;
        let mut header = [0; RECORD_HEADER_BYTES];
        for (place, value) in
            header.chunks_exact_mut(4).zip([seconds, fraction, captured, original_bytes.max(captured)])
        {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        self.file.buffer().extend_from_slice(&header);
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        let ended = self.file.end_record();
        ended.map_err(|failed| self.failed(failed))
    }

    /// Writes the buffered frames.
    ///
    /// # Errors
    ///
    /// When the disk is full or fails: the file then ends with its last whole frame, and the error contains
    /// the number of frames.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|failed| self.failed(failed))
    }

    /// Counts the frames that are lost since a write failed.
    fn failed(&mut self, FailedWrite { error, missing }: FailedWrite) -> PortError {
        self.lost_frames.frames += missing.len() as u64;
        self.lost_frames.bytes +=
            missing.iter().map(|bytes| bytes.saturating_sub(RECORD_HEADER_BYTES) as u64).sum::<u64>();
        self.stopped(error)
    }

    fn stopped(&self, source: std::io::Error) -> PortError {
        PortError::CaptureStopped {
            path: self.file.path().to_owned(),
            whole_frames: self.file.written(),
            lost_frames: self.lost_frames.frames,
            source,
        }
    }
}
