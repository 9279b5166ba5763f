//! IPv6 forwarding: checking, marking, changing, routing, errors, and neighbour discovery.
//!
//! An IPv6 address annotation is kept as two integers of 8 bytes, the high half first
//! ([`address::HIGH`], [`address::LOW`]).

use element::class::Class;

pub mod address;
mod checkip6header;
mod decip6hlim;
mod fields;
mod icmp6error;
mod ip6address;
mod ip6fragmenter;
mod ip6mirror;
mod line;
mod lookup;
mod markip6header;
pub(crate) mod ndadvertiser;
mod ndsolicitor;
mod table;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &checkip6header::CLASS,
    &decip6hlim::CLASS,
    &fields::DSCP,
    &fields::ECN,
    &fields::FLOW_LABEL,
    &fields::HOP_LIMIT,
    &icmp6error::CLASS,
    &ip6address::GET,
    &ip6address::SET,
    &ip6address::STORE,
    &ip6fragmenter::CLASS,
    &ip6mirror::CLASS,
    &lookup::CLASS,
    &markip6header::CLASS,
    &ndadvertiser::CLASS,
    &ndsolicitor::CLASS,
];

#[cfg(test)]
mod tests;
