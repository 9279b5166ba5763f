//! Elements that number packets, give them aggregates and count them by those, sort them by regular expressions, and
//! measure how long they take.

use element::Class;

mod adjust_timestamp;
mod aggregate_by;
mod aggregate_counter;
mod aggregate_ip;
mod aggregate_ip_flows;
mod aggregates;
mod check_number_packet;
mod number_packet;
mod record_timestamp;
mod regex_classifier;
pub(crate) mod signed_time;
mod time_filter;
mod timestamp_diff;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &adjust_timestamp::ADJUST,
    &adjust_timestamp::DELTA,
    &aggregate_by::BY_PAINT,
    &aggregate_by::FILTER,
    &aggregate_by::FIRST,
    &aggregate_by::LENGTH,
    &aggregate_by::PAIR,
    &aggregate_counter::CLASS,
    &aggregate_ip::CLASS,
    &aggregate_ip_flows::CLASS,
    &check_number_packet::CLASS,
    &number_packet::CLASS,
    &record_timestamp::CLASS,
    &regex_classifier::CLASS,
    &time_filter::CLASS,
    &timestamp_diff::CLASS,
];

#[cfg(test)]
mod tests;
#[cfg(test)]
mod time_tests;
