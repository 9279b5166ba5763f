//! The way of a vector's packets through the graph.
//!
//! As long as all packets leave each element by one port, their list is passed on as it is. Where they part,
//! the packets of each way wait ([`crate::waiting`]), and the element that comes first in the order of the
//! graph runs next, with all packets that reached it: so they enter it in the order of their arrival.

use super::Worker;
use super::give_up::{NO_PATH, UNWIRED};
use crate::graph::End;
use crate::waiting::EntryPoint;
use shm::Packet;

/// The most times that a packet may go back in the order of the graph, which it does once a round of a loop: a
/// packet that never leaves one must not keep the worker for ever. The same elements lie ahead of each other in
/// every execution mode; how many there are, a packet that is in a fused region does not know. A packet that an
/// element makes meanwhile counts as one round more: it needs a call inside that of the element.
const MAX_DEPTH: usize = 1_000;

/// From this depth on, packets wait in each queue: a loop of queues that packets pass must not reach that.
const MAX_PASSING_DEPTH: usize = MAX_DEPTH / 2;

impl Worker {
    /// Pushes packets out of a port of a node, until they have left the graph or an element keeps them.
    pub(crate) fn leave(&mut self, node: usize, port: usize, packets: &mut [Packet], list: &[u16]) {
        let (before, depth) = (self.waiting.enter_vector(), self.depth);
        self.depth += 1;
        self.walk_on(End { node, port }, packets, list);
        self.run_waiting(packets);
        self.end_vector(before, depth);
    }

    /// The same from an input of a node on.
    pub(crate) fn push(&mut self, to: End, packets: &mut [Packet], list: &[u16]) {
        let (before, depth) = (self.waiting.enter_vector(), self.depth);
        self.depth += 1;
        if let Some(from) = self.enter(to, packets, list) {
            self.walk_on(from, packets, list);
        }
        self.run_waiting(packets);
        self.end_vector(before, depth);
    }

    /// Ends a vector whose packets have left the graph.
    #[inline(always)]
    fn end_vector(&mut self, before: usize, depth: usize) {
        self.waiting.leave_vector(before);
        self.depth = depth;
        if depth == 0 && !self.printed.is_empty() {
            self.print_lines();
        }
    }

    /// Runs the packets that wait and whose index is below `end`, before any others.
    pub(super) fn run_below(&mut self, end: u16, packets: &mut [Packet]) {
        let (before, depth) = (self.waiting.enter_below(end), self.depth);
        self.run_waiting(packets);
        self.waiting.leave_vector(before);
        self.depth = depth;
    }

    /// Whether packets may pass queues at this depth.
    #[inline(always)]
    pub(super) fn is_shallow(&self) -> bool {
        self.depth < MAX_PASSING_DEPTH
    }

    /// Runs all packets of the vector that wait.
    fn run_waiting(&mut self, packets: &mut [Packet]) {
        while let Some(entry) = self.waiting.take_next() {
            self.depth = entry.depth;
            let (node, list) = (entry.node, entry.list());
            let from = match entry.entry_point {
                EntryPoint::Input(port) => self.enter(End { node, port }, packets, list),
                EntryPoint::Slow(path) => {
                    self.leave_slow(node, path, packets, list);
                    None
                }
            };
            if let Some(from) = from {
                self.walk_on(from, packets, list);
            }
            self.waiting.put_back(entry);
        }
    }

    /// Pushes packets out of a port as far as they stay together, and no others come first.
    fn walk_on(&mut self, mut from: End, packets: &mut [Packet], list: &[u16]) {
        while let Some((to, depth)) = self.next(from, packets, list) {
            if !self.waiting.is_first(self.order.rank(to.node)) {
                return self.wait(to, depth, list);
            }
            self.depth = depth;
            match self.enter(to, packets, list) {
                Some(next) => from = next,
                None => return,
            }
        }
    }

    /// The input at which packets that leave by a port arrive, and the depth there. Counts them, and drops them if
    /// there is none.
    #[inline(always)]
    fn next(&mut self, from: End, packets: &[Packet], list: &[u16]) -> Option<(End, usize)> {
        let this = &self.nodes[from.node];
        let Some(to) = this.outputs.get(from.port).copied().flatten() else {
            self.give_up(from.node, UNWIRED, packets, list);
            return None;
        };
        let goes_back = self.order.rank(to.node) <= self.order.rank(from.node);
        let depth = self.depth + usize::from(goes_back);
        if depth >= MAX_DEPTH {
            self.give_up(from.node, NO_PATH, packets, list);
            return None;
        }
        this.counters.outputs[from.port].add(list.len());
        Some((to, depth))
    }

    fn wait(&mut self, to: End, depth: usize, list: &[u16]) {
        let place = (self.order.rank(to.node), to.node);
        self.waiting.add(place, EntryPoint::Input(to.port), depth, list);
    }

    /// Lets packets that leave by a port wait at the next element.
    pub(super) fn wait_behind(&mut self, from: End, packets: &[Packet], list: &[u16]) {
        if !list.is_empty()
            && let Some((to, depth)) = self.next(from, packets, list)
        {
            self.wait(to, depth, list);
        }
    }

    /// Lets packets wait for an element's own code.
    pub(super) fn wait_slow(&mut self, node: usize, path: usize, list: &[u16]) {
        self.waiting.add((self.order.rank(node), node), EntryPoint::Slow(path), self.depth, list);
    }
}
