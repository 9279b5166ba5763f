//! `RatedSplitter` and `BandwidthRatedSplitter`: part traffic at a rate.

use super::limits::{Limit, Unit};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Batch;

/// The class.
pub const RATED_SPLITTER: Class = Class {
    name: "RatedSplitter",
    summary: "splits flow of packets at specified rate",
    page: "\
# RatedSplitter(RATE [, keywords BURST_DURATION, BURST_SIZE])

Sends up to RATE packets a second out of output 0, and the others out of output 1.

- **ports**: 1 input, 1 or 2 outputs, push
- **arguments**: `RATE`: packets a second; `BURST_DURATION` (default 20 ms): the longest time for which the rate is
  saved up; `BURST_SIZE`: the most packets that are saved up, instead
- **handlers**: `rate` (read/write)
- **drop reasons**: `above-rate`: there is no output 1
- **difference**: with several workers each has the whole rate
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::PerWorker,
    make: |cx| make(cx, Unit::Packets),
};

/// The class.
pub const BANDWIDTH_RATED_SPLITTER: Class = Class {
    name: "BandwidthRatedSplitter",
    summary: "splits flow of packets at specified bandwidth",
    page: "\
# BandwidthRatedSplitter(RATE [, keywords BURST_DURATION, BURST_BYTES])

Sends packets with up to RATE bytes a second out of output 0, and the others out of output 1.

- **ports**: 1 input, 1 or 2 outputs, push
- **arguments**: `RATE`: bandwidth, in bytes a second or with a unit (`384kbps`); `BURST_DURATION` (default 20 ms): the
  longest time for which the bandwidth is saved up; `BURST_BYTES`: the most bytes that are saved up, instead
- **handlers**: `rate` (read/write)
- **drop reasons**: `above-rate`: there is no output 1
- **difference**: with several workers each has the whole bandwidth
",
    make: |cx| make(cx, Unit::Bytes),
    ..RATED_SPLITTER
};

struct Splitter(Limit);

fn make(cx: &mut Configure<'_>, unit: Unit) -> Option<BoxElement> {
    cx.opaque(|args| Some(Splitter(Limit::read(args, unit)?)))
}

impl Opaque for Splitter {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.0.fill(work.now_ns());
        for &index in batch.list() {
            match self.0.admits(batch.packet(index).total().into()) {
                true => batch.emit(index, 0),
                false => batch.emit_or_drop(index, 1, 0),
            }
        }
    }
}

impl Element for Splitter {
    element::facts!(writes: false, reasons: &["above-rate"], handlers: HANDLERS);
}

const HANDLERS: &[Row<Splitter>] = &[Row::read_write(
    "rate",
    |splitter, _| Some(splitter.0.rate_text()),
    |splitter, value, _| splitter.0.set_rate(value),
)];
