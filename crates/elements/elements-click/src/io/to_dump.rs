//! `ToDump`: packets into a capture file.

use super::from_dump::place_of;
use click::config::{parse, split_words};
use diag::{Spanned, did_you_mean};
use element::{
    BoxElement, Class, Configure, Direction, Element, Handlers, Opaque, PortCodes, Progress, Row, StateScope,
    Task, Work,
};
use elements::io::files::{self, FLUSH_NS};
use elements::io::link_type;
use packet::access::Access;
use packet::anno::EXTRA_LENGTH;
use port::capture::CaptureWriter;
use port::{LINK_ETHERNET, OutputFile, PortError, PortStats};
use shm::Packet;
use shm::burst::LIST_CAPACITY;
use shm::burst::{Batch, Vector};
use shm::bytes::PacketBytes;
use shm::pool::Pool;
use std::path::{Path, PathBuf};

/// The class.
pub const CLASS: Class = Class {
    name: "ToDump",
    summary: "writes packets to a capture file",
    page: "\
# ToDump(FILENAME [, SNAPLEN, ENCAP, keywords])

Writes packets to a pcap file, which tcpdump, Wireshark and FromDump read.

- **ports**: 1 input, 0 or 1 output, agnostic. With an output, every packet leaves by it
- **arguments**: `FILENAME` (`-`: the standard output); `SNAPLEN` (default 2000): bytes of each packet to
  write at most, 0 for all; `ENCAP`: what packets start with, `ETHER` (default), `IP`, `FDDI`, `ATM`,
  `802.11`, `SLL`, `PPP` and the like; `USE_ENCAP_FROM`: elements whose `encap` handlers say so;
  `EXTRA_LENGTH` (bool, default true): count the extra length annotation to the length on the wire;
  `UNBUFFERED` (bool, default false): write each burst at once. `NANO` is taken and has no effect
- **annotations**: reads the timestamp (the burst's time where there is none) and the extra length
- **handlers**: `filename`, `count` (read), `reset_counts` (write)
- **drop reasons**: `write-failed`: not in the file, because the disk is full or failed, and there is no
  output
- **difference**: timestamps have nanoseconds always. When the disk is full the file is cut back to whole
  packets, and the run's report says how many it holds; Click leaves half a packet. Files are not
  compressed whatever their name
",
    codes: PortCodes::new("1/0-1", "a/a"),
    state: StateScope::OneWorker,
    make,
};

const WRITE_FAILED: usize = 0;
const DEFAULT_SNAP_BYTES: u32 = 2000;
/// How long packets wait to be in the file: those of that time share a system call.
const WAIT_NS: u64 = 50_000_000;

struct ToDump {
    shown: String,
    /// The file until it has a writer: until the link type is known.
    file: Option<OutputFile>,
    writer: Option<CaptureWriter>,
    /// Elements that say the link type, at the start.
    encap_from: Vec<String>,
    snap_bytes: u32,
    extra_length: bool,
    unbuffered: bool,
    forwards: bool,
    failed: bool,
    /// How many packets the writer has copied that are perhaps not in the file yet: held until they are.
    waiting: usize,
    /// Whether the run ends: nothing may wait any more.
    stopped: bool,
    /// Packets in the file that do not wait any more.
    settled: u64,
    count: u64,
    stats: PortStats,
    next_flush_ns: u64,
    /// The part of a packet that is written, where that is not all of it.
    cut: Vec<u8>,
    warnings: Vec<String>,
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
    let name = args.mandatory_positional("FILENAME", |text, names| {
        parse::filename(text, names).map(|path| (path, text.span))
    });
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
        match cx.services.element(cx.name, element.as_str()) {
            Some(_) => encap_from.push(element.text),
            None => {
                cx.error(element.span, format!("there is no element `{}`", element.as_str()));
                fine = false;
            }
        }
    }
    if let Some(from) = from.filter(|from| split_words(from).is_empty()) {
        cx.error(from.span, "USE_ENCAP_FROM names no element");
        fine = false;
    }
    let (name, name_span) = name?;
    if !fine {
        return None;
    }
    let is_output = name == Path::new("-");
    let path = if is_output { PathBuf::from("/dev/stdout") } else { place_of(cx, &name) };
    let mut element = ToDump {
        shown: if is_output { "<stdout>".into() } else { name.display().to_string() },
        file: None,
        writer: None,
        encap_from,
        snap_bytes: if snap_bytes == 0 { u32::MAX } else { snap_bytes },
        extra_length,
        unbuffered,
        forwards: cx.shape.outputs > 0,
        failed: false,
        waiting: 0,
        stopped: false,
        settled: 0,
        count: 0,
        stats: PortStats::default(),
        next_flush_ns: 0,
        cut: vec![],
        warnings: vec![],
    };
    // A file is written by the first worker alone.
    if cx.worker == 0 {
        let file = match OutputFile::open(&path) {
            Ok(file) => file,
            Err(error) => {
                cx.error(name_span, error.to_string());
                return None;
            }
        };
        if !files::record_file(cx, &path, Direction::Send, name_span) {
            return None;
        }
        if element.encap_from.is_empty() {
            element.writer = Some(CaptureWriter::new(file, link_type.unwrap_or(LINK_ETHERNET)));
        } else {
            element.file = Some(file);
        }
    }
    Some(BoxElement::opaque(element))
}

impl ToDump {
    /// Adds a packet to what is written; whether it was taken.
    fn store(&mut self, packet: &Packet, now_ns: u64) -> bool {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.failed) else { return false };
        let timestamp_ns = if packet.timestamp_ns == 0 { now_ns } else { packet.timestamp_ns };
        let cut_off = if self.extra_length { EXTRA_LENGTH.load(&packet.anno) as u32 } else { 0 };
        let original_bytes = packet.total().saturating_add(cut_off);
        let result = if packet.total() <= self.snap_bytes {
            writer.write_packet(timestamp_ns, original_bytes, packet)
        } else {
            self.cut.resize(self.snap_bytes as usize, 0);
            // The packet is longer than that, so the copy is whole.
            let _ = PacketBytes::new(packet).copy_out(0, &mut self.cut);
            writer.write(timestamp_ns, original_bytes, &self.cut)
        };
        self.count += 1;
        self.stats.tx_packets += 1;
        self.stats.tx_bytes += u64::from(packet.total().min(self.snap_bytes));
        if let Err(error) = result {
            self.fail(&error);
        }
        true
    }

    /// Nothing can be written any more. What was held back is lost, too.
    fn fail(&mut self, error: &PortError) {
        self.failed = true;
        self.warnings.push(error.to_string());
        let lost = self.writer.as_ref().map(CaptureWriter::lost_frames).unwrap_or_default();
        self.count = self.count.saturating_sub(lost.frames);
        self.stats.tx_packets = self.stats.tx_packets.saturating_sub(lost.frames);
        self.stats.tx_bytes = self.stats.tx_bytes.saturating_sub(lost.bytes);
        if self.forwards {
            self.stats.tx_errors += lost.frames;
        }
    }

    /// Holds packets that were stored, by number: the writer has copied them.
    fn hold(&mut self, stored: usize, work: &mut Work<'_>) {
        if self.waiting == 0 && stored > 0 {
            work.fire_at(work.now_ns() + WAIT_NS);
        }
        self.waiting += stored;
        work.hold(stored);
        if self.unbuffered || self.stopped {
            self.flush();
        }
        self.settle(work);
    }

    /// Counts packets that wait as sent when they are in the file, and as dropped when they never will be.
    fn settle(&mut self, work: &mut Work<'_>) {
        let written = self.writer.as_ref().map_or(0, CaptureWriter::written_frames);
        let sent = ((written - self.settled) as usize).min(self.waiting);
        self.settled += sent as u64;
        self.waiting -= sent;
        work.release(sent);
        work.count_sent(sent);
        if self.failed {
            work.release(self.waiting);
            work.count_dropped(WRITE_FAILED, self.waiting);
            self.waiting = 0;
        }
    }

    fn flush(&mut self) {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.failed) else { return };
        if let Err(error) = writer.flush() {
            self.fail(&error);
        }
    }

    /// The link type that other elements name; all must agree.
    fn ask_link_type(&self, work: &mut Work<'_>) -> Result<u32, String> {
        let mut agreed: Option<(u32, &str)> = None;
        for element in &self.encap_from {
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

impl Opaque for ToDump {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let (now_ns, list) = (work.now_ns(), batch.list());
        let (mut stored, mut count) = ([0; LIST_CAPACITY], 0);
        for &index in list {
            let is_stored = self.store(batch.packet(index), now_ns);
            if self.forwards {
                self.stats.tx_errors += u64::from(!is_stored);
                batch.emit(index, 0);
            } else if is_stored {
                stored[count] = index;
                count += 1;
            } else {
                batch.drop(index, WRITE_FAILED);
            }
        }
        if self.forwards && self.unbuffered {
            self.flush();
        }
        if !self.forwards {
            work.pool().free(batch.packets(), &stored[..count]);
            self.hold(count, work);
        }
    }
}

impl Task for ToDump {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let burst = work.burst();
        work.pull(0, burst, vector);
        if vector.is_empty() {
            return Progress::Idle;
        }
        let now_ns = work.now_ns();
        let mut stored = 0;
        for packet in vector.iter() {
            if self.store(packet, now_ns) {
                work.pool().free_all(std::slice::from_ref(packet));
                stored += 1;
            } else {
                work.drop(WRITE_FAILED, std::slice::from_ref(packet));
            }
        }
        vector.clear();
        self.hold(stored, work);
        Progress::Worked
    }
}

impl Element for ToDump {
    fn writes(&self) -> bool {
        false
    }

    fn reasons(&self) -> &'static [&'static str] {
        &["write-failed"]
    }

    fn start(&mut self, work: &mut Work<'_>) {
        if let Some(file) = self.file.take() {
            match self.ask_link_type(work) {
                Ok(link_type) => self.writer = Some(CaptureWriter::new(file, link_type)),
                Err(message) => self.warnings.push(format!("{}: nothing is written: {message}", self.shown)),
            }
        }
        self.flush();
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        // With an output, packets are pulled through it.
        (!self.forwards).then_some(self)
    }

    fn fire(&mut self, work: &mut Work<'_>) {
        self.flush();
        self.settle(work);
    }

    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + FLUSH_NS;
            self.flush();
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.stopped = true;
        self.flush();
        self.settle(work);
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }

    fn take_findings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        self.writer.as_ref().map(|_| (self.shown.clone(), self.stats))
    }
}

const HANDLERS: &[Row<ToDump>] = &[
    Row::read("filename", |dump, _| Some(dump.shown.clone())),
    Row::sum("count", |dump, _| Some(dump.count.to_string())),
    Row::write("reset_counts", |dump, _, _| {
        dump.count = 0;
        Ok(())
    }),
];
