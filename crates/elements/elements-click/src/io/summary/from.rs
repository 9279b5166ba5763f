//! `FromIPSummaryDump`: makes packets from lines of text.

use super::super::dump_file::{FileName, file_bytes};
use super::super::replay::{Pace, Play, Replay, SAMPLING_SHIFT, Sampler, Wiring, number_text};
use super::build::{Built, Defaults, Draft, Flow, protocol_number, put, set_checksums};
use super::field::{self, Field};
use super::lines::Lines;
use click::config::{NoNames, parse, split_words};
use diag::{Diagnostic, Span, Spanned};
use element::{BoxElement, Class, Configure, Direction, PortCodes, Progress, Row, StateScope, Work};
use elements::io::files;
use packet::anno::{AGGREGATE, DST_IP, EXTRA_LENGTH, EXTRA_PACKETS, FIRST_TIMESTAMP, PAINT};
use packet::view::protocol;
use port::PortStats;
use shm::Packet;
use shm::burst::Vector;
use std::path::PathBuf;

/// The class.
pub const CLASS: Class = Class {
    name: "FromIPSummaryDump",
    summary: "reads packets from an IP summary dump file",
    page: "\
# FromIPSummaryDump(FILENAME [, keywords])

Makes a packet for each line of a file that ToIPSummaryDump or ipsumdump wrote.

- **ports**: no input; 1 push output
- **arguments**: `FILENAME` (`-`: the standard input), or `DATA`: the text itself; `STOP` (bool, default
  false): end the run at the file's end; `ACTIVE` (bool, default true); `TIMING` (bool, default
  false): keep the times between packets; `CHECKSUM` (bool, default false): packets have all their bytes and
  correct checksums; `PROTO` (default 6): IP protocol of lines without one; `MULTIPACKET` (bool, default false):
  one packet for each that a line's count gives; `SAMPLE` (0 to 1, default 1): emit each packet with that
  probability; `FIELDS` (also `CONTENTS`, `DEFAULT_FIELDS`, `DEFAULT_CONTENTS`): fields until a `!data` line
  names others; `FLOWID` (or `DEFAULT_FLOWID`): `SRC SPORT DST DPORT [PROTO]` for lines without;
  `ALLOW_NONEXISTENT` (bool, default false): a missing file is an empty one; `BURST` (packets at a time,
  default: the run's). `ZERO` and `MIGRATE` are accepted and have no effect
- **annotations**: sets the network and transport header, the destination address annotation, timestamps,
  extra length, extra packets, paint and aggregate
- **handlers**: `sampling_prob`, `encap`, `filename`, `filesize`, `filepos` (read), `active` (read/write),
  `stop` (write)
- **difference**: a value that a line does not give is zero, never random, so
  that runs are alike; sampling picks the same packets in every run. Binary and compressed dumps are not read.
  The run's report lists invalid lines by number. Fields as for ToIPSummaryDump
",
    codes: PortCodes::new("0/1", "a/a"),
    state: StateScope::OneWorker,
    make,
};

/// The most lines that one call reads.
const LINES_AT_A_TIME: usize = 4_096;
/// The most warnings about lines.
const MOST_WARNINGS: usize = 20;

/// A line that describes several packets.
struct Several {
    built: Built,
    left: u32,
    share_bytes: usize,
    rest_bytes: usize,
    step_ns: u64,
    end_ns: u64,
}

type FromSummary = Replay<Summary>;

struct Summary {
    path: Option<PathBuf>,
    lines: Option<Lines>,
    fields: Vec<Field>,
    defaults: Defaults,
    checksum: bool,
    multipacket: bool,
    stop: bool,
    several: Option<Several>,
    /// A packet that was read and is not due yet, or for which the pool had no slot.
    waiting: Option<Built>,
    complained: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.positional("FILENAME", FileName::parse);
    let data = args.keyword("DATA", parse::string);
    let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
    let (stop, active, timing) = (flag("STOP", false), flag("ACTIVE", true), flag("TIMING", false));
    let (checksum, multipacket) = (flag("CHECKSUM", false), flag("MULTIPACKET", false));
    let allow_nonexistent = flag("ALLOW_NONEXISTENT", false);
    let _ = (flag("ZERO", true), flag("MIGRATE", false));
    let sample = args.keyword("SAMPLE", parse::fixed_point(SAMPLING_SHIFT)).unwrap_or(1 << SAMPLING_SHIFT);
    let default_proto = args.keyword("DEFAULT_PROTO", parse::protocol);
    let proto = args.keyword("PROTO", parse::protocol).or(default_proto).unwrap_or(protocol::TCP);
    let (mut fields, mut flow) = (None, None);
    for keyword in ["DEFAULT_CONTENTS", "DEFAULT_FIELDS", "CONTENTS", "FIELDS"] {
        fields = args.keyword(keyword, parse::any).or(fields);
    }
    for keyword in ["DEFAULT_FLOWID", "FLOWID"] {
        flow = args.keyword(keyword, flow_id).or(flow);
    }
    let burst = args.keyword("BURST", parse::int_in(1..=256)).map(|burst| burst as usize);
    if name.is_some() && data.is_some() {
        args.error(args.span(), "FILENAME and DATA exclude each other").help("state one of them");
    } else if name.is_none() && data.is_none() {
        args.error(args.span(), "required argument FILENAME is missing").help("or state DATA");
    }
    let mut fine = args.finish();
    let fields = match fields {
        None => vec![],
        Some(text) => {
            let (fields, mistakes) = field::list(&text);
            fine &= mistakes.is_empty();
            cx.diags.extend(mistakes);
            fields
        }
    };
    let (flow, flow_proto) = flow.unzip();
    let defaults = Defaults {
        protocol: flow_proto.flatten().unwrap_or(proto),
        flow,
        aggregate: None,
        old_offsets: false,
    };
    let summary = Summary {
        path: None,
        lines: data.map(|data| Lines::of(data.as_str())).filter(|_| cx.worker == 0),
        fields,
        defaults,
        checksum,
        multipacket,
        stop,
        several: None,
        waiting: None,
        complained: false,
    };
    let mut element = Replay {
        format: summary,
        shown: "<data>".into(),
        active,
        stop_asked: false,
        sampler: Sampler::new(sample),
        pace: timing.then(|| Pace::new(100)),
        burst,
        stats: PortStats::default(),
        warnings: vec![],
        wiring: Wiring::of(cx),
    };
    if let Some(name) = name {
        element.shown = name.shown(Direction::Receive);
        let path = name.path(cx, Direction::Receive);
        // A file is read by the first worker alone.
        match (cx.worker == 0).then(|| Lines::open(&path)).transpose() {
            Ok(lines) => element.format.lines = lines,
            Err(error) if allow_nonexistent && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                cx.error(name.span, format!("cannot open {}: {error}", element.shown));
                return None;
            }
        }
        if !files::record_file(cx, &path, Direction::Receive, name.span) {
            return None;
        }
        element.format.path = Some(path);
    }
    fine.then(|| BoxElement::opaque(element))
}

/// `SRC SPORT DST DPORT [PROTO]`, each perhaps `-`.
fn flow_id(text: &Spanned, _names: &dyn click::config::Names) -> parse::Parsed<(Flow, Option<u8>)> {
    let words: Vec<Spanned> =
        split_words(text).into_iter().filter(|word| !word.text.starts_with('!')).collect();
    let wrong = || Diagnostic::error(text.span, "expected `SRC SPORT DST DPORT [PROTO]`");
    let word = |at: usize| words.get(at).map_or("", Spanned::as_str);
    let address = |at: usize| match word(at) {
        "-" => Ok(std::net::Ipv4Addr::UNSPECIFIED),
        text => text.parse().map_err(|_| wrong()),
    };
    let port = |at: usize| match word(at) {
        "-" => Ok(0),
        text => text.parse::<u16>().map_err(|_| wrong()),
    };
    let proto = match word(4) {
        "" => None,
        text => Some(protocol_number(text).ok_or_else(wrong)?),
    };
    let flow = Flow { addresses: [address(0)?, address(2)?], ports: [port(1)?, port(3)?] };
    Ok((flow, proto))
}

impl FromSummary {
    fn complain(&mut self, message: &str) {
        let number = self.format.lines.as_ref().map_or(0, Lines::number);
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(format!("{}:{number}: {message}", self.shown));
        }
    }

    /// Processes a line that starts with `!`.
    fn bang(&mut self, line: &str) {
        let line = Spanned::derived(line, Span::NONE);
        let words = split_words(&line);
        let Some((kind, rest)) = words.split_first() else { return };
        let text = line.slice(kind.text.len()..line.text.len()).trim();
        let one = rest.first().map_or("", Spanned::as_str);
        match kind.as_str() {
            "!data" | "!contents" => {
                let (fields, mistakes) = field::list(&text);
                for mistake in mistakes {
                    self.complain(&format!("{}; it is left out", mistake.message));
                }
                if fields.is_empty() {
                    self.complain("no fields are named");
                }
                self.format.fields = fields;
            }
            "!flowid" => match flow_id(&text, &NoNames) {
                Ok((flow, proto)) => {
                    self.format.defaults.flow = Some(flow);
                    self.format.defaults.protocol = proto.unwrap_or(self.format.defaults.protocol);
                }
                Err(mistake) => self.complain(&mistake.message),
            },
            "!proto" => match protocol_number(one) {
                Some(proto) => self.format.defaults.protocol = proto,
                None => self.complain("`!proto` takes a protocol"),
            },
            "!aggregate" => match one.parse() {
                Ok(number) => self.format.defaults.aggregate = Some(number),
                Err(_) => self.complain("`!aggregate` takes a number"),
            },
            "!binary" => {
                self.complain("this is a binary dump, which is not read; write it again as text");
                self.format.lines = None;
            }
            "!IPSummaryDump" => self.format.defaults.old_offsets = one == "1.0",
            _ => {}
        }
    }

    /// The packet of a line; `None`, with one warning, if no field can be read.
    fn parse(&mut self, line: &str) -> Option<Built> {
        let words = split_words(&Spanned::derived(line, Span::NONE));
        let (mut draft, mut good) = (Draft::new(), 0);
        for (field, word) in self.format.fields.iter().zip(&words) {
            if word.text != "-" && draft.set(*field, word.as_str(), &self.format.defaults).is_some() {
                good += usize::from(*field != Field::None);
            }
        }
        if good > 0 {
            return Some(draft.build(&self.format.defaults, self.format.checksum));
        }
        if !std::mem::replace(&mut self.format.complained, true) {
            let none = self.format.fields.is_empty();
            let message =
                if none { "there is no `!data` line in front of it" } else { "no field can be read" };
            self.complain(message);
        }
        None
    }

    /// The next packet of the file; reads at most `limit` lines.
    fn next_line(&mut self, limit: &mut usize) -> Option<Built> {
        while *limit > 0 {
            *limit -= 1;
            let line = match self.format.lines.as_mut()?.read() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.format.lines = None;
                    return None;
                }
                Err(message) => {
                    // After an error of the system, every further read would fail, too.
                    let too_long = message.starts_with("the line");
                    self.complain(&message);
                    if !too_long {
                        self.format.lines = None;
                    }
                    continue;
                }
            };
            match line.as_bytes() {
                [] | [b'#', ..] => {}
                // A single `!` is the field `ip_frag` of a packet that must not be fragmented.
                [b'!', b'a'..=b'z' | b'A'..=b'Z', ..] => self.bang(&line),
                _ if line.trim().is_empty() => {}
                _ => {
                    if let Some(built) = self.parse(&line) {
                        return Some(built);
                    }
                }
            }
        }
        None
    }

    /// The next packet.
    fn next(&mut self, limit: &mut usize) -> Option<Built> {
        loop {
            let built = match self.format.several.take() {
                Some(several) => self.one_of(several),
                None => {
                    let built = self.next_line(limit)?;
                    if self.format.multipacket && built.count > 1 {
                        let several = self.divide(built);
                        self.one_of(several)
                    } else {
                        built
                    }
                }
            };
            if self.sampler.picks() {
                return Some(built);
            }
            *limit = limit.checked_sub(1)?;
        }
    }

    /// Divides the length and the time of a line among its packets.
    fn divide(&self, built: Built) -> Several {
        let len = built.bytes.len();
        let total = len + built.extra_bytes as usize;
        let share_bytes = (total / built.count as usize).max(len);
        let rest_bytes = total.saturating_sub(share_bytes * (built.count as usize - 1)).max(len);
        let (first_ns, end_ns) = (built.first_timestamp_ns, built.timestamp_ns);
        let step_ns =
            if first_ns == 0 { 0 } else { end_ns.saturating_sub(first_ns) / u64::from(built.count - 1) };
        let start_ns = if first_ns == 0 { end_ns } else { first_ns };
        let built = Built { timestamp_ns: start_ns, ..built };
        Several { left: built.count, built, share_bytes, rest_bytes, step_ns, end_ns }
    }

    fn one_of(&mut self, mut several: Several) -> Built {
        let last = several.left <= 1;
        let length = if last { several.rest_bytes } else { several.share_bytes };
        let mut one = Built { count: 1, ..several.built.clone() };
        if last {
            one.timestamp_ns = several.end_ns;
        }
        one.extra_bytes = (length - one.bytes.len()) as u32;
        if let Some((net, trans)) = one.ip {
            let ip_len = (length - net).min(0xffff);
            put(&mut one.bytes, net + 2, &(ip_len as u16).to_be_bytes());
            if one.bytes[net + 9] == protocol::UDP && one.bytes[net + 6] & 0x1f == 0 {
                put(&mut one.bytes, trans + 4, &((ip_len + net - trans) as u16).to_be_bytes());
            }
            if self.format.checksum {
                set_checksums(&mut one.bytes, net, ip_len);
            }
        }
        several.built.timestamp_ns += several.step_ns;
        several.left -= 1;
        if several.left > 0 {
            self.format.several = Some(several);
        }
        one
    }

    /// Makes the packet and sets its headers, timestamp and annotations.
    fn packet(&self, built: &Built, work: &mut Work<'_>) -> Option<Packet> {
        let mut packet = shm::chain::write_frame(work.pool(), &built.bytes)?;
        if built.has_ethernet {
            packet.mac = packet.data();
        }
        if let Some((net, trans)) = built.ip {
            packet.net = packet.data() + net as u16;
            packet.trans = packet.data() + trans as u16;
            let destination = built.bytes.get(net + 16..net + 20).and_then(|bytes| bytes.first_chunk());
            let destination = destination.map_or(0, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes));
            DST_IP.store(&mut packet.anno, destination.into());
        }
        packet.timestamp_ns = built.timestamp_ns;
        for (anno, value) in [
            (FIRST_TIMESTAMP, built.first_timestamp_ns),
            (EXTRA_PACKETS, u64::from(built.count - 1)),
            (EXTRA_LENGTH, u64::from(built.extra_bytes)),
            (PAINT, u64::from(built.paint)),
            (AGGREGATE, u64::from(built.aggregate)),
        ] {
            anno.store(&mut packet.anno, value);
        }
        Some(packet)
    }
}

impl Play for FromSummary {
    const HANDLERS: &'static [Row<Self>] = HANDLERS;
    const REASONS: &'static [&'static str] = &[];

    fn play(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let received_bytes = self.stats.rx_bytes;
        let (burst, mut limit) = (work.burst_or(self.burst).min(vector.room()), LINES_AT_A_TIME);
        while vector.len() < burst {
            let Some(built) = self.format.waiting.take().or_else(|| self.next(&mut limit)) else { break };
            let due = self.pace.as_mut().is_none_or(|pace| pace.is_due(built.timestamp_ns, work));
            let packet = if due { self.packet(&built, work) } else { None };
            let Some(packet) = packet else {
                self.format.waiting = Some(built);
                break;
            };
            self.stats.rx_packets += 1;
            self.stats.rx_bytes += u64::from(packet.total());
            vector.push(&packet);
        }
        work.count_received(vector.len(), self.stats.rx_bytes - received_bytes);
        if !vector.is_empty() {
            return Progress::Worked;
        }
        let is_over =
            self.format.lines.is_none() && self.format.several.is_none() && self.format.waiting.is_none();
        if is_over && self.format.stop {
            self.active = false;
            work.stop();
        }
        match (is_over, self.format.waiting.is_some()) {
            (true, _) => Progress::Finished,
            (false, true) => Progress::Idle,
            (false, false) => Progress::Worked,
        }
    }

    fn is_open(&self) -> bool {
        self.format.path.is_some()
    }
}

const HANDLERS: &[Row<FromSummary>] = &[
    FromSummary::SAMPLING_PROB,
    FromSummary::ACTIVE,
    Row::read("encap", |_, _| Some("IP".into())),
    FromSummary::FILENAME,
    Row::read("filesize", |dump, _| number_text(dump.format.path.as_deref().and_then(file_bytes))),
    Row::read("filepos", |dump, _| number_text(dump.format.lines.as_ref().map(Lines::position))),
    FromSummary::STOP,
];
