//! The state of an NF that more threads than its own link and supervisor use: its activity, and requests to
//! evict it.
//!
//! The links of a direct-path group share it: the link of one member may find out that another member broke a
//! ring.

use crate::watchdog::NfActivity;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Locks a mutex, also after a panic: the values stay consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The state of an NF that its direct-path group shares.
#[derive(Debug, Default)]
pub struct MemberState {
    /// The activity that the watchdog reads.
    pub activity: NfActivity,
    /// Why a link requested the eviction.
    evicted: Mutex<Option<String>>,
    has_evicted: AtomicBool,
}

impl MemberState {
    /// Has the supervisor end the process at once. Called by links.
    pub fn evict(&self, why: String) {
        *lock(&self.evicted) = Some(why);
        self.has_evicted.store(true, Ordering::Release);
    }

    /// Takes the reason for an eviction, if one is requested. Called by the supervisor.
    pub fn take_eviction(&self) -> Option<String> {
        if !self.has_evicted.swap(false, Ordering::AcqRel) {
            return None;
        }
        lock(&self.evicted).take()
    }
}
