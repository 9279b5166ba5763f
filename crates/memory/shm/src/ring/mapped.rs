//! A ring in mapped memory.
//!
//! Layout, from the ring's start: the producer's line (`tail`), the consumer's line (`head`, `taken`), the
//! line of the sleep flag (`asleep`), a spare line, then the entries of 16 bytes each.
#![expect(unsafe_code, reason = "makes atomics of mapped memory")]

use super::MOST_CLAIMS;
use super::mapping::Mapping;
use super::sync::{Cells, Word, Word64};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes in front of a ring's entries.
pub const RING_HEADER_BYTES: usize = 256;
const TAIL: usize = 0;
const HEAD: usize = 64;
const TAKEN: usize = 68;
const ASLEEP: usize = 128;
const ENTRY_BYTES: usize = 16;

/// Bytes of a ring for this number of descriptors: `None` unless it is a power of two, at most
/// [`MOST_CLAIMS`].
pub fn ring_bytes(descriptors: u32) -> Option<usize> {
    let fits = descriptors.is_power_of_two() && descriptors <= MOST_CLAIMS;
    fits.then(|| RING_HEADER_BYTES + descriptors as usize * ENTRY_BYTES)
}

/// The words of a ring in memory that other processes may write.
#[derive(Clone, Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    mask: u32,
    /// Keeps the memory of `start` mapped.
    _mapping: Arc<Mapping>,
}

// SAFETY: all accesses to the memory are atomic, and atomics may be used from any thread.
unsafe impl Send for Mapped {}

impl Mapped {
    /// A ring whose [`ring_bytes`] bytes from `start` on are in the mapping; `descriptors` is a valid number
    /// of descriptors.
    pub(super) fn new(start: NonNull<u8>, descriptors: u32, mapping: Arc<Mapping>) -> Mapped {
        Mapped { start, mask: descriptors - 1, _mapping: mapping }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &Word {
        // SAFETY: inside the header, aligned (rings start at cache lines), mapped as long as `self` lives,
        // and only ever seen as an atomic.
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
        // SAFETY: the masked index lies among the entries, which are mapped as long as `self` lives, aligned
        // to 16 bytes, and only ever seen as atomics.
        unsafe {
            let entry = self.start.as_ptr().add(at);
            [Word64::from_ptr(entry.cast()), Word64::from_ptr(entry.add(8).cast())]
        }
    }
}
