//! What gates need of a SAT solver.

use std::ops::Not;
use std::time::Instant;

/// A bit, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Bit(u32);

impl Bit {
    /// The bit with this number, or its negation.
    pub fn new(number: u32, is_plain: bool) -> Bit {
        Bit(number * 2 + u32::from(!is_plain))
    }

    /// The number of the bit that this is, or is the negation of.
    pub fn number(self) -> u32 {
        self.0 / 2
    }

    /// Whether it is no negation.
    pub fn is_plain(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

impl Not for Bit {
    type Output = Bit;

    fn not(self) -> Bit {
        Bit(self.0 ^ 1)
    }
}

/// A SAT solver to which clauses are added between questions.
pub trait Solver {
    /// A further free bit: they are numbered from 0.
    fn fresh(&mut self) -> Bit;

    /// Adds the clause that at least one of the bits is 1.
    fn clause(&mut self, bits: &[Bit]);

    /// The number of clauses.
    fn clauses(&self) -> u64;

    /// Whether all of these bits can be 1 at once; `None` where that is not decided until then.
    fn solve(&mut self, bits: &[Bit], until: Instant) -> Option<bool>;

    /// A bit of the solution that was found last, where it matters.
    fn value(&self, bit: Bit) -> Option<bool>;
}
