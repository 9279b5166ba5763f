//! Hands packets off to their owner workers, and takes those that other workers handed off.

use super::Worker;
use super::give_up::NO_PATH;
use crate::graph::End;
use crate::handoff::{HandedOff, HandoffTarget};
use crossbeam_queue::ArrayQueue;
use shm::Packet;
use shm::burst::LIST_CAPACITY;
use shm::burst::Vector;
use std::sync::Arc;

impl Worker {
    /// Hands packets over to the worker that owns the element's state.
    pub(super) fn hand_over(&mut self, to: End, packets: &[Packet], list: &[u16]) {
        let End { node, port } = to;
        self.quiescence.hand(list.len());
        for &index in list {
            let packet = packets[usize::from(index)];
            if self.handoff.push(HandedOff { node, place: HandoffTarget::Input(port), packet }).is_ok() {
                self.nodes[node].counters.handed_over.add(1);
            } else {
                self.quiescence.take(1);
                self.give_up(node, NO_PATH, packets, &[index]);
            }
        }
    }

    /// Whether every other worker has room for a burst from each worker.
    pub(crate) fn can_spread(&self) -> bool {
        let most = LIST_CAPACITY * self.rings.len();
        let others = self.rings.iter().enumerate().filter(|(worker, _)| *worker != self.number);
        others.map(|(_, ring)| ring).all(|ring| ring.len() + most <= ring.capacity())
    }

    /// Hands packets that a source received off to their owner workers. Packets that this worker owns stay in
    /// the vector.
    pub(crate) fn hand_off(&mut self, node: usize, vector: &mut Vector) {
        let Some(spread) = self.nodes[node].steering.as_ref() else { return };
        let (packets, list) = vector.parts();
        let (mut own, mut count) = ([0; LIST_CAPACITY], 0);
        let mut announced = 0;
        let (mut lost, mut lost_count) = ([0; LIST_CAPACITY], 0);
        let mut owners = [0; LIST_CAPACITY];
        spread.owner_workers(packets, list, &mut owners);
        for (&index, &owner) in list.iter().zip(&owners) {
            let owner = usize::from(owner);
            own[count] = index;
            if owner == self.number {
                count += 1;
                continue;
            }
            // Once a burst, and not at all if this worker owns all packets: every worker writes this counter.
            if announced == 0 {
                announced = list.len();
                self.quiescence.hand(announced);
            }
            let packet = packets[usize::from(index)];
            let handed = HandedOff { node, place: HandoffTarget::Output, packet };
            if self.rings.get(owner).is_none_or(|ring| ring.push(handed).is_err()) {
                // Other sources filled the queue in the meantime.
                lost[lost_count] = index;
                lost_count += 1;
            }
        }
        if lost_count > 0 {
            self.give_up(node, NO_PATH, packets, &lost[..lost_count]);
        }
        if announced > 0 {
            self.quiescence.take(count + lost_count);
        }
        vector.relist(&own[..count]);
    }

    /// Processes packets that other workers handed over, and returns whether there were any. With
    /// `sources_wait`, packets that sources handed off stay in their queue for a turn.
    pub(crate) fn take_handed(&mut self, sources_wait: bool) -> bool {
        let mut worked = false;
        if self.number == 0 && !self.handoff.is_empty() {
            let home = Arc::clone(&self.handoff);
            self.take_from(&home);
            worked = true;
        }
        let ring = self.rings.get(self.number).filter(|ring| !ring.is_empty()).cloned();
        if let Some(ring) = ring {
            if !sources_wait {
                self.take_from(&ring);
            }
            worked = true;
        }
        worked
    }

    fn take_from(&mut self, ring: &ArrayQueue<HandedOff>) {
        self.wake();
        let mut vector = self.vectors.pop().unwrap_or_default();
        vector.clear();
        let (mut at, mut count) = (None, 0);
        for _ in 0..ring.len().min(LIST_CAPACITY) {
            let Some(HandedOff { node, place, packet }) = ring.pop() else { break };
            // Packets for the same input or output are pushed together.
            if at.is_some_and(|at| at != (node, place)) || vector.len() >= self.burst.min(self.most_at_once) {
                self.go_on(at, &mut vector);
            }
            at = Some((node, place));
            vector.push(&packet);
            count += 1;
        }
        self.go_on(at, &mut vector);
        self.vectors.push(vector);
        self.quiescence.take(count);
    }

    /// Pushes packets that were handed over.
    fn go_on(&mut self, at: Option<(usize, HandoffTarget)>, vector: &mut Vector) {
        let (packets, list) = vector.parts();
        match at.filter(|_| !list.is_empty()) {
            Some((node, HandoffTarget::Input(port))) => self.push(End { node, port }, packets, list),
            Some((node, HandoffTarget::Output)) => self.leave(node, 0, packets, list),
            None => {}
        }
        vector.clear();
    }

    /// Drops packets that arrive after this worker has ended, when a run is stopped.
    pub fn drop_handed(&mut self) {
        let (home, own) = (Arc::clone(&self.handoff), self.rings.get(self.number).cloned());
        let left = || own.as_ref().and_then(|ring| ring.pop()).or_else(|| home.pop());
        while let Some(HandedOff { node, place, packet }) = left() {
            if place != HandoffTarget::Output {
                self.nodes[node].counters.input.add(1);
            }
            self.give_up(node, NO_PATH, std::slice::from_ref(&packet), &[0]);
        }
    }
}
