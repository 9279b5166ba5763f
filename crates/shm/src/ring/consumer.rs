//! The side that takes claims out.

use super::sync::{Cells, fence};
use super::{Broken, Claim, ahead};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;

/// The consumer of a ring.
#[derive(Debug)]
pub struct Consumer<C> {
    cells: C,
    /// Behind the last claim released.
    head: u32,
    /// Behind the last claim taken.
    taken: u32,
    /// The producer's tail when it was last read.
    tail: u32,
}

impl<C: Cells> Consumer<C> {
    /// Of a new ring, whose words are all 0.
    pub fn new(cells: C) -> Consumer<C> {
        Consumer::at(cells, 0)
    }

    /// Of a ring without claims, whose indices all stand at `index`.
    pub fn at(cells: C, index: u32) -> Consumer<C> {
        Consumer { cells, head: index, taken: index, tail: index }
    }

    /// Takes the next claims, as many as there are and `out` has room for. From here on they are this
    /// consumer's to lose; [`Consumer::release`] ends that.
    ///
    /// # Errors
    ///
    /// When the producer's index cannot be.
    #[inline]
    pub fn take(&mut self, out: &mut [Claim]) -> Result<usize, Broken> {
        let mut there = self.tail.wrapping_sub(self.taken) as usize;
        if there < out.len() {
            // What the producer wrote stands in front of it.
            let tail = self.cells.tail().load(Acquire);
            // It cannot go back, nor past what is not released yet.
            let most = self.cells.capacity() - self.tail.wrapping_sub(self.head);
            there += ahead(tail, self.tail, most)? as usize;
            self.tail = tail;
        }
        let count = there.min(out.len());
        if count == 0 {
            return Ok(0);
        }
        for (claim, at) in out[..count].iter_mut().zip(0u32..) {
            let [first, second] = self.cells.entry(self.taken.wrapping_add(at));
            *claim = Claim::from_words([first.load(Relaxed), second.load(Relaxed)]);
        }
        self.taken = self.taken.wrapping_add(count as u32);
        self.cells.taken().store(self.taken, Relaxed);
        // Whoever is killed is so between two instructions: in their order this store comes before all that
        // is done to the packets, if the compiler leaves it there.
        compiler_fence(SeqCst);
        Ok(count)
    }

    /// Gives up the oldest `count` claims that were taken: each packet stands in another ring by now.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let held = self.taken.wrapping_sub(self.head);
        self.head = self.head.wrapping_add(u32::try_from(count).unwrap_or(held).min(held));
        self.cells.head().store(self.head, Release);
    }

    /// Claims taken and not released.
    pub fn held(&self) -> usize {
        self.taken.wrapping_sub(self.head) as usize
    }

    /// Says that this consumer is about to sleep. True when it may: then whoever publishes next is told to
    /// wake it. False when there is something to take.
    pub fn doze(&mut self) -> bool {
        self.cells.asleep().store(1, Relaxed);
        // See `Producer::publish`.
        fence(SeqCst);
        if self.cells.tail().load(Acquire) == self.taken {
            return true;
        }
        self.wake();
        false
    }

    /// Says that this consumer is awake.
    pub fn wake(&mut self) {
        self.cells.asleep().store(0, Relaxed);
    }

    /// Where the words are.
    pub fn cells(&self) -> &C {
        &self.cells
    }
}

#[cfg(not(loom))]
impl Consumer<super::Mapped> {
    /// Gives up the processor until there is something to take, for so long at most. The kernel wakes a sleeper when
    /// the producer asks it to ([`super::Producer::wake`]).
    pub fn sleep(&mut self, most: std::time::Duration) {
        if !self.doze() {
            return;
        }
        let timeout = rustix::thread::futex::Timespec::try_from(most).ok();
        // Whatever ends the wait, the caller looks again. The word is shared with another process: no private futex.
        let flags = rustix::thread::futex::Flags::empty();
        let _ = rustix::thread::futex::wait(self.cells.tail(), flags, self.taken, timeout.as_ref());
        self.wake();
    }
}
