//! The ledger: each slot's generation. Private to the host.
//!
//! Freeing a slot increments its generation, so that older descriptors are recognised as stale. The ledger is
//! never in shared memory. [`InFlightTable`](crate::channel::InFlightTable) has the holders of in-flight
//! slots and the numbers of their in-flight entries.
//!
//! The owner of a slot writes its entry with plain stores. A slot has one owner at a time, and passing a slot
//! between threads uses a synchronising operation (a ring, a lock).

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

    /// The present generation of a slot; 0, which is never used, if there is no such slot.
    #[inline(always)]
    pub fn generation(&self, slot: u32) -> u32 {
        self.generations.get(slot as usize).map_or(0, |generation| generation.load(Ordering::Relaxed))
    }

    /// Ends a generation of a slot. False if the slot is not in that generation: it was freed already.
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
