//! Addresses, prefixes, ports and protocols, by number or by name.

use std::net::{Ipv4Addr, Ipv6Addr};

use diag::{Diagnostic, Spanned, did_you_mean};

use super::number::integer_literal;
use super::{Names, Parsed, expected};
use crate::config::prefix::{Ip4Prefix, Ip6Prefix};

fn unknown<T>(wanted: &str, text: &Spanned, names: &dyn Names) -> Parsed<T> {
    let known = names.known();
    let suggestion = did_you_mean(&text.text, known.iter().map(String::as_str));
    expected(wanted, text).map_err(|error| error.maybe_help(suggestion))
}

fn dotted(text: &str) -> Option<(Vec<u8>, bool)> {
    let parts: Vec<&str> = text.split('.').collect();
    let bytes: Option<Vec<u8>> = parts
        .iter()
        .map(|part| {
            let plain = !part.is_empty() && part.len() <= 3;
            let digits = plain && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse().ok()).flatten()
        })
        .collect();
    let bytes = bytes.filter(|bytes| bytes.len() <= 4)?;
    let whole = bytes.len() == 4;
    Some((bytes, whole))
}

fn ip4_literal(text: &str) -> Option<Ipv4Addr> {
    let (bytes, _) = dotted(text)?;
    <[u8; 4]>::try_from(bytes).ok().map(Ipv4Addr::from)
}

/// An IPv4 address: `18.26.4.15`, or a name.
pub fn ip4(text: &Spanned, names: &dyn Names) -> Parsed<Ipv4Addr> {
    match ip4_literal(&text.text).or_else(|| names.ip4(&text.text)) {
        Some(address) => Ok(address),
        None if text.text.contains('/') && prefix_literal(&text.text, names).is_some() => {
            let message = format!("expected an IP address, found the prefix `{text}`");
            Err(Diagnostic::error(text.span, message))
        }
        None => unknown("an IP address", text, names),
    }
}

fn prefix_literal(text: &str, names: &dyn Names) -> Option<Ip4Prefix> {
    let (address, mask) = text.split_once('/')?;
    let given = dotted(address);
    let len = integer_literal(mask).filter(|len| (0..=32).contains(len));
    if let Some(len) = len.and_then(|len| u8::try_from(len).ok()) {
        let address = match given {
            // The omitted bytes must be outside the prefix: `204.152/16`, not `204.152/24`.
            Some((bytes, _)) if bytes.len() * 8 >= usize::from(len) => {
                let mut whole = [0; 4];
                whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
                Ipv4Addr::from(whole)
            }
            Some(_) => return None,
            None => names.ip4(address)?,
        };
        return Some(Ip4Prefix::new(address, len));
    }
    let address = ip4_literal(address).or_else(|| names.ip4(address))?;
    let mask = ip4_literal(mask).or_else(|| names.ip4(mask))?;
    Some(Ip4Prefix { address, mask })
}

/// An IPv4 prefix: `18.26.4.0/24`, `18.26.4/24`, `18.26.4.0/255.255.255.0`, or a name.
pub fn ip4_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip4Prefix> {
    prefix_literal(&text.text, names)
        .or_else(|| names.ip4_prefix(&text.text))
        .map_or_else(|| bad_prefix(text, names, "an IP prefix like `10.0.0.0/8`"), Ok)
}

/// An IPv4 address (as a prefix of 32 bits) or a prefix; a name of both is read as the address.
pub fn ip4_or_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip4Prefix> {
    let address = ip4_literal(&text.text).or_else(|| names.ip4(&text.text));
    let prefix = || prefix_literal(&text.text, names).or_else(|| names.ip4_prefix(&text.text));
    address
        .map(|address| Ip4Prefix::new(address, 32))
        .or_else(prefix)
        .map_or_else(|| bad_prefix(text, names, "an IP address or prefix"), Ok)
}

fn bad_prefix<T>(text: &Spanned, names: &dyn Names, wanted: &str) -> Parsed<T> {
    let Some((address, len)) = text.text.split_once('/') else {
        return unknown(wanted, text, names);
    };
    let len = integer_literal(len);
    if let Some(len) = len.filter(|len| !(0..=32).contains(len)) {
        let message = format!("prefix length {len} is out of range");
        return Err(Diagnostic::error(text.span, message).help("it lies between 0 and 32"));
    }
    if let (Some((bytes, false)), Some(len)) = (dotted(address), len) {
        let message = format!("`{address}` is too short for a prefix of {len} bits");
        let zeros = ".0".repeat(4 - bytes.len());
        let help = format!("write `{address}{zeros}/{len}`");
        return Err(Diagnostic::error(text.span, message).help(help));
    }
    unknown(wanted, text, names)
}

/// An IPv6 address: `1080::8:800:200C:417A`, `::13.1.68.3`, or a name.
pub fn ip6(text: &Spanned, names: &dyn Names) -> Parsed<Ipv6Addr> {
    ip6_text(&text.text, names).map_or_else(|| unknown("an IPv6 address", text, names), Ok)
}

fn ip6_text(text: &str, names: &dyn Names) -> Option<Ipv6Addr> {
    text.parse().ok().or_else(|| names.ip6(text))
}

fn ip6_prefix_text(text: &str, names: &dyn Names) -> Option<Ip6Prefix> {
    let Some((address, len)) = text.split_once('/') else {
        return names.ip6_prefix(text);
    };
    let address = ip6_text(address, names)?;
    let len = match integer_literal(len) {
        Some(len) => u8::try_from(len).ok().filter(|&len| len <= 128)?,
        None => {
            // A mask in place of a length; it must be contiguous.
            let mask = u128::from(ip6_text(len, names)?);
            let ones = mask.leading_ones();
            (ones + mask.trailing_zeros() >= 128).then_some(ones as u8)?
        }
    };
    Some(Ip6Prefix { address, len })
}

/// An IPv6 prefix: `fe80::/10`, `::1/ffff::`, or a name.
pub fn ip6_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip6Prefix> {
    ip6_prefix_text(&text.text, names)
        .map_or_else(|| unknown("an IPv6 prefix like `fe80::/10`", text, names), Ok)
}

/// An IPv6 address (as a prefix of 128 bits) or a prefix.
pub fn ip6_or_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip6Prefix> {
    let address = ip6_text(&text.text, names).map(|address| Ip6Prefix { address, len: 128 });
    address
        .or_else(|| ip6_prefix_text(&text.text, names))
        .map_or_else(|| unknown("an IPv6 address or prefix", text, names), Ok)
}

/// An Ethernet address: `00:a0:c9:9c:fd:9c`, `0-a0-c9-9c-fd-9c`, or a name.
pub fn ether(text: &Spanned, names: &dyn Names) -> Parsed<[u8; 6]> {
    let literal = [':', '-'].into_iter().find_map(|separator| {
        let bytes: Option<Vec<u8>> = text
            .text
            .split(separator)
            .map(|part| {
                let hex = part.bytes().all(|byte| byte.is_ascii_hexdigit());
                let short = (1..=2).contains(&part.len());
                (hex && short).then(|| u8::from_str_radix(part, 16).ok()).flatten()
            })
            .collect();
        bytes.and_then(|bytes| <[u8; 6]>::try_from(bytes).ok())
    });
    literal
        .or_else(|| names.ether(&text.text))
        .map_or_else(|| unknown("an Ethernet address", text, names), Ok)
}

/// The number, if the text is one.
fn small_number<T: TryFrom<i128>>(text: &Spanned, what: &str, most: u16) -> Option<Parsed<T>> {
    let number = integer_literal(&text.text)?;
    Some(T::try_from(number).map_err(|_| {
        let message = format!("{what} {text} is out of range");
        Diagnostic::error(text.span, message).help(format!("{what}s lie between 0 and {most}"))
    }))
}

/// A UDP port, by number or by service name.
pub fn udp_port(text: &Spanned, names: &dyn Names) -> Parsed<u16> {
    if let Some(number) = small_number(text, "port", 65535) {
        return number;
    }
    names.port(17, &text.text).map_or_else(|| unknown("a port number or service name", text, names), Ok)
}

/// An IP protocol, by number or by name (`tcp`, `udp`, `icmp`, ...).
pub fn protocol(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    if let Some(number) = small_number(text, "protocol", 255) {
        return number;
    }
    names.protocol(&text.text).map_or_else(|| unknown("an IP protocol", text, names), Ok)
}
