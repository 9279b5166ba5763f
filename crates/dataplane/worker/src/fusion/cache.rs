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

use super::admission::Admission;
use super::compiled::CompiledRegion;
use super::cpu::{aside, compiled};
use super::entries::{GRAIN_NS, Generation, MergeInto};
use super::fast_work::FastWork;
use super::first_packet::FirstPacket;
use super::makers::Makers;
use codegen::{CodegenError, Engine, SlotBuffer};
use ir::eval::{Buffer, EvalState, Exit};
use ir::{HeldRecord, Merge, Table, Tables, Verified};
use serde::{Deserialize, Serialize};
use shm::Packet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use synth::optimize::{Known, finished};
use synth::template::{KEY_WORDS, Layout, Recorder, Recording, Refusal, Saved, Template, program};

/// For which flows a fused region has entries.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowCache {
    /// Where an entry saves more work than it costs.
    #[default]
    Auto,
    /// The same, for flows of which a table has state: the entry is the chain's record of that state. Packets of
    /// other flows run through the whole program.
    Off,
    /// For none: every packet runs through the whole program. For tests.
    Never,
    /// For every flow from its first packet; the worker waits until the program is compiled. For tests.
    Eager,
}

impl FlowCache {
    /// Whether entries that save so much are worth their lookup, beside the fast path that packets take otherwise.
    pub fn is_worth(self, saved: &Saved, fast: Option<&FastWork>) -> bool {
        let saved = fast.map_or(*saved, |fast| fast.beside(saved));
        match self {
            FlowCache::Auto => {
                saved.states >= SEVERAL || 4 * saved.lookups + saved.prefixes + saved.decisions / 8 >= WORTH
            }
            FlowCache::Off => saved.states > 0 && FlowCache::Auto.is_worth(&saved, None),
            FlowCache::Eager => true,
            FlowCache::Never => false,
        }
    }
}

/// The most templates.
const MOST_TEMPLATES: usize = 64;
/// The time in each millisecond for recording packets: while recording yields entries, and for trying whether
/// it does.
const LEARNING: Duration = Duration::from_micros(400);
const TRYING: Duration = Duration::from_micros(100);
/// The packets that each attempt looks at: more than there is time to record. Those without a key, and those of flows
/// that have entries, are not recorded, so that no time is counted for them.
const LOOKS: u32 = 256;
/// The most milliseconds between two attempts, while recording yields no entries.
const SLOWEST: u32 = 64;
/// Entries that are looked at in each millisecond: all of them within so many, or a million in a second.
const LOOKED_AT: (usize, usize) = (16, 1024);
const ROUND_MS: usize = 250;
/// The work that a template must save at least, in lookups in a small prefix table.
const WORTH: usize = 6;
/// The tables with state that a template must replace at least, where nothing else counts.
const SEVERAL: usize = 2;

/// The most entries that are removed, or merged, at once.
const FEW: usize = 1024;
const MANY: usize = 1 << 16;

/// The most first packets of flows that are kept from a burst.
const MOST_FIRST: usize = 64;
/// So many entries tell whether flows use what their first packet made.
const ENOUGH: u32 = 64;
/// Milliseconds without entries for first packets, after most were not used: at first, and at most.
const PAUSE: (u32, u32) = (2000, 64_000);

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
    /// Packets that left the program for an element's own code, or by an output that few packets take: the
    /// next elements took them one by one. With a flow cache or without.
    pub aside: u64,
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
        self.aside += other.aside;
    }
}

/// Whether flows get an entry behind their first packet.
#[derive(Clone, Copy, Default, Debug)]
struct FirstEntries {
    /// What became of them since the last decision.
    used: u32,
    unused: u32,
    /// Milliseconds without them: those left, and the last pause.
    left_ms: u32,
    pause_ms: u32,
    /// Whether most of them were used when it was last decided.
    are_used: bool,
    /// The time for making them in this millisecond.
    left: Duration,
}

impl FirstEntries {
    /// Notes what became of entries in a millisecond. If most of them were not used, there are none for a
    /// while, and each time for twice as long.
    fn tick(&mut self, used: u32, unused: u32) {
        self.left = if self.are_used { LEARNING } else { TRYING };
        if self.left_ms > 0 {
            // These are entries from before, or of flows that came back.
            self.left_ms -= 1;
            return;
        }
        self.used += used;
        self.unused += unused;
        if self.used + self.unused < ENOUGH {
            return;
        }
        self.are_used = self.used >= self.unused;
        if !self.are_used {
            self.pause_ms = (self.pause_ms * 2).clamp(PAUSE.0, PAUSE.1);
            self.left_ms = self.pause_ms;
        } else {
            self.pause_ms = 0;
        }
        (self.used, self.unused) = (0, 0);
    }
}

/// The flow cache of a fused region.
pub struct Cache {
    how: FlowCache,
    is_evaluated: bool,
    whole: Arc<Verified>,
    /// The tables in which the program makes records.
    pub(crate) makers: Makers,
    /// The work of the fast paths of its inputs, and whether there are unions for them.
    fast: Vec<Option<FastWork>>,
    pub(super) has_unions: bool,
    follower: Recorder,
    inputs: Vec<Input>,
    /// For each input, whether several tables have state of some flow: its flows get their entry behind their
    /// first packet, and others once they go on.
    have_records: Vec<bool>,
    templates: Vec<(usize, Template)>,
    program: Option<CacheProgram>,
    making: Option<JoinHandle<Result<CacheProgram, CodegenError>>>,
    entries: Option<Generation>,
    /// Entries that were all invalidated at once, until they are merged.
    retired: Option<Generation>,
    /// Records that are gone, or that are asked for; kept for its allocation.
    noted: Vec<HeldRecord>,
    entry_bytes: usize,
    /// What tables counted: changes that invalidate all entries, and lists of records that are gone which
    /// they lost.
    changes: u64,
    lost_lists: u64,
    /// First packets of flows that are about to run through the whole program.
    first: Vec<FirstPacket>,
    first_entries: FirstEntries,
    /// The time for recording until the next attempt.
    left: Duration,
    /// The time until then for flows whose entry would not be worth its lookup.
    left_for_others: Duration,
    /// The packets that are looked at until then.
    looks_left: u32,
    /// The templates and entries that were added since the last attempt began, and whether packets were recorded.
    learnt: u32,
    has_followed: bool,
    admission: Admission,
    /// Milliseconds between two attempts, and milliseconds since the last.
    pace: u32,
    waited: u32,
    counts: CacheCounts,
}

impl Cache {
    /// An empty cache for a region's program.
    pub(crate) fn new(how: FlowCache, is_evaluated: bool, made: &CompiledRegion) -> Cache {
        let whole = Arc::clone(&made.recorded);
        Cache {
            how,
            is_evaluated,
            inputs: vec![Input::New; whole.entries.len()],
            have_records: vec![how == FlowCache::Eager; whole.entries.len()],
            follower: Recorder::new(&whole),
            makers: Makers::of(&whole),
            whole,
            fast: made.fast_work.clone(),
            has_unions: true,
            templates: vec![],
            program: None,
            making: None,
            entries: None,
            retired: None,
            noted: vec![],
            entry_bytes: 64,
            changes: 0,
            lost_lists: 0,
            first: Vec::with_capacity(MOST_FIRST),
            first_entries: FirstEntries::default(),
            left: TRYING,
            left_for_others: TRYING,
            looks_left: LOOKS,
            has_followed: false,
            learnt: 0,
            admission: Admission::new(),
            pace: 1,
            waited: 0,
            counts: CacheCounts::default(),
        }
    }

    /// Whether a program may have flows with entries.
    pub(crate) fn can_help(how: FlowCache, whole: &Verified) -> bool {
        match how {
            FlowCache::Never => false,
            FlowCache::Off => Makers::are_in(whole),
            FlowCache::Auto | FlowCache::Eager => true,
        }
    }

    /// How many of these packets come before the first one whose flow has no entry.
    pub(crate) fn knows_first(&self, input: usize, packets: &[Packet], list: &[u16]) -> usize {
        let (Some(Input::Cached(layout)), Some(entries)) = (self.inputs.get(input), &self.entries) else {
            return 0;
        };
        let key = |packet: &Packet| layout.read(packet, &SlotBuffer(*packet), input);
        let is_live = |index: &&u16| {
            key(&packets[usize::from(**index)]).is_some_and(|key| entries.find(&key) == Some(true))
        };
        if self.is_small() { list.iter().take_while(is_live).count() } else { 0 }
    }

    /// Whether merging all entries takes no time worth mentioning.
    pub(crate) fn is_small(&self) -> bool {
        [&self.entries, &self.retired].into_iter().flatten().all(|it| it.len() <= FEW)
    }

    /// Merges all that entries counted, and tells the tables that nothing more is counted.
    pub(crate) fn begin_rest(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        self.merge(tables, now_ns);
        let is_merged = [&self.entries, &self.retired].into_iter().flatten().all(|it| it.len() <= MANY);
        self.makers.tell(tables, is_merged);
    }

    /// Whether so many packets of an input use the cache. Else they run through the whole program, and are counted here:
    /// packets without entries, between two attempts at recording, must not cost more than without a cache.
    #[inline]
    pub(crate) fn takes(&mut self, input: usize, packets: usize) -> bool {
        if self.inputs.get(input).is_none_or(|input| *input == Input::Failed) {
            return false;
        }
        let has_entries = self.entries.is_some() || self.retired.is_some();
        let passes_by = has_entries && self.how != FlowCache::Eager && self.admission.passes_by(packets);
        let takes = !passes_by && (has_entries || self.is_recording());
        if !takes {
            self.count(0, packets);
        }
        takes
    }

    /// Whether this attempt at recording goes on.
    fn is_recording(&self) -> bool {
        !self.left.is_zero() && !self.left_for_others.is_zero() && self.looks_left > 0
    }

    /// The cache's statistics.
    pub(crate) fn counts(&self) -> CacheCounts {
        let flows = self.entries.as_ref().map_or(0, |entries| entries.len() as u64);
        CacheCounts { flows, templates: self.templates.len() as u64, ..self.counts }
    }

    /// Invalidates the entries that use a record which a table removed or changed, or all entries if the
    /// table does not report the record. Comes before every use and every merging of entries.
    pub(crate) fn heed(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        if self.entries.is_none() && self.retired.is_none() {
            return;
        }
        let (mut changes, mut lost_lists, mut is_complete) = (0u64, 0u64, true);
        for number in 0..self.whole.tables.len() {
            let Some(table) = tables.table(number) else {
                // The element's slow path runs, and its packets come here.
                is_complete = false;
                continue;
            };
            let Some(validity) = table.cache_validity() else { continue };
            let count = if validity.gone.is_some() { &mut lost_lists } else { &mut changes };
            *count = count.wrapping_add(validity.changes);
            if validity.gone.is_some_and(|gone| gone > 0) {
                table.take_gone(&mut self.noted);
            }
        }
        let (mut is_cleared, mut is_lost, mut unused) = (false, false, 0);
        if is_complete {
            is_cleared = changes != std::mem::replace(&mut self.changes, changes);
            is_lost = lost_lists != std::mem::replace(&mut self.lost_lists, lost_lists);
        }
        for record in self.noted.drain(..) {
            for generation in [&mut self.entries, &mut self.retired].into_iter().flatten() {
                match generation.end_users(record, &self.templates) {
                    Some((ended, without_use)) => {
                        self.counts.ended += ended;
                        unused += without_use;
                    }
                    None => is_lost = true,
                }
            }
        }
        self.admission.note_entries(0, unused);
        if is_lost {
            // Entries that nobody knows may use the record, and must not be merged into it.
            self.counts.cleared += 1;
            drop_aside(self.retired.take());
            drop_aside(std::mem::replace(&mut self.entries, Generation::new(self.entry_bytes).ok()));
        }
        if is_cleared {
            self.clear(tables, now_ns);
        }
    }

    /// Answers the tables that ask for the counts of entries.
    pub(crate) fn answer(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        if self.entries.is_none() && self.retired.is_none() {
            return;
        }
        self.heed(tables, now_ns);
        for number in 0..self.whole.tables.len() {
            let Some(table) = tables.table(number) else { continue };
            table.take_asked(&mut self.noted);
            if self.noted.is_empty() {
                continue;
            }
            let asked = std::mem::take(&mut self.noted);
            // All lines of a mapping are merged before it is decided upon.
            let into = &mut MergeInto { templates: &self.templates, tables, now_ns };
            let mut merge = |generation: &mut Option<Generation>, record| {
                generation.as_mut().is_some_and(|it| it.merge_users(record, into))
            };
            let is_held: Vec<bool> = asked
                .iter()
                .map(|record| merge(&mut self.retired, *record) | merge(&mut self.entries, *record))
                .collect();
            if let Some(table) = tables.table(number) {
                asked.iter().zip(is_held).for_each(|(record, is_held)| table.settle(record.record, is_held));
            }
            self.noted = asked;
            self.noted.clear();
        }
    }

    /// Merges what entries counted: before somebody reads the tables, or the cache ends. With more flows than
    /// [`MANY`], what the others counted stays in them.
    pub(crate) fn merge(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        self.heed(tables, now_ns);
        let into = &mut MergeInto { templates: &self.templates, tables, now_ns };
        for generation in [&mut self.retired, &mut self.entries].into_iter().flatten() {
            generation.merge_all(MANY, into);
        }
    }

    /// Ends the cache, on a thread outside the packet path.
    pub(crate) fn end(mut self) {
        drop_aside(self.retired.take());
        drop_aside(self.entries.take());
    }

    /// Invalidates all entries.
    fn clear(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        let Some(entries) = self.entries.as_mut().filter(|it| it.len() > 0) else { return };
        self.counts.cleared += 1;
        if entries.len() <= FEW {
            entries.merge_all(FEW, &mut MergeInto { templates: &self.templates, tables, now_ns });
            return entries.clear();
        }
        let old = self.entries.take();
        self.entries = Generation::new(self.entry_bytes).ok();
        // Merging a large table takes longer than packets may wait. If two are cleared in a short time, the
        // counts of the first are lost.
        drop_aside(std::mem::replace(&mut self.retired, old));
    }

    /// The templates' program and its table for a burst at an input; `None` until both exist.
    pub(crate) fn program(
        &mut self,
        tables: &mut dyn Tables,
        input: usize,
    ) -> Option<(&Engine, &mut dyn Tables)> {
        let front = self.program.as_ref()?;
        let entries = &mut self.entries.as_mut()?.entries;
        entries.begin(self.makers.may_end_others(tables, input));
        Some((&front.engine, entries))
    }

    /// Counts the packets that ran through the templates' program only, and those that needed the whole
    /// program.
    pub(crate) fn count(&mut self, hits: usize, whole: usize) {
        self.counts.hits += hits as u64;
        self.counts.whole += whole as u64;
    }

    /// Records some packets that are about to enter the whole program, and keeps first packets of flows for
    /// [`Cache::learn_first`].
    pub(crate) fn learn(
        &mut self,
        input: usize,
        packets: &[Packet],
        list: &[u16],
        state: &mut EvalState<'_>,
    ) {
        self.first.clear();
        for &index in list {
            if !self.is_recording() {
                return;
            }
            if self.how != FlowCache::Eager {
                self.looks_left -= 1;
            }
            let packet = &packets[usize::from(index)];
            let refusal = self.record(input, packet, &SlotBuffer(*packet), state);
            let is_first = refusal == Some(Refusal::New) && self.have_records[input];
            if is_first && self.first_entries.left_ms == 0 && self.first.len() < MOST_FIRST {
                self.first.extend(FirstPacket::of(packet));
            }
        }
    }

    /// Records the first packets of flows, as they were, now that the whole program has made their records.
    pub(crate) fn learn_first(&mut self, input: usize, state: &mut EvalState<'_>) {
        let mut first = std::mem::take(&mut self.first);
        for one in first.drain(..) {
            let left = self.left.min(self.first_entries.left);
            if left.is_zero() && self.how != FlowCache::Eager {
                break;
            }
            let before = self.left;
            self.record(input, &one.packet, &one.bytes, state);
            let taken = before.saturating_sub(self.left);
            self.first_entries.left = self.first_entries.left.saturating_sub(taken);
        }
        self.first = first;
    }

    /// Records a packet, unless its flow has an entry. Returns why there is no template.
    fn record<B: Buffer + ?Sized>(
        &mut self,
        input: usize,
        packet: &Packet,
        buffer: &B,
        state: &mut EvalState<'_>,
    ) -> Option<Refusal> {
        let layout = match self.inputs.get(input) {
            Some(Input::Cached(layout)) => *layout,
            Some(Input::New) => Layout::of(packet, buffer)?,
            _ => return None,
        };
        let key = layout.read(packet, buffer, input)?;
        let known = self.entries.as_ref().and_then(|entries| entries.find(&key));
        // One that is over shows that others end the flow's records: a new one would not last.
        let has_one = known.is_some_and(|is_live| is_live || self.how != FlowCache::Eager);
        if has_one || self.admission.is_refused(&key) {
            return None;
        }
        self.has_followed = true;
        let start = Instant::now();
        let mut is_worth = true;
        let refusal = match self.follower.record(&self.whole, input, layout, packet, buffer, state) {
            Ok(recorded) => {
                is_worth = self.insert(input, layout, &key, recorded, state);
                None
            }
            Err(refusal) => Some(refusal),
        };
        if refusal != Some(Refusal::New)
            && !self.makers.may_end(self.follower.asked())
            && let Some(entries) = &mut self.entries
        {
            entries.note_harmless(&key);
        }
        if self.how != FlowCache::Eager {
            let taken = start.elapsed();
            self.left = self.left.saturating_sub(taken);
            if !is_worth {
                self.admission.refuse(&key);
                self.left_for_others = self.left_for_others.saturating_sub(taken);
            }
        }
        refusal
    }

    /// Inserts an entry for a flow if the compiled program has its template; else adds the template. Returns whether an
    /// entry is worth its lookup.
    fn insert(
        &mut self,
        input: usize,
        layout: Layout,
        key: &[u64; KEY_WORDS],
        recorded: Recording,
        state: &mut EvalState<'_>,
    ) -> bool {
        let Recording { template, numbers, lines, saved } = recorded;
        let takes = |fast: &&FastWork| matches!(template.exit, Exit::Emit(port) if fast.is_to(port));
        let fast = self.fast.get(input).and_then(Option::as_ref).filter(takes).filter(|_| self.has_unions);
        let may_join = self.how == FlowCache::Auto && fast.is_none() && saved.states > 0;
        if !(self.how.is_worth(&saved, fast) || may_join && self.admission.admits_all()) {
            return false;
        }
        // A flow that one table knows has to show that it goes on: an entry saves little, and costs as much.
        let has_to_go_on = self.how != FlowCache::Eager && saved.states < SEVERAL;
        if has_to_go_on && is_young(&template, &lines, state.tables) {
            return true;
        }
        self.inputs[input] = Input::Cached(layout);
        self.have_records[input] |= saved.states >= SEVERAL;
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
                    self.clear(state.tables, state.now_ns);
                    (self.entries, self.program) = (None, None);
                }
                if self.how == FlowCache::Eager {
                    self.follow_templates();
                }
                next
            }
            None => return true,
        };
        if self.program.as_ref().is_none_or(|front| number >= front.knows) {
            return true;
        }
        let Some(entries) = &mut self.entries else { return true };
        let into = &mut MergeInto { templates: &self.templates, tables: state.tables, now_ns: state.now_ns };
        if let Some(retired) = &mut self.retired {
            // Their records note the new entry in its place.
            for (line, table) in lines.iter().zip(&self.templates[number].1.lines) {
                retired.release(*line, (*table).into(), into);
            }
        }
        // If the table is full, the flow stays in the whole program.
        let is_new = entries.insert(key, number, (&lines, &numbers), into);
        self.learnt += u32::from(is_new);
        self.admission.note_entries(u32::from(is_new), 0);
        true
    }

    /// Housekeeping, once in a millisecond.
    pub(crate) fn tick(&mut self, tables: &mut dyn Tables, now_ns: u64) {
        self.makers.tick();
        self.waited += 1;
        // What does not last is nothing gained.
        let has_learnt = self.learnt > 0 && self.admission.entries_last();
        self.admission.tick(self.counts.hits, self.counts.whole, has_learnt);
        if self.waited >= self.pace {
            let has_progress = self.admission.take_progress();
            (self.pace, self.left) = match has_learnt {
                true => (1, LEARNING),
                false if has_progress => (1, TRYING),
                false if self.has_followed => ((self.pace * 2).min(SLOWEST), TRYING),
                false => (self.pace, TRYING),
            };
            (self.left_for_others, self.looks_left) = (TRYING, LOOKS);
            (self.has_followed, self.learnt, self.waited) = (false, 0, 0);
        }
        self.follow_templates();
        self.heed(tables, now_ns);
        let into = &mut MergeInto { templates: &self.templates, tables, now_ns };
        if let Some(entries) = &mut self.entries {
            let found = entries.walk(entries.share(ROUND_MS).clamp(LOOKED_AT.0, LOOKED_AT.1), into);
            self.first_entries.tick(found.used, found.unused);
        }
        drop_aside(self.retired.take_if(|old| old.retire(LOOKED_AT.1, into)));
    }

    /// Starts compiling a program with all templates, if templates were added.
    fn follow_templates(&mut self) {
        if let Some(made) = compiled(&mut self.making) {
            self.take(made);
        }
        let known = self.program.as_ref().map_or(0, |front| front.knows);
        if known >= self.templates.len() || self.making.is_some() {
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
        let grain_ns = if self.how == FlowCache::Eager { 0 } else { GRAIN_NS };
        let make = move || {
            let failed = |error: ir::verify::VerifyError| CodegenError::Compile {
                program: "templates".into(),
                what: error.to_string(),
            };
            let plain = program(&whole, &layouts, &templates, entry_bytes, grain_ns).map_err(failed)?;
            let program = Arc::new(finished(&plain, &Known::default()).map_err(failed)?);
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
                    self.entries = Generation::new(self.entry_bytes).ok();
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

/// Whether a record still counts the first packets of its flow.
fn is_young(template: &Template, lines: &[u64], tables: &mut dyn Tables) -> bool {
    template.merges.iter().any(|merging| {
        let Merge::SumTo(most) = merging.how else { return false };
        let line = usize::from(merging.line);
        let (Some(table), Some(record)) = (template.lines.get(line), lines.get(line)) else { return false };
        let seen = |table: &mut dyn Table| table.record_load(*record, merging.offset, merging.bytes);
        tables.table(usize::from(*table)).is_some_and(|table| seen(table) < u64::from(most))
    })
}

/// Clearing a large table, or unmapping its memory, takes longer than packets may wait.
fn drop_aside(old: Option<Generation>) {
    match old {
        Some(small) if small.len() <= FEW => drop(small),
        Some(large) => drop(aside("flow cache", move || drop(large))),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::{PacketPool, PacketRegion, RegionOptions, SharedPool, write_frame};

    /// A packet that has no flow: its frame is not IPv4.
    fn without_flow() -> (Packet, PacketPool) {
        let region = PacketRegion::create(RegionOptions::slots(64)).expect("memory");
        let mut pool = PacketPool::Native(SharedPool::new(region).worker());
        (write_frame(&mut pool, &[0; 60]).expect("a slot"), pool)
    }

    #[test]
    fn packets_without_flows_are_looked_at_seldom() {
        let text = "program P outputs 1\nentries b0\nb0:\n  emit 0\n";
        let program = Verified::new(ir::text::parse(text).expect("text")).expect("a program");
        let mut cache = Cache::new(FlowCache::Auto, true, &CompiledRegion::nothing(&program));
        let (packet, _pool) = without_flow();
        let packets = [packet; 32];
        let list: Vec<u16> = (0..32).collect();
        let bursts = |cache: &mut Cache| {
            let mut state = EvalState { cells: &mut [], tables: &mut (), now_ns: 0 };
            let takes = |_: &usize| {
                let takes = cache.takes(0, packets.len());
                if takes {
                    cache.learn(0, &packets, &list, &mut state);
                }
                takes
            };
            (0..100).filter(takes).count()
        };
        for _ in 0..2 {
            assert_eq!(bursts(&mut cache), LOOKS as usize / packets.len());
            cache.tick(&mut (), 0);
        }
        // Those that the cache took are counted by who passes them.
        assert_eq!(cache.counts().whole, 2 * (100 * 32 - u64::from(LOOKS)));
    }

    #[test]
    fn without_a_flow_cache_an_entry_needs_state_and_has_to_save_something() {
        let saved = |states, lookups| Saved { states, lookups, ..Saved::default() };
        // A list of rules; a translator; both; two translators.
        let all = [saved(0, 2), saved(1, 1), saved(1, 2), saved(2, 2)];
        let is_worth = |how: FlowCache| all.map(|saved| how.is_worth(&saved, None));
        assert_eq!(is_worth(FlowCache::Off), [false, false, true, true]);
        assert_eq!(is_worth(FlowCache::Auto), [true, false, true, true]);
        assert_eq!(is_worth(FlowCache::Never), [false; 4]);
    }
}
