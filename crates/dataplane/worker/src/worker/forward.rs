//! Pushing packets through the graph.
//!
//! Packets stay in their vector; each element sorts an index list into exit lists, and the lists go
//! on to the next elements, depth first. Nothing here looks at a packet.

use super::Worker;
use crate::graph::{Lowered, RegionEntry};
use element::Element;
use ir::eval::EvalState;
use ir::{Table, Tables};
use shm::Packet;
use shm::burst::Batch;
use shm::burst::{Burst, Exits};
use shm::pool::Pool;

/// Elements that one packet may pass in a row: a configuration may hold loops, and one that never
/// lets a packet go must not take the worker with it.
const MAX_DEPTH: usize = 1_000;

/// The host's own reasons to drop packets, counted from a node's last: there is no way on for them.
pub(super) const NO_WAY: usize = 1;
/// Nothing is wired to the port.
const UNWIRED: usize = 2;

/// An element's tables, by their numbers in its program.
struct ElementTables<'a>(&'a mut dyn Element);

impl Tables for ElementTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.table(index)
    }
}

impl Worker {
    /// Packets that come in by an input of a node.
    pub(crate) fn push(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        self.nodes[node].counters.input.add(list.len());
        if self.nodes[node].has_detour {
            return self.call_hooks(node, input, packets, list);
        }
        self.enter(node, input, packets, list);
    }

    /// Packets that do not go straight into the element.
    #[cold]
    fn call_hooks(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        match self.nodes[node].elsewhere {
            true => self.hand_over(node, input, packets, list),
            false => self.push_probed(node, input, packets, list),
        }
    }

    /// Where packets that come in by an input of a node enter a fused region that runs as one program.
    #[inline(always)]
    pub(crate) fn fused_entry(&self, node: usize, input: usize) -> Option<RegionEntry> {
        let entry = self.nodes[node].entries.get(input).copied()??;
        (!self.is_slow && self.regions[entry.region].is_ready()).then_some(entry)
    }

    /// Packets that are counted as a node's input.
    #[inline(always)]
    pub(crate) fn enter(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        if let Some(entry) = self.fused_entry(node, input) {
            return self.push_fused(entry, packets, list);
        }
        self.depth += 1;
        let mut exits = self.exits.pop().unwrap_or_default();
        let outbox_start = self.deferred.len();
        if let Some(port) = self.run_element(node, input, packets, list, &mut exits) {
            self.exits.push(exits);
            self.leave(node, port, packets, list);
        } else {
            for port in 0..exits.outputs() {
                let list = exits.output(port);
                if !list.is_empty() {
                    self.leave(node, port, packets, list);
                }
            }
            self.exits.push(exits);
        }
        self.flush_outbox(node, outbox_start);
        self.depth -= 1;
    }

    /// Runs a node's element over a batch, and returns the port that all packets leave by. Where there is no
    /// such one, `exits` holds the packets that leave by ports; those that were dropped are counted and
    /// freed.
    pub(super) fn run_element(
        &mut self,
        node: usize,
        input: usize,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        let this = &mut self.nodes[node];
        if let Some(Lowered { program, engine, .. }) = &this.lowered {
            let Some(element) = &mut this.element else {
                // It is at work further up, and cannot be at work here, too.
                exits.reset(0, 0, 0);
                self.give_up(node, NO_WAY, packets, list);
                return None;
            };
            let mut tables = ElementTables(element.as_mut());
            let mut state = EvalState {
                cells: &mut self.cells[this.cells.clone()],
                tables: &mut tables,
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
            let reasons = this.counters.reasons.len();
            exits.reset(this.outputs.len(), reasons, 0);
            self.with_element(node, |element, work| {
                element.push(input, &mut Batch::new(packets, list, exits), work);
            });
            self.settle_drops(node, 0, packets, exits);
        }
        None
    }

    /// Has the element's own code work on what its program sent to slow paths, and adds what leaves to
    /// `exits`.
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

    /// Has the element's own code work on packets, and says what leaves. Its drops are counted and freed.
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
        // Its tables are at work here, and not there for a fused region that something of this led into.
        let was_slow = std::mem::replace(&mut self.is_slow, true);
        self.with_element(node, |element, work| {
            element.slow(path, &mut Batch::new(packets, list, &mut slow), work);
        });
        self.is_slow = was_slow;
        self.settle_drops(node, own_reasons, packets, &slow);
        slow
    }

    /// Counts and frees what an element dropped. Its reasons are the node's from `first` on.
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

    /// Packets that leave by a port of a node: on to the next.
    pub(crate) fn leave(&mut self, node: usize, port: usize, packets: &mut [Packet], list: &[u16]) {
        let this = &self.nodes[node];
        let next = this.outputs.get(port).copied().flatten();
        match next {
            Some(next) if self.depth < MAX_DEPTH => {
                this.counters.outputs[port].add(list.len());
                self.push(next.node, next.port, packets, list);
            }
            Some(_) => self.give_up(node, NO_WAY, packets, list),
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

    /// Sends on what an element emitted beside its batch since the outbox had `start` packets.
    pub(crate) fn flush_outbox(&mut self, node: usize, start: usize) {
        // Whoever emits further down works behind what is here, and leaves as much as it found.
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
