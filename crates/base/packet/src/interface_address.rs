//! IP addresses of L3 interfaces, as users write them: `ADDRESS/LENGTH`.

use std::fmt;
use std::net::IpAddr;

/// An address of an L3 interface, with the length of the prefix of its network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// Bits of the prefix.
    pub len: u8,
}

/// An address as the top bits of 128, and its number of bits.
pub fn bits(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    }
}

/// The mask of a prefix of this length, as the top bits of 128.
pub fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0)
}

impl InterfaceAddress {
    /// Whether an address is in its prefix.
    pub fn reaches(&self, ip: IpAddr) -> bool {
        let same_family = self.ip.is_ipv4() == ip.is_ipv4();
        same_family && (bits(self.ip).0 ^ bits(ip).0) & mask(self.len) == 0
    }

    /// Whether an address of its prefix cannot be a host's: the network address or the broadcast address of
    /// IPv4. In IPv6 the lowest address of a prefix belongs to its routers (RFC 4291, section 2.6.1).
    pub fn is_no_host(&self, ip: IpAddr) -> bool {
        let (value, all) = bits(ip);
        let host = (value & !mask(self.len)) >> (128 - u32::from(all));
        let most = (!mask(self.len)) >> (128 - u32::from(all));
        self.ip.is_ipv4() && self.len < all - 1 && (host == 0 || host == most)
    }

    /// Parses `ADDRESS/LENGTH`.
    ///
    /// # Errors
    /// A sentence that states the mistake.
    pub fn read(text: &str) -> Result<InterfaceAddress, String> {
        let (ip, len) = text.split_once('/').ok_or_else(|| {
            format!("`{text}` does not say how long its network's prefix is: write `{text}/24` or the like")
        })?;
        let ip: IpAddr = ip.parse().map_err(|_| format!("`{ip}` is no IP address"))?;
        let all = bits(ip).1;
        let len = len.parse().ok().filter(|len| (1..=all).contains(len));
        let len = len.ok_or_else(|| format!("the prefix of `{text}` has no length from 1 to {all}"))?;
        let address = InterfaceAddress { ip, len };
        let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        if ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() || is_broadcast {
            return Err(format!("`{ip}` cannot be the address of a station"));
        }
        if address.is_no_host(ip) {
            return Err(format!("`{ip}` is not a host of {text}, but the network or its broadcast address"));
        }
        Ok(address)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.len)
    }
}
