//! The producer's side of a ring.

use super::sync::{Cells, fence};
use super::{Broken, Descriptor, ahead};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// The producer of a ring.
#[derive(Debug)]
pub struct Producer<C> {
    cells: C,
    /// The index behind the last written descriptor.
    written: u32,
    /// The index behind the last published descriptor.
    tail: u32,
    /// The consumer's head when it was last read.
    head: u32,
}

/// The numbers of descriptors that a dead consumer left in its ring: first those that it had taken, then the
/// others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Autopsy {
    /// Descriptors that it had taken and not released.
    pub taken: u32,
    /// Descriptors that it had not taken.
    pub untouched: u32,
}

impl<C: Cells> Producer<C> {
    /// The producer of a new ring, whose words are all 0.
    pub fn new(cells: C) -> Producer<C> {
        Producer::at(cells, 0)
    }

    /// The producer of an empty ring whose indices are all `index`.
    pub fn at(cells: C, index: u32) -> Producer<C> {
        Producer { cells, written: index, tail: index, head: index }
    }

    /// How many descriptors fit now. Reads the consumer's index only if the last known one leaves too little
    /// room.
    ///
    /// # Errors
    ///
    /// If the consumer's index is impossible.
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Result<usize, Broken> {
        let capacity = self.cells.capacity();
        let room = |head: u32, written: u32| (capacity - written.wrapping_sub(head)) as usize;
        let known = room(self.head, self.written);
        if known >= wanted {
            return Ok(known);
        }
        // The consumer has finished with the entries before its head: they may be reused.
        let head = self.cells.head().load(Acquire);
        ahead(head, self.head, self.tail.wrapping_sub(self.head))?;
        self.head = head;
        Ok(room(head, self.written))
    }

    /// Writes as many descriptors as fit, without publishing them.
    ///
    /// # Errors
    ///
    /// If the consumer's index is impossible.
    #[inline]
    pub fn write(&mut self, descriptors: &[Descriptor]) -> Result<usize, Broken> {
        self.write_from(descriptors.iter().copied(), descriptors.len())
    }

    /// The same with descriptors from an iterator, at most `most`. The iterator is not advanced beyond those
    /// that fit.
    ///
    /// # Errors
    ///
    /// If the consumer's index is impossible.
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
            self.cells.write(at, descriptor);
            at = at.wrapping_add(1);
        }
        self.written = at;
        Ok(at.wrapping_sub(first) as usize)
    }

    /// Writes one descriptor without publishing it; false if it does not fit.
    ///
    /// # Errors
    ///
    /// If the consumer's index is impossible.
    #[inline(always)]
    pub fn write_one(&mut self, descriptor: Descriptor) -> Result<bool, Broken> {
        if self.room(1)? == 0 {
            return Ok(false);
        }
        self.cells.write(self.written, descriptor);
        self.written = self.written.wrapping_add(1);
        Ok(true)
    }

    /// Publishes all written descriptors, and returns whether the consumer sleeps and must be woken.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.tail == self.written {
            return false;
        }
        self.tail = self.written;
        self.cells.tail().store(self.tail, Release);
        // A full fence between this store and the load: the consumer stores `asleep` and then reads `tail`
        // with a fence between, so one of the two sides sees the other's store.
        fence(SeqCst);
        self.cells.asleep().load(Relaxed) != 0
    }

    /// Writes and publishes descriptors; returns how many fitted, and whether the consumer must be woken.
    ///
    /// # Errors
    ///
    /// If the consumer's index is impossible.
    #[inline]
    pub fn push(&mut self, descriptors: &[Descriptor]) -> Result<(usize, bool), Broken> {
        let count = self.write(descriptors)?;
        Ok((count, self.publish()))
    }

    /// Published descriptors that the consumer has not released, according to its last known index.
    pub fn in_flight(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// Counts the descriptors that a dead consumer left. With impossible indices, all of them count as taken.
    pub fn autopsy(&mut self) -> Autopsy {
        let published = self.tail.wrapping_sub(self.head);
        let (head, taken) = (self.cells.head().load(Acquire), self.cells.taken().load(Acquire));
        let Ok(released) = ahead(head, self.head, published) else {
            return Autopsy { taken: published, untouched: 0 };
        };
        self.head = head;
        let left = published - released;
        // A consumer that has taken nothing yet may have an old `taken`, but never one behind `head`.
        let taken = ahead(taken, head, left).unwrap_or(left);
        Autopsy { taken, untouched: left - taken }
    }

    /// The descriptors that a dead consumer did not touch, oldest first, as they are in the ring: it may have
    /// overwritten them.
    pub fn untouched(&self, found: Autopsy) -> impl Iterator<Item = Descriptor> + '_ {
        let first = self.tail.wrapping_sub(found.untouched);
        (0..found.untouched).map(move |at| self.cells.read(first.wrapping_add(at)))
    }

    /// The words of the ring.
    pub fn cells(&self) -> &C {
        &self.cells
    }
}

#[cfg(not(loom))]
impl Producer<super::Mapped> {
    /// Wakes a sleeping consumer, after [`Producer::publish`] returned that it sleeps. A system call.
    pub fn wake(&self) {
        let flags = rustix::thread::futex::Flags::empty();
        let _ = rustix::thread::futex::wake(self.cells.tail(), flags, 1);
    }
}
