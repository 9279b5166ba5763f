//! Frames of ARP and neighbour discovery: reading of messages, which anybody may have sent, and queries to
//! send.

use crate::ether::arp_message::{self, End, Message, REPLY, REQUEST};
use crate::ether::header::HEADER_BYTES as ETHER_BYTES;
use crate::ip6::ndadvertiser::{self, is_sound_question};
use element::Work;
use packet::view::icmp6::NEIGHBOR_SOLICITATION;
use packet::view::ipv6::{DST, HEADER_BYTES as IP6_BYTES};
use packet::view::nd::{self, Neighbor, SOLICITED};
use packet::{Access, MacAddr};
use port::interface::Interface;
use port::interface::table::{Ask, Fact};
use shm::Packet;
use shm::bytes::PacketBytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Offset and value of the address lengths in an ARP message: other lengths are another protocol.
const ARP_LENGTHS: (usize, u16) = (18, 0x0604);
/// Offsets of an ICMPv6 message, and of the target in those of neighbour discovery.
const ICMP6: usize = ETHER_BYTES + IP6_BYTES;
const TARGET: usize = ICMP6 + 8;
const DESTINATION: usize = ETHER_BYTES + DST;

/// What to do with a message.
pub(super) enum Answered<T> {
    /// Pass it on: it is not for this interface, or not only.
    Others,
    /// Drop it: it was for this interface, and has been read.
    Read,
    /// Drop it: it is for this interface, and not valid.
    Malformed,
    /// Answer it.
    Answer(T),
}

/// Reads an ARP message, and passes the addresses in it to the interface.
pub(super) fn arp(interface: &Interface, mac: MacAddr, frame: &PacketBytes<'_>) -> Answered<[u8; 42]> {
    let message = Message::read(frame).filter(|_| frame.u16(ARP_LENGTHS.0) == Some(ARP_LENGTHS.1));
    let Some(Message { operation, sender, target }) = message else { return Answered::Others };
    let is_ours = interface.is_own(Ipv4Addr::from(target.ip).into());
    let from = IpAddr::V4(sender.ip.into());
    let is_sound = MacAddr(sender.mac).is_station();
    if interface.is_own(from) {
        let conflicts = sender.mac != mac.0;
        interface.count(|counters| &counters.conflicts, conflicts.into());
    } else if is_sound && matches!(operation, REQUEST | REPLY) {
        let answers = operation == REPLY && is_ours;
        interface.hear(Fact { ip: from, mac: Some(MacAddr(sender.mac)), answers, overrides: true });
    }
    match operation {
        REQUEST | REPLY if is_ours && !is_sound => Answered::Malformed,
        REQUEST if is_ours => {
            let own = End { mac: mac.0, ip: target.ip };
            let reply = Message { operation: REPLY, sender: own, target: sender };
            Answered::Answer(reply.frame(sender.mac))
        }
        REPLY if is_ours => Answered::Read,
        _ => Answered::Others,
    }
}

/// Reads a message of neighbour discovery, and passes the addresses in it to the interface.
pub(super) fn nd(interface: &Interface, mac: MacAddr, packet: &Packet) -> Answered<ndadvertiser::Received> {
    let bytes = PacketBytes::new(packet);
    let address = |at| bytes.get::<16>(at).map(Ipv6Addr::from);
    let (Some(target), Some(dst)) = (address(TARGET), address(DESTINATION)) else { return Answered::Others };
    let is_question = bytes.u8(ICMP6) == Some(NEIGHBOR_SOLICITATION);
    let is_ours = interface.is_own(if is_question { target.into() } else { dst.into() });
    let wrong = || if is_ours { Answered::Malformed } else { Answered::Others };
    let Some(received) = ndadvertiser::read(packet) else { return wrong() };
    let Neighbor { flags, target, link_addr, is_advertisement } = received.message;
    if link_addr.is_some_and(|addr| !addr.is_station()) || !received.from.is_station() {
        return wrong();
    }
    if !is_advertisement {
        if !is_ours {
            return Answered::Others;
        }
        if !is_sound_question(&received) {
            return Answered::Malformed;
        }
        if let Some(addr) = link_addr.filter(|_| !interface.is_own(received.src.into())) {
            let fact = Fact { ip: received.src.into(), mac: Some(addr), answers: false, overrides: true };
            interface.hear(fact);
        }
        return Answered::Answer(received);
    }
    if interface.is_own(target.into()) {
        let conflicts = link_addr.is_some_and(|addr| addr != mac);
        interface.count(|counters| &counters.conflicts, conflicts.into());
        return wrong();
    }
    // An advertisement to all nodes cannot answer a solicitation (section 7.1.2).
    let answers = flags & SOLICITED != 0;
    if answers && received.dst.is_multicast() {
        return Answered::Others;
    }
    if is_ours || received.dst.is_multicast() {
        let overrides = flags & nd::OVERRIDE != 0;
        interface.hear(Fact { ip: target.into(), mac: link_addr, answers: answers && is_ours, overrides });
    }
    if is_ours { Answered::Read } else { Answered::Others }
}

/// Makes the frame of a query; `None` if there is no buffer, or no address to ask from.
pub(super) fn question(interface: &Interface, mac: MacAddr, ask: Ask, work: &mut Work<'_>) -> Option<Packet> {
    match ask.ip {
        IpAddr::V4(wanted) => {
            let own = End { mac: mac.0, ip: interface.ipv4_beside(wanted)?.to_bits() };
            let to = ask.to.unwrap_or(MacAddr::BROADCAST);
            let frame = arp_message::request(own, wanted.to_bits()).frame(to.0);
            let mut packet = work.make(&frame)?;
            (packet.mac, packet.net) = (packet.data(), packet.data() + ETHER_BYTES as u16);
            Some(packet)
        }
        IpAddr::V6(target) => {
            let own = interface.ipv6_beside(target)?;
            ndadvertiser::solicit(target, ask.to, (mac, own), work)
        }
    }
}
