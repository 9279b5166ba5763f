//! What takes packets out of queues at a rate or in an order, and queues that drop early.

use element::Class;

mod delay;
mod drr;
mod limits;
mod rated_unqueue;
mod red;
mod sched;
mod shaper;
pub(crate) mod token_bucket;

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
];

#[cfg(test)]
mod tests;
