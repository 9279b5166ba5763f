//! pcapng: sections, interfaces and packet blocks (draft-ietf-opsawg-pcapng). Other blocks are skipped.

use super::format::{ByteOrder, LONGEST_RECORD_BYTES};
use std::ops::Range;

/// Block type of a section header, the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const OPTION_TIMESTAMP_RESOLUTION: u16 = 9;
const OPTION_TIMESTAMP_OFFSET: u16 = 14;

/// The longest block that is accepted: libpcap's own limit.
pub const LONGEST_BLOCK_BYTES: u32 = 16 << 20;
/// The bytes with a block's type, its length and, for a section header, the byte order.
pub const BLOCK_START_BYTES: usize = 12;

/// An interface on which packets of a section were captured.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    snap_bytes: u32,
    /// Timestamp units in a second.
    units_per_second: u64,
    offset_seconds: i64,
}

/// The parts of a section that have been read.
#[derive(Clone, Debug)]
pub struct Section {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

/// A packet in a record of a capture: the position of its bytes from the start of the record.
#[derive(Clone, Debug)]
pub struct RecordPacket {
    pub timestamp_ns: u64,
    pub original_bytes: u32,
    pub link_type: u32,
    pub bytes: Range<usize>,
}

impl Section {
    /// A section whose header has not been read.
    pub fn new() -> Section {
        Section { order: ByteOrder::Little, interfaces: Vec::new() }
    }

    /// Link type of the section's first interface.
    pub fn link_type(&self) -> Option<u32> {
        self.interfaces.first().map(|interface| interface.link_type)
    }

    /// The length of the block that starts with these bytes.
    pub fn block_bytes(&mut self, start: &[u8]) -> Result<usize, &'static str> {
        let short = "the block header is cut off";
        if ByteOrder::Big.u32(start, 0) == Some(SECTION_HEADER) {
            self.order = match start.get(8..12) {
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => ByteOrder::Big,
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => ByteOrder::Little,
                _ => return Err("a section header has no byte-order mark"),
            };
        }
        let bytes = self.order.u32(start, 4).ok_or(short)?;
        if bytes % 4 != 0 || bytes < BLOCK_START_BYTES as u32 || bytes > LONGEST_BLOCK_BYTES {
            return Err("the length of a block is impossible");
        }
        Ok(bytes as usize)
    }

    /// Reads a whole block and returns its packet, if any.
    pub fn block(&mut self, block: &[u8]) -> Result<Option<RecordPacket>, &'static str> {
        let order = self.order;
        let end = block.len() - 4;
        if order.u32(block, end) != order.u32(block, 4) {
            return Err("a block's two lengths differ");
        }
        let body = block.get(..end).unwrap_or_default();
        let short = "a block is shorter than its content";
        match order.u32(body, 0).ok_or(short)? {
            SECTION_HEADER => {
                self.interfaces.clear();
                Ok(None)
            }
            INTERFACE => {
                let interface = self.interface(body).ok_or(short)?;
                self.interfaces.push(interface);
                Ok(None)
            }
            ENHANCED_PACKET => {
                let interface = order.u32(body, 8).ok_or(short)?;
                self.stamped(body, interface as usize).map(Some)
            }
            OBSOLETE_PACKET => {
                let interface = order.u16(body, 8).ok_or(short)?;
                self.stamped(body, usize::from(interface)).map(Some)
            }
            SIMPLE_PACKET => {
                let interface =
                    *self.interfaces.first().ok_or("a packet stands in front of any interface")?;
                let original_bytes = order.u32(body, 8).ok_or(short)?;
                let snap =
                    if interface.snap_bytes == 0 { LONGEST_RECORD_BYTES } else { interface.snap_bytes };
                let captured = (original_bytes.min(snap) as usize).min(body.len() - 12);
                Ok(Some(RecordPacket {
                    timestamp_ns: 0,
                    original_bytes,
                    link_type: interface.link_type,
                    bytes: 12..12 + captured,
                }))
            }
            _ => Ok(None),
        }
    }

    fn stamped(&self, body: &[u8], interface: usize) -> Result<RecordPacket, &'static str> {
        let short = "a block is shorter than its content";
        let word = |at| self.order.u32(body, at).ok_or(short);
        let interface = self.interfaces.get(interface).ok_or("a packet names an unknown interface")?;
        let units = u64::from(word(12)?) << 32 | u64::from(word(16)?);
        let captured = word(20)?;
        if captured > LONGEST_RECORD_BYTES || captured as usize > body.len() - 28.min(body.len()) {
            return Err("a packet is longer than its block");
        }
        Ok(RecordPacket {
            timestamp_ns: interface.nanoseconds(units),
            original_bytes: word(24)?,
            link_type: interface.link_type,
            bytes: 28..28 + captured as usize,
        })
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let mut interface = Interface {
            link_type: u32::from(self.order.u16(body, 8)?),
            snap_bytes: self.order.u32(body, 12)?,
            units_per_second: 1_000_000,
            offset_seconds: 0,
        };
        let mut at = 16;
        while let (Some(code), Some(len)) = (self.order.u16(body, at), self.order.u16(body, at + 2)) {
            let value = body.get(at + 4..at + 4 + usize::from(len))?;
            match (code, value) {
                (0, _) => break,
                (OPTION_TIMESTAMP_RESOLUTION, &[exponent]) => {
                    let base = if exponent & 0x80 == 0 { 10u64 } else { 2 };
                    interface.units_per_second = base.saturating_pow(u32::from(exponent & 0x7f));
                }
                (OPTION_TIMESTAMP_OFFSET, value) => {
                    interface.offset_seconds = self.order.u64(value, 0).unwrap_or(0) as i64;
                }
                _ => {}
            }
            at += 4 + usize::from(len).next_multiple_of(4);
        }
        Some(interface)
    }
}

impl Interface {
    fn nanoseconds(&self, units: u64) -> u64 {
        let since = u128::from(units) * 1_000_000_000 / u128::from(self.units_per_second.max(1));
        let total = i128::try_from(since)
            .unwrap_or(i128::MAX)
            .saturating_add(i128::from(self.offset_seconds) * 1_000_000_000);
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}
