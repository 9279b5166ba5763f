//! Packets that one worker hands over to another, the owner of their state.

use shm::Packet;

/// A packet in the queue to its owner worker.
pub struct HandedOff {
    /// The node of the element, which has the same number in all graphs.
    pub node: usize,
    /// Its position at the node.
    pub place: HandoffTarget,
    /// The packet.
    pub packet: Packet,
}

/// The position of a handed-over packet at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandoffTarget {
    /// In front of this input.
    Input(usize),
    /// In front of output 0.
    Output,
}
