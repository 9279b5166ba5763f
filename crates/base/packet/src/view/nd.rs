//! Neighbour solicitation and advertisement (RFC 4861 sections 4.3 and 4.4), with their option on Ethernet: a
//! link-layer address. Router messages are not parsed.

use std::net::Ipv6Addr;

use super::icmp6::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
use super::{available, copy_header, protocol};
use crate::checksum;
use crate::{Access, Error, Header, MacAddr};

/// Length of a message without options, in bytes.
pub const FIXED_BYTES: usize = 24;
/// Length of a message with a link-layer address of Ethernet, in bytes.
pub const MESSAGE_BYTES: usize = 32;
/// The hop limit of messages that no router has forwarded.
pub const HOP_LIMIT: u8 = 255;

/// Flag: the sender is a router.
pub const ROUTER: u8 = 0x80;
/// Flag: the message is the reply to a solicitation.
pub const SOLICITED: u8 = 0x40;
/// Flag: the message overrides a cached entry.
pub const OVERRIDE: u8 = 0x20;

/// Option: link-layer address of the sender.
const SOURCE_LINK_ADDR: u8 = 1;
/// Option: link-layer address of the target.
const TARGET_LINK_ADDR: u8 = 2;

/// A neighbour message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Neighbor {
    /// Whether it is an advertisement; otherwise a solicitation.
    pub is_advertisement: bool,
    /// Flags of an advertisement; zero in a solicitation.
    pub flags: u8,
    /// The solicited or advertised address.
    pub target: Ipv6Addr,
    /// Link-layer address of the sender (solicitation) or of the target (advertisement).
    pub link_addr: Option<MacAddr>,
}

impl Neighbor {
    const fn option_kind(self) -> u8 {
        if self.is_advertisement { TARGET_LINK_ADDR } else { SOURCE_LINK_ADDR }
    }

    /// Parses the ICMPv6 message at `at`, which ends at `end`.
    ///
    /// The message itself is validated as in RFC 4861 section 7.1. The caller checks the hop limit, the
    /// checksum and the addresses of the IPv6 header.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::BadField`] (another type, a code, a multicast target),
    /// [`Error::BadOption`] (a length of zero or past the end).
    pub fn check<A: Access + ?Sized>(packet: &A, at: usize, end: usize) -> Result<Neighbor, Error> {
        let fixed = copy_header::<FIXED_BYTES, A>(packet, at, end, Header::Icmp6)?;
        let bad = |field, found: u8| Error::BadField { header: Header::Icmp6, field, found: found.into() };
        let is_advertisement = match fixed[0] {
            NEIGHBOR_SOLICITATION => false,
            NEIGHBOR_ADVERTISEMENT => true,
            kind => return Err(bad("type", kind)),
        };
        if fixed[1] != 0 {
            return Err(bad("code", fixed[1]));
        }
        let target = Access::get::<16>(&fixed, 8).map_or(Ipv6Addr::UNSPECIFIED, Ipv6Addr::from);
        if target.is_multicast() {
            return Err(bad("first byte of the target", fixed[8]));
        }
        let flags = if is_advertisement { fixed[4] & (ROUTER | SOLICITED | OVERRIDE) } else { 0 };
        let mut neighbor = Neighbor { is_advertisement, flags, target, link_addr: None };
        let mut option_at = at + FIXED_BYTES;
        loop {
            let have_bytes = available(packet, option_at, end);
            if have_bytes == 0 {
                return Ok(neighbor);
            }
            let bad_option = |kind| Error::BadOption {
                header: Header::Icmp6,
                kind,
                at_bytes: option_at.saturating_sub(at + FIXED_BYTES),
            };
            // The length of options is a multiple of 8 bytes, so one copy holds an Ethernet address.
            let Some([kind, units, a, b, c, d, e, f]) = packet.get(option_at).filter(|_| have_bytes >= 8)
            else {
                return Err(bad_option(0));
            };
            let len = usize::from(units) * 8;
            if len == 0 || len > have_bytes {
                return Err(bad_option(kind));
            }
            if kind == neighbor.option_kind() && len == 8 && neighbor.link_addr.is_none() {
                neighbor.link_addr = Some(MacAddr([a, b, c, d, e, f]));
            }
            option_at += len;
        }
    }

    /// Bytes that [`Neighbor::write`] writes.
    pub const fn message_bytes(self) -> usize {
        if self.link_addr.is_some() { MESSAGE_BYTES } else { FIXED_BYTES }
    }

    /// Writes the message at `at`, with its checksum for a packet from `src` to `dst`; false, with nothing
    /// written, if there is no room.
    #[must_use]
    pub fn write<A: Access + ?Sized>(self, packet: &mut A, at: usize, src: Ipv6Addr, dst: Ipv6Addr) -> bool {
        let mut message = [0; MESSAGE_BYTES];
        message[0] = if self.is_advertisement { NEIGHBOR_ADVERTISEMENT } else { NEIGHBOR_SOLICITATION };
        message[4] = if self.is_advertisement { self.flags & (ROUTER | SOLICITED | OVERRIDE) } else { 0 };
        message[8..24].copy_from_slice(&self.target.octets());
        if let Some(addr) = self.link_addr {
            message[24] = self.option_kind();
            message[25] = 1;
            message[26..].copy_from_slice(&addr.0);
        }
        let len = self.message_bytes();
        let pseudo = checksum::pseudo_ipv6(src, dst, protocol::ICMP6, len as u32);
        let check = checksum::icmp6(&message, 0, len, pseudo).unwrap_or(0);
        message[2..4].copy_from_slice(&check.to_be_bytes());
        packet.copy_in(at, &message[..len])
    }
}

/// The solicited-node multicast address of a target (RFC 4291 section 2.7.1).
pub fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | target.to_bits() & 0xff_ffff)
}

/// The Ethernet address of an IPv6 multicast address (RFC 2464 section 7).
pub fn multicast_mac(group: Ipv6Addr) -> MacAddr {
    MacAddr::from_bits(0x3333_0000_0000 | (group.to_bits() & 0xffff_ffff) as u64)
}
