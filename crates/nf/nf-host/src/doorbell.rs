//! A doorbell: wakes a thread that polls for it, here the supervisor.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Wakes the thread that polls for it. Threads ring it when they changed what an NF should do. Copies are the
/// same doorbell.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<OwnedFd>);

impl Doorbell {
    /// A doorbell that no thread has rung.
    ///
    /// # Errors
    ///
    /// When the system refuses a descriptor.
    pub fn new() -> std::io::Result<Doorbell> {
        Ok(Doorbell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Rings: its descriptor stays readable until it is cleared.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Clears all rings so far.
    pub fn clear(&self) {
        let mut rings = [0; 8];
        let _ = rustix::io::read(&self.0, &mut rings);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
