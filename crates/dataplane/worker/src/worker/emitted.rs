//! Pushes the packets that elements emit outside their batches.

use super::Worker;
use shm::Packet;

impl Worker {
    /// Pushes what an element emitted while it processed no batch: the deferred packets from `start` on.
    pub(crate) fn flush_deferred(&mut self, node: usize, start: usize) {
        let mut at = start;
        while let Some(count) = self.flush_run(node, at) {
            at += count;
        }
        self.deferred.truncate(start);
    }

    /// Pushes what an element emitted while it processed packets of a vector, each packet in its place
    /// between them. All others of the vector that have something left to do wait.
    #[cold]
    pub(super) fn leave_between(&mut self, node: usize, start: usize, packets: &mut [Packet]) {
        if !self.can_meet_emitted(node, start) {
            // Their places make no difference: so as few bursts as possible.
            self.deferred.forget_places(start);
            self.deferred.sort_by_key(start, |emit| emit.port);
            return self.flush_deferred(node, start);
        }
        self.deferred.sort_by_key(start, |emit| usize::from(emit.place));
        let mut at = start;
        while let Some((emit, _)) = self.deferred.run(at) {
            self.run_below(emit.end(), packets);
            at += self.flush_run(node, at).unwrap_or(1);
        }
        self.deferred.truncate(start);
    }

    /// Whether deferred packets can meet packets that wait, or ones that leave by another port; also where lines about
    /// packets of the vector were printed, and lines about these packets may belong between them.
    fn can_meet_emitted(&self, node: usize, start: usize) -> bool {
        if !self.printed.is_empty() {
            return true;
        }
        let outputs = &self.nodes[node].outputs;
        // A bit for each port that was looked at.
        let mut seen = 0u64;
        for emit in self.deferred.emits(start) {
            let Some(bit) = 1u64.checked_shl(emit.port as u32) else { return true };
            if seen & bit != 0 {
                continue;
            }
            let Some(to) = outputs.get(emit.port).copied().flatten() else { continue };
            let seen_ports = (0..outputs.len().min(64)).filter(|port| seen >> port & 1 != 0);
            let others = seen_ports.filter_map(|port| outputs[port]).map(|end| end.node);
            let mut waiting = self.waiting.of_vector().map(|entry| entry.node).chain(others);
            if waiting.any(|other| self.order.can_meet(to.node, other)) {
                return true;
            }
            seen |= bit;
        }
        false
    }

    /// Pushes the deferred packets at `at` that leave together, and returns how many there are.
    fn flush_run(&mut self, node: usize, at: usize) -> Option<usize> {
        let (emit, packets) = self.deferred.run(at)?;
        let mut vector = self.vectors.pop().unwrap_or_default();
        vector.clear();
        let count = vector.fill(packets.len(), |places| {
            places.copy_from_slice(packets);
            packets.len()
        });
        let (packets, list) = vector.parts();
        // Elements downstream append to the deferred packets and remove what they appended.
        self.printed.enter_vector(emit.parent());
        self.leave(node, emit.port, packets, list);
        self.printed.leave_vector();
        self.vectors.push(vector);
        Some(count)
    }
}
