//! Queues, and the element that pulls packets out of them.
//!
//! A queue connects push to pull. Each worker has queues of its own, which no packet leaves for another
//! worker.

use element::Class;

pub mod length;
mod store;
mod unqueue;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &store::FRONT_DROP_QUEUE,
    &store::FULL_NOTE_QUEUE,
    &store::MIXED_QUEUE,
    &store::NOTIFIER_QUEUE,
    &store::QUEUE,
    &store::QUICK_NOTE_QUEUE,
    &store::SIMPLE_QUEUE,
    &store::THREAD_SAFE_QUEUE,
    &unqueue::CLASS,
];

#[cfg(test)]
mod tests;
