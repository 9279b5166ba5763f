//! Packets from worker to worker: those whose state another one has.

use shm::Packet;

/// A packet on its way to the worker that has the state for it.
pub struct HandedOff {
    /// The element's node, the same in all graphs.
    pub node: usize,
    /// Where it is there.
    pub place: HandoffTarget,
    /// The packet.
    pub packet: Packet,
}

/// Where a packet is that is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandoffTarget {
    /// About to come in by this input.
    Input(usize),
    /// About to leave by output 0.
    Output,
}
