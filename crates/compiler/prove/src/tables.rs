//! Tables for test packets: their content is chosen for each packet, and they record calls.
#![expect(unsafe_code, reason = "promises machine code that its records are addresses")]

use ir::analysis::lasting::Written;
use ir::program::TableDecl;
use ir::{CacheValidity, Created, Lasting, Merge, Table, Tables};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A call on a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// A key was looked up.
    Lookup(Vec<u64>),
    /// A record was to be created: key and arguments.
    Create(Vec<u64>, Vec<u64>),
}

/// A table. Records are in boxes: machine code reads and writes them by their addresses.
#[derive(Debug)]
pub struct TestTable {
    decl: TableDecl,
    /// Records that exist.
    pub by_key: BTreeMap<Vec<u64>, usize>,
    /// Records for later creations.
    pub waiting: BTreeMap<Vec<u64>, usize>,
    /// Keys whose creation is refused.
    pub refused: BTreeSet<Vec<u64>>,
    records: Vec<Box<[AtomicU64]>>,
    calls: RefCell<Vec<Call>>,
    /// The numbers of records that packets change.
    pub written: Written,
}

impl Clone for TestTable {
    fn clone(&self) -> TestTable {
        TestTable {
            decl: self.decl.clone(),
            by_key: self.by_key.clone(),
            waiting: self.waiting.clone(),
            refused: self.refused.clone(),
            records: self.records.iter().map(|record| copy(record)).collect(),
            calls: RefCell::default(),
            written: self.written.clone(),
        }
    }
}

impl TestTable {
    fn new(decl: &TableDecl) -> TestTable {
        TestTable {
            decl: decl.clone(),
            by_key: BTreeMap::new(),
            waiting: BTreeMap::new(),
            refused: BTreeSet::new(),
            records: vec![],
            calls: RefCell::default(),
            written: vec![],
        }
    }

    /// A new record with these bytes; the other bytes are arbitrary.
    pub fn record(&mut self, bytes: impl IntoIterator<Item = (u16, u8)>) -> usize {
        let seed = self.records.len() as u64 * 0x9e37_79b9 + 0x1234_5678_9abc;
        let words = usize::from(self.decl.record_bytes).div_ceil(8);
        let word = |at: u64| AtomicU64::new(seed.rotate_left(at as u32 * 7));
        let record: Box<[AtomicU64]> = (0..words as u64).map(word).collect();
        for (offset, byte) in bytes {
            put(&record, offset, 1, byte.into());
        }
        self.records.push(record);
        self.records.len() - 1
    }

    /// Sets what a record has of checksums, for the key that leads to it.
    pub fn keep_deltas(&self, at: usize, key: &[u64]) {
        for delta in &self.decl.deltas {
            let words = get(&self.records[at], delta.to, 8);
            put(&self.records[at], delta.at, 2, delta.number(key[usize::from(delta.key)], words).into());
        }
    }

    /// The keys of its records.
    pub fn keys(&self) -> Vec<Vec<u64>> {
        self.by_key.keys().cloned().collect()
    }

    /// The handle of a record.
    pub fn handle(&self, at: usize) -> u64 {
        self.records[at].as_ptr() as u64
    }

    /// The number of the record with a handle.
    pub fn at(&self, record: u64) -> Option<usize> {
        self.records.iter().position(|known| known.as_ptr() as u64 == record)
    }
}

fn copy(record: &[AtomicU64]) -> Box<[AtomicU64]> {
    record.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect()
}

fn get(record: &[AtomicU64], offset: u16, bytes: u8) -> u64 {
    let word = |at: u16| record.get(usize::from(at / 8)).map_or(0, |word| word.load(Relaxed));
    let byte = |at: u16| word(at) >> (at % 8 * 8) & 0xff;
    (0..u16::from(bytes)).map(|at| byte(offset + at) << (8 * at)).sum()
}

fn put(record: &[AtomicU64], offset: u16, bytes: u8, value: u64) {
    for at in 0..u16::from(bytes) {
        let place = offset + at;
        if let Some(word) = record.get(usize::from(place / 8)) {
            let shift = place % 8 * 8;
            let other = word.load(Relaxed) & !(0xff << shift);
            word.store(other | (value >> (8 * at) & 0xff) << shift, Relaxed);
        }
    }
}

// SAFETY: handles are addresses of boxes of atomics, which have the declared bytes rounded up to words, and
// live as long as the table: no record is ever removed, and moving a box does not move its content.
unsafe impl Table for TestTable {
    fn key_words(&self) -> usize {
        self.decl.key_words.into()
    }

    fn record_bytes(&self) -> Option<usize> {
        Some(self.decl.record_bytes.into())
    }

    fn lookup(&self, key: &[u64]) -> Option<u64> {
        self.calls.borrow_mut().push(Call::Lookup(key.to_vec()));
        self.by_key.get(key).map(|at| self.handle(*at))
    }

    /// Results never become invalid.
    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: true, changes: 0, gone: Some(0) })
    }

    fn lasting(&self, _record: u64, offset: u16) -> Lasting {
        self.written.iter().find(|(at, _)| *at == offset).map_or(Lasting::Fixed, |(_, how)| *how)
    }

    /// Keys without a setting are refused if the sum of their words is divisible by four.
    fn create(&mut self, key: &[u64], args: &[u64], _now_ns: u64) -> Created {
        self.calls.borrow_mut().push(Call::Create(key.to_vec(), args.to_vec()));
        if let Some(&at) = self.by_key.get(key) {
            return Created::Record(self.handle(at));
        }
        let waiting = self.waiting.get(key).copied();
        let sum = key.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        if self.refused.contains(key) || (waiting.is_none() && sum.is_multiple_of(4)) {
            return Created::Refused;
        }
        let at = waiting.unwrap_or_else(|| self.record([]));
        self.keep_deltas(at, key);
        self.by_key.insert(key.to_vec(), at);
        Created::Record(self.handle(at))
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        self.at(record).map_or(0, |at| get(&self.records[at], offset, bytes))
    }

    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64) {
        if let Some(at) = self.at(record) {
            put(&self.records[at], offset, bytes, value);
        }
    }
}

/// The tables of a fused region's elements.
#[derive(Clone, Debug)]
pub struct TestTables(pub Vec<TestTable>);

impl TestTables {
    /// Empty tables.
    pub fn new(decls: &[TableDecl]) -> TestTables {
        TestTables(decls.iter().map(TestTable::new).collect())
    }

    /// No record has a time to come: clocks do not go back.
    pub fn limit_times(&mut self, now_ns: u64) {
        for table in &self.0 {
            for (at, how) in &table.written {
                if *how == Lasting::Merged(Merge::Max) {
                    for record in &table.records {
                        put(record, *at, 8, get(record, *at, 8).min(now_ns));
                    }
                }
            }
        }
    }

    /// The content of each table, by key.
    pub fn records(&self) -> Vec<Vec<(Vec<u64>, Vec<u8>)>> {
        let of_table = |table: &TestTable| {
            let bytes = table.decl.record_bytes;
            let of = |at: usize| (0..bytes).map(|offset| get(&table.records[at], offset, 1) as u8).collect();
            table.by_key.iter().map(|(key, at)| (key.clone(), of(*at))).collect()
        };
        self.0.iter().map(of_table).collect()
    }

    /// The calls on each table since the last time, without lookups whose outcome was known.
    pub fn calls(&self) -> Vec<Vec<Call>> {
        self.0.iter().map(|table| once(table.calls.take())).collect()
    }
}

/// The same as in the fuzzing of `synth`, with which this crate shares no code on purpose.
fn once(calls: Vec<Call>) -> Vec<Call> {
    let mut known = vec![];
    let mut kept = vec![];
    for call in calls {
        match &call {
            Call::Create(..) => known.clear(),
            Call::Lookup(_) if known.contains(&call) => continue,
            Call::Lookup(_) => known.push(call.clone()),
        }
        kept.push(call);
    }
    kept
}

impl Tables for TestTables {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.get_mut(index).map(|table| table as &mut dyn Table)
    }
}
