//! `AverageCounter`: counts packets and measures their average rate.

use click::config::{Args, parse};
use element::value::cell_text;
use element::{Class, Element, Merge, PortCodes, Row, StateScope, Transparent};
use ir::Builder;
use ir::expr::{cell, now_ns, packet_len, select};

/// The class.
pub const CLASS: Class = Class {
    name: "AverageCounter",
    summary: "measures historical packet count and rate",
    page: "\
# AverageCounter([IGNORE])

Passes packets unchanged, counts them, and measures their average rate from the first to the last.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `IGNORE` (default 0): seconds after the first packet during which nothing is counted
- **handlers**: `count`, `byte_count` (read): packets and bytes; `rate`, `byte_rate`, `bit_rate` (read):
  packets, bytes and bits a second; `time` (read): seconds from the first packet, less IGNORE, to the last;
  `reset` (write)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

/// The shortest time that counts, as in Click, whose clock has milliseconds.
const SHORTEST_NS: u64 = 1_000_000;
/// The first of its program's cells.
const COUNT: u16 = 0;
const BYTES: u16 = 1;

struct AverageCounter {
    ignore_ns: u64,
}

fn make(args: &mut Args<'_>) -> Option<AverageCounter> {
    let ignore_ns = args.positional("IGNORE", parse::seconds_ns).unwrap_or(0);
    Some(AverageCounter { ignore_ns })
}

impl Transparent for AverageCounter {
    fn build(&self, f: &mut Builder) {
        f.name("AverageCounter");
        let (count, bytes) = (f.cell("count", 0), f.cell("byte_count", 0));
        let (first, last) = (f.cell("first_ns", 0), f.cell("last_ns", 0));
        let (now_ns, then_ns) = (f.eval(now_ns()), f.eval(cell(first)));
        let first_ns = f.eval(select(then_ns.equals(0), now_ns, then_ns));
        f.set_cell(first, first_ns);
        f.set_cell(last, now_ns);
        if self.ignore_ns > 0 {
            let ignored = f.aside(|f| f.emit(0));
            f.leave_if((now_ns - first_ns).less_than(self.ignore_ns), ignored);
        }
        f.add_to_cell(count, 1);
        f.add_to_cell(bytes, packet_len());
        f.emit(0);
    }

    /// The times are those of the burst.
    fn ignores_order(&self) -> bool {
        true
    }
}

impl Element for AverageCounter {
    element::facts!(handlers: HANDLERS);
}

impl AverageCounter {
    /// The measured time in seconds.
    fn seconds(&self, cells: &[u64]) -> Option<f64> {
        let [_, _, first_ns, last_ns] = *cells.first_chunk()?;
        let time_ns = last_ns.saturating_sub(first_ns).saturating_sub(self.ignore_ns).max(SHORTEST_NS);
        Some(time_ns as f64 / 1e9)
    }

    /// The count of a cell, times a factor, per second.
    fn rate(&self, cells: &[u64], cell: u16, times: f64) -> Option<String> {
        let count = *cells.get(usize::from(cell))? as f64;
        Some((count * times / self.seconds(cells)?).to_string())
    }
}

const HANDLERS: &[Row<AverageCounter>] = &[
    Row::sum("count", |_, cells| cell_text(cells, COUNT)),
    Row::sum("byte_count", |_, cells| cell_text(cells, BYTES)),
    Row::sum("rate", |counter, cells| counter.rate(cells, COUNT, 1.0)),
    Row::sum("byte_rate", |counter, cells| counter.rate(cells, BYTES, 1.0)),
    Row::sum("bit_rate", |counter, cells| counter.rate(cells, BYTES, 8.0)),
    Row::merged("time", Merge::Max, |counter, cells| Some(counter.seconds(cells)?.to_string())),
    Row::button("reset", |_, cells| cells.fill(0)),
];
