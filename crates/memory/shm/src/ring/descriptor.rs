//! What an entry of a ring says.

/// What is to happen to a packet that an NF gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Action {
    /// It is dropped.
    #[default]
    Drop = 0,
    /// It leaves by the NF's output of the descriptor's destination.
    Emit = 1,
    /// The host keeps it until the NF asks for it.
    Hold = 2,
}

impl Action {
    /// The action of that number; `None` when there is none.
    pub fn from_number(number: u8) -> Option<Action> {
        [Action::Drop, Action::Emit, Action::Hold].into_iter().find(|action| *action as u8 == number)
    }
}

/// A descriptor on a packet, 16 bytes in a ring: what a peer says, not what is so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Descriptor {
    /// The slot of its first segment.
    pub slot: u32,
    /// The life that the slot was in.
    pub generation: u32,
    /// Where the first byte lies, from the buffer's start.
    pub data: u16,
    /// Bytes in the first segment.
    pub len: u16,
    /// What is to happen: the number of an [`Action`].
    pub action: u8,
    /// How many NFs of a direct-path group had the packet before whom the descriptor comes to: which of several
    /// descriptors of one in-flight entry is the latest.
    pub hops: u8,
    /// Output, device or NF, depending on the action.
    pub destination: u16,
}

impl Descriptor {
    /// As it lies in a ring.
    #[inline(always)]
    pub fn words(self) -> [u64; 2] {
        let place = u64::from(self.data) | u64::from(self.len) << 16;
        let what = u64::from(self.action) | u64::from(self.hops) << 8 | u64::from(self.destination) << 16;
        [u64::from(self.slot) | u64::from(self.generation) << 32, place | what << 32]
    }

    /// From a ring: any two words are some descriptor.
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
