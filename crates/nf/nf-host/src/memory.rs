//! Packet memory that NFs share.

use crate::rings::RING_CLAIMS;
use shm::ShmError;
use shm::channel::InFlightTable;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Slots for each NF of a trust group with its own memory: for two full rings, for packets that the NF makes,
/// and for those that it keeps.
const SLOTS_PER_NF: u32 = 4 * RING_CLAIMS;

/// The pool that copies are allocated from.
pub enum Copies {
    /// The memory of a trust group.
    Group(Arc<SharedPool>),
    /// The memory that ports receive into, which a tap reads.
    Ports(Arc<dyn Fn() -> PacketPool + Send + Sync>),
}

impl Copies {
    /// A handle for one worker.
    pub fn worker(&self) -> PacketPool {
        match self {
            Copies::Group(pool) => PacketPool::Native(pool.worker()),
            Copies::Ports(worker) => worker(),
        }
    }
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Copies::Group(_) => "Group",
            Copies::Ports(_) => "Ports",
        })
    }
}

/// The packet memory of NF channels.
#[derive(Debug)]
pub struct Memory {
    /// The packet region.
    pub region: Arc<PacketRegion>,
    /// Which NF holds each slot.
    pub in_flight: InFlightTable,
    /// The last holder number that was assigned; 0 is the host.
    holders: AtomicU16,
    /// Packets that one NF may hold.
    pub quota: u64,
    /// The pool for copies; `None` where NFs work on the packets that ports receive.
    pub copies: Option<Copies>,
}

impl Memory {
    /// The memory of a packet region that `nfs` NFs share.
    pub fn new(region: Arc<PacketRegion>, nfs: usize) -> Memory {
        let in_flight = InFlightTable::new(region.slots());
        let quota = Memory::share(region.slots(), nfs);
        Memory { region, in_flight, holders: AtomicU16::new(0), quota, copies: None }
    }

    /// The packets that each of `nfs` NFs may have in work, and as many again held: half of `slots` for all
    /// together.
    pub fn share(slots: u32, nfs: usize) -> u64 {
        let share = u64::from(slots) / (4 * nfs.max(1) as u64);
        share.clamp(32, 4 * u64::from(RING_CLAIMS))
    }

    /// The own memory of a trust group of `nfs` NFs, which packets enter as copies. Observers cannot write
    /// it.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub fn of_group(nfs: usize, observers: bool, options: RegionOptions) -> Result<Memory, ShmError> {
        let slots = SLOTS_PER_NF.saturating_mul(u32::try_from(nfs.max(1)).unwrap_or(u32::MAX));
        let region = PacketRegion::create(RegionOptions { slots, only_for_reading: observers, ..options })?;
        let pool = SharedPool::new(Arc::clone(&region));
        Ok(Memory { copies: Some(Copies::Group(pool)), ..Memory::new(region, nfs) })
    }

    /// The memory of a tap: the memory that ports receive into, with an in-flight table of its own, because
    /// other NFs hold the same packets.
    pub fn of_tap(region: Arc<PacketRegion>, worker: Arc<dyn Fn() -> PacketPool + Send + Sync>) -> Memory {
        Memory { copies: Some(Copies::Ports(worker)), ..Memory::new(region, 1) }
    }

    /// Whether it is the memory that ports receive into, as for a tap.
    pub fn is_ports(&self) -> bool {
        matches!(self.copies, Some(Copies::Ports(_)))
    }

    /// The same with a quota of at most `quota` packets: the originals of copied packets occupy slots that
    /// ports receive into.
    #[must_use]
    pub fn with_at_most(self, quota: u64) -> Memory {
        Memory { quota: self.quota.min(quota), ..self }
    }

    /// The next holder number; `None` when no number is left.
    pub fn holder(&self) -> Option<u16> {
        let next = |last: u16| last.checked_add(1);
        self.holders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().and_then(next)
    }
}
