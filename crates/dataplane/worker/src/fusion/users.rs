//! The reverse index of a flow cache: the entries that use each table record.
//!
//! It has only the records of tables that report early removals. A mapping is used by one or two entries as a
//! rule. A record with more entries than fit is marked; its removal invalidates all entries. Every operation
//! is short: the table grows by small steps, and stale index records are removed a few at a time.

use std::hash::{BuildHasher, RandomState};
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// The most records in the index.
const CAPACITY: u32 = 1 << 22;
/// The most entries for a record.
const MOST: usize = 7;
/// The offset of the entries in an index record. In front of them is the mark for further entries.
const FIRST: usize = 8;
/// Bytes of an index record.
const BYTES: usize = FIRST + 8 * MOST;
/// Index records that are checked in a millisecond.
const LOOKED_AT: usize = 256;

/// Entries by the records that they use.
#[derive(Debug, Default)]
pub(super) struct Users(Option<FlowTable<1>>);

/// The entries that become invalid with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// The entries that were passed to the callback.
    Answer,
    /// All entries: the record has more of them than the index.
    All,
}

fn table() -> Result<FlowTable<1>, TableError> {
    FlowTable::new(&FlowConfig {
        record_bytes: BYTES,
        capacity: CAPACITY,
        max_keys: CAPACITY,
        seed: RandomState::new().hash_one(BYTES),
        ..FlowConfig::default()
    })
}

impl Users {
    /// Records that an entry uses a table record; false when there is no room. `is_live` returns whether an
    /// entry still exists.
    pub(super) fn add(&mut self, record: u64, entry: u64, is_live: impl Fn(u64) -> bool) -> bool {
        if self.0.is_none() {
            self.0 = table().ok();
        }
        let Some(notes) = &mut self.0 else { return false };
        let Ok((note, _)) = notes.find_or_insert(&[record]) else { return false };
        let at = notes.record_ptr(note) as u64;
        let places = (0..MOST).map(|place| FIRST + 8 * place);
        let mut free = None;
        for place in places {
            match notes.load(at, place, 8) {
                known if known == entry => return true,
                known if known == 0 || !is_live(known) => free = free.or(Some(place)),
                _ => {}
            }
        }
        match free {
            Some(place) => notes.store(at, place, 8, entry),
            None => notes.store(at, 0, 8, 1),
        }
        true
    }

    /// Removes the entries of a removed record and passes each of them to `each`.
    pub(super) fn take(&mut self, record: u64, mut each: impl FnMut(u64)) -> Ending {
        let Some(notes) = &mut self.0 else { return Ending::Answer };
        let Some(note) = notes.find(&[record]) else { return Ending::Answer };
        let at = notes.record_ptr(note) as u64;
        if notes.load(at, 0, 8) != 0 {
            return Ending::All;
        }
        (0..MOST)
            .map(|place| notes.load(at, FIRST + 8 * place, 8))
            .filter(|entry| *entry != 0)
            .for_each(&mut each);
        notes.remove(note);
        Ending::Answer
    }

    /// Removes some index records whose entries have all ended.
    pub(super) fn sweep(&mut self, is_live: impl Fn(u64) -> bool) {
        let Some(notes) = &mut self.0 else { return };
        let mut budget = LOOKED_AT;
        while let Some(note) = notes.step(&mut budget) {
            let at = notes.record_ptr(note) as u64;
            let mut entries = (0..MOST).map(|place| notes.load(at, FIRST + 8 * place, 8));
            // A marked record may have live entries that are not listed.
            let is_over = notes.load(at, 0, 8) == 0 && !entries.any(|entry| entry != 0 && is_live(entry));
            if is_over {
                notes.remove(note);
            }
        }
        notes.maintain();
    }

    /// Returns the whole table, for another thread to drop.
    pub(super) fn give_away(&mut self) -> impl Send + use<> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(users: &mut Users, record: u64) -> (Vec<u64>, Ending) {
        let mut all = vec![];
        let ending = users.take(record, |entry| all.push(entry));
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
        for entry in 1..=MOST as u64 + 1 {
            users.add(64, entry, |_| true);
        }
        // The listed entries end; the next one may live on.
        for _ in 0..4 {
            users.sweep(|entry| entry == MOST as u64 + 1);
        }
        assert_eq!(taken(&mut users, 64), (vec![], Ending::All));
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
