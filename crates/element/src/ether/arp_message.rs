//! ARP messages for Ethernet and IPv4 (RFC 826).

use super::header::{BROADCAST, EtherHeader, HEADER_BYTES, TYPE_ARP, TYPE_IP};
use packet::access::Access;

/// Bytes of the message behind the Ethernet header.
pub(super) const MESSAGE_BYTES: usize = 28;
/// Bytes of a frame with a message.
pub(super) const FRAME_BYTES: usize = HEADER_BYTES + MESSAGE_BYTES;
/// Hardware address space of Ethernet.
pub(super) const ETHERNET: u16 = 1;
/// Asks who has an address.
pub(super) const REQUEST: u16 = 1;
/// Answers.
pub(super) const REPLY: u16 = 2;

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) mac: [u8; 6],
    pub(super) ip: u32,
}

/// A message for Ethernet and IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) operation: u16,
    pub(super) sender: End,
    pub(super) target: End,
}

impl Message {
    /// Reads the message of a frame whose Ethernet header stands at its front. `None` when it is too
    /// short, or for other address spaces.
    pub(super) fn read<A: Access + ?Sized>(frame: &A) -> Option<Message> {
        let mut bytes = [0; FRAME_BYTES];
        if !frame.copy_out(0, &mut bytes) {
            return None;
        }
        let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        if u16_at(12) != TYPE_ARP || u16_at(14) != ETHERNET || u16_at(16) != TYPE_IP {
            return None;
        }
        let end = |at: usize| {
            let (mut mac, mut ip) = ([0; 6], [0; 4]);
            mac.copy_from_slice(&bytes[at..at + 6]);
            ip.copy_from_slice(&bytes[at + 6..at + 10]);
            End { mac, ip: u32::from_be_bytes(ip) }
        };
        Some(Message { operation: u16_at(20), sender: end(22), target: end(32) })
    }

    /// The frame that carries the message from its sender to a station.
    pub(super) fn frame(&self, to: [u8; 6]) -> [u8; FRAME_BYTES] {
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

/// The question of `sender` who has an address.
pub(super) fn request(sender: End, wanted: u32) -> Message {
    Message { operation: REQUEST, sender, target: End { mac: [0; 6], ip: wanted } }
}

/// Whether an address can be a station's.
pub(super) fn is_station(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0 && mac != BROADCAST
}
