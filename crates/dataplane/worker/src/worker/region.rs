//! A burst's way through a stretch, and its counters.

use super::Worker;
use crate::graph::{Node, RegionEntry};
use crate::region::{Cache, CacheCounts};
use ir::eval::State;
use ir::{Table, Tables};
use shm::Packet;
use shm::burst::LIST_CAPACITY;
use shm::burst::{Burst, Exits};
use shm::pool::Pool;

/// The tables of a stretch, which its elements own.
struct PartTables<'a> {
    nodes: &'a mut [Node],
    parts: &'a [usize],
    tables: &'a [(usize, usize)],
}

impl Tables for PartTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        let (part, table) = *self.tables.get(index)?;
        self.nodes.get_mut(*self.parts.get(part)?)?.element.as_mut()?.table(table)
    }
}

impl Worker {
    /// Packets that enter a stretch; their arrival at the first element is counted there already.
    pub(crate) fn push_fused(&mut self, entry: RegionEntry, packets: &mut [Packet], list: &[u16]) {
        let stretch = &mut self.stretches[entry.stretch];
        let (part, _) = stretch.inputs[entry.input];
        stretch.balance[part] = stretch.balance[part].wrapping_add(list.len() as u64);
        stretch.is_due = true;
        let mut exits = self.exits.pop().unwrap_or_default();
        let through = match stretch.cache.take_if(|cache| cache.is_for(entry.input)) {
            Some(mut cache) => {
                let through = self.pass_cached(entry, &mut cache, packets, list, &mut exits);
                self.stretches[entry.stretch].cache = Some(cache);
                through
            }
            None => self.pass_whole(entry, packets, list, &mut exits),
        };
        self.depth += 1;
        if let Some(output) = through {
            self.leave_fused(entry.stretch, output, packets, list);
        } else {
            self.part_fused(entry.stretch, packets, &exits);
        }
        self.depth -= 1;
        self.exits.push(exits);
    }

    /// Has packets take a stretch's program; the port, where all leave by one and no list is written.
    fn pass_whole(
        &mut self,
        entry: RegionEntry,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        let stretch = &mut self.stretches[entry.stretch];
        let linked = &stretch.linked;
        let mut tables = PartTables { nodes: &mut self.nodes, parts: &stretch.parts, tables: &linked.tables };
        let cells = &mut self.cells[stretch.cells.clone()];
        let mut state = State { cells, tables: &mut tables, now_ns: self.now_ns };
        let burst = Burst { input: entry.input, packets, list };
        let made = &stretch.made;
        codegen::pass(&made.engine, burst, &mut state, &mut self.scratch, exits)
    }

    /// The same for who have a flow cache in front of it.
    fn pass_cached(
        &mut self,
        entry: RegionEntry,
        cache: &mut Cache,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        let stretch = &mut self.stretches[entry.stretch];
        let linked = &stretch.linked;
        let mut tables = PartTables { nodes: &mut self.nodes, parts: &stretch.parts, tables: &linked.tables };
        cache.heed(&mut tables);
        let place = stretch.cells.clone();
        let cells = &mut self.cells[place.clone()];
        let Some((engine, entries)) = cache.front() else {
            let mut state = State { cells, tables: &mut tables, now_ns: self.now_ns };
            cache.count(0, list.len());
            cache.learn(entry.input, packets, list, &mut state);
            return self.pass_whole(entry, packets, list, exits);
        };
        let misses_list = engine.program().slow.len() - 1;
        let mut state = State { cells, tables: entries, now_ns: self.now_ns };
        let burst = Burst { input: entry.input, packets: &mut *packets, list };
        let through = codegen::pass(engine, burst, &mut state, &mut self.scratch, exits);
        let mut all = [0; LIST_CAPACITY];
        let misses = match through {
            Some(_) => &[][..],
            None => {
                let misses = exits.other(misses_list);
                let all = &mut all[..misses.len()];
                all.copy_from_slice(misses);
                // Those without an entry come before those whose guards failed: all take the program in their order.
                if !all.is_sorted() {
                    all.sort_unstable();
                }
                all
            }
        };
        cache.count(list.len() - misses.len(), misses.len());
        if misses.is_empty() {
            return through;
        }
        exits.clear_other(misses_list);
        let cells = &mut self.cells[place];
        let mut state = State { cells, tables: &mut tables, now_ns: self.now_ns };
        cache.learn(entry.input, packets, misses, &mut state);
        let mut others = self.exits.pop().unwrap_or_default();
        match self.pass_whole(entry, packets, misses, &mut others) {
            // Packets keep the order in which they came.
            Some(port) => exits.merge(port, misses),
            None => exits.merge_all(&others, misses_list),
        }
        self.exits.push(others);
        None
    }

    /// Housekeeping of flow caches.
    pub(crate) fn tick_caches(&mut self) {
        let now_ns = self.now_ns;
        for cache in self.stretches.iter_mut().filter_map(|stretch| stretch.cache.as_mut()) {
            cache.tick(now_ns);
        }
        let mut counts = CacheCounts::default();
        self.stretches.iter().for_each(|stretch| counts.add(stretch.cache_counts()));
        // Who reads it just now gets the next one.
        if let Ok(mut told) = self.pulse.cache.try_lock() {
            *told = counts;
        }
    }

    /// Packets that a stretch put on several lists.
    fn part_fused(&mut self, stretch: usize, packets: &mut [Packet], exits: &Exits) {
        let program = &self.stretches[stretch].made.program;
        let (reasons, slow) = (program.reasons.len(), program.slow.len());
        if exits.has_exceptions(slow) {
            for reason in 0..reasons {
                self.drop_fused(stretch, reason, packets, exits.dropped(reason));
            }
            for path in 0..slow {
                self.slow_fused(stretch, path, packets, exits.other(path));
            }
        }
        for output in 0..exits.outputs() {
            let list = exits.output(output);
            if !list.is_empty() {
                self.leave_fused(stretch, output, packets, list);
            }
        }
    }

    /// Packets that leave a stretch by one of its exits.
    fn leave_fused(&mut self, stretch: usize, output: usize, packets: &mut [Packet], list: &[u16]) {
        let stretch = &mut self.stretches[stretch];
        let (part, port) = stretch.linked.outputs[output];
        stretch.balance[part] = stretch.balance[part].wrapping_sub(list.len() as u64);
        let node = stretch.parts[part];
        self.leave(node, port, packets, list);
    }

    fn drop_fused(&mut self, stretch: usize, reason: usize, packets: &[Packet], list: &[u16]) {
        if list.is_empty() {
            return;
        }
        let stretch = &mut self.stretches[stretch];
        let (part, reason) = stretch.linked.reasons[reason];
        stretch.balance[part] = stretch.balance[part].wrapping_sub(list.len() as u64);
        self.nodes[stretch.parts[part]].counters.dropped[reason].add(list.len());
        self.pool.free(packets, list);
    }

    /// Has an element's own code work on packets, and sends on what leaves it as in the modular form.
    #[cold]
    fn slow_fused(&mut self, stretch: usize, path: usize, packets: &mut [Packet], list: &[u16]) {
        if list.is_empty() {
            return;
        }
        let stretch = &mut self.stretches[stretch];
        let (part, path) = stretch.linked.slow[path];
        stretch.balance[part] = stretch.balance[part].wrapping_sub(list.len() as u64);
        let node = stretch.parts[part];
        let outbox_start = self.outbox.len();
        let exits = self.run_slow_path(node, path, packets, list);
        for port in 0..exits.outputs() {
            let list = exits.output(port);
            if !list.is_empty() {
                self.leave(node, port, packets, list);
            }
        }
        self.exits.push(exits);
        self.flush_outbox(node, outbox_start);
    }

    /// Writes up the counters of what passed through stretches: what went over each wire inside follows from
    /// what came in and what left.
    pub(crate) fn settle_counters(&mut self) {
        for stretch in self.stretches.iter_mut().filter(|stretch| stretch.is_due) {
            stretch.is_due = false;
            let cells = &mut self.cells[stretch.cells.clone()];
            let (_, counting) = cells.split_at_mut(cells.len() - stretch.counted.len());
            for (now, before) in counting.iter().zip(&mut stretch.counted) {
                *before = now.wrapping_sub(*before);
            }
            let flow = &stretch.linked.flow;
            flow.solve(&mut stretch.balance, &stretch.counted, &mut stretch.passed);
            debug_assert!(stretch.balance.iter().all(|left| *left == 0), "every packet leaves a stretch");
            stretch.counted.copy_from_slice(counting);
            for (wire, passed) in flow.wires.iter().zip(&stretch.passed) {
                let (from, to) = (stretch.parts[wire.from.0], stretch.parts[wire.to.0]);
                self.nodes[from].counters.outputs[wire.from.1].add(*passed as usize);
                self.nodes[to].counters.input.add(*passed as usize);
            }
        }
    }
}
