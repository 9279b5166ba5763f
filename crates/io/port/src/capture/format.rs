//! Constants and functions of both capture formats: byte order, record limits, the pcap headers.

/// The longest frame of a capture that is accepted: libpcap's own limit. A longer one means that the file is damaged
/// and its further lengths are meaningless.
pub const LONGEST_RECORD_BYTES: u32 = 262_144;
/// Bytes of the header of a pcap file.
pub const FILE_HEADER_BYTES: usize = 24;
/// Bytes in front of each frame in a pcap file.
pub const RECORD_HEADER_BYTES: usize = 16;
/// Magic number of a pcap file with nanosecond timestamps.
pub const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Magic number of a pcap file with microsecond timestamps.
pub const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;

/// Byte order of the machine that wrote a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// The 16-bit integer at `at`.
    pub fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let value = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u16::from_be_bytes(value) } else { u16::from_le_bytes(value) })
    }

    /// The 32-bit integer at `at`.
    pub fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let value = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u32::from_be_bytes(value) } else { u32::from_le_bytes(value) })
    }

    /// The 64-bit integer at `at`.
    pub fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let value = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Big { u64::from_be_bytes(value) } else { u64::from_le_bytes(value) })
    }
}

/// The contents of a pcap file's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PcapHeader {
    /// The byte order of its integers.
    pub order: ByteOrder,
    /// Nanoseconds in a unit of the fraction of a timestamp.
    pub fraction_ns: u64,
    /// The link type of the frames.
    pub link_type: u32,
}

impl PcapHeader {
    /// Parses a file header; `None` without a magic number of pcap.
    pub fn parse(bytes: &[u8]) -> Option<PcapHeader> {
        let (order, fraction_ns) = match ByteOrder::Big.u32(bytes, 0)? {
            MAGIC_MICROSECONDS => (ByteOrder::Big, 1000),
            MAGIC_NANOSECONDS => (ByteOrder::Big, 1),
            magic if magic.swap_bytes() == MAGIC_MICROSECONDS => (ByteOrder::Little, 1000),
            magic if magic.swap_bytes() == MAGIC_NANOSECONDS => (ByteOrder::Little, 1),
            _ => return None,
        };
        // The upper half describes the FCS of the frames; link types have 16 bits.
        let link_type = order.u32(bytes, 20)? & 0xffff;
        Some(PcapHeader { order, fraction_ns, link_type })
    }
}
