//! A small set of flows that may forget some.

use std::hash::{BuildHasher, RandomState};
use synth::template::KEY_WORDS;
use table::flow::Seed;

/// The most flows of a set. Two of them may take the same slot.
const FLOWS: usize = 1 << 12;

/// Flows by a hash of their keys.
#[derive(Debug)]
pub(super) struct FlowSet {
    /// A hash of the flow in each slot; 0 for none.
    slots: Vec<u32>,
    seed: Seed,
}

impl FlowSet {
    /// The empty set.
    pub fn new() -> FlowSet {
        FlowSet { slots: vec![0; FLOWS], seed: Seed::new(RandomState::new().hash_one(FLOWS)) }
    }

    /// Whether a flow is known to be in the set.
    #[inline]
    pub fn has(&self, key: &[u64; KEY_WORDS]) -> bool {
        let (slot, mark) = self.mark(key);
        self.slots[slot] == mark
    }

    /// Adds a flow; the one whose slot it takes is forgotten.
    pub fn add(&mut self, key: &[u64; KEY_WORDS]) {
        let (slot, mark) = self.mark(key);
        self.slots[slot] = mark;
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.slots.fill(0);
    }

    fn mark(&self, key: &[u64; KEY_WORDS]) -> (usize, u32) {
        let hash = self.seed.hash(key);
        (hash as usize % FLOWS, (hash >> 32) as u32 | 1)
    }
}
