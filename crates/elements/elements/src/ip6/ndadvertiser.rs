//! `IP6NDAdvertiser`: answers neighbour solicitations.

use super::line::{Network, network};
use crate::ether::header::{EtherHeader, HEADER_BYTES as ETHER_BYTES, TYPE_IP6};
use click::config::{parse, split_words};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use packet::MacAddr;
use packet::checksum::{Validity, pseudo_ipv6, verify_icmp6};
use packet::view::ipv6::{DST, HEADER_BYTES as IP6_BYTES, Ipv6, Ipv6Facts, SRC};
use packet::view::nd::{self, Neighbor, ROUTER, SOLICITED};
use packet::view::protocol::ICMP6;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use std::net::Ipv6Addr;
use table::lpm::Lpm6;

/// The class.
pub const CLASS: Class = Class {
    name: "IP6NDAdvertiser",
    summary: "responds to IPv6 neighbour solicitations",
    page: "\
# IP6NDAdvertiser(IP61 [IP62...] ETH1, IP63 ETH2, ...)

Turns neighbour solicitations (RFC 4861), with their Ethernet header, into the advertisements that answer
them, where the target is one of its addresses or lies in one of its prefixes.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: addresses or prefixes and their Ethernet address; the longest prefix counts
- **drop reasons**: `bad-solicitation`: not one, or not valid; `not-mine`: no prefix has the target
- **difference**: the answer to a solicitation without source address (duplicate address detection) is sent to
  all nodes and not marked as solicited (RFC 4861, 7.2.4)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make,
};

element::reasons!(BAD_SOLICITATION = "bad-solicitation", NOT_MINE = "not-mine");

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

struct Advertiser {
    /// From addresses to indices in the list.
    prefixes: Lpm6,
    macs: Vec<MacAddr>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let mut macs: Vec<MacAddr> = vec![];
    let mut networks: Vec<(Network, u32)> = vec![];
    for text in args.rest() {
        let before = networks.len();
        let mut mac = None;
        for word in split_words(&text) {
            // An Ethernet address has six groups, which no IPv6 address has.
            let names = args.names();
            if let Ok(address) = parse::ether(&word, names) {
                if mac.replace(MacAddr(address)).is_some() {
                    args.error(word.span, "one Ethernet address is enough");
                }
            } else if let Some(network) = args.read(&word, network) {
                networks.push((network, macs.len() as u32));
            }
        }
        match mac {
            Some(mac) => macs.push(mac),
            None => {
                args.error(text.span, "an Ethernet address is missing").help("write `ADDR[/LEN] ETHADDR`");
            }
        }
        if networks.len() == before {
            args.error(text.span, "an IPv6 address is missing").help("write `ADDR[/LEN] ETHADDR`");
        }
    }
    if !args.finish() {
        return None;
    }
    let table = Lpm6::new().and_then(|mut prefixes| {
        for ((address, len), index) in networks {
            prefixes.insert(address, len, index)?;
        }
        Ok(prefixes)
    });
    Some(BoxElement::opaque(Advertiser { prefixes: cx.accept(cx.span, table)?, macs }))
}

/// A neighbour message in an Ethernet frame.
pub(crate) struct Received {
    pub(crate) message: Neighbor,
    pub(crate) src: Ipv6Addr,
    pub(crate) dst: Ipv6Addr,
    /// Ethernet source.
    pub(crate) from: MacAddr,
}

/// Reads a neighbour message; `None` if it is not valid (RFC 4861 section 7.1).
pub(crate) fn read(packet: &Packet) -> Option<Received> {
    use packet::Access as _;
    let bytes = PacketBytes::new(packet);
    let Ipv6Facts { src, dst, payload: at, payload_len, end, next_header, hop_limit, .. } =
        Ipv6::at(ETHER_BYTES).check(&bytes).ok()?;
    let pseudo = pseudo_ipv6(src, dst, ICMP6, payload_len as u32);
    let is_message = bytes.u16(12) == Some(TYPE_IP6) && next_header == ICMP6 && hop_limit == nd::HOP_LIMIT;
    if !is_message || verify_icmp6(&bytes, at, payload_len, pseudo) != Validity::Good {
        return None;
    }
    let message = Neighbor::check(&bytes, at, end).ok()?;
    Some(Received { message, src, dst, from: MacAddr(bytes.get(6)?) })
}

/// Makes the frame of a solicitation for an address: to that address at a station, or to its group. `None` if
/// there is no buffer.
pub(crate) fn solicit(
    target: Ipv6Addr,
    at: Option<MacAddr>,
    from: (MacAddr, Ipv6Addr),
    work: &mut Work<'_>,
) -> Option<Packet> {
    let message = Neighbor { is_advertisement: false, flags: 0, target, link_addr: Some(from.0) };
    let group = nd::solicited_node(target);
    let to = at.map_or((nd::multicast_mac(group), group), |station| (station, target));
    let mut packet = work.make(&[0; ETHER_BYTES + IP6_BYTES + nd::MESSAGE_BYTES])?;
    (packet.mac, packet.net) = (packet.data(), packet.data() + ETHER_BYTES as u16);
    packet.trans = packet.net + IP6_BYTES as u16;
    let written = write(&mut packet, message, from, to);
    debug_assert!(written, "the packet was made with that length");
    Some(packet)
}

/// The IPv6 header of an ICMPv6 message that no router has forwarded yet.
pub(super) fn ip_header(message_bytes: usize, src: Ipv6Addr, dst: Ipv6Addr) -> [u8; IP6_BYTES] {
    let mut header = [0; IP6_BYTES];
    (header[0], header[6], header[7]) = (0x60, ICMP6, nd::HOP_LIMIT);
    header[4..6].copy_from_slice(&(message_bytes as u16).to_be_bytes());
    header[SRC..DST].copy_from_slice(&src.octets());
    header[DST..].copy_from_slice(&dst.octets());
    header
}

/// Writes a neighbour message with its headers to the packet's start; false if there is no room.
fn write(packet: &mut Packet, message: Neighbor, from: (MacAddr, Ipv6Addr), to: (MacAddr, Ipv6Addr)) -> bool {
    use packet::Access as _;
    let mut head = [0u8; ETHER_BYTES + IP6_BYTES];
    let ether = EtherHeader { dst: to.0.0, src: from.0.0, ethertype: TYPE_IP6 };
    head[..ETHER_BYTES].copy_from_slice(&ether.bytes());
    head[ETHER_BYTES..].copy_from_slice(&ip_header(message.message_bytes(), from.1, to.1));
    let mut bytes = PacketBytesMut::new(packet);
    bytes.copy_in(0, &head) && message.write(&mut bytes, head.len(), from.1, to.1)
}

/// Whether a solicitation is valid with its headers: a sender without an address must ask the group of the
/// target, and give no link-layer address (RFC 4861, section 7.1.1).
pub(crate) fn is_sound_question(received: &Received) -> bool {
    let Received { message, src, dst, .. } = received;
    let from_nobody = || *dst == nd::solicited_node(message.target) && message.link_addr.is_none();
    !message.is_advertisement && !src.is_multicast() && (!src.is_unspecified() || from_nobody())
}

/// Overwrites a solicitation with the advertisement that answers it; false if there is no room.
pub(crate) fn advertise(packet: &mut Packet, received: &Received, station: MacAddr, flags: u8) -> bool {
    let Received { message, src, from, .. } = *received;
    let unknown = src.is_unspecified();
    let flags = if unknown { flags } else { flags | SOLICITED };
    let answer = Neighbor { is_advertisement: true, flags, target: message.target, link_addr: Some(station) };
    let to = if unknown { (nd::multicast_mac(ALL_NODES), ALL_NODES) } else { (from, src) };
    let length = ETHER_BYTES + IP6_BYTES + answer.message_bytes();
    let fits = match (packet.total() as usize).checked_sub(length) {
        Some(excess) => packet.take(excess),
        None => packet.put(length - packet.total() as usize),
    };
    fits && write(packet, answer, (station, answer.target), to)
}

impl Advertiser {
    fn answer(&self, packet: &mut Packet) -> Result<(), usize> {
        let received = read(packet).filter(is_sound_question).ok_or(BAD_SOLICITATION)?;
        let index = self.prefixes.lookup(received.message.target.to_bits()).ok_or(NOT_MINE)?;
        let mac = *self.macs.get(index as usize).ok_or(NOT_MINE)?;
        if advertise(packet, &received, mac, ROUTER) { Ok(()) } else { Err(BAD_SOLICITATION) }
    }
}

impl Opaque for Advertiser {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.answer(packet));
    }
}

impl Element for Advertiser {
    element::facts!(reasons: REASONS);
}
