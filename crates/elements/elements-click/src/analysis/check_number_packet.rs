//! `CheckNumberPacket`: counts how often each number comes in packets.

use super::number_packet::{NumberPlace, offset};
use click::config::{Args, parse};
use element::value::written;
use element::{Class, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "CheckNumberPacket",
    summary: "checks the numbers that NumberPacket stored",
    page: "\
# CheckNumberPacket([OFFSET, COUNT, keyword NET_ORDER])

Counts how often each number below COUNT comes in packets that NumberPacket numbered: which packets of a test were
lost or doubled.

- **ports**: 1 input, 1 or 2 outputs, push; packets without a number below COUNT leave by output 1
- **arguments**: `OFFSET` (0 to 65000, default 40): where the number begins; `COUNT` (0 to 16777216, default 0):
  numbers that are counted; `NET_ORDER` (default false): the number is in network byte order
- **handlers**: `count` (read/write): COUNT; `min`, `max` (read): the number that came the least and the most often,
  as `[NUMBER] : TIMES`; `dump` (read): a line `NUMBER: TIMES` for each number
- **drop reasons**: `out-of-scope`: the number is COUNT or more; `short-packet`: the packet ends before it
- **workers**: one worker counts
- **difference**: numbers out of scope are counted as drops, not printed
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::OneWorker,
    make: |cx| cx.opaque(make),
};

/// The most numbers that are counted: 64 MB.
const MOST: i64 = 1 << 24;

element::reasons!(OUT_OF_SCOPE = "out-of-scope", SHORT = "short-packet");

struct CheckNumberPacket {
    place: NumberPlace,
    /// How often each number came.
    times: Vec<u32>,
}

fn make(args: &mut Args<'_>) -> Option<CheckNumberPacket> {
    let offset = offset(args).unwrap_or(40);
    let count = args.positional("COUNT", parse::int_in(0..=MOST)).unwrap_or(0);
    let net_order = args.keyword("NET_ORDER", parse::bool).unwrap_or(false);
    Some(CheckNumberPacket { place: NumberPlace { offset, net_order }, times: vec![0; count as usize] })
}

impl Opaque for CheckNumberPacket {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let Some(number) = self.place.read(batch.packet(index)) else {
                batch.emit_or_drop(index, 1, SHORT);
                continue;
            };
            match usize::try_from(number).ok().and_then(|number| self.times.get_mut(number)) {
                Some(times) => {
                    *times = times.saturating_add(1);
                    batch.emit(index, 0);
                }
                None => batch.emit_or_drop(index, 1, OUT_OF_SCOPE),
            }
        }
    }
}

impl Element for CheckNumberPacket {
    element::facts!(writes: false, reasons: REASONS, handlers: HANDLERS);
}

/// A number and how often it came; -1 if there are no numbers, as in FastClick.
fn line(found: Option<(usize, &u32)>, none: i64) -> Option<String> {
    Some(found.map_or_else(|| format!("[-1] : {none}"), |(number, times)| format!("[{number}] : {times}")))
}

const HANDLERS: &[Row<CheckNumberPacket>] = &[
    Row::read("max", |check, _| {
        // The first of several.
        line(check.times.iter().enumerate().rev().max_by_key(|(_, times)| **times), -1)
    }),
    Row::read("min", |check, _| {
        line(check.times.iter().enumerate().min_by_key(|(_, times)| **times), i32::MAX.into())
    }),
    Row::read_write(
        "count",
        |check, _| Some(check.times.len().to_string()),
        |check, value, _| {
            check.times.resize(written(value, parse::int_in(0..=MOST))? as usize, 0);
            Ok(())
        },
    ),
    Row::read("dump", |check, _| {
        let lines = check.times.iter().enumerate().map(|(number, times)| format!("{number}: {times}"));
        Some(lines.collect::<Vec<_>>().join("\n"))
    }),
];
