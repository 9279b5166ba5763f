//! Translates whole packets.

use super::header::{Fragment, Head, checksum_at, read4, read6, write4, write6};
use super::message::{self, Error};
use super::prefix::Prefix;
use packet::Access;
use packet::checksum::{self, Delta};
use packet::view::protocol::{ICMP, ICMP6, UDP};
use std::net::{Ipv4Addr, Ipv6Addr};

element::reasons!(
    NO_IP_HEADER = "no-ip-header",
    EXPIRED = "ttl-expired",
    SOURCE_ROUTE = "source-route",
    NO_ADDRESS = "no-ip4-address",
    NO_EQUIVALENT = "no-equivalent",
    ZERO_CHECKSUM = "zero-checksum",
    ICMP_FRAGMENT = "icmp-fragment",
    TOO_BIG = "too-big",
    NO_ROOM = "no-room",
);

/// The least MTU of an IPv6 link: larger packets that may be fragmented are.
pub const LEAST_MTU6: usize = 1280;
/// The longest packet that IPv4's identification may be needed for.
const LEAST_MTU4: usize = 1260;
/// Bytes of an ICMP error in front of what it quotes.
const ERROR_BYTES: usize = 8;

/// How packets are translated.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub prefix: Prefix,
    /// Each packet's TTL gets one less.
    pub decrements: bool,
    /// The source of errors from routers whose address has no equivalent.
    pub error_source: Option<Ipv4Addr>,
}

/// Translates an IPv4 packet to IPv6, appended to `out`. One that is larger than an IPv6 link takes, and that
/// may be fragmented, is left to [`fragments`].
///
/// # Errors
/// The drop reason.
pub fn to_ip6(bytes: &[u8], rules: &Rules, out: &mut Vec<u8>) -> Result<(), usize> {
    let head = read4(bytes).ok_or(NO_IP_HEADER)?;
    let payload = bytes.get(head.bytes..head.bytes + head.payload).ok_or(NO_IP_HEADER)?;
    if head.is_source_routed {
        return Err(SOURCE_ROUTE);
    }
    let mut new = head6(&head, rules);
    new.ttl = forwarded(head.ttl, rules)?;
    if head.protocol == ICMP {
        if head.fragment.is_some() {
            return Err(ICMP_FRAGMENT);
        }
        return message46(new, payload, rules, out);
    }
    if head.protocol == UDP && head.is_first() && payload.u16(6) == Some(0) {
        if head.fragment.is_some() {
            return Err(ZERO_CHECKSUM);
        }
        let at = push6(out, &new, payload);
        let pseudo = checksum::pseudo_ipv6(new.source, new.destination, UDP, payload.len() as u32);
        let sum = checksum::udp(&out[at..], 0, payload.len(), pseudo).ok_or(NO_IP_HEADER)?;
        let set = out[at..].put_u16(6, sum);
        debug_assert!(set, "it was read");
        return Ok(());
    }
    let at = push6(out, &new, payload);
    if head.is_first() {
        correct(&mut out[at..], head.protocol, delta46(&head, &new));
    }
    Ok(())
}

/// Translates an IPv6 packet to IPv4, appended to `out`. `id` is for one that may be fragmented.
///
/// # Errors
/// The drop reason.
pub fn to_ip4(bytes: &[u8], rules: &Rules, id: u16, out: &mut Vec<u8>) -> Result<(), usize> {
    let head = read6(bytes).ok_or(NO_IP_HEADER)?;
    let payload = bytes.get(head.bytes..head.bytes + head.payload).ok_or(NO_IP_HEADER)?;
    if head.is_source_routed {
        return Err(SOURCE_ROUTE);
    }
    let is_error = head.protocol == ICMP6 && payload.u8(0).is_some_and(|kind| kind < 128);
    let source = rules.prefix.extract(head.source);
    let source = source.or(rules.error_source.filter(|_| is_error)).ok_or(NO_ADDRESS)?;
    let destination = rules.prefix.extract(head.destination).ok_or(NO_ADDRESS)?;
    let mut new = head4(&head, source, destination);
    new.ttl = forwarded(head.ttl, rules)?;
    new.id = if new.dont_fragment { 0 } else { id };
    if head.protocol == ICMP6 {
        if head.fragment.is_some() {
            return Err(ICMP_FRAGMENT);
        }
        return message64(new, payload, rules, out);
    }
    let at = push4(out, &new, payload);
    if head.is_first() {
        correct(&mut out[at..], head.protocol, delta64(&head, &new));
    }
    Ok(())
}

/// The parts of an IPv6 packet without fragment header that are sent where it is larger than a link takes:
/// for each, a head, and the range of the packet's bytes behind its header.
pub fn fragments(
    packet: &[u8],
    id: u32,
) -> impl Iterator<Item = (Head<Ipv6Addr>, std::ops::Range<usize>)> + use<> {
    const SPACE: usize = (LEAST_MTU6 - super::header::IP6_BYTES - super::header::FRAGMENT_BYTES) & !7;
    let head = read6(packet);
    let before = head.and_then(|head| head.fragment).unwrap_or(Fragment { id, offset: 0, more: false });
    let count = head.map_or(0, |head| head.payload.div_ceil(SPACE));
    (0..count).filter_map(move |number| {
        let head = head?;
        let (from, to) = (number * SPACE, ((number + 1) * SPACE).min(head.payload));
        let offset = before.offset + (from / 8) as u16;
        let fragment = Fragment { offset, more: before.more || to < head.payload, ..before };
        let part = Head { payload: to - from, fragment: Some(fragment), ..head };
        Some((part, head.bytes + from..head.bytes + to))
    })
}

fn forwarded(ttl: u8, rules: &Rules) -> Result<u8, usize> {
    match (rules.decrements, ttl) {
        (false, ttl) => Ok(ttl),
        (true, 0 | 1) => Err(EXPIRED),
        (true, ttl) => Ok(ttl - 1),
    }
}

fn head6(head: &Head<Ipv4Addr>, rules: &Rules) -> Head<Ipv6Addr> {
    Head {
        bytes: 0,
        payload: head.payload,
        class: head.class,
        ttl: head.ttl,
        protocol: if head.protocol == ICMP { ICMP6 } else { head.protocol },
        source: rules.prefix.embed(head.source),
        destination: rules.prefix.embed(head.destination),
        fragment: head.fragment,
        id: 0,
        dont_fragment: head.dont_fragment,
        is_source_routed: false,
    }
}

fn head4(head: &Head<Ipv6Addr>, source: Ipv4Addr, destination: Ipv4Addr) -> Head<Ipv4Addr> {
    Head {
        bytes: 0,
        payload: head.payload,
        class: head.class,
        ttl: head.ttl,
        protocol: if head.protocol == ICMP6 { ICMP } else { head.protocol },
        source,
        destination,
        fragment: head.fragment,
        id: 0,
        // A small packet may be fragmented by a link with a smaller MTU than any of IPv6 (RFC 7915, 5.1).
        dont_fragment: head.fragment.is_none() && head.payload + super::header::IP4_BYTES > LEAST_MTU4,
        is_source_routed: false,
    }
}

/// Appends a packet; returns where its payload is.
fn push6(out: &mut Vec<u8>, head: &Head<Ipv6Addr>, payload: &[u8]) -> usize {
    write6(out, head);
    out.extend_from_slice(payload);
    out.len() - payload.len()
}

fn push4(out: &mut Vec<u8>, head: &Head<Ipv4Addr>, payload: &[u8]) -> usize {
    write4(out, head);
    out.extend_from_slice(payload);
    out.len() - payload.len()
}

/// The change of a pseudo header from IPv4 to IPv6: its length and protocol are the same numbers.
fn delta46(old: &Head<Ipv4Addr>, new: &Head<Ipv6Addr>) -> Delta {
    let gone = Delta::NONE.change32(old.source.into(), 0).change32(old.destination.into(), 0);
    gone.change128(0, new.source.into()).change128(0, new.destination.into())
}

fn delta64(old: &Head<Ipv6Addr>, new: &Head<Ipv4Addr>) -> Delta {
    let gone = Delta::NONE.change128(old.source.into(), 0).change128(old.destination.into(), 0);
    gone.change32(0, new.source.into()).change32(0, new.destination.into())
}

/// Updates the checksum of a transport header, as far as it is there.
fn correct(payload: &mut [u8], protocol: u8, delta: Delta) {
    let Some((at, sum)) = checksum_at(protocol).and_then(|at| Some((at, payload.u16(at)?))) else { return };
    let sum = if at == 6 { delta.apply_udp(sum) } else { delta.apply(sum) };
    let set = payload.put_u16(at, sum);
    debug_assert!(set, "it was read");
}

/// What ICMPv6 sums in addition to the message.
fn pseudo6(head: &Head<Ipv6Addr>, length: usize) -> checksum::Sum {
    checksum::pseudo_ipv6(head.source, head.destination, ICMP6, length as u32)
}

fn message46(mut new: Head<Ipv6Addr>, payload: &[u8], rules: &Rules, out: &mut Vec<u8>) -> Result<(), usize> {
    let front = payload.u64(0).ok_or(NO_IP_HEADER)?;
    let (kind, code) = ((front >> 56) as u8, (front >> 48) as u8);
    if let Some(kind) = message::echo46(kind) {
        let at = push6(out, &new, payload);
        let sum = checksum_of_echo46(&new, payload, kind);
        let set = out[at..].put_u8(0, kind) && out[at..].put_u16(2, sum);
        debug_assert!(set, "it was read");
        return Ok(());
    }
    let quoted = payload.get(ERROR_BYTES..).ok_or(NO_IP_HEADER)?;
    let inner = read4(quoted).ok_or(NO_EQUIVALENT)?;
    let about = (inner.bytes + inner.payload) as u32;
    let error = message::error46(Error { kind, code, rest: front as u32 }, about).ok_or(NO_EQUIVALENT)?;
    let start = out.len();
    write6(out, &new);
    let message = out.len();
    push_error(out, error);
    quote46(quoted, &inner, rules, out)?;
    out.truncate(start + LEAST_MTU6);
    finish6(out, start, message, &mut new);
    Ok(())
}

/// Sets the length and the checksum of an ICMPv6 message that was just written.
fn finish6(out: &mut [u8], start: usize, message: usize, new: &mut Head<Ipv6Addr>) {
    let length = out.len() - message;
    new.payload = length;
    let sum = checksum::icmp6(&out[message..], 0, length, pseudo6(new, length)).unwrap_or(0);
    let set = out[message..].put_u16(2, sum) && out[start..].put_u16(4, length as u16);
    debug_assert!(set, "it was written");
}

/// An echo message's checksum over IPv6: that of IPv4, changed by the type and the pseudo header.
fn checksum_of_echo46(new: &Head<Ipv6Addr>, payload: &[u8], kind: u8) -> u16 {
    let (old, sum) = (payload.u16(0).unwrap_or(0), payload.u16(2).unwrap_or(0));
    let message = Delta::NONE.change16(old, u16::from(kind) << 8 | old & 0xff);
    let pseudo = message.change128(0, new.source.into()).change128(0, new.destination.into());
    pseudo.change32(0, payload.len() as u32).change32(0, ICMP6.into()).apply(sum)
}

fn checksum_of_echo64(source: Ipv6Addr, destination: Ipv6Addr, payload: &[u8], kind: u8) -> u16 {
    let (old, sum) = (payload.u16(0).unwrap_or(0), payload.u16(2).unwrap_or(0));
    let message = Delta::NONE.change16(old, u16::from(kind) << 8 | old & 0xff);
    let pseudo = message.change128(source.into(), 0).change128(destination.into(), 0);
    pseudo.change32(payload.len() as u32, 0).change32(ICMP6.into(), 0).apply_icmp(sum)
}

fn push_error(out: &mut Vec<u8>, error: Error) {
    out.extend([error.kind, error.code, 0, 0]);
    out.extend(error.rest.to_be_bytes());
}

/// Appends what an error quotes: an IPv4 packet, perhaps cut off, as it was before it was translated or will
/// be.
fn quote46(quoted: &[u8], inner: &Head<Ipv4Addr>, rules: &Rules, out: &mut Vec<u8>) -> Result<(), usize> {
    let rest = quoted.get(inner.bytes..).unwrap_or_default();
    let rest = rest.get(..inner.payload).unwrap_or(rest);
    let new = head6(inner, rules);
    let at = push6(out, &new, rest);
    let rest = &mut out[at..];
    if inner.protocol == ICMP && inner.is_first() {
        let Some(kind) = rest.u8(0) else { return Ok(()) };
        // No error is about an error.
        let kind = message::echo46(kind).ok_or(NO_EQUIVALENT)?;
        let old = rest.u16(0).unwrap_or(0);
        let delta = Delta::NONE.change16(old, u16::from(kind) << 8 | old & 0xff);
        let delta = delta.change128(0, new.source.into()).change128(0, new.destination.into());
        let delta = delta.change32(0, inner.payload as u32).change32(0, ICMP6.into());
        let sum = rest.u16(2).map(|sum| delta.apply(sum));
        let set = rest.put_u8(0, kind) && sum.is_none_or(|sum| rest.put_u16(2, sum));
        debug_assert!(set, "it was read");
    } else if inner.is_first() {
        correct(rest, inner.protocol, delta46(inner, &new));
    }
    Ok(())
}

fn message64(new: Head<Ipv4Addr>, payload: &[u8], rules: &Rules, out: &mut Vec<u8>) -> Result<(), usize> {
    let front = payload.u64(0).ok_or(NO_IP_HEADER)?;
    let (kind, code) = ((front >> 56) as u8, (front >> 48) as u8);
    if let Some(kind) = message::echo64(kind) {
        let (source, destination) = (rules.prefix.embed(new.source), rules.prefix.embed(new.destination));
        let at = push4(out, &new, payload);
        let sum = checksum_of_echo64(source, destination, payload, kind);
        let set = out[at..].put_u8(0, kind) && out[at..].put_u16(2, sum);
        debug_assert!(set, "it was read");
        return Ok(());
    }
    let error = message::error64(Error { kind, code, rest: front as u32 }).ok_or(NO_EQUIVALENT)?;
    let quoted = payload.get(ERROR_BYTES..).ok_or(NO_IP_HEADER)?;
    let inner = read6(quoted).ok_or(NO_EQUIVALENT)?;
    let start = out.len();
    // The header's length is known behind the message.
    write4(out, &new);
    let message = out.len();
    push_error(out, error);
    quote64(quoted, &inner, rules, out)?;
    let body = out.len() - message;
    let sum = checksum::icmp(&out[message..], 0, body).unwrap_or(0);
    let set = out[message..].put_u16(2, sum)
        && out[start..].put_u16(2, (super::header::IP4_BYTES + body) as u16)
        && checksum::set_ipv4_header(&mut out[start..], 0, super::header::IP4_BYTES);
    debug_assert!(set, "it was written");
    Ok(())
}

fn quote64(quoted: &[u8], inner: &Head<Ipv6Addr>, rules: &Rules, out: &mut Vec<u8>) -> Result<(), usize> {
    let rest = quoted.get(inner.bytes..).unwrap_or_default();
    let rest = rest.get(..inner.payload).unwrap_or(rest);
    let source = rules.prefix.extract(inner.source).ok_or(NO_ADDRESS)?;
    let destination = rules.prefix.extract(inner.destination).ok_or(NO_ADDRESS)?;
    let new = head4(inner, source, destination);
    let at = push4(out, &new, rest);
    let rest = &mut out[at..];
    if inner.protocol == ICMP6 && inner.is_first() {
        let Some(kind) = rest.u8(0) else { return Ok(()) };
        let kind = message::echo64(kind).ok_or(NO_EQUIVALENT)?;
        let old = rest.u16(0).unwrap_or(0);
        let delta = Delta::NONE.change16(old, u16::from(kind) << 8 | old & 0xff);
        let delta = delta.change128(inner.source.into(), 0).change128(inner.destination.into(), 0);
        let delta = delta.change32(inner.payload as u32, 0).change32(ICMP6.into(), 0);
        let sum = rest.u16(2).map(|sum| delta.apply_icmp(sum));
        let set = rest.put_u8(0, kind) && sum.is_none_or(|sum| rest.put_u16(2, sum));
        debug_assert!(set, "it was read");
    } else if inner.is_first() {
        correct(rest, inner.protocol, delta64(inner, &new));
    }
    Ok(())
}
