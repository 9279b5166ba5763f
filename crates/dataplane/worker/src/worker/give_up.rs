//! Drops packets for reasons that are the host's and no element's.

use super::Worker;
use shm::Packet;
use shm::pool::Pool;

/// The host's own drop reasons, counted from the end of a node's reasons. This one: a loop or a full handoff
/// queue.
pub(super) const NO_PATH: usize = 1;
/// Nothing is wired to the port.
pub(super) const UNWIRED: usize = 2;

impl Worker {
    /// Drops packets for one of the host's own reasons, the last two of every node.
    pub(super) fn give_up(&mut self, node: usize, from_last: usize, packets: &[Packet], list: &[u16]) {
        let dropped = &self.nodes[node].counters.dropped;
        if let Some(count) = dropped.get(dropped.len().saturating_sub(from_last)) {
            count.add(list.len());
        }
        self.pool.free(packets, list);
    }
}
