//! Runs elements over packets.
//!
//! Packets stay in their vector. Each element sorts an index list into exit lists, whose packets wait at the
//! next elements ([`super::walk`]). This module reads no packet.

use super::Worker;
use super::give_up::NO_PATH;
use super::held::InterruptedProgram;
use crate::graph::{End, Lowered, RegionEntry};
use codegen::Precedence;
use ir::eval::EvalState;
use shm::Packet;
use shm::burst::Batch;
use shm::burst::{Burst, Exits};
use shm::pool::Pool;

impl Worker {
    /// Runs packets at an input of a node. Returns the output if all leave by one; else none has anything left
    /// to do, or those that have wait.
    pub(crate) fn enter(&mut self, to: End, packets: &mut [Packet], list: &[u16]) -> Option<End> {
        self.nodes[to.node].counters.input.add(list.len());
        if self.nodes[to.node].is_hooked {
            return self.enter_hooked(to, packets, list);
        }
        self.run_node(to, packets, list)
    }

    /// The same at a node that has a hook in front of its element.
    #[cold]
    fn enter_hooked(&mut self, to: End, packets: &mut [Packet], list: &[u16]) -> Option<End> {
        match self.nodes[to.node].elsewhere {
            true => {
                self.hand_over(to, packets, list);
                None
            }
            false => self.run_probed(to, packets, list),
        }
    }

    /// The entry of the fused region that so many packets at this input of a node enter, if the region runs
    /// as one program.
    #[inline(always)]
    pub(crate) fn fused_entry(&self, to: End, packets: usize) -> Option<RegionEntry> {
        let entry = self.nodes[to.node].entries.get(to.port).copied()??;
        let region = &self.regions[entry.region];
        let fits = packets <= region.room && self.is_shallow();
        (!self.is_slow && region.is_ready() && fits).then_some(entry)
    }

    /// Runs packets that are counted as a node's input.
    #[inline(always)]
    pub(crate) fn run_node(&mut self, to: End, packets: &mut [Packet], list: &[u16]) -> Option<End> {
        if let Some(entry) = self.fused_entry(to, list.len()) {
            return self.run_fused(entry, packets, list);
        }
        let node = to.node;
        let mut exits = self.exits.pop().unwrap_or_default();
        let deferred_start = self.deferred.len();
        let through = self.run_element::<true>(to, packets, list, &mut exits);
        if through.is_none() {
            self.wait_by_lists(node, packets, &exits);
        }
        self.exits.push(exits);
        if self.deferred.len() > deferred_start {
            self.leave_between(node, deferred_start, packets);
        }
        if self.scratch.first_held().is_some() {
            self.run_held(InterruptedProgram::Node(node), packets);
        }
        through.map(|port| End { node, port })
    }

    /// Runs a node's element over a batch, and returns the port if all packets leave by one. Else `exits`
    /// holds the packets by port, and those for the element's own code by slow path. Dropped packets are
    /// counted and freed. If it `HOLDS`, packets may be held in the middle of the program
    /// ([`codegen::pass_in_order`]).
    pub(super) fn run_element<const HOLDS: bool>(
        &mut self,
        to: End,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        let End { node, port: input } = to;
        if let Some(reader) = self.nodes[node].reader {
            return self.pass_queue((node, reader), input, packets, list, exits);
        }
        let this = &mut self.nodes[node];
        if let Some(Lowered { engine, .. }) = &this.lowered {
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
            let through = match HOLDS {
                true => {
                    let precedence = Precedence::NONE;
                    codegen::pass_in_order(engine, burst, precedence, &mut state, &mut self.scratch, exits)
                }
                false => codegen::pass(engine, burst, &mut state, &mut self.scratch, exits),
            };
            if through.is_some() {
                return through;
            }
            self.settle_drops(node, 0, packets, exits);
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
        exits.order_all(0);
        self.settle_drops(node, 0, packets, exits);
    }

    /// The number of slow paths of a node's program.
    #[inline]
    fn slow_paths(&self, node: usize) -> usize {
        self.nodes[node].lowered.as_ref().map_or(0, |lowered| lowered.program.slow.len())
    }

    /// Runs the element's own code at once on the packets that its program sent to slow paths, and adds the
    /// packets that leave to `exits`.
    #[inline]
    pub(super) fn run_slow_paths(&mut self, node: usize, packets: &mut [Packet], exits: &mut Exits) {
        for path in 0..self.slow_paths(node) {
            if exits.other(path).is_empty() {
                continue;
            }
            let slow = self.run_slow_path(node, path, packets, exits.other(path));
            for port in 0..slow.outputs() {
                exits.merge(port, slow.output(port));
            }
            self.exits.push(slow);
        }
    }

    /// Runs packets that wait for an element's own code. Those that leave wait at the next elements.
    #[cold]
    pub(super) fn leave_slow(&mut self, node: usize, path: usize, packets: &mut [Packet], list: &[u16]) {
        let deferred_start = self.deferred.len();
        let exits = self.run_slow_path(node, path, packets, list);
        self.wait_by_ports(node, packets, &exits);
        self.exits.push(exits);
        if self.deferred.len() > deferred_start {
            self.leave_between(node, deferred_start, packets);
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
        slow.order_all(0);
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

    /// Goes on with the packets that a node's program sorted into `exits`.
    pub(super) fn part_node(&mut self, node: usize, packets: &mut [Packet], exits: &Exits) {
        self.settle_drops(node, 0, packets, exits);
        self.wait_by_lists(node, packets, exits);
    }

    /// Lets the packets of each port wait at the next element.
    #[inline(always)]
    fn wait_by_ports(&mut self, node: usize, packets: &mut [Packet], exits: &Exits) {
        for port in 0..exits.outputs() {
            self.wait_behind(End { node, port }, packets, exits.output(port));
        }
    }

    /// Lets the packets of each exit list wait: at the next element, or for the element's own code.
    #[inline(always)]
    fn wait_by_lists(&mut self, node: usize, packets: &mut [Packet], exits: &Exits) {
        self.wait_by_ports(node, packets, exits);
        for path in 0..self.slow_paths(node) {
            if !exits.other(path).is_empty() {
                self.wait_slow(node, path, exits.other(path));
            }
        }
    }
}
