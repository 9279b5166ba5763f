//! Access to IP headers for Rust code.

use element::Configure;
use packet::Access;
use packet::anno::ANNO_BYTES;
use packet::checksum::{self, Sum};
use packet::field::{IP_HL, UDP_LEN};
use packet::view::Ipv4;
pub use packet::view::ipv4::{HEADER_BYTES as IP_BYTES, MAX_HEADER_BYTES as MOST_HEADER};
use packet::view::protocol::UDP;
use shm::Packet;
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::{NO_HEADER, NO_PORT, PacketType};
use std::ops::Range;

/// A descriptor of the packet from its network header on, which may lie before its first byte (stripped) or
/// behind; `None` if the header is not set. It shares the packet's bytes.
pub fn from_network(packet: &Packet) -> Option<Packet> {
    if packet.net == NO_HEADER { None } else { packet.starting_at(packet.net) }
}

/// Bytes from the network header to the transport header; `None` if one is not set or they are in the wrong
/// order.
pub fn transport_offset(packet: &Packet) -> Option<usize> {
    if packet.trans == NO_HEADER || packet.net == NO_HEADER {
        return None;
    }
    packet.trans.checked_sub(packet.net).map(usize::from)
}

/// A UDP datagram, which may end before its IP packet does: the packet from its IP header on, the offset of
/// the UDP header there, the length in that header, and the sum of the pseudo header.
pub(super) fn datagram(packet: &Packet) -> Option<(Packet, usize, usize, Sum)> {
    let (from_net, at) = (from_network(packet)?, transport_offset(packet)?);
    let (bytes, ip) = (PacketBytes::new(&from_net), Ipv4::at(0));
    let length = UDP_LEN.load(&bytes, at)? as u16;
    let pseudo = checksum::pseudo_ipv4(ip.src(&bytes)?, ip.dst(&bytes)?, UDP, length);
    Some((from_net, at, usize::from(length), pseudo))
}

/// An IPv4 header with its options, copied out of a packet.
pub struct Ipv4Header {
    copy: [u8; MOST_HEADER],
    len: usize,
    /// Bytes of the packet from the header on.
    pub there: usize,
}

impl Ipv4Header {
    /// Reads the header at the front of a packet; `None` if the packet ends before it does.
    pub fn read(from_net: &Packet) -> Option<Ipv4Header> {
        let bytes = PacketBytes::new(from_net);
        let len = IP_HL.load(&bytes, 0)? as usize * 4;
        let mut copy = [0; MOST_HEADER];
        let whole = len >= IP_BYTES && bytes.copy_out(0, copy.get_mut(..len)?);
        whole.then(|| Ipv4Header { copy, len, there: bytes.len() })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.copy[..self.len]
    }

    /// Its bytes, for changes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.copy[..self.len]
    }

    /// Two bytes of it.
    pub fn half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.copy[at], self.copy[at + 1]])
    }

    /// Four bytes of it.
    pub fn word(&self, at: usize) -> u32 {
        u32::from(self.half(at)) << 16 | u32::from(self.half(at + 2))
    }
}

/// The range of the next option at or behind an offset in a header; `None` behind the last, and the offset of
/// an option that is cut off as the error.
pub fn option_at(header: &[u8], from: usize) -> Option<Result<Range<usize>, usize>> {
    let at = from + header.get(from..)?.iter().take_while(|kind| **kind == 1).count();
    if *header.get(at)? == 0 {
        return None;
    }
    let end = at + header.get(at + 1).map_or(0, |length| usize::from(*length));
    Some(if end >= at + 2 && end <= header.len() { Ok(at..end) } else { Err(at) })
}

/// Sets the checksum of a header.
pub fn set_checksum(header: &mut [u8]) {
    let set = checksum::set_ipv4_header(header, 0, header.len());
    debug_assert!(set, "the header is whole");
}

/// The identification of a worker's first packet: each worker counts from another start.
pub fn first_id(cx: &Configure<'_>) -> u16 {
    (cx.worker * 0x10000 / cx.workers.max(1)) as u16
}

/// Turns a packet into the ICMP message that answers it: cuts bytes off its end, and puts a head of an IP
/// header and the front of a message before what is left. `sum` computes the message's checksum from its
/// place on. False where there is no room.
pub fn answer(
    packet: &mut Packet,
    cut: usize,
    head: &[u8],
    ip_bytes: usize,
    sum: impl FnOnce(&PacketBytes<'_>) -> Option<u16>,
) -> bool {
    let made = packet.take(cut)
        && packet.make_headroom(head.len())
        && packet.push(head.len())
        && PacketBytesMut::new(packet).copy_in(0, head);
    let sum = if made { sum(&PacketBytes::new(packet)) } else { None };
    let place = ip_bytes + checksum::ICMP_CHECK;
    let summed = sum.is_some_and(|sum| PacketBytesMut::new(packet).put_u16(place, sum));
    if summed {
        begin_anew(packet, ip_bytes);
    }
    summed
}

/// Marks a packet as a new IP packet with a header of so many bytes, and clears its annotations.
fn begin_anew(packet: &mut Packet, header_bytes: usize) {
    (packet.mac, packet.net, packet.trans) = (NO_HEADER, packet.data(), packet.data() + header_bytes as u16);
    packet.anno = [0; ANNO_BYTES];
    (packet.packet_type, packet.flow_hash, packet.flags) = (PacketType::Host as u8, 0, 0);
    packet.origin = NO_PORT;
}
