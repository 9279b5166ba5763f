//! `RatedUnqueue` and `BandwidthRatedUnqueue`: from pull to push at a rate.

use super::limits::{Limit, Unit};
use click::config::parse;
use element::value::set;
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
- **arguments**: `RATE`: packets a second; `BURST_DURATION` (default 20 ms): for how long the rate may be
  saved up; `BURST_SIZE`: how many packets may be saved up, instead of it
- **handlers**: `rate`, `active` (read/write); `calls` (read): how often it was asked and what came of it
- **difference**: with several workers each has the whole rate
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, Unit::Packets),
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
  20 ms): for how long the bandwidth may be saved up; `BURST_BYTES`: how many bytes may be saved up,
  instead of it
- **handlers**: `rate`, `active` (read/write); `calls` (read): how often it was asked and what came of it
- **difference**: with several workers each has the whole bandwidth
",
    make: |cx| make(cx, Unit::Bytes),
    ..RATED_UNQUEUE
};

struct RatedUnqueue {
    limit: Limit,
    active: bool,
    runs: u64,
    empty_runs: u64,
    pushes: u64,
    failed_pulls: u64,
    packets: u64,
}

fn make(cx: &mut Configure<'_>, unit: Unit) -> Option<BoxElement> {
    cx.opaque(|args| {
        let limit = Limit::read(args, unit)?;
        let (active, runs, empty_runs, pushes, failed_pulls, packets) = (true, 0, 0, 0, 0, 0);
        Some(RatedUnqueue { limit, active, runs, empty_runs, pushes, failed_pulls, packets })
    })
}

impl Opaque for RatedUnqueue {}

impl Task for RatedUnqueue {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        self.runs += 1;
        if !self.active {
            return Progress::Idle;
        }
        let (count, allowed) = self.limit.pull(work.burst(), vector, work);
        match (count, allowed) {
            (0, false) => self.empty_runs += 1,
            (0, true) => self.failed_pulls += 1,
            _ => self.pushes += 1,
        }
        self.packets += count as u64;
        if count > 0 { Progress::Worked } else { Progress::Idle }
    }
}

impl Element for RatedUnqueue {
    fn writes(&self) -> bool {
        false
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<RatedUnqueue>] = &[
    Row::read_write(
        "rate",
        |unqueue, _| Some(unqueue.limit.rate_text()),
        |unqueue, value, _| unqueue.limit.set_rate(value),
    ),
    Row::read_write(
        "active",
        |unqueue, _| Some(unqueue.active.to_string()),
        |unqueue, value, _| set(&mut unqueue.active, value, parse::bool),
    ),
    Row::concat("calls", |unqueue, _| {
        let RatedUnqueue { runs, empty_runs, pushes, failed_pulls, packets, .. } = unqueue;
        Some(format!(
            "{runs} calls to run_task()\n{empty_runs} empty runs\n{pushes} pushes\n{failed_pulls} failed pulls\n\
             {packets} packets"
        ))
    }),
];
