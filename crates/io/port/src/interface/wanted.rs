//! The set of neighbours whose messages a packet thread queues; it ignores messages of all others.
//!
//! A set of bits by hash: it may contain a few neighbours that are not in the table, and it contains every
//! one that is. The control side counts the neighbours of each bit, and clears a bit with its last neighbour.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of bits: four for each neighbour of a full table.
const BITS: usize = 1 << 14;

/// The set of bits.
#[derive(Debug)]
pub struct Wanted {
    bits: Box<[AtomicU64]>,
    /// A random seed, so that other stations cannot choose addresses that share a bit.
    seed: RandomState,
}

impl Default for Wanted {
    fn default() -> Wanted {
        let bits = (0..BITS / 64).map(|_| AtomicU64::new(0)).collect();
        Wanted { bits, seed: RandomState::new() }
    }
}

impl Wanted {
    fn bit(&self, address: IpAddr) -> usize {
        self.seed.hash_one(address) as usize % BITS
    }

    /// Whether a neighbour may be in the table.
    pub fn may_be(&self, address: IpAddr) -> bool {
        let bit = self.bit(address);
        self.bits.get(bit / 64).is_some_and(|word| word.load(Relaxed) >> (bit % 64) & 1 != 0)
    }
}

/// The number of neighbours of each bit that has any.
#[derive(Debug, Default)]
pub(super) struct Counts(HashMap<usize, u16>);

impl Counts {
    /// Adds a neighbour. No count overflows: the table holds fewer neighbours.
    pub(super) fn add(&mut self, wanted: &Wanted, address: IpAddr) {
        let bit = wanted.bit(address);
        *self.0.entry(bit).or_default() += 1;
        wanted.bits[bit / 64].fetch_or(1 << (bit % 64), Relaxed);
    }

    /// Removes a neighbour.
    pub(super) fn remove(&mut self, wanted: &Wanted, address: IpAddr) {
        let bit = wanted.bit(address);
        let left = self.0.get(&bit).map_or(0, |count| count - 1);
        if left > 0 {
            self.0.insert(bit, left);
        } else {
            self.0.remove(&bit);
            wanted.bits[bit / 64].fetch_and(!(1 << (bit % 64)), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_never_missed_and_what_is_not_mostly_is() {
        let (wanted, mut counts) = (Wanted::default(), Counts::default());
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        (0..4096).for_each(|number| counts.add(&wanted, address(number)));
        assert!((0..4096).all(|number| wanted.may_be(address(number))));
        let others = (10_000..20_000).filter(|number| wanted.may_be(address(*number))).count();
        assert!(others < 4_000, "{others} of 10,000");
        (0..4096).for_each(|number| counts.remove(&wanted, address(number)));
        assert!((0..20_000).all(|number| !wanted.may_be(address(number))));
    }
}
