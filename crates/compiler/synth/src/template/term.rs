//! Numbers as they are seen on a packet's way, what they hang on, and why a way is refused.

use ir::program::Value;
use packet::field::Field;

/// Why a packet's way is no template.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The flow has no record yet in some table.
    #[error("the flow is new")]
    New,
    /// A record has not come to rest: it counts the flow's first packets.
    #[error("the flow's record still changes")]
    Unsteady,
    /// Packets of this kind never take one.
    #[error("{0}")]
    Never(&'static str),
}

/// What a number hangs on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Is {
    /// Nothing: it is part of the template.
    Same,
    /// The flow: the number of a [`Fact`].
    Flow(u32),
    /// The packet: what an instruction yields.
    Packet(Value),
    /// When packets last did something, give or take a lease: only good for storing in such a place.
    Time,
    /// A record, by its place in the list of those found.
    Record(u32),
}

/// A number that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TermUse {
    /// What it is for this packet.
    pub number: u64,
    /// What it hangs on.
    pub is: Is,
    /// No more of its bits are ever set.
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

/// Where a number comes from that hangs on the flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum TermSource {
    /// The flow key.
    Key(Field),
    /// A record: its place in the list, offset, bytes.
    Record(u32, u16, u8),
    /// Arithmetic.
    Computed,
    /// One that hangs on the packet, of which the flow's packets are expected to have the same.
    Pinned(Value),
}
