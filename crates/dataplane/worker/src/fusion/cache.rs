//! The flow cache of a fused region: each entry stores what the program does with the packets of one flow.
//!
//! See [`synth::template`]. Packets enter the program of the templates first. A packet without an entry, or
//! one that fails a guard of its entry, runs through the whole program of the fused region. The cache records
//! some of these packets and inserts entries for their flows. The time for recording is limited in each
//! millisecond, and recording becomes rarer while it yields no entries. For a new template, a separate thread
//! compiles the cache's program again; until then the template's flows run through the whole program.
//!
//! A table that changes an earlier result invalidates entries: those that use a removed record, or all
//! entries if the table does not report which record changed.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::cpu::{aside, compiled};
use super::users::{Ending, Users};
use codegen::{CodegenError, Engine, SlotBuffer};
use ir::eval::EvalState;
use ir::{Created, Program, Table, Tables, Verified};
use serde::{Deserialize, Serialize};
use shm::Packet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use synth::template::{
    CacheValidity, KEY_WORDS, Layout, Recorder, Recording, Template, cache_entry, program,
};
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// When a fused region uses a flow cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowCache {
    /// If the cache saves more work than it costs.
    #[default]
    Auto,
    /// Never.
    Off,
    /// For every flow from its first packet; the worker waits until the program is compiled. For tests.
    Eager,
}

/// The most flows with an entry.
const CAPACITY: u32 = 1 << 20;
/// The most templates.
const MOST_TEMPLATES: usize = 64;
/// The time in each millisecond for recording packets: while recording yields entries, and for trying whether
/// it does.
const LEARNING: Duration = Duration::from_micros(400);
const TRYING: Duration = Duration::from_micros(100);
/// The most milliseconds between two attempts, while recording yields no entries.
const SLOWEST: u32 = 64;
/// Entries whose end is checked in each millisecond.
const LOOKED_AT: usize = 512;
/// The work that a template must save at least, in lookups in a small prefix table.
const WORTH: usize = 6;

/// The most entries that are removed one by one.
const FEW: usize = 1024;
/// The longest validity of an entry that is not renewed.
const LONGEST_NS: u64 = 4_000_000_000;

/// The table of flow-cache entries.
#[derive(Debug)]
struct Entries(FlowTable<KEY_WORDS>);

impl Entries {
    fn new(entry_bytes: usize) -> Result<Entries, TableError> {
        let seed = RandomState::new().hash_one(entry_bytes);
        let config = FlowConfig {
            record_bytes: entry_bytes,
            capacity: CAPACITY,
            max_keys: CAPACITY,
            seed,
            ..FlowConfig::default()
        };
        Ok(Entries(FlowTable::new(&config)?))
    }

    /// Whether the record at this address is a live entry.
    fn is_live(&self, at: u64) -> bool {
        self.0.record_at(at).is_some()
    }
}

// SAFETY: handles are addresses in the flow table's own mapping, accessed by a raw pointer. The table
// reserves the whole mapping when it is created; the mapping neither moves nor is unmapped before the table
// is dropped, and all its bytes are initialised. Each record has the number of bytes that `new` was given.
// Methods of `Cache` insert, remove and replace entries between bursts; `create` inserts none.
unsafe impl Table for Entries {
    fn key_words(&self) -> usize {
        KEY_WORDS
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(self.0.record_bytes())
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let found = self.0.find_address(key.try_into().ok()?);
        (found != 0).then_some(found)
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        self.0.lookup_batch_strided(keys, stride, list, records);
    }

    fn create(&mut self, key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        self.lookup(key).map_or(Created::Refused, Created::Record)
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.0.load(record, usize::from(offset), bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.0.store(record, usize::from(offset), bytes, value);
    }
}

impl Tables for Entries {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(self)
    }
}

/// The program of the templates, compiled.
struct CacheProgram {
    engine: Engine,
    /// The number of templates that the program has: the first of `templates`.
    knows: usize,
}

/// The state of an input of the fused region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Input {
    /// No packet of it was recorded yet.
    New,
    /// The location of its packets' flow keys.
    Cached(Layout),
    /// The templates' program did not compile.
    Failed,
}

/// Statistics of a flow cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheCounts {
    /// Packets that ran through the templates' program only.
    pub hits: u64,
    /// Packets that ran through the whole program.
    pub whole: u64,
    /// Flows that have an entry now.
    pub flows: u64,
    /// Number of templates.
    pub templates: u64,
    /// Entries that were invalidated because a record was removed.
    pub ended: u64,
    /// How often all entries were invalidated at once.
    pub cleared: u64,
}

impl CacheCounts {
    /// Adds the statistics of another cache.
    pub fn add(&mut self, other: CacheCounts) {
        self.hits += other.hits;
        self.whole += other.whole;
        self.flows += other.flows;
        self.templates += other.templates;
        self.ended += other.ended;
        self.cleared += other.cleared;
    }
}

/// The flow cache of a fused region.
pub struct Cache {
    how: FlowCache,
    is_evaluated: bool,
    whole: Arc<Verified>,
    follower: Recorder,
    inputs: Vec<Input>,
    templates: Vec<(usize, Template)>,
    program: Option<CacheProgram>,
    making: Option<JoinHandle<Result<CacheProgram, CodegenError>>>,
    entries: Option<Entries>,
    users: Users,
    /// Removed records; kept for its allocation.
    gone: Vec<u64>,
    entry_bytes: usize,
    validity: Option<CacheValidity>,
    changes: u64,
    /// The time for recording until the next attempt, and the templates and entries added in it.
    left: Duration,
    learnt: u32,
    has_followed: bool,
    /// Milliseconds between two attempts, and milliseconds since the last.
    pace: u32,
    waited: u32,
    counts: CacheCounts,
}

impl Cache {
    /// An empty cache for a program.
    pub(crate) fn new(how: FlowCache, is_evaluated: bool, whole: Arc<Verified>) -> Cache {
        Cache {
            how,
            is_evaluated,
            inputs: vec![Input::New; whole.entries.len()],
            follower: Recorder::new(&whole),
            whole,
            templates: vec![],
            program: None,
            making: None,
            entries: None,
            users: Users::default(),
            gone: vec![],
            entry_bytes: 64,
            validity: None,
            changes: 0,
            left: TRYING,
            has_followed: false,
            learnt: 0,
            pace: 1,
            waited: 0,
            counts: CacheCounts::default(),
        }
    }

    /// Whether packets of this input use the cache.
    pub(crate) fn is_for(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(|input| *input != Input::Failed)
    }

    /// The cache's statistics.
    pub(crate) fn counts(&self) -> CacheCounts {
        let flows = self.entries.as_ref().map_or(0, |entries| entries.0.len() as u64);
        CacheCounts { flows, templates: self.templates.len() as u64, ..self.counts }
    }

    /// Invalidates the entries that use a record which a table removed before its validity ended, or all
    /// entries if the table does not report the record.
    pub(crate) fn heed(&mut self, tables: &mut dyn Tables) {
        if self.entries.as_ref().is_none_or(|entries| entries.0.is_empty()) {
            return;
        }
        let mut changes = 0u64;
        for number in 0..self.whole.tables.len() {
            let Some(table) = tables.table(number) else { continue };
            let Some(lease) = table.cache_validity() else { continue };
            changes = changes.wrapping_add(lease.changes);
            if lease.gone.is_some_and(|gone| gone > 0) {
                table.take_gone(&mut self.gone);
            }
        }
        if !self.gone.is_empty() {
            self.end_users();
        }
        if changes != std::mem::replace(&mut self.changes, changes) {
            self.clear();
        }
    }

    /// Invalidates the entries that use the removed records.
    fn end_users(&mut self) {
        let Some(entries) = &mut self.entries else { return self.gone.clear() };
        let mut ending = Ending::Answer;
        for record in self.gone.drain(..) {
            let of_record = self.users.take(record, |at| {
                if entries.is_live(at) {
                    entries.0.store(at, usize::from(cache_entry::RENEW_NS), 8, 0);
                    entries.0.store(at, usize::from(cache_entry::END_NS), 8, 0);
                    self.counts.ended += 1;
                }
            });
            if of_record == Ending::All {
                ending = Ending::All;
            }
        }
        if ending == Ending::All {
            self.clear();
        }
    }

    /// Invalidates all entries.
    pub(crate) fn clear(&mut self) {
        let Some(entries) = self.entries.as_mut().filter(|entries| !entries.0.is_empty()) else { return };
        self.counts.cleared += 1;
        // `users` may keep the addresses of entries that were removed.
        if entries.0.len() <= FEW {
            return entries.0.clear();
        }
        // Clearing a large table, or unmapping its memory, takes longer than packets may wait.
        let Ok(empty) = Entries::new(self.entry_bytes) else { return entries.0.clear() };
        let users = self.users.give_away();
        let old = std::mem::replace(entries, empty);
        aside("flow cache", move || drop((old, users)));
    }

    /// The templates' program and its table; `None` until both exist.
    pub(crate) fn program(&mut self) -> Option<(&Engine, &mut dyn Tables)> {
        let front = self.program.as_ref()?;
        Some((&front.engine, self.entries.as_mut()?))
    }

    /// Counts the packets that ran through the templates' program only, and those that needed the whole
    /// program.
    pub(crate) fn count(&mut self, hits: usize, whole: usize) {
        self.counts.hits += hits as u64;
        self.counts.whole += whole as u64;
    }

    /// Records some packets that are about to enter the whole program.
    pub(crate) fn learn(
        &mut self,
        input: usize,
        packets: &[Packet],
        list: &[u16],
        state: &mut EvalState<'_>,
    ) {
        for &index in list {
            if self.left.is_zero() {
                return;
            }
            let packet = &packets[usize::from(index)];
            let buffer = SlotBuffer(*packet);
            let layout = match self.inputs.get(input) {
                Some(Input::Cached(layout)) => Some(*layout),
                Some(Input::New) => Layout::of(packet, &buffer),
                _ => return,
            };
            let Some(layout) = layout else { continue };
            let Some(key) = layout.read(packet, &buffer, input) else { continue };
            if self.is_known(&key, state.now_ns) {
                continue;
            }
            self.has_followed = true;
            let start = Instant::now();
            let followed = self.follower.record(&self.whole, input, layout, packet, &buffer, state);
            if let Ok(followed) = followed {
                self.insert(input, layout, key, followed, state);
            }
            if self.how != FlowCache::Eager {
                self.left = self.left.saturating_sub(start.elapsed());
            }
        }
    }

    fn is_known(&self, key: &[u64; KEY_WORDS], now_ns: u64) -> bool {
        let entries = self.entries.as_ref();
        let found = entries.and_then(|entries| Some((entries, entries.lookup(key)?)));
        found.is_some_and(|(entries, at)| entries.record_load(at, cache_entry::END_NS, 8) > now_ns)
    }

    /// Inserts an entry for a flow if the compiled program has its template; else adds the template.
    fn insert(
        &mut self,
        input: usize,
        layout: Layout,
        key: [u64; KEY_WORDS],
        followed: Recording,
        state: &mut EvalState<'_>,
    ) {
        let Recording { template, numbers, records, saved, .. } = followed;
        let worth = 4 * saved.lookups + saved.prefixes + saved.decisions / 8;
        if self.how == FlowCache::Auto && worth < WORTH {
            return;
        }
        let validity = *self.validity.get_or_insert_with(|| borrow(&self.whole, state.tables));
        self.inputs[input] = Input::Cached(layout);
        let bytes = template.entry_bytes();
        let next = self.templates.len();
        let known = self.templates.iter().position(|(at, known)| *at == input && *known == template);
        let number = match known {
            Some(number) => number,
            None if next < MOST_TEMPLATES => {
                self.templates.push((input, template));
                self.learnt += 1;
                if bytes > self.entry_bytes {
                    self.entry_bytes = bytes.next_multiple_of(64);
                    self.clear();
                    (self.entries, self.program) = (None, None);
                }
                if self.how == FlowCache::Eager {
                    self.follow_templates();
                }
                next
            }
            None => return,
        };
        if self.program.as_ref().is_none_or(|front| number >= front.knows) {
            return;
        }
        let Some(entries) = &mut self.entries else { return };
        // If the table is full, the flow stays in the whole program.
        let Ok((record, _)) = entries.0.find_or_insert(&key) else { return };
        self.learnt += 1;
        let at = entries.0.record_ptr(record) as u64;
        if !records.into_iter().all(|used| self.users.add(used, at, |at| entries.is_live(at))) {
            entries.0.remove(record);
            return;
        }
        let now_ns = state.now_ns;
        entries.record_store(at, cache_entry::RENEW_NS, 8, now_ns.saturating_add(validity.renew_ns));
        entries.record_store(at, cache_entry::END_NS, 8, now_ns.saturating_add(validity.end_ns));
        entries.record_store(at, cache_entry::TEMPLATE, 2, number as u64);
        for ((offset, bytes), number) in self.templates[number].1.params.iter().zip(numbers) {
            entries.record_store(at, *offset, *bytes, number);
        }
    }

    /// Housekeeping, once in a millisecond.
    pub(crate) fn tick(&mut self, now_ns: u64) {
        self.waited += 1;
        if self.waited >= self.pace {
            (self.pace, self.left) = match self.learnt {
                0 if self.has_followed => ((self.pace * 2).min(SLOWEST), TRYING),
                0 => (self.pace, TRYING),
                _ => (1, LEARNING),
            };
            (self.has_followed, self.learnt, self.waited) = (false, 0, 0);
        }
        self.follow_templates();
        let Some(entries) = &mut self.entries else { return };
        let mut budget = LOOKED_AT;
        while let Some(record) = entries.0.step(&mut budget) {
            let at = entries.0.record_ptr(record) as u64;
            if entries.0.load(at, usize::from(cache_entry::END_NS), 8) <= now_ns {
                entries.0.remove(record);
            }
        }
        entries.0.maintain();
        self.users.sweep(|at| entries.is_live(at));
    }

    /// Starts compiling a program with all templates, if templates were added.
    fn follow_templates(&mut self) {
        if let Some(made) = compiled(&mut self.making) {
            self.take(made);
        }
        let known = self.program.as_ref().map_or(0, |front| front.knows);
        let Some(validity) = self.validity.filter(|_| known < self.templates.len()) else { return };
        if self.making.is_some() {
            return;
        }
        let layouts: Vec<Option<Layout>> = self
            .inputs
            .iter()
            .map(|input| match input {
                Input::Cached(layout) => Some(*layout),
                _ => None,
            })
            .collect();
        let (whole, templates) = (Arc::clone(&self.whole), self.templates.clone());
        let (entry_bytes, is_evaluated) = (self.entry_bytes, self.is_evaluated);
        let make = move || {
            let failed = |error: ir::verify::VerifyError| CodegenError::Compile {
                program: "templates".into(),
                what: error.to_string(),
            };
            let plain = program(&whole, &layouts, &templates, entry_bytes, validity).map_err(failed)?;
            let program = Arc::new(synth::optimize::optimize(&plain).map_err(failed)?);
            let knows = templates.len();
            let engine = if is_evaluated { Engine::Evaluator(program) } else { Engine::native(&program)? };
            Ok(CacheProgram { engine, knows })
        };
        if self.how == FlowCache::Eager || self.is_evaluated {
            self.take(make());
            return;
        }
        self.making = aside("flow cache", make);
    }

    fn take(&mut self, made: Result<CacheProgram, CodegenError>) {
        match made {
            // A program for entries of another size does not fit the table.
            Ok(front) if usize::from(front.engine.program().tables[0].record_bytes) == self.entry_bytes => {
                if self.entries.is_none() {
                    self.entries = Entries::new(self.entry_bytes).ok();
                }
                self.program = Some(front);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!("no code for a flow cache: {error}");
                self.inputs.fill(Input::Failed);
            }
        }
    }
}

/// Sets the tables' cache validity and returns it.
fn borrow(whole: &Program, tables: &mut dyn Tables) -> CacheValidity {
    let numbers = 0..whole.tables.len();
    let offered =
        |tables: &mut dyn Tables, number| tables.table(number).and_then(|table| table.cache_validity());
    let ns = numbers.clone().filter_map(|number| Some(offered(tables, number)?.ns)).min().unwrap_or(u64::MAX);
    // A table may offer an unlimited validity. The limit removes the entries of ended flows.
    let validity = CacheValidity::new(ns.min(LONGEST_NS));
    for number in numbers {
        if let Some(table) = tables.table(number) {
            table.set_cache_validity(validity.end_ns);
        }
    }
    validity
}
