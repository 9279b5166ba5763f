//! Somebody who is neither side of a ring, and wants to know what goes through it.

use super::sync::Cells;
use super::{Consumer, Descriptor};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Looks until indices that cannot be are believed.
const LOOKS: usize = 3;

/// Looks at a ring between two peers, neither of which is trusted.
#[derive(Debug)]
pub struct Witness<C> {
    cells: C,
    /// Behind the last descriptor that the consumer was seen to have taken.
    taken: u32,
    /// Behind the last descriptor that was seen to be published.
    tail: u32,
}

/// What was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Descriptors that the consumer has taken since the last look.
    pub passed: u32,
    /// Descriptors that are published and not taken.
    pub pending: u32,
}

/// Whose index cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Culprit {
    /// The producer's.
    Producer,
    /// The consumer's.
    Consumer,
}

impl<C: Cells> Witness<C> {
    /// Of a ring without descriptors, whose indices all stand at `index`.
    pub fn at(cells: C, index: u32) -> Witness<C> {
        Witness { cells, taken: index, tail: index }
    }

    /// Looks.
    ///
    /// # Errors
    ///
    /// When an index went back, or past what is there.
    #[inline]
    pub fn look(&mut self) -> Result<Observed, Culprit> {
        let mut seen = self.read();
        for _ in 0..LOOKS {
            // Between two of these the writer may have gone round, and the reader behind it.
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
        // One that moved its head alone would have its producer write past what it is seen to have.
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

    /// The consumer's head, what it took, and the tail, in this order: what was released was taken before, and what was
    /// taken was published before.
    #[inline(always)]
    fn read(&self) -> [u32; 3] {
        let head = self.cells.head().load(Acquire);
        let taken = self.cells.taken().load(Acquire);
        [head, taken, self.cells.tail().load(Acquire)]
    }

    /// Whether the consumer has taken and released all that was published when it was last looked.
    pub fn is_drained(&self) -> bool {
        self.tail == self.taken && self.cells.head().load(Acquire) == self.taken
    }

    /// The consumer's side from here on: the one that was will never move again.
    pub fn succeed(self) -> Consumer<C> {
        Consumer::succeed(self.cells, self.taken)
    }
}

/// The descriptors that stand in a ring: published and not released, as far as its words say. For whoever looks while
/// both sides move: some of them may have gone on meanwhile.
pub fn standing<C: Cells>(cells: &C) -> impl Iterator<Item = Descriptor> + '_ {
    // The consumer's index first: then nothing between the two is missed.
    let head = cells.head().load(Acquire);
    let count = cells.tail().load(Acquire).wrapping_sub(head).min(cells.capacity());
    (0..count).map(move |at| {
        let [one, two] = cells.entry(head.wrapping_add(at));
        Descriptor::from_words([one.load(Relaxed), two.load(Relaxed)])
    })
}
