//! The length of a queue, for the elements beside it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of packets in a queue, which the worker's shared state has under the queue's name. The queue
/// writes it after each batch.
#[derive(Debug, Default)]
pub struct QueueLength(AtomicUsize);

impl QueueLength {
    /// Packets that can be pulled.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the number of packets.
    pub fn set(&self, packets: usize) {
        self.0.store(packets, Ordering::Relaxed);
    }
}
