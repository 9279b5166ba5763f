//! Pools of external ports for address translation.
//!
//! A pool has the ports L to H of one external address and protocol. A bitmap each for the even and the
//! odd ports (RFC 4787 REQ-4 requires parity preservation), with a second bitmap over its words, finds
//! the next free port from any port on in a constant number of steps.
//!
//! Order: `Sequential` allocates ports in turn, so that the time before a freed port is reused is as long
//! as possible; `Random` starts each search at a random port (RFC 6056, algorithm 1), so that a port is
//! hard to guess.
//!
//! Not here: mappings, per-host limits, timeouts.

use crate::{Random, TableError};

/// The port at which the search for a free port starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortOrder {
    /// The port after the last allocated one.
    Sequential,
    /// A random port; the seed makes a run repeatable.
    Random {
        /// Seed of the sequence.
        seed: u64,
    },
}

/// The property of the internal port that the external port should keep (RFC 4787 section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preserve {
    /// Nothing.
    Nothing,
    /// The parity, as long as such ports are free (REQ-4).
    Parity,
    /// The port itself if it is free, else its parity.
    Port,
}

/// Ports of one parity. Invariant: bit `i` of `words` is set if `first + 2 * i` is free; bit `w`
/// of `summary` if `words[w]` is not 0.
#[derive(Debug)]
struct Half {
    words: Vec<u64>,
    summary: Vec<u64>,
    count: u32,
    free: u32,
}

impl Half {
    fn all_free(count: u32) -> Self {
        let mut half = Self {
            words: vec![0; count.div_ceil(64) as usize],
            summary: vec![0; count.div_ceil(64 * 64) as usize],
            count,
            free: 0,
        };
        for index in 0..count {
            half.set(index);
        }
        half
    }

    fn is_free(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    fn set(&mut self, index: u32) {
        let word = index as usize / 64;
        self.words[word] |= 1 << (index % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.free += 1;
    }

    fn take(&mut self, index: u32) {
        let word = index as usize / 64;
        self.words[word] &= !(1 << (index % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.free -= 1;
    }

    /// First free index at or after `from`, else from the start on.
    fn next(&self, from: u32) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        self.next_until_end(from).or_else(|| self.next_until_end(0))
    }

    fn next_until_end(&self, from: u32) -> Option<u32> {
        let word = from as usize / 64;
        let bits = self.words.get(word)? & (u64::MAX << (from % 64));
        if bits != 0 {
            return Some(word as u32 * 64 + bits.trailing_zeros());
        }
        // At most 8 words of summary cover all ports of a parity.
        let mut mask = (u64::MAX << (word % 64)) << 1;
        for (at, summary) in self.summary.iter().enumerate().skip(word / 64) {
            let bits = summary & mask;
            if bits != 0 {
                let word = at * 64 + bits.trailing_zeros() as usize;
                return Some(word as u32 * 64 + self.words[word].trailing_zeros());
            }
            mask = u64::MAX;
        }
        None
    }
}

/// The free and used ports of one external address and protocol.
#[derive(Debug)]
pub struct PortPool {
    low: u16,
    high: u16,
    /// Ports with the parity of `low`, and the others.
    halves: [Half; 2],
    order: PortOrder,
    /// Offset from `low` at which a sequential search continues.
    cursor: u32,
    random: Random,
}

impl PortPool {
    /// A pool of the ports `low` to `high`, all free.
    ///
    /// # Errors
    ///
    /// [`TableError::BadParameter`] if `low` exceeds `high`.
    pub fn new(low: u16, high: u16, order: PortOrder) -> Result<Self, TableError> {
        if low > high {
            return Err(TableError::bad("low port", low, "up to the high port"));
        }
        let count = u32::from(high - low) + 1;
        Ok(Self {
            low,
            high,
            halves: [Half::all_free(count.div_ceil(2)), Half::all_free(count / 2)],
            order,
            cursor: 0,
            random: Random::new(match order {
                PortOrder::Sequential => 0,
                PortOrder::Random { seed } => seed,
            }),
        })
    }

    /// Ports in the pool.
    pub fn len(&self) -> usize {
        self.halves.iter().map(|half| half.count as usize).sum()
    }

    /// A pool has at least one port.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ports not in use.
    pub fn free_ports(&self) -> usize {
        self.halves.iter().map(|half| half.free as usize).sum()
    }

    /// Whether a port belongs to the pool and is in use.
    pub fn is_used(&self, port: u16) -> bool {
        self.place(port).is_some_and(|(half, index)| !self.halves[half].is_free(index))
    }

    /// Takes a port for a mapping from `internal`.
    ///
    /// # Errors
    ///
    /// [`TableError::PortsExhausted`].
    pub fn allocate(&mut self, internal: u16, preserve: Preserve) -> Result<u16, TableError> {
        if preserve == Preserve::Port && self.reserve(internal) {
            return Ok(internal);
        }
        let from = match self.order {
            PortOrder::Sequential => self.cursor,
            PortOrder::Random { .. } => self.random.below(self.len() as u64) as u32,
        };
        let wanted = usize::from((internal ^ self.low) & 1);
        let found = match preserve {
            // The first free port of either parity, in the search order.
            Preserve::Nothing => {
                let distance = |&offset: &u32| {
                    if offset >= from { offset - from } else { offset + (1 << 16) - from }
                };
                let either = [self.next(0, from), self.next(1, from)];
                either.into_iter().flatten().min_by_key(distance)
            }
            Preserve::Parity | Preserve::Port => {
                self.next(wanted, from).or_else(|| self.next(1 - wanted, from))
            }
        };
        let Some(offset) = found else {
            return Err(TableError::PortsExhausted { low: self.low, high: self.high });
        };
        self.halves[(offset % 2) as usize].take(offset / 2);
        self.cursor = if offset as usize + 1 < self.len() { offset + 1 } else { 0 };
        // Below `high`, as the offset names a port of the pool.
        Ok(self.low + offset as u16)
    }

    /// Allocates exactly this port; false if it is used or not in the pool.
    pub fn reserve(&mut self, port: u16) -> bool {
        let Some((half, index)) = self.place(port) else { return false };
        let free = self.halves[half].is_free(index);
        if free {
            self.halves[half].take(index);
        }
        free
    }

    /// Frees a port; false if it was not in use or is not in this pool.
    pub fn free(&mut self, port: u16) -> bool {
        let Some((half, index)) = self.place(port) else { return false };
        let used = !self.halves[half].is_free(index);
        if used {
            self.halves[half].set(index);
        }
        used
    }

    fn place(&self, port: u16) -> Option<(usize, u32)> {
        (self.low..=self.high).contains(&port).then(|| {
            let offset = u32::from(port - self.low);
            ((offset % 2) as usize, offset / 2)
        })
    }

    /// Offset of the next free port of a half, from an offset on.
    fn next(&self, half: usize, from: u32) -> Option<u32> {
        // First index of this half at or after the offset.
        let index = (from + 1).saturating_sub(half as u32) / 2;
        self.halves[half].next(index).map(|index| index * 2 + half as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pool(low: u16, high: u16) -> PortPool {
        PortPool::new(low, high, PortOrder::Sequential).expect("valid range")
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 128 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn agrees_with_set(
            low in any::<u16>(),
            span in prop_oneof![0..200u16, 4000..9000u16],
            random in any::<bool>(),
            ops in prop::collection::vec((any::<u16>(), 0..5u8), 1..600),
        ) {
            let high = low.saturating_add(span);
            let order = if random { PortOrder::Random { seed: 1 } } else { PortOrder::Sequential };
            let mut pool = PortPool::new(low, high, order).expect("valid range");
            let mut used = BTreeSet::new();
            for (n, what) in ops {
                // Half of the requested ports are in the pool.
                let port = if n % 2 == 0 { n } else { low + n % (high - low).max(1) };
                let preserve = match what {
                    0 => {
                        let used_port = used.iter().nth(usize::from(n) % used.len().max(1));
                        let port = used_port.copied().unwrap_or(port);
                        prop_assert_eq!(pool.free(port), used.remove(&port));
                        continue;
                    }
                    1 => {
                        let expected = (low..=high).contains(&port) && used.insert(port);
                        prop_assert_eq!(pool.reserve(port), expected);
                        continue;
                    }
                    2 => Preserve::Nothing,
                    3 => Preserve::Parity,
                    _ => Preserve::Port,
                };
                match pool.allocate(port, preserve) {
                    Ok(got) => {
                        prop_assert!((low..=high).contains(&got));
                        let same_parity_left =
                            (low..=high).any(|p| p % 2 == port % 2 && !used.contains(&p));
                        if preserve != Preserve::Nothing && same_parity_left {
                            prop_assert_eq!(got % 2, port % 2);
                        }
                        let own = (low..=high).contains(&port) && !used.contains(&port);
                        if preserve == Preserve::Port && own {
                            prop_assert_eq!(got, port);
                        }
                        prop_assert!(used.insert(got));
                    }
                    Err(error) => {
                        prop_assert_eq!(error, TableError::PortsExhausted { low, high });
                        prop_assert_eq!(used.len(), usize::from(high - low) + 1);
                    }
                }
                prop_assert_eq!(pool.free_ports() + used.len(), pool.len());
            }
            for port in (low..=high).step_by(7) {
                prop_assert_eq!(pool.is_used(port), used.contains(&port));
            }
        }
    }

    #[test]
    fn sequential_goes_round_before_reuse() {
        let mut pool = pool(1024, 1027);
        let take = |pool: &mut PortPool| pool.allocate(5, Preserve::Nothing);
        assert_eq!(take(&mut pool), Ok(1024));
        assert!(pool.free(1024));
        for port in 1025..=1027 {
            assert_eq!(take(&mut pool), Ok(port));
        }
        assert_eq!(take(&mut pool), Ok(1024));
        let exhausted = Err(TableError::PortsExhausted { low: 1024, high: 1027 });
        assert_eq!(take(&mut pool), exhausted);
        assert!(pool.free(1026) && !pool.free(1026) && !pool.free(80));
        assert_eq!(take(&mut pool), Ok(1026));
    }

    #[test]
    fn whole_range_hands_out_each_port_once() {
        for order in [PortOrder::Sequential, PortOrder::Random { seed: 9 }] {
            let mut pool = PortPool::new(0, u16::MAX, order).expect("valid range");
            let mut seen = vec![false; 1 << 16];
            for n in 0..1u32 << 16 {
                let port = pool.allocate(n as u16, Preserve::Nothing).expect("one is left");
                assert!(!std::mem::replace(&mut seen[usize::from(port)], true));
            }
            assert!(pool.allocate(0, Preserve::Port).is_err());
            assert_eq!(pool.free_ports(), 0);
        }
    }

    #[test]
    fn parity_gives_way_when_exhausted() {
        let mut pool = pool(1001, 1004);
        assert_eq!(pool.allocate(2, Preserve::Parity), Ok(1002));
        assert_eq!(pool.allocate(2, Preserve::Parity), Ok(1004));
        assert_eq!(pool.allocate(2, Preserve::Parity), Ok(1001));
        assert_eq!(pool.allocate(3, Preserve::Port), Ok(1003));
    }

    #[test]
    fn random_order_depends_on_seed_and_repeats() {
        let draw = |seed| -> Vec<_> {
            let order = PortOrder::Random { seed };
            let mut pool = PortPool::new(1024, u16::MAX, order).expect("valid range");
            (0..32).map(|_| pool.allocate(0, Preserve::Nothing).expect("free")).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn empty_range_is_refused() {
        assert!(PortPool::new(2, 1, PortOrder::Sequential).is_err());
        assert_eq!(pool(7, 7).allocate(8, Preserve::Parity), Ok(7));
    }
}
