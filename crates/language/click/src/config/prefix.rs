//! Address prefixes.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 address and a mask. The address may have bits outside the mask, and the mask need not be
/// contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip4Prefix {
    /// The address as written.
    pub address: Ipv4Addr,
    /// The mask.
    pub mask: Ipv4Addr,
}

impl Ip4Prefix {
    /// A prefix of `len` bits, at most 32.
    pub fn new(address: Ipv4Addr, len: u8) -> Ip4Prefix {
        let mask = u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0);
        Ip4Prefix { address, mask: Ipv4Addr::from(mask) }
    }

    /// The address with the bits outside the mask cleared.
    pub fn network(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.address) & u32::from(self.mask))
    }

    /// The prefix length; `None` for a mask that is not contiguous.
    pub fn len(&self) -> Option<u8> {
        let mask = u32::from(self.mask);
        (mask.leading_ones() + mask.trailing_zeros() >= 32).then_some(mask.leading_ones() as u8)
    }

    /// Whether the prefix contains every address.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

impl fmt::Display for Ip4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.len() {
            Some(len) => write!(f, "{}/{len}", self.address),
            None => write!(f, "{}/{}", self.address, self.mask),
        }
    }
}

/// An IPv6 address and a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip6Prefix {
    /// The address as written; it may have bits outside the prefix.
    pub address: Ipv6Addr,
    /// The prefix length, at most 128.
    pub len: u8,
}

impl Ip6Prefix {
    /// The mask of a prefix of that length.
    pub fn mask(len: u8) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0)
    }
}
