//! Elements that pull packets from queues at a rate, after a delay or in an order, and active queue
//! management.

use element::Class;

mod codel;
mod delay;
mod drr;
pub(crate) mod interval;
mod limits;
mod link_unqueue;
mod rated;
mod red;
mod round_robin_unqueue;
mod sched;
mod splitter;
mod time_sorted;
mod timed_sink;
pub(crate) mod token_bucket;
mod watched;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &codel::CLASS,
    &delay::DELAY_SHAPER,
    &delay::DELAY_UNQUEUE,
    &drr::CLASS,
    &link_unqueue::CLASS,
    &rated::BANDWIDTH_RATED_UNQUEUE,
    &rated::RATED_UNQUEUE,
    &red::CLASS,
    &red::ADAPTIVE,
    &round_robin_unqueue::CLASS,
    &sched::PRIO,
    &sched::ROUND_ROBIN,
    &sched::SIMPLE_PRIO,
    &sched::SIMPLE_ROUND_ROBIN,
    &sched::STRIDE,
    &rated::BANDWIDTH_SHAPER,
    &rated::SHAPER,
    &splitter::BANDWIDTH_RATED_SPLITTER,
    &splitter::RATED_SPLITTER,
    &time_sorted::CLASS,
    &timed_sink::CLASS,
];

#[cfg(test)]
mod tests;
