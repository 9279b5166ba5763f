//! `AdjustTimestamp` and `SetTimestampDelta`: change packets' timestamps by others.

use super::signed_time::{signed_ns, time_text};
use click::config::parse;
use element::value::set;
use element::{Class, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::anno::FIRST_TIMESTAMP;
use shm::Packet;
use shm::burst::Batch;

/// The class.
pub const ADJUST: Class = Class {
    name: "AdjustTimestamp",
    summary: "adjusts the time in the packet's timestamp",
    page: "\
# AdjustTimestamp(TIME [, keywords FIRST, ALL])

Adds TIME to each packet's timestamp.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `TIME` (seconds, or with a unit; may be negative); `FIRST` (default false): changes the annotation for
  the first packet of an aggregate instead; `ALL` (default false): changes timestamps of 0, too
- **annotations**: sets the timestamp, or `FIRST_TIMESTAMP`
- **handlers**: `time` (read/write)
- **difference**: a timestamp before 1970, which only a negative TIME makes, is written by ToIPSummaryDump and compared
  by TimeFilter; elements that wait for timestamps or sort by them take it for one in the far future
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| {
        cx.opaque(|args| {
            let time_ns = args.mandatory_positional("TIME", signed_ns);
            let first = args.keyword("FIRST", parse::bool).unwrap_or(false);
            let all = args.keyword("ALL", parse::bool).unwrap_or(false);
            Some(Adjust { time_ns: time_ns?, first, all })
        })
    },
};

/// The class.
pub const DELTA: Class = Class {
    name: "SetTimestampDelta",
    summary: "makes timestamps relative",
    page: "\
# SetTimestampDelta([keyword TYPE])

Sets each packet's timestamp to a difference.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `TYPE` (default FIRST): `FIRST`: the time since the first packet that had a timestamp; `RANGE`: the time
  since the annotation for the first packet of an aggregate; `NOW`: the packet's age
- **annotations**: sets the timestamp; reads `FIRST_TIMESTAMP`
- **handlers**: `first` (read): the timestamp of the first packet; `type` (read); `reset` (write): the next packet is
  the first
- **difference**: a negative difference is handled as AdjustTimestamp says. With several workers each has a first packet
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| {
        cx.opaque(|args| {
            let choices = [("FIRST", Since::First), ("RANGE", Since::Range), ("NOW", Since::Now)];
            let since = args.keyword("TYPE", parse::keyword(&choices)).unwrap_or(Since::First);
            Some(Delta { since, first_ns: None })
        })
    },
};

struct Adjust {
    time_ns: i64,
    first: bool,
    all: bool,
}

impl Adjust {
    fn adjusted(&self, time_ns: u64) -> u64 {
        if time_ns == 0 && !self.all { 0 } else { time_ns.wrapping_add_signed(self.time_ns) }
    }
}

impl Opaque for Adjust {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let packet = batch.packet_mut(index);
            if self.first {
                let adjusted = self.adjusted(FIRST_TIMESTAMP.load(&packet.anno));
                FIRST_TIMESTAMP.store(&mut packet.anno, adjusted);
            } else {
                packet.timestamp_ns = self.adjusted(packet.timestamp_ns);
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for Adjust {
    element::facts!(writes: false, handlers: ADJUST_HANDLERS);
}

const ADJUST_HANDLERS: &[Row<Adjust>] = &[Row::read_write(
    "time",
    |adjust, _| Some(time_text(adjust.time_ns.cast_unsigned())),
    |adjust, value, _| set(&mut adjust.time_ns, value, signed_ns),
)];

/// What a timestamp is made relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Since {
    First,
    Range,
    Now,
}

struct Delta {
    since: Since,
    first_ns: Option<u64>,
}

impl Delta {
    fn difference(&mut self, packet: &Packet, now_ns: u64) -> u64 {
        let time_ns = packet.timestamp_ns;
        match self.since {
            Since::First if self.first_ns.is_none() && time_ns == 0 => 0,
            Since::First => time_ns.wrapping_sub(*self.first_ns.get_or_insert(time_ns)),
            Since::Range => time_ns.wrapping_sub(FIRST_TIMESTAMP.load(&packet.anno)),
            Since::Now => now_ns.wrapping_sub(time_ns),
        }
    }
}

impl Opaque for Delta {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let now_ns = work.now_ns();
        for &index in batch.list() {
            let packet = batch.packet_mut(index);
            packet.timestamp_ns = self.difference(packet, now_ns);
            batch.emit(index, 0);
        }
    }
}

impl Element for Delta {
    element::facts!(writes: false, handlers: DELTA_HANDLERS);
}

const DELTA_HANDLERS: &[Row<Delta>] = &[
    Row::read("first", |delta, _| Some(time_text(delta.first_ns.unwrap_or(0)))),
    Row::read("type", |delta, _| Some(format!("{:?}", delta.since).to_uppercase())),
    Row::button("reset", |delta, _| delta.first_ns = None),
];
