//! The operations that elements call on their worker.

use super::Worker;
use crate::texts::ConfigurationTexts;
use element::Host;
use element::handler::split_call;
use element::work::NodeCounter;
use shm::Packet;
use shm::burst::Vector;
use shm::pool::{PacketPool, Pool};
use std::cmp::Reverse;

/// The class of elements that only pass packets on.
const PASSES_ON: &str = "Null";

impl Host for Worker {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn clock_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn pool(&mut self) -> &mut PacketPool {
        &mut self.pool
    }

    fn burst(&self) -> usize {
        self.burst
    }

    fn most_at_once(&self) -> usize {
        self.most_at_once
    }

    fn emit(&mut self, _node: usize, port: usize, place: u16, packet: &Packet) {
        self.deferred.push((port, place), std::slice::from_ref(packet));
    }

    fn emit_all(&mut self, _node: usize, port: usize, place: u16, packets: &[Packet]) {
        self.deferred.push((port, place), packets);
    }

    fn pass(&mut self, node: usize, port: usize, count: usize) {
        let (mut node, mut port) = (node, port);
        // A path between two NFs has no loops: `Null` passes packets on to one element.
        while let Some(next) = self.nodes[node].outputs.get(port).copied().flatten() {
            self.nodes[node].counters.outputs[port].add(count);
            self.nodes[next.node].counters.input.add(count);
            (node, port) = (next.node, 0);
            if self.nodes[node].class.name != PASSES_ON {
                self.count(node, NodeCounter::Held, count);
                break;
            }
        }
    }

    fn drop(&mut self, node: usize, reason: usize, packets: &[Packet]) {
        self.count_dropped(node, reason, packets.len());
        self.pool.free_all(packets);
    }

    fn count_dropped(&mut self, node: usize, reason: usize, count: usize) {
        let this = &self.nodes[node];
        let first = this.lowered.as_ref().map_or(0, |lowered| lowered.own_reasons);
        if let Some(dropped) = this.counters.dropped.get(first + reason) {
            dropped.add(count);
        }
    }

    fn pull(&mut self, node: usize, input: usize, most: usize, into: &mut Vector) -> usize {
        let Some(up) = self.nodes[node].inputs.get(input).copied().flatten() else { return 0 };
        let count = self.pull_from(up.node, up.port, most, into);
        self.nodes[node].counters.input.add(count);
        count
    }

    fn count(&mut self, node: usize, counter: NodeCounter, count: usize) {
        let this = &mut self.nodes[node];
        this.count(counter, count);
        this.rests &= counter != NodeCounter::Held || count == 0;
    }

    fn fire_at(&mut self, node: usize, at_ns: u64) {
        self.fire_at[node] = at_ns;
        self.timers.push(Reverse((at_ns, node)));
    }

    fn wake_at(&mut self, at_ns: u64) {
        self.wakes_at_ns = self.wakes_at_ns.min(at_ns);
    }

    fn hold_sources(&mut self) {
        self.sources_wait = true;
    }

    fn stop(&mut self, node: usize) {
        self.take_stop_request(node);
    }

    fn print(&mut self, line: &str) {
        self.print_lines();
        (self.print)(line);
    }

    fn print_about(&mut self, index: u16, line: &str) {
        if self.printed.add(index, line) {
            self.print_lines();
        }
    }

    fn read_handler(&mut self, node: usize, handler: &str) -> Result<String, String> {
        let (element, called) = split_call(handler);
        if element.is_empty() && ConfigurationTexts::HANDLERS.contains(&called) {
            // Without a dot, the element's own handlers have precedence.
            let own = if handler.starts_with('.') { None } else { self.read_here(node, called).ok() };
            return own.map_or_else(|| self.read_configuration(Some(self.nodes[node].nf), called), Ok);
        }
        let (node, handler) = self.find_handler(node, handler)?;
        self.read_here(node, &handler)
    }

    fn write_handler(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String> {
        let (node, handler) = self.find_handler(node, handler)?;
        self.write_here(node, &handler, value)?;
        if !self.written.contains(&node) {
            self.written.push(node);
        }
        Ok(())
    }

    fn follow_writes(&mut self) {
        self.follow_written();
    }

    fn take_own_writes(&mut self, node: usize) -> Vec<(String, String)> {
        self.take_late_writes(node)
    }
}
