//! `RatedUnqueue`, `Shaper` and their bandwidth variants: pull packets at a rate.

use super::limits::{Limit, Unit};
use click::config::parse;
use element::{
    BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Progress, Row, StateScope, Task, Work,
};
use shm::burst::Vector;

/// The class.
pub const RATED_UNQUEUE: Class = Class {
    name: "RatedUnqueue",
    summary: "pull-to-push converter at a packet rate",
    page: "\
# RatedUnqueue(RATE [, keywords BURST_DURATION, BURST_SIZE])

Pulls packets and pushes them, RATE of them a second.

- **ports**: 1 pull input, 1 push output
- **arguments**: `RATE`: packets a second; `BURST_DURATION` (default 20 ms): the longest time for which
  the rate is saved up; `BURST_SIZE`: the most packets that are saved up, instead
- **handlers**: `rate`, `active` (read/write); `calls` (read): how often its task ran, and the results
- **difference**: with several workers each has the whole rate
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, Unit::Packets, true),
};

/// The class.
pub const BANDWIDTH_RATED_UNQUEUE: Class = Class {
    name: "BandwidthRatedUnqueue",
    summary: "pull-to-push converter at a bandwidth",
    page: "\
# BandwidthRatedUnqueue(RATE [, keywords BURST_DURATION, BURST_BYTES])

Pulls packets and pushes them, RATE bytes of them a second.

- **ports**: 1 pull input, 1 push output
- **arguments**: `RATE`: bandwidth, in bytes a second or with a unit (`384kbps`); `BURST_DURATION` (default
  20 ms): the longest time for which the bandwidth is saved up; `BURST_BYTES`: the most bytes that are saved up,
  instead
- **handlers**: `rate`, `active` (read/write); `calls` (read): how often its task ran, and the results
- **difference**: with several workers each has the whole bandwidth
",
    make: |cx| make(cx, Unit::Bytes, true),
    ..RATED_UNQUEUE
};

/// The class.
pub const SHAPER: Class = Class {
    name: "Shaper",
    summary: "shapes traffic to maximum packet rate",
    page: "\
# Shaper(RATE [, keywords BURST_DURATION, BURST_SIZE])

At most RATE packets a second can be pulled through output 0. Others can be pulled through output 1.

- **ports**: 1 pull input, 1 or 2 pull outputs
- **arguments**: `RATE`: packets a second; `BURST_DURATION` (default 20 ms): the longest time for which
  the rate is saved up; `BURST_SIZE`: the most packets that are saved up, instead
- **handlers**: `rate` (read/write); `reset` (write): starts over, with a full burst if one is given, else with
  one packet
- **difference**: with several workers each has the whole rate
",
    codes: PortCodes::new("1/1-2", "l/l"),
    make: |cx| make(cx, Unit::Packets, false),
    ..RATED_UNQUEUE
};

/// The class.
pub const BANDWIDTH_SHAPER: Class = Class {
    name: "BandwidthShaper",
    summary: "shapes traffic to maximum bandwidth",
    page: "\
# BandwidthShaper(RATE [, keywords BURST_DURATION, BURST_BYTES])

At most RATE bytes a second can be pulled through output 0. Others can be pulled through output 1.

- **ports**: 1 pull input, 1 or 2 pull outputs
- **arguments**: `RATE`: bandwidth, in bytes a second or with a unit (`384kbps`); `BURST_DURATION` (default
  20 ms): the longest time for which the bandwidth is saved up; `BURST_BYTES`: the most bytes that are saved up,
  instead
- **handlers**: `rate` (read/write); `reset` (write): starts over, with a full burst if one is given, else with
  one packet
- **difference**: with several workers each has the whole bandwidth
",
    make: |cx| make(cx, Unit::Bytes, false),
    ..SHAPER
};

struct Rated {
    /// Whether it pushes what it pulls.
    pushes: bool,
    limit: Limit,
    active: bool,
    calls: Calls,
}

/// How often the task ran, by result, and how many packets it pushed.
#[derive(Default)]
struct Calls {
    runs: u64,
    empty_runs: u64,
    pushes: u64,
    failed_pulls: u64,
    packets: u64,
}

fn make(cx: &mut Configure<'_>, unit: Unit, pushes: bool) -> Option<BoxElement> {
    cx.opaque(|args| {
        Some(Rated { pushes, limit: Limit::read(args, unit)?, active: true, calls: Calls::default() })
    })
}

impl Opaque for Rated {
    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        if output > 0 {
            // Packets that the rate allows are left to output 0.
            return if self.limit.allows(work.now_ns()) { 0 } else { work.pull(0, most, into) };
        }
        self.limit.pull(most.min(into.room()), into, work).0
    }
}

impl Task for Rated {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        self.calls.runs += 1;
        if !self.active {
            return Progress::Idle;
        }
        let (count, allowed) = self.limit.pull(work.burst(), vector, work);
        match (count, allowed) {
            (0, false) => self.calls.empty_runs += 1,
            (0, true) => self.calls.failed_pulls += 1,
            _ => self.calls.pushes += 1,
        }
        self.calls.packets += count as u64;
        if count > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for Rated {
    element::facts!(writes: false);

    fn task(&mut self) -> Option<&mut dyn Task> {
        self.pushes.then_some(self)
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, if self.pushes { UNQUEUE } else { SHAPE })
    }
}

const RATE: Row<Rated> = Row::read_write(
    "rate",
    |rated, _| Some(rated.limit.rate_text()),
    |rated, value, _| rated.limit.set_rate(value),
);
const SHAPE: &[Row<Rated>] = &[RATE, Row::button("reset", |rated, _| rated.limit.reset())];
const UNQUEUE: &[Row<Rated>] = &[
    RATE,
    element::field!(active, parse::bool),
    Row::concat("calls", |rated, _| {
        let Calls { runs, empty_runs, pushes, failed_pulls, packets } = rated.calls;
        Some(format!(
            "{runs} calls to run_task()\n{empty_runs} empty runs\n{pushes} pushes\n{failed_pulls} failed pulls\n\
             {packets} packets"
        ))
    }),
];
