//! Constants and functions of both capture formats: byte order, record limits, the pcap headers.

/// The longest frame of a capture that is accepted: libpcap's own limit. A longer one means that the file is
/// damaged and its further lengths are meaningless.
pub const LONGEST_RECORD_BYTES: u32 = 262_144;
/// Bytes of the header of a pcap file.
pub const FILE_HEADER_BYTES: usize = 24;
/// Bytes in front of each frame in a pcap file.
pub const RECORD_HEADER_BYTES: usize = 16;
/// The unit of a pcap file's timestamps, with the file's magic number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Resolution {
    /// Nanoseconds.
    Nanoseconds = 0xa1b2_3c4d,
    /// Microseconds, which every reader of captures supports.
    Microseconds = 0xa1b2_c3d4,
}

impl Resolution {
    fn of(magic: u32) -> Option<Resolution> {
        [Resolution::Nanoseconds, Resolution::Microseconds].into_iter().find(|known| *known as u32 == magic)
    }

    /// Nanoseconds in a unit.
    pub fn unit_ns(self) -> u64 {
        if self == Resolution::Nanoseconds { 1 } else { 1000 }
    }
}

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
    /// The unit of the fraction of a timestamp.
    pub resolution: Resolution,
    /// The link type of the frames.
    pub link_type: u32,
}

impl PcapHeader {
    /// Parses a file header; `None` without a magic number of pcap.
    pub fn parse(bytes: &[u8]) -> Option<PcapHeader> {
        let magic = ByteOrder::Big.u32(bytes, 0)?;
        let (order, resolution) = match Resolution::of(magic) {
            Some(resolution) => (ByteOrder::Big, resolution),
            None => (ByteOrder::Little, Resolution::of(magic.swap_bytes())?),
        };
        // The upper half describes the FCS of the frames; link types have 16 bits.
        let link_type = order.u32(bytes, 20)? & 0xffff;
        Some(PcapHeader { order, resolution, link_type })
    }
}
