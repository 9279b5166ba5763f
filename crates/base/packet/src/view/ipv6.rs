//! IPv6 headers (RFC 8200); extension headers are in [`extension`].
//!
//! Jumbograms (RFC 2675) are not supported: a payload length of zero means no payload.

pub mod extension;

use std::net::Ipv6Addr;

use super::{available, copy_header, view};
use crate::{Access, Error, Header, field};

/// Length of the fixed header in bytes.
pub const HEADER_BYTES: usize = 40;
/// Offset of the source address in bytes.
pub const SRC: usize = 8;
/// Offset of the destination address in bytes.
pub const DST: usize = 24;

view! {
    /// An IPv6 header at a place in a packet.
    Ipv6 {
        /// Version.
        version / set_version: u8 = field::IP6_VERSION;
        /// Traffic class.
        traffic_class / set_traffic_class: u8 = field::IP6_CLASS;
        /// Flow label.
        flow_label / set_flow_label: u32 = field::IP6_LABEL;
        /// Payload length in bytes, extension headers included.
        payload_len / set_payload_len: u16 = field::IP6_PLEN;
        /// Next header: see [`super::protocol`].
        next_header / set_next_header: u8 = field::IP6_NXT;
        /// Hop limit.
        hop_limit / set_hop_limit: u8 = field::IP6_HLIM;
    }
}

/// The fields of a checked IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ipv6Facts {
    /// Payload length in bytes.
    pub payload_len: usize,
    /// Where extension headers or the upper layer begin, in bytes from the start of the packet.
    pub payload: usize,
    /// Where the payload ends; link padding may follow.
    pub end: usize,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// Source address.
    #[inline]
    pub fn src<A: Access + ?Sized>(self, packet: &A) -> Option<Ipv6Addr> {
        packet.get::<16>(self.at.checked_add(SRC)?).map(Ipv6Addr::from)
    }

    /// Sets the source address; false if the packet ends before. The caller updates checksums.
    #[inline]
    #[must_use]
    pub fn set_src<A: Access + ?Sized>(self, packet: &mut A, value: Ipv6Addr) -> bool {
        self.at.checked_add(SRC).is_some_and(|at| packet.copy_in(at, &value.octets()))
    }

    /// Destination address.
    #[inline]
    pub fn dst<A: Access + ?Sized>(self, packet: &A) -> Option<Ipv6Addr> {
        packet.get::<16>(self.at.checked_add(DST)?).map(Ipv6Addr::from)
    }

    /// Sets the destination address; false if the packet ends before. The caller updates checksums.
    #[inline]
    #[must_use]
    pub fn set_dst<A: Access + ?Sized>(self, packet: &mut A, value: Ipv6Addr) -> bool {
        self.at.checked_add(DST).is_some_and(|at| packet.copy_in(at, &value.octets()))
    }

    /// The header's facts, if version and length are valid.
    ///
    /// # Errors
    ///
    /// [`Error::BadVersion`], [`Error::Truncated`] (header or announced payload is cut off).
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A) -> Result<Ipv6Facts, Error> {
        let facts = self.check_header(packet, usize::MAX)?;
        if facts.end > packet.len() {
            return Err(Error::Truncated {
                header: Header::Ipv6,
                need_bytes: HEADER_BYTES + facts.payload_len,
                have_bytes: available(packet, self.at, usize::MAX),
            });
        }
        Ok(facts)
    }

    /// As [`Ipv6::check`], but the payload may be cut off and [`Ipv6Facts::end`] lie past the packet:
    /// for headers inside ICMPv6 errors and cut captures. The header must lie before `end`.
    ///
    /// # Errors
    ///
    /// As [`Ipv6::check`].
    #[inline]
    pub fn check_header<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<Ipv6Facts, Error> {
        let header = copy_header::<HEADER_BYTES, A>(packet, self.at, end, Header::Ipv6)?;
        let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        if word >> 28 != 6 {
            return Err(Error::BadVersion { header: Header::Ipv6, found: (word >> 28) as u8 });
        }
        let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = self.at + HEADER_BYTES;
        let own = Ipv6::at(0);
        Ok(Ipv6Facts {
            payload_len,
            payload,
            end: payload.saturating_add(payload_len),
            traffic_class: (word >> 20) as u8,
            flow_label: word & 0xf_ffff,
            next_header: header[6],
            hop_limit: header[7],
            src: own.src(&header).unwrap_or(Ipv6Addr::UNSPECIFIED),
            dst: own.dst(&header).unwrap_or(Ipv6Addr::UNSPECIFIED),
        })
    }
}
