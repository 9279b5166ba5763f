//! Packets outside of the packet region, with their annotations.

use element::Work;
use packet::Access;
use packet::anno::ANNO_BYTES;
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;

/// Packets that were stored, in their order.
#[derive(Default)]
pub(super) struct StoredPackets {
    /// The packets' bytes, one behind the other.
    bytes: Vec<u8>,
    packets: Vec<Stored>,
}

/// What a packet has beside its bytes.
struct Stored {
    /// Where its bytes end.
    end: usize,
    /// Header offsets from its first byte; `None` where they are not known.
    headers: [Option<i32>; 3],
    anno: [u8; ANNO_BYTES],
    timestamp_ns: u64,
    packet_type: u8,
}

/// Whether there was room for a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Storing {
    Done,
    Full,
}

impl StoredPackets {
    /// The most bytes, those that a packet has beside its own included.
    pub(super) const MOST_BYTES: usize = 1 << 30;

    /// Packets that are stored.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Stores a copy of a packet, which stays the caller's.
    pub(super) fn add(&mut self, packet: &Packet) -> Storing {
        let (start, length) = (self.bytes.len(), packet.total() as usize);
        if start + length + (self.packets.len() + 1) * size_of::<Stored>() > Self::MOST_BYTES {
            return Storing::Full;
        }
        self.bytes.resize(start + length, 0);
        let copied = PacketBytes::new(packet).copy_out(0, &mut self.bytes[start..]);
        debug_assert!(copied, "a packet has the bytes that it says");
        let from_data = |at: u16| (at != NO_HEADER).then(|| i32::from(at) - i32::from(packet.data()));
        self.packets.push(Stored {
            end: start + length,
            headers: [packet.mac, packet.net, packet.trans].map(from_data),
            anno: packet.anno,
            timestamp_ns: packet.timestamp_ns,
            packet_type: packet.packet_type,
        });
        Storing::Done
    }

    /// The timestamp of the packet of that number; `None` if there is no such packet.
    pub(super) fn timestamp_ns(&self, number: usize) -> Option<u64> {
        self.packets.get(number).map(|stored| stored.timestamp_ns)
    }

    /// Makes a packet like the one of that number; `None` if the pool is empty, or there is no such packet.
    pub(super) fn make(&self, number: usize, work: &mut Work<'_>) -> Option<Packet> {
        let start = number.checked_sub(1).and_then(|last| self.packets.get(last)).map_or(0, |last| last.end);
        let stored = self.packets.get(number)?;
        let mut packet = work.make(self.bytes.as_slice().get(start..stored.end)?)?;
        let data = i32::from(packet.data());
        let [mac, net, trans] = stored.headers.map(|from_data| {
            from_data.and_then(|from_data| u16::try_from(data + from_data).ok()).unwrap_or(NO_HEADER)
        });
        (packet.mac, packet.net, packet.trans) = (mac, net, trans);
        packet.anno = stored.anno;
        (packet.timestamp_ns, packet.packet_type) = (stored.timestamp_ns, stored.packet_type);
        Some(packet)
    }
}
