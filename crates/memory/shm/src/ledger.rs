//! The ledger: for each slot its life (generation). Private to the host.
//!
//! A slot's generation is counted up when the slot is freed, so a descriptor made before that is
//! recognised as stale. The ledger never lies in shared memory. Who holds slots that are in flight, and in
//! which in-flight entry, stands in [`InFlightTable`](crate::channel::InFlightTable).
//!
//! Entries are written by whoever owns the slot at that moment, with plain stores: a slot has one
//! owner at a time, and passing a slot between threads goes through something that orders memory (a
//! ring, a lock).

use std::sync::atomic::{AtomicU32, Ordering};

/// Generation of every slot of one region.
#[derive(Debug)]
pub struct Ledger {
    generations: Box<[AtomicU32]>,
}

impl Ledger {
    /// A ledger of `slots` slots, all in generation 1.
    pub fn new(slots: u32) -> Ledger {
        Ledger { generations: (0..slots).map(|_| AtomicU32::new(1)).collect() }
    }

    /// The generation that a slot is in; 0, which no slot is ever in, when there is no such slot.
    #[inline(always)]
    pub fn generation(&self, slot: u32) -> u32 {
        self.generations.get(slot as usize).map_or(0, |generation| generation.load(Ordering::Relaxed))
    }

    /// Ends the life that `generation` names. False when the slot is not in it: it was freed already.
    #[inline(always)]
    pub fn end(&self, slot: u32, generation: u32) -> bool {
        let Some(entry) = self.generations.get(slot as usize) else { return false };
        let now = entry.load(Ordering::Relaxed);
        if now != generation {
            return false;
        }
        // 0 is skipped when the count wraps: it means "no slot".
        let next = now.wrapping_add(1);
        entry.store(next + u32::from(next == 0), Ordering::Relaxed);
        true
    }
}
