//! ICMPv6 messages (RFC 4443) and the packets inside ICMPv6 errors. Neighbour discovery is in
//! [`super::nd`].

use super::icmp::{HEADER_BYTES, IcmpFacts};
use super::ipv6::extension::{self, Extensions};
use super::ipv6::{Ipv6, Ipv6Facts};
use super::{available, copy_header, view};
use crate::{Access, Error, Header, field};

/// Type: destination unreachable.
pub const UNREACHABLE: u8 = 1;
/// Type: packet too big.
pub const PACKET_TOO_BIG: u8 = 2;
/// Type: time exceeded.
pub const TIME_EXCEEDED: u8 = 3;
/// Type: parameter problem.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Type: echo request.
pub const ECHO: u8 = 128;
/// Type: echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Type: router solicitation (RFC 4861).
pub const ROUTER_SOLICITATION: u8 = 133;
/// Type: router advertisement (RFC 4861).
pub const ROUTER_ADVERTISEMENT: u8 = 134;
/// Type: neighbour solicitation (RFC 4861).
pub const NEIGHBOR_SOLICITATION: u8 = 135;
/// Type: neighbour advertisement (RFC 4861).
pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;

view! {
    /// An ICMPv6 message at a place in a packet.
    Icmp6 {
        /// Type.
        kind / set_kind: u8 = field::ICMP_TYPE;
        /// Code.
        code / set_code: u8 = field::ICMP_CODE;
        /// Checksum.
        checksum / set_checksum: u16 = field::ICMP_SUM;
        /// Identifier of echo messages.
        id / set_id: u16 = field::ICMP_ID;
        /// Sequence number of echo messages.
        seq / set_seq: u16 = field::ICMP_SEQ;
        /// MTU in bytes of "packet too big", or pointer of a parameter problem.
        word / set_word: u32 = field::ICMP6_WORD;
    }
}

/// Whether a message of that type is an error, which carries the packet that caused it.
#[inline]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Whether a message of that type carries an identifier.
#[inline]
pub const fn has_id(kind: u8) -> bool {
    matches!(kind, ECHO | ECHO_REPLY)
}

/// The start of a packet inside an ICMPv6 error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embedded {
    /// Its checked IPv6 header; the rest of the packet is usually cut off.
    pub ip: Ipv6Facts,
    /// Where its IPv6 header begins, in bytes from the start of the packet.
    pub net: usize,
    /// Its extension headers.
    pub extensions: Extensions,
    /// Where its transport header begins, if it is not a later fragment and at least one byte is present.
    pub trans: Option<usize>,
    /// Bytes from the transport header on that are present.
    pub payload_bytes: usize,
}

impl Icmp6 {
    /// The message's facts. [`crate::checksum::verify_icmp6`] checks the checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<IcmpFacts, Error> {
        copy_header(packet, self.at, end, Header::Icmp6).map(IcmpFacts::of)
    }

    /// The packet inside this error message, which ends at `end`. Ask [`is_error`] first.
    ///
    /// # Errors
    ///
    /// As [`Ipv6::check_header`] and [`extension::walk`].
    pub fn embedded<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<Embedded, Error> {
        let net = self.at.saturating_add(HEADER_BYTES);
        let ip = Ipv6::at(net).check_header(packet, end)?;
        let end = end.min(ip.end);
        let extensions = extension::walk(packet, ip.payload, end, ip.next_header)?;
        let payload_bytes = available(packet, extensions.payload, end);
        let has_header = !extensions.is_later_fragment() && payload_bytes > 0;
        Ok(Embedded { ip, net, extensions, trans: has_header.then_some(extensions.payload), payload_bytes })
    }
}
