//! How many packets a queue has, for the elements beside it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Packets in a queue, under its name in the worker's shared state. The queue writes it after each batch.
#[derive(Debug, Default)]
pub struct QueueLength(AtomicUsize);

impl QueueLength {
    /// Packets that can be pulled.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Says how many there are now.
    pub fn set(&self, packets: usize) {
        self.0.store(packets, Ordering::Relaxed);
    }
}
