//! Translation between IPv4 and IPv6 (RFC 7915), and of IPv6 addresses.
//!
//! - [`prefix`]: IPv4 addresses inside IPv6 addresses; [`header`]: headers of both, read and written
//! - [`message`]: ICMP messages; [`translate`]: packets
//! - [`translator`]: the elements
//!
//! [`address_translator`] replaces addresses and ports of IPv6 packets.

use element::Class;

mod address_translator;
mod header;
mod message;
mod prefix;
mod translate;
mod translator;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&address_translator::CLASS, &translator::TO_IP6, &translator::TO_IP4];

#[cfg(test)]
mod tests;
