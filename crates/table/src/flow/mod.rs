//! Flow table: from keys of 1 to 5 64-bit words to records at addresses that never change.
//!
//! - A *record* is a zeroed, 64-byte aligned block of a size fixed per table. Generated code
//!   reads and writes it by address; nothing private is stored in it.
//! - Several keys may lead to one record: its primary key and aliases. An alias may lead to a
//!   later 64-byte line of the record, so that the two directions of a NAT mapping can each have
//!   a line of their own in one record.
//! - [`FlowTable::lookup_batch`] works in stages: hash all keys and prefetch their buckets; then
//!   compare keys and prefetch the records. A lookup touches one bucket line and one record line.
//! - Growth does not pause: a second index is prepared a page at a time and then filled a few
//!   buckets with every change. The bound on one insertion is a page fault (of 2 MiB where the
//!   system backs the index with huge pages) plus [`MIGRATE_BUCKETS`] buckets moved. While
//!   it lasts, keys not yet moved cost a second probe.
//! - Ageing is the caller's rhythm: [`FlowTable::expire`] walks a bounded number of records per
//!   call, like the hand of a clock.
//!
//! One core owns a table. Not here: locking, hashing of packets, the meaning of a record.
//! Figures: `cargo run --release -p millrace-table --example lookup_cycles`.
#![expect(unsafe_code, reason = "hands out record addresses, reads keys at caller's addresses")]

mod any;
mod hash;
mod index;
mod records;
#[cfg(test)]
mod tests;

pub use any::AnyFlowTable;

use crate::TableError;
use crate::prefetch::prefetch;
use hash::Seed;
use index::Index;
use records::Records;
use std::mem::MaybeUninit;
use std::num::NonZeroU32;

/// Keys in flight at once in a batched lookup: what the line fill buffers and the first-level
/// cache of current cores take without evicting what was just fetched.
const STAGE: usize = 64;

/// Buckets moved with each change while an index grows.
pub const MIGRATE_BUCKETS: usize = 4;

/// Pages prepared with each change before an index grows.
const PREPARE_PAGES: usize = 1;
const PAGE_BYTES: usize = 4096;

/// Number of a record in use. Numbers of removed records are given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(NonZeroU32);

impl RecordId {
    /// The number, from 1 to the table's capacity: an index for columns kept beside the table.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

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
    /// Seed of the hash. Unpredictable where peers choose the keys; fixed to repeat a run.
    pub seed: u64,
    /// Back all memory at construction, so that no page fault happens later.
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

/// A second index on its way.
#[derive(Debug)]
enum Growth<const W: usize> {
    None,
    /// The larger index exists; its pages are being backed before it is used.
    Preparing {
        larger: Index<W>,
        touched_bytes: usize,
    },
    /// The larger index is in use; `smaller` is emptied from bucket 0 on.
    Migrating {
        smaller: Index<W>,
        next_bucket: usize,
    },
}

/// A table from keys of `W` words to records. See the module's text.
#[derive(Debug)]
pub struct FlowTable<const W: usize> {
    seed: Seed,
    index: Index<W>,
    growth: Growth<W>,
    records: Records<W>,
    /// Record number at which the next `expire` goes on.
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
        let bad = |what, value: u64, allowed| Err(TableError::BadParameter { what, value, allowed });
        if config.capacity == 0 || config.capacity > 1 << 30 {
            return bad("capacity", u64::from(config.capacity), "1 to 2^30 records");
        }
        if config.record_bytes == 0 || config.record_bytes > 1 << 16 {
            return bad("record_bytes", config.record_bytes as u64, "1 to 65536 bytes");
        }
        let max_keys = match config.max_keys {
            0 => config.capacity * 2,
            n if n < config.capacity || n > 1 << 31 => {
                return bad("max_keys", u64::from(n), "0, or capacity to 2^31 keys");
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
        self.records.live() as usize
    }

    /// Whether no record is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys in the table, primary and alias.
    pub fn keys(&self) -> usize {
        self.records.keys() as usize
    }

    /// Records the table may hold.
    pub fn capacity(&self) -> usize {
        self.records.capacity() as usize
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

    /// Address of a record: 64-byte aligned, `record_bytes` long, the same until the table is
    /// dropped. Content is the caller's; a removed record's memory is zeroed when it is reused.
    #[inline]
    pub fn record_ptr(&self, record: RecordId) -> *mut u8 {
        self.records.address(self.records.first_line(record))
    }

    /// The record in use that `address`, as a lookup gave it, lies in.
    pub fn record_at(&self, address: u64) -> Option<RecordId> {
        let offset = address.checked_sub(self.records.base() as u64)?;
        let line = u32::try_from(offset / 64).ok()?;
        self.records.record_of_line(line).filter(|&record| self.records.is_live(record))
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

    /// The records in use, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = RecordId> {
        (1..=self.records.touched()).filter_map(|number| self.records.live_at(number))
    }

    /// The record a key leads to.
    pub fn find(&self, key: &[u64; W]) -> Option<RecordId> {
        self.records.record_of_line(self.line_of(key))
    }

    /// The address a key leads to, or 0: what a batched lookup would give.
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

    /// Makes one more key lead to a record, `offset_bytes` into it (whole lines).
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
            return Err(TableError::BadParameter {
                what: "offset_bytes",
                value: offset_bytes as u64,
                allowed: "a multiple of 64 inside the record",
            });
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

    /// Makes an alias lead nowhere; false if `key` is no alias of this record.
    pub fn remove_alias(&mut self, record: RecordId, key: &[u64; W]) -> bool {
        if !self.records.is_live(record) || !self.records.take_alias(record, key) {
            return false;
        }
        self.unlink(key);
        true
    }

    /// Removes a flow with all its keys; false if it was not in use. The caller sees to it that
    /// generated code holds its address no longer (between bursts it does not).
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

    /// Removes every flow. Takes time in proportion to their number.
    pub fn clear(&mut self) {
        for number in 1..=self.records.touched() {
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

    /// Does one step of growth, if any is under way or due. Every insertion does one; a caller
    /// that has stopped inserting may call it when idle.
    pub fn maintain(&mut self) {
        match &mut self.growth {
            Growth::None => {
                if self.index.used() < self.index.comfortable() {
                    return;
                }
                // Out of memory is not an error yet: the index takes more until its limit, and
                // the next insertion asks again.
                if let Ok(larger) = Index::new(self.index.buckets() * 2) {
                    self.growth = Growth::Preparing { larger, touched_bytes: 0 };
                }
            }
            Growth::Preparing { larger, touched_bytes } => {
                let region = larger.region_mut();
                for _ in 0..PREPARE_PAGES {
                    region.touch(*touched_bytes);
                    *touched_bytes += PAGE_BYTES;
                }
                if *touched_bytes >= region.bytes()
                    && let Growth::Preparing { larger, .. } =
                        std::mem::replace(&mut self.growth, Growth::None)
                {
                    let smaller = std::mem::replace(&mut self.index, larger);
                    self.growth = Growth::Migrating { smaller, next_bucket: 0 };
                }
            }
            Growth::Migrating { smaller, next_bucket } => {
                for _ in 0..MIGRATE_BUCKETS.min(smaller.buckets() - *next_bucket) {
                    smaller.drain(*next_bucket, |key, line| {
                        // Twice as large and no fuller than the smaller one: it has room.
                        let moved = self.index.insert(self.seed.hash(&key), &key, line);
                        debug_assert!(moved);
                    });
                    *next_bucket += 1;
                }
                if *next_bucket == smaller.buckets() {
                    debug_assert_eq!(smaller.used(), 0);
                    self.growth = Growth::None;
                }
            }
        }
    }

    /// Moves the clock's hand past `budget` record numbers and removes the flows that are due.
    ///
    /// `expiry_ns` reads from a record when it is due (`None`: never). `expired` sees each record
    /// that is due just before it is removed, to give back ports and count. Both get the
    /// record's address. Returns how many were removed. Also does one step of growth.
    pub fn expire(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut expiry_ns: impl FnMut(*mut u8) -> Option<u64>,
        mut expired: impl FnMut(RecordId, *mut u8),
    ) -> usize {
        self.maintain();
        let touched = self.records.touched();
        let mut removed = 0;
        for _ in 0..budget.min(touched as usize) {
            self.hand = if self.hand >= touched { 1 } else { self.hand + 1 };
            let Some(record) = self.records.live_at(self.hand) else { continue };
            let address = self.record_ptr(record);
            if expiry_ns(address).is_some_and(|due_ns| due_ns <= now_ns) {
                expired(record, address);
                self.remove(record);
                removed += 1;
            }
        }
        removed
    }

    /// Among the next `sample` flows from the clock's hand, the one with the smallest age key
    /// (say, the time of its last packet): who goes when the table is full. The hand moves on, so
    /// that repeated calls look at everybody. Does not remove it.
    pub fn oldest(&mut self, sample: usize, mut age_key: impl FnMut(*mut u8) -> u64) -> Option<RecordId> {
        let touched = self.records.touched();
        let mut oldest: Option<(u64, RecordId)> = None;
        let mut seen = 0;
        for _ in 0..touched {
            if seen == sample {
                break;
            }
            self.hand = if self.hand >= touched { 1 } else { self.hand + 1 };
            let Some(record) = self.records.live_at(self.hand) else { continue };
            seen += 1;
            let age = age_key(self.record_ptr(record));
            if oldest.is_none_or(|(least, _)| age < least) {
                oldest = Some((age, record));
            }
        }
        oldest.map(|(_, record)| record)
    }

    /// Looks up `keys[i]` for each `i` in `list` and writes the address it leads to into
    /// `out[i]`, 0 for a miss. Other places of `out` keep their value.
    ///
    /// # Panics
    ///
    /// If an index in `list` lies outside `keys` or `out`.
    #[inline]
    pub fn lookup_batch(&self, keys: &[[u64; W]], list: &[u16], out: &mut [u64]) {
        let len = keys.len().min(out.len());
        assert!(list.iter().all(|&i| usize::from(i) < len), "list points outside keys or out");
        // SAFETY: each index is below the length of both slices, and the stride is that of
        // `keys`.
        unsafe {
            self.lookup_batch_raw(keys.as_ptr().cast(), size_of::<[u64; W]>(), list, out.as_mut_ptr());
        }
    }

    /// As [`Self::lookup_batch`] for keys that lie `stride` bytes apart, at any alignment.
    ///
    /// # Safety
    ///
    /// For each `i` in `list`, `keys + i * stride` must be readable for `W * 8` bytes and
    /// `out + i` writable, aligned to 8.
    pub unsafe fn lookup_batch_raw(&self, keys: *const u8, stride: usize, list: &[u16], out: *mut u64) {
        let mut homes = [const { MaybeUninit::<u32>::uninit() }; STAGE];
        let mut later = [const { MaybeUninit::<u16>::uninit() }; STAGE];
        for part in list.chunks(STAGE) {
            for (home, &i) in homes.iter_mut().zip(part) {
                // SAFETY: the caller vouches for the key at index i.
                let key = unsafe { key_at::<W>(keys, stride, i) };
                let bucket = self.index.home(self.seed.hash(&key));
                self.index.prefetch(bucket);
                home.write(bucket as u32);
            }
            let mut waiting = 0;
            for (at, (home, &i)) in homes.iter().zip(part).enumerate() {
                // SAFETY: the caller vouches for the key at index i.
                let key = unsafe { key_at::<W>(keys, stride, i) };
                // SAFETY: the first loop wrote as many homes as `part` has indices.
                let home = unsafe { home.assume_init() };
                let (line, beyond) = self.index.probe(home as usize, &key);
                // SAFETY: the caller vouches for out[i].
                unsafe { out.add(usize::from(i)).write(self.fetch(line)) };
                // Those that may live further on wait for a pass of their own: which they are
                // is as unpredictable as the keys. `waiting` is at most `at`, below STAGE.
                later[waiting].write(at as u16);
                waiting += usize::from((line == 0) & (beyond != 0));
            }
            for &at in &later[..waiting] {
                // SAFETY: the loop above wrote the first `waiting` places and kept `at` below
                // the length of `part`, for which homes were written.
                let (at, home) = unsafe {
                    let at = usize::from(at.assume_init());
                    (at, homes[at].assume_init() as usize)
                };
                let i = part[at];
                // SAFETY: the caller vouches for the key at index i.
                let key = unsafe { key_at::<W>(keys, stride, i) };
                let line = self.index.find_beyond(home, &key);
                // SAFETY: the caller vouches for out[i].
                unsafe { out.add(usize::from(i)).write(self.fetch(line)) };
            }
            if let Growth::Migrating { .. } = self.growth {
                // SAFETY: as for this function.
                unsafe { self.retry_in_smaller(keys, stride, part, out) };
            }
        }
    }

    /// The address of a line, fetched into the cache; 0 for line 0. (A miss fetches line 0 of
    /// the region, which belongs to no record: cheaper than a branch.)
    #[inline(always)]
    fn fetch(&self, line: u32) -> u64 {
        let address = self.records.address(line);
        prefetch(address);
        if line == 0 { 0 } else { address as u64 }
    }

    /// Second try for keys not yet moved to the larger index.
    ///
    /// # Safety
    ///
    /// As for `lookup_batch_raw`.
    #[cold]
    unsafe fn retry_in_smaller(&self, keys: *const u8, stride: usize, list: &[u16], out: *mut u64) {
        for &i in list {
            // SAFETY: the caller vouches for out[i], which was written just before.
            let found = unsafe { &mut *out.add(usize::from(i)) };
            if *found == 0 {
                // SAFETY: the caller vouches for the key at index i.
                let key = unsafe { key_at::<W>(keys, stride, i) };
                *found = self.fetch(self.line_in_smaller(self.seed.hash(&key), &key));
            }
        }
    }
}

/// The key at an index.
///
/// # Safety
///
/// `keys + i * stride` must be readable for `W * 8` bytes.
#[inline(always)]
unsafe fn key_at<const W: usize>(keys: *const u8, stride: usize, i: u16) -> [u64; W] {
    // SAFETY: passed on to the caller.
    unsafe { keys.add(usize::from(i) * stride).cast::<[u64; W]>().read_unaligned() }
}
