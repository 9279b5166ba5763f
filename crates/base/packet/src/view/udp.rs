//! UDP headers (RFC 768).

use super::{available, copy_header, view};
use crate::{Access, Error, Header, field};

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;

view! {
    /// A UDP header at a place in a packet.
    Udp {
        /// Source port.
        src_port / set_src_port: u16 = field::L4_SPORT;
        /// Destination port.
        dst_port / set_dst_port: u16 = field::L4_DPORT;
        /// Length in bytes, header included.
        len / set_len: u16 = field::UDP_LEN;
        /// Checksum; zero means none.
        checksum / set_checksum: u16 = field::UDP_SUM;
    }
}

/// What a checked UDP header says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UdpFacts {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length in bytes, header included.
    pub len: usize,
    /// Checksum; zero means none.
    pub checksum: u16,
    /// Where the payload begins, in bytes from the start of the packet.
    pub payload: usize,
    /// Where the payload ends; the IP packet may go on behind it.
    pub end: usize,
}

impl Udp {
    /// The header's facts, if the whole datagram lies before `end`. The checksum is left to
    /// [`crate::checksum::verify_udp`].
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] (header or datagram not all there), [`Error::BadLength`] (below 8 bytes).
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A, end: usize) -> Result<UdpFacts, Error> {
        let header = copy_header::<HEADER_BYTES, A>(packet, self.at, end, Header::Udp)?;
        let [s0, s1, d0, d1, l0, l1, c0, c1] = header;
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if len < HEADER_BYTES {
            return Err(Error::BadLength { header: Header::Udp, found_bytes: len });
        }
        let have_bytes = available(packet, self.at, end);
        if have_bytes < len {
            return Err(Error::Truncated { header: Header::Udp, need_bytes: len, have_bytes });
        }
        Ok(UdpFacts {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            len,
            checksum: u16::from_be_bytes([c0, c1]),
            payload: self.at + HEADER_BYTES,
            end: self.at + len,
        })
    }
}
