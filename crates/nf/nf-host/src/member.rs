//! What others than its own link and supervisor may know and want of an NF: how it does, and that it is to be ended.
//!
//! An NF of a direct-path group shares it with the group, whose other members' links find out what it does to their
//! rings.

use crate::watchdog::NfActivity;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Locks what stays whole where a thread that had it broke.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The state of an NF that a group of NFs shares.
#[derive(Debug, Default)]
pub struct MemberState {
    /// What moves.
    pub activity: NfActivity,
    /// Why a link wants the process ended.
    evicted: Mutex<Option<String>>,
    has_evicted: AtomicBool,
}

impl MemberState {
    /// Asks the supervisor to end the process at once; a link's.
    pub fn evict(&self, why: String) {
        *lock(&self.evicted) = Some(why);
        self.has_evicted.store(true, Ordering::Release);
    }

    /// Why the process is to be ended, when it is; the supervisor's.
    pub fn take_eviction(&self) -> Option<String> {
        if !self.has_evicted.swap(false, Ordering::AcqRel) {
            return None;
        }
        lock(&self.evicted).take()
    }
}
