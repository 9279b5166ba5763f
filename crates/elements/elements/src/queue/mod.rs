//! Queues, and what takes packets out of them: unqueues, shapers and schedulers.
//!
//! Queues are where push meets pull. Each worker has queues of its own; packets do not cross workers
//! here.

use element::Class;

pub mod length;
mod store;
mod unqueue;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &store::FRONT_DROP_QUEUE,
    &store::FULL_NOTE_QUEUE,
    &store::NOTIFIER_QUEUE,
    &store::QUEUE,
    &store::SIMPLE_QUEUE,
    &store::THREAD_SAFE_QUEUE,
    &unqueue::CLASS,
];

#[cfg(test)]
mod tests;
