//! Packets that elements emit outside their batches, until they are pushed.

use shm::Packet;
use shm::burst::LIST_CAPACITY;

/// Packets that elements emitted outside their batches, with the port of each.
#[derive(Default)]
pub(crate) struct DeferredEmits {
    packets: Vec<Packet>,
    ports: Vec<usize>,
}

impl DeferredEmits {
    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Adds packets that leave by a port.
    #[inline]
    pub fn push(&mut self, port: usize, packets: &[Packet]) {
        self.packets.extend_from_slice(packets);
        self.ports.resize(self.packets.len(), port);
    }

    /// Removes all but the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.packets.truncate(len);
        self.ports.truncate(len);
    }

    /// The packets from `at` on that leave by the same port, as many as a vector has room for.
    #[inline]
    pub fn run(&self, at: usize) -> Option<(usize, &[Packet])> {
        let ports = self.ports.get(at..)?;
        let port = *ports.first()?;
        let count = ports.iter().take(LIST_CAPACITY).take_while(|other| **other == port).count();
        Some((port, &self.packets[at..at + count]))
    }
}
