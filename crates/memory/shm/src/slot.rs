//! Slots: the memory of a packet's bytes and of its parked descriptor. Only this module reads and writes
//! packet memory directly.
//!
//! Every access is checked against the table of spans (see `span`) and against the slot's own end. Bytes are
//! copied once, into or out of memory that no other process can write.
#![expect(unsafe_code, reason = "raw copies between packet memory and private memory")]

use crate::descriptor::{BUF_BYTES, HEADROOM, LAYOUT_VERSION, META_BYTES, Packet, is_inside};
use crate::ring::Descriptor;
use crate::span::{self, Span};
use std::ptr;

/// One checked segment of a packet: the `len` bytes from `address` are inside one slot's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    address: u64,
    len: usize,
}

impl Segment {
    /// The bytes of `packet` in this segment; empty if the descriptor is invalid.
    #[inline(always)]
    pub fn of(packet: &Packet) -> Segment {
        Segment::at(packet.region, packet.buf, packet.data, packet.len)
    }

    /// `len` bytes from `data` of the buffer at `buf`; empty if they exceed the buffer.
    #[inline(always)]
    pub fn at(region: u16, buf: u64, data: u16, len: u32) -> Segment {
        let end = u64::from(data) + u64::from(len);
        if end <= BUF_BYTES as u64 && Span::of(region).holds(buf) {
            Segment { address: buf + u64::from(data), len: len as usize }
        } else {
            Segment { address: 0, len: 0 }
        }
    }

    /// The whole buffer of the packet's slot, for edits that reach beyond its bytes.
    #[inline]
    pub fn buffer(packet: &Packet) -> Segment {
        Segment::at(packet.region, packet.buf, 0, BUF_BYTES as u32)
    }

    /// Number of bytes in this segment.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies `out.len()` bytes from `offset`; false if the segment is shorter.
    #[inline(always)]
    pub fn read(&self, offset: usize, out: &mut [u8]) -> bool {
        if !self.covers(offset, out.len()) {
            return false;
        }
        // SAFETY: `of` and `buffer` found the range inside a span, whose memory stays mapped; `covers`
        // keeps the copy inside the range; `out` is private memory and does not overlap packet memory.
        unsafe {
            ptr::copy_nonoverlapping(
                (self.address as usize + offset) as *const u8,
                out.as_mut_ptr(),
                out.len(),
            );
        }
        true
    }

    /// Copies `bytes` to `offset`; false, and nothing written, if they do not fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.covers(offset, bytes.len()) {
            return false;
        }
        // SAFETY: as in `read`, in the other direction.
        unsafe {
            ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                (self.address as usize + offset) as *mut u8,
                bytes.len(),
            );
        }
        true
    }

    /// Moves `len` bytes inside the segment; the ranges may overlap.
    pub fn shift(&self, from: usize, to: usize, len: usize) -> bool {
        if !self.covers(from, len) || !self.covers(to, len) {
            return false;
        }
        // SAFETY: both ranges lie inside the checked range; `copy` allows overlap.
        unsafe {
            ptr::copy(
                (self.address as usize + from) as *const u8,
                (self.address as usize + to) as *mut u8,
                len,
            );
        }
        true
    }

    /// Copies the bytes of this segment that fit to the start of `target`, slot to slot.
    pub fn copy_to(&self, target: &Segment) -> usize {
        let len = self.len.min(target.len);
        // SAFETY: both ranges were checked; `copy` allows that they are the same slot.
        unsafe {
            ptr::copy(self.address as usize as *const u8, target.address as usize as *mut u8, len);
        }
        len
    }

    #[inline(always)]
    fn covers(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }
}

/// Makes a packet the first `len` bytes of a template. The whole template is copied to the packet's first
/// byte whatever `len` is, which takes the fewest instructions. False, and nothing changed, if the template
/// exceeds the buffer or the packet is a chain.
#[inline(always)]
pub fn stamp<const TEMPLATE: usize>(packet: &mut Packet, template: &[u8; TEMPLATE], len: u16) -> bool {
    let fits = usize::from(packet.data) + TEMPLATE <= BUF_BYTES && usize::from(len) <= TEMPLATE;
    if !fits || packet.segments > 1 || !Span::of(packet.region).holds(packet.buf) {
        return false;
    }
    // SAFETY: the target lies inside one slot's buffer, checked just above.
    unsafe {
        ptr::copy_nonoverlapping(
            template.as_ptr(),
            (packet.buf as usize + usize::from(packet.data)) as *mut u8,
            TEMPLATE,
        );
    }
    (packet.len, packet.total) = (u32::from(len), u32::from(len));
    true
}

/// Stores the descriptor in its slot's metadata block, from which [`unpark`] reads it.
///
/// False if the descriptor does not name a slot of its region.
#[inline]
pub fn park(packet: &Packet) -> bool {
    park_in(Span::of(packet.region), packet)
}

/// The same, with the region's span as an argument.
#[inline(always)]
pub(crate) fn park_in(span: &Span, packet: &Packet) -> bool {
    if span.buffer(packet.slot) != Some(packet.buf) {
        return false;
    }
    write_block(block(packet.buf), packet);
    true
}

/// Stores the descriptor of a further segment of a chain, for [`linked`]. It is stored in memory of this
/// process alone, because the code that frees a chain trusts it. False as for [`park`].
pub(crate) fn link(packet: &Packet) -> bool {
    let Some((_, block)) = span::chained(packet.region, packet.slot).filter(|&(buf, _)| buf == packet.buf)
    else {
        return false;
    };
    write_block(block, packet);
    true
}

/// Reads what [`link`] stored.
pub(crate) fn linked(region: u16, slot: u32) -> Option<Packet> {
    let (buf, block) = span::chained(region, slot)?;
    let linked = read_block(block);
    is_inside(linked.data, linked.len).then_some(Packet { buf, slot, region, ..linked })
}

/// A descriptor in 64-bit words, the unit of access to shared memory. A volatile access to each field of the
/// structure compiled to 120 instructions.
type Words = [u64; META_BYTES / 8];

impl Packet {
    /// The descriptor in words, as in shared memory.
    #[inline(always)]
    pub fn to_words(&self) -> [u64; META_BYTES / 8] {
        // SAFETY: a `Packet` has no padding (its size is that of its fields), and the size of `Words`.
        unsafe { std::mem::transmute::<Packet, Words>(*self) }
    }

    /// A descriptor of unchecked words.
    ///
    /// # Safety
    /// The words keep to [`crate::descriptor`]: they were a valid descriptor's, or the memory's owner wrote
    /// them; or only code that checks descriptors (views, pools, ports) gets this one, as in its tests.
    #[inline(always)]
    pub unsafe fn from_words(words: [u64; META_BYTES / 8]) -> Packet {
        // SAFETY: every bit pattern is a `Packet`, which holds integers only and has the size of `Words`.
        unsafe { std::mem::transmute::<Words, Packet>(words) }
    }
}

/// Writes a descriptor to the metadata block or chain entry of a slot of a span.
#[inline(always)]
fn write_block(block: u64, packet: &Packet) {
    let block = block as *mut u64;
    for (at, word) in packet.to_words().into_iter().enumerate() {
        // SAFETY: the callers got the block of a slot that is inside a span, so that its `META_BYTES` are
        // mapped; blocks are aligned to 64 bytes (`SLOT_BYTES`, `META_BYTES`, and where spans and chains
        // begin, are).
        unsafe { ptr::write_volatile(block.add(at), word) };
    }
}

/// Reads the block of a slot of a span, each word once.
#[inline(always)]
fn read_block(block: u64) -> Packet {
    let block = block as *const u64;
    // SAFETY: as in `write_block`.
    let words: Words = std::array::from_fn(|at| unsafe { ptr::read_volatile(block.add(at)) });
    // SAFETY: the callers check it, and set what only this process may say.
    unsafe { Packet::from_words(words) }
}

/// Prefetches a slot's metadata block and the start of its data into the nearest cache, which takes a while
/// after another core wrote them: call it for many slots before the first of them is read.
#[inline(always)]
pub fn prefetch(region: u16, slot: u32) {
    let span = Span::of(region);
    prefetch_block(span, slot);
    if let Some(buf) = span.buffer(slot) {
        prefetch_line((buf + HEADROOM as u64) as *const u8);
    }
}

/// The start of its data alone, for code that does not read the block.
#[inline(always)]
pub fn prefetch_data(region: u16, slot: u32) {
    if let Some(buf) = Span::of(region).buffer(slot) {
        prefetch_line((buf + HEADROOM as u64) as *const u8);
    }
}

/// A descriptor, whose lines may not be in a cache.
#[inline(always)]
pub fn prefetch_packet(packet: &Packet) {
    prefetch_line(packet);
    prefetch_line(std::ptr::from_ref(packet).wrapping_byte_add(64));
}

/// The metadata block alone.
#[inline(always)]
pub(crate) fn prefetch_block(span: &Span, slot: u32) {
    let Some(buf) = span.buffer(slot) else { return };
    for at in [buf - META_BYTES as u64, buf - META_BYTES as u64 + 64] {
        prefetch_line(at as *const u8);
    }
}

/// Prefetches a cache line into the nearest cache.
#[inline(always)]
pub(crate) fn prefetch_line<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that reads nothing as far as the program can tell, and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The address of a slot's buffer in this process; `None` when there is no such slot.
#[inline(always)]
pub fn buffer(region: u16, slot: u32) -> Option<u64> {
    Span::of(region).buffer(slot)
}

/// The packet of a ring descriptor, for a process that maps the region and has no other metadata of the
/// packet; `None` if there is no such slot or the range exceeds it.
#[inline]
pub fn claimed(region: u16, descriptor: &Descriptor) -> Option<Packet> {
    let Descriptor { slot, generation, data, len, .. } = *descriptor;
    let buf = Span::of(region).buffer(slot)?;
    Packet::of_slot((region, slot, generation), buf, (data, u32::from(len)))
}

/// The same, with the metadata of the slot's metadata block.
///
/// Another process may write that block: each word is read once, and impossible values are unset.
#[inline]
pub fn claimed_with_metadata(region: u16, descriptor: &Descriptor) -> Option<Packet> {
    let Descriptor { slot, generation, data, len, .. } = *descriptor;
    let buf = Span::of(region).buffer(slot)?;
    let len = u32::from(len);
    is_inside(data, len)
        .then(|| received((region, slot, generation), buf, (data, len), read_block(block(buf))))
}

/// Reads the descriptor that is parked in a slot's metadata block; `None` if there is no such slot, or the
/// packet's range in the block exceeds it.
///
/// Another process may write that block: each word is read once, impossible values are unset, and further
/// segments are ignored.
#[inline]
pub fn unpark(region: u16, slot: u32) -> Option<Packet> {
    let buf = Span::of(region).buffer(slot)?;
    let parked = read_block(block(buf));
    let Packet { data, len, generation, .. } = parked;
    is_inside(data, len).then(|| received((region, slot, generation), buf, (data, len), parked))
}

/// The address of the metadata block of a buffer.
#[inline(always)]
fn block(buf: u64) -> u64 {
    buf - META_BYTES as u64
}

/// A packet of one segment from a block that other processes write, corrected.
#[inline(always)]
fn received(
    (region, slot, generation): (u16, u32, u32),
    buf: u64,
    ends: (u16, u32),
    mut parked: Packet,
) -> Packet {
    parked.make_sound(ends);
    let version = LAYOUT_VERSION;
    Packet { buf, handle: 0, segments: 1, next: 0, slot, generation, region, version, ..parked }
}

/// Writes bytes into the metadata block of a packet's slot, as any process that maps the memory can. Readers
/// trust nothing in the block. False, and nothing written, if they do not fit.
pub fn scribble(packet: &Packet, at: usize, bytes: &[u8]) -> bool {
    let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= META_BYTES);
    if !fits || Span::of(packet.region).buffer(packet.slot) != Some(packet.buf) {
        return false;
    }
    for (byte, at) in bytes.iter().zip(at..) {
        // SAFETY: the block of a slot of a span is mapped, and `at` lies in it.
        unsafe { ptr::write_volatile((block(packet.buf) as usize + at) as *mut u8, *byte) };
    }
    true
}

/// Reads a slot's metadata block into `out`, unchecked; false, and nothing read, if there is no such slot.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn unpark_into(region: u16, slot: u32, out: &mut Packet) -> bool {
    let Some(buf) = Span::of(region).buffer(slot) else { return false };
    *out = read_block(block(buf));
    true
}

/// The segment that follows `packet`'s, when there is one.
pub(crate) fn following(packet: &Packet) -> Option<Packet> {
    linked(packet.region, u32::try_from(packet.next.checked_sub(1)?).ok()?)
}
