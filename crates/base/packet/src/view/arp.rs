//! ARP for IPv4 over Ethernet (RFC 826). `check` rejects other address spaces.

use std::net::Ipv4Addr;

use super::{copy_header, ethernet, view};
use crate::{Access, Error, Header, MacAddr, field};

/// Length of the message in bytes.
pub const MESSAGE_BYTES: usize = 28;
/// Hardware address space of Ethernet.
pub const HTYPE_ETHERNET: u16 = 1;
/// Operation: who has the target address?
pub const REQUEST: u16 = 1;
/// Operation: the sender has it.
pub const REPLY: u16 = 2;

view! {
    /// An ARP message at a place in a packet.
    Arp {
        /// Hardware address space.
        htype / set_htype: u16 = field::ARP_HTYPE;
        /// Protocol address space.
        ptype / set_ptype: u16 = field::ARP_PTYPE;
        /// Hardware address length in bytes.
        hlen / set_hlen: u8 = field::ARP_HLEN;
        /// Protocol address length in bytes.
        plen / set_plen: u8 = field::ARP_PLEN;
        /// Operation.
        op / set_op: u16 = field::ARP_OP;
        /// Sender hardware address.
        sender_mac / set_sender_mac: MacAddr = field::ARP_SHA;
        /// Sender protocol address.
        sender_ip / set_sender_ip: Ipv4Addr = field::ARP_SPA;
        /// Target hardware address.
        target_mac / set_target_mac: MacAddr = field::ARP_THA;
        /// Target protocol address.
        target_ip / set_target_ip: Ipv4Addr = field::ARP_TPA;
    }
}

/// The fields of a checked ARP message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "as in the view")]
pub struct ArpFacts {
    pub op: u16,
    pub sender_mac: MacAddr,
    pub sender_ip: Ipv4Addr,
    pub target_mac: MacAddr,
    pub target_ip: Ipv4Addr,
}

impl Arp {
    /// The message's facts, if it is about IPv4 over Ethernet.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`]; [`Error::BadField`] for other address spaces and lengths.
    pub fn check<A: Access + ?Sized>(self, packet: &A) -> Result<ArpFacts, Error> {
        let m = copy_header::<MESSAGE_BYTES, A>(packet, self.at, usize::MAX, Header::Arp)?;
        let word = |at: usize| u16::from_be_bytes([m[at], m[at + 1]]);
        let mac = |at: usize| MacAddr([m[at], m[at + 1], m[at + 2], m[at + 3], m[at + 4], m[at + 5]]);
        let ip = |at: usize| Ipv4Addr::new(m[at], m[at + 1], m[at + 2], m[at + 3]);
        for (field, found, wanted) in [
            ("hardware type", word(0), HTYPE_ETHERNET),
            ("protocol type", word(2), ethernet::IPV4),
            ("hardware address length", m[4].into(), 6),
            ("protocol address length", m[5].into(), 4),
        ] {
            if found != wanted {
                return Err(Error::BadField { header: Header::Arp, field, found: found.into() });
            }
        }
        Ok(ArpFacts {
            op: word(6),
            sender_mac: mac(8),
            sender_ip: ip(14),
            target_mac: mac(18),
            target_ip: ip(24),
        })
    }

    /// Writes a whole message for IPv4 over Ethernet; false, with nothing written, if there is no room.
    #[must_use]
    pub fn write<A: Access + ?Sized>(self, packet: &mut A, facts: ArpFacts) -> bool {
        let mut message = [0; MESSAGE_BYTES];
        message[..6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
        message[6..8].copy_from_slice(&facts.op.to_be_bytes());
        message[8..14].copy_from_slice(&facts.sender_mac.0);
        message[14..18].copy_from_slice(&facts.sender_ip.octets());
        message[18..24].copy_from_slice(&facts.target_mac.0);
        message[24..].copy_from_slice(&facts.target_ip.octets());
        packet.copy_in(self.at, &message)
    }
}
