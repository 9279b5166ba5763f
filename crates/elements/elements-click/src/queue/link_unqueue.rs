//! `LinkUnqueue`: delays packets as a serial link does.

use super::interval::interval_text;
use click::config::parse;
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use packet::anno::EXTRA_LENGTH;
use shm::Packet;
use shm::burst::Vector;
use std::collections::VecDeque;

/// The class.
pub const CLASS: Class = Class {
    name: "LinkUnqueue",
    summary: "link emulator",
    page: "\
# LinkUnqueue(LATENCY, BANDWIDTH)

Pulls packets, delays each as if it passed a serial link, and pushes it: by LATENCY, by its length at BANDWIDTH, and by
the packets before it on the link. A packet is pulled when the link is free for its first bit. Its timestamp is set to the
time at which it leaves.

- **ports**: 1 pull input, 1 push output
- **arguments**: `LATENCY` (seconds, or with a unit); `BANDWIDTH`: in bytes a second or with a unit (`384kbps`)
- **annotations**: reads `EXTRA_LENGTH`, sets the timestamp
- **handlers**: `latency`, `bandwidth` (bytes a second) (read/write); `size` (read): the number of packets on the link;
  `reset` (write): drops these, as writing the other two does
- **drop reasons**: `link-reset`: dropped by a handler; `link-stopped`: on the link when the run ended
- **difference**: at most 16384 packets are on the link. With several workers each has a link
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::PerWorker,
    make,
};

element::reasons!(RESET = "link-reset", STOPPED = "link-stopped");

/// The most packets on the link.
const MOST: usize = 1 << 14;
/// The shortest packet that room is made for at once.
const SHORT_BYTES: u64 = 20;

struct Link {
    latency_ns: u64,
    bytes_per_s: u64,
    /// The packets, whose timestamps are the times at which they leave.
    packets: VecDeque<Packet>,
    /// When the last bit of the last packet leaves the link.
    busy_until_ns: u64,
    /// Whether nothing waited for the link when it became free.
    is_idle: bool,
    reset: bool,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.opaque(|args| {
        let latency_ns = args.mandatory_positional("LATENCY", parse::seconds_ns);
        let bytes_per_s = args.mandatory_positional("BANDWIDTH", parse::bandwidth_bytes_per_s);
        let (latency_ns, bytes_per_s) = (latency_ns?, bytes_per_s?);
        if bytes_per_s == 0 {
            let span = args.span();
            args.error(span, "BANDWIDTH is 0: no packet would ever leave");
            return None;
        }
        Some(Link {
            latency_ns,
            bytes_per_s,
            packets: VecDeque::with_capacity(room(latency_ns, bytes_per_s)),
            busy_until_ns: 0,
            is_idle: true,
            reset: false,
            arrivals: Vector::new(),
        })
    })
}

/// Packets that are on a link at once.
fn room(latency_ns: u64, bytes_per_s: u64) -> usize {
    let at_once = u128::from(latency_ns) * u128::from(bytes_per_s) / 1_000_000_000 / u128::from(SHORT_BYTES);
    usize::try_from(at_once).unwrap_or(MOST).saturating_add(2).min(MOST)
}

impl Link {
    /// Changes the link, and drops what is on it.
    fn change(&mut self, latency_ns: u64, bytes_per_s: u64) -> Result<(), String> {
        if bytes_per_s == 0 {
            return Err("a bandwidth above 0 is expected".into());
        }
        (self.latency_ns, self.bytes_per_s, self.reset) = (latency_ns, bytes_per_s, true);
        self.packets.reserve(room(latency_ns, bytes_per_s).saturating_sub(self.packets.len()));
        Ok(())
    }

    /// Pulls packets while the link is free for their first bits.
    fn fill(&mut self, work: &mut Work<'_>) -> bool {
        let now_ns = work.now_ns();
        let first_bit_ns = now_ns.saturating_add(self.latency_ns);
        let mut pulled = false;
        while first_bit_ns >= self.busy_until_ns && self.packets.len() < MOST {
            self.arrivals.clear();
            work.pull(0, 1, &mut self.arrivals);
            let Some(mut packet) = self.arrivals.iter().next().copied() else {
                self.is_idle = true;
                break;
            };
            // A worker that comes late must not make the link slower.
            let from_ns = if self.is_idle { first_bit_ns } else { self.busy_until_ns };
            let bytes = u64::from(packet.total()) + EXTRA_LENGTH.load(&packet.anno);
            let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
            packet.timestamp_ns = from_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX));
            self.busy_until_ns = packet.timestamp_ns;
            self.is_idle = false;
            self.packets.push_back(packet);
            work.hold(1);
            pulled = true;
        }
        pulled
    }
}

impl Opaque for Link {}

impl Task for Link {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let pulled = self.fill(work);
        let now_ns = work.now_ns();
        let left = vector
            .push_from(work.burst(), || self.packets.pop_front_if(|packet| packet.timestamp_ns <= now_ns));
        work.release(left);
        if let Some(first) = self.packets.front() {
            let free_ns = self.busy_until_ns.saturating_sub(self.latency_ns);
            let next_ns = if self.is_idle || free_ns <= now_ns { first.timestamp_ns } else { free_ns };
            work.wake_at(next_ns.min(first.timestamp_ns));
        }
        if pulled || left > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for Link {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn follow_write(&mut self, work: &mut Work<'_>) {
        if std::mem::take(&mut self.reset) {
            self.packets.drain(..).for_each(|packet| work.drop_held(RESET, &[packet]));
            (self.busy_until_ns, self.is_idle) = (0, true);
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.packets.drain(..).for_each(|packet| work.drop_held(STOPPED, &[packet]));
    }
}

const HANDLERS: &[Row<Link>] = &[
    Row::read_write(
        "latency",
        |link, _| Some(interval_text(link.latency_ns)),
        |link, value, _| link.change(written(value, parse::seconds_ns)?, link.bytes_per_s),
    ),
    Row::read_write(
        "bandwidth",
        |link, _| Some(link.bytes_per_s.to_string()),
        |link, value, _| link.change(link.latency_ns, written(value, parse::bandwidth_bytes_per_s)?),
    ),
    Row::sum("size", |link, _| Some(link.packets.len().to_string())),
    Row::button("reset", |link, _| link.reset = true),
];
