//! Which neighbours are wanted, as far as a packet thread needs to know: what it hears of others it does not tell.
//!
//! A set of bits by hash: it may say yes for a few that nobody wants, and never no for one that is. The control side
//! keeps the counts, so that bits go when the last neighbour behind them does.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits; four for each neighbour of a full table.
const BITS: usize = 1 << 14;

/// The bits.
#[derive(Debug)]
pub struct Wanted {
    bits: Box<[AtomicU64]>,
    /// Nobody outside can choose addresses that share a bit.
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

    /// Whether somebody may want to know of a neighbour.
    pub fn may_be(&self, address: IpAddr) -> bool {
        let bit = self.bit(address);
        self.bits.get(bit / 64).is_some_and(|word| word.load(Relaxed) >> (bit % 64) & 1 != 0)
    }
}

/// How many neighbours are behind each bit.
#[derive(Debug)]
pub(super) struct Counts(Vec<u16>);

impl Default for Counts {
    fn default() -> Counts {
        Counts(vec![0; BITS])
    }
}

impl Counts {
    /// One more; the table holds fewer than a count can.
    pub(super) fn add(&mut self, wanted: &Wanted, address: IpAddr) {
        let bit = wanted.bit(address);
        self.0[bit] += 1;
        wanted.bits[bit / 64].fetch_or(1 << (bit % 64), Relaxed);
    }

    /// One less.
    pub(super) fn remove(&mut self, wanted: &Wanted, address: IpAddr) {
        let bit = wanted.bit(address);
        self.0[bit] = self.0[bit].saturating_sub(1);
        if self.0[bit] == 0 {
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
