//! The capture that `FromDump` reads: frames, their positions in the file, and their conversion to packets.

use super::super::dump_file::file_bytes;
use packet::access::Access;
use packet::anno::EXTRA_LENGTH;
use port::PortError;
use port::capture::format::{FILE_HEADER_BYTES, PcapHeader, RECORD_HEADER_BYTES};
use port::capture::{CaptureReader, Frame};
use shm::Packet;
use shm::bytes::PacketBytesMut;
use shm::chain::SEGMENT_BYTES;
use shm::pool::{PacketPool, Pool};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A capture being read.
pub struct CaptureSource {
    reader: CaptureReader,
    path: PathBuf,
    /// Where the next frame's record starts; `None` for pcapng, compressed files and streams.
    next_at: Option<u64>,
    /// Where the record of the last frame starts.
    last_at: Option<u64>,
}

impl CaptureSource {
    /// Opens a capture; `-` is the standard input.
    ///
    /// # Errors
    /// If it cannot be read or is no capture.
    pub fn open(path: &Path) -> Result<CaptureSource, PortError> {
        let reader = CaptureReader::open(path)?;
        let next_at = is_pcap_file(path).then_some(FILE_HEADER_BYTES as u64);
        Ok(CaptureSource { reader, path: path.to_path_buf(), next_at, last_at: None })
    }

    /// Link type of the capture.
    pub fn link_type(&self) -> Option<u32> {
        self.reader.link_type()
    }

    /// The next frame.
    ///
    /// # Errors
    /// If the capture is damaged or cannot be read; then it has ended.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, PortError> {
        let frame = self.reader.next_frame()?;
        if let Some(frame) = &frame {
            self.last_at = self.next_at;
            let record_bytes = (RECORD_HEADER_BYTES + frame.bytes.len()) as u64;
            self.next_at = self.next_at.map(|at| at + record_bytes);
        }
        Ok(frame)
    }

    /// Puts the last frame back.
    pub fn unread(&mut self) {
        self.reader.unread();
        self.next_at = self.last_at;
    }

    /// Bytes of the file; `None` for a stream.
    pub fn file_bytes(&self) -> Option<u64> {
        file_bytes(&self.path)
    }

    /// Where the next frame's record starts, and where the last frame's does.
    pub fn places(&self) -> (Option<u64>, Option<u64>) {
        (self.next_at, self.last_at)
    }

    /// Continues with the frame whose record starts at this byte of the file. The frames before it are read
    /// one by one, so that a position inside a frame is detected.
    ///
    /// # Errors
    /// A sentence with the reason; the capture then continues with the next frame after that byte.
    pub fn seek(&mut self, to: u64) -> Result<(), String> {
        if self.next_at.is_none() || !self.reader.rewind().map_err(|error| error.to_string())? {
            return Err(
                "frames of a stream, a pcapng capture or a compressed one cannot be found by their place"
                    .into(),
            );
        }
        self.next_at = Some(FILE_HEADER_BYTES as u64);
        while self.next_at.is_some_and(|at| at < to) {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => return Err(format!("the capture ends in front of byte {to}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        match self.next_at {
            Some(at) if at > to => Err(format!("no frame starts at byte {to}; the next one starts at {at}")),
            _ => Ok(()),
        }
    }
}

/// Whether it is a pcap file, whose frames follow each other with headers of a fixed length.
fn is_pcap_file(path: &Path) -> bool {
    // A pipe must not be opened twice: closing one reader would end its writer.
    if !std::fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return false;
    }
    let mut head = [0; FILE_HEADER_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && PcapHeader::parse(&head).is_some()
}

/// The result of [`put`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// The frame is in the packet.
    Done,
    /// The pool does not have enough slots now.
    Later,
    /// The frame is longer than any packet can be.
    TooLong,
}

/// Copies a frame into a fresh packet, or replaces the packet by a chain. No header offsets are set.
pub fn put(pool: &mut PacketPool, place: &mut Packet, frame: &Frame<'_>) -> Put {
    let len = frame.bytes.len();
    if len <= SEGMENT_BYTES {
        // Both fit: a fresh packet has room for `SEGMENT_BYTES`.
        if !place.put(len) || !PacketBytesMut::new(place).copy_in(0, frame.bytes) {
            return Put::TooLong;
        }
    } else {
        if len > usize::from(u16::MAX) || len.div_ceil(SEGMENT_BYTES) > pool.capacity() {
            return Put::TooLong;
        }
        let Some(chain) = shm::chain::write_frame(pool, frame.bytes) else { return Put::Later };
        pool.free_all(std::slice::from_ref(place));
        *place = chain;
    }
    place.timestamp_ns = frame.timestamp_ns;
    let cut_off_bytes = frame.original_bytes.saturating_sub(len as u32);
    EXTRA_LENGTH.store(&mut place.anno, cut_off_bytes.into());
    Put::Done
}
