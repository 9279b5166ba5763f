//! Numbers on a packet's path, the inputs that they depend on, and why a path is refused.

use ir::program::Value;
use packet::field::Field;

/// Why a packet's path has no template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The flow has no record yet in some table.
    #[error("the flow is new")]
    New,
    /// A record has another value than packets write to it.
    #[error("the flow's record still changes")]
    Unsteady,
    /// Packets of this kind never have a template.
    #[error("{0}")]
    Never(&'static str),
}

/// A result of recording, or why the path is refused.
pub(super) type Recorded<T> = Result<T, Refusal>;

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
    /// Whether it is 0.
    IsZero,
    /// The present time where it is 0: that of the first packet.
    First,
}

/// In place of a record's index, for a cell, whose number is in place of the offset.
pub(super) const CELL: u32 = u32::MAX;

/// A number of a record, by the record's index in the list of those found, or a cell, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Changing {
    pub record: u32,
    pub offset: u16,
    pub change: Change,
}

/// The input that a number depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Is {
    /// Nothing: it is part of the template.
    Same,
    /// The flow: the number of a [`Fact`].
    Flow(u32),
    /// The packet: the result of an instruction.
    Packet(Value),
    /// A number of a record that packets change: it may only be stored there again.
    Changing(Changing),
    /// A record, by its index in the list of those found.
    Record(u32),
}

/// A number on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TermUse {
    /// Its value for this packet.
    pub number: u64,
    /// The input that it depends on.
    pub is: Is,
    /// An upper bound of its bits.
    pub bits: u8,
}

impl TermUse {
    pub fn same(number: u64) -> TermUse {
        TermUse { number, is: Is::Same, bits: (64 - number.leading_zeros()) as u8 }
    }

    pub fn is_same(self, number: u64) -> bool {
        self.is == Is::Same && self.number == number
    }

    pub fn on_packet(self) -> Option<Value> {
        match self.is {
            Is::Packet(value) => Some(value),
            _ => None,
        }
    }
}

/// The source of a number that depends on the flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TermSource {
    /// The flow key.
    Key(Field),
    /// A record: its index in the list, offset, bytes.
    Record(u32, u16, u8),
    /// Arithmetic.
    Computed,
    /// A number that depends on the packet; all packets of the flow are expected to have the same.
    Pinned(Value),
}
