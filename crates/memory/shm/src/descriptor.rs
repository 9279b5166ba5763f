//! The packet descriptor: the metadata of one packet.
//!
//! A [`Packet`] is 128 bytes. While a worker processes a packet, its descriptor is in the worker's *vector*,
//! an array that stays in the first-level cache. For an NF in another process that uses metadata, the same
//! 128 bytes are in the metadata block at the head of the slot. The layout is versioned ([`LAYOUT_VERSION`])
//! and fixed (`repr(C)`): machine code reads and writes it by the offsets in [`offset`].
//!
//! The first cache line holds everything that forwarding needs. `buf` and `handle` are valid in the host
//! only: when a descriptor returns from shared memory, the host sets them itself and ignores the values
//! there.
//!
//! Machine code accesses a packet's bytes by the fields of its descriptor and checks no addresses. So every
//! descriptor satisfies these invariants:
//!
//! - The [`BUF_BYTES`] bytes from `buf` on stay mapped as long as this process lives (see [`crate::span`]),
//!   or `data` and `len` are 0.
//! - The sum of `data` and `len` is at most [`BUF_BYTES`].
//! - `total` is at least `len`, and equals it if the packet has one segment.
//!
//! The fields in these invariants and those that name the slot are read by methods and changed by checked
//! operations ([`Packet::push`], [`Packet::pull`], [`Packet::put`], [`Packet::take`], [`Packet::set_ends`]
//! and the like). Three sources create descriptors: pools; [`crate::claimed`] and [`crate::unpark`], which
//! trust no value that another process may have written; and [`Packet::from_words`], which is unsafe. Machine
//! code keeps the invariants, too: the verifier of packet programs allows no push or pull beyond the buffer
//! or the packet.
//!
//! Memory safety does not depend on the other fields. Header offsets are counted in bytes from `buf`. Their
//! readers, machine code included, compare them with the packet's end first, so any value is allowed. The
//! offsets that this crate sets are between 0 and [`BUF_BYTES`].
//!
//! Code outside this crate cannot create a descriptor or change its trusted fields:
//!
//! ```compile_fail,E0451
//! let packet = shm::Packet { buf: 64, data: 0, len: 64, total: 64, ..shm::Packet::EMPTY };
//! ```
//!
//! ```compile_fail,E0616
//! let mut packet = shm::Packet::EMPTY;
//! packet.buf = 64;
//! ```
//!
//! ```compile_fail,E0616
//! let mut packet = shm::Packet::EMPTY;
//! packet.len += 64;
//! ```
//!
//! ```compile_fail,E0616
//! let mut packet = shm::Packet::EMPTY;
//! packet.handle = 64;
//! ```
//!
//! ```compile_fail,E0616
//! fn first(packet: &mut shm::Packet) -> &mut u16 {
//!     &mut packet.data
//! }
//! ```
//!
//! ```compile_fail,E0451
//! fn other(packet: shm::Packet) -> shm::Packet {
//!     shm::Packet { slot: 7, ..packet }
//! }
//! ```
//!
//! ```compile_fail,E0133
//! let packet = shm::Packet::from_words([64; 16]);
//! ```
//!
//! Any code may write the untrusted fields:
//!
//! ```
//! let mut packet = shm::Packet::detached(128, 60).expect("a buffer has as many bytes");
//! (packet.net, packet.packet_type, packet.timestamp_ns) = (142, 3, 5);
//! assert!(packet.pull(14) && !packet.pull(47) && packet.push(142) && !packet.push(1));
//! assert_eq!((packet.data(), packet.len()), (0, 188));
//! ```

use packet::anno::ANNO_BYTES;
use packet::field::Base;
use std::sync::atomic::AtomicU64;

/// Version of the layout of [`Packet`]; part of the attach handshake.
pub const LAYOUT_VERSION: u16 = 1;
/// Bytes of the metadata block at the head of each slot.
pub const META_BYTES: usize = 128;
/// Bytes of the buffer in each slot, headroom included.
pub const BUF_BYTES: usize = 2240;
/// Bytes in front of a received frame for headers that are pushed. DPDK's default.
pub const HEADROOM: usize = 128;
/// Distance between slots. 37 cache lines: an odd number, so that headers of neighbouring slots fall
/// into different sets of the first-level cache.
pub const SLOT_BYTES: usize = META_BYTES + BUF_BYTES;

/// One packet, or one segment of it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Address of the slot's buffer in this process.
    pub(crate) buf: u64,
    /// The pool's own handle: an mbuf's address or a slot number.
    pub(crate) handle: u64,
    /// Offset of the packet's first byte, from `buf`.
    pub(crate) data: u16,
    /// Offset of the MAC header, from `buf`; [`NO_HEADER`] when not known.
    pub mac: u16,
    /// Offset of the network header, from `buf`; [`NO_HEADER`] when not known.
    pub net: u16,
    /// Offset of the transport header, from `buf`; [`NO_HEADER`] when not known.
    pub trans: u16,
    /// Bytes of the packet in this segment, from `data`.
    pub(crate) len: u32,
    /// Bytes of the packet in all its segments; equals `len` when there is one.
    pub(crate) total: u32,
    /// Click annotations; offsets in `packet::anno`.
    pub anno: [u8; ANNO_BYTES],
    /// Time of reception in nanoseconds since the epoch; 0 when not known.
    pub timestamp_ns: u64,
    /// Symmetric flow hash from the port; 0 when not known.
    pub flow_hash: u32,
    /// Number of the port that received it, as the host numbers ports; [`NO_PORT`] when an element made it.
    pub origin: u16,
    /// Flags: see [`flag`].
    pub flags: u16,
    /// Number of the next segment's slot plus one; 0 when this is the last.
    pub(crate) next: u64,
    /// Number of segments, 1 for nearly all packets.
    pub(crate) segments: u16,
    /// Click packet type: see [`PacketType`].
    pub packet_type: u8,
    /// Reserved, 0.
    pub(crate) reserved0: u8,
    /// Number of the slot in its region.
    pub(crate) slot: u32,
    /// Generation of the slot when this descriptor was created; a descriptor with an older one is stale.
    pub(crate) generation: u32,
    /// [`LAYOUT_VERSION`].
    pub(crate) version: u16,
    /// Number of the slot's region.
    pub(crate) region: u16,
    /// Reserved, 0.
    pub(crate) reserved1: u64,
}

const _: () = assert!(size_of::<Packet>() == META_BYTES && align_of::<Packet>() == 64);

/// Header offset that means "not set".
pub const NO_HEADER: u16 = u16::MAX;
/// Origin that means "made by an element".
pub const NO_PORT: u16 = u16::MAX;

/// Bits of [`Packet::flags`].
pub mod flag {
    /// The transport checksum is incomplete: the field holds the sum of the pseudo header only.
    pub const PARTIAL_CHECKSUM: u16 = 1;
    /// Larger than the link's MTU; must be segmented before it is sent.
    pub const GSO: u16 = 2;
    /// Further descriptors of the slot exist, so its bytes must not be written. See
    /// [`Pool::share`](crate::Pool::share).
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
    /// Addressed to another host.
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
    /// Offset of [`Packet::next`].
    pub const NEXT: i32 = offset_of!(Packet, next) as i32;
    /// Offset of [`Packet::segments`].
    pub const SEGMENTS: i32 = offset_of!(Packet, segments) as i32;
    /// Offset of [`Packet::generation`].
    pub const GENERATION: i32 = offset_of!(Packet, generation) as i32;
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

/// Methods that return trusted fields.
macro_rules! getters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub const fn $field(&self) -> $type {
            self.$field
        }
    )* };
}

impl Packet {
    getters! {
        /// Address of the slot's buffer in this process.
        buf: u64;
        /// The pool's own handle: an mbuf's address or a slot number.
        handle: u64;
        /// Offset of the packet's first byte, from [`Packet::buf`].
        data: u16;
        /// Bytes of the packet in its first segment.
        len: u32;
        /// Bytes of the packet in all its segments.
        total: u32;
        /// Number of the next segment's slot plus one; 0 when there is none.
        next: u64;
        /// Number of segments: 1 for nearly all packets, 0 for [`Packet::EMPTY`].
        segments: u16;
        /// Number of the slot in its region.
        slot: u32;
        /// Generation of the slot when this descriptor was created.
        generation: u32;
        /// Number of the slot's region.
        region: u16;
        /// [`LAYOUT_VERSION`].
        version: u16;
    }

    /// A descriptor of no packet: it has no buffer and no bytes, and no operation gives it any.
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
        // No segment: every operation that grows a packet fails.
        segments: 0,
        packet_type: PacketType::Host as u8,
        reserved0: 0,
        slot: 0,
        generation: 0,
        version: LAYOUT_VERSION,
        region: 0,
        reserved1: 0,
    };

    /// A descriptor of `len` bytes from `data` of a buffer that is in no slot, without header offsets: for
    /// evaluators, which keep the bytes themselves. `None` when the range exceeds a buffer.
    ///
    /// All such descriptors have the address of one scratch buffer of this process, so that machine code that
    /// runs on one reads and writes there. Views of them are empty, and pools do not take them back.
    pub fn detached(data: u16, len: u32) -> Option<Packet> {
        is_inside(data, len).then_some(Packet {
            buf: (&raw const SCRATCH) as u64,
            data,
            len,
            total: len,
            segments: 1,
            ..Packet::EMPTY
        })
    }

    /// A packet of one segment at an address, without further metadata.
    ///
    /// The caller has found `buf` in the table of spans as the buffer of `slot` of `region`, and holds the
    /// slot in that generation. `None` when the range exceeds a buffer.
    #[inline(always)]
    pub(crate) fn of_slot(
        (region, slot, generation): (u16, u32, u32),
        buf: u64,
        (data, len): (u16, u32),
    ) -> Option<Packet> {
        is_inside(data, len).then_some(Packet {
            buf,
            data,
            len,
            total: len,
            segments: 1,
            slot,
            generation,
            region,
            ..Packet::EMPTY
        })
    }

    /// Where a header starts, or the packet's first byte, from `buf`; [`NO_HEADER`] when not known.
    pub fn header(&self, base: Base) -> u16 {
        match base {
            Base::Data => self.data,
            Base::Mac => self.mac,
            Base::Net => self.net,
            Base::Trans => self.trans,
        }
    }

    /// The header offset that `base` names. `None` for the packet's first byte, which other operations move.
    pub fn header_mut(&mut self, base: Base) -> Option<&mut u16> {
        match base {
            Base::Data => None,
            Base::Mac => Some(&mut self.mac),
            Base::Net => Some(&mut self.net),
            Base::Trans => Some(&mut self.trans),
        }
    }

    /// Whether the first segment has no bytes.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Offset behind the first segment's last byte, from [`Packet::buf`].
    #[inline(always)]
    pub const fn end(&self) -> u32 {
        self.data as u32 + self.len
    }

    /// The same packet with its first byte at offset `at` of the buffer: a stripped header may be in front of
    /// the packet. `None` if `at` is behind the packet's end.
    #[inline]
    pub fn starting_at(&self, at: u16) -> Option<Packet> {
        let len = self.end().checked_sub(u32::from(at))?;
        let total = (self.total - self.len) + len;
        Some(Packet { data: at, len, total, ..*self })
    }

    /// Corrects a descriptor that was read from memory which other processes write: impossible values are
    /// unset. The caller has checked that `data` and `len` are inside a buffer. The caller still has to set
    /// the fields that only this process may set (buffer, slot, generation, handle, further segments).
    #[inline(always)]
    pub(crate) fn make_sound(&mut self, (data, len): (u16, u32)) {
        debug_assert!(is_inside(data, len), "the caller checks that");
        self.data = data;
        (self.mac, self.net, self.trans) = (header(self.mac), header(self.net), header(self.trans));
        (self.len, self.total) = (len, len);
        self.flags &= flag::PARTIAL_CHECKSUM | flag::GSO;
        self.packet_type = self.packet_type.min(PacketType::Outgoing as u8);
    }

    /// The whole buffer of the first segment's slot, as a packet of one segment.
    #[inline]
    pub fn whole_buffer(&self) -> Packet {
        if self.segments == 0 {
            return *self;
        }
        let len = BUF_BYTES as u32;
        Packet { data: 0, len, total: len, segments: 1, next: 0, ..*self }
    }
}

/// Whether `len` bytes from `data` are inside a slot's buffer.
#[inline(always)]
pub(crate) const fn is_inside(data: u16, len: u32) -> bool {
    data as u64 + len as u64 <= BUF_BYTES as u64
}

/// A header's offset, or [`NO_HEADER`] if it is beyond the buffer.
#[inline(always)]
pub(crate) const fn header(at: u16) -> u16 {
    if at as usize > BUF_BYTES { NO_HEADER } else { at }
}

/// The buffer of descriptors without a slot. Only machine code accesses it, and it may hold any bytes.
static SCRATCH: [AtomicU64; BUF_BYTES / 8] = [const { AtomicU64::new(0) }; BUF_BYTES / 8];
