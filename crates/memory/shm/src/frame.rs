//! The bytes of a packet of one segment, for code that needs no other part of its descriptor.

use crate::descriptor::Packet;
use crate::slot::Segment;

/// The checked location of the bytes. It copies bytes in and out, and never returns a slice: see
/// [`crate::PacketBytes`].
#[derive(Clone, Copy, Debug)]
pub struct Frame(Segment);

impl Frame {
    /// The bytes of the packet's first segment; empty if its descriptor names no packet memory.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Frame {
        Frame(Segment::of(packet))
    }

    /// `len` bytes from `data` of the slot's buffer at `buf`; empty if that is no packet memory.
    #[inline(always)]
    pub fn at(region: u16, buf: u64, data: u16, len: u16) -> Frame {
        Frame(Segment::at(region, buf, data, u32::from(len)))
    }

    /// Number of bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `out.len()` bytes from `offset`; false if the range exceeds the frame.
    #[inline(always)]
    pub fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        self.0.read(offset, out)
    }

    /// Copies `bytes` to `offset`; false, and nothing written, if they do not fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        self.0.write(offset, bytes)
    }
}
