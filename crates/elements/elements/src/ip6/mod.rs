//! IPv6 forwarding: checking, marking, routing, errors, and neighbour discovery.
//!
//! An IPv6 address annotation is kept as two integers of 8 bytes, the high half first
//! ([`address::HIGH`], [`address::LOW`]).

use element::class::Class;

pub mod address;
mod checkip6header;
mod decip6hlim;
mod icmp6error;
mod ip6address;
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
    &icmp6error::CLASS,
    &ip6address::GET,
    &ip6address::SET,
    &ip6address::STORE,
    &lookup::CLASS,
    &markip6header::CLASS,
    &ndadvertiser::CLASS,
    &ndsolicitor::CLASS,
];

#[cfg(test)]
mod tests;
