//! The bytes of a packet of one segment, for those who have no use for the rest of its descriptor.

use crate::descriptor::Packet;
use crate::slot::Segment;

/// Where the bytes lie, checked. Copies in and out, never a slice: see [`crate::PacketBytes`].
#[derive(Clone, Copy, Debug)]
pub struct Frame(Segment);

impl Frame {
    /// The bytes of the packet's first segment; none where its descriptor speaks of no memory of ours.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Frame {
        Frame(Segment::of(packet))
    }

    /// `len` bytes from `data` of a slot's buffer, which lies at `buf`; none where that is no memory of ours.
    #[inline(always)]
    pub fn at(region: u16, buf: u64, data: u16, len: u16) -> Frame {
        Frame(Segment::at(region, buf, data, u32::from(len)))
    }

    /// How many bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `out.len()` bytes from `offset`; false when they are not all there.
    #[inline(always)]
    pub fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        self.0.read(offset, out)
    }

    /// Copies `bytes` to `offset`; false, and nothing written, when they do not all fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        self.0.write(offset, bytes)
    }
}
