//! `Discard`: drops every packet.

use click::config::{Args, parse};
use element::value::true_or_false;
use element::{Class, Element, PortCodes, Progress, Row, StateScope, Task, Transparent, Work};
use ir::Builder;
use shm::burst::Vector;

/// The class.
pub const CLASS: Class = Class {
    name: "Discard",
    summary: "drops all packets",
    page: "\
# Discard([keywords ACTIVE, BURST])

Drops every packet. On a pull input it pulls all the time.

- **ports**: 1 input, push or pull; no output
- **arguments**: `ACTIVE` (bool, default true): whether it pulls; `BURST` (number, default: the run's
  burst): packets pulled at a time
- **handlers**: `count` (read): packets dropped; `reset_counts` (write); `active` (read/write)
- **drop reasons**: `discarded`
",
    codes: PortCodes::new("1/0", "a/a"),
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

struct Discard {
    /// Packets that it pulled; its cell counts those that were pushed.
    pulled: u64,
    active: bool,
    burst: Option<usize>,
}

fn make(args: &mut Args<'_>) -> Option<Discard> {
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let burst = args.keyword("BURST", parse::u32).map(|burst| burst as usize);
    Some(Discard { pulled: 0, active, burst })
}

impl Transparent for Discard {
    fn build(&self, f: &mut Builder) {
        f.name("Discard");
        let count = f.cell("count", 0);
        f.add_to_cell(count, 1);
        f.drop("discarded");
    }
}

impl Task for Discard {
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if !self.active {
            return Progress::Idle;
        }
        let pulled = work.pull(0, work.burst_or(self.burst), vector);
        self.pulled += pulled as u64;
        let (packets, list) = vector.parts();
        for &index in list {
            work.drop(0, &packets[usize::from(index)..=usize::from(index)]);
        }
        vector.clear();
        if pulled > 0 { Progress::Worked } else { Progress::Idle }
    }

    fn takes_at_once(&self, packets: usize) -> Result<(), &'static str> {
        match () {
            () if !self.active => Err("is not active"),
            () if self.burst.is_some_and(|burst| burst < packets) => {
                Err("pulls fewer packets at a time than a burst has")
            }
            () => Ok(()),
        }
    }
}

impl Element for Discard {
    element::facts!(writes: false, reasons: &["discarded"], handlers: HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }
}

const HANDLERS: &[Row<Discard>] = &[
    Row::sum("count", |discard, cells| Some((discard.pulled + cells.first().unwrap_or(&0)).to_string())),
    Row::button("reset_counts", |discard, cells| {
        discard.pulled = 0;
        cells.fill(0);
    }),
    element::field!(active, true_or_false),
];
