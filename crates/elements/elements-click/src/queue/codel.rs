//! `CoDel`: drops packets that have waited for too long.
//!
//! Nichols and Jacobson, *Controlling Queue Delay* (2012), and RFC 8289.

use super::interval::interval_text;
use super::watched::WatchedQueues;
use click::config::parse;
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::anno::FIRST_TIMESTAMP;
use shm::Packet;
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "CoDel",
    summary: "drops packets according to CoDel",
    page: "\
# CoDel([TARGET, INTERVAL, keyword QUEUES])

Pulls packets and drops some once all have waited for longer than TARGET during INTERVAL: first one, then more and more
often, until one has waited for less (controlled delay, RFC 8289). The time at which a packet began to wait is its first
timestamp annotation: put `SetTimestamp(FIRST true)` in front of the queue. Packets without it pass.

- **ports**: 1 pull input, 1 pull output
- **arguments**: `TARGET` (seconds, or with a unit, default 5ms); `INTERVAL` (default 100ms); `QUEUES`: the queues, by
  default the nearest upstream, whose length `stats` shows
- **annotations**: reads `FIRST_TIMESTAMP`
- **handlers**: `target`, `interval`, and with their other names `codel_target`, `codel_interval` (read/write);
  `drops`, `queues`, `stats` (read)
- **drop reasons**: `waited`
- **difference**: the annotation stays as it is, as in Click's code (its page says that it becomes the time that the
  packet waited). Numbers without a unit are seconds, as in Click's code, and a warning says so where its page's example
  (`CoDel(5, 100)`) is taken for milliseconds. Packets of a burst have waited until the same time
",
    codes: PortCodes::new("1/1", "l/l"),
    state: StateScope::PerWorker,
    make,
};

const WAITED: usize = 0;
const SECOND_NS: u64 = 1_000_000_000;

struct CoDel {
    target_ns: u64,
    interval_ns: u64,
    queues: WatchedQueues,
    /// When packets may be dropped, if all wait for too long until then.
    above_from_ns: Option<u64>,
    /// Whether packets are dropped; then the time of the next drop, else that at which it would have been.
    dropping: bool,
    next_ns: Option<u64>,
    /// Drops since that began.
    count: u64,
    drops: u64,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let target_ns = args.positional("TARGET", parse::seconds_ns).unwrap_or(5_000_000);
    let interval_ns = args.positional("INTERVAL", parse::seconds_ns).unwrap_or(100_000_000);
    let queues = args.keyword("QUEUES", parse::any);
    let span = args.span();
    let fine = args.finish();
    if target_ns >= SECOND_NS {
        let target = interval_text(target_ns);
        cx.diags.warning(span, format!("TARGET is {target}: a number without a unit is in seconds (`5ms`)"));
    }
    let queues = WatchedQueues::find(cx, queues.as_ref(), ("CoDel", span)).filter(|_| fine)?;
    Some(BoxElement::opaque(CoDel {
        target_ns,
        interval_ns,
        queues,
        above_from_ns: None,
        dropping: false,
        next_ns: None,
        count: 0,
        drops: 0,
        arrivals: Vector::new(),
    }))
}

impl CoDel {
    /// Pulls a packet; whether it may be dropped for the time that it has waited.
    fn take(&mut self, work: &mut Work<'_>) -> Option<(Packet, bool)> {
        self.arrivals.clear();
        work.pull(0, 1, &mut self.arrivals);
        let Some(&packet) = self.arrivals.iter().next() else {
            self.above_from_ns = None;
            return None;
        };
        let (now_ns, since_ns) = (work.now_ns(), FIRST_TIMESTAMP.load(&packet.anno));
        if since_ns == 0 {
            return Some((packet, false));
        }
        if now_ns.saturating_sub(since_ns) < self.target_ns {
            self.above_from_ns = None;
            return Some((packet, false));
        }
        let from_ns = *self.above_from_ns.get_or_insert(now_ns.saturating_add(self.interval_ns));
        Some((packet, now_ns >= from_ns))
    }

    fn discard(&mut self, packet: &Packet, work: &mut Work<'_>) {
        self.drops += 1;
        work.drop(WAITED, std::slice::from_ref(packet));
    }

    /// The time of the next drop behind one: the more there were, the sooner.
    fn next_drop_ns(&self, last_ns: u64) -> u64 {
        last_ns.saturating_add((self.interval_ns as f64 / (self.count.max(1) as f64).sqrt()) as u64)
    }

    /// The next packet that is not dropped.
    fn next(&mut self, work: &mut Work<'_>) -> Option<Packet> {
        let now_ns = work.now_ns();
        let (mut packet, mut may_drop) = self.take(work).or_else(|| {
            self.dropping = false;
            None
        })?;
        if !may_drop {
            self.dropping = false;
            return Some(packet);
        }
        if !self.dropping {
            let from_ns = self.above_from_ns.unwrap_or(now_ns);
            let is_recent =
                self.next_ns.is_some_and(|next_ns| now_ns < next_ns.saturating_add(self.interval_ns));
            if !is_recent && now_ns.saturating_sub(from_ns) < self.interval_ns {
                return Some(packet);
            }
            self.discard(&packet, work);
            let next = self.take(work);
            self.dropping = true;
            // It goes on about where it ended, if that was a moment ago.
            self.count = if is_recent && self.count > 2 { self.count - 2 } else { 1 };
            self.next_ns = Some(self.next_drop_ns(now_ns));
            return next.map(|(packet, _)| packet);
        }
        while let Some(next_ns) = self.next_ns.filter(|next_ns| may_drop && now_ns >= *next_ns) {
            self.discard(&packet, work);
            self.count += 1;
            self.dropping = false;
            (packet, may_drop) = self.take(work)?;
            self.dropping = may_drop;
            if may_drop {
                self.next_ns = Some(self.next_drop_ns(next_ns));
            }
        }
        Some(packet)
    }
}

impl Opaque for CoDel {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        into.push_from(most, || self.next(work))
    }
}

impl Element for CoDel {
    element::facts!(writes: false, reasons: &["waited"], handlers: HANDLERS);
}

const fn target(name: &'static str) -> Row<CoDel> {
    Row::read_write(
        name,
        |codel, _| Some(interval_text(codel.target_ns)),
        |codel, value, _| written(value, parse::seconds_ns).map(|target_ns| codel.target_ns = target_ns),
    )
}

const fn interval(name: &'static str) -> Row<CoDel> {
    Row::read_write(
        name,
        |codel, _| Some(interval_text(codel.interval_ns)),
        |codel, value, _| {
            written(value, parse::seconds_ns).map(|interval_ns| codel.interval_ns = interval_ns)
        },
    )
}

const HANDLERS: &[Row<CoDel>] = &[
    target("target"),
    target("codel_target"),
    interval("interval"),
    interval("codel_interval"),
    Row::sum("drops", |codel, _| Some(codel.drops.to_string())),
    Row::read("queues", |codel, _| Some(codel.queues.names.join("\n"))),
    Row::concat("stats", |codel, _| {
        Some(format!("{} current queue\n{} drops", codel.queues.length(), codel.drops))
    }),
];
