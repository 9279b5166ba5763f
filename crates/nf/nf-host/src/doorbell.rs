//! A doorbell: wakes a thread that polls for it, here the supervisor.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Wakes whoever polls for it: for those who changed what is wanted of an NF. Copies of it are the same doorbell.
#[derive(Clone, Debug)]
pub struct Doorbell(Arc<OwnedFd>);

impl Doorbell {
    /// One that nobody has rung.
    ///
    /// # Errors
    ///
    /// When the system refuses a descriptor.
    pub fn new() -> std::io::Result<Doorbell> {
        Ok(Doorbell(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Rings: its descriptor can be read until somebody does.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Forgets that somebody rang, however often.
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
