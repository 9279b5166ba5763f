//! The entries of a flow cache, and what they count.
//!
//! An entry counts the packets of its flow ([`synth::template::Tally`]). Merging adds these counts to the
//! records of the tables that the flow uses: from time to time, when a table asks, and when the entry ends.
//! A record that is gone is removed from its entries first, since its memory may be another record's by then.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::flow_set::FlowSet;
use super::users::{Ending, Users};
use ir::{Created, HeldRecord, Merge, Table, Tables};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use synth::template::{KEY_WORDS, Template, cache_entry};
use table::TableError;
use table::flow::{FlowConfig, FlowTable, RecordId};

/// The most flows with an entry.
const CAPACITY: u32 = 1 << 20;
/// An entry whose counts are this old is merged, in milliseconds.
const MERGED_EACH_MS: u32 = 1000;
/// An entry that no packet uses any more is removed after this time, and one that no packet ever used.
const IDLE_NS: u64 = 4_000_000_000;
const UNUSED_MS: u32 = 1000;
/// For so long it is known that an entry is over, while the table has room: a flow whose records others keep ending gets
/// none meanwhile.
const REMEMBERED_MS: u32 = 8000;
const MOST_REMEMBERED: usize = CAPACITY as usize / 4;
/// After this time it is decided whether packets use an entry.
const DECIDED_MS: u32 = 200;
/// Set in the number of an entry's template once that was decided.
const IS_DECIDED: u64 = 1 << 15;

const NS_PER_MS: u64 = 1_000_000;
/// How old the time of a flow's last packet may be in its entry, in nanoseconds.
pub(super) const GRAIN_NS: u64 = 10_000_000;

/// The templates of a cache, each with the input of its packets.
pub(super) type Templates = [(usize, Template)];

/// What entries are merged into.
pub(super) struct MergeInto<'a> {
    /// The templates of the entries.
    pub templates: &'a Templates,
    /// The tables of the region's elements.
    pub tables: &'a mut dyn Tables,
    /// The present time, in nanoseconds.
    pub now_ns: u64,
}

/// The table of the entries.
#[derive(Debug)]
pub(super) struct Entries {
    flows: FlowTable<KEY_WORDS>,
    /// Whether packets behind one without an entry find none either: it may end records that they use. And whether there
    /// was one in this burst.
    in_order: bool,
    has_missed: Cell<bool>,
    /// Flows without an entry that end no records.
    harmless: FlowSet,
}

impl Entries {
    /// Begins a burst; see [`Entries::in_order`].
    pub fn begin(&mut self, in_order: bool) {
        (self.in_order, self.has_missed) = (in_order, Cell::new(false));
    }

    /// What a packet finds behind others, instead of what its key leads to.
    fn behind_others(&self, found: u64, key: &[u64]) -> u64 {
        if !self.in_order {
            return found;
        }
        let is_over = || found == 0 || self.get(found, cache_entry::TEMPLATE, 2) == cache_entry::OVER;
        let may_end_others = || key.try_into().map_or(true, |key| !self.harmless.has(key));
        let has_missed = self.has_missed.get() || is_over() && may_end_others();
        self.has_missed.set(has_missed);
        if has_missed { 0 } else { found }
    }

    pub fn new(entry_bytes: usize) -> Result<Entries, TableError> {
        let seed = RandomState::new().hash_one(entry_bytes);
        let config = FlowConfig {
            record_bytes: entry_bytes,
            capacity: CAPACITY,
            max_keys: CAPACITY,
            seed,
            ..FlowConfig::default()
        };
        Ok(Entries {
            flows: FlowTable::new(&config)?,
            in_order: false,
            has_missed: Cell::new(false),
            harmless: FlowSet::new(),
        })
    }

    fn exists(&self, at: u64) -> bool {
        self.flows.record_at(at).is_some()
    }

    /// Whether packets may use the entry at this address.
    pub fn is_live(&self, at: u64) -> bool {
        self.exists(at) && self.get(at, cache_entry::TEMPLATE, 2) != cache_entry::OVER
    }

    /// Whether packets have used the entry at this address, or it is so old that it was decided whether they do.
    fn was_used(&self, at: u64) -> bool {
        let is_decided = self.get(at, cache_entry::MERGED_AS, 2) & IS_DECIDED != 0;
        is_decided || self.get(at, cache_entry::LAST_NS, 8) > 0
    }

    fn get(&self, at: u64, offset: u16, bytes: u8) -> u64 {
        self.flows.load(at, usize::from(offset), bytes)
    }

    fn set(&mut self, at: u64, offset: u16, bytes: u8, value: u64) {
        self.flows.store(at, usize::from(offset), bytes, value);
    }

    /// The addresses of the records that an entry uses, by their offsets in it.
    fn lines(template: &Template) -> impl Iterator<Item = u16> {
        (0..template.lines.len()).map(|line| template.line_at(line) as u16)
    }

    /// The template of an entry, also of one that is over.
    fn template<'a>(&self, at: u64, templates: &'a Templates) -> Option<&'a Template> {
        let number = self.get(at, cache_entry::MERGED_AS, 2) & !IS_DECIDED;
        templates.get(number as usize).map(|(_, template)| template)
    }

    /// The address of the entry with a number, if it uses a record.
    fn uses(&self, number: u32, line: u64, templates: &Templates) -> Option<u64> {
        let at = self.flows.record_ptr(self.flows.record_numbered(number)?) as u64;
        let template = self.template(at, templates)?;
        Entries::lines(template).any(|place| self.get(at, place, 8) == line).then_some(at)
    }

    /// Adds an entry's counts to its records, if it counted since the last time.
    fn merge(&mut self, at: u64, into: &mut MergeInto<'_>) {
        let merged_ms = self.get(at, cache_entry::MERGED_MS, 4) as u32;
        let last_ns = self.get(at, cache_entry::LAST_NS, 8);
        // An entry that counts notes the time, up to a grain late.
        let noted_ms = in_ms(last_ns.saturating_add(GRAIN_NS)).wrapping_add(1);
        if last_ns == 0 || (noted_ms.wrapping_sub(merged_ms) as i32) < 0 {
            return;
        }
        let Some(template) = self.template(at, into.templates) else { return };
        // An element that runs just now has its table with it: a later merging has all.
        if template.lines.iter().any(|table| into.tables.table(usize::from(*table)).is_none()) {
            return;
        }
        self.set(at, cache_entry::MERGED_MS, 4, u64::from(in_ms(into.now_ns)));
        for merging in &template.merges {
            let line = self.get(at, template.line_at(merging.line.into()) as u16, 8);
            let part = self.get(at, merging.tally.0, merging.tally.1);
            let table = template.lines.get(usize::from(merging.line));
            let Some(table) = table.and_then(|table| into.tables.table(usize::from(*table))) else {
                continue;
            };
            if line == 0 || part == 0 {
                continue;
            }
            merging.merge(part, table, line);
        }
        // Sums are counted once; times and bits may be merged again.
        for merging in template.merges.iter().filter(|merging| matches!(merging.how, Merge::SumTo(_))) {
            self.set(at, merging.tally.0, merging.tally.1, 0);
        }
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
        Some(self.flows.record_bytes())
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let found = self.behind_others(self.flows.find_address(key.try_into().ok()?), key);
        (found != 0).then_some(found)
    }

    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        self.flows.lookup_batch_strided(keys, stride, list, records);
        if self.in_order {
            for at in list.iter().map(|index| usize::from(*index)) {
                let key = &keys[at * stride..at * stride + KEY_WORDS];
                records[at] = self.behind_others(records[at], key);
            }
        }
    }

    fn create(&mut self, key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        self.lookup(key).map_or(Created::Refused, Created::Record)
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.flows.load(record, usize::from(offset), bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.flows.store(record, usize::from(offset), bytes, value);
    }
}

impl Tables for Entries {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(self)
    }
}

/// Milliseconds, modulo 2^32.
fn in_ms(ns: u64) -> u32 {
    (ns / NS_PER_MS) as u32
}

/// Entries, and which of them use each record.
#[derive(Debug)]
pub(super) struct Generation {
    /// The table that the templates' program looks flows up in.
    pub entries: Entries,
    users: Users,
}

/// Of how many entries it was decided that packets use them, and that none does.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Use {
    pub used: u32,
    pub unused: u32,
}

impl Generation {
    pub fn new(entry_bytes: usize) -> Result<Generation, TableError> {
        Ok(Generation { entries: Entries::new(entry_bytes)?, users: Users::default() })
    }

    /// Number of entries, also of those that are over.
    pub fn len(&self) -> usize {
        self.entries.flows.len()
    }

    /// The entries that have to be looked at in each of so many steps, to have seen all behind the last.
    pub fn share(&self, steps: usize) -> usize {
        self.entries.flows.touched() / steps
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.flows.clear();
        self.entries.harmless.clear();
    }

    /// Remembers that packets of a flow, which has no entry, end no records.
    pub fn note_harmless(&mut self, key: &[u64; KEY_WORDS]) {
        self.entries.harmless.add(key);
    }

    /// Makes an entry for a flow; false if there is no room. `lines` are the records that it uses, and
    /// `numbers` its parameters.
    pub fn insert(
        &mut self,
        key: &[u64; KEY_WORDS],
        number: usize,
        (lines, numbers): (&[u64], &[u64]),
        into: &mut MergeInto<'_>,
    ) -> bool {
        let Some((_, template)) = into.templates.get(number) else { return false };
        let Ok((record, is_new)) = self.entries.flows.find_or_insert(key) else { return false };
        let at = self.entries.flows.record_ptr(record) as u64;
        if !is_new {
            self.entries.merge(at, into);
            (0..self.entries.flows.record_bytes())
                .step_by(8)
                .for_each(|word| self.entries.flows.store(at, word, 8, 0));
        }
        let entries = &mut self.entries;
        entries.set(at, cache_entry::TEMPLATE, 2, cache_entry::OVER);
        entries.set(at, cache_entry::MERGED_AS, 2, number as u64);
        entries.set(at, cache_entry::MERGED_MS, 4, u64::from(in_ms(into.now_ns)));
        for ((offset, bytes), value) in template.params.iter().zip(numbers) {
            entries.set(at, *offset, *bytes, *value);
        }
        let mut is_noted = true;
        for ((place, table), line) in Entries::lines(template).zip(&template.lines).zip(lines) {
            entries.set(at, place, 8, *line);
            let Some(table) = into.tables.table(usize::from(*table)) else { continue };
            let mut holder = table.holder(*line);
            if entries.uses(holder.entry, *line, into.templates).is_none_or(|other| other == at) {
                holder.entry = record.number();
            } else {
                holder.is_shared = true;
                is_noted &= self.users.add(*line, at, |at| entries.exists(at));
            }
            table.hold(*line, holder);
        }
        if is_noted {
            entries.set(at, cache_entry::TEMPLATE, 2, number as u64);
        }
        is_noted
    }

    /// Passes the entries that use a record to `each`, as many as are known; false if there are more.
    fn each_user(
        &mut self,
        held: HeldRecord,
        templates: &Templates,
        each: &mut dyn FnMut(&mut Entries, u64),
    ) -> bool {
        let Generation { entries, users } = self;
        if let Some(at) = entries.uses(held.holder.entry, held.record, templates) {
            each(entries, at);
        }
        !held.holder.is_shared
            || users.each(held.record, |at| {
                if entries.exists(at) {
                    each(entries, at);
                }
            }) == Ending::Answer
    }

    /// Ends the entries that use a record which is gone, and returns how many, and how many of these no packet had
    /// used; `None` if there are more of them than the index knows.
    pub fn end_users(&mut self, gone: HeldRecord, templates: &Templates) -> Option<(u64, u32)> {
        let (mut ended, mut unused) = (0, 0);
        let are_all = self.each_user(gone, templates, &mut |entries, at| {
            let is_live = entries.is_live(at);
            ended += u64::from(is_live);
            unused += u32::from(is_live && !entries.was_used(at));
            entries.set(at, cache_entry::TEMPLATE, 2, cache_entry::OVER);
            let Some(template) = entries.template(at, templates) else { return };
            for place in Entries::lines(template) {
                if entries.get(at, place, 8) == gone.record {
                    entries.set(at, place, 8, 0);
                }
            }
        });
        if gone.holder.is_shared {
            self.users.forget(gone.record);
        }
        are_all.then_some((ended, unused))
    }

    /// Merges the entries that use a record; whether there are any.
    pub fn merge_users(&mut self, asked: HeldRecord, into: &mut MergeInto<'_>) -> bool {
        let mut has_some = false;
        let are_all = self.each_user(asked, into.templates, &mut |entries, at| {
            has_some = true;
            entries.merge(at, into);
        });
        has_some || !are_all
    }

    /// Looks at some entries: merges what was counted for a while, and removes those that are over or idle.
    pub fn walk(&mut self, mut budget: usize, into: &mut MergeInto<'_>) -> Use {
        let mut found = Use::default();
        let now_ms = in_ms(into.now_ns);
        let remembered_ms = if self.len() < MOST_REMEMBERED { REMEMBERED_MS } else { 0 };
        while let Some(record) = self.entries.flows.step(&mut budget) {
            let entries = &mut self.entries;
            let at = entries.flows.record_ptr(record) as u64;
            let last_ns = entries.get(at, cache_entry::LAST_NS, 8);
            let age_ms = now_ms.wrapping_sub(entries.get(at, cache_entry::MERGED_MS, 4) as u32);
            let kind = entries.get(at, cache_entry::MERGED_AS, 2);
            let is_over = entries.get(at, cache_entry::TEMPLATE, 2) == cache_entry::OVER;
            let is_remembered = is_over && age_ms < remembered_ms;
            if kind & IS_DECIDED == 0 && (last_ns > 0 || age_ms >= DECIDED_MS) {
                found.used += u32::from(last_ns > 0);
                found.unused += u32::from(last_ns == 0);
                entries.set(at, cache_entry::MERGED_AS, 2, kind | IS_DECIDED);
            }
            if last_ns == 0 {
                if !is_remembered && (is_over || age_ms >= UNUSED_MS) {
                    entries.flows.remove(record);
                }
                continue;
            }
            let is_idle = last_ns.saturating_add(IDLE_NS) <= into.now_ns;
            if is_over || is_idle || age_ms >= MERGED_EACH_MS {
                entries.merge(at, into);
            }
            if !is_remembered && (is_over || is_idle) {
                entries.flows.remove(record);
            }
        }
        self.entries.flows.maintain();
        let entries = &self.entries;
        self.users.sweep(|at| entries.exists(at));
        found
    }

    /// Merges and removes some entries of a generation that packets do not use any more; true when none is
    /// left.
    pub fn retire(&mut self, mut budget: usize, into: &mut MergeInto<'_>) -> bool {
        while let Some(record) = self.entries.flows.step(&mut budget) {
            let at = self.entries.flows.record_ptr(record) as u64;
            self.entries.merge(at, into);
            self.entries.flows.remove(record);
        }
        self.entries.flows.is_empty()
    }

    /// Merges and removes the entry that a record notes.
    pub fn release(&mut self, line: u64, table: usize, into: &mut MergeInto<'_>) {
        let holder = into.tables.table(table).map(|table| table.holder(line)).unwrap_or_default();
        if let Some(at) = self.entries.uses(holder.entry, line, into.templates)
            && let Some(record) = self.entries.flows.record_at(at)
        {
            self.entries.merge(at, into);
            self.entries.flows.remove(record);
        }
    }

    /// Whether packets may use the entry of the flow with this key, if it has one.
    pub fn find(&self, key: &[u64; KEY_WORDS]) -> Option<bool> {
        let at = self.entries.flows.find_address(key);
        (at != 0).then(|| self.entries.is_live(at))
    }

    /// Merges up to `most` entries.
    pub fn merge_all(&mut self, most: usize, into: &mut MergeInto<'_>) {
        let records: Vec<RecordId> = self.entries.flows.iter().take(most).collect();
        for record in records {
            let at = self.entries.flows.record_ptr(record) as u64;
            self.entries.merge(at, into);
        }
    }
}
