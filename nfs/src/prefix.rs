//! Prefixes of IP addresses.

use packet::interface_address::{bits, mask};
use std::net::IpAddr;
use std::str::FromStr;

/// A prefix: the addresses that share its first bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// The prefix of `len` bits that contains an address.
    pub fn of(address: IpAddr, len: u8) -> Prefix {
        let kept = bits(address).0 & mask(len);
        let address = match address {
            IpAddr::V4(_) => IpAddr::V4(((kept >> 96) as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(kept.into()),
        };
        Prefix { address, len }
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its length in bits.
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether it has no bits: every address of its family.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && bits(address).0 & mask(self.len) == bits(self.address).0
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// `ADDRESS/LENGTH`, or an address alone. Bits after the length must be zero: other bits are mostly
    /// typing errors.
    fn from_str(text: &str) -> Result<Prefix, String> {
        let (address, len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
        let address: IpAddr = address
            .parse()
            .map_err(|_| format!("`{text}` is no prefix: write `10.0.0.0/8` or `fd00::/8`"))?;
        let most = bits(address).1;
        let len = match len {
            None => most,
            Some(len) => len
                .parse()
                .ok()
                .filter(|len| *len <= most)
                .ok_or_else(|| format!("the length of `{text}` is not 0 to {most}"))?,
        };
        let prefix = Prefix::of(address, len);
        if prefix.address != address {
            return Err(format!("`{text}` has bits behind its length: write `{}/{len}`", prefix.address));
        }
        Ok(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_what_shares_their_bits() {
        for (prefix, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.0"),
            ("fd00::/9", "fd7f::1", "fd80::"),
            ("::/0", "ffff::", "0.0.0.0"),
        ] {
            let prefix: Prefix = prefix.parse().expect("a prefix");
            assert!(prefix.contains(inside.parse().expect("an address")), "{prefix:?} {inside}");
            assert!(!prefix.contains(outside.parse().expect("an address")), "{prefix:?} {outside}");
        }
        for text in ["10.0.0.0/33", "10.0.0.1/8", "::1/129", "a/8", "10.0.0.0/", "/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
