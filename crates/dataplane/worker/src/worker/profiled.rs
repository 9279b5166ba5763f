//! The worker's loop and packet paths with probes: the changes of stage, and the switch.

use super::Worker;
use crate::graph::{End, Pulled};
use crate::profile::{Probe, Stage, TURN, WAITING, place};
use shm::Packet;
use shm::burst::Vector;
use std::sync::atomic::Ordering;

impl Worker {
    /// Switches the probes on or off as requested. Between bursts only.
    pub(crate) fn follow_probes(&mut self) {
        let is_wanted = self.probes.wanted.load(Ordering::Relaxed);
        if is_wanted == self.probe.is_some() {
            return;
        }
        self.probe = is_wanted.then(|| Box::new(Probe::new(&self.probes)));
        for node in &mut self.nodes {
            node.is_hooked = node.elsewhere || is_wanted;
            node.pulled = if is_wanted { Pulled::Probed } else { Pulled::of(node.answers_pull) };
        }
        self.probes.is_on.store(is_wanted, Ordering::Release);
    }

    /// Ends a turn without work.
    pub(crate) fn probe_idle(&mut self) {
        if let Some(probe) = &mut self.probe {
            probe.at = WAITING;
        }
    }

    /// Starts an element's task or timer and returns the stage before.
    pub(crate) fn probe_task(&mut self, node: usize) -> usize {
        self.probe_switch(place(self.nodes.len(), Stage::Task(node)))
    }

    /// Ends it and returns to the stage before.
    pub(crate) fn probe_task_end(&mut self, before: usize, found_nothing: bool) {
        if found_nothing {
            self.probe_idle();
        }
        self.probe_switch(before);
    }

    /// Enters a stage and returns the one before.
    pub(crate) fn probe_switch(&mut self, to: usize) -> usize {
        self.probe.as_mut().map_or(TURN, |probe| probe.switch(to))
    }

    /// Runs packets at an input of a node, with a reading before and after.
    pub(crate) fn run_probed(&mut self, to: End, packets: &mut [Packet], list: &[u16]) -> Option<End> {
        let stage = match self.fused_entry(to, list.len()) {
            Some(entry) => Stage::Program(entry.region),
            None => Stage::Element(to.node),
        };
        let before = self.probe_switch(place(self.nodes.len(), stage));
        let from = self.run_node(to, packets, list);
        self.probe_switch(before);
        from
    }

    /// The same for packets that are pulled out of a port of a node.
    pub(crate) fn pull_probed(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let before = self.probe_switch(place(self.nodes.len(), Stage::Element(node)));
        let count = match self.nodes[node].answers_pull {
            true => self.answer_pull(node, port, most, into),
            false => self.pull_through(node, port, most, into),
        };
        self.probe_switch(before);
        count
    }
}
