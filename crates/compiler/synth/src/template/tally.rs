//! Numbers of records that packets change, as an entry counts them for its packets.
//!
//! A packet that takes a template writes to no record. What it would have changed there, such as the time of
//! its flow's last packet, is counted in the entry: in a *tally*. Records whose numbers change alike share one:
//! ten translators of a chain note the same time. The host merges tallies into the records ([`Merging`]).

use super::cache_entry;
use super::code::Code;
use super::term::{Is, Recorded, Refusal, TermUse};
use ir::expr::{self, Expr, now_ns, record};
use ir::program::Value;
use ir::{BinOp, Builder, Inst, Merge};

/// What an entry counts for packets that take its template.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tally {
    /// The time of the last packet for which a value is not 0, or is 0.
    LastIf(Value, bool),
    /// All bits that a value had.
    Bits(Value),
    /// Packets, up to this number.
    Packets(u8),
}

impl Tally {
    /// The packet's value on which it depends.
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Tally::LastIf(value, _) | Tally::Bits(value) => Some(value),
            Tally::Packets(_) => None,
        }
    }

    /// The same with another name for its value.
    pub(super) fn placed(self, place: impl Fn(Value) -> Value) -> Tally {
        match self {
            Tally::LastIf(value, is_set) => Tally::LastIf(place(value), is_set),
            Tally::Bits(value) => Tally::Bits(place(value)),
            Tally::Packets(most) => Tally::Packets(most),
        }
    }

    /// Bytes in the entry.
    pub(super) fn bytes(self) -> u8 {
        if let Tally::LastIf(..) = self { 8 } else { 1 }
    }

    /// 1 while a packet need not change it, as an expression. A time may be `grain_ns` old.
    pub(super) fn is_settled(self, entry: Value, at: u16, grain_ns: u64) -> Expr {
        match self {
            Tally::LastIf(value, is_set) => {
                let is_recent = now_ns().at_most(record(entry, at, 8) + grain_ns);
                let is_other = if is_set { value.equals(0) } else { value.differs(0) };
                is_other | is_recent
            }
            Tally::Bits(value) => (record(entry, at, 1) | value).equals(record(entry, at, 1)),
            Tally::Packets(most) => record(entry, at, 1).at_least(u64::from(most)),
        }
    }

    /// Counts a packet.
    pub(super) fn count(self, f: &mut Builder, entry: Value, at: u16) {
        let now = match self {
            Tally::LastIf(value, is_set) => {
                let old = record(entry, at, 8);
                if is_set { expr::select(value, now_ns(), old) } else { expr::select(value, old, now_ns()) }
            }
            Tally::Bits(value) => record(entry, at, 1) | value,
            Tally::Packets(most) => (record(entry, at, 1) + 1).min(u64::from(most)),
        };
        f.store_record(entry, at, self.bytes(), now);
    }
}

/// A number of a record into which an entry's tally is merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Merging {
    /// The record, by its index in [`super::Template::lines`].
    pub line: u16,
    /// The number's offset in the record.
    pub offset: u16,
    /// Its bytes.
    pub bytes: u8,
    /// How a part is merged.
    pub how: Merge,
    /// The tally's offset in the entry, and its bytes.
    pub tally: (u16, u8),
}

/// What becomes of a record's number before it is stored there again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Change {
    Nothing,
    /// One more.
    Counted,
    /// One more, but at most this.
    CountedTo(u8),
    /// With further bits.
    Bits(Value),
    /// The present time, if a value is not 0, or is 0.
    NowIf(Value, bool),
}

/// A number of a record, by the record's index in the list of those found, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Changing {
    pub record: u32,
    pub offset: u16,
    pub change: Change,
}

const NEVER: Refusal = Refusal::Never("it hangs on a number that packets change");

impl Changing {
    fn with(self, change: Change) -> Is {
        Is::Changing(Changing { change, ..self })
    }
}

/// Arithmetic with a changing number: only what a tally can count.
pub(super) fn bin(code: &mut Code, op: BinOp, a: TermUse, b: TermUse) -> Recorded<TermUse> {
    let (changing, other) = match (a.is, b.is) {
        (Is::Changing(_), Is::Changing(_)) => return Err(NEVER),
        (Is::Changing(changing), _) => (changing, b),
        (_, Is::Changing(changing)) => (changing, a),
        _ => return code.bin(op, a, b),
    };
    let is = match (op, changing.change) {
        (BinOp::Add, Change::Nothing) if other.is_same(1) => changing.with(Change::Counted),
        (BinOp::Min, Change::Counted) if other.is == Is::Same => {
            changing.with(Change::CountedTo(u8::try_from(other.number).map_err(|_| NEVER)?))
        }
        (BinOp::Or, Change::Nothing) => changing.with(Change::Bits(code.value(other)?)),
        _ => return Err(NEVER),
    };
    Ok(TermUse { number: op.apply(a.number, b.number), is, bits: 64 })
}

/// A choice between a changing number and the present time; `None` if it is another.
pub(super) fn select(code: &Code, c: TermUse, a: TermUse, b: TermUse) -> Recorded<Option<TermUse>> {
    let (changing, time, is_set) = match (a.is, b.is) {
        (Is::Changing(changing), _) => (changing, b, false),
        (_, Is::Changing(changing)) => (changing, a, true),
        _ => return Ok(None),
    };
    let number = if c.number != 0 { a.number } else { b.number };
    let Some(value) = code.steady(c)?.on_packet() else {
        return Ok(Some(if c.number != 0 { a } else { b }));
    };
    match (changing.change, is_now(code, time)) {
        (Change::Nothing, true) => {
            Ok(Some(TermUse { number, is: changing.with(Change::NowIf(value, is_set)), bits: 64 }))
        }
        _ => Err(NEVER),
    }
}

fn is_now(code: &Code, seen: TermUse) -> bool {
    seen.on_packet().is_some_and(|value| code.inst(value) == Inst::Now)
}

/// A number that is stored into a record's changing number.
pub(super) enum Stored {
    /// It stays.
    Nothing,
    /// The entry's time of its last packet is merged into it.
    Last,
    /// A tally is merged into it.
    Tally(Tally),
}

/// What a tally has to count for a store.
pub(super) fn stored(code: &Code, to: (u32, u16), bytes: u8, how: Merge, value: TermUse) -> Recorded<Stored> {
    let own = match value.is {
        Is::Changing(changing) if (changing.record, changing.offset) == to => changing.change,
        _ if how == Merge::Max && bytes == 8 && is_now(code, value) => return Ok(Stored::Last),
        _ => return Err(NEVER),
    };
    match (how, own) {
        (_, Change::Nothing) => Ok(Stored::Nothing),
        (Merge::Max, Change::NowIf(value, is_set)) if bytes == 8 => {
            Ok(Stored::Tally(Tally::LastIf(value, is_set)))
        }
        (Merge::Or, Change::Bits(value)) if bytes == 1 && code.bits(value) <= 8 => {
            Ok(Stored::Tally(Tally::Bits(value)))
        }
        (Merge::SumTo(most), Change::CountedTo(same)) if bytes == 1 && most == same => {
            Ok(Stored::Tally(Tally::Packets(most)))
        }
        _ => Err(NEVER),
    }
}

/// Where an entry has the time of its last packet.
pub(super) const LAST: (u16, u8) = (cache_entry::LAST_NS, 8);
