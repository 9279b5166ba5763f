//! The port over capture files: receives the frames of one file, and writes sent packets to another.
//!
//! The port is closed-loop, as fast as the files allow; frames keep their timestamps. The annotation
//! `EXTRA_LENGTH` holds the number of bytes that the capture truncated. When written, a packet's original
//! length includes them.

use super::reader::CaptureReader;
use super::writer::CaptureWriter;
use crate::frames::{Filled, LONGEST_FRAME_BYTES, fill};
use crate::{LINK_ETHERNET, Moved, Port, PortError, PortInfo, PortStats, Result, same_file};
use packet::anno::EXTRA_LENGTH;
use shm::chain::SEGMENT_BYTES;
use shm::{Packet, PacketPool, Pool};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// How to open a capture port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureOptions {
    /// The capture whose frames are received; without one, the port receives nothing.
    pub read: Option<PathBuf>,
    /// The capture that is written; without one, the port cannot send.
    pub write: Option<PathBuf>,
    /// How many times the capture is read; 0 for an unlimited number.
    pub passes: u64,
    /// Link type of the written capture; by default that of the capture read, else Ethernet.
    pub link_type: Option<u32>,
}

/// A port over capture files.
pub struct CapturePort {
    name: String,
    reader: Option<CaptureReader>,
    writer: Option<CaptureWriter>,
    /// The passes that follow the current one; `None` for an unlimited number.
    passes_left: Option<u64>,
    finished: bool,
    link_type: u32,
    origin: u16,
    stats: PortStats,
    warnings: Vec<String>,
    reported_link_type: bool,
    reported_write: bool,
}

impl CapturePort {
    /// Opens the files.
    ///
    /// # Errors
    ///
    /// When a file cannot be opened, is not a capture, or is both read and written.
    pub fn open(name: impl Into<String>, options: &CaptureOptions) -> Result<CapturePort> {
        let reader = options.read.as_ref().map(CaptureReader::open).transpose()?;
        if let (Some(read), Some(write)) = (&options.read, &options.write)
            && same_file(read, write)
        {
            return Err(PortError::SameFile { path: write.clone() });
        }
        let read_type = reader.as_ref().and_then(CaptureReader::link_type);
        let link_type = read_type.or(options.link_type).unwrap_or(LINK_ETHERNET);
        let written_type = options.link_type.unwrap_or(link_type);
        let writer =
            options.write.as_ref().map(|path| CaptureWriter::create(path, written_type)).transpose()?;
        Ok(CapturePort {
            name: name.into(),
            finished: reader.is_none(),
            reader,
            writer,
            passes_left: options.passes.checked_sub(1),
            link_type,
            origin: shm::descriptor::NO_PORT,
            stats: PortStats::default(),
            warnings: Vec::new(),
            reported_link_type: false,
            reported_write: false,
        })
    }

    fn tell(&mut self, message: String) {
        self.warnings.push(format!("{}: {message}", self.name));
    }

    /// Adds a warning, once, that frames cannot be written. The statistics contain how many were lost.
    fn tell_write_failed(&mut self, message: String) {
        if !std::mem::replace(&mut self.reported_write, true) {
            self.tell(message);
        }
    }

    /// Starts the next pass, if any.
    fn next_pass(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        // A pass without frames would be followed by others without frames.
        let worth = reader.whole_frames() > 0 && self.passes_left != Some(0);
        match if worth { reader.rewind() } else { Ok(false) } {
            Ok(true) => self.passes_left = self.passes_left.map(|left| left - 1),
            Ok(false) => {
                self.finished = true;
                if worth {
                    self.tell("the capture cannot be read a second time: it is a stream".into());
                }
            }
            Err(error) => {
                self.finished = true;
                self.tell(error.to_string());
            }
        }
    }

    /// Receives into the fresh `packets` and returns how many were filled. Those that are not filled are
    /// freed.
    fn read_burst(&mut self, pool: &mut PacketPool, packets: &mut [Packet]) -> usize {
        let (mut filled, mut room) = (0, packets.len());
        while filled < room {
            let Some(reader) = &mut self.reader else { break };
            let frame = match reader.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.next_pass();
                    if self.finished { break } else { continue }
                }
                Err(error) => {
                    self.tell(error.to_string());
                    self.finished = true;
                    break;
                }
            };
            if frame.link_type != self.link_type {
                self.stats.rx_dropped.errors += 1;
                if !self.reported_link_type {
                    self.reported_link_type = true;
                    let message = format!(
                        "the capture mixes link types: frames of type {} are dropped, those of type {} are \
                         received",
                        frame.link_type, self.link_type
                    );
                    self.tell(message);
                }
                continue;
            }
            let slots = frame.bytes.len().div_ceil(SEGMENT_BYTES);
            if frame.bytes.len() > LONGEST_FRAME_BYTES || slots > pool.capacity() {
                self.stats.rx_dropped.too_long += 1;
                continue;
            }
            match fill(pool, packets.get_mut(filled..room).unwrap_or_default(), frame.bytes) {
                Filled::First => {}
                Filled::Last => room = filled + 1,
                Filled::No => {
                    // The pool has no slots for a chain; the next call reads the frame again.
                    reader.unread();
                    return filled;
                }
            }
            let Some(packet) = packets.get_mut(filled) else { break };
            frame.describe(packet);
            packet.origin = self.origin;
            self.stats.rx_packets += 1;
            self.stats.rx_bytes += frame.bytes.len() as u64;
            filled += 1;
        }
        pool.free_all(packets.get(filled..room).unwrap_or_default());
        filled
    }
}

impl Port for CapturePort {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        PortInfo { link_type: self.link_type, is_outer: true, ..PortInfo::default() }
    }

    fn set_origin(&mut self, origin: u16) {
        self.origin = origin;
    }

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        if self.finished {
            return Moved::default();
        }
        let bytes_before = self.stats.rx_bytes;
        let got = pool.alloc(out);
        let packets = self.read_burst(pool, out.get_mut(..got).unwrap_or_default());
        Moved { packets, bytes: self.stats.rx_bytes - bytes_before }
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let Some(writer) = &mut self.writer else { return Moved::default() };
        let bytes_before = self.stats.tx_bytes;
        // Packets made by elements have no timestamp. They get the time of their burst, as in Click's ToDump.
        let mut now_ns = 0;
        let mut failure = None;
        for packet in list.iter().filter_map(|&index| packets.get(usize::from(index))) {
            let mut timestamp_ns = packet.timestamp_ns;
            if timestamp_ns == 0 {
                if now_ns == 0 {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                    now_ns = u64::try_from(now.as_nanos()).unwrap_or(0);
                }
                timestamp_ns = now_ns;
            }
            let original = packet.total().saturating_add(EXTRA_LENGTH.load(&packet.anno) as u32);
            self.stats.tx_packets += 1;
            self.stats.tx_bytes += u64::from(packet.total());
            // The writer counts the frames that it could not write; see `stats`.
            if let Err(error) = writer.write_packet(timestamp_ns, original, packet) {
                failure.get_or_insert(error);
            }
        }
        pool.free(packets, list);
        if let Some(error) = failure {
            self.tell_write_failed(error.to_string());
        }
        Moved { packets: list.len(), bytes: self.stats.tx_bytes - bytes_before }
    }

    fn stats(&self) -> PortStats {
        let lost = self.writer.as_ref().map(CaptureWriter::lost_frames).unwrap_or_default();
        PortStats {
            tx_packets: self.stats.tx_packets - lost.frames.min(self.stats.tx_packets),
            tx_bytes: self.stats.tx_bytes - lost.bytes.min(self.stats.tx_bytes),
            tx_errors: lost.frames,
            ..self.stats
        }
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    fn can_send(&self) -> bool {
        self.writer.is_some()
    }

    fn flush(&mut self) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let flushed = writer.flush();
        if let Err(error) = &flushed {
            let message = error.to_string();
            self.tell_write_failed(message);
        }
        flushed
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
