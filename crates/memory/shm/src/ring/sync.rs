//! The words of a ring: in mapped memory, or in a model that runs every interleaving.

use super::Descriptor;
use std::sync::atomic::Ordering::Relaxed;

#[cfg(all(test, loom))]
pub(super) use loom::sync::Arc;
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32 as Word32, AtomicU64, fence};
#[cfg(all(test, not(loom)))]
pub(super) use std::sync::Arc;
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32 as Word32, AtomicU64, fence};

/// A 32-bit word of a ring.
pub type Word = Word32;
/// A 64-bit word of a ring.
pub type Word64 = AtomicU64;

/// The words of a ring. Other processes that map them may write any value at any time.
pub trait Cells {
    /// Descriptors that fit: a power of two, at most [`super::MOST_CLAIMS`]. Never changes.
    fn capacity(&self) -> u32;
    /// The index behind the last published descriptor. Written by the producer.
    fn tail(&self) -> &Word;
    /// The index behind the last released descriptor. Written by the consumer.
    fn head(&self) -> &Word;
    /// The index behind the last taken descriptor. Written by the consumer.
    fn taken(&self) -> &Word;
    /// Not 0 while the consumer sleeps, or is about to. Set by the consumer, cleared by either.
    fn asleep(&self) -> &Word;
    /// The entry of an index, taken modulo the capacity.
    fn entry(&self, index: u32) -> [&Word64; 2];

    /// Reads the descriptor in an entry, each word once.
    #[inline(always)]
    fn read(&self, index: u32) -> Descriptor {
        Descriptor::from_words(self.entry(index).map(|word| word.load(Relaxed)))
    }

    /// Writes a descriptor into an entry.
    #[inline(always)]
    fn write(&self, index: u32, descriptor: Descriptor) {
        let ([one, two], words) = (self.entry(index), descriptor.words());
        one.store(words[0], Relaxed);
        two.store(words[1], Relaxed);
    }
}
