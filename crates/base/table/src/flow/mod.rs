//! Flow table: from keys of 1 to 5 64-bit words to records at addresses that never change.
//!
//! - A *record* is a zeroed, 64-byte aligned block of a size fixed per table. Generated code reads and
//!   writes it by address; it contains none of the table's own data.
//! - Several keys may lead to one record: its primary key and aliases. An alias may lead to a later
//!   64-byte line of the record, so that the two directions of a NAT mapping can each have a line of
//!   their own in one record.
//! - [`FlowTable::lookup_batch`] works in stages: hash all keys and prefetch their buckets; then
//!   compare keys and prefetch the records. A lookup touches one bucket line and one record line.
//! - Growth does not pause: a second index is prepared a page at a time and then filled a few buckets
//!   with every change. The bound on one insertion is a few page faults (one of 2 MiB where the system
//!   backs the index with huge pages: some 100 µs) plus [`MIGRATE_BUCKETS`] moved buckets. During growth,
//!   keys that were not moved yet cost a second probe. A caller that cannot afford the faults sets
//!   `initial_keys` and `prefault`.
//! - The caller sets the pace of ageing: [`FlowTable::expire`] walks a bounded number of records per
//!   call, like the hand of a clock.
//!
//! One core owns a table. Not here: locking, hashing of packets, the meaning of a record.
//! Figures: `cargo run --release -p millrace-table --example lookup_cycles`.
#![expect(unsafe_code, reason = "zeroes records at their addresses")]

mod ageing;
mod fetch;
mod fields;
mod growth;
mod hash;
mod index;
mod lookup;
mod records;
#[cfg(test)]
mod tests;

pub use growth::MIGRATE_BUCKETS;
pub use hash::Seed;

use crate::TableError;
pub use records::RecordId;

use index::{Growth, Index};
use records::Records;

/// Keys are numbered in 31 bits.
const MAX_KEYS: u32 = (1 << 31) - 1;

/// Size and seed of a flow table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowConfig {
    /// Bytes of one record, rounded up to whole 64-byte lines. At least 1.
    pub record_bytes: usize,
    /// Records the table may hold: 1 to 2^30. Memory is reserved for them, and used as touched.
    pub capacity: u32,
    /// Keys (primary and alias) the table may hold; 0 means two for each record.
    pub max_keys: u32,
    /// Keys the index is sized for at the start, before it has to grow.
    pub initial_keys: u32,
    /// Seed of the hash: unpredictable where peers choose the keys; fixed to repeat a run.
    pub seed: u64,
    /// Back all memory at construction, so that there are no page faults later.
    pub prefault: bool,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            record_bytes: 64,
            capacity: 1 << 20,
            max_keys: 0,
            initial_keys: 1024,
            seed: 0,
            prefault: false,
        }
    }
}

/// A table from keys of `W` words to records. See the module's text.
#[derive(Debug)]
pub struct FlowTable<const W: usize> {
    seed: Seed,
    index: Index<W>,
    growth: Growth<W>,
    records: Records<W>,
    /// Record number at which the next `expire` continues.
    hand: u32,
}

impl<const W: usize> FlowTable<W> {
    const WIDTH_IS_SUPPORTED: () = assert!(W >= 1 && W <= 5, "keys have 1 to 5 words");

    /// Builds an empty table.
    ///
    /// # Errors
    ///
    /// [`TableError::BadParameter`] for sizes out of range, [`TableError::NoMemory`] if the
    /// system refuses to reserve the memory.
    pub fn new(config: &FlowConfig) -> Result<Self, TableError> {
        let () = Self::WIDTH_IS_SUPPORTED;
        if config.capacity == 0 || config.capacity > 1 << 30 {
            return Err(TableError::bad("capacity", config.capacity, "1 to 2^30 records"));
        }
        if config.record_bytes == 0 || config.record_bytes > 1 << 16 {
            return Err(TableError::bad("record_bytes", config.record_bytes as u64, "1 to 65536 bytes"));
        }
        let max_keys = match config.max_keys {
            0 => (config.capacity * 2).min(MAX_KEYS),
            n if n < config.capacity || n > MAX_KEYS => {
                return Err(TableError::bad("max_keys", n, "0, or capacity to 2^31 - 1 keys"));
            }
            n => n,
        };
        let record_bytes = config.record_bytes.next_multiple_of(64);
        let initial_keys = config.initial_keys.min(max_keys) as usize;
        let mut table = Self {
            seed: Seed::new(config.seed),
            index: Index::new(Index::<W>::buckets_for(initial_keys))?,
            growth: Growth::None,
            records: Records::new(record_bytes, config.capacity, max_keys)?,
            hand: 0,
        };
        if config.prefault {
            table.index.region_mut().touch_all();
            table.records.touch_all();
        }
        Ok(table)
    }

    /// Records in use.
    pub fn len(&self) -> usize {
        self.records.live as usize
    }

    /// Whether no record is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys in the table, primary and alias.
    pub fn keys(&self) -> usize {
        self.records.keys as usize
    }

    /// Records the table may hold.
    pub fn capacity(&self) -> usize {
        self.records.capacity as usize
    }

    /// Bytes of one record.
    pub fn record_bytes(&self) -> usize {
        self.records.record_bytes()
    }

    /// Bytes of the indexes in use.
    pub fn index_bytes(&self) -> usize {
        self.index.bytes()
            + match &self.growth {
                Growth::None => 0,
                Growth::Preparing { larger: other, .. } | Growth::Migrating { smaller: other, .. } => {
                    other.bytes()
                }
            }
    }

    /// Bytes that are in use: index, records and keys.
    pub fn bytes(&self) -> usize {
        self.index_bytes() + self.records.bytes()
    }

    /// Bytes that this many flows, with this many keys each, take after growth.
    pub fn bytes_for(&self, flows: usize, keys_each: usize) -> usize {
        Index::<W>::bytes_for(flows * keys_each) + flows * self.records.bytes_each(keys_each)
    }

    /// Address of a record: 64-byte aligned, `record_bytes` long, the same until the table is
    /// dropped. Content is the caller's; a removed record's memory is zeroed when it is reused.
    #[inline]
    pub fn record_ptr(&self, record: RecordId) -> *mut u8 {
        self.records.address(self.records.first_line(record))
    }

    /// The record in use that contains `address`, as a lookup returned it.
    pub fn record_at(&self, address: u64) -> Option<RecordId> {
        let offset = address.checked_sub(self.records.base() as u64)?;
        let line = u32::try_from(offset / 64).ok()?;
        self.records.record_of_line(line).filter(|&record| self.records.is_live(record))
    }

    /// The record in use with a number, see [`RecordId::number`].
    pub fn record_numbered(&self, number: u32) -> Option<RecordId> {
        (number > 0 && number <= self.records.touched).then(|| self.records.live_at(number)).flatten()
    }

    /// Whether the record is in use.
    pub fn is_live(&self, record: RecordId) -> bool {
        self.records.is_live(record)
    }

    /// The keys of a record with the byte offset each leads to: aliases, newest first, then the
    /// primary key. Empty for a record that is not in use.
    pub fn keys_of(&self, record: RecordId) -> impl Iterator<Item = ([u64; W], usize)> {
        self.records.keys_of(record)
    }

    /// The records in use, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = RecordId> {
        (1..=self.records.touched).filter_map(|number| self.records.live_at(number))
    }

    /// The record a key leads to.
    pub fn find(&self, key: &[u64; W]) -> Option<RecordId> {
        self.records.record_of_line(self.line_of(key))
    }

    /// The address a key leads to, or 0: the result of a batched lookup.
    pub fn find_address(&self, key: &[u64; W]) -> u64 {
        match self.line_of(key) {
            0 => 0,
            line => self.records.address(line) as u64,
        }
    }

    fn line_of(&self, key: &[u64; W]) -> u32 {
        let hash = self.seed.hash(key);
        match self.index.find(hash, key) {
            0 => self.line_in_smaller(hash, key),
            line => line,
        }
    }

    #[inline]
    fn line_in_smaller(&self, hash: u64, key: &[u64; W]) -> u32 {
        match &self.growth {
            Growth::Migrating { smaller, .. } => smaller.find(hash, key),
            _ => 0,
        }
    }

    /// Adds a flow and returns its zeroed record.
    ///
    /// # Errors
    ///
    /// [`TableError::KeyExists`], [`TableError::RecordsFull`], [`TableError::KeysFull`],
    /// [`TableError::NoMemory`] if the index has no room left and cannot grow.
    pub fn insert(&mut self, key: &[u64; W]) -> Result<RecordId, TableError> {
        if self.line_of(key) != 0 {
            return Err(TableError::KeyExists);
        }
        let record = self.records.allocate()?;
        let line = self.records.first_line(record);
        if let Err(error) = self.link(record, key, line) {
            self.records.release(record);
            return Err(error);
        }
        let bytes = self.records.record_bytes();
        // SAFETY: the record lies in the region, is `bytes` long and was just allocated, so no
        // reader knows it; generated code holds addresses of records in use only.
        unsafe { self.records.address(line).write_bytes(0, bytes) };
        Ok(record)
    }

    /// The record of `key`, added if it was not there; true if it was added.
    ///
    /// # Errors
    ///
    /// As [`Self::insert`], without `KeyExists`.
    pub fn find_or_insert(&mut self, key: &[u64; W]) -> Result<(RecordId, bool), TableError> {
        match self.find(key) {
            Some(record) => Ok((record, false)),
            None => self.insert(key).map(|record| (record, true)),
        }
    }

    /// Adds an alias for a record, which leads to `offset_bytes` in it (whole lines).
    ///
    /// # Errors
    ///
    /// As [`Self::insert`]; [`TableError::NoSuchRecord`]; [`TableError::BadParameter`] if the
    /// offset is no multiple of 64 inside the record.
    pub fn insert_alias(
        &mut self,
        record: RecordId,
        key: &[u64; W],
        offset_bytes: usize,
    ) -> Result<(), TableError> {
        if !self.records.is_live(record) {
            return Err(TableError::NoSuchRecord(record.number()));
        }
        if !offset_bytes.is_multiple_of(64) || offset_bytes >= self.records.record_bytes() {
            let allowed = "a multiple of 64 inside the record";
            return Err(TableError::bad("offset_bytes", offset_bytes as u64, allowed));
        }
        if self.line_of(key) != 0 {
            return Err(TableError::KeyExists);
        }
        let line = self.records.first_line(record) + (offset_bytes / 64) as u32;
        self.link(record, key, line)
    }

    fn link(&mut self, record: RecordId, key: &[u64; W], line: u32) -> Result<(), TableError> {
        self.maintain();
        self.records.push_key(record, key, line)?;
        let hash = self.seed.hash(key);
        if !self.index.insert(hash, key, line) {
            let _ = self.records.pop_key(record);
            return Err(TableError::NoMemory { bytes: self.index.bytes() * 2 });
        }
        Ok(())
    }

    /// Removes an alias; false if `key` is no alias of this record.
    pub fn remove_alias(&mut self, record: RecordId, key: &[u64; W]) -> bool {
        if !self.records.is_live(record) || !self.records.take_alias(record, key) {
            return false;
        }
        self.unlink(key);
        true
    }

    /// Removes a flow with all its keys; false if it was not in use. The caller makes sure that generated
    /// code no longer uses its address (between bursts it does not).
    pub fn remove(&mut self, record: RecordId) -> bool {
        if !self.records.is_live(record) {
            return false;
        }
        while let Some(key) = self.records.pop_key(record) {
            self.unlink(&key);
        }
        self.records.release(record);
        true
    }

    /// Removes every flow. Takes time proportional to their number.
    pub fn clear(&mut self) {
        for number in 1..=self.records.touched {
            if let Some(record) = self.records.live_at(number) {
                self.remove(record);
            }
        }
    }

    fn unlink(&mut self, key: &[u64; W]) {
        let hash = self.seed.hash(key);
        if self.index.remove(hash, key) == 0
            && let Growth::Migrating { smaller, .. } = &mut self.growth
        {
            smaller.remove_draining(hash, key);
        }
    }
}
