//! Numbers of records that packets change, as an entry counts them for its packets.
//!
//! A packet that takes a template writes to no record. What it would have changed there, such as the time of
//! its flow's last packet, is counted in the entry: in a *tally*. Records whose numbers change alike share
//! one: ten translators of a chain note the same time. The host merges tallies into the records
//! ([`Merging`]).

use super::cache_entry;
use ir::expr::{self, Expr, now_ns, record};
use ir::program::Value;
use ir::{Builder, Merge, Table};

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

    /// 1 while a packet need not change it, as an expression; `None` where every packet counts, since a
    /// branch would depend on the packet.
    pub(super) fn is_settled(self, entry: Value, at: u16) -> Option<Expr> {
        match self {
            Tally::LastIf(..) => None,
            Tally::Bits(value) => Some((record(entry, at, 1) | value).equals(record(entry, at, 1))),
            Tally::Packets(most) => Some(record(entry, at, 1).at_least(u64::from(most))),
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

impl Merging {
    /// Adds an entry's part to the number in a record.
    pub fn merge(&self, part: u64, table: &mut dyn Table, record: u64) {
        let own = table.record_load(record, self.offset, self.bytes);
        let both = self.how.of(own, part);
        if both != own {
            table.record_store(record, self.offset, self.bytes, both);
        }
    }
}

/// Where an entry has the time of its last packet.
pub(super) const LAST: (u16, u8) = (cache_entry::LAST_NS, 8);
