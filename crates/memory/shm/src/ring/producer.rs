//! The side that puts descriptors in.

use super::sync::{Cells, fence};
use super::{Broken, Descriptor, ahead};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// The producer of a ring.
#[derive(Debug)]
pub struct Producer<C> {
    cells: C,
    /// Behind the last descriptor written.
    written: u32,
    /// Behind the last descriptor published.
    tail: u32,
    /// The consumer's head when it was last read.
    head: u32,
}

/// What a dead consumer left, in indices: what lies before `taken` is gone through as far as anybody knows,
/// what lies behind was not touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Autopsy {
    /// Descriptors that it had taken and not released.
    pub taken: u32,
    /// Descriptors that it had not taken.
    pub untouched: u32,
}

impl<C: Cells> Producer<C> {
    /// Of a new ring, whose words are all 0.
    pub fn new(cells: C) -> Producer<C> {
        Producer::at(cells, 0)
    }

    /// Of a ring without descriptors, whose indices all stand at `index`.
    pub fn at(cells: C, index: u32) -> Producer<C> {
        Producer { cells, written: index, tail: index, head: index }
    }

    /// How many descriptors fit now. Reads the consumer's index only when what was known is not enough.
    ///
    /// # Errors
    ///
    /// When the consumer's index cannot be.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Result<usize, Broken> {
        let capacity = self.cells.capacity();
        let room = |head: u32, written: u32| (capacity - written.wrapping_sub(head)) as usize;
        let known = room(self.head, self.written);
        if known >= wanted {
            return Ok(known);
        }
        // What the consumer released is behind it: its slots may be used again.
        let head = self.cells.head().load(Acquire);
        ahead(head, self.head, self.tail.wrapping_sub(self.head))?;
        self.head = head;
        Ok(room(head, self.written))
    }

    /// Writes as many descriptors as fit behind those that are there; nobody sees them yet.
    ///
    /// # Errors
    ///
    /// When the consumer's index cannot be.
    #[inline]
    pub fn write(&mut self, descriptors: &[Descriptor]) -> Result<usize, Broken> {
        self.write_from(descriptors.iter().copied(), descriptors.len())
    }

    /// The same of descriptors that are made as they are written, at most `most`. No descriptor is made that does not
    /// fit.
    ///
    /// # Errors
    ///
    /// When the consumer's index cannot be.
    #[inline(always)]
    pub fn write_from(
        &mut self,
        descriptors: impl IntoIterator<Item = Descriptor>,
        most: usize,
    ) -> Result<usize, Broken> {
        let room = self.room(most)?.min(most);
        let first = self.written;
        let mut at = first;
        for descriptor in descriptors.into_iter().take(room) {
            let ([one, two], words) = (self.cells.entry(at), descriptor.words());
            one.store(words[0], Relaxed);
            two.store(words[1], Relaxed);
            at = at.wrapping_add(1);
        }
        self.written = at;
        Ok(at.wrapping_sub(first) as usize)
    }

    /// Writes one descriptor behind those that are there, which nobody sees yet; false when it does not fit.
    ///
    /// # Errors
    ///
    /// When the consumer's index cannot be.
    #[inline(always)]
    pub fn write_one(&mut self, descriptor: Descriptor) -> Result<bool, Broken> {
        if self.room(1)? == 0 {
            return Ok(false);
        }
        let ([one, two], words) = (self.cells.entry(self.written), descriptor.words());
        one.store(words[0], Relaxed);
        two.store(words[1], Relaxed);
        self.written = self.written.wrapping_add(1);
        Ok(true)
    }

    /// Shows the consumer all that was written, and says whether it sleeps and is to be woken.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.tail == self.written {
            return false;
        }
        self.tail = self.written;
        self.cells.tail().store(self.tail, Release);
        // Between this store and the load a full fence: a consumer stores `asleep` and then reads `tail`,
        // with a fence between, and one of the two sees what the other stored.
        fence(SeqCst);
        self.cells.asleep().load(Relaxed) != 0
    }

    /// Writes and publishes; how many fitted, and whether the consumer is to be woken.
    ///
    /// # Errors
    ///
    /// When the consumer's index cannot be.
    #[inline]
    pub fn push(&mut self, descriptors: &[Descriptor]) -> Result<(usize, bool), Broken> {
        let count = self.write(descriptors)?;
        Ok((count, self.publish()))
    }

    /// Published descriptors that the consumer has not released, as far as is known.
    pub fn in_flight(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// What a consumer left that will never move again. Indices that cannot be leave everything taken.
    pub fn autopsy(&mut self) -> Autopsy {
        let published = self.tail.wrapping_sub(self.head);
        let (head, taken) = (self.cells.head().load(Acquire), self.cells.taken().load(Acquire));
        let Ok(released) = ahead(head, self.head, published) else {
            return Autopsy { taken: published, untouched: 0 };
        };
        self.head = head;
        let left = published - released;
        // A consumer that took nothing yet may have an old `taken`, never one behind `head`.
        let taken = ahead(taken, head, left).unwrap_or(left);
        Autopsy { taken, untouched: left - taken }
    }

    /// The descriptors that a dead consumer did not touch, oldest first, as they stand in the ring: it may have
    /// written over them.
    pub fn untouched(&self, found: Autopsy) -> impl Iterator<Item = Descriptor> + '_ {
        let first = self.tail.wrapping_sub(found.untouched);
        (0..found.untouched).map(move |at| {
            let [one, two] = self.cells.entry(first.wrapping_add(at));
            Descriptor::from_words([one.load(Relaxed), two.load(Relaxed)])
        })
    }

    /// Where the words are.
    pub fn cells(&self) -> &C {
        &self.cells
    }
}

#[cfg(not(loom))]
impl Producer<super::Mapped> {
    /// Wakes a consumer that sleeps: for when [`Producer::publish`] says so. A system call.
    pub fn wake(&self) {
        let flags = rustix::thread::futex::Flags::empty();
        let _ = rustix::thread::futex::wake(self.cells.tail(), flags, 1);
    }
}
