//! ICMP messages (RFC 792) and the packets inside ICMP errors.

use std::net::Ipv4Addr;

use super::ipv4::{Ipv4, Ipv4Facts};
use super::{available, copy_header, view};
use crate::{Access, Error, Header, field};

/// Length of the part that every message has, in bytes.
pub const HEADER_BYTES: usize = 8;

/// Type: echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Type: destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Type: source quench (deprecated by RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Type: redirect.
pub const REDIRECT: u8 = 5;
/// Type: echo request.
pub const ECHO: u8 = 8;
/// Type: time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Type: parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Type: timestamp request.
pub const TIMESTAMP: u8 = 13;
/// Type: timestamp reply.
pub const TIMESTAMP_REPLY: u8 = 14;

/// Code of [`UNREACHABLE`]: network.
pub const NET_UNREACHABLE: u8 = 0;
/// Code of [`UNREACHABLE`]: host.
pub const HOST_UNREACHABLE: u8 = 1;
/// Code of [`UNREACHABLE`]: protocol.
pub const PROTOCOL_UNREACHABLE: u8 = 2;
/// Code of [`UNREACHABLE`]: port.
pub const PORT_UNREACHABLE: u8 = 3;
/// Code of [`UNREACHABLE`]: fragmentation needed and not allowed.
pub const FRAGMENTATION_NEEDED: u8 = 4;

view! {
    /// An ICMP message at a place in a packet.
    Icmp {
        /// Type.
        kind / set_kind: u8 = field::ICMP_TYPE;
        /// Code.
        code / set_code: u8 = field::ICMP_CODE;
        /// Checksum.
        checksum / set_checksum: u16 = field::ICMP_SUM;
        /// Identifier of echo and timestamp messages.
        id / set_id: u16 = field::ICMP_ID;
        /// Sequence number of echo and timestamp messages.
        seq / set_seq: u16 = field::ICMP_SEQ;
        /// Pointer of a parameter problem.
        pointer / set_pointer: u8 = field::ICMP_POINTER;
        /// Gateway of a redirect.
        gateway / set_gateway: Ipv4Addr = field::ICMP_GATEWAY;
        /// Next-hop MTU in bytes, of "fragmentation needed" (RFC 1191).
        mtu / set_mtu: u16 = field::ICMP_MTU;
    }
}

/// The fields of a checked ICMP or ICMPv6 message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IcmpFacts {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum.
    pub checksum: u16,
    /// The second word: identifier and sequence number, gateway, MTU, … by type.
    pub word: u32,
}

impl IcmpFacts {
    /// Identifier of echo and timestamp messages.
    #[inline]
    pub const fn id(self) -> u16 {
        (self.word >> 16) as u16
    }

    /// Sequence number of echo and timestamp messages.
    #[inline]
    pub const fn seq(self) -> u16 {
        self.word as u16
    }

    #[inline]
    pub(crate) fn of([kind, code, c0, c1, w0, w1, w2, w3]: [u8; HEADER_BYTES]) -> IcmpFacts {
        let checksum = u16::from_be_bytes([c0, c1]);
        IcmpFacts { kind, code, checksum, word: u32::from_be_bytes([w0, w1, w2, w3]) }
    }
}

/// Whether a message of that type carries the packet that caused it.
#[inline]
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Whether a message of that type carries an identifier: a query or its answer.
#[inline]
pub const fn has_id(kind: u8) -> bool {
    matches!(kind, ECHO | ECHO_REPLY | TIMESTAMP | TIMESTAMP_REPLY | 15 | 16)
}

/// The start of a packet inside an ICMP error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embedded {
    /// Its checked IPv4 header; the rest of the packet is usually cut off.
    pub ip: Ipv4Facts,
    /// Where its IPv4 header begins, in bytes from the start of the packet.
    pub net: usize,
    /// Where its transport header begins, if it is not a later fragment and at least one byte is present.
    pub trans: Option<usize>,
    /// Bytes of its payload that are present, transport header included: at least 8 if the sender obeys RFC
    /// 792.
    pub payload_bytes: usize,
}

impl Icmp {
    /// The message's facts. [`crate::checksum::verify_icmp`] checks the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<IcmpFacts, Error> {
        copy_header(packet, self.at, end, Header::Icmp).map(IcmpFacts::of)
    }

    /// The packet inside this error message, which ends at `end`. Ask [`is_error`] first.
    ///
    /// # Errors
    ///
    /// As [`Ipv4::check_header`].
    pub fn embedded<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<Embedded, Error> {
        let net = self.at.saturating_add(HEADER_BYTES);
        let ip = Ipv4::at(net).check_header(packet, end)?;
        let payload_bytes = available(packet, ip.payload, end.min(ip.end));
        let has_header = ip.fragment_offset == 0 && payload_bytes > 0;
        Ok(Embedded { ip, net, trans: has_header.then_some(ip.payload), payload_bytes })
    }
}
