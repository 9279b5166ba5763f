//! Reads captures frame by frame from files and streams.
//!
//! It reads pcap in both byte orders with microseconds or nanoseconds, and pcapng, also if they are compressed by gzip or
//! Zstandard; offsets are then those of the unpacked capture. Frames are borrowed from
//! one buffer; no memory is allocated for a frame. From a damaged capture the reader returns every whole
//! frame in front of the damage, then one error with the offset of the damage, then nothing more.

use super::compressed::{self, Compression};
use super::format::{ByteOrder, FILE_HEADER_BYTES, LONGEST_RECORD_BYTES, PcapHeader, RECORD_HEADER_BYTES};
use super::pcapng::{BLOCK_START_BYTES, RecordPacket, SECTION_HEADER, Section};
use crate::frames::packet_type;
use crate::{LINK_ETHERNET, PortError, Result};
use packet::anno::EXTRA_LENGTH;
use shm::Packet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// One frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it was captured, nanoseconds since the epoch.
    pub timestamp_ns: u64,
    /// Its length on the wire, which is larger than that of `bytes` if the capture truncated it.
    pub original_bytes: u32,
    /// The link type: the header that it starts with.
    pub link_type: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

impl Frame<'_> {
    /// Fills a fresh packet's fields that are not its bytes: time, type, and the number of bytes that the
    /// capture truncated.
    pub fn describe(&self, packet: &mut Packet) {
        let cut_off = self.original_bytes.saturating_sub(self.bytes.len() as u32);
        if cut_off > 0 {
            EXTRA_LENGTH.store(&mut packet.anno, cut_off.into());
        }
        packet.timestamp_ns = self.timestamp_ns;
        packet.packet_type = if self.link_type == LINK_ETHERNET { packet_type(self.bytes) } else { 0 };
    }
}

/// The source of a capture; only a file can be read again.
enum CaptureInput {
    File(File),
    Stream(Box<dyn Read + Send>),
    /// What a source yields unpacked, and the file if it is one: to read it again.
    Unpacked(Box<dyn Read + Send>, Option<File>),
    /// Between two of the others.
    None,
}

enum Format {
    Pcap(PcapHeader),
    Pcapng(Section),
}

/// A capture being read.
pub struct CaptureReader {
    path: PathBuf,
    window: Window,
    format: Format,
    /// The length of the record that was returned last; the next call skips it.
    returned: usize,
    ended: bool,
    whole_frames: u64,
}

/// The part of the file that is in memory: `bytes[start..end]`, whose first byte is at `offset` in the file.
struct Window {
    source: CaptureInput,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl Window {
    /// Returns the next `want` bytes, or fewer at the end of the file.
    fn ahead(&mut self, want: usize) -> std::io::Result<&[u8]> {
        while self.end - self.start < want {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.bytes.len() < want.max(CHUNK_BYTES) {
                self.bytes.resize(want.max(CHUNK_BYTES), 0);
            }
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            let got = match &mut self.source {
                CaptureInput::File(file) => file.read(room),
                CaptureInput::Stream(stream) | CaptureInput::Unpacked(stream, _) => stream.read(room),
                CaptureInput::None => Ok(0),
            };
            match got {
                Ok(0) => break,
                Ok(got) => self.end += got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.bytes.get(self.start..self.end.min(self.start + want)).unwrap_or_default())
    }

    /// Continues with the uncompressed bytes, from those that are in memory on.
    fn unpack(&mut self, compression: Compression) -> std::io::Result<()> {
        let begun = self.bytes.get(self.start..self.end).unwrap_or_default().to_vec();
        let begun = std::io::Cursor::new(begun);
        let (unpacked, file) = match std::mem::replace(&mut self.source, CaptureInput::None) {
            CaptureInput::File(file) => {
                let again = file.try_clone()?;
                (compression.unpack(begun.chain(file)), Some(again))
            }
            CaptureInput::Stream(stream) => (compression.unpack(begun.chain(stream)), None),
            input @ (CaptureInput::Unpacked(..) | CaptureInput::None) => {
                self.source = input;
                return Ok(());
            }
        };
        self.source = CaptureInput::Unpacked(unpacked, file);
        (self.start, self.end, self.offset) = (0, 0, 0);
        Ok(())
    }

    /// Reads the file from its start, where it was set.
    fn restart(&mut self) {
        self.source = match std::mem::replace(&mut self.source, CaptureInput::None) {
            CaptureInput::Unpacked(_, Some(file)) => CaptureInput::File(file),
            input => input,
        };
        (self.start, self.end, self.offset) = (0, 0, 0);
    }

    fn pass(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
    }
}

impl CaptureReader {
    /// Opens a capture file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// When it cannot be read or is not a capture.
    pub fn open(path: impl AsRef<Path>) -> Result<CaptureReader> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return CaptureReader::read(path, CaptureInput::Stream(Box::new(std::io::stdin())));
        }
        let file = File::open(path).map_err(|source| PortError::file("open", path, source))?;
        CaptureReader::read(path, CaptureInput::File(file))
    }

    /// Reads a capture from a stream; messages call it `name`.
    ///
    /// # Errors
    ///
    /// When it cannot be read or is not a capture.
    pub fn from_stream(name: impl AsRef<Path>, stream: impl Read + Send + 'static) -> Result<CaptureReader> {
        CaptureReader::read(name.as_ref(), CaptureInput::Stream(Box::new(stream)))
    }

    fn read(path: &Path, source: CaptureInput) -> Result<CaptureReader> {
        let window = Window { source, bytes: Vec::new(), start: 0, end: 0, offset: 0 };
        let mut reader = CaptureReader {
            path: path.to_owned(),
            window,
            format: Format::Pcapng(Section::new()),
            returned: 0,
            ended: false,
            whole_frames: 0,
        };
        reader.start()?;
        Ok(reader)
    }

    /// Reads the start of the file, up to the link type.
    fn start(&mut self) -> Result<()> {
        (self.returned, self.ended, self.whole_frames) = (0, false, 0);
        let failed = |source| PortError::file("read", &self.path, source);
        let compression = Compression::of(self.window.ahead(FILE_HEADER_BYTES).map_err(failed)?);
        if let Some(compression) = compression {
            self.window.unpack(compression).map_err(failed)?;
        }
        let head = self.window.ahead(FILE_HEADER_BYTES).map_err(failed)?;
        if ByteOrder::Big.u32(head, 0) == Some(SECTION_HEADER) {
            self.format = Format::Pcapng(Section::new());
            return self.pass_to_interface();
        }
        let Some(header) = PcapHeader::parse(head) else {
            let what = if head.is_empty() {
                "the file is empty"
            } else if let Some(packed) = compressed::unread(head) {
                packed
            } else if head.len() < FILE_HEADER_BYTES {
                "the file ends within its header"
            } else {
                "this is neither pcap nor pcapng"
            };
            return Err(self.damaged(what));
        };
        self.format = Format::Pcap(header);
        self.window.pass(FILE_HEADER_BYTES);
        Ok(())
    }

    /// Skips the blocks in front of the first interface, which contains the link type.
    fn pass_to_interface(&mut self) -> Result<()> {
        while self.link_type().is_none() {
            match self.find()? {
                // A capture without packets, which is not an error.
                None => break,
                // For a packet in front of any interface, `find` returns an error, so this case does not
                // occur.
                Some(Record { packet: Some(_), .. }) => break,
                Some(Record { bytes, packet: None }) => self.window.pass(bytes),
            }
        }
        Ok(())
    }

    /// Link type of the capture; of its first interface for pcapng.
    pub fn link_type(&self) -> Option<u32> {
        match &self.format {
            Format::Pcap(header) => Some(header.link_type),
            Format::Pcapng(section) => section.link_type(),
        }
    }

    /// The number of frames read so far in this pass.
    pub fn whole_frames(&self) -> u64 {
        self.whole_frames
    }

    /// The next frame; `None` at the end of the capture.
    ///
    /// # Errors
    ///
    /// Once, where the capture is damaged or a read fails. The capture has ended then.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        self.window.pass(std::mem::take(&mut self.returned));
        while !self.ended {
            match self.find() {
                Ok(Some(Record { bytes, packet: Some(found) })) => {
                    self.returned = bytes;
                    self.whole_frames += 1;
                    let record = self.window.bytes.get(self.window.start..).unwrap_or_default();
                    return Ok(Some(Frame {
                        timestamp_ns: found.timestamp_ns,
                        original_bytes: found.original_bytes,
                        link_type: found.link_type,
                        bytes: record.get(found.bytes).unwrap_or_default(),
                    }));
                }
                Ok(Some(Record { bytes, packet: None })) => self.window.pass(bytes),
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Returns the last frame to the reader: the next call returns it again.
    pub fn unread(&mut self) {
        if std::mem::take(&mut self.returned) > 0 {
            self.whole_frames -= 1;
        }
    }

    /// Restarts at the first frame. False when the source cannot be read twice.
    ///
    /// # Errors
    ///
    /// When the file cannot be read again.
    pub fn rewind(&mut self) -> Result<bool> {
        let (CaptureInput::File(file) | CaptureInput::Unpacked(_, Some(file))) = &mut self.window.source
        else {
            return Ok(false);
        };
        if let Err(source) = file.seek(SeekFrom::Start(0)) {
            // The file is a pipe.
            if source.kind() == std::io::ErrorKind::NotSeekable {
                return Ok(false);
            }
            return Err(PortError::file("rewind", &self.path, source));
        }
        self.window.restart();
        self.start()?;
        Ok(true)
    }

    fn damaged(&self, what: &'static str) -> PortError {
        PortError::DamagedCapture {
            path: self.path.clone(),
            offset: self.window.offset,
            whole_frames: self.whole_frames,
            what,
        }
    }

    /// Parses the next record without consuming it.
    fn find(&mut self) -> Result<Option<Record>> {
        let found = match &mut self.format {
            Format::Pcap(header) => find_pcap(&mut self.window, header),
            Format::Pcapng(section) => find_block(&mut self.window, section),
        };
        let found = found.map_err(|source| PortError::file("read", &self.path, source))?;
        found.map_err(|what| self.damaged(what))
    }
}

/// The next record if there is one, or how the capture is damaged.
type Found = Result<Option<Record>, &'static str>;

/// The record at the start of the window, with its length.
struct Record {
    bytes: usize,
    packet: Option<RecordPacket>,
}

fn find_pcap(window: &mut Window, header: &PcapHeader) -> std::io::Result<Found> {
    let head = window.ahead(RECORD_HEADER_BYTES)?;
    if head.is_empty() {
        return Ok(Ok(None));
    }
    let words = [0, 4, 8, 12].map(|at| header.order.u32(head, at));
    let [Some(seconds), Some(fraction), Some(captured), Some(original_bytes)] = words else {
        return Ok(Err("the file ends within a frame's header"));
    };
    if captured > LONGEST_RECORD_BYTES {
        return Ok(Err("the length of a frame is impossible"));
    }
    let record_bytes = RECORD_HEADER_BYTES + captured as usize;
    if window.ahead(record_bytes)?.len() < record_bytes {
        return Ok(Err("the file ends within a frame"));
    }
    let fraction_ns = u64::from(fraction) * header.resolution.unit_ns();
    let packet = RecordPacket {
        timestamp_ns: u64::from(seconds) * 1_000_000_000 + fraction_ns,
        original_bytes,
        link_type: header.link_type,
        bytes: RECORD_HEADER_BYTES..record_bytes,
    };
    Ok(Ok(Some(Record { bytes: record_bytes, packet: Some(packet) })))
}

fn find_block(window: &mut Window, section: &mut Section) -> std::io::Result<Found> {
    let start = window.ahead(BLOCK_START_BYTES)?;
    if start.is_empty() {
        return Ok(Ok(None));
    }
    let bytes = match section.block_bytes(start) {
        Ok(bytes) => bytes,
        Err(what) => return Ok(Err(what)),
    };
    let block = window.ahead(bytes)?;
    if block.len() < bytes {
        return Ok(Err("the file ends within a block"));
    }
    Ok(section.block(block).map(|packet| Some(Record { bytes, packet })))
}
