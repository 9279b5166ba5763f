//! Ports over DPDK: any device that it has a driver for, by PCI address or as a virtual device.
//!
//! [`Dpdk`] starts DPDK once and owns the packet memory that all its ports receive into: a packet region of `shm`, if
//! the drivers accept it. [`DpdkSpec`] is a device as a user names it; [`DpdkPort`] is one worker's queue
//! pair.

mod port;
mod spec;

pub use dpdk_sys::{BUILT_WITH_DPDK, DPDK_VERSION, EalOptions, driver_names};
pub use port::DpdkPort;
pub use spec::DpdkSpec;

use crate::Result;
use dpdk_sys::{Device, DpdkError, Eal, Mempool};
use shm::{PacketPool, PacketRegion, RegionOptions};
use std::sync::{Arc, Mutex};

/// DPDK as this process uses it.
pub struct Dpdk {
    eal: Eal,
    pool: Arc<Mempool>,
    /// Allocated when the first driver refuses the packet region.
    own_memory: Mutex<Option<Arc<Mempool>>>,
    notes: Mutex<Vec<String>>,
}

impl Dpdk {
    /// Starts DPDK and allocates packet memory for it.
    ///
    /// # Errors
    ///
    /// When this program was built without DPDK, DPDK does not start, or there is no memory.
    pub fn start(options: &EalOptions, memory: RegionOptions) -> Result<Dpdk> {
        if !BUILT_WITH_DPDK {
            return Err(DpdkError::NotBuilt.into());
        }
        // The region is allocated first: DPDK may use only the huge pages that are left.
        let region = PacketRegion::create(memory)?;
        let eal = Eal::start(options)?;
        let pool = Mempool::in_region(eal, &region)?;
        let notes = region.notes().to_vec();
        Ok(Dpdk { eal, pool, own_memory: Mutex::new(None), notes: Mutex::new(notes) })
    }

    /// A worker's handle of the packet memory. A worker with a DPDK port uses this pool for all packets; a
    /// packet of another pool is copied when a port sends it.
    pub fn pool(&self) -> PacketPool {
        PacketPool::Foreign(Box::new(self.pool.worker()))
    }

    /// The region that contains the packets.
    pub fn region(&self) -> Option<&Arc<PacketRegion>> {
        self.pool.region()
    }

    /// Opens a device with that many queue pairs: one port for each worker.
    ///
    /// # Errors
    ///
    /// When there is no such device, or it has fewer queues.
    pub fn open(&self, spec: &DpdkSpec, queues: u16) -> Result<Vec<DpdkPort>> {
        let start =
            |pool| Device::start(self.eal, spec.bus, &spec.name, &spec.arguments, queues.max(1), pool);
        let device = match start(&self.pool) {
            // Some drivers accept only DPDK's own memory (net_af_xdp). Their errors differ.
            Err(refusal @ DpdkError::Failed { action: "start", .. }) => {
                let device = start(&self.own_memory(&refusal)?)?;
                lock(&self.notes).push(format!(
                    "{}: the driver takes no packet memory of ours, so its packets lie in DPDK's: they are \
                     copied where an NF outside this process gets them",
                    spec.name
                ));
                device
            }
            started => started?,
        };
        let device = Arc::new(device);
        Ok(device.queues().into_iter().map(|queue| DpdkPort::new(spec, queue, self.pool())).collect())
    }

    /// Requested settings that DPDK could not apply, as sentences for the operator.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    fn own_memory(&self, refusal: &DpdkError) -> Result<Arc<Mempool>, DpdkError> {
        let mut own = lock(&self.own_memory);
        if let Some(pool) = &*own {
            return Ok(Arc::clone(pool));
        }
        let slots = self.pool.region().map_or(0, |region| region.slots());
        // Without memory for a second pool, the driver's first error is the more useful one.
        let pool = Mempool::in_dpdk_memory(self.eal, slots).map_err(|_| refusal.clone())?;
        *own = Some(Arc::clone(&pool));
        Ok(pool)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
