//! The ledger: for each slot its life (generation) and who holds it. Private to the host.
//!
//! A slot's generation is counted up when the slot is freed, so a descriptor made before that is
//! recognised as stale. The ledger never lies in shared memory: a peer can claim any generation, and
//! [`Ledger::check`] compares the claim with what stands here.
//!
//! Entries are written by whoever owns the slot at that moment, with plain stores: a slot has one
//! owner at a time, and passing a slot between threads goes through something that orders memory (a
//! ring, a lock).

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Holder number of the host itself.
pub const HOST: u16 = 0;

/// Generation and holder of every slot of one region.
#[derive(Debug)]
pub struct Ledger {
    generations: Box<[AtomicU32]>,
    holders: Box<[AtomicU16]>,
}

/// Why a claim on a slot does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClaimError {
    /// There is no such slot.
    #[error("slot {slot} is out of range: the region has {slots}")]
    OutOfRange {
        /// The slot claimed.
        slot: u32,
        /// How many there are.
        slots: u32,
    },
    /// The slot was freed since.
    #[error("slot {slot} is in generation {now}, the claim speaks of {claimed}: it was freed since")]
    Stale {
        /// The slot claimed.
        slot: u32,
        /// The generation claimed.
        claimed: u32,
        /// The generation it is in.
        now: u32,
    },
    /// The slot is somebody else's.
    #[error("slot {slot} is held by {held_by}, not by {claimed_by}")]
    NotHolder {
        /// The slot claimed.
        slot: u32,
        /// Who claims it.
        claimed_by: u16,
        /// Who holds it.
        held_by: u16,
    },
}

impl Ledger {
    /// A ledger of `slots` slots, all in generation 1 and held by the host.
    pub fn new(slots: u32) -> Ledger {
        Ledger {
            generations: (0..slots).map(|_| AtomicU32::new(1)).collect(),
            holders: (0..slots).map(|_| AtomicU16::new(HOST)).collect(),
        }
    }

    /// How many slots it speaks of.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.generations.len() as u32
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

    /// Who holds a slot.
    #[inline]
    pub fn holder(&self, slot: u32) -> Option<u16> {
        self.holders.get(slot as usize).map(|holder| holder.load(Ordering::Relaxed))
    }

    /// Hands a slot over. False when there is no such slot.
    #[inline]
    pub fn grant(&self, slot: u32, holder: u16) -> bool {
        self.holders.get(slot as usize).map(|entry| entry.store(holder, Ordering::Relaxed)).is_some()
    }

    /// The slots that a holder has.
    pub fn held_by(&self, holder: u16) -> impl Iterator<Item = u32> + '_ {
        let holders = self.holders.iter().zip(0u32..);
        holders.filter(move |(held_by, _)| held_by.load(Ordering::Relaxed) == holder).map(|(_, slot)| slot)
    }

    /// Whether a claim holds: the slot exists, is in that life, and is that holder's.
    ///
    /// # Errors
    ///
    /// Says which of the three does not hold.
    #[inline]
    pub fn check(&self, slot: u32, generation: u32, holder: u16) -> Result<(), ClaimError> {
        let Some(held_by) = self.holder(slot) else {
            return Err(ClaimError::OutOfRange { slot, slots: self.slots() });
        };
        let now = self.generation(slot);
        if now != generation {
            return Err(ClaimError::Stale { slot, claimed: generation, now });
        }
        if held_by != holder {
            return Err(ClaimError::NotHolder { slot, claimed_by: holder, held_by });
        }
        Ok(())
    }
}
