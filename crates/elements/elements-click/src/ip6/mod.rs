//! Translation between IPv4 and IPv6 (RFC 7915), and of IPv6 addresses; headers and checksums of IPv6 packets.
//!
//! - [`prefix`]: IPv4 addresses inside IPv6 addresses; [`header`]: headers of both, read and written
//! - [`message`]: ICMP messages; [`translate`]: packets
//! - [`translator`]: the elements
//!
//! [`address_translator`] replaces addresses and ports of IPv6 packets, [`encap`] adds headers, [`transport_checksum`]
//! computes checksums.

use element::Class;

mod address_translator;
mod encap;
mod header;
mod message;
mod prefix;
mod translate;
mod translator;
mod transport_checksum;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[
    &address_translator::CLASS,
    &encap::IP6,
    &encap::UDP,
    &translator::TO_IP6,
    &translator::TO_IP4,
    &transport_checksum::CLASS,
    &transport_checksum::SET_ICMP,
    &transport_checksum::SET_TCP,
    &transport_checksum::SET_UDP,
];

#[cfg(test)]
mod tests;
