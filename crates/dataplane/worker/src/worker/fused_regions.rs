//! Pushes bursts through fused regions and settles their counters.

use super::Worker;
use super::held::InterruptedProgram;
use crate::fusion::{Cache, CacheCounts, FusedRegion, PartTables};
use crate::graph::{End, RegionEntry};
use codegen::Precedence;
use ir::eval::EvalState;
use shm::Packet;
use shm::burst::LIST_CAPACITY;
use shm::burst::{Burst, Exits};
use shm::pool::Pool;

impl Worker {
    /// Runs packets through a fused region. Their arrival at the first element is already counted. Returns
    /// the output if all leave by one; else those that have something left to do wait.
    pub(crate) fn run_fused(
        &mut self,
        entry: RegionEntry,
        packets: &mut [Packet],
        list: &[u16],
    ) -> Option<End> {
        let mut passes_by = false;
        let rests = self.caches_rest;
        let may_lack_room = |cache: &mut Box<Cache>| {
            !cache.makers.is_empty() && (rests || !cache.makers.have_room_for(list.len()))
        };
        if self.regions[entry.region].cache.as_mut().is_some_and(may_lack_room) {
            let may_use = self.may_use_cache(entry, packets, list);
            passes_by = may_use == 0;
            if !passes_by && may_use < list.len() {
                let (first, rest) = list.split_at(may_use);
                for list in [first, rest] {
                    if let Some(from) = self.run_fused(entry, packets, list) {
                        self.wait_behind(from, packets, list);
                    }
                }
                return None;
            }
        }
        let region = &mut self.regions[entry.region];
        let part = region.layout.entries[entry.input];
        region.balance[part] = region.balance[part].wrapping_add(list.len() as u64);
        region.is_due = true;
        let mut exits = self.exits.pop().unwrap_or_default();
        let first = self.first_before(entry.region);
        let region = &mut self.regions[entry.region];
        // Entries know nothing of packets that come first.
        let takes = |cache: &mut Box<Cache>| first == u16::MAX && cache.takes(entry.input, list.len());
        let through = match region.cache.take_if(takes) {
            Some(mut cache) if passes_by => {
                let through = self.pass_by_cache(entry, &mut cache, packets, list, &mut exits);
                self.regions[entry.region].cache = Some(cache);
                through
            }
            Some(mut cache) => {
                let through = self.pass_cached(entry, &mut cache, packets, list, &mut exits);
                self.regions[entry.region].cache = Some(cache);
                through
            }
            None => self.pass_whole(entry, packets, (list, first), &mut exits),
        };
        if through.is_none() {
            self.part_fused(entry.region, packets, &exits);
            if self.scratch.first_held().is_some() {
                self.run_held(InterruptedProgram::Region(entry.region, entry.input), packets);
            }
        }
        self.exits.push(exits);
        if passes_by && !self.caches_rest {
            self.with_caches(|_| true, |cache, tables, _| cache.makers.tell(tables, false));
        }
        through.map(|output| self.leave_fused(entry.region, output, list.len()))
    }

    /// The first packet that waits elsewhere and can still reach a table of a region that packets change.
    #[inline(always)]
    pub(super) fn first_before(&self, region: usize) -> u16 {
        let before = &self.regions[region].before_tables;
        if before.is_empty() { u16::MAX } else { self.waiting.first_at(|node| before[node]) }
    }

    /// Runs packets through a fused region's whole program; `first` waits elsewhere and comes first. Returns the port
    /// if all leave by one and no list was written.
    fn pass_whole(
        &mut self,
        entry: RegionEntry,
        packets: &mut [Packet],
        (list, first): (&[u16], u16),
        exits: &mut Exits,
    ) -> Option<usize> {
        let region = &self.regions[entry.region];
        let mut tables = region.tables(&mut self.nodes);
        let cells = &mut self.cells[region.cells.clone()];
        let mut state = EvalState { cells, tables: &mut tables, now_ns: self.now_ns };
        let burst = Burst { input: entry.input, packets, list };
        let made = &region.compiled;
        let precedence = Precedence { first, outputs: &region.returning };
        codegen::pass_in_order(&made.engine, burst, precedence, &mut state, &mut self.scratch, exits)
    }

    /// The same with a flow cache in front of the program, whose parameters come in addition.
    fn pass_cached(
        &mut self,
        entry: RegionEntry,
        cache: &mut Cache,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        let region = &self.regions[entry.region];
        let mut tables = region.tables(&mut self.nodes);
        cache.heed(&mut tables, self.now_ns);
        let place = region.cells.clone();
        let cells = &mut self.cells[place.clone()];
        let Some((engine, entries)) = cache.program(&mut tables, entry.input) else {
            let mut state = EvalState { cells, tables: &mut tables, now_ns: self.now_ns };
            cache.count(0, list.len());
            cache.learn(entry.input, packets, list, &mut state);
            let through = self.pass_whole(entry, packets, (list, u16::MAX), exits);
            self.learn_first(entry, cache);
            return through;
        };
        let misses_list = engine.program().slow.len() - 1;
        let mut state = EvalState { cells, tables: entries, now_ns: self.now_ns };
        let burst = Burst { input: entry.input, packets: &mut *packets, list };
        let through = codegen::pass(engine, burst, &mut state, &mut self.scratch, exits);
        let mut all = [0; LIST_CAPACITY];
        let misses = match through {
            Some(_) => &[][..],
            None => {
                let misses = exits.other(misses_list);
                let all = &mut all[..misses.len()];
                all.copy_from_slice(misses);
                // Packets without an entry are listed before those that failed a guard; the program needs
                // them in their order.
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
        let mut state = EvalState { cells, tables: &mut tables, now_ns: self.now_ns };
        cache.learn(entry.input, packets, misses, &mut state);
        let mut others = self.exits.pop().unwrap_or_default();
        let returning = self.regions[entry.region].returning.iter();
        let returning = returning.flat_map(|output| exits.output(usize::from(*output)));
        let first = returning.copied().fold(u16::MAX, u16::min);
        match self.pass_whole(entry, packets, (misses, first), &mut others) {
            // The exit lists keep the order of arrival.
            Some(port) => exits.merge(port, misses),
            None => exits.merge_all(&others, misses_list),
        }
        self.exits.push(others);
        self.learn_first(entry, cache);
        None
    }

    /// How many of the packets may use the flow cache. A table that may have no room for the records of all of them
    /// chooses by its records which of them go: these must be as without a cache, and packets see the choice at once.
    /// So only packets in front of the first one without an entry use the cache then. If there are none, all caches
    /// have merged what they counted; while they are large, they rest.
    fn may_use_cache(&mut self, entry: RegionEntry, packets: &[Packet], list: &[u16]) -> usize {
        if self.caches_rest {
            return 0;
        }
        let Some(mut cache) = self.regions[entry.region].cache.take() else { return list.len() };
        let tables = &mut self.regions[entry.region].tables(&mut self.nodes);
        let may_use = match cache.makers.are_short_of_room(tables, list.len()) {
            true => {
                cache.heed(tables, self.now_ns);
                cache.knows_first(entry.input, packets, list)
            }
            false => list.len(),
        };
        self.regions[entry.region].cache = Some(cache);
        if may_use == 0 {
            let mut are_small = true;
            self.with_caches(
                |_| true,
                |cache, tables, now_ns| {
                    cache.begin_rest(tables, now_ns);
                    are_small &= cache.is_small();
                },
            );
            self.caches_rest = !are_small;
        }
        may_use
    }

    /// Runs packets through the whole program, and makes entries for their flows unless the caches rest.
    fn pass_by_cache(
        &mut self,
        entry: RegionEntry,
        cache: &mut Cache,
        packets: &mut [Packet],
        list: &[u16],
        exits: &mut Exits,
    ) -> Option<usize> {
        cache.count(0, list.len());
        if self.caches_rest {
            return self.pass_whole(entry, packets, (list, u16::MAX), exits);
        }
        self.learn_from(entry, cache, packets, list);
        let through = self.pass_whole(entry, packets, (list, u16::MAX), exits);
        self.learn_first(entry, cache);
        through
    }

    fn learn_from(&mut self, entry: RegionEntry, cache: &mut Cache, packets: &[Packet], list: &[u16]) {
        let region = &self.regions[entry.region];
        let mut tables = region.tables(&mut self.nodes);
        let cells = &mut self.cells[region.cells.clone()];
        let mut state = EvalState { cells, tables: &mut tables, now_ns: self.now_ns };
        cache.learn(entry.input, packets, list, &mut state);
    }

    /// Lets flow caches work again once tables have room.
    fn wake_caches(&mut self) {
        let mut has_room = true;
        self.with_caches(|_| true, |cache, tables, _| has_room &= cache.makers.have_room_again(tables));
        if has_room {
            self.caches_rest = false;
            self.with_caches(|_| true, |cache, tables, _| cache.makers.tell(tables, false));
        }
    }

    /// Makes entries for flows whose first packets have just run through the whole program.
    fn learn_first(&mut self, entry: RegionEntry, cache: &mut Cache) {
        let region = &self.regions[entry.region];
        let mut tables = region.tables(&mut self.nodes);
        let cells = &mut self.cells[region.cells.clone()];
        let mut state = EvalState { cells, tables: &mut tables, now_ns: self.now_ns };
        cache.learn_first(entry.input, &mut state);
    }

    /// Calls a function with the flow cache and the tables of each region that is `wanted`.
    fn with_caches(
        &mut self,
        wanted: impl Fn(&FusedRegion) -> bool,
        mut what: impl FnMut(&mut Cache, &mut PartTables<'_>, u64),
    ) {
        for region in self.regions.iter_mut().filter(|region| wanted(region)) {
            let Some(mut cache) = region.cache.take() else { continue };
            what(&mut cache, &mut region.tables(&mut self.nodes), self.now_ns);
            region.cache = Some(cache);
        }
    }

    /// Merges what the flow caches of regions counted into the tables.
    pub(crate) fn merge_caches(&mut self, wanted: impl Fn(&FusedRegion) -> bool) {
        self.with_caches(wanted, |cache, tables, now_ns| cache.merge(tables, now_ns));
    }

    /// Answers the tables that ask flow caches for their counts, behind the elements' own housekeeping.
    pub(crate) fn answer_tables(&mut self) {
        self.with_caches(|_| true, |cache, tables, now_ns| cache.answer(tables, now_ns));
    }

    /// Housekeeping of flow caches.
    pub(crate) fn tick_caches(&mut self) {
        if self.caches_rest {
            self.wake_caches();
        }
        self.with_caches(|_| true, |cache, tables, now_ns| cache.tick(tables, now_ns));
        let mut counts = CacheCounts::default();
        self.regions.iter().for_each(|region| counts.add(region.cache_counts()));
        // A reader that holds the lock gets the next update.
        if let Ok(mut told) = self.activity.cache.try_lock() {
            *told = counts;
        }
    }

    /// Lets the packets wait that a fused region sorted into several lists.
    pub(super) fn part_fused(&mut self, region: usize, packets: &mut [Packet], exits: &Exits) {
        let program = &self.regions[region].compiled.program;
        let (reasons, slow) = (program.reasons.len(), program.slow.len());
        if exits.has_exceptions(slow) {
            for reason in 0..reasons {
                self.drop_fused(region, reason, packets, exits.dropped(reason));
            }
            for path in 0..slow {
                self.slow_fused(region, path, exits.other(path));
            }
        }
        for output in 0..exits.outputs() {
            let list = exits.output(output);
            if !list.is_empty() {
                let from = self.leave_fused(region, output, list.len());
                self.wait_behind(from, packets, list);
            }
        }
    }

    /// Counts packets that leave a fused region by one of its exits, and returns the output.
    fn leave_fused(&mut self, region: usize, output: usize, packets: usize) -> End {
        let region = &mut self.regions[region];
        let (part, port) = region.linked.outputs[output];
        region.balance[part] = region.balance[part].wrapping_sub(packets as u64);
        region.count_seldom(part, port, packets);
        End { node: region.parts[part], port }
    }

    fn drop_fused(&mut self, region: usize, reason: usize, packets: &[Packet], list: &[u16]) {
        if list.is_empty() {
            return;
        }
        let region = &mut self.regions[region];
        let (part, reason) = region.linked.reasons[reason];
        region.balance[part] = region.balance[part].wrapping_sub(list.len() as u64);
        self.nodes[region.parts[part]].counters.dropped[reason].add(list.len());
        self.pool.free(packets, list);
    }

    /// Lets packets wait for an element's own code. From there on, elements process them one by one.
    #[cold]
    fn slow_fused(&mut self, region: usize, path: usize, list: &[u16]) {
        if list.is_empty() {
            return;
        }
        let region = &mut self.regions[region];
        let (part, path) = region.linked.slow[path];
        region.balance[part] = region.balance[part].wrapping_sub(list.len() as u64);
        region.count_aside(list.len());
        let node = region.parts[part];
        self.wait_slow(node, path, list);
    }

    /// Settles the counters of fused regions: the packets on each inner wire follow from those that entered
    /// and left.
    pub(crate) fn settle_counters(&mut self) {
        for region in self.regions.iter_mut().filter(|region| region.is_due) {
            region.is_due = false;
            let cells = &mut self.cells[region.cells.clone()];
            let (_, counting) = cells.split_at_mut(cells.len() - region.counted.len());
            for (now, before) in counting.iter().zip(&mut region.counted) {
                *before = now.wrapping_sub(*before);
            }
            let flow = &region.linked.flow;
            flow.solve(&mut region.balance, &region.counted, &mut region.passed);
            debug_assert!(region.balance.iter().all(|left| *left == 0), "every packet leaves a fused region");
            region.counted.copy_from_slice(counting);
            for (wire, passed) in flow.wires.iter().zip(&region.passed) {
                let (from, to) = (region.parts[wire.from.0], region.parts[wire.to.0]);
                self.nodes[from].counters.outputs[wire.from.1].add(*passed as usize);
                self.nodes[to].counters.input.add(*passed as usize);
            }
        }
    }
}
