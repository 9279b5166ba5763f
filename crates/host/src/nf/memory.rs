//! Packet memory that NFs share.

use shm::lend::Loans;
use shm::region::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Claims that a ring of an NF holds.
pub const RING_CLAIMS: u32 = 1024;

/// Packet memory that is lent out of.
#[derive(Debug)]
pub struct Memory {
    /// The memory.
    pub region: Arc<Region>,
    /// Who holds each slot.
    pub loans: Loans,
    /// The last number of a holder that was given; 0 is the host.
    holders: AtomicU16,
    /// Packets that one NF may hold.
    pub quota: u64,
}

impl Memory {
    /// Of a region that packets lie in, shared by so many NFs.
    pub fn new(region: Arc<Region>, nfs: usize) -> Memory {
        let loans = Loans::new(region.slots());
        // No NF may hold so much that others get none.
        let share = u64::from(region.slots()) / (2 * nfs.max(1) as u64);
        let quota = share.clamp(64, 4 * u64::from(RING_CLAIMS));
        Memory { region, loans, holders: AtomicU16::new(0), quota }
    }

    /// A number for a holder that no other has; `None` when there are no more.
    pub fn holder(&self) -> Option<u16> {
        let next = |last: u16| last.checked_add(1);
        self.holders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().and_then(next)
    }
}
