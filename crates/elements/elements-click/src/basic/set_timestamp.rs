//! `SetTimestamp`: sets packets' timestamps.

use click::config::{Args, parse};
use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use packet::anno::FIRST_TIMESTAMP;
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "SetTimestamp",
    summary: "stores the time in the packet",
    page: "\
# SetTimestamp([TIMESTAMP, keywords FIRST, PER_BATCH])

Sets each packet's timestamp.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `TIMESTAMP` (seconds since 1970, default: now); `FIRST` (default false): sets the
  annotation for the first packet of an aggregate instead; `PER_BATCH` has no effect
- **annotations**: sets the timestamp, or `FIRST_TIMESTAMP`
- **difference**: packets of a burst get the same time, because the clock is read once for each burst
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| cx.opaque(make),
};

struct SetTimestamp {
    /// `None` for the current time.
    time_ns: Option<u64>,
    first: bool,
}

fn make(args: &mut Args<'_>) -> Option<SetTimestamp> {
    let time_ns = args.positional("TIMESTAMP", parse::seconds_ns);
    let first = args.keyword("FIRST", parse::bool).unwrap_or(false);
    let _ = args.keyword("PER_BATCH", parse::bool);
    Some(SetTimestamp { time_ns, first })
}

impl Opaque for SetTimestamp {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let time_ns = self.time_ns.unwrap_or(work.now_ns());
        for &index in batch.list() {
            let packet = batch.packet_mut(index);
            if self.first {
                FIRST_TIMESTAMP.store(&mut packet.anno, time_ns);
            } else {
                packet.timestamp_ns = time_ns;
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for SetTimestamp {
    element::facts!(writes: false);
}
