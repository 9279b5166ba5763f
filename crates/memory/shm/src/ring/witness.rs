//! Observes a ring between two other processes and counts the descriptors that pass.

use super::sync::Cells;
use super::{Consumer, Descriptor};
use std::sync::atomic::Ordering::Acquire;

/// How often impossible indices are read again before they count as an error.
const LOOKS: usize = 3;

/// The observer of a ring between two peers, neither of which is trusted.
#[derive(Debug)]
pub struct Witness<C> {
    cells: C,
    /// The index behind the last descriptor that the consumer has taken, as last read.
    taken: u32,
    /// The index behind the last published descriptor, as last read.
    tail: u32,
}

/// The result of an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Descriptors that the consumer has taken since the last observation.
    pub passed: u32,
    /// Descriptors that are published and not taken.
    pub pending: u32,
}

/// The peer whose index is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Culprit {
    /// The producer's.
    Producer,
    /// The consumer's.
    Consumer,
}

impl<C: Cells> Witness<C> {
    /// The observer of an empty ring whose indices are all `index`.
    pub fn at(cells: C, index: u32) -> Witness<C> {
        Witness { cells, taken: index, tail: index }
    }

    /// Reads the indices and counts.
    ///
    /// # Errors
    ///
    /// If an index moved back, or beyond the published descriptors.
    #[inline]
    pub fn look(&mut self) -> Result<Observed, Culprit> {
        let mut seen = self.read();
        for _ in 0..LOOKS {
            // Between two of the reads, the producer may have filled the ring again, and the consumer emptied
            // it.
            if seen[2].wrapping_sub(seen[1]) <= self.cells.capacity() {
                break;
            }
            seen = self.read();
        }
        let [head, taken, tail] = seen;
        let forward = |to: u32, from: u32| to.wrapping_sub(from) as i32 >= 0;
        if !forward(tail, self.tail) {
            return Err(Culprit::Producer);
        }
        // A consumer that advanced its head alone would let its producer write past the entries that it has
        // taken.
        if !forward(taken, self.taken) || !forward(tail, taken) || !forward(taken, head) {
            return Err(Culprit::Consumer);
        }
        let (passed, pending) = (taken.wrapping_sub(self.taken), tail.wrapping_sub(taken));
        if pending > self.cells.capacity() {
            return Err(Culprit::Producer);
        }
        (self.taken, self.tail) = (taken, tail);
        Ok(Observed { passed, pending })
    }

    /// The consumer's head, its taken index, and the tail, in this order: a released descriptor was taken
    /// before, and a taken one was published before.
    #[inline(always)]
    fn read(&self) -> [u32; 3] {
        let head = self.cells.head().load(Acquire);
        let taken = self.cells.taken().load(Acquire);
        [head, taken, self.cells.tail().load(Acquire)]
    }

    /// Whether the consumer has taken and released all descriptors that were published at the last
    /// observation.
    pub fn is_drained(&self) -> bool {
        self.tail == self.taken && self.cells.head().load(Acquire) == self.taken
    }

    /// Takes the consumer's side of the ring, whose former consumer is dead.
    pub fn succeed(self) -> Consumer<C> {
        Consumer::succeed(self.cells, self.taken)
    }
}

/// The descriptors in a ring that are published and not released, according to its indices. While both sides
/// are running, some of them may have been released in the meantime.
pub fn standing<C: Cells>(cells: &C) -> impl Iterator<Item = Descriptor> + '_ {
    // The consumer's index is read first, so that no descriptor between the two is missed.
    let head = cells.head().load(Acquire);
    let count = cells.tail().load(Acquire).wrapping_sub(head).min(cells.capacity());
    (0..count).map(move |at| cells.read(head.wrapping_add(at)))
}
