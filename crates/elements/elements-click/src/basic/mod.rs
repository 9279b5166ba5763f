//! Packet sources, and elements that print, sample and measure. None but `IPPrint` and
//! `IP6Print` depend on a protocol.

use element::Class;

mod average_counter;
mod data;
mod frame_source;
mod ip6_print;
mod ip_line;
mod ip_print;
mod print;
pub(crate) mod printer;
mod random_sample;
mod resize;
mod set_timestamp;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &average_counter::CLASS,
    &ip6_print::CLASS,
    &ip_print::CLASS,
    &print::CLASS,
    &random_sample::CLASS,
    &resize::CLASS,
    &set_timestamp::CLASS,
    &frame_source::INFINITE_SOURCE,
    &frame_source::RATED_SOURCE,
    &frame_source::TIMED_SOURCE,
];

#[cfg(test)]
mod tests;
