//! `ICMPPingSource`: sends echo requests, and measures the replies.

use click::config::{Args, parse};
use element::value::{set, written};
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use elements::ip::header::{from_network, transport_offset};
use packet::Access;
use packet::anno;
use packet::checksum::{self, ICMP_CHECK};
use packet::view::Ipv4;
use packet::view::icmp::{ECHO, ECHO_REPLY};
use packet::view::protocol::ICMP;
use shm::Packet;
use shm::burst::{Batch, Vector};
use shm::bytes::PacketBytes;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "ICMPPingSource",
    summary: "periodically sends ICMP echo requests",
    page: "\
# ICMPPingSource(SRC, DST [, keywords INTERVAL, IDENTIFIER, DATA, LIMIT, ACTIVE, VERBOSE])

Makes ICMP echo requests as IP packets, every INTERVAL one. Replies that come to its input are matched with them.

- **ports**: 0 or 1 push input, 1 output, push or pull. A request is made for each pull, whatever the INTERVAL
- **arguments**: `SRC`, `DST`: addresses; `INTERVAL` (seconds, default 1); `IDENTIFIER` (default 0); `DATA`: the
  payload; `LIMIT` (default -1): how many it sends, negative for no limit; `ACTIVE` (default true); `VERBOSE` (default
  true): prints a line for each reply, and a summary at the end of the run. Identifier and sequence number are written
  in the machine's byte order, as Click does on Linux
- **annotations**: sets the timestamp, `DST_IP`, the network and the transport header; needs the network and the
  transport header of replies, and reads their timestamp
- **handlers**: `count` (read); `active`, `src`, `dst`, `limit`, `interval` (read/write); `reset_counts` (write);
  with an input `summary`, `rtt_min`, `rtt_avg`, `rtt_max` (read)
- **drop reasons**: `reply`: a reply, which the element takes; `no-reply`: any other packet at its input
- **workers**: one worker sends and receives
",
    codes: PortCodes { ports: "0-1/1", processing: "h/a", flow: "x/y" },
    state: StateScope::OneWorker,
    make,
};

element::reasons!(REPLY = "reply", NO_REPLY = "no-reply");

const IP_BYTES: usize = 20;
const ICMP_BYTES: usize = 8;
const TTL: u8 = 200;
/// The longest payload.
const MOST_BYTES: usize = 65_535 - IP_BYTES - ICMP_BYTES;

/// A request, by its sequence number.
#[derive(Clone, Copy, Default)]
struct Request {
    /// 0 if none was sent.
    sent_ns: u64,
    replied: bool,
}

/// What replies tell.
struct Replies {
    /// By sequence number.
    requests: Vec<Request>,
    received: u64,
    duplicates: u64,
    /// Of the replies with a timestamp, in microseconds.
    timed: u64,
    min_us: u64,
    max_us: u64,
    sum_us: u64,
    square_sum_us: u128,
}

struct PingSource {
    name: String,
    src: u32,
    dst: u32,
    identifier: u16,
    interval_ns: u64,
    data: Vec<u8>,
    /// Negative for no limit.
    limit: i64,
    active: bool,
    verbose: bool,
    count: u64,
    next_ns: u64,
    /// If it has an input.
    replies: Option<Replies>,
    pushes: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (name, receives) = (cx.name.to_string(), cx.shape.inputs > 0);
    let pushes = cx.services.queues_near(cx.name).1;
    cx.opaque(|args| {
        let replies = receives.then(Replies::none);
        Some(PingSource { name, replies, pushes, ..read(args)? })
    })
}

fn read(args: &mut Args<'_>) -> Option<PingSource> {
    let src = args.mandatory_positional("SRC", parse::ip4);
    let dst = args.mandatory_positional("DST", parse::ip4);
    let interval_ns = args.keyword("INTERVAL", parse::seconds_ns).unwrap_or(1_000_000_000);
    let identifier = args.keyword("IDENTIFIER", parse::u16).unwrap_or(0);
    let data = args.keyword("DATA", parse::bytes).unwrap_or_default();
    let limit = args.keyword("LIMIT", parse::i64).unwrap_or(-1);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let verbose = args.keyword("VERBOSE", parse::bool).unwrap_or(true);
    let span = args.span();
    if data.len() > MOST_BYTES {
        args.error(span, format!("DATA has {} bytes, of which at most {MOST_BYTES} fit", data.len()));
    }
    Some(PingSource {
        name: String::new(),
        src: src?.into(),
        dst: dst?.into(),
        identifier,
        interval_ns,
        data,
        limit,
        active,
        verbose,
        count: 0,
        next_ns: 0,
        replies: None,
        pushes: true,
    })
}

impl Replies {
    fn none() -> Replies {
        let requests = vec![Request::default(); 1 << 16];
        Replies {
            requests,
            received: 0,
            duplicates: 0,
            timed: 0,
            min_us: 0,
            max_us: 0,
            sum_us: 0,
            square_sum_us: 0,
        }
    }

    /// Counts the reply to a request. Its time in microseconds, 0 if that is not known; `None` if there was no
    /// such request.
    fn count(&mut self, sequence: u16, timestamp_ns: u64) -> Option<u64> {
        let request = self.requests.get_mut(usize::from(sequence)).filter(|request| request.sent_ns > 0)?;
        self.duplicates += u64::from(std::mem::replace(&mut request.replied, true));
        self.received += 1;
        if timestamp_ns == 0 {
            return Some(0);
        }
        let time_us = timestamp_ns.saturating_sub(request.sent_ns) / 1000;
        self.min_us = if self.timed == 0 { time_us } else { self.min_us.min(time_us) };
        self.max_us = self.max_us.max(time_us);
        self.sum_us += time_us;
        self.square_sum_us += u128::from(time_us) * u128::from(time_us);
        self.timed += 1;
        Some(time_us)
    }

    fn average_us(&self) -> u64 {
        self.sum_us / self.timed.max(1)
    }

    fn summary(&self, sent: u64) -> String {
        let replied = self.received - self.duplicates;
        let mut text = format!("{sent} packets transmitted, {replied} received");
        if self.duplicates > 0 {
            text += &format!(", +{} duplicates", self.duplicates);
        }
        if let Some(lost) = (sent.saturating_sub(replied) * 100).checked_div(sent) {
            text += &format!(", {lost}% packet loss");
        }
        if self.timed > 0 {
            let average = self.average_us();
            let squares = (self.square_sum_us / u128::from(self.timed)) as u64;
            let deviation = (squares.saturating_sub(average * average)).isqrt();
            let times = [self.min_us, average, self.max_us, deviation].map(milliseconds).join("/");
            text += &format!("\nrtt min/avg/max/mdev = {times}");
        }
        text
    }
}

/// Microseconds as milliseconds with three decimals.
fn milliseconds(time_us: u64) -> String {
    format!("{}.{:03}", time_us / 1000, time_us % 1000)
}

/// Microseconds as seconds.
fn seconds(time_us: u64) -> String {
    element::value::time_text(time_us.saturating_mul(1000))
}

impl PingSource {
    /// Requests that it may still send.
    fn left(&self) -> u64 {
        if !self.active {
            return 0;
        }
        u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count))
    }

    /// Makes the next request; `None` if the pool is empty.
    fn next(&mut self, work: &mut Work<'_>) -> Option<Packet> {
        let length = IP_BYTES + ICMP_BYTES + self.data.len();
        // From 1 on: 0 is no identification.
        let number = (self.count % 0xffff) as u16 + 1;
        let mut frame = vec![0x45, 0];
        frame.extend((length as u16).to_be_bytes());
        frame.extend(number.to_be_bytes());
        frame.extend([0, 0, TTL, ICMP, 0, 0]);
        frame.extend(self.src.to_be_bytes());
        frame.extend(self.dst.to_be_bytes());
        frame.extend([ECHO, 0, 0, 0]);
        frame.extend(self.identifier.to_ne_bytes());
        frame.extend(number.to_ne_bytes());
        frame.extend(&self.data);
        let summed = checksum::set_ipv4_header(frame.as_mut_slice(), 0, IP_BYTES);
        let sum = checksum::icmp(frame.as_slice(), IP_BYTES, length - IP_BYTES)?;
        debug_assert!(summed, "the frame holds the header");
        frame[IP_BYTES + ICMP_CHECK..][..2].copy_from_slice(&sum.to_be_bytes());
        let mut packet = work.make(&frame)?;
        (packet.net, packet.trans) = (packet.data(), packet.data() + IP_BYTES as u16);
        packet.timestamp_ns = work.now_ns();
        anno::DST_IP.store(&mut packet.anno, self.dst.into());
        if let Some(replies) = &mut self.replies {
            replies.requests[usize::from(number)] = Request { sent_ns: packet.timestamp_ns, replied: false };
        }
        self.count += 1;
        Some(packet)
    }

    /// Takes a reply: the line to print for it. `None` if it is none to this element.
    fn receive(&mut self, packet: &Packet) -> Option<String> {
        let (from_net, at) = (from_network(packet)?, transport_offset(packet)?);
        let (bytes, ip) = (PacketBytes::new(&from_net), Ipv4::at(0));
        let [kind, _, _, _, id0, id1, sequence0, sequence1] = bytes.get(at)?;
        if ip.protocol(&bytes)? != ICMP || kind != ECHO_REPLY || [id0, id1] != self.identifier.to_ne_bytes() {
            return None;
        }
        let sequence = u16::from_ne_bytes([sequence0, sequence1]);
        let time_us = self.replies.as_mut()?.count(sequence, packet.timestamp_ns)?;
        let payload = usize::from(ip.total_len(&bytes)?).saturating_sub(at + ICMP_BYTES);
        let (src, ttl, time) = (ip.src(&bytes)?, ip.ttl(&bytes)?, milliseconds(time_us));
        let name = &self.name;
        Some(format!("{name}: {payload} bytes from {src}: icmp_seq={sequence} ttl={ttl} time={time} ms"))
    }

    fn summary(&self) -> Option<String> {
        Some(self.replies.as_ref()?.summary(self.count))
    }
}

impl Opaque for PingSource {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            let line = self.receive(batch.packet(index));
            batch.drop(index, if line.is_some() { REPLY } else { NO_REPLY });
            if let Some(line) = line.filter(|_| self.verbose) {
                work.print(&line);
            }
        }
    }

    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        let most = most.min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        into.push_from(most, || self.next(work))
    }
}

impl Task for PingSource {
    /// Of a source whose packets are pulled, it only keeps the run going.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let now_ns = work.now_ns();
        if !self.pushes || self.left() == 0 {
            return Progress::Idle;
        }
        if now_ns < self.next_ns {
            work.wake_at(self.next_ns);
            return Progress::Idle;
        }
        let made = vector.push_from(1, || self.next(work));
        if made == 0 {
            return Progress::Idle;
        }
        self.next_ns = now_ns.saturating_add(self.interval_ns);
        Progress::Worked
    }

    fn works_alone(&self) -> bool {
        true
    }
}

impl Element for PingSource {
    element::facts!(writes: false, reasons: REASONS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn start(&mut self, work: &mut Work<'_>) {
        self.next_ns = work.now_ns().saturating_add(self.interval_ns);
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        if let Some(summary) = self.summary().filter(|_| self.verbose && self.count > 0) {
            work.print(&format!("{}: {summary}", self.name));
        }
    }

    fn handlers(&mut self) -> element::Handlers<'_> {
        let rows = if self.replies.is_some() { HANDLERS } else { &HANDLERS[..ALWAYS] };
        element::Handlers::of(self, rows)
    }
}

/// A handler of a time that replies took.
const fn time(name: &'static str, of: element::handler::Read<PingSource>) -> Row<PingSource> {
    Row::read(name, of)
}

fn show(address: u32) -> Option<String> {
    Some(Ipv4Addr::from(address).to_string())
}

/// The handlers that it has without an input, which are the first.
const ALWAYS: usize = 7;
const HANDLERS: &[Row<PingSource>] = &[
    Row::sum("count", |source, _| Some(source.count.to_string())),
    element::field!(active, parse::bool),
    Row::read_write(
        "src",
        |source, _| show(source.src),
        |source, value, _| {
            source.src = written(value, parse::ip4)?.into();
            Ok(())
        },
    ),
    Row::read_write(
        "dst",
        |source, _| show(source.dst),
        |source, value, _| {
            source.dst = written(value, parse::ip4)?.into();
            Ok(())
        },
    ),
    element::field!(limit, parse::i64),
    Row::read_write(
        "interval",
        |source, _| Some(element::value::time_text(source.interval_ns)),
        |source, value, _| set(&mut source.interval_ns, value, parse::seconds_ns),
    ),
    Row::button("reset_counts", |source, _| {
        source.count = 0;
        source.replies = source.replies.as_ref().map(|_| Replies::none());
    }),
    Row::read("summary", |source, _| source.summary()),
    time("rtt_min", |source, _| Some(seconds(source.replies.as_ref()?.min_us))),
    time("rtt_avg", |source, _| Some(seconds(source.replies.as_ref()?.average_us()))),
    time("rtt_max", |source, _| Some(seconds(source.replies.as_ref()?.max_us))),
];
