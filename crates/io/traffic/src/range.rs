//! Address and port ranges that flows are made from.
//!
//! Addresses are `10.0.0.1`, `10.0.0.1-10.0.0.9` or a prefix `10.0.0.0/16`. The first and last address
//! (network and broadcast) of an IPv4 prefix up to /30 are excluded, because many functions drop them. Of a
//! range larger than 2^32 addresses, the first 2^32 are used. Ports are a list of numbers and ranges:
//! `80,443,8000-8099`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::TrafficError;

const ADDRESSES_USED_MAX: u128 = 1 << 32;

/// A range of addresses of one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    count: u64,
    /// As the user wrote it.
    text: String,
}

impl AddressRange {
    /// Addresses in the range (at most 2^32).
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether these are IPv6 addresses.
    pub fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }

    /// Address number `index`, modulo the size of the range.
    pub fn nth(&self, index: u64) -> IpAddr {
        let index = index % self.count.max(1);
        match self.first {
            // The range is known to end inside the family; the cast keeps the low 32 bits.
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(index as u32)).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits().wrapping_add(index.into())).into(),
        }
    }
}

/// An address as a number, and the number of bits of its family.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

fn address(number: u128, bits: u32) -> IpAddr {
    if bits == 32 { Ipv4Addr::from_bits(number as u32).into() } else { Ipv6Addr::from_bits(number).into() }
}

impl FromStr for AddressRange {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let refuse = |reason: &str| TrafficError::setting("address range", text, reason);
        let parse = |part: &str| {
            part.trim()
                .parse::<IpAddr>()
                .map_err(|_| refuse("write an address, a prefix as in 10.0.0.0/16, or first-last"))
        };
        let (first, last, bits) = if let Some((base, length)) = text.split_once('/') {
            let (base, bits) = number(parse(base)?);
            let length = length.trim().parse::<u32>().ok().filter(|l| *l <= bits);
            let length =
                length.ok_or_else(|| refuse("a prefix length is a number up to 32 (IPv4) or 128 (IPv6)"))?;
            let host_mask = match bits - length {
                128 => u128::MAX,
                free => (1u128 << free) - 1,
            };
            let (low, high) = (base & !host_mask, base | host_mask);
            if bits == 32 && length <= 30 { (low + 1, high - 1, bits) } else { (low, high, bits) }
        } else if let Some((first, last)) = text.split_once('-') {
            let (first, bits) = number(parse(first)?);
            let (last, last_bits) = number(parse(last)?);
            if bits != last_bits {
                return Err(refuse("one end is IPv4 and the other IPv6"));
            }
            if first > last {
                return Err(refuse("the range runs backwards; write the lower address first"));
            }
            (first, last, bits)
        } else {
            let (only, bits) = number(parse(text)?);
            (only, only, bits)
        };
        Ok(Self {
            first: address(first, bits),
            count: (last - first).saturating_add(1).min(ADDRESSES_USED_MAX) as u64,
            text: text.trim().to_owned(),
        })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// A set of ports: disjoint ranges in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortSet {
    ranges: Vec<(u16, u16)>,
}

impl PortSet {
    /// Ports in the set, 1 to 65,536.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(low, high)| u64::from(high - low) + 1).sum()
    }

    /// Port number `index`, modulo the size of the set.
    pub fn nth(&self, index: u64) -> u16 {
        let mut index = index % self.count().max(1);
        for &(low, high) in &self.ranges {
            let length = u64::from(high - low) + 1;
            if index < length {
                return low + index as u16;
            }
            index -= length;
        }
        0
    }
}

impl FromStr for PortSet {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let refuse = |reason: &str| TrafficError::setting("ports", text, reason);
        let port = |part: &str| {
            let port = part.trim().parse::<u16>();
            port.map_err(|_| refuse("write numbers from 0 to 65535 and ranges, as in 80,8000-8099"))
        };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (low, high) = match part.split_once('-') {
                Some((low, high)) => (port(low)?, port(high)?),
                None => (port(part)?, port(part)?),
            };
            if low > high {
                return Err(refuse("a range runs backwards; write the lower port first"));
            }
            ranges.push((low, high));
        }
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::new();
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if u32::from(low) <= u32::from(last.1) + 1 => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ok(Self { ranges: merged })
    }
}

impl fmt::Display for PortSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |(low, high): &(u16, u16)| {
            if low == high { low.to_string() } else { format!("{low}-{high}") }
        };
        out.write_str(&self.ranges.iter().map(word).collect::<Vec<_>>().join(","))
    }
}

/// A value that this crate's source contains.
pub(super) fn preset<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| unreachable!("`{text}` is a constant of this crate"))
}

crate::text::text_serde!(AddressRange);
crate::text::text_serde!(PortSet);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(text: &str) -> AddressRange {
        text.parse().expect("valid range")
    }

    #[test]
    fn prefixes_leave_out_network_and_broadcast() {
        let prefix = range("10.0.0.0/30");
        assert_eq!(prefix.count(), 2);
        assert_eq!(prefix.nth(0).to_string(), "10.0.0.1");
        assert_eq!(prefix.nth(3).to_string(), "10.0.0.2");
        assert_eq!(range("10.0.0.8/31").count(), 2);
        assert_eq!(range("10.0.0.8/32").nth(0).to_string(), "10.0.0.8");
        assert_eq!(range("0.0.0.0/0").count(), (1 << 32) - 2);
        assert_eq!(range("::/0").count(), 1 << 32);
        assert_eq!(range("2001:db8::/126").nth(3).to_string(), "2001:db8::3");
    }

    #[test]
    fn ports_merge_and_count() {
        let ports: PortSet = "443,80,8000-8002,8002-8004".parse().expect("valid ports");
        assert_eq!(ports.to_string(), "80,443,8000-8004");
        assert_eq!(ports.count(), 7);
        assert_eq!(ports.nth(2), 8000);
        assert_eq!(ports.nth(7), 80);
        let all: PortSet = "0-65535".parse().expect("valid ports");
        assert_eq!(all.count(), 65_536);
        assert_eq!(all.nth(65_535), 65_535);
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "10.0.0/8", "/8"] {
            assert!(text.parse::<AddressRange>().is_err(), "{text} was accepted");
        }
        for text in ["", "65536", "9-8", "80,", "-", "http"] {
            assert!(text.parse::<PortSet>().is_err(), "{text} was accepted");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,30}") {
            let _ = text.parse::<AddressRange>();
            let _ = text.parse::<PortSet>();
        }

        #[test]
        fn near_miss_addresses(text in "[0-9a-f:.]{1,12}[-/]?[0-9a-f:.]{0,12}", index: u64) {
            if let Ok(range) = text.parse::<AddressRange>() {
                prop_assert!(range.count() >= 1);
                prop_assert_eq!(range.nth(index).is_ipv6(), range.is_ipv6());
            }
        }

        #[test]
        fn prefixes_hold_their_addresses(base: u32, length in 0u32..=30, index: u64) {
            let range = range(&format!("{}/{length}", Ipv4Addr::from_bits(base)));
            let IpAddr::V4(address) = range.nth(index) else { panic!("wrong family") };
            let mask = if length == 0 { 0 } else { u32::MAX << (32 - length) };
            prop_assert_eq!(address.to_bits() & mask, base & mask);
            prop_assert_ne!(address.to_bits() & !mask, 0);
            prop_assert_ne!(address.to_bits() | mask, u32::MAX);
        }

        #[test]
        fn ports_print_back(text in "[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?){0,3}", index: u64) {
            if let Ok(ports) = text.parse::<PortSet>() {
                prop_assert_eq!(&ports.to_string().parse::<PortSet>().expect("prints back"), &ports);
                let port = ports.nth(index);
                prop_assert!(ports.ranges.iter().any(|(low, high)| (*low..=*high).contains(&port)));
            }
        }
    }
}
