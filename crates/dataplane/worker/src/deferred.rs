//! Packets that elements emit outside their batches, until they are pushed.

use shm::Packet;
use shm::burst::LIST_CAPACITY;

/// Where an emitted packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Emit {
    /// The output.
    pub port: usize,
    /// Twice the index of the packet of the batch before which it leaves, and one more behind that packet; [`u16::MAX`]
    /// behind all.
    pub place: u16,
}

impl Emit {
    /// The packets of the batch with this index or a higher one come behind it.
    pub fn end(&self) -> u16 {
        self.place.div_ceil(2)
    }

    /// The packet of the batch which it was made of, or more than any index.
    pub fn parent(&self) -> u16 {
        self.place / 2
    }
}

/// Packets that elements emitted outside their batches.
#[derive(Default)]
pub(crate) struct DeferredEmits {
    packets: Vec<Packet>,
    emits: Vec<Emit>,
    /// Kept for its allocation.
    order: Vec<u32>,
}

impl DeferredEmits {
    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Adds packets that leave by a port.
    #[inline]
    pub fn push(&mut self, (port, place): (usize, u16), packets: &[Packet]) {
        self.packets.extend_from_slice(packets);
        self.emits.resize(self.packets.len(), Emit { port, place });
    }

    /// Removes all but the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.packets.truncate(len);
        self.emits.truncate(len);
    }

    /// The packets from `at` on that leave in one place by the same port, as many as a vector has room for.
    #[inline]
    pub fn run(&self, at: usize) -> Option<(Emit, &[Packet])> {
        let emits = self.emits.get(at..)?;
        let first = *emits.first()?;
        let count = emits.iter().take(LIST_CAPACITY).take_while(|other| **other == first).count();
        Some((first, &self.packets[at..at + count]))
    }

    /// Where the packets from `at` on leave.
    pub fn emits(&self, at: usize) -> &[Emit] {
        &self.emits[at..]
    }

    /// Sorts the packets from `at` on by a key. Those with the same key stay in their order.
    pub fn sort_by_key(&mut self, at: usize, key: impl Fn(&Emit) -> usize) {
        if self.emits[at..].is_sorted_by_key(&key) {
            return;
        }
        // Copied in order behind the others, and moved down.
        let end = self.len();
        self.order.clear();
        self.order.extend(at as u32..end as u32);
        self.order.sort_by_key(|from| key(&self.emits[*from as usize]));
        for from in &self.order {
            self.packets.push(self.packets[*from as usize]);
            self.emits.push(self.emits[*from as usize]);
        }
        self.packets.drain(at..end);
        self.emits.drain(at..end);
    }

    /// Lets the packets from `at` on leave in no particular place.
    pub fn forget_places(&mut self, at: usize) {
        self.emits[at..].iter_mut().for_each(|emit| emit.place = u16::MAX);
    }
}
