//! The content of a ring entry.

/// The action for a packet that an NF returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Action {
    /// The packet is dropped.
    #[default]
    Drop = 0,
    /// The packet leaves by the NF's output that is the descriptor's destination.
    Emit = 1,
    /// The host keeps the packet until the NF returns it.
    Hold = 2,
}

impl Action {
    /// The action with that number; `None` if there is none.
    #[inline(always)]
    pub const fn from_number(number: u8) -> Option<Action> {
        match number {
            0 => Some(Action::Drop),
            1 => Some(Action::Emit),
            2 => Some(Action::Hold),
            _ => None,
        }
    }
}

/// A packet's descriptor in a ring, 16 bytes, as the peer wrote it: unchecked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Descriptor {
    /// The slot of its first segment.
    pub slot: u32,
    /// Generation of the slot's in-flight entry.
    pub generation: u32,
    /// Offset of the first byte from the buffer's start.
    pub data: u16,
    /// Bytes in the first segment.
    pub len: u16,
    /// The number of an [`Action`].
    pub action: u8,
    /// The number of NFs of a direct-path group that had the packet before the receiver of this descriptor.
    /// It orders the descriptors of one in-flight entry: the largest is the latest.
    pub hops: u8,
    /// To an NF: the number of its input, or [`GRANT`](crate::channel::GRANT). From an NF: the number of its
    /// output.
    pub destination: u16,
}

impl Descriptor {
    /// The descriptor in the words of a ring entry.
    #[inline(always)]
    pub fn words(self) -> [u64; 2] {
        let place = u64::from(self.data) | u64::from(self.len) << 16;
        let what = u64::from(self.action) | u64::from(self.hops) << 8 | u64::from(self.destination) << 16;
        [u64::from(self.slot) | u64::from(self.generation) << 32, place | what << 32]
    }

    /// The descriptor of a ring entry: any two words are a descriptor.
    #[inline(always)]
    pub fn from_words([first, second]: [u64; 2]) -> Descriptor {
        Descriptor {
            slot: first as u32,
            generation: (first >> 32) as u32,
            data: second as u16,
            len: (second >> 16) as u16,
            action: (second >> 32) as u8,
            hops: (second >> 40) as u8,
            destination: (second >> 48) as u16,
        }
    }
}
