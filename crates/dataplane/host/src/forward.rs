//! Pushing and pulling packets through the graph.
//!
//! Packets stay in their vector; each element sorts an index list into exit lists, and the lists go
//! on to the next elements, depth first. Nothing here looks at a packet.

use crate::fused::Entry;
use crate::node::{Lowered, Pulled};
use crate::worker::Worker;
use codegen::{Burst, Exits};
use crossbeam_queue::ArrayQueue;
use element::work::Account;
use element::{Batch, Element, Host, Vector};
use ir::eval::State;
use ir::{LIST_CAPACITY, Table, Tables};
use shm::Packet;
use shm::pool::{PacketPool, Pool};
use std::cmp::Reverse;

/// Elements that one packet may pass in a row: a configuration may hold loops, and one that never
/// lets a packet go must not take the worker with it.
const MAX_DEPTH: usize = 1_000;

/// The host's own reasons to drop packets, counted from a node's last: there is no way on for them.
const NO_WAY: usize = 1;
/// Nothing is wired to the port.
const UNWIRED: usize = 2;

/// The class of elements that only pass packets on.
const PASSES_ON: &str = "Null";

/// A packet on its way to the worker that has the state for it.
pub struct Handed {
    /// The element's node, the same in all graphs.
    pub node: usize,
    /// Where it is there.
    pub place: Place,
    /// The packet.
    pub packet: Packet,
}

/// Where a packet is that is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// About to come in by this input.
    Input(usize),
    /// About to leave by output 0.
    Output,
}

/// An element's tables, by their numbers in its program.
struct ElementTables<'a>(&'a mut dyn Element);

impl Tables for ElementTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.table(index)
    }
}

/// Packets that elements emitted beside their batches, and the port of each.
#[derive(Default)]
pub(crate) struct Outbox {
    packets: Vec<Packet>,
    ports: Vec<usize>,
}

impl Outbox {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    fn push(&mut self, port: usize, packets: &[Packet]) {
        self.packets.extend_from_slice(packets);
        self.ports.resize(self.packets.len(), port);
    }

    fn truncate(&mut self, len: usize) {
        self.packets.truncate(len);
        self.ports.truncate(len);
    }

    /// The packets from `at` on that leave by the same port, as many as a vector has room for.
    fn run(&self, at: usize) -> Option<(usize, &[Packet])> {
        let ports = self.ports.get(at..)?;
        let port = *ports.first()?;
        let count = ports.iter().take(LIST_CAPACITY).take_while(|other| **other == port).count();
        Some((port, &self.packets[at..at + count]))
    }
}

impl Worker {
    /// Packets that come in by an input of a node.
    pub(crate) fn push(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        self.nodes[node].books.input.add(list.len());
        if self.nodes[node].has_detour {
            return self.detour(node, input, packets, list);
        }
        self.enter(node, input, packets, list);
    }

    /// Packets that do not go straight into the element.
    #[cold]
    fn detour(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        match self.nodes[node].elsewhere {
            true => self.hand_over(node, input, packets, list),
            false => self.push_probed(node, input, packets, list),
        }
    }

    /// Where packets that come in by an input of a node enter a stretch that runs as one program.
    #[inline(always)]
    pub(crate) fn fused_entry(&self, node: usize, input: usize) -> Option<Entry> {
        let entry = self.nodes[node].entries.get(input).copied()??;
        (!self.is_slow && self.stretches[entry.stretch].is_ready()).then_some(entry)
    }

    /// Packets that are in a node's books.
    #[inline(always)]
    pub(crate) fn enter(&mut self, node: usize, input: usize, packets: &mut [Packet], list: &[u16]) {
        if let Some(entry) = self.fused_entry(node, input) {
            return self.push_fused(entry, packets, list);
        }
        self.depth += 1;
        let mut exits = self.exits.pop().unwrap_or_default();
        let outbox_start = self.outbox.len();
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
    fn run_element(
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
            let mut state = State {
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
            let reasons = this.books.reasons.len();
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
        slow.reset(self.nodes[node].outputs.len(), self.nodes[node].books.reasons.len() - own_reasons, 0);
        // Its tables are at work here, and not there for a stretch that something of this led into.
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
                if let Some(count) = self.nodes[node].books.dropped.get(first + reason) {
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
                this.books.outputs[port].add(list.len());
                self.push(next.node, next.port, packets, list);
            }
            Some(_) => self.give_up(node, NO_WAY, packets, list),
            None => self.give_up(node, UNWIRED, packets, list),
        }
    }

    /// Drops packets for one of the host's own reasons, the last two of every node.
    fn give_up(&mut self, node: usize, from_last: usize, packets: &[Packet], list: &[u16]) {
        let dropped = &self.nodes[node].books.dropped;
        if let Some(count) = dropped.get(dropped.len().saturating_sub(from_last)) {
            count.add(list.len());
        }
        self.pool.free(packets, list);
    }

    /// Sends on what an element emitted beside its batch since the outbox had `start` packets.
    pub(crate) fn flush_outbox(&mut self, node: usize, start: usize) {
        // Whoever emits further down works behind what is here, and leaves as much as it found.
        let mut at = start;
        while let Some((port, packets)) = self.outbox.run(at) {
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
        self.outbox.truncate(start);
    }

    /// Gives packets to the worker that owns the element's state.
    fn hand_over(&mut self, node: usize, input: usize, packets: &[Packet], list: &[u16]) {
        self.finish.hand(list.len());
        for &index in list {
            let packet = packets[usize::from(index)];
            if self.home.push(Handed { node, place: Place::Input(input), packet }).is_ok() {
                self.nodes[node].books.handed_over.add(1);
            } else {
                self.finish.take(1);
                self.give_up(node, NO_WAY, packets, &[index]);
            }
        }
    }

    /// Whether all other workers have room for what a source may have for them.
    pub(crate) fn can_spread(&self) -> bool {
        let most = LIST_CAPACITY * self.rings.len();
        let others = self.rings.iter().enumerate().filter(|(worker, _)| *worker != self.number);
        others.map(|(_, ring)| ring).all(|ring| ring.len() + most <= ring.capacity())
    }

    /// Gives packets that a source has received to the workers that have their state. Those of this one stay.
    pub(crate) fn spread(&mut self, node: usize, vector: &mut Vector) {
        let Some(spread) = self.nodes[node].spread.as_ref() else { return };
        let (packets, list) = vector.parts();
        let (mut own, mut count) = ([0; LIST_CAPACITY], 0);
        let mut announced = 0;
        let (mut lost, mut lost_count) = ([0; LIST_CAPACITY], 0);
        let mut owners = [0; LIST_CAPACITY];
        spread.owners(packets, list, &mut owners);
        for (&index, &owner) in list.iter().zip(&owners) {
            let owner = usize::from(owner);
            own[count] = index;
            if owner == self.number {
                count += 1;
                continue;
            }
            // Once for a burst, and not at all where all are at home: every worker writes there.
            if announced == 0 {
                announced = list.len();
                self.finish.hand(announced);
            }
            let packet = packets[usize::from(index)];
            let handed = Handed { node, place: Place::Output, packet };
            if self.rings.get(owner).is_none_or(|ring| ring.push(handed).is_err()) {
                // Other sources filled the room that there was.
                lost[lost_count] = index;
                lost_count += 1;
            }
        }
        if lost_count > 0 {
            self.give_up(node, NO_WAY, packets, &lost[..lost_count]);
        }
        if announced > 0 {
            self.finish.take(count + lost_count);
        }
        vector.relist(&own[..count]);
    }

    /// Works on packets that other workers handed over; whether there are any. Those that sources have received wait
    /// while sources are to wait.
    pub(crate) fn take_handed(&mut self, sources_wait: bool) -> bool {
        let mut worked = false;
        if self.number == 0 && !self.home.is_empty() {
            let home = std::sync::Arc::clone(&self.home);
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

    fn take_from(&mut self, ring: &ArrayQueue<Handed>) {
        self.wake();
        let mut vector = self.vectors.pop().unwrap_or_default();
        vector.clear();
        let (mut at, mut count) = (None, 0);
        for _ in 0..ring.len().min(LIST_CAPACITY) {
            let Some(Handed { node, place, packet }) = ring.pop() else { break };
            // Those that go the same way go together.
            if at.is_some_and(|at| at != (node, place)) || vector.len() >= self.burst {
                self.go_on(at, &mut vector);
            }
            at = Some((node, place));
            vector.push(&packet);
            count += 1;
        }
        self.go_on(at, &mut vector);
        self.vectors.push(vector);
        self.finish.take(count);
    }

    /// Has packets go on that were handed over.
    fn go_on(&mut self, at: Option<(usize, Place)>, vector: &mut Vector) {
        let (packets, list) = vector.parts();
        match at.filter(|_| !list.is_empty()) {
            Some((node, Place::Input(input))) => self.push(node, input, packets, list),
            Some((node, Place::Output)) => self.leave(node, 0, packets, list),
            None => {}
        }
        vector.clear();
    }

    /// Drops what was handed over after this worker had ended: a run that was stopped.
    pub(crate) fn drop_handed(&mut self) {
        let (home, own) = (std::sync::Arc::clone(&self.home), self.rings.get(self.number).cloned());
        let left = || own.as_ref().and_then(|ring| ring.pop()).or_else(|| home.pop());
        while let Some(Handed { node, place, packet }) = left() {
            if place != Place::Output {
                self.nodes[node].books.input.add(1);
            }
            self.give_up(node, NO_WAY, std::slice::from_ref(&packet), &[0]);
        }
    }

    /// Pulls up to `most` packets out of a port of a node into a vector.
    fn pull_from(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let most = most.min(into.room());
        match self.nodes[node].pulled {
            Pulled::Answers => self.answer_pull(node, port, most, into),
            Pulled::Through => self.pull_through(node, port, most, into),
            Pulled::Probed => self.pull_probed(node, port, most, into),
        }
    }

    /// Has an element answer.
    #[inline(always)]
    pub(crate) fn answer_pull(&mut self, node: usize, port: usize, most: usize, into: &mut Vector) -> usize {
        let outbox_start = self.outbox.len();
        let mut count = 0;
        self.with_element(node, |element, work| count = element.pull(port, most, into, work));
        self.nodes[node].books.outputs[port].add(count);
        self.flush_outbox(node, outbox_start);
        count
    }

    /// Has an element work on what is pulled into it.
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
        self.nodes[node].books.input.add(pulled);
        let mut exits = self.exits.pop().unwrap_or_default();
        let outbox_start = self.outbox.len();
        let (packets, list) = into.parts();
        if let Some(through) = self.run_element(node, 0, packets, &list[kept..], &mut exits) {
            exits.extend(through, &list[kept..]);
        }
        for other in (0..exits.outputs()).filter(|other| *other != port) {
            if !exits.output(other).is_empty() {
                self.leave(node, other, packets, exits.output(other));
            }
        }
        let through = exits.output(port);
        self.nodes[node].books.outputs[port].add(through.len());
        before[kept..kept + through.len()].copy_from_slice(through);
        let count = through.len();
        into.relist(&before[..kept + count]);
        self.exits.push(exits);
        self.flush_outbox(node, outbox_start);
        count
    }
}

impl Host for Worker {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn pool(&mut self) -> &mut PacketPool {
        &mut self.pool
    }

    fn burst(&self) -> usize {
        self.burst
    }

    fn emit(&mut self, _node: usize, port: usize, packet: &Packet) {
        self.outbox.push(port, std::slice::from_ref(packet));
    }

    fn emit_all(&mut self, _node: usize, port: usize, packets: &[Packet]) {
        self.outbox.push(port, packets);
    }

    fn pass(&mut self, node: usize, port: usize, count: usize) {
        let (mut node, mut port) = (node, port);
        // A way between two NFs has no loops: `Null` passes on to one element.
        while let Some(next) = self.nodes[node].outputs.get(port).copied().flatten() {
            self.nodes[node].books.outputs[port].add(count);
            self.nodes[next.node].books.input.add(count);
            (node, port) = (next.node, 0);
            if self.nodes[node].class.name != PASSES_ON {
                self.account(node, Account::Held, count);
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
        if let Some(dropped) = this.books.dropped.get(first + reason) {
            dropped.add(count);
        }
    }

    fn pull(&mut self, node: usize, input: usize, most: usize, into: &mut Vector) -> usize {
        let Some(up) = self.nodes[node].inputs.get(input).copied().flatten() else { return 0 };
        let count = self.pull_from(up.node, up.port, most, into);
        self.nodes[node].books.input.add(count);
        count
    }

    fn account(&mut self, node: usize, account: Account, count: usize) {
        self.nodes[node].account(account, count);
    }

    fn fire_at(&mut self, node: usize, at_ns: u64) {
        self.fire_at[node] = at_ns;
        self.timers.push(Reverse((at_ns, node)));
    }

    fn hold_sources(&mut self) {
        self.sources_wait = true;
    }

    fn stop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn print(&mut self, line: &str) {
        (self.print)(line);
    }

    fn read_handler(&mut self, node: usize, handler: &str) -> Result<String, String> {
        let (node, handler) = self.find_handler(node, handler)?;
        self.read_here(node, &handler)
    }

    fn write_handler(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String> {
        let (node, handler) = self.find_handler(node, handler)?;
        self.write_here(node, &handler, value)
    }
}
