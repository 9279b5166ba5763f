//! Ethernet addresses. IP addresses are those of the standard library.

use std::fmt;
use std::str::FromStr;

/// An IEEE 802 MAC address, in the order of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// 00:00:00:00:00:00.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Whether it is a group address (broadcast included).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it is the broadcast address.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// Whether it can be the address of one station: neither a group address nor zero.
    pub const fn is_station(self) -> bool {
        !self.is_multicast() && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }

    /// The address as the low 48 bits of an integer, as in the field table.
    pub const fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address from the low 48 bits.
    pub const fn from_bits(bits: u64) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six hexadecimal bytes joined by colons or hyphens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not an Ethernet address: write six hexadecimal bytes, as in 00:1b:21:3c:9d:f8")]
pub struct ParseMacAddrError;

impl FromStr for MacAddr {
    type Err = ParseMacAddrError;

    /// Bytes of one or two digits, joined by `:` or by `-` throughout, as Click reads them.
    fn from_str(text: &str) -> Result<MacAddr, ParseMacAddrError> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut bytes = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            let part = parts.next().ok_or(ParseMacAddrError)?;
            if part.is_empty() || part.len() > 2 || !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(ParseMacAddrError);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacAddrError)?;
        }
        if parts.next().is_some() { Err(ParseMacAddrError) } else { Ok(MacAddr(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bits_come_back() {
        let addr = MacAddr([0, 0x1b, 0x21, 0x3c, 0x9d, 0xf8]);
        assert_eq!(addr.to_string(), "00:1b:21:3c:9d:f8");
        assert_eq!("00:1B:21:3c:9d:f8".parse(), Ok(addr));
        assert_eq!("0-1b-21-3c-9d-f8".parse(), Ok(addr));
        assert_eq!(MacAddr::from_bits(addr.to_bits() | 0xffff << 48), addr);
        assert!(MacAddr::BROADCAST.is_multicast() && MacAddr::BROADCAST.is_broadcast());
        assert!(!addr.is_multicast());
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            ":",
            "0:1:2:3:4",
            "0:1:2:3:4:5:6",
            "0:1:2:3:4:g",
            "0:1:2:3:4:+5",
            "0:1:2:3:4:",
            "0:1-2:3:4:5",
            "000:1:2:3:4:5",
            "١:1:2:3:4:5",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(ParseMacAddrError), "{text}");
        }
    }
}
