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

/// The value, or the error that the text is none.
fn known<T>(value: Option<T>, wanted: &str, text: &Spanned, names: &dyn Names) -> Parsed<T> {
    value.map_or_else(|| unknown(wanted, text, names), Ok)
}

/// The bytes of an IPv4 address; the last ones may be missing.
fn dotted(text: &str) -> Option<Vec<u8>> {
    let byte = |part: &str| {
        let plain = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse().ok()).flatten()
    };
    let bytes: Option<Vec<u8>> = text.split('.').map(byte).collect();
    bytes.filter(|bytes| bytes.len() <= 4)
}

pub(crate) fn ip4_text(text: &str, names: &dyn Names) -> Option<Ipv4Addr> {
    let literal = dotted(text).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    literal.map(Ipv4Addr::from).or_else(|| names.ip4(text))
}

/// An IPv4 address: `18.26.4.15`, or a name.
pub fn ip4(text: &Spanned, names: &dyn Names) -> Parsed<Ipv4Addr> {
    match ip4_text(&text.text, names) {
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
            Some(bytes) if bytes.len() * 8 >= usize::from(len) => {
                let mut whole = [0; 4];
                whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
                Ipv4Addr::from(whole)
            }
            Some(_) => return None,
            None => names.ip4(address)?,
        };
        return Some(Ip4Prefix::new(address, len));
    }
    Some(Ip4Prefix { address: ip4_text(address, names)?, mask: ip4_text(mask, names)? })
}

pub(crate) fn ip4_prefix_text(text: &str, names: &dyn Names) -> Option<Ip4Prefix> {
    prefix_literal(text, names).or_else(|| names.ip4_prefix(text))
}

/// An IPv4 prefix: `18.26.4.0/24`, `18.26.4/24`, `18.26.4.0/255.255.255.0`, or a name.
pub fn ip4_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip4Prefix> {
    let prefix = ip4_prefix_text(&text.text, names);
    prefix.map_or_else(|| bad_prefix(text, names, "an IP prefix like `10.0.0.0/8`"), Ok)
}

/// An IPv4 address (as a prefix of 32 bits) or a prefix; a name of both is read as the address.
pub fn ip4_or_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip4Prefix> {
    let address = ip4_text(&text.text, names).map(|address| Ip4Prefix::new(address, 32));
    let prefix = address.or_else(|| ip4_prefix_text(&text.text, names));
    prefix.map_or_else(|| bad_prefix(text, names, "an IP address or prefix"), Ok)
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
    if let (Some(bytes), Some(len)) = (dotted(address).filter(|bytes| bytes.len() < 4), len) {
        let message = format!("`{address}` is too short for a prefix of {len} bits");
        let zeros = ".0".repeat(4 - bytes.len());
        let help = format!("write `{address}{zeros}/{len}`");
        return Err(Diagnostic::error(text.span, message).help(help));
    }
    unknown(wanted, text, names)
}

/// An IPv6 address: `1080::8:800:200C:417A`, `::13.1.68.3`, or a name.
pub fn ip6(text: &Spanned, names: &dyn Names) -> Parsed<Ipv6Addr> {
    known(ip6_text(&text.text, names), "an IPv6 address", text, names)
}

pub(crate) fn ip6_text(text: &str, names: &dyn Names) -> Option<Ipv6Addr> {
    text.parse().ok().or_else(|| names.ip6(text))
}

pub(crate) fn ip6_prefix_text(text: &str, names: &dyn Names) -> Option<Ip6Prefix> {
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
    known(ip6_prefix_text(&text.text, names), "an IPv6 prefix like `fe80::/10`", text, names)
}

/// An IPv6 address (as a prefix of 128 bits) or a prefix.
pub fn ip6_or_prefix(text: &Spanned, names: &dyn Names) -> Parsed<Ip6Prefix> {
    let address = ip6_text(&text.text, names).map(|address| Ip6Prefix { address, len: 128 });
    let prefix = address.or_else(|| ip6_prefix_text(&text.text, names));
    known(prefix, "an IPv6 address or prefix", text, names)
}

/// An Ethernet address: `00:a0:c9:9c:fd:9c`, `0-a0-c9-9c-fd-9c`, or a name.
pub fn ether(text: &Spanned, names: &dyn Names) -> Parsed<[u8; 6]> {
    known(ether_text(&text.text, names), "an Ethernet address", text, names)
}

pub(crate) fn ether_text(text: &str, names: &dyn Names) -> Option<[u8; 6]> {
    let byte = |part: &str| {
        let hex = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    let literal = [':', '-'].into_iter().find_map(|separator| {
        let bytes: Option<Vec<u8>> = text.split(separator).map(byte).collect();
        <[u8; 6]>::try_from(bytes?).ok()
    });
    literal.or_else(|| names.ether(text))
}

/// A number, whose errors name it `what`, or the value of a name.
fn number_or<T: TryFrom<i128>>(
    named: impl FnOnce() -> Parsed<T>,
    text: &Spanned,
    (what, most): (&str, u16),
) -> Parsed<T> {
    let Some(number) = integer_literal(&text.text) else { return named() };
    T::try_from(number).map_err(|_| {
        let message = format!("{what} {text} is out of range");
        Diagnostic::error(text.span, message).help(format!("{what}s lie between 0 and {most}"))
    })
}

/// A UDP port, by number or by service name. IANA registers most services for both protocols, whichever they use: a name
/// that is known for TCP only is one of UDP, too.
pub fn udp_port(text: &Spanned, names: &dyn Names) -> Parsed<u16> {
    let port = || names.port(17, &text.text).or_else(|| names.port(6, &text.text));
    let named = || known(port(), "a port number or service name", text, names);
    number_or(named, text, ("port", 65535))
}

/// An IP protocol, by number or by name (`tcp`, `udp`, `icmp`, ...).
pub fn protocol(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    let named = || known(names.protocol(&text.text), "an IP protocol", text, names);
    number_or(named, text, ("protocol", 255))
}
