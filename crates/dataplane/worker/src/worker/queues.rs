//! Queues that packets pass ([`crate::passage`]).

use super::Worker;
use element::Progress;
use shm::Packet;
use shm::burst::{Exits, LIST_CAPACITY};

/// The most bursts that are taken in a turn from a queue in which packets wait, beside the usual one.
const MAX_DRAINED: usize = 8;

impl Worker {
    /// Lets packets pass a queue. Returns the port if they do; else they are in the queue or in `exits`.
    pub(super) fn pass_queue(
        &mut self,
        (queue, reader): (usize, usize),
        input: usize,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        if self.is_shallow() && self.lets_pass(queue, reader, list.len()) {
            return Some(0);
        }
        self.keep((queue, reader), input, packets, list, exits);
        None
    }

    /// Puts packets into a queue. No later ones pass it in a fused region until the queue is empty.
    #[cold]
    fn keep(
        &mut self,
        (queue, reader): (usize, usize),
        input: usize,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) {
        for region in
            self.regions.iter_mut().filter(|region| region.queues.iter().any(|(at, _)| *at == queue))
        {
            region.room = 0;
        }
        self.nodes[reader].rests = false;
        self.run_opaque(queue, input, packets, list, exits);
    }

    /// Lets the task of an element rest if packets pass the queue in front of it and none wait, so that a
    /// turn does not pull from each queue of a long chain. What wakes it: a packet that has to wait
    /// ([`Worker::keep`], [`element::work::NodeCounter::Held`]), and a handler.
    pub(super) fn rest(&mut self, node: usize) {
        let held = |node: usize| self.nodes[node].counters.held();
        let has_none = self.nodes[node].passed.is_some_and(|queue| held(queue) == 0 && held(node) == 0);
        self.nodes[node].rests = has_none;
    }

    /// Empties a queue that packets pass, after the task of its reader has moved some: so that a source that
    /// always has a burst does not keep packets in it for ever.
    #[inline(always)]
    pub(super) fn drain(&mut self, node: usize) {
        let Some(queue) = self.nodes[node].passed else { return };
        for _ in 0..MAX_DRAINED {
            if self.nodes[queue].counters.held() == 0 || self.run_task(node) != Progress::Worked {
                return;
            }
        }
    }

    /// Lets all tasks run again.
    pub(super) fn wake_tasks(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.rests = false);
    }

    /// Whether so many packets may pass a queue now. An element that is running, because it is pulling just
    /// now, takes nothing else.
    fn lets_pass(&mut self, queue: usize, reader: usize, packets: usize) -> bool {
        let queue = self.nodes[queue].element.as_mut().and_then(|element| element.as_opaque());
        if queue.is_none_or(|queue| queue.lets_pass(packets).is_err()) {
            return false;
        }
        let reader = self.nodes[reader].element.as_mut().and_then(|element| element.task());
        reader.is_some_and(|reader| reader.takes_at_once(packets).is_ok())
    }

    /// Updates how many packets pass the queues of each fused region at once.
    pub(super) fn follow_queues(&mut self) {
        let burst = self.burst;
        for at in 0..self.regions.len() {
            let queues = std::mem::take(&mut self.regions[at].queues);
            if !queues.is_empty() {
                let mut all = |packets: &usize| queues.iter().all(|of| self.lets_pass(of.0, of.1, *packets));
                let room = [LIST_CAPACITY, burst].into_iter().find(&mut all);
                self.regions[at].room = room.unwrap_or(0);
            }
            self.regions[at].queues = queues;
        }
    }
}
