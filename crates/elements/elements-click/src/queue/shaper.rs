//! `Shaper` and `BandwidthShaper`: let pulls through at a rate.

use super::limits::{Limit, Unit};
use element::{BoxElement, Class, Configure, Element, Handlers, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Vector;

/// The class.
pub const SHAPER: Class = Class {
    name: "Shaper",
    summary: "shapes traffic to maximum packet rate",
    page: "\
# Shaper(RATE [, keywords BURST_DURATION, BURST_SIZE])

Lets no more than RATE packets a second be pulled through it.

- **ports**: 1 pull input, 1 pull output
- **arguments**: `RATE`: packets a second; `BURST_DURATION` (default 20 ms): for how long the rate may be
  saved up; `BURST_SIZE`: how many packets may be saved up, instead of it
- **handlers**: `rate` (read/write); `reset` (write): starts over with a full burst
- **difference**: with several workers each has the whole rate
",
    codes: PortCodes::new("1/1", "l/l"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, Unit::Packets),
};

/// The class.
pub const BANDWIDTH_SHAPER: Class = Class {
    name: "BandwidthShaper",
    summary: "shapes traffic to maximum bandwidth",
    page: "\
# BandwidthShaper(RATE [, keywords BURST_DURATION, BURST_BYTES])

Lets no more than RATE bytes a second be pulled through it.

- **ports**: 1 pull input, 1 pull output
- **arguments**: `RATE`: bandwidth, in bytes a second or with a unit (`384kbps`); `BURST_DURATION` (default
  20 ms): for how long the bandwidth may be saved up; `BURST_BYTES`: how many bytes may be saved up,
  instead of it
- **handlers**: `rate` (read/write); `reset` (write): starts over with a full burst
- **difference**: with several workers each has the whole bandwidth
",
    make: |cx| make(cx, Unit::Bytes),
    ..SHAPER
};

struct Shaper {
    limit: Limit,
}

fn make(cx: &mut Configure<'_>, unit: Unit) -> Option<BoxElement> {
    cx.opaque(|args| Some(Shaper { limit: Limit::read(args, unit)? }))
}

impl Opaque for Shaper {
    fn pull(&mut self, _output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        self.limit.pull(most.min(into.room()), into, work).0
    }
}

impl Element for Shaper {
    fn writes(&self) -> bool {
        false
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

const HANDLERS: &[Row<Shaper>] = &[
    Row::read_write(
        "rate",
        |shaper, _| Some(shaper.limit.rate_text()),
        |shaper, value, _| shaper.limit.set_rate(value),
    ),
    Row::button("reset", |shaper, _| shaper.limit.reset()),
];
