//! Pulling packets out of the graph.

use super::Worker;
use crate::graph::{End, Pulled};
use shm::burst::LIST_CAPACITY;
use shm::burst::Vector;

impl Worker {
    /// Pulls up to `most` packets out of a port of a node into a vector.
    pub(super) fn pull_from(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let most = most.min(into.room());
        match self.nodes[node].pulled {
            Pulled::Answers => self.answer_pull(node, port, most, into),
            Pulled::Through => self.pull_through(node, port, most, into),
            Pulled::Probed => self.pull_probed(node, port, most, into),
        }
    }

    /// Calls an element's `pull`.
    #[inline(always)]
    pub(crate) fn answer_pull(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let deferred_start = self.deferred.len();
        let mut count = 0;
        self.with_element(node, |element, work| {
            if let Some(element) = element.as_opaque() {
                count = element.pull(port, most, into, work);
            }
        });
        self.nodes[node].counters.outputs[port].add(count);
        self.flush_deferred(node, deferred_start);
        count
    }

    /// Pulls packets for an element and runs the element over them.
    #[inline(always)]
    pub(crate) fn pull_through(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let Some(up) = self.nodes[node].inputs.first().copied().flatten() else { return 0 };
        let mut before = [0; LIST_CAPACITY];
        let kept = into.len();
        before[..kept].copy_from_slice(into.list());
        let pulled = self.pull_from(up.node, up.port, most, into);
        if pulled == 0 {
            return 0;
        }
        self.nodes[node].counters.input.add(pulled);
        let mut exits = self.exits.pop().unwrap_or_default();
        let deferred_start = self.deferred.len();
        let (packets, list) = into.parts();
        match self.run_element::<false>(End { node, port: 0 }, packets, &list[kept..], &mut exits) {
            Some(through) => exits.extend(through, &list[kept..]),
            None => self.run_slow_paths(node, packets, &mut exits),
        }
        for other in (0..exits.outputs()).filter(|other| *other != port) {
            if !exits.output(other).is_empty() {
                self.leave(node, other, packets, exits.output(other));
            }
        }
        let through = exits.output(port);
        self.nodes[node].counters.outputs[port].add(through.len());
        before[kept..kept + through.len()].copy_from_slice(through);
        let count = through.len();
        into.relist(&before[..kept + count]);
        self.exits.push(exits);
        self.flush_deferred(node, deferred_start);
        count
    }
}
