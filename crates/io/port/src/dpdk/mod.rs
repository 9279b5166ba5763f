//! Ports over DPDK: any device that it has a driver for, by PCI address or as a virtual device.
//!
//! [`Dpdk`] starts DPDK once and holds the packet memory that all its ports receive into, a region of
//! ours where the drivers take that. [`DpdkSpec`] is what a user writes; [`DpdkPort`] is one worker's
//! queue pair.

mod port;
mod spec;

pub use dpdk_sys::{EalOptions, driver_names};
pub use port::DpdkPort;
pub use spec::DpdkSpec;

use crate::PortError;
use dpdk_sys::{BUILT_WITH_DPDK, Device, DpdkError, Eal, Mempool};
use shm::{PacketPool, PacketRegion, RegionOptions};
use std::sync::{Arc, Mutex};

/// DPDK as this process uses it.
pub struct Dpdk {
    eal: Eal,
    pool: Arc<Mempool>,
    /// Made when the first driver refuses packet memory of ours.
    own_memory: Mutex<Option<Arc<Mempool>>>,
    notes: Mutex<Vec<String>>,
}

impl Dpdk {
    /// Whether this program can open DPDK ports at all.
    pub fn is_built_in() -> bool {
        BUILT_WITH_DPDK
    }

    /// Starts DPDK and makes packet memory for it.
    ///
    /// # Errors
    ///
    /// When this was built without DPDK, DPDK does not start, or there is no memory.
    pub fn start(options: &EalOptions, memory: RegionOptions) -> Result<Dpdk, PortError> {
        if !BUILT_WITH_DPDK {
            return Err(DpdkError::NotBuilt.into());
        }
        // The region first: what it takes of the huge pages is not there for DPDK.
        let region = PacketRegion::create(memory)?;
        let eal = Eal::start(options)?;
        let pool = Mempool::in_region(eal, &region)?;
        let notes = region.notes().to_vec();
        Ok(Dpdk { eal, pool, own_memory: Mutex::new(None), notes: Mutex::new(notes) })
    }

    /// A worker's handle of the packet memory. A worker with a DPDK port uses this pool for everything:
    /// a packet of another pool is copied when it meets one.
    pub fn pool(&self) -> PacketPool {
        PacketPool::Foreign(Box::new(self.pool.worker()))
    }

    /// The region that packets lie in.
    pub fn region(&self) -> Option<&Arc<PacketRegion>> {
        self.pool.region()
    }

    /// Opens a device with that many queue pairs: one port for each worker.
    ///
    /// # Errors
    ///
    /// When there is no such device, or it has fewer queues.
    pub fn open(&self, spec: &DpdkSpec, queues: u16) -> Result<Vec<DpdkPort>, PortError> {
        let start =
            |pool| Device::start(self.eal, spec.bus, &spec.name, &spec.arguments, queues.max(1), pool);
        let device = match start(&self.pool) {
            // Some drivers take no memory but DPDK's own (net_af_xdp). They say so in many ways.
            Err(refusal @ DpdkError::Failed { action: "start", .. }) => {
                let device = start(&self.own_memory(&refusal)?)?;
                self.warn(format!(
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

    /// What was asked for and could not be had, in sentences for the operator.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).clone()
    }

    fn warn(&self, note: String) {
        lock(&self.notes).push(note);
    }

    fn own_memory(&self, refusal: &DpdkError) -> Result<Arc<Mempool>, DpdkError> {
        let mut own = lock(&self.own_memory);
        if let Some(pool) = &*own {
            return Ok(Arc::clone(pool));
        }
        let slots = self.pool.region().map_or(0, |region| region.slots());
        // Without memory for that, what the driver said first is the better answer.
        let pool = Mempool::in_dpdk_memory(self.eal, slots).map_err(|_| refusal.clone())?;
        *own = Some(Arc::clone(&pool));
        Ok(pool)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
