//! IPv4 addresses inside IPv6 addresses (RFC 6052).

use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv6 prefix into which IPv4 addresses are embedded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    bits: u128,
    length: u32,
}

/// The byte that every embedding leaves 0, unless the prefix has 96 bits.
const RESERVED_BYTE: usize = 8;

impl Prefix {
    /// IPv4-mapped addresses, `::ffff:0:0/96`, as Click's translators use them.
    pub const MAPPED: Prefix = Prefix { bits: 0xffff_0000_0000, length: 96 };

    /// A prefix of that length.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn new(address: Ipv6Addr, length: u32) -> Result<Prefix, &'static str> {
        let bits = address.to_bits();
        if ![32, 40, 48, 56, 64, 96].contains(&length) {
            return Err("the prefix has to have 32, 40, 48, 56, 64 or 96 bits (RFC 6052)");
        }
        if bits << length != 0 {
            return Err("the address has ones behind the prefix");
        }
        Ok(Prefix { bits, length })
    }

    /// The bytes that an IPv4 address is in.
    fn places(self) -> [usize; 4] {
        let mut at = self.length as usize / 8;
        std::array::from_fn(|_| {
            if at == RESERVED_BYTE && self.length < 96 {
                at += 1;
            }
            at += 1;
            at - 1
        })
    }

    /// The IPv6 address of an IPv4 address.
    pub fn embed(self, address: Ipv4Addr) -> Ipv6Addr {
        let mut bytes = self.bits.to_be_bytes();
        for (place, byte) in self.places().into_iter().zip(address.octets()) {
            bytes[place] = byte;
        }
        bytes.into()
    }

    /// The IPv4 address in an IPv6 address; `None` if that has another prefix or something behind it.
    pub fn extract(self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bytes = address.octets();
        let inner = Ipv4Addr::from(self.places().map(|place| bytes[place]));
        (self.embed(inner) == address).then_some(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_embedded_as_the_rfc_shows() {
        let address = Ipv4Addr::new(192, 0, 2, 33);
        for (prefix, length, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ] {
            let prefix = Prefix::new(prefix.parse().unwrap(), length).unwrap();
            let expected: Ipv6Addr = expected.parse().unwrap();
            assert_eq!((prefix.embed(address), prefix.extract(expected)), (expected, Some(address)));
        }
        assert_eq!(Prefix::MAPPED.embed(address), address.to_ipv6_mapped());
        assert_eq!(Prefix::MAPPED.extract("2001:db8::1".parse().unwrap()), None);
        assert!(Prefix::new("2001:db8::".parse().unwrap(), 33).is_err());
        assert!(Prefix::new("2001:db8::1".parse().unwrap(), 32).is_err());
    }
}
