//! `FromDump`: reads packets from a capture file.

mod capture_source;
mod window;

use super::dump_file::FileName;
use super::replay::{Pace, SAMPLING_SHIFT, Sampler};
use capture_source::{CaptureSource, Put};
use click::config::{NoNames, parse, split_words};
use diag::Spanned;
use element::value::written;
use element::{
    BoxElement, Class, Configure, Direction, Element, Handlers, Opaque, PortCodes, Progress, Row, StateScope,
    Task, Work,
};
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

Reads packets from a pcap or pcapng file, as `tcpdump -w` and ToDump write them, and pushes them.

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
- **difference**: output 0 is push, not agnostic. Sampling picks the same packets in every run, so
  that runs are comparable. `FILEPOS` and the `filepos` handler reject a position where no frame starts,
  where Click emits garbage; they do not work with pcapng. Nanoseconds are kept. Compressed files are not
  read: pipe them into `-`. Of a damaged capture, every whole packet before the damage is
  emitted; the run's report states the damage and its byte. At the capture's end the source is finished:
  `active` and `extend_interval` restart it only if END_CALL kept it from ending
",
    codes: PortCodes::new("0/1-2", "h/h"),
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
    /// One of the element's own handlers is written.
    WriteOwn(String, String),
    /// Another element's handler is written.
    Write(String, String),
}

struct FromDump {
    shown: String,
    /// `None` except on the first worker.
    source: Option<CaptureSource>,
    link_type: u32,
    force_ip: bool,
    window: Window,
    sampler: Sampler,
    pace: Option<Pace>,
    at_end: AtEnd,
    second_output: bool,
    active: bool,
    burst: Option<usize>,
    ended: bool,
    stop_asked: bool,
    count: u64,
    stats: PortStats,
    warnings: Vec<String>,
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
    let mut element = FromDump {
        shown: name.shown(Direction::Receive),
        source: None,
        link_type: LINK_ETHERNET,
        force_ip,
        window: Window::new(begin, finish),
        sampler: Sampler::new(sample),
        pace: timing.then(|| Pace::new(percent as u64)),
        at_end,
        second_output: cx.shape.outputs > 1,
        active,
        burst,
        ended: false,
        stop_asked: false,
        count: 0,
        stats: PortStats::default(),
        warnings: vec![],
    };
    // A file is read by the first worker alone.
    if cx.worker == 0 {
        let mut source = name.open(cx, Direction::Receive, CaptureSource::open)?;
        element.link_type = source.link_type().unwrap_or(LINK_ETHERNET);
        if force_ip && !link_type::has_known_ip(element.link_type) {
            let link = link_type::name(element.link_type);
            let message = format!("FORCE_IP knows nothing of packets of link type {link}");
            cx.error(name.span, message).help("leave FORCE_IP out, and strip the link header by elements");
            return None;
        }
        element.force_ip |= link_type::is_raw_ip(element.link_type);
        if let Some((at, span)) = place.filter(|(at, _)| *at > 0) {
            cx.accept(span, source.seek(at))?;
        }
        element.source = Some(source);
    }
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
    let Some(element) = handler.element else {
        return Some(AtEnd::WriteOwn(handler.handler.text, value));
    };
    let found = cx.services.element(cx.name, element.as_str());
    match found {
        Some((full, _)) if full == cx.name => Some(AtEnd::WriteOwn(handler.handler.text, value)),
        Some(_) => Some(AtEnd::Write(call.text, value)),
        None => {
            cx.error(element.span, format!("there is no element `{}`", element.as_str()));
            None
        }
    }
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
    /// Reads frames into fresh packets. Returns how many leave by output 0, and whether there are more. Packets that are
    /// not IP were emitted or dropped already.
    fn receive(&mut self, free: &mut [Packet], work: &mut Work<'_>) -> (usize, Next) {
        let Some(source) = &mut self.source else { return (0, Next::Over) };
        let now_ns = work.now_ns();
        let mut room = work.pool().alloc(free);
        let mut next = if room == 0 && !free.is_empty() { Next::Later } else { Next::More };
        let (mut filled, mut received) = (0, 0);
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
            if frame.link_type != self.link_type {
                self.stats.rx_dropped.errors += 1;
                continue;
            }
            let side = self.window.side(frame.timestamp_ns);
            let due = side != Side::Inside
                || self.pace.as_mut().is_none_or(|pace| pace.is_due(frame.timestamp_ns, now_ns));
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
            self.stats.rx_bytes += bytes;
            if !link_type::is_raw_ip(self.link_type) {
                place.mac = place.data();
            }
            if !self.force_ip || link_type::mark_ip(place, self.link_type) {
                filled += 1;
                continue;
            }
            if self.second_output {
                work.emit(1, place)
            } else {
                work.drop(NOT_IP, &[*place])
            }
            // The last fresh packet takes its place.
            room -= 1;
            free.swap(filled, room);
        }
        work.pool().free_all(free.get(filled..room).unwrap_or_default());
        work.count_received(received);
        self.stats.rx_packets += received as u64;
        self.count += filled as u64;
        if received > 0 { (filled, Next::More) } else { (0, next) }
    }

    /// Carries out the action at the end.
    fn end(&mut self, work: &mut Work<'_>) {
        match self.at_end.clone() {
            AtEnd::Rest => self.active = false,
            AtEnd::Stop => {
                self.active = false;
                work.stop();
            }
            AtEnd::WriteOwn(handler, value) => {
                let done = self.handlers().write(&handler, &value, &mut []);
                if let Err(message) = done {
                    self.warnings.push(format!("END_CALL {handler}: {message}"));
                }
            }
            AtEnd::Write(handler, value) => {
                if let Err(message) = work.write_handler(&handler, &value) {
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

impl Opaque for FromDump {}

impl Task for FromDump {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if std::mem::take(&mut self.stop_asked) {
            work.stop();
        }
        if self.ended {
            return Progress::Finished;
        }
        if !self.active {
            return Progress::Idle;
        }
        let burst = self.burst.unwrap_or(work.burst());
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
                self.window.pass_end();
                self.end(work);
                self.ended = !self.active;
                if self.ended { Progress::Finished } else { Progress::Worked }
            }
            Next::Over => {
                self.ended = true;
                self.tell_losses();
                self.end(work);
                Progress::Finished
            }
        }
    }
}

impl Element for FromDump {
    fn reasons(&self) -> &'static [&'static str] {
        &["not-ip"]
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }

    fn take_findings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        self.source.as_ref().map(|_| (self.shown.clone(), self.stats))
    }
}

impl FromDump {
    /// A number about the file; `-` if it is not known.
    fn number(&self, of: fn(&CaptureSource) -> Option<u64>) -> Option<String> {
        let number = self.source.as_ref().and_then(of);
        Some(number.map_or_else(|| "-".to_string(), |number| number.to_string()))
    }

    fn seek(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        let at = written(value, parse::u64).map_err(|_| "a place in bytes is expected")?;
        self.source.as_mut().ok_or("another worker reads the file")?.seek(at)
    }
}

const HANDLERS: &[Row<FromDump>] = &[
    Row::sum("count", |dump, _| Some(dump.count.to_string())),
    Row::button("reset_counts", |dump, _| dump.count = 0),
    Row::read("sampling_prob", |dump, _| Some(dump.sampler.text())),
    Row::read_write(
        "active",
        |dump, _| Some(dump.active.to_string()),
        |dump, value, _| {
            dump.active = written(value, parse::bool).map_err(|_| "`true` or `false` is expected")?;
            Ok(())
        },
    ),
    Row::read("encap", |dump, _| Some(link_type::name(dump.link_type))),
    Row::read("filename", |dump, _| Some(dump.shown.clone())),
    Row::read("filesize", |dump, _| dump.number(CaptureSource::file_bytes)),
    Row::read_write("filepos", |dump, _| dump.number(|source| source.places().0), FromDump::seek),
    Row::read("packet_filepos", |dump, _| dump.number(|source| source.places().1)),
    Row::write("extend_interval", |dump, value, _| {
        dump.window.extend(written(value, parse::seconds_ns).map_err(|_| "a time is expected")?);
        dump.active = true;
        Ok(())
    }),
    Row::button("reset_timing", |dump, _| {
        dump.window.reset();
        dump.pace.iter_mut().for_each(Pace::reset);
    }),
    Row::button("stop", |dump, _| (dump.active, dump.stop_asked) = (false, true)),
];
