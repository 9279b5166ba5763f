//! Pools: the mempools from which packets get their slots.
//!
//! A worker has one pool for all its elements; a pool is a handle for one thread. The native pool allocates
//! slots last-in first-out from a private cache, so that the few slots of a burst stay in the first-level
//! cache, and accesses the shared list once for [`REFILL`] slots.
//!
//! Invariants: a slot is in exactly one place: the shared list, one worker's cache, or in use. A slot that is
//! freed twice is counted and not taken back twice, as long as the frees do not race.

use crate::descriptor::{
    HEADROOM, LAYOUT_VERSION, META_BYTES, NO_HEADER, NO_PORT, Packet, PacketType, SLOT_BYTES, flag,
};
use crate::ledger::Ledger;
use crate::packet_region::PacketRegion;
use crate::slot::linked;
use packet::anno::ANNO_BYTES;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most slots in a worker's cache.
pub const CACHE_SLOTS: usize = 512;
/// Slots that are moved between a worker's cache and the shared list at a time.
pub const REFILL: usize = CACHE_SLOTS / 2;

/// The operations of every pool. All of them work by burst.
pub trait Pool: Send {
    /// Fills `out` from its front with fresh packets and returns how many were allocated.
    ///
    /// A fresh packet has [`HEADROOM`] bytes of headroom, no bytes, no annotations and no flags.
    fn alloc(&mut self, out: &mut [Packet]) -> usize;

    /// Takes back the packets that `list` names, with all their segments. Indices beyond `packets` are
    /// passed over.
    fn free(&mut self, packets: &[Packet], list: &[u16]);

    /// Takes back all of `packets`.
    fn free_all(&mut self, packets: &[Packet]);

    /// Adds a holder to each packet, for reading only: the slot is free when each holder has freed it. From
    /// then on all descriptors of the packet must have [`flag::SHARED`]; those in `packets` have it already
    /// if the packet was shared before.
    ///
    /// Packets have one segment. Returns false, and does nothing, if this pool cannot share.
    #[must_use]
    fn share(&mut self, _packets: &[Packet]) -> bool {
        false
    }

    /// Number of the pool's slots, over all workers.
    fn capacity(&self) -> usize;

    /// Number of free slots, those in workers' caches included.
    fn available(&self) -> usize;

    /// Number of slots that hold packets.
    fn in_use(&self) -> usize {
        self.capacity().saturating_sub(self.available())
    }

    /// The counters of this handle.
    fn stats(&self) -> PoolStats;
}

/// The counters of one handle of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStats {
    /// Slots that were requested and not available.
    pub refused: u64,
    /// Freed packets whose descriptor names no live slot of this pool: freed twice, or invalid.
    pub bad_frees: u64,
}

/// A worker's pool. Dispatched once per burst.
pub enum PacketPool {
    /// Slots of a region of this process.
    Native(NativePool),
    /// Slots that a driver library or the host of an NF manages.
    Foreign(Box<dyn Pool>),
}

macro_rules! dispatch {
    ($self:ident, $pool:ident => $call:expr) => {
        match $self {
            PacketPool::Native($pool) => $call,
            PacketPool::Foreign($pool) => $call,
        }
    };
}

impl Pool for PacketPool {
    #[inline]
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        dispatch!(self, pool => pool.alloc(out))
    }

    #[inline]
    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        dispatch!(self, pool => pool.free(packets, list))
    }

    #[inline]
    fn free_all(&mut self, packets: &[Packet]) {
        dispatch!(self, pool => pool.free_all(packets))
    }

    #[inline]
    fn share(&mut self, packets: &[Packet]) -> bool {
        dispatch!(self, pool => pool.share(packets))
    }

    fn capacity(&self) -> usize {
        dispatch!(self, pool => pool.capacity())
    }

    fn available(&self) -> usize {
        dispatch!(self, pool => pool.available())
    }

    fn stats(&self) -> PoolStats {
        dispatch!(self, pool => pool.stats())
    }
}

impl PacketPool {
    /// Returns the cached slots to the shared list: for a handle that only allocates, or only frees, now and
    /// then.
    pub fn give_back_stock(&mut self) {
        if let PacketPool::Native(pool) = self {
            pool.give_back_stock();
        }
    }
}

/// The slots of one region that no worker holds.
#[derive(Debug)]
pub struct SharedPool {
    region: Arc<PacketRegion>,
    ledger: Ledger,
    /// The number of holders of each shared slot.
    holders: Box<[AtomicU32]>,
    free: Mutex<Vec<u32>>,
    /// The size of each worker's cache; only that worker writes its entry.
    caches: Mutex<Vec<Arc<CacheLevel>>>,
}

/// The number of slots in a worker's cache, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheLevel(AtomicUsize);

impl SharedPool {
    /// A pool of all slots of `region`.
    pub fn new(region: Arc<PacketRegion>) -> Arc<SharedPool> {
        let slots = region.slots();
        Arc::new(SharedPool {
            ledger: Ledger::new(slots),
            holders: (0..slots).map(|_| AtomicU32::new(0)).collect(),
            // Lowest on top: a pool that is hardly used touches the fewest pages.
            free: Mutex::new((0..slots).rev().collect()),
            caches: Mutex::new(Vec::new()),
            region,
        })
    }

    /// A handle for one worker.
    pub fn worker(self: &Arc<Self>) -> NativePool {
        let level = Arc::new(CacheLevel::default());
        lock(&self.caches).push(Arc::clone(&level));
        NativePool {
            first_buffer: self.region.address() as u64 + META_BYTES as u64,
            region: self.region.number(),
            shared: Arc::clone(self),
            cache: Box::new([0; CACHE_SLOTS]),
            cached: 0,
            level,
            stats: PoolStats::default(),
        }
    }

    /// The region of the slots.
    pub fn region(&self) -> &Arc<PacketRegion> {
        &self.region
    }

    /// The generations of the slots.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn available(&self) -> usize {
        let cached: usize = lock(&self.caches).iter().map(|level| level.0.load(Ordering::Relaxed)).sum();
        lock(&self.free).len() + cached
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every statement leaves the data behind these locks consistent, so a panic of another thread did no
    // harm.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One worker's handle of a [`SharedPool`]. Dropping it returns its cache.
#[derive(Debug)]
pub struct NativePool {
    shared: Arc<SharedPool>,
    cache: Box<[u32; CACHE_SLOTS]>,
    cached: usize,
    first_buffer: u64,
    region: u16,
    level: Arc<CacheLevel>,
    stats: PoolStats,
}

impl NativePool {
    /// The pool behind this handle.
    pub fn shared(&self) -> &Arc<SharedPool> {
        &self.shared
    }

    #[cold]
    fn refill(&mut self) {
        let mut free = lock(&self.shared.free);
        let moved = free.len().min(REFILL).min(CACHE_SLOTS - self.cached);
        let from = free.len() - moved;
        // In the same order: the top of the shared list stays on top.
        if let Some(room) = self.cache.get_mut(self.cached..self.cached + moved) {
            room.copy_from_slice(&free[from..]);
            free.truncate(from);
            self.cached += moved;
        }
    }

    #[cold]
    fn spill(&mut self) {
        let mut free = lock(&self.shared.free);
        let moved = self.cached.min(REFILL);
        // The oldest slots are returned; the newest may still be in the processor's cache.
        free.extend_from_slice(&self.cache[..moved]);
        self.cache.copy_within(moved..self.cached, 0);
        self.cached -= moved;
    }

    fn give_back_stock(&mut self) {
        lock(&self.shared.free).extend_from_slice(&self.cache[..self.cached]);
        self.cached = 0;
        self.publish();
    }

    #[inline(always)]
    fn take_back(&mut self, packet: &Packet) {
        if packet.region != self.region || !self.shared.ledger.end(packet.slot, packet.generation) {
            self.stats.bad_frees += 1;
            return;
        }
        if self.cached == CACHE_SLOTS {
            self.spill();
        }
        if let Some(place) = self.cache.get_mut(self.cached) {
            *place = packet.slot;
            self.cached += 1;
        }
    }

    #[inline(always)]
    fn take_back_packet(&mut self, packet: &Packet) {
        if packet.segments > 1 {
            self.take_back_rest(packet);
        }
        if packet.flags & flag::SHARED == 0 || self.is_last_holder(packet) {
            self.take_back(packet);
        }
    }

    /// Removes a holder of a shared packet, and returns whether it was the last one.
    fn is_last_holder(&mut self, packet: &Packet) -> bool {
        let ours =
            packet.region == self.region && packet.generation == self.shared.ledger.generation(packet.slot);
        let Some(holders) = self.shared.holders.get(packet.slot as usize).filter(|_| ours) else {
            return true;
        };
        // Orders the other holders' reads before this, and the next writes after it. The count never falls
        // below 0; a holder that frees twice is detected by the generation.
        let left = holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| now.checked_sub(1));
        matches!(left, Ok(1) | Err(_))
    }

    #[cold]
    fn take_back_rest(&mut self, head: &Packet) {
        let mut next = head.next;
        for _ in 1..head.segments {
            let slot = next.checked_sub(1).and_then(|slot| u32::try_from(slot).ok());
            let Some(segment) = slot.and_then(|slot| linked(self.region, slot)) else {
                self.stats.bad_frees += 1;
                return;
            };
            next = segment.next;
            self.take_back(&segment);
        }
    }

    /// Fills a descriptor for a slot. Field by field: as one struct literal the compiler built the
    /// annotations on the stack and copied them twice, which cost 6 cycles per packet.
    #[inline(always)]
    fn make_fresh(&self, packet: &mut Packet, slot: u32, generation: u32) {
        packet.buf = self.first_buffer + u64::from(slot) * SLOT_BYTES as u64;
        packet.handle = u64::from(slot) + 1;
        packet.data = HEADROOM as u16;
        (packet.mac, packet.net, packet.trans) = (NO_HEADER, NO_HEADER, NO_HEADER);
        (packet.len, packet.total) = (0, 0);
        packet.anno = [0; ANNO_BYTES];
        packet.timestamp_ns = 0;
        packet.flow_hash = 0;
        (packet.origin, packet.flags) = (NO_PORT, 0);
        packet.next = 0;
        (packet.segments, packet.packet_type, packet.reserved0) = (1, PacketType::Host as u8, 0);
        (packet.slot, packet.generation) = (slot, generation);
        (packet.version, packet.region) = (LAYOUT_VERSION, self.region);
        packet.reserved1 = 0;
    }

    #[inline(always)]
    fn publish(&self) {
        self.level.0.store(self.cached, Ordering::Relaxed);
    }
}

impl Pool for NativePool {
    #[inline]
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            if self.cached == 0 {
                self.refill();
                if self.cached == 0 {
                    self.stats.refused += (out.len() - filled) as u64;
                    break;
                }
            }
            let burst = self.cached.min(out.len() - filled);
            let ledger = &self.shared.ledger;
            let slots = &self.cache[self.cached - burst..self.cached];
            for (packet, &slot) in out[filled..filled + burst].iter_mut().zip(slots.iter().rev()) {
                self.make_fresh(packet, slot, ledger.generation(slot));
            }
            self.cached -= burst;
            filled += burst;
        }
        self.publish();
        filled
    }

    #[inline]
    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        // From the back, so that the next allocation finds the slots in the order of this list.
        for &index in list.iter().rev() {
            if let Some(packet) = packets.get(usize::from(index)) {
                self.take_back_packet(packet);
            }
        }
        self.publish();
    }

    #[inline]
    fn free_all(&mut self, packets: &[Packet]) {
        for packet in packets.iter().rev() {
            self.take_back_packet(packet);
        }
        self.publish();
    }

    fn share(&mut self, packets: &[Packet]) -> bool {
        for packet in packets.iter().filter(|packet| packet.region == self.region) {
            let Some(holders) = self.shared.holders.get(packet.slot as usize) else { continue };
            if packet.flags & flag::SHARED == 0 {
                // The caller is the only holder.
                holders.store(2, Ordering::Relaxed);
            } else {
                holders.fetch_add(1, Ordering::Relaxed);
            }
        }
        true
    }

    fn capacity(&self) -> usize {
        self.shared.region.slots() as usize
    }

    fn available(&self) -> usize {
        self.shared.available()
    }

    fn stats(&self) -> PoolStats {
        self.stats
    }
}

impl Drop for NativePool {
    fn drop(&mut self) {
        self.give_back_stock();
        lock(&self.shared.caches).retain(|level| !Arc::ptr_eq(level, &self.level));
    }
}
