//! The status of an NF's instances, for elements that steer packets to them.
//!
//! Each worker has its own for each NF: writers and readers are elements of one thread, and none waits.

use element::{Configure, Scope};
pub use packet::flow::MOST_INSTANCES as MOST;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Which instances take packets, and how many packets each has.
#[derive(Debug)]
pub struct Instances {
    /// A bit for each instance that takes packets.
    up: AtomicU64,
    fill: [AtomicU64; MOST],
}

impl Default for Instances {
    fn default() -> Instances {
        Instances { up: AtomicU64::new(0), fill: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

/// A bit for each of so many.
pub fn all(instances: usize) -> u64 {
    if instances >= MOST { !0 } else { (1 << instances) - 1 }
}

impl Instances {
    /// The key under which the elements of an NF share it.
    pub(crate) fn key(nf: &str) -> String {
        format!("instances of {nf}")
    }

    /// The instances of an NF, for elements of this worker.
    pub fn of(cx: &mut Configure<'_>, nf: &str) -> Option<Arc<Instances>> {
        cx.shared(Scope::Worker, &Instances::key(nf), Instances::default)
    }

    /// The instances that take packets, a bit each.
    pub fn up(&self) -> u64 {
        self.up.load(Relaxed)
    }

    /// Marks so many instances as taking packets: elements of this process always do, processes report it
    /// themselves.
    pub fn begin(&self, instances: usize) {
        self.up.store(all(instances), Relaxed);
    }

    /// Sets whether an instance takes packets.
    pub fn set_up(&self, instance: usize, is_up: bool) {
        let (bit, up) = (1u64.checked_shl(instance as u32).unwrap_or(0), self.up());
        let new = if is_up { up | bit } else { up & !bit };
        if new != up {
            self.up.store(new, Relaxed);
        }
    }

    /// Packets that an instance has: enqueued to it, or waiting for it.
    pub fn fill(&self, instance: usize) -> u64 {
        self.fill.get(instance).map_or(0, |fill| fill.load(Relaxed))
    }

    /// Sets how many packets an instance has.
    pub fn set_fill(&self, instance: usize, packets: u64) {
        if let Some(fill) = self.fill.get(instance) {
            fill.store(packets, Relaxed);
        }
    }
}
