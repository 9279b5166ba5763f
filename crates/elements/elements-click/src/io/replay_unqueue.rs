//! `ReplayUnqueue` and `MultiReplayUnqueue`: load packets from upstream, and push them again and again.

use super::stored::{StoredPackets, Storing};
use click::config::parse;
use element::value::written;
use element::{
    BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use packet::anno::PAINT;
use shm::Packet;
use shm::burst::Vector;
use shm::pool::Pool;
use std::num::NonZero;

/// The class.
pub const ONE: Class = Class {
    name: "ReplayUnqueue",
    summary: "loads packets in memory and pushes them in a loop",
    page: "\
# ReplayUnqueue([keywords STOP, TIMING, LIMIT, BURST, ACTIVE, VERBOSE, USE_SIGNAL])

Pulls packets from its input until none comes any more, and keeps copies. Then pushes these packets, all of them again
and again.

- **ports**: 1 pull input, 1 push output
- **arguments**: `STOP` (default -1): how often all packets are pushed before the run ends, negative for ever; `TIMING`
  (default 0): 0 to push as fast as possible, 1 to keep the times between packets, N to be N times as fast; `LIMIT`
  (default -1): packets that are loaded, negative for no limit; `BURST` (1 to 256, default: the run's): packets at a
  time; `ACTIVE` (default true); `USE_SIGNAL` (default false): wait for 0.1 s for further packets before the
  packets are taken to be all; `VERBOSE` (default false): prints how many packets were loaded, and each loop.
  `QUICK_CLONE` and `FREEONTERMINATE` have no effect
- **annotations**: those of the packets that were loaded
- **handlers**: `active`, `stop`, `timing` (read/write); `loaded`, `count` (read): whether all packets are loaded, and
  how many; `reset` (write): forgets them, and loads packets again
- **memory**: at most 1 GiB of packets is loaded, outside of the packet region; a warning says when that was too
  little
- **workers**: one worker loads and pushes
- **difference**: loading begins with the first packet that can be pulled
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::OneWorker,
    make,
};

/// The class.
pub const SEVERAL: Class = Class {
    name: "MultiReplayUnqueue",
    summary: "loads packets of several inputs in memory and pushes them in a loop",
    page: "\
# MultiReplayUnqueue([keywords STOP, LIMIT, BURST, ACTIVE, VERBOSE, USE_SIGNAL])

As ReplayUnqueue, with the packets of several inputs in the order of their timestamps. Loading ends with the first
input that has no packet any more; packets that come behind it are not loaded. Packets from input N are painted with N
and leave by output N.

- **ports**: 1 to 255 pull inputs, as many push outputs
- **arguments**, **handlers**, **memory**, **workers**: as for ReplayUnqueue, without TIMING
- **annotations**: those of the packets that were loaded; sets `PAINT`
- **drop reasons**: `left-over`: pulled from an input, and later than the last packet of another one
",
    codes: PortCodes::new("1-/=", "l/h"),
    ..ONE
};

/// How long an input may be empty with `USE_SIGNAL`.
const WAIT_NS: u64 = 100_000_000;
/// The most packets that one call loads, so that loading does not block the worker.
const LOADED_AT_A_TIME: usize = 4_096;

element::reasons!(LEFT_OVER = "left-over");

/// How far it has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Loading,
    /// The next packet to push, by its number.
    Playing(usize),
}

struct ReplayUnqueue {
    name: String,
    several: bool,
    /// Loops that are left; negative for ever.
    stop: i64,
    /// 0 for no pace.
    timing: u64,
    limit: Option<u64>,
    burst: Option<usize>,
    active: bool,
    waits: bool,
    verbose: bool,
    phase: Phase,
    stored: StoredPackets,
    /// The first packet of each input that is not loaded yet; it is held.
    heads: Vec<Option<Packet>>,
    /// Since when an input whose packet is needed is empty.
    dry_since_ns: Option<u64>,
    /// The clock and the timestamp at the beginning of a loop.
    start_ns: Option<(u64, u64)>,
    /// The vector that upstream packets are pulled into.
    arrivals: Vector,
    warnings: Vec<String>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (name, inputs) = (cx.name.to_string(), cx.shape.inputs);
    if inputs > 255 {
        cx.error(cx.span, format!("{inputs} inputs are wired: paint tells at most 255 apart"));
        return None;
    }
    // Of several inputs each has an output.
    let several = cx.shape.outputs > 1;
    cx.opaque(|args| {
        let stop = args.keyword("STOP", parse::i64).unwrap_or(-1);
        let timing = if several { None } else { args.keyword("TIMING", parse::u32) };
        let limit = args.keyword("LIMIT", parse::i64).and_then(|limit| u64::try_from(limit).ok());
        let burst = args.keyword("BURST", parse::int_in(1..=256)).map(|burst| burst as usize);
        let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
        let (active, verbose) = (flag("ACTIVE", true), flag("VERBOSE", false));
        let waits = flag("USE_SIGNAL", false);
        for keyword in ["QUICK_CLONE", "FREEONTERMINATE"] {
            let _ = args.keyword(keyword, parse::bool);
        }
        Some(ReplayUnqueue {
            name,
            several,
            stop,
            timing: timing.unwrap_or(0).into(),
            limit,
            burst,
            active,
            waits,
            verbose,
            phase: Phase::Loading,
            stored: StoredPackets::default(),
            heads: vec![None; inputs],
            dry_since_ns: None,
            start_ns: None,
            arrivals: Vector::new(),
            warnings: vec![],
        })
    })
}

impl ReplayUnqueue {
    /// Loads packets; whether there were any.
    fn load(&mut self, work: &mut Work<'_>) -> bool {
        for loaded in 0..LOADED_AT_A_TIME {
            if let Some(dry) = self.fill_heads(work) {
                return self.is_dry(dry, work) || loaded > 0;
            }
            let heads = self.heads.iter().enumerate();
            let first = heads.filter_map(|(input, head)| Some((head.as_ref()?.timestamp_ns, input))).min();
            let Some((_, input)) = first else { return false };
            let Some(mut packet) = self.heads.get_mut(input).and_then(Option::take) else { return false };
            if self.several {
                PAINT.store(&mut packet.anno, input as u64);
            }
            let storing = self.stored.add(&packet);
            work.release(1);
            if storing == Storing::Full {
                work.drop(LEFT_OVER, &[packet]);
                let bytes = StoredPackets::MOST_BYTES >> 30;
                self.warnings.push(format!("{}: loaded no more than {bytes} GiB of packets", self.name));
                self.end_loading(work);
                return true;
            }
            // Its bytes are elsewhere now.
            work.pool().free_all(&[packet]);
            work.merge(1);
            if self.limit.is_some_and(|limit| self.stored.len() as u64 >= limit) {
                self.end_loading(work);
                return true;
            }
        }
        true
    }

    /// Pulls a packet from each input that has none waiting. The first input without one, if there is one.
    fn fill_heads(&mut self, work: &mut Work<'_>) -> Option<usize> {
        for (input, head) in self.heads.iter_mut().enumerate().filter(|(_, head)| head.is_none()) {
            self.arrivals.clear();
            if work.pull(input, 1, &mut self.arrivals) == 0 {
                return Some(input);
            }
            work.hold(1);
            *head = self.arrivals.iter().next().copied();
        }
        self.dry_since_ns = None;
        None
    }

    /// Decides whether an input that has no packet has had all; ends the loading then. Before the first packet it
    /// has not.
    fn is_dry(&mut self, input: usize, work: &mut Work<'_>) -> bool {
        let waiting = self.heads.iter().flatten().count();
        if self.stored.is_empty() && waiting == 0 {
            return false;
        }
        let now_ns = work.now_ns();
        let since_ns = *self.dry_since_ns.get_or_insert(now_ns);
        // Another input's first packets may come later.
        let patient = self.waits || self.stored.is_empty();
        if patient && now_ns.saturating_sub(since_ns) < WAIT_NS {
            work.wake_at(since_ns.saturating_add(WAIT_NS));
            return false;
        }
        if self.verbose {
            let (name, count) = (&self.name, self.stored.len());
            work.print(&format!("{name}: loaded {count} packets; input {input} has no more"));
        }
        self.end_loading(work);
        true
    }

    fn end_loading(&mut self, work: &mut Work<'_>) {
        for packet in self.heads.iter_mut().filter_map(Option::take) {
            work.drop_held(LEFT_OVER, &[packet]);
        }
        if self.stored.is_empty() {
            self.warnings.push(format!("{}: there are no packets to replay", self.name));
        }
        (self.phase, self.start_ns, self.dry_since_ns) = (Phase::Playing(0), None, None);
    }

    /// Whether a packet with that timestamp is due. If not, the worker is told when it is.
    fn is_due(&mut self, timestamp_ns: u64, work: &mut Work<'_>) -> bool {
        let now_ns = work.now_ns();
        let (clock_ns, first_ns) = *self.start_ns.get_or_insert((now_ns, timestamp_ns));
        let Some(timing) = NonZero::new(self.timing) else { return true };
        let due_ns = clock_ns.saturating_add(timestamp_ns.saturating_sub(first_ns).div_ceil(timing.get()));
        if due_ns > now_ns {
            work.wake_at(due_ns);
        }
        due_ns <= now_ns
    }

    /// Pushes stored packets, from the one of that number on.
    fn play(&mut self, mut next: usize, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if self.stop == 0 || self.stored.is_empty() {
            self.active = false;
            if self.stop >= 0 {
                work.stop();
            }
            return Progress::Idle;
        }
        let burst = self.burst.unwrap_or(work.burst()).min(vector.room());
        let mut count = 0;
        while count < burst {
            let Some(timestamp_ns) = self.stored.timestamp_ns(next) else { break };
            if !self.is_due(timestamp_ns, work) {
                break;
            }
            let Some(packet) = self.stored.make(next, work) else { break };
            match self.several {
                true => work.emit(PAINT.load(&packet.anno) as usize, &packet),
                false => _ = vector.push(&packet),
            }
            (count, next) = (count + 1, next + 1);
        }
        if next >= self.stored.len() {
            self.end_loop(work);
            next = 0;
        }
        self.phase = Phase::Playing(next);
        if count > 0 { Progress::Worked } else { Progress::Idle }
    }

    fn end_loop(&mut self, work: &mut Work<'_>) {
        self.start_ns = None;
        self.stop -= i64::from(self.stop > 0);
        if self.verbose {
            work.print(&format!("{}: all packets were sent", self.name));
        }
        if self.stop == 0 {
            self.active = false;
            work.stop();
        }
    }
}

impl Opaque for ReplayUnqueue {}

impl Task for ReplayUnqueue {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        match self.phase {
            Phase::Loading => match self.load(work) {
                true => Progress::Worked,
                false => Progress::Idle,
            },
            Phase::Playing(next) => self.play(next, vector, work),
        }
    }
}

impl Element for ReplayUnqueue {
    element::facts!(writes: false, reasons: REASONS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        for packet in self.heads.iter_mut().filter_map(Option::take) {
            work.drop_held(LEFT_OVER, &[packet]);
        }
    }

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = if self.several { &HANDLERS[..HANDLERS.len() - 1] } else { HANDLERS };
        Handlers::of(self, rows)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

const HANDLERS: &[Row<ReplayUnqueue>] = &[
    Row::read_write(
        "active",
        |replay, _| Some(replay.active.to_string()),
        |replay, value, _| {
            replay.active = written(value, parse::bool)?;
            replay.start_ns = None;
            Ok(())
        },
    ),
    element::field!(stop, parse::i64),
    Row::read("loaded", |replay, _| Some((replay.phase != Phase::Loading).to_string())),
    Row::sum("count", |replay, _| Some(replay.stored.len().to_string())),
    Row::button("reset", |replay, _| {
        replay.stored = StoredPackets::default();
        replay.phase = Phase::Loading;
    }),
    // Of one input only: the last.
    element::field!(timing, parse::u64),
];
