//! IPv4 and IPv6 headers, with what the other protocol has a place for.

use elements::ip::header::from_network;
use packet::Access;
use packet::checksum;
use packet::view::protocol::{DCCP, TCP, UDP, UDP_LITE};
use shm::Packet;
use shm::descriptor::NO_HEADER;
use std::net::{Ipv4Addr, Ipv6Addr};

pub const IP4_BYTES: usize = 20;
pub const IP6_BYTES: usize = 40;
/// Bytes of an IPv6 fragment header, and its protocol number.
pub const FRAGMENT_BYTES: usize = 8;
const FRAGMENT: u8 = 44;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION: u8 = 60;
/// Options of IPv4 that route by a list.
const SOURCE_ROUTES: [u8; 2] = [131, 137];

/// Which part of a datagram a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    pub id: u32,
    /// In units of 8 bytes.
    pub offset: u16,
    pub more: bool,
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head<A> {
    /// Bytes up to the payload, and of the payload by the header.
    pub bytes: usize,
    pub payload: usize,
    pub class: u8,
    pub ttl: u8,
    pub protocol: u8,
    pub source: A,
    pub destination: A,
    /// `None` for a whole datagram.
    pub fragment: Option<Fragment>,
    /// IPv4's identification of a whole datagram, and whether nobody may fragment it.
    pub id: u16,
    pub dont_fragment: bool,
    /// It is to be routed by a list that has not come to its end.
    pub is_source_routed: bool,
}

impl<A> Head<A> {
    /// Whether the transport header is in this packet.
    pub fn is_first(&self) -> bool {
        self.fragment.is_none_or(|fragment| fragment.offset == 0)
    }
}

/// The packet from its IP header on: that is its first byte where no header is marked, as Click's translators take it.
pub fn from_ip(packet: &Packet) -> Option<Packet> {
    if packet.net == NO_HEADER { Some(*packet) } else { from_network(packet) }
}

/// Reads an IPv4 header, whose payload may be cut off.
pub fn read4(bytes: &[u8]) -> Option<Head<Ipv4Addr>> {
    let first = bytes.u8(0)?;
    let header = usize::from(first & 15) * 4;
    let total = usize::from(bytes.u16(2)?);
    let part = bytes.u16(6)?;
    if first >> 4 != 4 || header < IP4_BYTES || total < header || bytes.len() < header {
        return None;
    }
    let id = bytes.u16(4)?;
    let fragment = Fragment { id: id.into(), offset: part & 0x1fff, more: part & 0x2000 != 0 };
    Some(Head {
        bytes: header,
        payload: total - header,
        class: bytes.u8(1)?,
        ttl: bytes.u8(8)?,
        protocol: bytes.u8(9)?,
        source: bytes.u32(12)?.into(),
        destination: bytes.u32(16)?.into(),
        fragment: Some(fragment).filter(|fragment| fragment.more || fragment.offset > 0),
        id,
        dont_fragment: part & 0x4000 != 0,
        is_source_routed: is_source_routed(bytes.get(IP4_BYTES..header)?),
    })
}

fn is_source_routed(options: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match (kind, options.get(at + 1)) {
            (0, _) => break,
            (1, _) => at += 1,
            (_, Some(&length)) if length >= 2 => {
                let pointer = options.get(at + 2).copied().unwrap_or(0);
                if SOURCE_ROUTES.contains(&kind) && pointer <= length {
                    return true;
                }
                at += usize::from(length);
            }
            _ => break,
        }
    }
    false
}

/// Reads an IPv6 header with the extension headers in front of its payload, which may be cut off.
pub fn read6(bytes: &[u8]) -> Option<Head<Ipv6Addr>> {
    let word = bytes.u32(0)?;
    if word >> 28 != 6 {
        return None;
    }
    let end = IP6_BYTES + usize::from(bytes.u16(4)?);
    let mut head = Head {
        bytes: IP6_BYTES,
        payload: 0,
        class: (word >> 20) as u8,
        ttl: bytes.u8(7)?,
        protocol: bytes.u8(6)?,
        source: Access::get::<16>(bytes, 8)?.into(),
        destination: Access::get::<16>(bytes, 24)?.into(),
        fragment: None,
        id: 0,
        dont_fragment: false,
        is_source_routed: false,
    };
    while [HOP_BY_HOP, ROUTING, DESTINATION, FRAGMENT].contains(&head.protocol) {
        let at = head.bytes;
        let length = match head.protocol {
            FRAGMENT => {
                let part = bytes.u16(at + 2)?;
                let fragment = Fragment { id: bytes.u32(at + 4)?, offset: part >> 3, more: part & 1 != 0 };
                // Twice is once too often.
                if head.fragment.replace(fragment).is_some() {
                    return None;
                }
                FRAGMENT_BYTES
            }
            kind => {
                head.is_source_routed |= kind == ROUTING && bytes.u8(at + 3)? != 0;
                (usize::from(bytes.u8(at + 1)?) + 1) * 8
            }
        };
        head.protocol = bytes.u8(at)?;
        head.bytes += length;
        // What follows a later fragment's header is no header.
        if !head.is_first() {
            break;
        }
    }
    head.payload = end.checked_sub(head.bytes)?;
    (head.bytes <= bytes.len()).then_some(head)
}

/// Appends an IPv6 header, with a fragment header where it is of a fragment.
pub fn write6(out: &mut Vec<u8>, head: &Head<Ipv6Addr>) {
    let extra = if head.fragment.is_some() { FRAGMENT_BYTES } else { 0 };
    let length = u16::try_from(head.payload + extra).unwrap_or(u16::MAX);
    let next = if extra > 0 { FRAGMENT } else { head.protocol };
    out.extend((0x6000_0000 | u32::from(head.class) << 20).to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([next, head.ttl]);
    out.extend(head.source.octets());
    out.extend(head.destination.octets());
    if let Some(Fragment { id, offset, more }) = head.fragment {
        out.extend([head.protocol, 0]);
        out.extend((offset << 3 | u16::from(more)).to_be_bytes());
        out.extend(id.to_be_bytes());
    }
}

/// Appends an IPv4 header.
pub fn write4(out: &mut Vec<u8>, head: &Head<Ipv4Addr>) {
    let at = out.len();
    let total = u16::try_from(IP4_BYTES + head.payload).unwrap_or(u16::MAX);
    let flags = if head.dont_fragment { 0x4000 } else { 0 };
    let (id, part) = match head.fragment {
        Some(Fragment { id, offset, more }) => (id as u16, offset | u16::from(more) << 13),
        None => (head.id, flags),
    };
    out.extend([0x45, head.class]);
    out.extend(total.to_be_bytes());
    out.extend(id.to_be_bytes());
    out.extend(part.to_be_bytes());
    out.extend([head.ttl, head.protocol, 0, 0]);
    out.extend(head.source.octets());
    out.extend(head.destination.octets());
    let set = checksum::set_ipv4_header(&mut out[at..], 0, IP4_BYTES);
    debug_assert!(set, "the header is whole");
}

/// Where a transport protocol has its checksum over addresses, too.
pub fn checksum_at(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP | UDP_LITE | DCCP => Some(6),
        _ => None,
    }
}
