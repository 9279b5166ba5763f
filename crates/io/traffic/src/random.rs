//! The random numbers of generated traffic.
//!
//! The same seed generates the same bytes on every machine and in every later version. Therefore the
//! generator is a named one (PCG XSL 128/64 MCG) whose output never changes, and integers are drawn from its
//! raw output here: a library's range sampling does not guarantee the same numbers. Each purpose (sizes,
//! flows, payload, gaps) has its own stream: a change of frame sizes does not change the flows.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A repeatable stream of random numbers for one purpose.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) Pcg64Mcg);

/// The purpose of a stream; each purpose draws from a stream of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Sizes = 1,
    Flows = 2,
    Gaps = 3,
    Rules = 4,
}

impl Random {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Pcg64Mcg::seed_from_u64(mix(seed ^ mix(purpose as u64))))
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`; 0 if `bound` is 0. The bias of the multiplication is below bound / 2^64, far
    /// below any measurable effect on traffic.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// A bijective mixer of 64 bits (the finalizer of SplitMix64).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A keyed permutation of `0..size`: distinct inputs have distinct outputs, in no apparent order.
///
/// A balanced Feistel network over the next even number of bits, applied repeatedly until the value is in the
/// range (four times on average at worst). Flow number `i` can thus be computed and need not be stored,
/// however many flows there are.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    size: u128,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// `size` is at most 2^126 (traffic needs 2^96).
    pub(crate) fn new(size: u128, key: u64) -> Self {
        let bits = 128 - size.saturating_sub(1).leading_zeros();
        Self { size, half_bits: bits.div_ceil(2).clamp(1, 63), key }
    }

    /// The permuted position of `index` (which is below `size`).
    pub(crate) fn apply(&self, index: u128) -> u128 {
        let mut value = index;
        loop {
            value = self.round_trip(value);
            if value < self.size {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u128) -> u128 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut left = ((value >> self.half_bits) as u64) & mask;
        let mut right = (value as u64) & mask;
        for round in 0..4u64 {
            let next = left ^ (mix(right ^ self.key.rotate_left(round as u32 * 16)) & mask);
            left = right;
            right = next;
        }
        (u128::from(left) << self.half_bits) | u128::from(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permutation_hits_every_value_once(size in 1u128..5_000, key: u64) {
            let permutation = Permutation::new(size, key);
            let mut seen = vec![false; size as usize];
            for index in 0..size {
                let value = permutation.apply(index) as usize;
                prop_assert!(!seen[value]);
                seen[value] = true;
            }
        }

        #[test]
        fn between_stays_inside(low: u32, span: u32, seed: u64) {
            let mut random = Random::new(seed, Purpose::Sizes);
            let (low, high) = (u64::from(low), u64::from(low) + u64::from(span));
            let value = random.between(low, high);
            prop_assert!((low..=high).contains(&value));
        }
    }

    #[test]
    fn streams_differ_and_repeat() {
        let mut sizes = Random::new(1, Purpose::Sizes);
        let mut flows = Random::new(1, Purpose::Flows);
        let mut again = Random::new(1, Purpose::Sizes);
        let first = sizes.next_u64();
        assert_ne!(first, flows.next_u64());
        assert_eq!(first, again.next_u64());
    }
}
