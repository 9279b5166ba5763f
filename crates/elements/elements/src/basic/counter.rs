//! `Counter`: counts packets and bytes.

use super::handler_call::Trigger;
use super::rate::{Averages, SCALE};
use click::config::parse;
use element::value::{cell_text, fixed_point_text, written};
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, StateScope, Transparent, Work};
use ir::Builder;
use ir::expr::{cell, packet_len, select};
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "Counter",
    summary: "measures packet count and rate",
    page: "\
# Counter([keywords COUNT_CALL, BYTE_COUNT_CALL])

Passes packets unchanged and counts them.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `COUNT_CALL` (`N HANDLER [VALUE]`): calls a write handler when the packet count reaches N;
  `BYTE_COUNT_CALL`: the same when the byte count reaches or passes N. Each is called once until the
  counts are reset
- **handlers**: `count`, `byte_count` (read); `rate`, `byte_rate`, `bit_rate` (read): packets, bytes and bits
  a second, an exponentially weighted moving average over some 16 ms; `reset_counts`, `reset` (write);
  `count_call` (read/write), `byte_count_call` (write): change the arguments
- **difference**: with several workers each counts for itself, and calls when its own count is reached
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make,
};

/// The class.
pub const MP: Class = Class {
    name: "CounterMP",
    page: "\
# CounterMP([keywords COUNT_CALL, BYTE_COUNT_CALL, NO_RATE, ATOMIC])

The same as Counter, which counts for each worker by itself.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `COUNT_CALL`, `BYTE_COUNT_CALL` as for Counter; `NO_RATE` and `ATOMIC` have no effect
- **handlers**: as those of Counter
- **difference**: with several workers each counts for itself, and calls when its own count is reached
",
    ..CLASS
};

const COUNT: u16 = 0;
const BYTES: u16 = 1;
/// Whether a call may be due: a packet that no call waits for reads nothing that packets change.
const ARMED: u16 = 2;
/// The counts at which a handler is called; the largest number when none is to be called (any more).
const COUNT_CALL: u16 = 3;
const BYTE_CALL: u16 = 4;
const NEVER: u64 = u64::MAX;
/// Bytes of a long frame: so many may come with each packet.
const MOST_BYTES: u64 = 1 << 11;

/// Slow paths, by which calls are due.
const PATHS: [&str; 3] = ["count-call", "byte-count-call", "both-calls"];

struct Counter {
    name: String,
    count_call: Option<Trigger>,
    byte_call: Option<Trigger>,
    /// Of packets and of bytes.
    rates: Averages<2>,
    now_ns: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let name = cx.name.to_string();
    cx.transparent(|args| {
        let count_call = args.keyword("COUNT_CALL", Trigger::parse);
        let byte_call = args.keyword("BYTE_COUNT_CALL", Trigger::parse);
        for keyword in ["NO_RATE", "ATOMIC"] {
            let _ = args.keyword(keyword, parse::bool);
        }
        Some(Counter { name, count_call, byte_call, rates: Averages::new(), now_ns: 0 })
    })
}

impl Counter {
    fn calls(&self) -> [u64; 2] {
        [&self.count_call, &self.byte_call].map(|call| call.as_ref().map_or(NEVER, |trigger| trigger.at))
    }

    fn armed(&self) -> u64 {
        self.calls().iter().any(|at| *at != NEVER).into()
    }
}

impl Transparent for Counter {
    fn build(&self, f: &mut Builder) {
        f.name("Counter");
        let [count_call, byte_call] = self.calls();
        let armed = self.armed();
        let cells = [
            ("count", 0),
            ("byte_count", 0),
            ("armed", armed),
            ("count_call", count_call),
            ("byte_call", byte_call),
        ];
        for (name, init) in cells {
            f.cell(name, init);
        }
        f.add_to_cell(COUNT, 1);
        f.add_to_cell(BYTES, packet_len());
        let look = f.block();
        f.leave_if(cell(ARMED).differs(0), look);
        f.emit(0);

        f.at(look);
        let (count, bytes) = (f.eval(cell(COUNT)), f.eval(cell(BYTES)));
        let (count_at, bytes_at) = (f.eval(cell(COUNT_CALL)), f.eval(cell(BYTE_CALL)));
        let (count_due, bytes_due) = (f.eval(count.equals(count_at)), f.eval(bytes_at.at_most(bytes)));
        let call = f.block();
        f.leave_if(count_due | bytes_due, call);
        f.emit(0);

        f.at(call);
        let never = f.eval(NEVER);
        f.set_cell(COUNT_CALL, select(count_due, never, count_at));
        f.set_cell(BYTE_CALL, select(bytes_due, never, bytes_at));
        let [count_only, bytes_only, both] = PATHS.map(|path| f.slow_block(path));
        f.switch(count_due | (bytes_due << 1), vec![(1, count_only), (2, bytes_only)], both);
    }

    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let due = path + 1;
        for &index in batch.list() {
            for (bit, trigger) in [(1, &self.count_call), (2, &self.byte_call)] {
                if let Some(call) = trigger.as_ref().filter(|_| due & bit != 0).and_then(|t| t.call.as_ref())
                {
                    call.call(&self.name, work);
                }
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for Counter {
    element::facts!(writes: false, handlers: HANDLERS);

    fn packets_until_call(&self, cells: &[u64]) -> u64 {
        let &[count, bytes, _, count_call, byte_call, ..] = cells else { return u64::MAX };
        let until_count = match count_call.checked_sub(count) {
            Some(left) if count_call != NEVER && left > 0 => left,
            // Passed already: it is called when the count is reached, and not behind it.
            _ => u64::MAX,
        };
        let until_bytes = match byte_call {
            NEVER => u64::MAX,
            _ => byte_call.saturating_sub(bytes) / MOST_BYTES,
        };
        until_count.min(until_bytes)
    }

    fn tick_cells(&mut self, cells: &[u64], now_ns: u64) {
        self.now_ns = now_ns;
        if let Some(totals) = cells.first_chunk() {
            self.rates.tick(*totals, now_ns);
        }
    }
}

impl Counter {
    /// The average of the total in a cell.
    fn rate(&self, cells: &[u64], total: u16, scale: u32) -> Option<String> {
        let total = usize::from(total);
        Some(fixed_point_text(self.rates.rate(total, *cells.get(total)?, self.now_ns)?, scale))
    }

    /// Counts from zero again, and restores the calls of the arguments.
    fn reset(&mut self, cells: &mut [u64]) {
        let [count_call, byte_call] = self.calls();
        let reset = [0, 0, self.armed(), count_call, byte_call];
        cells.iter_mut().zip(reset).for_each(|(cell, number)| *cell = number);
        self.rates = Averages::new();
    }
}

/// Sets a trigger, and the cell that holds the count at which it is due.
fn set(value: &str, cells: &mut [u64], cell: u16, trigger: &mut Option<Trigger>) -> Result<(), String> {
    let new = written(value, Trigger::parse)?;
    for (cell, number) in [(cell, new.at), (ARMED, 1)] {
        cells.iter_mut().skip(cell.into()).take(1).for_each(|cell| *cell = number);
    }
    *trigger = Some(new);
    Ok(())
}

const HANDLERS: &[Row<Counter>] = &[
    Row::sum("count", |_, cells| cell_text(cells, COUNT)),
    Row::sum("byte_count", |_, cells| cell_text(cells, BYTES)),
    Row::sum("rate", |counter, cells| counter.rate(cells, COUNT, SCALE)),
    Row::sum("byte_rate", |counter, cells| counter.rate(cells, BYTES, SCALE)),
    Row::sum("bit_rate", |counter, cells| counter.rate(cells, BYTES, SCALE - 3)),
    Row::read_write(
        "count_call",
        |counter, _| {
            let trigger = counter.count_call.as_ref().filter(|trigger| trigger.call.is_some());
            Some(trigger.map_or_else(String::new, |trigger| trigger.at.to_string()))
        },
        |counter, value, cells| set(value, cells, COUNT_CALL, &mut counter.count_call),
    ),
    Row::write("byte_count_call", |counter, value, cells| {
        set(value, cells, BYTE_CALL, &mut counter.byte_call)
    }),
    Row::button("reset_counts", Counter::reset),
    Row::button("reset", Counter::reset),
];
