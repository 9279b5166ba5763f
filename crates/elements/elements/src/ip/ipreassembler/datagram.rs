//! A packet whose fragments are collected.

use crate::ip::header::{IP_BYTES, Ipv4Header, from_network, set_checksum};
use packet::anno::Anno;
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use std::net::Ipv4Addr;

/// Source, destination, identification, protocol (RFC 791).
pub type Key = (u32, u32, u16, u8);

const MORE_FRAGMENTS: u16 = 0x2000;
/// The longest IP packet.
const MOST_PACKET: usize = u16::MAX as usize;
/// Memory of a datagram beyond its bytes, as Click counts it.
const OVERHEAD_BYTES: usize = 40;

/// A fragment's header.
pub struct Fragment {
    /// The datagram that it belongs to.
    pub key: Key,
    header: Ipv4Header,
    /// IP length.
    length: usize,
    /// Offset of its payload in the whole packet's.
    offset: usize,
    more: bool,
}

impl Fragment {
    /// Reads a packet's header; `None` if it has none.
    pub fn read(packet: &Packet) -> Option<Fragment> {
        let header = Ipv4Header::read(&from_network(packet)?)?;
        Some(Fragment {
            key: (header.word(12), header.word(16), header.half(4), header.bytes()[9]),
            length: usize::from(header.half(2)),
            offset: usize::from(header.half(6) & 0x1fff) * 8,
            more: header.half(6) & MORE_FRAGMENTS != 0,
            header,
        })
    }

    /// Whether its lengths are valid: the payload is not empty, all of it is there, its length is a multiple
    /// of 8 unless it is the last, and the whole packet is not longer than IP allows.
    pub fn is_sound(&self) -> bool {
        let header_bytes = self.header.bytes().len();
        let payload = self.length.saturating_sub(header_bytes);
        payload > 0
            && self.length <= self.header.there
            && (payload.is_multiple_of(8) || !self.more)
            && header_bytes + self.offset + payload <= MOST_PACKET
    }

    fn end(&self) -> usize {
        self.offset + self.length - self.header.bytes().len()
    }
}

/// A datagram in the making.
pub struct Datagram {
    /// The packet that is held.
    pub carrier: Packet,
    /// When the last fragment came.
    pub last_ns: u64,
    /// The bytes before the payload, from the fragment with offset 0 once that is here.
    head: Vec<u8>,
    ip_offset: usize,
    has_first: bool,
    /// Descriptor of the fragment that the head is from, for its annotations.
    model: Packet,
    payload: Vec<u8>,
    /// Ranges of the payload that are here, in order, with gaps between them.
    chunks: Vec<(usize, usize)>,
    /// Length of the payload, once the last fragment is here.
    total: Option<usize>,
    longest: usize,
}

impl Datagram {
    /// A datagram from its first sound fragment, whose packet becomes the carrier.
    pub fn new(fragment: &Fragment, packet: &Packet, now_ns: u64) -> Datagram {
        let mut datagram = Datagram {
            carrier: *packet,
            last_ns: now_ns,
            head: vec![],
            ip_offset: 0,
            has_first: false,
            model: *packet,
            payload: vec![],
            chunks: vec![],
            total: None,
            longest: 0,
        };
        // The carrier's header is used until the first fragment comes.
        datagram.head.extend_from_slice(&fragment.header.bytes()[..IP_BYTES]);
        datagram.head[0] = 0x45;
        let added = datagram.add(fragment, packet, now_ns);
        debug_assert!(added, "a sound fragment begins a datagram");
        datagram
    }

    /// Bytes that it takes.
    pub fn cost(&self) -> usize {
        OVERHEAD_BYTES + self.payload.len()
    }

    /// Adds a sound fragment; false if it contradicts the others.
    pub fn add(&mut self, fragment: &Fragment, packet: &Packet, now_ns: u64) -> bool {
        use packet::Access as _;
        let (from, to) = (fragment.offset, fragment.end());
        let known = self.chunks.last().map_or(0, |(_, end)| *end);
        let fits = match (self.total, fragment.more) {
            (Some(total), true) => to <= total,
            (Some(total), false) => to == total,
            (None, true) => true,
            (None, false) => to >= known,
        };
        if !fits {
            return false;
        }
        if self.payload.len() < to {
            self.payload.resize(to, 0);
        }
        let Some(from_net) = from_network(packet) else { return false };
        let bytes = PacketBytes::new(&from_net);
        // If fragments overlap, the later one counts (RFC 791).
        if !bytes.copy_out(fragment.header.bytes().len(), &mut self.payload[from..to]) {
            return false;
        }
        if !fragment.more {
            self.total = Some(to);
        }
        if from == 0 && !self.take_head(fragment, packet) {
            return false;
        }
        self.mark(from, to);
        self.longest = self.longest.max(fragment.length);
        self.last_ns = now_ns;
        true
    }

    fn take_head(&mut self, fragment: &Fragment, packet: &Packet) -> bool {
        use packet::Access as _;
        let before = usize::from(packet.net.saturating_sub(packet.data()));
        self.head.clear();
        self.head.resize(before, 0);
        if before > 0 && !PacketBytes::new(packet).copy_out(0, &mut self.head) {
            return false;
        }
        self.head.extend_from_slice(fragment.header.bytes());
        (self.ip_offset, self.has_first, self.model) = (before, true, *packet);
        true
    }

    /// Adds a range to those that are here.
    fn mark(&mut self, from: usize, to: usize) {
        let (mut from, mut to) = (from, to);
        self.chunks.retain(|&(start, end)| {
            let apart = end < from || to < start;
            if !apart {
                (from, to) = (from.min(start), to.max(end));
            }
            apart
        });
        let at = self.chunks.partition_point(|(start, _)| *start < from);
        self.chunks.insert(at, (from, to));
    }

    /// Whether every byte is here.
    pub fn is_complete(&self) -> bool {
        self.has_first && matches!((self.total, &self.chunks[..]), (Some(total), [(0, end)]) if *end == total)
    }

    /// The bytes of the packet; if it is incomplete, those that are here, with "more fragments" set.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = self.head.clone();
        frame.extend_from_slice(&self.payload);
        let length = frame.len() - self.ip_offset;
        let header = &mut frame[self.ip_offset..self.head.len()];
        header[2..4].copy_from_slice(&(length.min(MOST_PACKET) as u16).to_be_bytes());
        let flags = u16::from_be_bytes([header[6], header[7]]) & 0xc000;
        let more = if self.total.is_none() { MORE_FRAGMENTS } else { 0 };
        header[6..8].copy_from_slice(&(flags | more).to_be_bytes());
        set_checksum(header);
        frame
    }

    /// Sets headers and annotations of a packet that holds [`Datagram::frame`].
    pub fn describe(&self, packet: &mut Packet, mtu_anno: Option<Anno>) {
        let model = &self.model;
        packet.net = packet.data() + self.ip_offset as u16;
        packet.trans = packet.data() + self.head.len() as u16;
        let mac = (model.mac != NO_HEADER && self.ip_offset > 0)
            .then(|| model.mac.checked_sub(model.data()))
            .flatten();
        packet.mac = mac.map_or(NO_HEADER, |at| packet.data() + at);
        (packet.anno, packet.packet_type) = (model.anno, model.packet_type);
        (packet.origin, packet.flow_hash) = (model.origin, model.flow_hash);
        if let Some(anno) = mtu_anno {
            anno.store(&mut packet.anno, self.longest as u64);
        }
    }

    /// A line for the `dump` handler.
    pub fn show(&self, key: &Key) -> String {
        let (src, dst) = (Ipv4Addr::from(key.0), Ipv4Addr::from(key.1));
        let mut line = format!(" ({src}, 0, {dst}, 0) {}", key.2);
        for (from, to) in &self.chunks {
            line.push_str(&format!(" ({from},{to})"));
        }
        line
    }
}
