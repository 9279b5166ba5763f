//! The hash index: from key to the line number of a record.
//!
//! A bucket is one cache line (two for keys of 3 words and more) and contains whole keys, so that a
//! lookup touches only the bucket and the record. Layout for W = 2: 3 keys (48 bytes), 3 line numbers (12
//! bytes, 0 = free slot), a count (4 bytes) of the entries that found this bucket full and are in a later
//! one. A lookup leaves its first bucket only if it has no match there and that count is not zero.
//! Removal lowers the counts again, so there are no tombstones and no decay.
#![expect(unsafe_code, reason = "buckets are raw memory addressed without bounds checks")]

use crate::TableError;
use crate::memory::TableMemory;
use crate::prefetch::prefetch;
use std::hint::select_unpredictable;

/// Bucket array for keys of `W` words. Invariants: `mask + 1` buckets, a power of two, are in the region;
/// a slot is free if and only if its line number is 0; `used` slots are not free.
#[derive(Debug)]
pub(super) struct Index<const W: usize> {
    region: TableMemory,
    mask: usize,
    used: usize,
}

/// The state of growth to a second index.
#[derive(Debug)]
pub(super) enum Growth<const W: usize> {
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

/// The number of buckets from which on an index is large: 64 MiB of them.
const LARGE_BUCKETS: usize = 1 << 20;

impl<const W: usize> Index<W> {
    const BUCKET_BYTES: usize = if W <= 2 { 64 } else { 128 };
    const SLOTS: usize = (Self::BUCKET_BYTES - 4) / (8 * W + 4);
    const LINES_AT: usize = Self::SLOTS * 8 * W;
    const BEYOND_AT: usize = Self::BUCKET_BYTES - 4;

    /// The number of buckets for `keys` at the load where growth begins.
    pub(super) fn buckets_for(keys: usize) -> usize {
        let slots = keys.saturating_mul(2);
        slots.div_ceil(Self::SLOTS).next_power_of_two().max(2)
    }

    pub(super) fn new(buckets: usize) -> Result<Self, TableError> {
        debug_assert!(buckets.is_power_of_two());
        let bytes =
            buckets.checked_mul(Self::BUCKET_BYTES).ok_or(TableError::NoMemory { bytes: usize::MAX })?;
        let region = TableMemory::zeroed(bytes)?;
        region.advise_huge();
        Ok(Self { region, mask: buckets - 1, used: 0 })
    }

    pub(super) fn buckets(&self) -> usize {
        self.mask + 1
    }

    pub(super) fn bytes(&self) -> usize {
        self.region.bytes()
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The number of entries at which growth should begin: half of the slots. At two thirds one entry in
    /// seven is outside its first bucket and a lookup costs a third more; at half it is one in seventeen.
    /// For a large index it is seven tenths, since its lookups wait for memory.
    pub(super) fn comfortable(&self) -> usize {
        Self::comfortable_in(self.buckets())
    }

    fn comfortable_in(buckets: usize) -> usize {
        let slots = buckets * Self::SLOTS;
        if buckets >= LARGE_BUCKETS { slots * 7 / 10 } else { slots / 2 }
    }

    /// Bytes of an index that has grown for that many keys.
    pub(super) fn bytes_for(keys: usize) -> usize {
        let mut buckets = 2;
        while Self::comfortable_in(buckets) <= keys {
            buckets *= 2;
        }
        buckets * Self::BUCKET_BYTES
    }

    /// The maximum number of entries.
    pub(super) fn limit(&self) -> usize {
        self.buckets() * Self::SLOTS * 15 / 16
    }

    pub(super) fn region_mut(&mut self) -> &mut TableMemory {
        &mut self.region
    }

    #[inline(always)]
    pub(super) fn first_slot(&self, hash: u64) -> usize {
        hash as usize & self.mask
    }

    /// Address of a bucket. `bucket` must be at most `mask`; every caller masks.
    #[inline(always)]
    fn at(&self, bucket: usize) -> *mut u8 {
        debug_assert!(bucket <= self.mask);
        self.region.base().wrapping_add(bucket * Self::BUCKET_BYTES)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, bucket: usize) {
        let at = self.at(bucket);
        prefetch(at);
        if Self::BUCKET_BYTES > 64 {
            prefetch(at.wrapping_add(64));
        }
    }

    /// Probes one bucket: the line number (0 = no match) and the count of entries in later buckets.
    /// Without branches, since the predictor cannot know which slot matches.
    #[inline(always)]
    pub(super) fn probe(&self, bucket: usize, key: &[u64; W]) -> (u32, u32) {
        let at = self.at(bucket & self.mask);
        let mut line = 0u32;
        // SAFETY: the bucket lies in the region (masked), all offsets are below BUCKET_BYTES and
        // aligned for their type, and the memory is initialised (zeroed, then written by us).
        unsafe {
            for slot in 0..Self::SLOTS {
                let words = at.add(slot * 8 * W).cast::<u64>();
                let mut differ = 0;
                for (i, word) in key.iter().enumerate() {
                    differ |= *words.add(i) ^ word;
                }
                let here = *at.add(Self::LINES_AT + slot * 4).cast::<u32>();
                // The optimiser would turn a plain `if` into a branch around the load.
                line |= select_unpredictable(differ == 0, here, 0);
            }
            (line, *at.add(Self::BEYOND_AT).cast::<u32>())
        }
    }

    /// Searches from the first bucket on: line number, or 0.
    #[inline]
    pub(super) fn find(&self, hash: u64, key: &[u64; W]) -> u32 {
        let home = self.first_slot(hash);
        let (line, beyond) = self.probe(home, key);
        if line != 0 || beyond == 0 { line } else { self.find_beyond(home, key) }
    }

    /// Continues a lookup after a bucket that overflowed.
    #[inline(never)]
    pub(super) fn find_beyond(&self, home: usize, key: &[u64; W]) -> u32 {
        // The limit on entries leaves free slots, but counts may stay high in an index that is
        // being emptied, so the walk is bounded by one round.
        for step in 1..=self.mask {
            let (line, beyond) = self.probe(home + step, key);
            if line != 0 || beyond == 0 {
                return line;
            }
        }
        0
    }

    /// Adds an entry that is not present. `line` must not be 0.
    pub(super) fn insert(&mut self, hash: u64, key: &[u64; W], line: u32) -> bool {
        debug_assert!(line != 0);
        if self.used >= self.limit() {
            return false;
        }
        let mut bucket = self.first_slot(hash);
        loop {
            if let Some(slot) = (0..Self::SLOTS).find(|&slot| self.line(bucket, slot) == 0) {
                self.put(bucket, slot, key, line);
                self.used += 1;
                return true;
            }
            self.set_beyond(bucket, self.beyond(bucket) + 1);
            bucket = (bucket + 1) & self.mask;
        }
    }

    /// Removes an entry and returns its line number, or 0 if it is not present.
    pub(super) fn remove(&mut self, hash: u64, key: &[u64; W]) -> u32 {
        let mut passed = self.first_slot(hash);
        let Some((bucket, slot)) = self.locate(passed, key) else { return 0 };
        while passed != bucket {
            self.set_beyond(passed, self.beyond(passed) - 1);
            passed = (passed + 1) & self.mask;
        }
        self.clear(bucket, slot)
    }

    /// Removes all entries of a bucket without lowering counts. In an index that is being emptied, a
    /// count that is too high only costs time; one that is too low would hide entries.
    pub(super) fn drain(&mut self, bucket: usize, mut take: impl FnMut([u64; W], u32)) {
        let bucket = bucket & self.mask;
        for slot in 0..Self::SLOTS {
            if self.line(bucket, slot) != 0 {
                let key = self.key(bucket, slot);
                take(key, self.clear(bucket, slot));
            }
        }
    }

    /// As `remove`, for an index that is being emptied.
    pub(super) fn remove_draining(&mut self, hash: u64, key: &[u64; W]) -> u32 {
        let found = self.locate(self.first_slot(hash), key);
        found.map_or(0, |(bucket, slot)| self.clear(bucket, slot))
    }

    /// Frees a slot and returns its line number.
    fn clear(&mut self, bucket: usize, slot: usize) -> u32 {
        let line = self.line(bucket, slot);
        self.put(bucket, slot, &[0; W], 0);
        self.used -= 1;
        line
    }

    fn locate(&self, home: usize, key: &[u64; W]) -> Option<(usize, usize)> {
        for step in 0..=self.mask {
            let bucket = (home + step) & self.mask;
            for slot in 0..Self::SLOTS {
                if self.line(bucket, slot) != 0 && self.key(bucket, slot) == *key {
                    return Some((bucket, slot));
                }
            }
            if self.beyond(bucket) == 0 {
                return None;
            }
        }
        None
    }

    fn line(&self, bucket: usize, slot: usize) -> u32 {
        debug_assert!(slot < Self::SLOTS);
        // SAFETY: see `probe`.
        unsafe { *self.at(bucket).add(Self::LINES_AT + slot * 4).cast::<u32>() }
    }

    fn key(&self, bucket: usize, slot: usize) -> [u64; W] {
        debug_assert!(slot < Self::SLOTS);
        // SAFETY: see `probe`; W words lie at this offset.
        unsafe { *self.at(bucket).add(slot * 8 * W).cast::<[u64; W]>() }
    }

    fn beyond(&self, bucket: usize) -> u32 {
        // SAFETY: see `probe`.
        unsafe { *self.at(bucket).add(Self::BEYOND_AT).cast::<u32>() }
    }

    fn set_beyond(&mut self, bucket: usize, count: u32) {
        // SAFETY: see `probe`; `&mut self` makes this the only access.
        unsafe { *self.at(bucket).add(Self::BEYOND_AT).cast::<u32>() = count }
    }

    fn put(&mut self, bucket: usize, slot: usize, key: &[u64; W], line: u32) {
        debug_assert!(slot < Self::SLOTS);
        let at = self.at(bucket);
        // SAFETY: see `probe`; `&mut self` makes this the only access.
        unsafe {
            *at.add(slot * 8 * W).cast::<[u64; W]>() = *key;
            *at.add(Self::LINES_AT + slot * 4).cast::<u32>() = line;
        }
    }
}
