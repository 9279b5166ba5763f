//! Packet memory that DPDK drivers receive into, and a worker's handle of it.
//!
//! Headers are in DPDK's memory. Data is in a region of `shm` if the driver accepts one, else behind the
//! headers. A pool exists until the process ends: a driver may hold packets until then, and does not report
//! when it releases them.
#![expect(unsafe_code, reason = "calls into C")]

use crate::ffi::{self, RawBurst, RawPool};
use crate::{DpdkError, Eal, MAX_BURST};
use shm::span;
use shm::{Packet, PacketRegion, Pool, PoolStats};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of free packets that DPDK caches for each thread. Its limit is 512.
const CACHE: u32 = 256;
const PAGE_BYTES: u64 = 4096;

/// Packet memory for DPDK drivers.
#[derive(Debug)]
pub struct Mempool {
    raw: &'static RawPool,
    region: Option<Arc<PacketRegion>>,
}

// SAFETY: the raw pool is written once, before it is shared; DPDK's mempools may be used by all threads.
unsafe impl Send for Mempool {}
// SAFETY: as above.
unsafe impl Sync for Mempool {}

/// One worker's handle of a [`Mempool`].
#[derive(Debug)]
pub struct DpdkPool {
    pool: Arc<Mempool>,
    stats: PoolStats,
}

impl Mempool {
    /// A pool whose packets are in `region`.
    ///
    /// # Errors
    ///
    /// When DPDK has no memory for the headers.
    pub fn in_region(eal: Eal, region: &Arc<PacketRegion>) -> Result<Arc<Mempool>, DpdkError> {
        Mempool::create(eal, region.slots(), Some(region))
    }

    /// A pool whose packets are in DPDK's own memory, for drivers that accept no other.
    ///
    /// # Errors
    ///
    /// When DPDK has no memory for them.
    pub fn in_dpdk_memory(eal: Eal, slots: u32) -> Result<Arc<Mempool>, DpdkError> {
        Mempool::create(eal, slots, None)
    }

    fn create(_: Eal, slots: u32, region: Option<&Arc<PacketRegion>>) -> Result<Arc<Mempool>, DpdkError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("packets{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let c_name = CString::new(name.as_str()).map_err(|_| DpdkError::Name { name: name.clone() })?;
        let page_bytes = match region {
            Some(region) if region.on_huge_pages() => shm::packet_region::HUGE_PAGE_BYTES as u64,
            _ => PAGE_BYTES,
        };
        let raw = Box::leak(Box::<RawPool>::default());
        let (base, chains, bytes) =
            region.map_or((0, 0, 0), |region| (region.address(), region.chains(), region.bytes()));
        // A cache may hold two thirds of a small pool at most.
        let cache = CACHE.min(slots / 3);
        // SAFETY: the region stays mapped for the life of the process (it is leaked below); this function
        // owns `raw`.
        let code = unsafe {
            let (base, chains) = (base as *mut _, chains as *mut _);
            ffi::mr_pool_create(c_name.as_ptr(), base, chains, bytes as u64, page_bytes, slots, cache, raw)
        };
        if code != 0 {
            return Err(DpdkError::failed("make the packet pool", &name, code));
        }
        let number = match region {
            Some(region) => {
                // An additional reference, which is never dropped: the region is never unmapped.
                std::mem::forget(Arc::clone(region));
                Some(region.number())
            }
            None => {
                let bytes = raw.span + (shm::descriptor::META_BYTES + shm::descriptor::BUF_BYTES) as u64;
                // SAFETY: DPDK's mempool memory, from its first private area to its last buffer's end;
                // pools are never freed. Header and private area are multiples of a cache line.
                unsafe { span::register_foreign(raw.base, bytes) }
            }
        };
        let number = number.ok_or(DpdkError::TooManyRegions)?;
        // SAFETY: `raw` is leaked, so it outlives every use; nothing else refers to it yet.
        unsafe { ffi::mr_pool_number(raw, number) };
        Ok(Arc::new(Mempool { raw, region: region.cloned() }))
    }

    /// A handle for one worker.
    pub fn worker(self: &Arc<Self>) -> DpdkPool {
        DpdkPool { pool: Arc::clone(self), stats: PoolStats::default() }
    }

    /// The region that contains the packets; `None` when they are in DPDK's own memory.
    pub fn region(&self) -> Option<&Arc<PacketRegion>> {
        self.region.as_ref()
    }

    pub(crate) fn raw(&self) -> &'static RawPool {
        self.raw
    }
}

impl DpdkPool {
    fn give_back(&mut self, packets: &[Packet], list: Option<&[u16]>) {
        let mut burst = RawBurst::default();
        let (pointer, listed) = match list {
            Some(list) => (list.as_ptr(), list.len()),
            None => (std::ptr::null(), packets.len()),
        };
        // SAFETY: both arrays have the lengths that are passed; the shim checks every index against the count
        // and every handle against the pools' headers.
        unsafe {
            ffi::mr_free(packets.as_ptr(), packets.len() as u32, pointer, listed as u32, &mut burst);
        }
        self.stats.bad_frees += u64::from(burst.bad);
    }
}

impl Pool for DpdkPool {
    fn alloc(&mut self, out: &mut [Packet]) -> usize {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let burst = rest.len().min(MAX_BURST);
            // SAFETY: `rest` has room for `burst` descriptors.
            let got = unsafe { ffi::mr_alloc(self.pool.raw, rest.as_mut_ptr(), burst as u32) } as usize;
            filled += got;
            if got < burst {
                self.stats.refused += (out.len() - filled) as u64;
                break;
            }
        }
        filled
    }

    fn free(&mut self, packets: &[Packet], list: &[u16]) {
        self.give_back(packets, Some(list));
    }

    fn free_all(&mut self, packets: &[Packet]) {
        self.give_back(packets, None);
    }

    fn share(&mut self, packets: &[Packet]) -> bool {
        // SAFETY: the array has the length that is passed; the shim checks every handle against the pools'
        // headers.
        unsafe { ffi::mr_share(packets.as_ptr(), packets.len() as u32) };
        true
    }

    fn capacity(&self) -> usize {
        self.pool.raw.capacity as usize
    }

    fn available(&self) -> usize {
        // SAFETY: the pool exists until the process ends.
        unsafe { ffi::mr_pool_available(self.pool.raw) as usize }
    }

    fn stats(&self) -> PoolStats {
        self.stats
    }
}
