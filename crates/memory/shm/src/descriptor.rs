//! The packet descriptor: what the platform knows about one packet beyond its bytes.
//!
//! A [`Packet`] is 128 bytes. While a packet is worked on, its descriptor stands in a worker's
//! *vector* (an array that stays in the first-level cache); for an NF in another process that wants
//! it, the same 128 bytes stand in the metadata block at the head of its slot. The layout is versioned ([`LAYOUT_VERSION`]) and fixed (`repr(C)`): machine code reads and
//! writes it by the offsets in [`offset`].
//!
//! The first cache line holds everything that forwarding needs. `buf` and `handle` mean something in
//! the host only: they are rebuilt from `slot` when a descriptor comes back from shared memory, and
//! never believed.
//!
//! Offsets of headers are counted from `buf`, in bytes, and lie between 0 and [`BUF_BYTES`].

use packet::anno::ANNO_BYTES;

/// Version of the layout of [`Packet`]; part of the attach handshake.
pub const LAYOUT_VERSION: u16 = 1;
/// Bytes of the metadata block at the head of each slot.
pub const META_BYTES: usize = 128;
/// Bytes of buffer in each slot, headroom included.
pub const BUF_BYTES: usize = 2240;
/// Bytes in front of a received frame that headers can be pushed into. DPDK's default.
pub const HEADROOM: usize = 128;
/// Distance between slots. 37 cache lines: an odd number, so that headers of neighbouring slots fall
/// into different sets of the first-level cache.
pub const SLOT_BYTES: usize = META_BYTES + BUF_BYTES;

/// One packet (or one segment of it), as the platform sees it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Address of the slot's buffer in this process.
    pub buf: u64,
    /// The pool's own handle: an mbuf's address or a slot number, as the pool likes.
    pub handle: u64,
    /// First byte of the packet, from `buf`.
    pub data: u16,
    /// MAC header, from `buf`; [`NO_HEADER`] when not known.
    pub mac: u16,
    /// Network header, from `buf`; [`NO_HEADER`] when not known.
    pub net: u16,
    /// Transport header, from `buf`; [`NO_HEADER`] when not known.
    pub trans: u16,
    /// Bytes of the packet in this segment, from `data`.
    pub len: u32,
    /// Bytes of the packet in all its segments; equals `len` when there is one.
    pub total: u32,
    /// Click annotations; offsets in `packet::anno`.
    pub anno: [u8; ANNO_BYTES],
    /// When it was received, nanoseconds since the epoch; 0 when not known.
    pub timestamp_ns: u64,
    /// Symmetric flow hash from the port; 0 when not known.
    pub flow_hash: u32,
    /// The port that it came in by, as the host numbers ports; [`NO_PORT`] when made here.
    pub origin: u16,
    /// Flags: see [`flag`].
    pub flags: u16,
    /// Number of the next segment's slot plus one; 0 when this is the last.
    pub next: u64,
    /// Number of segments, 1 for nearly all packets.
    pub segments: u16,
    /// Click packet type: see [`PacketType`].
    pub packet_type: u8,
    /// Reserved, 0.
    pub reserved0: u8,
    /// Number of the slot in its region.
    pub slot: u32,
    /// Life of the slot that this descriptor speaks of; a descriptor with an old one is stale.
    pub generation: u32,
    /// [`LAYOUT_VERSION`].
    pub version: u16,
    /// Number of the region that the slot lies in.
    pub region: u16,
    /// Reserved, 0.
    pub reserved1: u64,
}

const _: () = assert!(size_of::<Packet>() == META_BYTES && align_of::<Packet>() == 64);

/// Header offset that means "not set".
pub const NO_HEADER: u16 = u16::MAX;
/// Origin that means "made by an element".
pub const NO_PORT: u16 = u16::MAX;

/// Bits of [`Packet::flags`].
pub mod flag {
    /// The transport checksum is not finished: only the pseudo header's sum stands in the field.
    pub const PARTIAL_CHECKSUM: u16 = 1;
    /// Larger than the link takes; must be segmented before it is sent.
    pub const GSO: u16 = 2;
    /// Somebody else holds the slot, too, and reads it: nobody writes its bytes. See [`Pool::share`](crate::Pool::share).
    pub const SHARED: u16 = 4;
}

/// Click's packet types (`Packet::PacketType`), from the frame's destination address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PacketType {
    /// Addressed to this host, or not known.
    Host = 0,
    /// Link broadcast.
    Broadcast = 1,
    /// Link multicast.
    Multicast = 2,
    /// Addressed to somebody else.
    OtherHost = 3,
    /// Sent by this host.
    Outgoing = 4,
}

/// Byte offsets of the fields of [`Packet`], for machine code.
pub mod offset {
    use super::Packet;
    use std::mem::offset_of;

    /// Offset of [`Packet::buf`].
    pub const BUF: i32 = offset_of!(Packet, buf) as i32;
    /// Offset of [`Packet::data`].
    pub const DATA: i32 = offset_of!(Packet, data) as i32;
    /// Offset of [`Packet::mac`].
    pub const MAC: i32 = offset_of!(Packet, mac) as i32;
    /// Offset of [`Packet::net`].
    pub const NET: i32 = offset_of!(Packet, net) as i32;
    /// Offset of [`Packet::trans`].
    pub const TRANS: i32 = offset_of!(Packet, trans) as i32;
    /// Offset of [`Packet::len`].
    pub const LEN: i32 = offset_of!(Packet, len) as i32;
    /// Offset of [`Packet::total`].
    pub const TOTAL: i32 = offset_of!(Packet, total) as i32;
    /// Offset of [`Packet::anno`].
    pub const ANNO: i32 = offset_of!(Packet, anno) as i32;
    /// Offset of [`Packet::timestamp_ns`].
    pub const TIMESTAMP_NS: i32 = offset_of!(Packet, timestamp_ns) as i32;
    /// Offset of [`Packet::flow_hash`].
    pub const FLOW_HASH: i32 = offset_of!(Packet, flow_hash) as i32;
    /// Offset of [`Packet::origin`].
    pub const ORIGIN: i32 = offset_of!(Packet, origin) as i32;
    /// Offset of [`Packet::packet_type`].
    pub const PACKET_TYPE: i32 = offset_of!(Packet, packet_type) as i32;
}

impl Packet {
    /// A descriptor that speaks of no packet.
    pub const EMPTY: Packet = Packet {
        buf: 0,
        handle: 0,
        data: 0,
        mac: NO_HEADER,
        net: NO_HEADER,
        trans: NO_HEADER,
        len: 0,
        total: 0,
        anno: [0; ANNO_BYTES],
        timestamp_ns: 0,
        flow_hash: 0,
        origin: NO_PORT,
        flags: 0,
        next: 0,
        segments: 1,
        packet_type: PacketType::Host as u8,
        reserved0: 0,
        slot: 0,
        generation: 0,
        version: LAYOUT_VERSION,
        region: 0,
        reserved1: 0,
    };
}
