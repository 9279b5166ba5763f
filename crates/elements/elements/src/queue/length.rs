//! The length of a queue, and its room, for the elements beside it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of packets in a queue, and how many there may be, which the worker's shared state has under the queue's
/// name. The queue writes it after each batch.
#[derive(Debug, Default)]
pub struct QueueLength {
    packets: AtomicUsize,
    capacity: AtomicUsize,
    /// Whether an element decides by it.
    is_watched: AtomicBool,
}

impl QueueLength {
    /// Packets that can be pulled.
    pub fn get(&self) -> usize {
        self.packets.load(Ordering::Relaxed)
    }

    /// Sets the number of packets.
    pub fn set(&self, packets: usize) {
        self.packets.store(packets, Ordering::Relaxed);
    }

    /// The number of packets for which there is room.
    pub fn room(&self) -> usize {
        self.capacity.load(Ordering::Relaxed).saturating_sub(self.get())
    }

    /// Sets the number of packets that there may be.
    pub fn set_capacity(&self, packets: usize) {
        self.capacity.store(packets, Ordering::Relaxed);
    }

    /// Says that an element decides by the length: packets have to wait in the queue to be counted.
    pub fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether an element does.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }
}
