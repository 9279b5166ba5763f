//! Counting, painting, switching, printing, making and discarding packets: elements that need no
//! protocol (but for `IPPrint`, which tells of packets as `Print` does).

use crate::class::Class;

mod average_counter;
mod counter;
mod data;
mod discard;
mod handler_call;
mod idle;
mod information;
mod ip_line;
mod ip_print;
mod null;
mod paint;
mod paint_switch;
mod print;
pub(crate) mod printer;
mod pull_switch;
mod random_sample;
mod rate;
mod set_timestamp;
mod source;
mod spread;
mod strip;
mod switch;
pub(crate) mod tee;
mod truncate;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &average_counter::CLASS,
    &counter::CLASS,
    &discard::CLASS,
    &idle::CLASS,
    &information::ADDRESS_INFO,
    &information::ALIGNMENT_INFO,
    &information::SCHEDULE_INFO,
    &information::STATIC_THREAD_SCHED,
    &ip_print::CLASS,
    &null::ALIGN,
    &null::NULL,
    &paint::CLASS,
    &paint_switch::CHECK_PAINT,
    &paint_switch::PAINT_SWITCH,
    &paint_switch::PAINT_TEE,
    &print::CLASS,
    &pull_switch::PULL_SWITCH,
    &pull_switch::STATIC_PULL_SWITCH,
    &random_sample::CLASS,
    &set_timestamp::CLASS,
    &source::INFINITE_SOURCE,
    &source::RATED_SOURCE,
    &source::TIMED_SOURCE,
    &spread::HASH,
    &spread::RANDOM,
    &spread::ROUND_ROBIN,
    &strip::STRIP,
    &strip::STRIP_TO_NETWORK_HEADER,
    &strip::UNSTRIP,
    &switch::STATIC_SWITCH,
    &switch::SWITCH,
    &tee::PULL_TEE,
    &tee::TEE,
    &truncate::CLASS,
];

#[cfg(test)]
pub(crate) mod tests;
