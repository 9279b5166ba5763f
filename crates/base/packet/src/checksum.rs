//! Internet checksums: full checksums of headers and segments (RFC 1071), and incremental updates in
//! [`delta`].
//!
//! A [`Sum`] is a one's complement sum of 16-bit words before it is complemented. Such a sum has two zeros:
//! 0x0000 only if every word is zero, and 0xffff for every other multiple of 65535. [`Sum::fold`] preserves
//! this distinction, so a full computation gives the same bits as adding word by word. A header holds the
//! complement.
//!
//! All functions read packets through [`Access`], in copies of 64 bytes, and return `None` or
//! [`Validity::Truncated`] if a range reaches past the end. They do not read length fields: callers check the
//! length of a header or segment and pass it.

pub mod delta;
pub mod partial;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use delta::{Delta, update, update_udp16, update_udp32, update16, update32};
pub use partial::finish_partial;

use crate::access::Access;

/// Offset of the checksum in an IPv4 header, in bytes.
pub const IPV4_CHECK: usize = 10;
/// Offset of the checksum in a TCP header, in bytes.
pub const TCP_CHECK: usize = 16;
/// Offset of the checksum in a UDP header, in bytes.
pub const UDP_CHECK: usize = 6;
/// Offset of the checksum in an ICMP or ICMPv6 message, in bytes.
pub const ICMP_CHECK: usize = 2;

/// Bytes that are copied out at once: one cache line.
const CHUNK: usize = 64;

/// A one's complement sum of 16-bit words, not yet folded or complemented.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// Adds one word.
    #[inline]
    #[must_use]
    pub const fn add16(self, word: u16) -> Sum {
        Sum(self.0 + word as u64)
    }

    /// Adds the two words of a 32-bit integer.
    #[inline]
    #[must_use]
    pub const fn add32(self, words: u32) -> Sum {
        Sum(self.0 + (words >> 16) as u64 + (words & 0xffff) as u64)
    }

    /// Adds another sum.
    #[inline]
    #[must_use]
    pub const fn add(self, other: Sum) -> Sum {
        Sum(self.0 + other.fold() as u64)
    }

    /// Adds private bytes, which begin at an even offset of what is summed.
    ///
    /// An odd last byte is the high half of a word (RFC 1071 section 4.1).
    #[inline]
    #[must_use]
    pub fn add_bytes(self, bytes: &[u8]) -> Sum {
        let mut sum = Wide::default();
        let (chunks, tail) = bytes.as_chunks::<CHUNK>();
        for chunk in chunks {
            sum.add(chunk);
        }
        if !tail.is_empty() {
            let mut last = [0; CHUNK];
            last[..tail.len()].copy_from_slice(tail);
            sum.add(&last);
        }
        self.add16(sum.fold())
    }

    /// Adds `len_bytes` of the packet from `offset`, which is an even offset of what is summed;
    /// `None` if they reach past the end.
    #[inline]
    #[must_use]
    pub fn add_range<A: Access + ?Sized>(self, packet: &A, offset: usize, len_bytes: usize) -> Option<Sum> {
        let mut sum = Wide::default();
        let end = offset.checked_add(len_bytes)?;
        let mut at = offset;
        while end - at >= CHUNK {
            sum.add(&packet.get(at)?);
            at += CHUNK;
        }
        if at < end {
            let mut last = [0; CHUNK];
            if !packet.copy_out(at, &mut last[..end - at]) {
                return None;
            }
            sum.add(&last);
        }
        Some(self.add16(sum.fold()))
    }

    /// The sum as one word: 0 only if every word was zero.
    #[inline]
    #[must_use]
    pub const fn fold(self) -> u16 {
        fold(self.0)
    }

    /// The complement: what a checksum field holds.
    #[inline]
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// End-around carry down to 16 bits. Keeps the value modulo 65535, and non-zero stays non-zero.
#[inline]
const fn fold(mut sum: u64) -> u16 {
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// Running sum of 64-byte chunks in the machine's byte order (RFC 1071 section 2 (B)). The halves of each
/// 64-bit word are added separately, which needs no carry for 2^32 chunks and can be vectorized.
#[derive(Default)]
struct Wide {
    low: u64,
    high: u64,
}

impl Wide {
    #[inline]
    fn add(&mut self, chunk: &[u8; CHUNK]) {
        for word in chunk.as_chunks::<8>().0 {
            let word = u64::from_ne_bytes(*word);
            self.low += word & 0xffff_ffff;
            self.high += word >> 32;
        }
    }

    #[inline]
    fn fold(&self) -> u16 {
        u16::from_be(fold(u64::from(fold(self.low)) + u64::from(fold(self.high))))
    }
}

/// The sum of a packet's range; `None` if it reaches past the end.
#[inline]
#[must_use]
pub fn sum<A: Access + ?Sized>(packet: &A, offset: usize, len_bytes: usize) -> Option<Sum> {
    Sum::ZERO.add_range(packet, offset, len_bytes)
}

/// Pseudo header of TCP and UDP over IPv4 (RFC 9293 section 3.1, RFC 768).
#[inline]
#[must_use]
pub fn pseudo_ipv4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len_bytes: u16) -> Sum {
    Sum::ZERO.add32(src.to_bits()).add32(dst.to_bits()).add16(u16::from(protocol)).add16(len_bytes)
}

/// Pseudo header of upper layers over IPv6 (RFC 8200 section 8.1). `dst` is the final destination.
#[inline]
#[must_use]
pub fn pseudo_ipv6(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, len_bytes: u32) -> Sum {
    let words = src.segments().into_iter().chain(dst.segments());
    words.fold(Sum::ZERO, Sum::add16).add32(len_bytes).add16(u16::from(next_header))
}

/// The result of verifying a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Validity {
    /// It matches.
    Good,
    /// It does not match.
    Bad,
    /// The sender computed none (UDP only, field zero). Over IPv6 that is an error except for some
    /// tunnels (RFC 8200 section 8.1, RFC 6935): the caller decides.
    Absent,
    /// The range reaches past the packet's end, or is too short to hold the field.
    Truncated,
}

impl Validity {
    /// Whether a receiver over IPv4 accepts the bytes.
    #[inline]
    #[must_use]
    pub const fn is_acceptable(self) -> bool {
        matches!(self, Validity::Good | Validity::Absent)
    }

    #[inline]
    fn of(sum: Option<Sum>) -> Validity {
        match sum.map(Sum::fold) {
            Some(0xffff) => Validity::Good,
            Some(_) => Validity::Bad,
            None => Validity::Truncated,
        }
    }
}

/// The checksum over `len_bytes` from `at`. Its field is at the even offset `field` from `at` and counts as
/// zero. `initial` is the pseudo header, or [`Sum::ZERO`].
///
/// The field itself is not read. `None` if the range reaches past the end or does not hold the field.
#[inline]
#[must_use]
pub fn compute<A: Access + ?Sized>(
    packet: &A,
    at: usize,
    len_bytes: usize,
    field: usize,
    initial: Sum,
) -> Option<u16> {
    let behind = field.checked_add(2)?;
    let rest = len_bytes.checked_sub(behind)?;
    let before = initial.add_range(packet, at, field)?;
    Some(before.add_range(packet, at.checked_add(behind)?, rest)?.checksum())
}

/// Whether `len_bytes` from `at`, with their checksum field among them, sum up to 0xffff.
#[inline]
#[must_use]
pub fn verify<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, initial: Sum) -> Validity {
    Validity::of(initial.add_range(packet, at, len_bytes))
}

/// IPv4 header checksum (RFC 791) of a header of `header_len_bytes` at `at`.
#[inline]
#[must_use]
pub fn ipv4_header<A: Access + ?Sized>(packet: &A, at: usize, header_len_bytes: usize) -> Option<u16> {
    if header_len_bytes == 20 {
        let mut header: [u8; 20] = packet.get(at)?;
        header[IPV4_CHECK] = 0;
        header[IPV4_CHECK + 1] = 0;
        return Some(plain_ipv4_header(&header).checksum());
    }
    compute(packet, at, header_len_bytes, IPV4_CHECK, Sum::ZERO)
}

/// The sum of a header without options, as nearly all are: five loads, no copy of variable length.
#[inline]
fn plain_ipv4_header(header: &[u8; 20]) -> Sum {
    let words = header.as_chunks::<4>().0;
    let sum = words.iter().fold(0, |sum, word| sum + u64::from(u32::from_ne_bytes(*word)));
    Sum(u64::from(u16::from_be(fold(sum))))
}

/// Verifies an IPv4 header's checksum.
#[inline]
#[must_use]
pub fn verify_ipv4_header<A: Access + ?Sized>(packet: &A, at: usize, header_len_bytes: usize) -> Validity {
    if header_len_bytes < IPV4_CHECK + 2 {
        return Validity::Truncated;
    }
    if header_len_bytes == 20 {
        return Validity::of(packet.get(at).map(|header| plain_ipv4_header(&header)));
    }
    verify(packet, at, header_len_bytes, Sum::ZERO)
}

/// Computes and writes an IPv4 header's checksum; false if the header is truncated.
#[must_use]
pub fn set_ipv4_header<A: Access + ?Sized>(packet: &mut A, at: usize, header_len_bytes: usize) -> bool {
    ipv4_header(packet, at, header_len_bytes).is_some_and(|check| packet.put_u16(at + IPV4_CHECK, check))
}

/// TCP checksum of a segment of `len_bytes` at `at`.
#[inline]
#[must_use]
pub fn tcp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Option<u16> {
    compute(packet, at, len_bytes, TCP_CHECK, pseudo)
}

/// Verifies a TCP checksum.
#[inline]
#[must_use]
pub fn verify_tcp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Validity {
    if len_bytes < TCP_CHECK + 2 {
        return Validity::Truncated;
    }
    verify(packet, at, len_bytes, pseudo)
}

/// UDP checksum of a datagram of `len_bytes` at `at`: never 0, which would mean "none" (RFC 768).
#[inline]
#[must_use]
pub fn udp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Option<u16> {
    compute(packet, at, len_bytes, UDP_CHECK, pseudo).map(udp_on_wire)
}

/// Verifies a UDP checksum; [`Validity::Absent`] if the field is zero.
#[inline]
#[must_use]
pub fn verify_udp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Validity {
    let Some(header_end) = at.checked_add(UDP_CHECK + 2).filter(|_| len_bytes >= UDP_CHECK + 2) else {
        return Validity::Truncated;
    };
    // The header is copied once, so that the field cannot change between the check for "absent" and the sum.
    let Some(header) = packet.get::<8>(at) else { return Validity::Truncated };
    if header[UDP_CHECK..] == [0, 0] {
        return if header_end - 8 + len_bytes <= packet.len() {
            Validity::Absent
        } else {
            Validity::Truncated
        };
    }
    Validity::of(pseudo.add_bytes(&header).add_range(packet, header_end, len_bytes - 8))
}

/// A computed checksum as UDP sends it: 0x0000 becomes 0xffff (RFC 768).
#[inline]
#[must_use]
pub const fn udp_on_wire(check: u16) -> u16 {
    if check == 0 { 0xffff } else { check }
}

/// ICMP checksum (RFC 792) of a message of `len_bytes` at `at`.
#[inline]
#[must_use]
pub fn icmp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize) -> Option<u16> {
    compute(packet, at, len_bytes, ICMP_CHECK, Sum::ZERO)
}

/// Verifies an ICMP checksum.
#[inline]
#[must_use]
pub fn verify_icmp<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize) -> Validity {
    verify_icmp6(packet, at, len_bytes, Sum::ZERO)
}

/// ICMPv6 checksum (RFC 4443 section 2.3): as ICMP, with a pseudo header.
#[inline]
#[must_use]
pub fn icmp6<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Option<u16> {
    compute(packet, at, len_bytes, ICMP_CHECK, pseudo)
}

/// Verifies an ICMPv6 checksum.
#[inline]
#[must_use]
pub fn verify_icmp6<A: Access + ?Sized>(packet: &A, at: usize, len_bytes: usize, pseudo: Sum) -> Validity {
    if len_bytes < ICMP_CHECK + 2 {
        return Validity::Truncated;
    }
    verify(packet, at, len_bytes, pseudo)
}
