//! `ToDump`: writes packets to a capture file.

use super::dump_file::FileName;
use super::sink::{Sink, Store, WRITE_FAILED};
use click::config::{parse, split_words};
use diag::{Spanned, did_you_mean};
use element::{BoxElement, Class, Configure, Direction, PortCodes, Row, StateScope, Work};
use elements::io::link_type;
use packet::access::Access;
use packet::anno::EXTRA_LENGTH;
use port::capture::CaptureWriter;
use port::{LINK_ETHERNET, OutputFile, PortError};
use shm::Packet;
use shm::bytes::PacketBytes;

/// The class.
pub const CLASS: Class = Class {
    name: "ToDump",
    summary: "writes packets to a capture file",
    page: "\
# ToDump(FILENAME [, SNAPLEN, ENCAP, keywords])

Writes packets to a pcap file, which tcpdump, Wireshark and FromDump read.

- **ports**: 1 input, 0 or 1 output, agnostic. With an output, every packet leaves by it
- **arguments**: `FILENAME` (`-`: the standard output); `SNAPLEN` (default 2000): bytes of each packet to
  write at most, 0 for all; `ENCAP`: the header that packets start with, `ETHER` (default), `IP`, `FDDI`, `ATM`,
  `802.11`, `SLL`, `PPP` and the like; `USE_ENCAP_FROM`: elements whose `encap` handlers give it;
  `EXTRA_LENGTH` (bool, default true): add the extra length annotation to the length on the wire;
  `UNBUFFERED` (bool, default false): write each burst at once. `NANO` is accepted and has no effect
- **annotations**: reads the timestamp (default: the burst's time) and the extra length
- **handlers**: `filename`, `count` (read), `reset_counts` (write)
- **drop reasons**: `write-failed`: the disk is full or failed, and there is no output
- **difference**: timestamps always have nanoseconds. When the disk is full, the file is cut back to whole
  packets, and the run's report gives their number; Click leaves half a packet. Files are not compressed,
  whatever their name
",
    codes: PortCodes::new("1/0-1", "a/a"),
    state: StateScope::OneWorker,
    make,
};

const DEFAULT_SNAP_BYTES: u32 = 2000;
/// How long packets wait before they are written: packets of this time share a system call.
const WAIT_NS: u64 = 50_000_000;

#[derive(Default)]
struct Capture {
    /// The file before the link type is known and it has a writer.
    file: Option<OutputFile>,
    writer: Option<CaptureWriter>,
    /// The elements whose `encap` handlers give the link type when the run starts.
    encap_from: Vec<String>,
    snap_bytes: u32,
    extra_length: bool,
    unbuffered: bool,
    /// Packets that the writer has copied and that may not be in the file yet. They are held until they are.
    waiting: usize,
    /// Packets in the file that no longer wait.
    settled: u64,
    count: u64,
    /// The first bytes of a packet that is longer than `snap_bytes`.
    cut: Vec<u8>,
}

fn encap(text: &Spanned, names: &dyn click::config::Names) -> parse::Parsed<u32> {
    let word = parse::word(text, names)?;
    link_type::from_name(word.as_str()).ok_or_else(|| {
        let message = format!("`{}` is no encapsulation", word.as_str());
        let help = did_you_mean(word.as_str(), link_type::names());
        let known = || format!("it is one of {}", link_type::names().join(", "));
        diag::Diagnostic::error(word.span, message).help(help.unwrap_or_else(known))
    })
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("FILENAME", FileName::parse);
    let snap_bytes = args.positional("SNAPLEN", parse::u32).unwrap_or(DEFAULT_SNAP_BYTES);
    let link_type = args.positional("ENCAP", encap);
    let from = args.keyword("USE_ENCAP_FROM", parse::any);
    let extra_length = args.keyword("EXTRA_LENGTH", parse::bool).unwrap_or(true);
    let unbuffered = args.keyword("UNBUFFERED", parse::bool).unwrap_or(false);
    let _ = args.keyword("NANO", parse::bool);
    if let (Some(from), Some(_)) = (&from, link_type) {
        let help = "state one of them";
        args.error(from.span, "ENCAP and USE_ENCAP_FROM exclude each other").help(help);
    }
    let mut fine = args.finish();
    let mut encap_from = vec![];
    for element in from.iter().flat_map(split_words) {
        match cx.element(&element) {
            Some(_) => encap_from.push(element.text),
            None => fine = false,
        }
    }
    if let Some(from) = from.filter(|from| split_words(from).is_empty()) {
        cx.error(from.span, "USE_ENCAP_FROM names no element");
        fine = false;
    }
    let name = name?;
    if !fine {
        return None;
    }
    let snap_bytes = if snap_bytes == 0 { u32::MAX } else { snap_bytes };
    let mut capture = Capture { encap_from, snap_bytes, extra_length, unbuffered, ..Capture::default() };
    // A file is written by the first worker alone.
    if cx.worker == 0 {
        let file = name.open(cx, Direction::Send, |path| OutputFile::open(path))?;
        if capture.encap_from.is_empty() {
            capture.writer = Some(CaptureWriter::new(file, link_type.unwrap_or(LINK_ETHERNET)));
        } else {
            capture.file = Some(file);
        }
    }
    Some(BoxElement::opaque(Sink::new(capture, name.shown(Direction::Send), cx.shape.outputs > 0)))
}

impl Sink<Capture> {
    /// Stops writing after an error. Packets that the writer held are lost, too.
    fn fail(&mut self, error: &PortError) {
        self.failed = true;
        self.warnings.push(error.to_string());
        let lost = self.format.writer.as_ref().map(CaptureWriter::lost_frames).unwrap_or_default();
        self.format.count = self.format.count.saturating_sub(lost.frames);
        self.stats.tx_packets = self.stats.tx_packets.saturating_sub(lost.frames);
        self.stats.tx_bytes = self.stats.tx_bytes.saturating_sub(lost.bytes);
        if self.forwards {
            self.stats.tx_errors += lost.frames;
        }
    }

    /// The link type that the other elements give; all must agree.
    fn ask_link_type(&self, work: &mut Work<'_>) -> Result<u32, String> {
        let mut agreed: Option<(u32, &str)> = None;
        for element in &self.format.encap_from {
            let said = work.read_handler(&format!("{element}.encap"))?;
            let link_type = link_type::from_name(said.trim())
                .ok_or_else(|| format!("`{element}` has the unknown encapsulation `{}`", said.trim()))?;
            match agreed {
                Some((other, first)) if other != link_type => {
                    return Err(format!("`{first}` and `{element}` have different encapsulations"));
                }
                _ => agreed = Some((link_type, element)),
            }
        }
        Ok(agreed.map_or(LINK_ETHERNET, |(link_type, _)| link_type))
    }
}

impl Store for Sink<Capture> {
    const HANDLERS: &'static [Row<Self>] = &[
        Row::read("filename", |dump, _| Some(dump.shown.clone())),
        Row::sum("count", |dump, _| Some(dump.format.count.to_string())),
        Row::button("reset_counts", |dump, _| dump.format.count = 0),
    ];
    const PULLS_THROUGH: bool = false;

    fn begin(&mut self, work: &mut Work<'_>) {
        if let Some(file) = self.format.file.take() {
            match self.ask_link_type(work) {
                Ok(link_type) => self.format.writer = Some(CaptureWriter::new(file, link_type)),
                Err(message) => self.warnings.push(format!("{}: nothing is written: {message}", self.shown)),
            }
        }
    }

    fn store(&mut self, packet: &Packet, now_ns: u64) -> bool {
        let capture = &mut self.format;
        let Some(writer) = capture.writer.as_mut().filter(|_| !self.failed) else {
            self.stats.tx_errors += u64::from(self.forwards);
            return false;
        };
        let timestamp_ns = if packet.timestamp_ns == 0 { now_ns } else { packet.timestamp_ns };
        let cut_off = if capture.extra_length { EXTRA_LENGTH.load(&packet.anno) as u32 } else { 0 };
        let original_bytes = packet.total().saturating_add(cut_off);
        let result = if packet.total() <= capture.snap_bytes {
            writer.write_packet(timestamp_ns, original_bytes, packet)
        } else {
            capture.cut.resize(capture.snap_bytes as usize, 0);
            // The packet is longer than that, so the copy is whole.
            let _ = PacketBytes::new(packet).copy_out(0, &mut capture.cut);
            writer.write(timestamp_ns, original_bytes, &capture.cut)
        };
        capture.count += 1;
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += u64::from(packet.total().min(capture.snap_bytes));
        if let Err(error) = result {
            self.fail(&error);
        }
        true
    }

    /// Holds packets that the writer has copied. Counts them as sent when they are in the file, and as
    /// dropped when they never will be.
    fn settle(&mut self, stored: usize, work: &mut Work<'_>) {
        if self.format.waiting == 0 && stored > 0 {
            work.fire_at(work.now_ns() + WAIT_NS);
        }
        self.format.waiting += stored;
        work.hold(stored);
        if self.format.unbuffered || self.stopped {
            self.flush();
        }
        let capture = &mut self.format;
        let written = capture.writer.as_ref().map_or(0, CaptureWriter::written_frames);
        let sent = ((written - capture.settled) as usize).min(capture.waiting);
        capture.settled += sent as u64;
        capture.waiting -= sent;
        work.release(sent);
        if sent > 0 {
            let bytes = self.stats.tx_bytes.saturating_sub(self.counted_bytes);
            self.counted_bytes += bytes;
            work.count_sent(sent, bytes);
        }
        if self.failed {
            work.release(capture.waiting);
            work.count_dropped(WRITE_FAILED, capture.waiting);
            capture.waiting = 0;
        }
    }

    fn flush(&mut self) {
        if let Some(writer) = self.format.writer.as_mut().filter(|_| !self.failed)
            && let Err(error) = writer.flush()
        {
            self.fail(&error);
        }
    }

    fn is_open(&self) -> bool {
        self.format.writer.is_some()
    }
}
