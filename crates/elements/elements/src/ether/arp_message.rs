//! ARP messages for Ethernet and IPv4 (RFC 826).

use super::header::{BROADCAST, EtherHeader, HEADER_BYTES, TYPE_ARP, TYPE_IP};
use packet::access::Access;
use packet::anno::{self, ANNO_BYTES};
use packet::view::Arp;
use packet::view::arp::{HTYPE_ETHERNET as ETHERNET, MESSAGE_BYTES};
pub use packet::view::arp::{REPLY, REQUEST};
use shm::Packet;
use shm::burst::Batch;
use shm::descriptor::NO_HEADER;

/// Bytes of a frame with a message.
pub const FRAME_BYTES: usize = HEADER_BYTES + MESSAGE_BYTES;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Its hardware address.
    pub mac: [u8; 6],
    /// Its IPv4 address.
    pub ip: u32,
}

/// A message for Ethernet and IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// [`REQUEST`] or [`REPLY`].
    pub operation: u16,
    /// The sender, with both its addresses.
    pub sender: End,
    /// The receiver of a reply; of a request, the end that is asked for.
    pub target: End,
}

impl Message {
    /// Reads the message of a frame that begins with its Ethernet header. `None` if the frame is too short,
    /// or the message is for other address spaces.
    pub fn read<A: Access + ?Sized>(frame: &A) -> Option<Message> {
        let arp = Arp::at(HEADER_BYTES);
        if (frame.u16(12)?, arp.htype(frame)?, arp.ptype(frame)?) != (TYPE_ARP, ETHERNET, TYPE_IP) {
            return None;
        }
        let sender = End { mac: arp.sender_mac(frame)?.0, ip: arp.sender_ip(frame)?.into() };
        let target = End { mac: arp.target_mac(frame)?.0, ip: arp.target_ip(frame)?.into() };
        Some(Message { operation: arp.op(frame)?, sender, target })
    }

    /// The frame that carries the message from its sender to a station.
    pub fn frame(&self, to: [u8; 6]) -> [u8; FRAME_BYTES] {
        let mut frame = [0; FRAME_BYTES];
        let header = EtherHeader { dst: to, src: self.sender.mac, ethertype: TYPE_ARP };
        frame[..HEADER_BYTES].copy_from_slice(&header.bytes());
        for (at, word) in [(14, ETHERNET), (16, TYPE_IP), (18, 0x0604), (20, self.operation)] {
            frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
        }
        for (at, end) in [(22, self.sender), (32, self.target)] {
            frame[at..at + 6].copy_from_slice(&end.mac);
            frame[at + 6..at + 10].copy_from_slice(&end.ip.to_be_bytes());
        }
        frame
    }
}

/// The request of `sender` for an address.
pub fn request(sender: End, wanted: u32) -> Message {
    Message { operation: REQUEST, sender, target: End { mac: [0; 6], ip: wanted } }
}

/// Whether an address can be that of a single station.
pub fn is_station(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0 && mac != BROADCAST
}

/// Overwrites a request with its reply. The packet keeps the `VLAN_TCI` annotation and loses all others.
pub fn answer(batch: &mut Batch<'_>, index: u16, reply: &[u8; FRAME_BYTES]) {
    let mut bytes = batch.bytes_mut(index);
    let excess = bytes.len().saturating_sub(reply.len());
    let fits = bytes.copy_in(0, reply);
    let packet = batch.packet_mut(index);
    let cut = packet.take(excess);
    debug_assert!(fits && cut, "the request was as long as the reply");
    forget_annotations(packet);
}

/// Resets the annotations of a request that became a reply, except `VLAN_TCI`.
pub fn forget_annotations(packet: &mut Packet) {
    let vlan = anno::VLAN_TCI.load(&packet.anno);
    packet.anno = [0; ANNO_BYTES];
    anno::VLAN_TCI.store(&mut packet.anno, vlan);
    (packet.mac, packet.net) = (packet.data(), packet.data() + HEADER_BYTES as u16);
    (packet.trans, packet.timestamp_ns, packet.packet_type) = (NO_HEADER, 0, 0);
}
