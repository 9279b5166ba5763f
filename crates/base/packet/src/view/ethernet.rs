//! Ethernet II headers. Lengths never count preamble or frame check sequence.

use super::{copy_header, view};
use crate::{Access, Error, Header, MacAddr, field};

/// Length of the header without tags, in bytes.
pub const HEADER_BYTES: usize = 14;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// Tag protocol identifier of IEEE 802.1Q.
pub const VLAN: u16 = 0x8100;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of MPLS unicast.
pub const MPLS: u16 = 0x8847;
/// EtherType of MPLS with upstream-assigned label.
pub const MPLS_UPSTREAM: u16 = 0x8848;
/// Tag protocol identifier of IEEE 802.1ad (QinQ service tag).
pub const QINQ: u16 = 0x88a8;
/// Tag protocol identifier of QinQ before the standard.
pub const QINQ_OLD: u16 = 0x9100;
/// Type fields below this are lengths of IEEE 802.3 frames (clause 3.2.6).
pub const FIRST_TYPE: u16 = 0x0600;

view! {
    /// An Ethernet header at a place in a packet.
    Ethernet {
        /// Destination address.
        dst / set_dst: MacAddr = field::ETH_DST;
        /// Source address.
        src / set_src: MacAddr = field::ETH_SRC;
        /// EtherType, tag protocol identifier, or 802.3 length.
        ethertype / set_ethertype: u16 = field::ETH_TYPE;
    }
}

/// The fields of a checked Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EthernetFacts {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// EtherType, tag protocol identifier, or 802.3 length.
    pub ethertype: u16,
}

impl Ethernet {
    /// The header's facts.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    #[inline]
    pub fn check<A: Access + ?Sized>(self, packet: &A) -> Result<EthernetFacts, Error> {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] =
            copy_header::<HEADER_BYTES, A>(packet, self.at, usize::MAX, Header::Ethernet)?;
        Ok(EthernetFacts {
            dst: MacAddr([d0, d1, d2, d3, d4, d5]),
            src: MacAddr([s0, s1, s2, s3, s4, s5]),
            ethertype: u16::from_be_bytes([t0, t1]),
        })
    }

    /// Writes the whole header; false, with nothing written, if there is no room.
    #[must_use]
    pub fn write<A: Access + ?Sized>(self, packet: &mut A, facts: EthernetFacts) -> bool {
        let mut header = [0; HEADER_BYTES];
        header[..6].copy_from_slice(&facts.dst.0);
        header[6..12].copy_from_slice(&facts.src.0);
        header[12..].copy_from_slice(&facts.ethertype.to_be_bytes());
        packet.copy_in(self.at, &header)
    }
}
