//! The bytes of a packet over all its segments, as `packet`'s [`Access`].
//!
//! Both views check the descriptor once when they are created (and walk the chain then, if there is one), so
//! that a read or write costs one comparison and a copy for nearly every packet. A view of a descriptor that
//! names no packet memory is empty.

use crate::descriptor::{Packet, flag};
use crate::slot::{Segment, following};
use packet::access::Access;
use std::ops::Range;

/// Read access to a packet's bytes. [`Access::copy_in`] refuses.
#[derive(Debug)]
pub struct PacketBytes<'a> {
    packet: &'a Packet,
    head: Segment,
    total: usize,
}

/// Read and write access to a packet's bytes.
#[derive(Debug)]
pub struct PacketBytesMut<'a>(PacketBytes<'a>);

/// Length of the whole packet: the sum of its segments, not the head's `total`.
#[inline(always)]
fn total(packet: &Packet, head: &Segment) -> usize {
    if packet.segments <= 1 { head.len() } else { chain_total(packet) }
}

#[cold]
fn chain_total(packet: &Packet) -> usize {
    segments(packet).map(|(_, segment)| segment.len()).sum()
}

/// The segments of a packet with their descriptors. Ends after the number of segments in the head, so that a
/// cyclic chain ends, too.
pub(crate) fn segments(packet: &Packet) -> impl Iterator<Item = (Packet, Segment)> + use<> {
    let count = usize::from(packet.segments.max(1));
    std::iter::successors(Some(*packet), following)
        .take(count)
        .map(|descriptor| (descriptor, Segment::of(&descriptor)))
}

/// Passes the parts of the `len` bytes from `offset` on to their segments; returns whether all were handled.
#[cold]
fn chain_each(
    packet: &Packet,
    mut offset: usize,
    len: usize,
    mut take: impl FnMut(&Segment, usize, Range<usize>) -> bool,
) -> bool {
    let mut done = 0;
    for (_, segment) in segments(packet) {
        if done == len {
            break;
        }
        if offset >= segment.len() {
            offset -= segment.len();
            continue;
        }
        let end = len.min(done + segment.len() - offset);
        if !take(&segment, offset, done..end) {
            return false;
        }
        (offset, done) = (0, end);
    }
    done == len
}

impl<'a> PacketBytes<'a> {
    /// A view of the bytes of `packet`.
    #[inline(always)]
    pub fn new(packet: &'a Packet) -> Self {
        let head = Segment::of(packet);
        PacketBytes { packet, head, total: total(packet, &head) }
    }

    /// All bytes, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.total];
        let whole = self.copy_out(0, &mut out);
        debug_assert!(whole, "a view reads all of its length");
        out
    }
}

impl<'a> PacketBytesMut<'a> {
    /// A view of the bytes of `packet`.
    #[inline(always)]
    pub fn new(packet: &'a mut Packet) -> Self {
        debug_assert!(packet.flags & flag::SHARED == 0, "somebody else reads it");
        PacketBytesMut(PacketBytes::new(packet))
    }
}

impl Access for PacketBytes<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.total
    }

    #[inline(always)]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        let PacketBytes { packet, head, total } = self;
        if head.read(offset, out) {
            return true;
        }
        // Beyond the first segment. The range is checked first, so that `out` is unchanged on failure.
        packet.segments > 1
            && offset.checked_add(out.len()).is_some_and(|end| end <= *total)
            && chain_each(packet, offset, out.len(), |segment, at, part| segment.read(at, &mut out[part]))
    }

    fn copy_in(&mut self, _offset: usize, _bytes: &[u8]) -> bool {
        false
    }
}

impl Access for PacketBytesMut<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        self.0.copy_out(offset, out)
    }

    #[inline(always)]
    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let PacketBytes { packet, head, total } = &self.0;
        if head.write(offset, bytes) {
            return true;
        }
        packet.segments > 1
            && offset.checked_add(bytes.len()).is_some_and(|end| end <= *total)
            && chain_each(packet, offset, bytes.len(), |segment, at, part| segment.write(at, &bytes[part]))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        HugePages, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool, clone_packet, linearize, park,
    };
    use proptest::prelude::*;

    // A unit test, since no other crate can create such a descriptor.
    proptest! {
        #[test]
        fn no_descriptor_reaches_beyond_packet_memory(
            buf in any::<u64>(), from_base in any::<bool>(), data in any::<u16>(), len in any::<u32>(),
            segments in any::<u16>(), next in any::<u64>(), region in any::<u16>(),
            offset in any::<usize>(), size in 0..4096usize,
        ) {
            let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(8) };
                let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
                let mut pool = PacketPool::Native(shared.worker());
            let mut real = [Packet::EMPTY];
            prop_assert_eq!(pool.alloc(&mut real), 1);
            let [real] = real;
            let mut descriptor = Packet { buf, data, len, total: len, segments, next, region, ..real };
            if from_base {
                (descriptor.buf, descriptor.region) = (real.buf.wrapping_add(buf % 65_536).wrapping_sub(32_768), real.region);
            }
            // Whatever the descriptor contains, the copies fail or stay inside, so this process does not
            // crash.
            let mut out = vec![0xa5; size];
            if !PacketBytes::new(&descriptor).copy_out(offset, &mut out) {
                prop_assert!(out.iter().all(|&byte| byte == 0xa5));
            }
            let _ = PacketBytesMut::new(&mut descriptor).copy_in(offset, &out);
            park(&descriptor);
            let mut edited = descriptor;
            let _ = edited.push(size) && edited.pull(size) && edited.put(size) && edited.take(size);
            let _ = edited.make_headroom(size);
            let _ = linearize(&mut pool, &mut edited);
            let _ = clone_packet(&mut pool, &descriptor);
        }
    }
}
