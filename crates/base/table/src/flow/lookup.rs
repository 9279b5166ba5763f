//! Batched lookup, in stages.
//!
//! All keys of a stage are hashed and their buckets fetched before any bucket is read, and records are
//! fetched as soon as they are known, so that cache misses overlap. The only branch that depends on a key
//! is that for keys outside their first bucket; a second pass processes them.
#![expect(unsafe_code, reason = "reads keys and writes results at the caller's addresses")]

use super::FlowTable;
use super::index::Growth;
use crate::prefetch::prefetch;
use std::mem::MaybeUninit;

/// Keys in flight at once in a batched lookup: the line fill buffers and the first-level cache of current
/// cores can handle that many without evicting lines that were just fetched.
const STAGE: usize = 64;

impl<const W: usize> FlowTable<W> {
    /// Looks up `keys[i]` for each `i` in `list` and writes the address it leads to into `out[i]`, 0 for
    /// a miss. Other items of `out` keep their value.
    ///
    /// # Panics
    ///
    /// If an index in `list` is outside `keys` or `out`.
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

    /// As [`Self::lookup_batch`] for keys at a distance of `stride` bytes, at any alignment.
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
                let bucket = self.index.first_slot(self.seed.hash(&key));
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
                // Keys that may be in a later bucket wait for the second pass: which ones is as
                // unpredictable as the keys. `waiting` is at most `at`, below STAGE.
                later[waiting].write(at as u16);
                waiting += usize::from((line == 0) & (beyond != 0));
            }
            for &at in &later[..waiting] {
                // SAFETY: the loop above wrote the first `waiting` places, with values below
                // the length of `part`, and homes were written for all of `part`.
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

    /// The address of a line, fetched into the cache; 0 for line 0. (A miss fetches line 0 of the region,
    /// which belongs to no record: cheaper than a branch.)
    #[inline(always)]
    fn fetch(&self, line: u32) -> u64 {
        let address = self.records.address(line);
        prefetch(address);
        if line == 0 { 0 } else { address as u64 }
    }

    /// Second lookup for keys that were not moved to the larger index yet.
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
