//! The packet counters of a node.
//!
//! Invariant, for each node when no burst is being processed and fused regions are settled: packets in +
//! received + made - handed over = out + dropped + sent + merged + held, where held is the number of kept
//! packets less that of released ones. Only the worker writes the counters; any thread may read them.

use element::work::NodeCounter;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and others read.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds; only the owning worker may.
    #[inline]
    pub fn add(&self, count: usize) {
        // A plain load and store: there is one writer, and a locked add would cost twenty cycles.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count as u64), Ordering::Relaxed);
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a node.
#[derive(Debug, Default)]
pub struct NodeCounters {
    /// Packets that entered, over all inputs.
    pub input: Count,
    /// The further counters, indexed by [`NodeCounter`].
    pub counts: [Count; 8],
    /// Packets that left, by port.
    pub outputs: Vec<Count>,
    /// Packets dropped, by reason.
    pub dropped: Vec<Count>,
    /// Names of the reasons.
    pub reasons: Vec<String>,
    /// Packets handed over to the worker that owns the element's state.
    pub handed_over: Count,
}

impl NodeCounters {
    /// Packets that the node keeps now. The value may be negative for a moment where NFs pass packets on by
    /// direct rings: the host may learn that an NF returned a packet before it learns that this NF received
    /// it.
    pub fn held(&self) -> i64 {
        let count = |counter: NodeCounter| self.counts[counter as usize].get();
        count(NodeCounter::Held).wrapping_sub(count(NodeCounter::Released)) as i64
    }
}
