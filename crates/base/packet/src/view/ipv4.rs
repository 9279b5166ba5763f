//! IPv4 headers (RFC 791).

use std::net::Ipv4Addr;

use super::options::OptionArea;
use super::{available, view};
use crate::checksum::{IPV4_CHECK, Sum};
use crate::{Access, Error, Header, field};

/// Length of the header without options, in bytes.
pub const HEADER_BYTES: usize = 20;
/// Length of the longest header, in bytes.
pub const MAX_HEADER_BYTES: usize = 60;

/// Option: record route (RFC 791).
pub const RECORD_ROUTE: u8 = 7;
/// Option: timestamp (RFC 791).
pub const TIMESTAMP: u8 = 68;
/// Option: loose source and record route (RFC 791).
pub const LOOSE_SOURCE_ROUTE: u8 = 131;
/// Option: strict source and record route (RFC 791).
pub const STRICT_SOURCE_ROUTE: u8 = 137;
/// Option: router alert (RFC 2113).
pub const ROUTER_ALERT: u8 = 148;

view! {
    /// An IPv4 header at a place in a packet.
    Ipv4 {
        /// Version.
        version / set_version: u8 = field::IP_VERSION;
        /// Header length in 32-bit words.
        header_words / set_header_words: u8 = field::IP_HL;
        /// Type of service byte.
        tos / set_tos: u8 = field::IP_TOS;
        /// Differentiated services code point.
        dscp / set_dscp: u8 = field::IP_DSCP;
        /// Explicit congestion notification.
        ecn / set_ecn: u8 = field::IP_ECN;
        /// Total length in bytes.
        total_len / set_total_len: u16 = field::IP_LEN;
        /// Identification.
        id / set_id: u16 = field::IP_ID;
        /// Flags and fragment offset together.
        off / set_off: u16 = field::IP_OFF;
        /// Don't fragment.
        dont_fragment / set_dont_fragment: bool = field::IP_DF;
        /// More fragments.
        more_fragments / set_more_fragments: bool = field::IP_MF;
        /// Fragment offset in 8-byte units.
        fragment_units / set_fragment_units: u16 = field::IP_FRAG;
        /// Time to live.
        ttl / set_ttl: u8 = field::IP_TTL;
        /// Protocol: see [`super::protocol`].
        protocol / set_protocol: u8 = field::IP_PROTO;
        /// Header checksum.
        checksum / set_checksum: u16 = field::IP_SUM;
        /// Source address.
        src / set_src: Ipv4Addr = field::IP_SRC;
        /// Destination address.
        dst / set_dst: Ipv4Addr = field::IP_DST;
    }
}

/// The fields of a checked IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Facts {
    /// Header length in bytes, 20 to 60.
    pub header_len: usize,
    /// Total length in bytes, at least the header's.
    pub total_len: usize,
    /// Where the payload begins, in bytes from the start of the packet.
    pub payload: usize,
    /// Where the payload ends; link padding may follow.
    pub end: usize,
    /// Type of service byte.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments.
    pub more_fragments: bool,
    /// Fragment offset in bytes.
    pub fragment_offset: usize,
    /// Time to live.
    pub ttl: u8,
    /// Protocol.
    pub protocol: u8,
    /// Header checksum.
    pub checksum: u16,
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    header: [u8; MAX_HEADER_BYTES],
}

impl Ipv4Facts {
    /// Whether it is a fragment, first or later.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// The header as it was when checked.
    #[inline]
    pub fn header(&self) -> &[u8] {
        self.header.as_slice().get(..self.header_len).unwrap_or_default()
    }

    /// The options as they were when checked.
    #[inline]
    pub fn options(&self) -> OptionArea {
        OptionArea::new(Header::Ipv4, self.header().get(HEADER_BYTES..).unwrap_or_default())
    }

    /// Whether the header checksum matches.
    ///
    /// # Errors
    ///
    /// [`Error::BadChecksum`].
    #[inline]
    pub fn check_sum(&self) -> Result<(), Error> {
        // The copy is zero after the header, and zero words do not change the sum.
        match Sum::ZERO.add_bytes(&self.header).fold() {
            0xffff => Ok(()),
            _ => Err(Error::BadChecksum { header: Header::Ipv4 }),
        }
    }
}

impl Ipv4 {
    /// The header's facts, if version and lengths are valid. [`Ipv4Facts::check_sum`] checks the checksum,
    /// and [`Ipv4Facts::options`] parses options.
    ///
    /// # Errors
    ///
    /// [`Error::BadVersion`], [`Error::HeaderTooShort`] (below 20 bytes), [`Error::BadLength`] (total
    /// below header length), [`Error::Truncated`] (header or announced packet is cut off).
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A) -> Result<Ipv4Facts, Error> {
        let facts = self.check_header(packet, usize::MAX)?;
        if facts.end > packet.len() {
            let have_bytes = available(packet, self.at, usize::MAX);
            return Err(Error::Truncated { header: Header::Ipv4, need_bytes: facts.total_len, have_bytes });
        }
        Ok(facts)
    }

    /// As [`Ipv4::check`], but the payload may be cut off and [`Ipv4Facts::end`] lie past the packet:
    /// for headers inside ICMP errors and cut captures. The header must lie before `end`.
    ///
    /// # Errors
    ///
    /// As [`Ipv4::check`].
    #[inline]
    pub fn check_header<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<Ipv4Facts, Error> {
        let have_bytes = available(packet, self.at, end);
        let truncated = |need_bytes| Error::Truncated { header: Header::Ipv4, need_bytes, have_bytes };
        if have_bytes < HEADER_BYTES {
            return Err(truncated(HEADER_BYTES));
        }
        let mut header = [0; MAX_HEADER_BYTES];
        if !packet.copy_out(self.at, &mut header[..HEADER_BYTES]) {
            return Err(truncated(HEADER_BYTES));
        }
        if header[0] >> 4 != 4 {
            return Err(Error::BadVersion { header: Header::Ipv4, found: header[0] >> 4 });
        }
        let header_len = usize::from(header[0] & 0xf) * 4;
        if header_len < HEADER_BYTES {
            return Err(Error::HeaderTooShort { header: Header::Ipv4, found_bytes: header_len });
        }
        if have_bytes < header_len {
            return Err(truncated(header_len));
        }
        if header_len > HEADER_BYTES
            && !packet.copy_out(self.at + HEADER_BYTES, &mut header[HEADER_BYTES..header_len])
        {
            return Err(truncated(header_len));
        }
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let total_len = usize::from(word(2));
        if total_len < header_len {
            return Err(Error::BadLength { header: Header::Ipv4, found_bytes: total_len });
        }
        Ok(Ipv4Facts {
            header_len,
            total_len,
            payload: self.at + header_len,
            end: self.at.saturating_add(total_len),
            tos: header[1],
            id: word(4),
            dont_fragment: header[6] & 0x40 != 0,
            more_fragments: header[6] & 0x20 != 0,
            fragment_offset: usize::from(word(6) & 0x1fff) * 8,
            ttl: header[8],
            protocol: header[9],
            checksum: word(IPV4_CHECK),
            src: Ipv4Addr::new(header[12], header[13], header[14], header[15]),
            dst: Ipv4Addr::new(header[16], header[17], header[18], header[19]),
            header,
        })
    }
}
