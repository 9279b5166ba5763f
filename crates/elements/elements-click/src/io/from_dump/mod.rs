//! `FromDump`: reads packets from a capture file.

mod capture_source;
mod window;

use super::dump_file::FileName;
use super::replay::{Pace, Play, Replay, SAMPLING_SHIFT, Sampler, Wiring, number_text};
use capture_source::{CaptureSource, Put};
use click::config::{NoNames, parse, split_words};
use diag::Spanned;
use element::value::written;
use element::{BoxElement, Class, Configure, Direction, Element, PortCodes, Progress, Row, StateScope, Work};
use elements::io::link_type;
use port::{LINK_ETHERNET, PortStats};
use shm::Packet;
use shm::burst::Vector;
use shm::pool::Pool;
use window::{Side, Window, WindowEdge};

/// The class.
pub const CLASS: Class = Class {
    name: "FromDump",
    summary: "reads packets from a capture file",
    page: "\
# FromDump(FILENAME [, TIMING, keywords])

Reads packets from a pcap or pcapng file, as `tcpdump -w` and ToDump write them, and pushes them. The file may be
compressed by gzip or Zstandard.

- **ports**: no input; 1 or 2 push outputs. With FORCE_IP, packets that are not IP leave by the second
- **arguments**: `FILENAME` (`-`: the standard input); `TIMING` (bool, default false): keep the times
  between packets; `STOP` (bool, default false): end the run at the capture's end or at END;
  `ACTIVE` (bool, default true); `SAMPLE` (0 to 1, default 1): emit each packet with that probability;
  `FORCE_IP` (bool, default false): emit only IP packets, with header and destination annotations set;
  `START` (seconds since the epoch) or `START_AFTER` (seconds after the first packet): emit packets from
  then on; `END`, `END_AFTER` (after the first packet) or `INTERVAL` (after the first packet emitted): stop
  at the first packet at or behind that time; `END_CALL` (handler and value): write that handler at the end
  instead of stopping; `FILEPOS` (bytes): start at the frame that begins there; `ACCELERATION` (percent,
  default 100): speed for TIMING; `BURST` (packets at a time, default: the run's). `MMAP` and `PRELOAD` are
  accepted and have no effect
- **annotations**: timestamp; the extra length annotation holds the bytes that the capture cut off; MAC
  header, or network and transport header for raw IP captures and with FORCE_IP, then with the destination
  address annotation
- **handlers**: `count`, `sampling_prob`, `encap`, `filename`, `filesize`, `packet_filepos` (read);
  `active`, `filepos` (read/write); `reset_counts`, `reset_timing`, `extend_interval`, `stop` (write)
- **drop reasons**: `not-ip`: FORCE_IP is set and the second output is not wired
- **difference**: sampling picks the same packets in every run, so
  that runs are comparable. `FILEPOS` and the `filepos` handler reject a position where no frame starts,
  where Click emits garbage; they do not work with pcapng and compressed
  files. Nanoseconds are kept. Files compressed by bzip2 are not read: pipe them into `-`. Of a damaged capture, every whole packet before the damage is
  emitted; the run's report states the damage and its byte. At the capture's end the source is finished:
  `active` and `extend_interval` restart it only if END_CALL kept it from ending
",
    codes: PortCodes::new("0/1-2", "a/ah"),
    state: StateScope::OneWorker,
    make,
};

const NOT_IP: usize = 0;
/// The most frames that one call reads, so that frames before the window do not block the worker.
const PASSED_AT_A_TIME: usize = 4_096;

/// The action at the end of the window or the capture.
#[derive(Clone, PartialEq, Eq, Debug)]
enum AtEnd {
    /// The source becomes inactive.
    Rest,
    /// The run ends.
    Stop,
    /// A handler is written: with `own`, one of the element itself.
    Write { own: bool, handler: String, value: String },
}

type FromDump = Replay<Dump>;

struct Dump {
    /// `None` except on the first worker.
    source: Option<CaptureSource>,
    link_type: u32,
    force_ip: bool,
    window: Window,
    at_end: AtEnd,
    second_output: bool,
    ended: bool,
    count: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let name = args.mandatory_positional("FILENAME", FileName::parse);
    let timing = args.positional("TIMING", parse::bool).unwrap_or(false);
    let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let sample = args.keyword("SAMPLE", parse::fixed_point(SAMPLING_SHIFT)).unwrap_or(1 << SAMPLING_SHIFT);
    let force_ip = args.keyword("FORCE_IP", parse::bool).unwrap_or(false);
    // A time of 0 counts as none, as in Click.
    let mut time = |keyword| args.keyword(keyword, parse::seconds_ns).filter(|time_ns| *time_ns > 0);
    let (start, start_after) = (time("START"), time("START_AFTER"));
    let (end, end_after, interval) = (time("END"), time("END_AFTER"), time("INTERVAL"));
    let end_call = args.keyword("END_CALL", handler_call);
    let place = args.keyword("FILEPOS", |text, names| parse::u64(text, names).map(|at| (at, text.span)));
    let percent = args.keyword("ACCELERATION", parse::int_in(1..=1_000_000)).unwrap_or(100);
    let burst = args.keyword("BURST", parse::int_in(1..=256)).map(|burst| burst as usize);
    for keyword in ["MMAP", "PRELOAD"] {
        let _ = args.keyword(keyword, parse::any);
    }
    if start.is_some() && start_after.is_some() {
        args.error(args.span(), "START and START_AFTER exclude each other").help("state one of them");
    }
    if [end, end_after, interval].iter().flatten().count() > 1 {
        let message = "END, END_AFTER and INTERVAL exclude each other";
        args.error(args.span(), message).help("state one of them");
    }
    if stop && end_call.is_some() {
        args.error(args.span(), "STOP and END_CALL exclude each other").help("state one of them");
    }
    let mut fine = args.finish();
    let at_end = match end_call {
        None if stop => AtEnd::Stop,
        None => AtEnd::Rest,
        Some(call) => resolve(cx, call).unwrap_or_else(|| {
            fine = false;
            AtEnd::Rest
        }),
    };
    if sample > 1 << SAMPLING_SHIFT {
        cx.diags.warning(cx.config.span, "SAMPLE is larger than 1 and counts as 1");
    } else if sample == 0 {
        cx.diags.warning(cx.config.span, "SAMPLE is 0: no packets will be emitted");
    }
    let name = name?;
    let begin =
        start.map(WindowEdge::At).or(start_after.map(WindowEdge::AfterFirst)).unwrap_or(WindowEdge::Open);
    let finish = end.map(WindowEdge::At).or(end_after.map(WindowEdge::AfterFirst));
    let finish = finish.or(interval.map(WindowEdge::AfterStart)).unwrap_or(WindowEdge::Open);
    let mut dump = Dump {
        source: None,
        link_type: LINK_ETHERNET,
        force_ip,
        window: Window::new(begin, finish),
        at_end,
        second_output: cx.shape.outputs > 1,
        ended: false,
        count: 0,
    };
    // A file is read by the first worker alone.
    if cx.worker == 0 {
        let mut source = name.open(cx, Direction::Receive, CaptureSource::open)?;
        dump.link_type = source.link_type().unwrap_or(LINK_ETHERNET);
        if force_ip && !link_type::has_known_ip(dump.link_type) {
            let link = link_type::name(dump.link_type);
            let message = format!("FORCE_IP knows nothing of packets of link type {link}");
            cx.error(name.span, message).help("leave FORCE_IP out, and strip the link header by elements");
            return None;
        }
        dump.force_ip |= link_type::is_raw_ip(dump.link_type);
        if let Some((at, span)) = place.filter(|(at, _)| *at > 0) {
            cx.accept(span, source.seek(at))?;
        }
        dump.source = Some(source);
    }
    let element = Replay {
        format: dump,
        shown: name.shown(Direction::Receive),
        active,
        stop_asked: false,
        sampler: Sampler::new(sample),
        pace: timing.then(|| Pace::new(percent as u64)),
        burst,
        stats: PortStats::default(),
        warnings: vec![],
        wiring: Wiring::of(cx),
    };
    fine.then(|| BoxElement::opaque(element))
}

/// `element.handler value`.
fn handler_call(text: &Spanned, names: &dyn click::config::Names) -> parse::Parsed<(Spanned, String)> {
    let words = split_words(text);
    let first = words.first().cloned().unwrap_or_else(|| text.clone());
    parse::handler(&first, names)?;
    let value = text.text.get(first.text.len()..).unwrap_or("").trim().to_string();
    Ok((first, value))
}

/// Resolves the element of the handler; records a mistake if there is none.
fn resolve(cx: &mut Configure<'_>, (call, value): (Spanned, String)) -> Option<AtEnd> {
    let handler = parse::handler(&call, &NoNames).ok()?;
    let own = match handler.element {
        None => true,
        Some(element) => cx.element(&element)?.0 == cx.name,
    };
    let handler = if own { handler.handler.text } else { call.text };
    Some(AtEnd::Write { own, handler, value })
}

/// The result of [`FromDump::receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// There may be more now.
    More,
    /// There may be more later.
    Later,
    /// The window has ended.
    Behind,
    /// The capture has ended.
    Over,
}

impl FromDump {
    /// Reads frames into fresh packets. Returns how many leave by output 0, and whether there are more.
    /// Packets that are not IP were emitted or dropped already.
    fn receive(&mut self, free: &mut [Packet], work: &mut Work<'_>) -> (usize, Next) {
        let dump = &mut self.format;
        let Some(source) = &mut dump.source else { return (0, Next::Over) };
        let mut room = work.pool().alloc(free);
        let mut next = if room == 0 && !free.is_empty() { Next::Later } else { Next::More };
        let (mut filled, mut received, mut received_bytes) = (0, 0, 0);
        for _ in 0..PASSED_AT_A_TIME {
            let Some(place) = free.get_mut(filled).filter(|_| filled < room) else { break };
            let frame = match source.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    next = Next::Over;
                    break;
                }
                Err(error) => {
                    self.warnings.push(error.to_string());
                    next = Next::Over;
                    break;
                }
            };
            if frame.link_type != dump.link_type {
                self.stats.rx_dropped.errors += 1;
                continue;
            }
            let side = dump.window.side(frame.timestamp_ns);
            let due = side != Side::Inside
                || self.pace.as_mut().is_none_or(|pace| pace.is_due(frame.timestamp_ns, work));
            if side == Side::Behind || !due {
                source.unread();
                next = if due { Next::Behind } else { Next::Later };
                break;
            }
            if side == Side::Before || !self.sampler.picks() {
                continue;
            }
            let bytes = frame.bytes.len() as u64;
            match capture_source::put(work.pool(), place, &frame) {
                Put::Done => {}
                Put::TooLong => {
                    self.stats.rx_dropped.too_long += 1;
                    continue;
                }
                Put::Later => {
                    source.unread();
                    next = Next::Later;
                    break;
                }
            }
            received += 1;
            received_bytes += bytes;
            self.stats.rx_bytes += bytes;
            if !link_type::is_raw_ip(dump.link_type) {
                place.mac = place.data();
            }
            if !dump.force_ip || link_type::mark_ip(place, dump.link_type) {
                filled += 1;
                continue;
            }
            if dump.second_output {
                work.emit(1, place)
            } else {
                work.drop(NOT_IP, &[*place])
            }
            // The last fresh packet takes its place.
            room -= 1;
            free.swap(filled, room);
        }
        work.pool().free_all(free.get(filled..room).unwrap_or_default());
        work.count_received(received, received_bytes);
        self.stats.rx_packets += received as u64;
        dump.count += filled as u64;
        if received > 0 { (filled, Next::More) } else { (0, next) }
    }

    /// Carries out the action at the end.
    fn end(&mut self, work: &mut Work<'_>) {
        match self.format.at_end.clone() {
            AtEnd::Rest => self.active = false,
            AtEnd::Stop => {
                self.active = false;
                work.stop();
            }
            AtEnd::Write { own, handler, value } => {
                let written = match own {
                    true => self.handlers().write(&handler, &value, &mut []),
                    false => work.write_handler(&handler, &value),
                };
                if let Err(message) = written {
                    self.warnings.push(format!("END_CALL {handler}: {message}"));
                }
            }
        }
        if std::mem::take(&mut self.stop_asked) {
            work.stop();
        }
    }

    /// Warns of the frames that were left out.
    fn tell_losses(&mut self) {
        let lost = self.stats.rx_dropped;
        let kinds = [
            (lost.too_long, "longer than any packet can be"),
            (lost.errors, "of another link type than the first"),
        ];
        for (frames, what) in kinds.into_iter().filter(|(frames, _)| *frames > 0) {
            self.warnings.push(format!("{}: {frames} frames were {what} and were left out", self.shown));
        }
    }
}

impl Play for FromDump {
    const HANDLERS: &'static [Row<Self>] = HANDLERS;
    const REASONS: &'static [&'static str] = &["not-ip"];

    fn play(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.format.ended {
            return Progress::Finished;
        }
        if !self.active {
            return Progress::Idle;
        }
        let burst = work.burst_or(self.burst);
        let mut next = Next::More;
        vector.fill(burst, |free| {
            let (filled, then) = self.receive(free, work);
            next = then;
            filled
        });
        match next {
            Next::More => Progress::Worked,
            Next::Later => Progress::Idle,
            Next::Behind => {
                self.format.window.pass_end();
                self.end(work);
                self.format.ended = !self.active;
                if self.format.ended { Progress::Finished } else { Progress::Worked }
            }
            Next::Over => {
                self.format.ended = true;
                self.tell_losses();
                self.end(work);
                Progress::Finished
            }
        }
    }

    fn is_open(&self) -> bool {
        self.format.source.is_some()
    }
}

impl FromDump {
    fn number(&self, of: fn(&CaptureSource) -> Option<u64>) -> Option<String> {
        number_text(self.format.source.as_ref().and_then(of))
    }

    fn seek(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        let at = written(value, parse::u64).map_err(|_| "a place in bytes is expected")?;
        self.format.source.as_mut().ok_or("another worker reads the file")?.seek(at)
    }
}

const HANDLERS: &[Row<FromDump>] = &[
    Row::sum("count", |dump, _| Some(dump.format.count.to_string())),
    Row::button("reset_counts", |dump, _| dump.format.count = 0),
    FromDump::SAMPLING_PROB,
    FromDump::ACTIVE,
    Row::read("encap", |dump, _| Some(link_type::name(dump.format.link_type))),
    FromDump::FILENAME,
    Row::read("filesize", |dump, _| dump.number(CaptureSource::file_bytes)),
    Row::read_write("filepos", |dump, _| dump.number(|source| source.places().0), FromDump::seek),
    Row::read("packet_filepos", |dump, _| dump.number(|source| source.places().1)),
    Row::write("extend_interval", |dump, value, _| {
        dump.format.window.extend(written(value, parse::seconds_ns).map_err(|_| "a time is expected")?);
        dump.active = true;
        Ok(())
    }),
    Row::button("reset_timing", |dump, _| {
        dump.format.window.reset();
        dump.pace.iter_mut().for_each(Pace::reset);
    }),
    FromDump::STOP,
];
