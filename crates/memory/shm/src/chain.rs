//! Frames that need more than one slot, and copies of packets.
//!
//! A long frame is a chain. The head's descriptor is in a vector; the descriptors of further segments are in
//! a table of this process, by slot. So no other process can change the segments of a chain. `next` is the
//! number of the next slot plus one, or 0 in the last segment; `segments` and `total` are valid in the head
//! only. Freeing the head frees the chain.

use crate::bytes::{PacketBytes, PacketBytesMut, segments};
use crate::descriptor::{BUF_BYTES, HEADROOM, NO_HEADER, Packet, flag, header};
use crate::pool::{PacketPool, Pool};
use crate::slot::{Segment, link, prefetch_data};
use packet::Access;

/// Bytes of a frame in its first segment, behind the headroom. Further segments hold the same number, so that
/// a header can be pushed in front of any of them.
pub const SEGMENT_BYTES: usize = BUF_BYTES - HEADROOM;

/// The most segments of a packet: enough for 64 KiB.
const MOST_SEGMENTS: usize = 32;

/// Writes a frame into fresh slots of the pool: one, or a chain when it is longer than
/// [`SEGMENT_BYTES`].
///
/// `None`, and no slot taken, if the pool has too few slots or the frame is longer than 64 KiB.
pub fn write_frame(pool: &mut PacketPool, frame: &[u8]) -> Option<Packet> {
    let count = frame.len().div_ceil(SEGMENT_BYTES).max(1);
    let mut fresh = [Packet::EMPTY; MOST_SEGMENTS];
    let fresh = take_slots(pool, fresh.get_mut(..count)?)?;
    let mut chunks = frame.chunks(SEGMENT_BYTES);
    for segment in fresh.iter_mut() {
        let chunk = chunks.next().unwrap_or_default();
        if !(segment.put(chunk.len()) && Segment::of(segment).write(0, chunk)) {
            pool.free_all(fresh);
            return None;
        }
    }
    join(fresh)
}

/// A deep copy: the same bytes at the same offsets, the same annotations, in slots of its own.
///
/// `None`, and no slot taken, if the pool has too few slots.
pub fn clone_packet(pool: &mut PacketPool, packet: &Packet) -> Option<Packet> {
    if packet.segments <= 1 {
        let mut copy = [Packet::EMPTY];
        return (clone_front(pool, std::slice::from_ref(packet), &[0], &mut copy) == 1).then_some(copy[0]);
    }
    let mut fresh = [Packet::EMPTY; MOST_SEGMENTS];
    let fresh = take_slots(pool, fresh.get_mut(..usize::from(packet.segments.max(1)))?)?;
    let mut sources = segments(packet);
    for target in fresh.iter_mut() {
        let Some((source, bytes)) = sources.next() else { break };
        (target.data, target.len) = (source.data, bytes.len() as u32);
        bytes.copy_to(&Segment::of(target));
    }
    Some(described(join(fresh)?, packet))
}

/// A copy with the metadata of its original. The copy's slot is not shared.
#[inline(always)]
fn described(copy: Packet, packet: &Packet) -> Packet {
    let Packet { mac, net, trans, anno, timestamp_ns, flow_hash, origin, packet_type, .. } = *packet;
    let flags = packet.flags & !flag::SHARED;
    Packet { mac, net, trans, anno, timestamp_ns, flow_hash, origin, flags, packet_type, ..copy }
}

/// Copies the first packets of a list into the front of `out`, as [`clone_packet`] does, and returns how
/// many. It stops when slots or `out` are used up, and before the first packet with several segments.
pub fn clone_front(pool: &mut PacketPool, packets: &[Packet], list: &[u16], out: &mut [Packet]) -> usize {
    let whole = |packet: &&Packet| packet.segments <= 1;
    let sources = || list.iter().map_while(|index| packets.get(usize::from(*index))).take_while(whole);
    let wanted = sources().take(out.len()).count();
    let Some(out) = out.get_mut(..wanted) else { return 0 };
    let count = pool.alloc(out);
    // Other cores used the slots last, so none of their lines is in this core's cache.
    out.iter().take(count).for_each(|copy| prefetch_data(copy.region, copy.slot));
    for (source, copy) in sources().zip(out.iter_mut().take(count)) {
        let bytes = Segment::of(source);
        (copy.data, copy.len, copy.total) = (source.data, bytes.len() as u32, bytes.len() as u32);
        bytes.copy_to(&Segment::of(copy));
        *copy = described(*copy, source);
    }
    count
}

/// Ends the sharing of a packet's bytes: if other holders read them, the packet is replaced by a copy.
///
/// False, and nothing changed, if the pool has no slot for the copy.
#[must_use]
pub fn unshare(pool: &mut PacketPool, packet: &mut Packet) -> bool {
    if packet.flags & flag::SHARED == 0 {
        return true;
    }
    let Some(copy) = clone_packet(pool, packet) else { return false };
    pool.free_all(std::slice::from_ref(packet));
    *packet = copy;
    true
}

/// Copies a packet into another one's slot: the same bytes at the same offsets, the same annotations. Both
/// have one segment, and the target's slot is not shared.
///
/// False, and nothing changed, if these conditions do not hold.
#[must_use]
pub fn copy_into(from: &Packet, to: &mut Packet) -> bool {
    let bytes = Segment::of(from);
    let target = Segment::of(&Packet { data: from.data, len: bytes.len() as u32, ..*to });
    let shared = to.flags & flag::SHARED != 0;
    if from.segments != 1 || to.segments != 1 || target.len() < bytes.len() || shared {
        return false;
    }
    bytes.copy_to(&target);
    let Packet { buf, handle, slot, generation, region, next, .. } = *to;
    *to = Packet { buf, handle, slot, generation, region, next, ..*from };
    true
}

/// Copies all bytes of a chain into its first slot, and frees the others.
///
/// False, and nothing changed, if the frame is longer than a slot.
#[must_use]
pub fn linearize(pool: &mut PacketPool, packet: &mut Packet) -> bool {
    if packet.segments <= 1 {
        return true;
    }
    let total: usize = segments(packet).map(|(_, segment)| segment.len()).sum();
    if usize::from(packet.data) + total > BUF_BYTES {
        return false;
    }
    let mut head = *packet;
    (head.next, head.segments) = (0, 1);
    let mut bytes = [0u8; BUF_BYTES];
    for (_, segment) in segments(packet).skip(1) {
        let Some(bytes) = bytes.get_mut(..segment.len()) else { return false };
        let at = head.len as usize;
        if !(segment.read(0, bytes) && head.put(bytes.len()) && Segment::of(&head).write(at, bytes)) {
            return false;
        }
    }
    if let Some((second, _)) = segments(packet).nth(1) {
        pool.free_all(&[Packet { segments: packet.segments - 1, ..second }]);
    }
    head.total = head.len;
    *packet = head;
    true
}

/// Grows a packet by `n` bytes of 0 at its end. Where its last slot has no room for them, the packet is
/// replaced by a copy in other slots, with the default headroom; bytes in front of the packet's first one are
/// not copied.
///
/// False, and nothing changed, if the pool has too few slots or the packet would be longer than 64 KiB.
#[must_use]
pub fn grow(pool: &mut PacketPool, packet: &mut Packet, n: usize) -> bool {
    const ZEROS: [u8; 256] = [0; 256];
    let len = packet.total as usize;
    if n == 0 {
        return true;
    }
    if len + n > usize::from(u16::MAX) || packet.segments == 0 {
        return false;
    }
    if packet.flags & flag::SHARED == 0 && packet.put(n) {
        let mut bytes = PacketBytesMut::new(packet);
        return (0..n).step_by(ZEROS.len()).all(|at| {
            let chunk = ZEROS.as_slice().get(..ZEROS.len().min(n - at)).unwrap_or_default();
            bytes.copy_in(len + at, chunk)
        });
    }
    let mut frame = PacketBytes::new(packet).to_vec();
    frame.resize(len + n, 0);
    let Some(copy) = write_frame(pool, &frame) else { return false };
    let mut copy = described(copy, packet);
    for at in [&mut copy.mac, &mut copy.net, &mut copy.trans] {
        if *at != NO_HEADER {
            // What was in front of the packet is gone, and so is a header there.
            *at = at.checked_sub(packet.data).map_or(NO_HEADER, |at| header(at.saturating_add(copy.data)));
        }
    }
    pool.free_all(std::slice::from_ref(packet));
    *packet = copy;
    true
}

/// Allocates all of `out` or none.
fn take_slots<'a>(pool: &mut PacketPool, out: &'a mut [Packet]) -> Option<&'a mut [Packet]> {
    let got = pool.alloc(out);
    if got < out.len() {
        pool.free_all(out.get(..got)?);
        return None;
    }
    Some(out)
}

/// Joins separate slots to one packet: stores the descriptors of all but the first, from the last to the
/// second.
fn join(segments: &mut [Packet]) -> Option<Packet> {
    let total: u32 = segments.iter().map(|segment| segment.len).sum();
    let count = segments.len() as u16;
    let mut next = 0;
    let (head, rest) = segments.split_first_mut()?;
    for segment in rest.iter_mut().rev() {
        (segment.next, segment.segments, segment.total) = (next, 1, segment.len);
        link(segment);
        next = u64::from(segment.slot) + 1;
    }
    (head.next, head.segments, head.total) = (next, count, total);
    Some(*head)
}
