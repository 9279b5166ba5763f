//! `Unqueue`: pulls packets and pushes them.

use click::config::{Args, parse};
use element::value::written;
use element::{Class, Element, Opaque, PortCodes, Progress, Row, StateScope, Task, Work};
use ir::Builder;
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "Unqueue",
    summary: "pull-to-push converter",
    page: "\
# Unqueue([BURST, keywords ACTIVE, LIMIT])

Pulls packets and pushes them.

- **ports**: 1 pull input, 1 push output
- **arguments**: `BURST`: packets pulled at a time, negative for as many as there are; `ACTIVE` (default
  true): whether it pulls; `LIMIT` (default -1): packets that it pulls in all, negative for no limit
- **handlers**: `count` (read); `active`, `burst`, `limit` (read/write); `reset_counts`, `reset` (write):
  set `count` to 0
- **difference**: `BURST` is the run's burst where it is not given (Click: 1), because packets travel in
  bursts here
",
    codes: PortCodes::new("1/1", "l/h"),
    state: StateScope::PerWorker,
    make: |cx| cx.opaque(make),
};

struct Unqueue {
    /// The run's if it is not given.
    burst: Option<i32>,
    active: bool,
    limit: i64,
    /// Packets that it pulled; its cell counts those that passed the queue.
    count: u64,
}

fn make(args: &mut Args<'_>) -> Option<Unqueue> {
    let burst = args.positional("BURST", parse::i32);
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let limit = args.keyword("LIMIT", parse::i64).unwrap_or(-1);
    Some(Unqueue { burst, active, limit, count: 0 })
}

impl Opaque for Unqueue {
    fn build_passing(&self, f: &mut Builder) -> bool {
        f.name("Unqueue");
        let count = f.cell("count", 0);
        f.add_to_cell(count, 1);
        f.emit(0);
        true
    }
}

impl Task for Unqueue {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let burst = work.burst_or(self.burst.map(|burst| usize::try_from(burst).unwrap_or(usize::MAX)));
        let most = burst.min(vector.room()).min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        if most == 0 {
            return Progress::Idle;
        }
        let pulled = work.pull(0, most, vector);
        self.count += pulled as u64;
        if pulled > 0 { Progress::Worked } else { Progress::Idle }
    }

    fn takes_at_once(&self, packets: usize) -> Result<(), &'static str> {
        let is_less = |burst: i32| usize::try_from(burst).is_ok_and(|burst| burst < packets);
        match () {
            () if !self.active => Err("is not active"),
            () if self.limit >= 0 => Err("has a limit"),
            () if self.burst.is_some_and(is_less) => Err("pulls fewer packets at a time than a burst has"),
            () => Ok(()),
        }
    }
}

impl Element for Unqueue {
    element::facts!(writes: false, handlers: HANDLERS);

    fn is_scheduled(&self) -> bool {
        self.active && self.left() > 0
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }
}

impl Unqueue {
    /// The number of packets that it may still pull.
    fn left(&self) -> u64 {
        u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count))
    }

    fn reset(&mut self, cells: &mut [u64]) {
        self.count = 0;
        cells.fill(0);
    }
}

const HANDLERS: &[Row<Unqueue>] = &[
    Row::sum("count", |unqueue, cells| Some((unqueue.count + cells.first().unwrap_or(&0)).to_string())),
    element::field!(active, parse::bool),
    Row::read_write(
        "burst",
        |unqueue, _| Some(unqueue.burst.map_or_else(String::new, |burst| burst.to_string())),
        |unqueue, value, _| written(value, parse::i32).map(|burst| unqueue.burst = Some(burst)),
    ),
    element::field!(limit, parse::i64),
    Row::button("reset_counts", Unqueue::reset),
    Row::button("reset", Unqueue::reset),
];
