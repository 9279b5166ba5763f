//! A ring in mapped memory.
//!
//! Layout, from the ring's start: the producer's line (`tail`), the consumer's line (`head`, `taken`), the
//! line of sleep (`asleep`), a spare line, then the entries of 16 bytes each.
#![expect(unsafe_code, reason = "makes atomics of mapped memory")]

use super::MOST_CLAIMS;
use super::sync::{Cells, Word, Word64};
use std::ptr::NonNull;

/// Bytes in front of a ring's entries.
pub const RING_HEADER_BYTES: usize = 256;
const TAIL: usize = 0;
const HEAD: usize = 64;
const TAKEN: usize = 68;
const ASLEEP: usize = 128;
const ENTRY_BYTES: usize = 16;

/// Bytes of a ring for so many claims: `None` unless they are a power of two, at most [`MOST_CLAIMS`].
pub fn ring_bytes(claims: u32) -> Option<usize> {
    let fits = claims.is_power_of_two() && claims <= MOST_CLAIMS;
    fits.then(|| RING_HEADER_BYTES + claims as usize * ENTRY_BYTES)
}

/// The words of a ring in memory that stays mapped, and that other processes may write.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    mask: u32,
}

// SAFETY: only atomics are ever made of the memory, and they may be used from any thread.
unsafe impl Send for Mapped {}

impl Mapped {
    /// A ring for `claims` claims. `None` when there is no such ring, or `start` is not at a cache line.
    ///
    /// # Safety
    ///
    /// From `start` on, [`ring_bytes`] bytes are mapped for reading and writing for as long as the ring or a
    /// copy of it is used, from a file that cannot shrink; this process has no reference to them that is
    /// not atomic.
    pub unsafe fn new(start: NonNull<u8>, claims: u32) -> Option<Mapped> {
        ring_bytes(claims)?;
        (start.as_ptr() as usize).is_multiple_of(64).then_some(Mapped { start, mask: claims - 1 })
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &Word {
        // SAFETY: inside the header, aligned, mapped while `self` is used (the caller of `new`), and only
        // ever seen as an atomic.
        unsafe { Word::from_ptr(self.start.as_ptr().add(at).cast()) }
    }
}

impl Cells for Mapped {
    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn tail(&self) -> &Word {
        self.word(TAIL)
    }

    #[inline(always)]
    fn head(&self) -> &Word {
        self.word(HEAD)
    }

    #[inline(always)]
    fn taken(&self) -> &Word {
        self.word(TAKEN)
    }

    #[inline(always)]
    fn asleep(&self) -> &Word {
        self.word(ASLEEP)
    }

    #[inline(always)]
    fn entry(&self, index: u32) -> [&Word64; 2] {
        let at = RING_HEADER_BYTES + (index & self.mask) as usize * ENTRY_BYTES;
        // SAFETY: the masked index lies among the entries, which are mapped while `self` is used, aligned to
        // 16 bytes, and only ever seen as atomics.
        [at, at + 8].map(|at| unsafe { Word64::from_ptr(self.start.as_ptr().add(at).cast()) })
    }
}
