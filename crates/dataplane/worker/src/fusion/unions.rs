//! Unions of a region's tables of prefixes, for rows of lookups that machine code does as one
//! ([`codegen::lookup_row`]).
//!
//! A union is made of copies of its tables' prefixes and records, and used while their numbers of changes
//! ([`ir::CacheValidity`]) are those of the copies: each burst compares them. Once they differ, the program
//! without unions runs until there is a new union. A large one is made on another thread; while routes change
//! again and again, none is made.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use super::cpu::aside;
use codegen::lookup_row::{LookupRow, RowPart};
use element::record::Records;
use ir::table::PrefixWalk;
use ir::{Created, Table, Tables};
use std::collections::HashMap;
use std::thread::JoinHandle;
use table::TableError;
use table::lpm::{Lpm4, union};

/// The most prefixes of all tables of a union: making it takes a few milliseconds.
const MOST_PREFIXES: usize = 4096;
/// With more prefixes, a union is made on another thread.
const FEW_PREFIXES: usize = 256;
/// The most nodes of a union, as of a table that machine code walks: they fit into the second-level cache.
const MOST_NODES: usize = 512;

/// The unions of a region, in the order of the program's rows.
#[derive(Default)]
pub(crate) struct Unions {
    rows: Vec<Row>,
}

/// A row, and the union of its tables.
struct Row {
    row: LookupRow,
    union: Option<(Versions, UnionTable)>,
    /// The numbers of changes of the last look.
    seen: Versions,
    /// One that is being made.
    next: Option<(Versions, JoinHandle<Result<UnionTable, TableError>>)>,
    /// The tables of which no union could be made.
    failed: Versions,
}

/// The numbers of changes of a row's tables, in its order.
type Versions = Vec<u64>;

/// A copy of a table.
struct Copied {
    /// Addresses, lengths, and the places of their records; none where the record is not one with which packets
    /// go on.
    prefixes: Vec<(u32, u8, Option<usize>)>,
    /// The words of records.
    records: Vec<Vec<u64>>,
}

impl Unions {
    /// Discards all unions: a table was exchanged for another one.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// The number of rows with a union that was right at the last look.
    pub fn count(&self) -> usize {
        let is_current = |row: &&Row| row.union.as_ref().is_some_and(|(versions, _)| *versions == row.seen);
        self.rows.iter().filter(is_current).count()
    }

    /// Whether all rows have a union, or one that is being made.
    pub fn are_there(&self) -> bool {
        let is_there = |row: &Row| {
            row.next.is_some() || row.union.as_ref().is_some_and(|(versions, _)| *versions == row.seen)
        };
        !self.rows.is_empty() && self.rows.iter().all(is_there)
    }

    /// A row's union, if the tables' numbers of changes are those of when it was made.
    pub fn of(&self, row: usize, mut changes: impl FnMut(u16) -> Option<u64>) -> Option<&dyn Table> {
        let row = self.rows.get(row)?;
        let (versions, union) = row.union.as_ref()?;
        let is_current = |(part, version): (&RowPart, &u64)| changes(part.table) == Some(*version);
        row.row.parts.iter().zip(versions).all(is_current).then_some(union as &dyn Table)
    }

    /// Makes the unions that these rows need, as far as they can be used.
    pub fn update(&mut self, rows: &[LookupRow], tables: &mut dyn Tables) {
        if !self.rows.iter().map(|row| &row.row).eq(rows) {
            self.rows = rows.iter().map(Row::new).collect();
        }
        self.rows.iter_mut().for_each(|row| row.update(tables));
    }
}

impl Row {
    fn new(row: &LookupRow) -> Row {
        Row { row: row.clone(), union: None, seen: vec![], next: None, failed: vec![] }
    }

    fn update(&mut self, tables: &mut dyn Tables) {
        let changes = |part: &RowPart| Some(tables.table(usize::from(part.table))?.cache_validity()?.changes);
        let Some(versions) = self.row.parts.iter().map(changes).collect::<Option<Versions>>() else { return };
        if let Some((versions, thread)) = self.next.take_if(|(_, thread)| thread.is_finished()) {
            self.take(versions, thread.join().unwrap_or_else(|_| Err(no_thread())));
        }
        let is_current = self.union.as_ref().is_some_and(|(known, _)| *known == versions);
        let before = std::mem::replace(&mut self.seen, versions.clone());
        // Routes that change again and again would be copied again and again.
        let is_quiet = before.is_empty() || before == versions;
        if is_current || self.failed == versions || self.next.is_some() || !is_quiet {
            return;
        }
        let mut left = MOST_PREFIXES;
        let copy = |part: &RowPart| {
            let copied = copy(part, tables.table(usize::from(part.table))?, left)?;
            left -= copied.prefixes.len();
            Some(copied)
        };
        let Some(copies) = self.row.parts.iter().map(copy).collect::<Option<Vec<Copied>>>() else {
            self.union = None;
            self.failed = versions;
            return;
        };
        let bytes = usize::from(self.row.record_bytes());
        if MOST_PREFIXES - left <= FEW_PREFIXES {
            return self.take(versions, UnionTable::new(&copies, bytes));
        }
        match aside("unions", move || UnionTable::new(&copies, bytes)) {
            Some(thread) => self.next = Some((versions, thread)),
            None => self.failed = versions,
        }
    }

    fn take(&mut self, versions: Versions, made: Result<UnionTable, TableError>) {
        match made {
            Ok(made) if made.trie.nodes() <= MOST_NODES => self.union = Some((versions, made)),
            // The single tables are asked until they change.
            Ok(_) | Err(_) => {
                self.union = None;
                self.failed = versions;
            }
        }
    }
}

fn no_thread() -> TableError {
    TableError::NoMemory { bytes: 0 }
}

/// Copies a table; `None` where it has more prefixes.
fn copy(part: &RowPart, table: &dyn Table, most: usize) -> Option<Copied> {
    let mut copied = Copied { prefixes: vec![], records: vec![] };
    let mut known: HashMap<u64, Option<usize>> = HashMap::new();
    for one in table.prefixes(most)? {
        let place = *known.entry(one.record).or_insert_with(|| {
            let load = |offset: u16, bytes: u8| table.record_load(one.record, offset, bytes);
            let goes_on = part.tests.iter().all(|test| load(test.offset, test.bytes) == test.number);
            // The last word may have fewer bytes.
            let word = |at: u16| {
                (at..part.record_bytes.min(at + 8)).rev().fold(0, |all, byte| all << 8 | load(byte, 1))
            };
            goes_on.then(|| {
                copied.records.push((0..part.record_bytes).step_by(8).map(word).collect());
                copied.records.len() - 1
            })
        });
        copied.prefixes.push((one.prefix, one.len, place));
    }
    Some(copied)
}

/// The union of a row's tables. Value 0 of its trie stands for prefixes from which packets do not go on.
struct UnionTable {
    trie: Lpm4,
    records: Records,
    record_bytes: usize,
}

impl UnionTable {
    /// Of copies of the tables, with records of that many bytes.
    fn new(copies: &[Copied], record_bytes: usize) -> Result<UnionTable, TableError> {
        let mut made = UnionTable { trie: Lpm4::new()?, records: Records::new(record_bytes), record_bytes };
        let none = made.records.add();
        let mut known: HashMap<Vec<usize>, u32> = HashMap::new();
        let prefixes: Vec<_> = copies.iter().map(|copied| copied.prefixes.as_slice()).collect();
        for (prefix, len, answers) in union(&prefixes) {
            let places: Option<Vec<usize>> = answers.into_iter().map(Option::flatten).collect();
            let number = match places {
                None => none,
                Some(places) => *known.entry(places).or_insert_with_key(|places| {
                    let records = copies.iter().zip(places).map(|(copied, at)| &copied.records[*at]);
                    made.add(records.flatten())
                }),
            };
            made.trie.insert(prefix, len, number)?;
        }
        Ok(made)
    }

    fn add<'w>(&mut self, words: impl Iterator<Item = &'w u64>) -> u32 {
        let number = self.records.add();
        let record = self.records.address(number);
        for (at, word) in (0..).zip(words) {
            self.records.store(record, at * 8, 8, *word);
        }
        number
    }
}

// SAFETY: handles are addresses in `Records`, whose words are `Cell`s, initialised when a record is added; none
// is added once the table is made. A walk has the trie's own layout and record 0; `Records` keeps records as
// far apart as `record_bytes`, rounded up to words. The trie's values are numbers of records.
unsafe impl Table for UnionTable {
    fn key_words(&self) -> usize {
        1
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(self.record_bytes)
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        let number = self.trie.lookup(*key.first()? as u32).filter(|number| *number != 0)?;
        Some(self.records.address(number))
    }

    fn walk(&self) -> Option<PrefixWalk> {
        let layout = self.trie.layout()?;
        Some(PrefixWalk {
            root: layout.root as u64,
            entries: layout.entries as u64,
            above: layout.above as u64,
            records: self.records.layout().0,
        })
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.records.load(record, offset, bytes)
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        self.records.store(record, offset, bytes, value);
    }
}

#[cfg(test)]
mod tests;
