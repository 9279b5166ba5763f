//! The border of a trust group: packets cross it as copies.
//!
//! An NF maps the memory of its own trust group and no other. Where a chain has several groups, each has a region of
//! its own; a packet that is lent is copied into it, and what comes back is copied out again, so that nothing that
//! the NF does later can change it. Meanwhile the original stays where it is. Of an observer nothing comes back.

use shm::pool::{PacketPool, Pool, SharedPool};
use shm::{Packet, chain};
use std::sync::Arc;

/// Packets that cross at a time, at most.
const MOST: usize = 256;

/// One link's side of the border, or that of a party.
pub struct Border {
    pool: PacketPool,
    /// What each slot's copy is a copy of.
    originals: Box<[Packet]>,
    copies: Vec<Packet>,
    list: Vec<u16>,
    /// Copies that were made, in and out.
    copied: u64,
    observes: bool,
}

impl std::fmt::Debug for Border {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Border").field("observes", &self.observes).finish_non_exhaustive()
    }
}

impl Border {
    /// Of a group's memory. Originals of what an observer gets are nobody's business here.
    pub fn new(pool: &Arc<SharedPool>, observes: bool) -> Border {
        let slots = pool.region().slots() as usize;
        Border {
            pool: PacketPool::Native(pool.worker()),
            originals: vec![Packet::EMPTY; if observes { 0 } else { slots }].into(),
            copies: Vec::with_capacity(MOST),
            list: Vec::with_capacity(MOST),
            copied: 0,
            observes,
        }
    }

    /// Copies that were made since the last call.
    pub fn take_copied(&mut self) -> u64 {
        std::mem::take(&mut self.copied)
    }

    /// Copies the front packets of a list, as many as there are slots for and up to the first that has several
    /// segments: the copies, and their list.
    pub fn cross(&mut self, packets: &[Packet], list: &[u16]) -> (&[Packet], &[u16]) {
        self.copies.clear();
        self.list.clear();
        for packet in list.iter().take(MOST).filter_map(|index| packets.get(usize::from(*index))) {
            if packet.segments != 1 {
                break;
            }
            let Some(copy) = chain::clone_packet(&mut self.pool, packet) else { break };
            if let Some(original) = self.originals.get_mut(copy.slot as usize) {
                *original = *packet;
            }
            self.list.push(self.copies.len() as u16);
            self.copies.push(copy);
        }
        self.copied += self.copies.len() as u64;
        (&self.copies, &self.list)
    }

    /// Takes back the copies that were not lent, all but the first `lent`.
    pub fn retract(&mut self, lent: usize) {
        let unlent = self.copies.get(lent..).unwrap_or_default();
        self.copied -= unlent.len() as u64;
        self.pool.free_all(unlent);
    }

    /// Turns a copy that is the host's again into the original: as the NF left it when it `goes_on`, else as it was.
    /// False for an observer's, which is nothing any more.
    pub fn leave(&mut self, packet: &mut Packet, goes_on: bool) -> bool {
        let copy = *packet;
        let known = self.originals.get(copy.slot as usize).copied();
        if let Some(mut original) = known {
            if goes_on && chain::copy_into(&copy, &mut original) {
                self.copied += 1;
            }
            *packet = original;
        }
        self.pool.free_all(std::slice::from_ref(&copy));
        !self.observes
    }
}
