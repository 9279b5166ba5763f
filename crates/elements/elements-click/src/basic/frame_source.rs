//! `InfiniteSource`, `RatedSource` and `TimedSource`: make packets.

use super::data::Data;
use crate::queue::interval::interval_text;
use crate::queue::token_bucket::TokenBucket;
use click::config::{Args, parse};
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Progress, Row, Scope, StateScope,
    Task, Work,
};
use elements::basic::handler_call::HandlerCall;
use elements::queue::length::QueueLength;
use shm::burst::Vector;
use std::sync::Arc;

/// The class.
pub const INFINITE_SOURCE: Class = Class {
    name: "InfiniteSource",
    summary: "generates packets whenever scheduled",
    page: "\
# InfiniteSource([DATA, LIMIT, BURST, ACTIVE, keywords TIMESTAMP, LENGTH, STOP, END_CALL, HEADROOM])

Makes packets and pushes them as fast as it can. While the queues are full in which all its packets end, it makes none
(Queue, FullNoteQueue, ThreadSafeQueue, QuickNoteQueue; of several queues, one with room is enough).

- **ports**: no input, 1 output, push or pull
- **arguments**: `DATA`: their contents; `LIMIT` (default -1): how many it makes, negative for no limit;
  `BURST`: packets at a time; `ACTIVE` (default true); `TIMESTAMP` (default true): whether packets get the
  time; `LENGTH` (default -1): their length, for which DATA is cut or repeated; `STOP` (default false): ends
  the run when LIMIT is reached; `END_CALL` (`HANDLER [VALUE]`): calls a write handler then; `HEADROOM` has no
  effect
- **annotations**: sets the timestamp
- **handlers**: `data`, `limit`, `burst`, `active`, `length` (read/write); `count` (read); `reset` (write);
  `burstsize`, `datasize`: old names of `burst` and `length`
- **difference**: the default of `BURST` is the run's burst (Click: 1), because packets travel in
  bursts here. With several workers each makes its own packets
",
    codes: PortCodes::new("0/1", "a/a"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, infinite),
};

/// The class.
pub const RATED_SOURCE: Class = Class {
    name: "RatedSource",
    summary: "generates packets at specified rate",
    page: "\
# RatedSource([DATA, RATE, LIMIT, ACTIVE, keywords LENGTH, STOP, BANDWIDTH, END_CALL, HEADROOM])

Makes RATE packets a second and pushes them.

- **ports**: no input, 1 output, push or pull
- **arguments**: `DATA`, `LIMIT`, `ACTIVE`, `LENGTH`, `STOP`, `END_CALL`, `HEADROOM` as for InfiniteSource;
  `RATE` (default 10): packets a second; `BANDWIDTH`: bytes a second, or with a unit (`384kbps`), instead
- **annotations**: sets the timestamp
- **handlers**: `data`, `rate`, `limit`, `active`, `length` (read/write); `count` (read); `reset` (write);
  `datasize`: old name of `length`
- **difference**: with several workers each makes its own packets
",
    make: |cx| make(cx, rated),
    ..INFINITE_SOURCE
};

/// The class.
pub const TIMED_SOURCE: Class = Class {
    name: "TimedSource",
    summary: "generates packets periodically",
    page: "\
# TimedSource([INTERVAL, DATA, keywords LIMIT, ACTIVE, STOP, HEADROOM])

Makes a packet every INTERVAL and pushes it.

- **ports**: no input, 1 push output
- **arguments**: `INTERVAL` (seconds, default 0.5); `DATA`, `LIMIT`, `ACTIVE`, `STOP`, `HEADROOM` as for
  InfiniteSource
- **annotations**: sets the timestamp
- **handlers**: `interval`, `data`, `limit`, `active` (read/write); `count` (read); `reset` (write)
- **difference**: with several workers each makes its own packets
",
    codes: PortCodes::new("0/1", "h/h"),
    make: |cx| make(cx, timed),
    ..INFINITE_SOURCE
};

/// When the next packets are due.
enum Pace {
    /// At once, this many at a time; `None` for the run's burst.
    Always(Option<usize>),
    Rate(TokenBucket),
    Every {
        interval_ns: u64,
        next_ns: u64,
    },
}

struct FrameSource {
    name: String,
    data: Data,
    pace: Pace,
    /// Negative for no limit.
    limit: i64,
    active: bool,
    timestamp: bool,
    end_call: Option<HandlerCall>,
    count: u64,
    ended: bool,
    /// Whether it pushes its packets; else they are pulled.
    pushes: bool,
    /// Of a source without a rate: the queues in which its packets end, if it stops while they are full.
    queues: Vec<Arc<QueueLength>>,
}

fn make(cx: &mut Configure<'_>, read: fn(&mut Args<'_>) -> FrameSource) -> Option<BoxElement> {
    let (name, pushes) = (cx.name.to_string(), cx.services.queues_near(cx.name).1);
    let stopping = if pushes { cx.services.queues_that_stop(&name) } else { vec![] };
    let queues = stopping.iter().map(|queue| cx.shared(Scope::Worker, queue, QueueLength::default));
    let queues: Vec<_> = queues.collect::<Option<_>>()?;
    cx.opaque(|args| Some(FrameSource { name, pushes, queues, ..read(args) }))
}

fn infinite(args: &mut Args<'_>) -> FrameSource {
    let text = args.positional("DATA", parse::bytes);
    let limit = args.positional("LIMIT", parse::i64);
    let burst = args.positional("BURST", parse::int_in(1..=1 << 30)).map(|burst| burst as usize);
    let active = args.positional("ACTIVE", parse::bool);
    let timestamp = args.keyword("TIMESTAMP", parse::bool).unwrap_or(true);
    FrameSource { timestamp, ..FrameSource::read(args, text, limit, active, Pace::Always(burst)) }
}

/// The capacity of a rated source's bucket, in packets.
fn rated_burst(rate_per_s: u64) -> u64 {
    if rate_per_s < 200 { 2 } else { rate_per_s / 100 }
}

fn at_rate(rate_per_s: u64) -> Pace {
    let mut bucket = TokenBucket::new(rate_per_s, rated_burst(rate_per_s));
    bucket.set_level(1);
    Pace::Rate(bucket)
}

fn rated(args: &mut Args<'_>) -> FrameSource {
    let text = args.positional("DATA", parse::bytes);
    let rate = args.positional("RATE", parse::u64).unwrap_or(10);
    let limit = args.positional("LIMIT", parse::i64);
    let active = args.positional("ACTIVE", parse::bool);
    let bandwidth = args.keyword("BANDWIDTH", parse::bandwidth_bytes_per_s).unwrap_or(0);
    let mut source = FrameSource::read(args, text, limit, active, at_rate(rate));
    if bandwidth > 0 {
        source.pace = at_rate(bandwidth / (source.data.len() as u64).max(1));
    }
    source
}

fn timed(args: &mut Args<'_>) -> FrameSource {
    let interval_ns = args.positional("INTERVAL", parse::seconds_ns).unwrap_or(500_000_000);
    let text = args.positional("DATA", parse::bytes);
    let limit = args.keyword("LIMIT", parse::i64);
    let active = args.keyword("ACTIVE", parse::bool);
    FrameSource::read(args, text, limit, active, Pace::Every { interval_ns, next_ns: 0 })
}

impl FrameSource {
    /// Reads the arguments that all sources have, after those of the class. [`make`] adds the name.
    fn read(
        args: &mut Args<'_>,
        text: Option<Vec<u8>>,
        limit: Option<i64>,
        active: Option<bool>,
        pace: Pace,
    ) -> FrameSource {
        let data = Data::new(text, Data::read_length(args));
        let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
        let end_call = args.keyword("END_CALL", HandlerCall::parse);
        let _ = args.keyword("HEADROOM", parse::u32);
        if stop && end_call.is_some() {
            let span = args.span();
            args.error(span, "END_CALL and STOP are mutually exclusive");
        }
        FrameSource {
            name: String::new(),
            data,
            pace,
            limit: limit.unwrap_or(-1),
            active: active.unwrap_or(true),
            timestamp: true,
            end_call: end_call.or(stop.then(HandlerCall::stop)),
            count: 0,
            ended: false,
            pushes: true,
            queues: vec![],
        }
    }

    /// The number of packets that it may still make.
    fn left(&self) -> u64 {
        u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count))
    }

    /// Packets that are due now.
    fn due(&mut self, work: &mut Work<'_>) -> usize {
        match &mut self.pace {
            // As in Click, one queue with room is enough.
            Pace::Always(burst) => {
                let room = self.queues.iter().map(|queue| queue.room()).max();
                work.burst_or(*burst).min(room.unwrap_or(usize::MAX))
            }
            Pace::Rate(bucket) => {
                bucket.fill(work.now_ns());
                if let Some(wait_ns) = bucket.wait_ns(1).filter(|wait_ns| *wait_ns > 0) {
                    work.wake_at(work.now_ns().saturating_add(wait_ns));
                }
                usize::try_from(bucket.tokens()).unwrap_or(usize::MAX).min(work.burst())
            }
            Pace::Every { next_ns, .. } => {
                if *next_ns > work.now_ns() {
                    work.wake_at(*next_ns);
                }
                usize::from(*next_ns <= work.now_ns())
            }
        }
    }

    /// Counts packets that were made.
    fn count_created(&mut self, count: usize, now_ns: u64) {
        self.count += count as u64;
        match &mut self.pace {
            Pace::Always(_) => {}
            Pace::Rate(bucket) => bucket.take(count as u64),
            Pace::Every { interval_ns, next_ns } if count > 0 => {
                *next_ns = now_ns.saturating_add(*interval_ns)
            }
            Pace::Every { .. } => {}
        }
    }
}

impl Opaque for FrameSource {
    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        self.make(most, into, work)
    }
}

impl Task for FrameSource {
    /// Of a source whose packets are pulled, it only keeps the run going.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let most = if self.pushes { vector.room() } else { 0 };
        if self.make(most, vector, work) > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl FrameSource {
    /// Puts up to `most` packets that are due into a vector; their number.
    fn make(&mut self, most: usize, vector: &mut Vector, work: &mut Work<'_>) -> usize {
        if !self.active {
            return 0;
        }
        let left = self.left();
        if left == 0 {
            if !std::mem::replace(&mut self.ended, true)
                && let Some(call) = &self.end_call
            {
                call.call(&self.name, work);
            }
            return 0;
        }
        let most =
            self.due(work).min(most).min(vector.room()).min(usize::try_from(left).unwrap_or(usize::MAX));
        if most == 0 {
            return 0;
        }
        let now_ns = work.now_ns();
        let count = self.data.make(most, if self.timestamp { now_ns } else { 0 }, vector, work);
        self.count_created(count, now_ns);
        count
    }
}

impl Element for FrameSource {
    fn is_scheduled(&self) -> bool {
        self.active && self.left() > 0
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn start(&mut self, work: &mut Work<'_>) {
        if let Pace::Every { interval_ns, next_ns } = &mut self.pace {
            *next_ns = work.now_ns().saturating_add(*interval_ns);
        }
    }

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = match self.pace {
            Pace::Always(_) => INFINITE,
            Pace::Rate(_) => RATED,
            Pace::Every { .. } => TIMED,
        };
        Handlers::of(self, rows)
    }
}

impl Pace {
    /// The burst, the rate or the interval.
    fn text(&self) -> String {
        match self {
            Pace::Always(burst) => burst.map_or_else(String::new, |burst| burst.to_string()),
            Pace::Rate(bucket) => bucket.rate_per_s().to_string(),
            Pace::Every { interval_ns, .. } => interval_text(*interval_ns),
        }
    }

    /// Sets the burst, the rate or the interval.
    fn write(&mut self, value: &str) -> Result<(), String> {
        match self {
            Pace::Always(burst) => *burst = Some(written(value, parse::int_in(1..=1 << 30))? as usize),
            Pace::Rate(bucket) => {
                let rate = written(value, parse::u64)?;
                bucket.adjust(rate, rated_burst(rate));
            }
            Pace::Every { interval_ns, .. } => match written(value, parse::seconds_ns)? {
                0 => return Err("an interval longer than 0 is expected".into()),
                new => *interval_ns = new,
            },
        }
        Ok(())
    }
}

impl FrameSource {
    fn reset(&mut self, _cells: &mut [u64]) {
        (self.count, self.ended) = (0, false);
        if let Pace::Rate(bucket) = &mut self.pace {
            bucket.set_level(1);
        }
    }
}

const fn pace(name: &'static str) -> Row<FrameSource> {
    Row::read_write(name, |source, _| Some(source.pace.text()), |source, value, _| source.pace.write(value))
}

const fn length(name: &'static str) -> Row<FrameSource> {
    Row::read_write(
        name,
        |source, _| Some(source.data.length_text()),
        |source, value, _| source.data.set_length(value),
    )
}

/// The handlers of one class, followed by those of all.
macro_rules! rows {
    ($($own:expr),*) => {
        &[
            $($own,)*
            Row::read_write("data", |source, _| Some(source.data.text()), |source, value, _| {
                source.data.set_text(value);
                Ok(())
            }),
            Row::read_write("limit", |source, _| Some(source.limit.to_string()), |source, value, _| {
                (source.limit, source.ended) = (written(value, parse::i64)?, false);
                Ok(())
            }),
            element::field!(active, parse::bool),
            Row::sum("count", |source, _| Some(source.count.to_string())),
            Row::button("reset", FrameSource::reset),
        ]
    };
}

const INFINITE: &[Row<FrameSource>] =
    rows![pace("burst"), pace("burstsize"), length("length"), length("datasize")];
const RATED: &[Row<FrameSource>] = rows![pace("rate"), length("length"), length("datasize")];
const TIMED: &[Row<FrameSource>] = rows![pace("interval")];
