//! Pushing packets through the graph.
//!
//! Packets stay in their vector. Each element sorts an index list into exit lists, and the lists are pushed
//! to the next elements, depth first. This module reads no packet.

use super::Worker;
use crate::graph::{Lowered, RegionEntry};
use ir::eval::EvalState;
use shm::Packet;
use shm::burst::Batch;
use shm::burst::{Burst, Exits};
use shm::pool::Pool;

/// The most elements that one packet may pass in a row. A configuration may hold loops, and a packet that
/// never leaves one must not overflow the worker's stack.
const MAX_DEPTH: usize = 1_000;

/// From this depth on, packets wait in each queue: a loop of queues that packets pass must not reach that.
const MAX_PASSING_DEPTH: usize = MAX_DEPTH / 2;

/// The host's own drop reasons, counted from the end of a node's reasons. This one: a loop or a full handoff
/// queue.
pub(super) const NO_PATH: usize = 1;
/// Nothing is wired to the port.
const UNWIRED: usize = 2;

impl Worker {
    /// Pushes packets into an input of a node.
    pub(crate) fn push(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        self.nodes[node].counters.input.add(list.len());
        if self.nodes[node].is_hooked {
            return self.call_hooks(node, input, packets, list);
        }
        self.enter(node, input, packets, list);
    }

    /// Pushes packets into a node that has a hook in front of its element.
    #[cold]
    fn call_hooks(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        match self.nodes[node].elsewhere {
            true => self.hand_over(node, input, packets, list),
            false => self.push_probed(node, input, packets, list),
        }
    }

    /// The entry of the fused region that so many packets at this input of a node enter, if the region runs
    /// as one program.
    #[inline(always)]
    pub(crate) fn fused_entry(&self, node: usize, input: usize, packets: usize) -> Option<RegionEntry> {
        let entry = self.nodes[node].entries.get(input).copied()??;
        let region = &self.regions[entry.region];
        let fits = packets <= region.room && self.is_shallow();
        (!self.is_slow && region.is_ready() && fits).then_some(entry)
    }

    /// Whether packets may pass queues at this depth.
    #[inline(always)]
    pub(super) fn is_shallow(&self) -> bool {
        self.depth < MAX_PASSING_DEPTH
    }

    /// Counts packets as a node's input.
    #[inline(always)]
    pub(crate) fn enter(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        if let Some(entry) = self.fused_entry(node, input, list.len()) {
            return self.push_fused(entry, packets, list);
        }
        self.depth += 1;
        let mut exits = self.exits.pop().unwrap_or_default();
        let deferred_start = self.deferred.len();
        if let Some(port) = self.run_element(node, input, packets, list, &mut exits) {
            self.exits.push(exits);
            self.leave(node, port, packets, list);
        } else {
            self.leave_by_lists(node, packets, &exits);
            self.exits.push(exits);
        }
        self.flush_deferred(node, deferred_start);
        self.depth -= 1;
    }

    /// Runs a node's element over a batch, and returns the port if all packets leave by one. Else `exits`
    /// holds the packets by port. Dropped packets are counted and freed.
    pub(super) fn run_element(
        &mut self,
        node: usize,
        input: usize,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        if let Some(reader) = self.nodes[node].reader {
            return self.pass_queue((node, reader), input, packets, list, exits);
        }
        let this = &mut self.nodes[node];
        if let Some(Lowered { program, engine, .. }) = &this.lowered {
            let Some(element) = &mut this.element else {
                // The element is already running further up the call stack and cannot run here, too.
                exits.reset(0, 0, 0);
                self.give_up(node, NO_PATH, packets, list);
                return None;
            };
            let mut state = EvalState {
                cells: &mut self.cells[this.cells.clone()],
                tables: element,
                now_ns: self.now_ns,
            };
            let burst = Burst { input, packets: &mut *packets, list };
            let through = codegen::pass(engine, burst, &mut state, &mut self.scratch, exits);
            if through.is_some() {
                return through;
            }
            let slow_paths = program.slow.len();
            self.settle_drops(node, 0, packets, exits);
            if slow_paths > 0 {
                self.run_slow_paths(node, slow_paths, packets, exits);
            }
        } else {
            self.run_opaque(node, input, packets, list, exits);
        }
        None
    }

    /// Runs an opaque element over a batch, and fills `exits`.
    #[inline(always)]
    pub(super) fn run_opaque(
        &mut self,
        node: usize,
        input: usize,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) {
        let this = &self.nodes[node];
        exits.reset(this.outputs.len(), this.counters.reasons.len(), 0);
        if this.element.is_none() {
            // It is running further up the call stack: what pulls gets packets that were made meanwhile.
            return self.give_up(node, NO_PATH, packets, list);
        }
        self.with_element(node, |element, work| {
            let Some(element) = element.as_opaque() else { return };
            element.push(input, &mut Batch::new(packets, list, exits), work);
        });
        self.settle_drops(node, 0, packets, exits);
    }

    /// Runs the element's own code on the packets that its program sent to slow paths, and adds the packets
    /// that leave to `exits`.
    #[cold]
    fn run_slow_paths(&mut self, node: usize, paths: usize, packets: &mut [Packet], exits: &mut Exits) {
        for path in 0..paths {
            if exits.other(path).is_empty() {
                continue;
            }
            let slow = self.run_slow_path(node, path, packets, exits.other(path));
            for port in 0..slow.outputs() {
                exits.extend(port, slow.output(port));
            }
            self.exits.push(slow);
        }
    }

    /// Runs the element's own code on packets and fills `exits`. Its drops are counted and freed.
    pub(crate) fn run_slow_path(
        &mut self,
        node: usize,
        path: usize,
        packets: &mut [Packet],
        list: &[u16],
    ) -> Box<Exits> {
        let own_reasons = self.nodes[node].lowered.as_ref().map_or(0, |lowered| lowered.own_reasons);
        let mut slow = self.exits.pop().unwrap_or_default();
        slow.reset(self.nodes[node].outputs.len(), self.nodes[node].counters.reasons.len() - own_reasons, 0);
        // The element is taken out here: its tables are missing for a fused region that packets enter from
        // this slow path.
        let was_slow = std::mem::replace(&mut self.is_slow, true);
        self.with_element(node, |element, work| {
            let Some(element) = element.as_transparent() else { return };
            element.slow(path, &mut Batch::new(packets, list, &mut slow), work);
        });
        self.is_slow = was_slow;
        self.settle_drops(node, own_reasons, packets, &slow);
        slow
    }

    /// Counts and frees the packets that an element dropped. Its own reasons start at the node's reason
    /// `first`.
    fn settle_drops(&mut self, node: usize, first: usize, packets: &[Packet], exits: &Exits) {
        if !exits.has_drops() {
            return;
        }
        for reason in 0..exits.reasons() {
            let list = exits.dropped(reason);
            if !list.is_empty() {
                if let Some(count) = self.nodes[node].counters.dropped.get(first + reason) {
                    count.add(list.len());
                }
                self.pool.free(packets, list);
            }
        }
    }

    /// Pushes the packets of each exit list out of its port.
    #[inline(always)]
    pub(super) fn leave_by_lists(&mut self, node: usize, packets: &mut [Packet], exits: &Exits) {
        for port in 0..exits.outputs() {
            let list = exits.output(port);
            if !list.is_empty() {
                self.leave(node, port, packets, list);
            }
        }
    }

    /// Pushes packets out of a port of a node into the next node.
    pub(crate) fn leave(&mut self, node: usize, port: usize, packets: &mut [Packet], list: &[u16]) {
        let this = &self.nodes[node];
        let next = this.outputs.get(port).copied().flatten();
        match next {
            Some(next) if self.depth < MAX_DEPTH => {
                this.counters.outputs[port].add(list.len());
                self.push(next.node, next.port, packets, list);
            }
            Some(_) => self.give_up(node, NO_PATH, packets, list),
            None => self.give_up(node, UNWIRED, packets, list),
        }
    }

    /// Drops packets for one of the host's own reasons, the last two of every node.
    pub(super) fn give_up(&mut self, node: usize, from_last: usize, packets: &[Packet], list: &[u16]) {
        let dropped = &self.nodes[node].counters.dropped;
        if let Some(count) = dropped.get(dropped.len().saturating_sub(from_last)) {
            count.add(list.len());
        }
        self.pool.free(packets, list);
    }

    /// Pushes the deferred packets of an element: those in the list from `start` on.
    pub(crate) fn flush_deferred(&mut self, node: usize, start: usize) {
        // Elements downstream append behind these packets and remove what they appended.
        let mut at = start;
        while let Some((port, packets)) = self.deferred.run(at) {
            let mut vector = self.vectors.pop().unwrap_or_default();
            vector.clear();
            let count = vector.fill(packets.len(), |places| {
                places.copy_from_slice(packets);
                packets.len()
            });
            let (packets, list) = vector.parts();
            self.leave(node, port, packets, list);
            self.vectors.push(vector);
            at += count;
        }
        self.deferred.truncate(start);
    }
}
