//! Elements that number packets, count them by aggregate, and measure how long they take.

use element::Class;

mod aggregate_counter;
mod aggregates;
mod check_number_packet;
mod number_packet;
mod record_timestamp;
mod timestamp_diff;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &aggregate_counter::CLASS,
    &check_number_packet::CLASS,
    &number_packet::CLASS,
    &record_timestamp::CLASS,
    &timestamp_diff::CLASS,
];

#[cfg(test)]
mod tests;
