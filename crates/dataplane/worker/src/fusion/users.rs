//! The reverse index of a flow cache: the entries that use a table record which several use.
//!
//! A table knows the entry that uses a record ([`ir::Holder`]). The index has only the records that further
//! entries use: a mapping of addresses is used by all flows of a host. A record with more entries than fit is
//! marked; its removal invalidates all entries. Every operation is short: the table grows by small steps, and
//! stale index records are removed a few at a time.

use std::hash::{BuildHasher, RandomState};
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// The most index records.
const CAPACITY: u32 = 1 << 22;
/// The most entries in an index record, and the most index records for a table record.
const MOST: usize = 7;
const MOST_PAGES: u64 = 64;
/// The offset of the entries in an index record. In front of them is, in a table record's first, the number
/// of its index records, or [`MARKED`].
const FIRST: usize = 8;
/// The number in front that says that there are more entries than fit.
const MARKED: u64 = u64::MAX;
/// Bytes of an index record.
const BYTES: usize = FIRST + 8 * MOST;
/// Index records that are checked in a millisecond.
const LOOKED_AT: usize = 256;

/// Entries by the records that they use. The key is the table record, and the number of the index record.
#[derive(Debug, Default)]
pub(super) struct Users(Option<FlowTable<2>>);

/// The entries that become invalid with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// The entries that were passed to the callback.
    Answer,
    /// All entries: the record has more of them than the index.
    All,
}

fn table() -> Result<FlowTable<2>, TableError> {
    FlowTable::new(&FlowConfig {
        record_bytes: BYTES,
        capacity: CAPACITY,
        max_keys: CAPACITY,
        seed: RandomState::new().hash_one(BYTES),
        ..FlowConfig::default()
    })
}

/// The addresses of a record's index records; none if it has none.
fn pages(notes: &FlowTable<2>, record: u64) -> impl Iterator<Item = u64> {
    let first = notes.find_address(&[record, 0]);
    let count = if first == 0 { 0 } else { notes.load(first, 0, 8) };
    let count = if count == MARKED { MOST_PAGES } else { count };
    (0..count).map(move |page| notes.find_address(&[record, page])).filter(|at| *at != 0)
}

/// The entries of an index record.
fn listed(notes: &FlowTable<2>, page: u64) -> impl Iterator<Item = u64> {
    (0..MOST).map(move |place| notes.load(page, FIRST + 8 * place, 8)).filter(|entry| *entry != 0)
}

impl Users {
    /// Records that an entry uses a table record; false when there is no room. `exists` returns whether an
    /// entry still exists.
    pub(super) fn add(&mut self, record: u64, entry: u64, exists: impl Fn(u64) -> bool) -> bool {
        if self.0.is_none() {
            self.0 = table().ok();
        }
        let Some(notes) = &mut self.0 else { return false };
        let mut free = None;
        for page in pages(notes, record) {
            for place in (0..MOST).map(|place| FIRST + 8 * place) {
                match notes.load(page, place, 8) {
                    known if known == entry => return true,
                    known if known == 0 || !exists(known) => free = free.or(Some((page, place))),
                    _ => {}
                }
            }
        }
        if let Some((page, place)) = free {
            notes.store(page, place, 8, entry);
            return true;
        }
        let first = notes.find_address(&[record, 0]);
        let count = if first == 0 { 0 } else { notes.load(first, 0, 8) };
        if count >= MOST_PAGES {
            notes.store(first, 0, 8, MARKED);
            return true;
        }
        let Ok((page, _)) = notes.find_or_insert(&[record, count]) else { return false };
        let page = notes.record_ptr(page) as u64;
        notes.store(page, FIRST, 8, entry);
        let first = if first == 0 { page } else { first };
        notes.store(first, 0, 8, count + 1);
        true
    }

    /// Passes the entries of a record to `each`, as many as the index knows.
    pub(super) fn each(&self, record: u64, each: impl FnMut(u64)) -> Ending {
        let Some(notes) = &self.0 else { return Ending::Answer };
        pages(notes, record).flat_map(|page| listed(notes, page)).for_each(each);
        let first = notes.find_address(&[record, 0]);
        let is_marked = first != 0 && notes.load(first, 0, 8) == MARKED;
        if is_marked { Ending::All } else { Ending::Answer }
    }

    /// Removes a record.
    pub(super) fn forget(&mut self, record: u64) {
        self.0.iter_mut().for_each(|notes| Self::remove(notes, record));
    }

    fn remove(notes: &mut FlowTable<2>, record: u64) {
        // The first says how many there are: it goes last.
        for page in (0..pages(notes, record).count() as u64).rev() {
            if let Some(page) = notes.find(&[record, page]) {
                notes.remove(page);
            }
        }
    }

    /// Removes some index records whose entries have all ended.
    pub(super) fn sweep(&mut self, exists: impl Fn(u64) -> bool) {
        let Some(notes) = &mut self.0 else { return };
        let mut budget = LOOKED_AT;
        while let Some(note) = notes.step(&mut budget) {
            // The whole list of a record goes at once.
            let Some(([record, 0], _)) = notes.keys_of(note).next() else { continue };
            let at = notes.record_ptr(note) as u64;
            // A marked record may have live entries that are not listed.
            let is_marked = notes.load(at, 0, 8) == MARKED;
            let is_used = pages(notes, record).any(|page| listed(notes, page).any(&exists));
            if !is_marked && !is_used {
                Self::remove(notes, record);
            }
        }
        notes.maintain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(users: &mut Users, record: u64) -> (Vec<u64>, Ending) {
        let mut all = vec![];
        let ending = users.each(record, |entry| all.push(entry));
        users.forget(record);
        (all, ending)
    }

    #[test]
    fn entries_end_with_the_records_that_they_hang_on() {
        let mut users = Users::default();
        for (record, entry) in [(64, 1000), (64, 2000), (128, 1000), (64, 1000)] {
            assert!(users.add(record, entry, |_| true));
        }
        assert_eq!(taken(&mut users, 64), (vec![1000, 2000], Ending::Answer));
        assert_eq!(taken(&mut users, 64), (vec![], Ending::Answer));
        assert_eq!(taken(&mut users, 128), (vec![1000], Ending::Answer));
    }

    #[test]
    fn more_than_there_is_room_for_end_everything() {
        let mut users = Users::default();
        for entry in 1..=MOST as u64 {
            users.add(64, entry, |_| true);
        }
        // One of them has ended, so its field is free.
        users.add(64, 100, |entry| entry != 3);
        assert_eq!(taken(&mut users, 64), (vec![1, 2, 100, 4, 5, 6, 7], Ending::Answer));
        let most = MOST as u64 * MOST_PAGES;
        for entry in 1..=most {
            users.add(64, entry, |_| true);
        }
        let mut seen = vec![];
        users.each(64, |entry| seen.push(entry));
        assert_eq!(seen, (1..=most).collect::<Vec<_>>());
        users.add(64, most + 1, |_| true);
        // The listed entries end; the next one may live on.
        for _ in 0..4 {
            users.sweep(|entry| entry == most + 1);
        }
        assert_eq!(taken(&mut users, 64), ((1..=most).collect(), Ending::All));
        assert_eq!(taken(&mut users, 64), (vec![], Ending::Answer));
    }

    #[test]
    fn notes_of_ended_entries_are_swept() {
        let mut users = Users::default();
        for record in 1..=1000u64 {
            users.add(record * 64, record, |_| true);
        }
        for _ in 0..4 {
            users.sweep(|entry| entry > 900);
        }
        assert_eq!(users.0.as_ref().map(FlowTable::len), Some(100));
        assert_eq!(taken(&mut users, 950 * 64), (vec![950], Ending::Answer));
    }
}
