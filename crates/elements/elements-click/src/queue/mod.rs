//! What takes packets out of queues at a rate or in an order, and queues that drop early.

use element::Class;

mod delay;
mod drr;
mod limits;
mod rated;
mod red;
mod sched;
pub(crate) mod token_bucket;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &delay::DELAY_SHAPER,
    &delay::DELAY_UNQUEUE,
    &drr::CLASS,
    &rated::BANDWIDTH_RATED_UNQUEUE,
    &rated::RATED_UNQUEUE,
    &red::CLASS,
    &sched::PRIO,
    &sched::ROUND_ROBIN,
    &sched::STRIDE,
    &rated::BANDWIDTH_SHAPER,
    &rated::SHAPER,
];

#[cfg(test)]
mod tests;
