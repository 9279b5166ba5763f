//! Queues, and what takes packets out of them: unqueues, shapers and schedulers.
//!
//! Queues are where push meets pull. Each worker has queues of its own; packets do not cross workers
//! here.

use crate::class::Class;

mod delay;
mod drr;
pub(crate) mod length;
mod limits;
mod rated_unqueue;
mod red;
mod sched;
mod shaper;
mod store;
pub(crate) mod token_bucket;
mod unqueue;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &delay::DELAY_SHAPER,
    &delay::DELAY_UNQUEUE,
    &drr::CLASS,
    &rated_unqueue::BANDWIDTH_RATED_UNQUEUE,
    &rated_unqueue::RATED_UNQUEUE,
    &red::CLASS,
    &sched::PRIO,
    &sched::ROUND_ROBIN,
    &sched::STRIDE,
    &shaper::BANDWIDTH_SHAPER,
    &shaper::SHAPER,
    &store::FRONT_DROP_QUEUE,
    &store::FULL_NOTE_QUEUE,
    &store::NOTIFIER_QUEUE,
    &store::QUEUE,
    &store::SIMPLE_QUEUE,
    &store::THREAD_SAFE_QUEUE,
    &unqueue::CLASS,
];

#[cfg(test)]
mod red_tests;
#[cfg(test)]
mod tests;
