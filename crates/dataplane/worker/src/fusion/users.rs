//! Which entries of a flow cache hang on which records.
//!
//! Only of records whose table tells when one goes before its time; a mapping has one or two entries as a rule. A
//! record that more hang on than there is room for is marked, and all entries end with it. Nothing here takes long at
//! once: the table grows a little with every change, and notes of entries that have ended are swept a few at a time.

use std::hash::{BuildHasher, RandomState};
use table::TableError;
use table::flow::{FlowConfig, FlowTable};

/// Records of which is known what hangs on them, at most.
const CAPACITY: u32 = 1 << 22;
/// Entries that can hang on a record.
const MOST: usize = 7;
/// Where they stand in a note; in front of them, whether there were more.
const FIRST: usize = 8;
/// Bytes of a note.
const BYTES: usize = FIRST + 8 * MOST;
/// Notes that are looked at in a millisecond.
const LOOKED_AT: usize = 256;

/// Entries, by the records that they hang on.
#[derive(Debug, Default)]
pub(super) struct Users(Option<FlowTable<1>>);

/// What is to end with a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// What was told.
    Answer,
    /// Everything: nobody knows.
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
    /// Notes that an entry hangs on a record; false when there is no room. `is_live` says of entries whether they
    /// are still there.
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

    /// Takes out those of a record that went, and hands them over.
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

    /// Takes some notes out that are of ended entries only.
    pub(super) fn sweep(&mut self, is_live: impl Fn(u64) -> bool) {
        let Some(notes) = &mut self.0 else { return };
        let mut budget = LOOKED_AT;
        while let Some(note) = notes.step(&mut budget) {
            let at = notes.record_ptr(note) as u64;
            let mut entries = (0..MOST).map(|place| notes.load(at, FIRST + 8 * place, 8));
            // Of one that more hang on nobody knows whether all of them have ended.
            let is_over = notes.load(at, 0, 8) == 0 && !entries.any(|entry| entry != 0 && is_live(entry));
            if is_over {
                notes.remove(note);
            }
        }
        notes.maintain();
    }

    /// Gives everything away that it knows.
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
        // One of them has ended: its place is free.
        users.add(64, 100, |entry| entry != 3);
        assert_eq!(taken(&mut users, 64), (vec![1, 2, 100, 4, 5, 6, 7], Ending::Answer));
        for entry in 1..=MOST as u64 + 1 {
            users.add(64, entry, |_| true);
        }
        // Those that are known end; the one behind them may live on.
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
