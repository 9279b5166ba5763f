//! The in-flight table: the holder of each slot, and the host's copy of the descriptors of in-flight packets.
//!
//! The table is private to the host and shared by all NF channels of a region. An entry has two cache lines;
//! for a packet whose further annotations are all 0, only the first is accessed. The thread that has the slot
//! at the moment writes its entry. The words are atomic because any thread may read the holder of a slot at
//! any time, which costs nothing extra. Only the thread that has the slot uses the other words of the entry.

use crate::descriptor::{LAYOUT_VERSION, NO_HEADER, Packet};
use crate::slot::prefetch_line;
use crate::span::Span;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Holder number of the host itself.
const HOST: u16 = 0;

/// Why a descriptor is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DescriptorError {
    /// There is no such slot.
    OutOfRange,
    /// The in-flight entry has ended.
    Stale,
    /// Another NF, or the host, holds the slot.
    NotHolder,
}

/// For each slot of a region: the number of its in-flight entry, its holder, and the descriptor as it was
/// enqueued.
#[derive(Debug)]
pub struct InFlightTable {
    kept: Box<[Kept]>,
}

/// The host's entry for a slot.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(super) struct Kept {
    state: AtomicU64,
    handle: AtomicU64,
    /// `data`, `mac`, `net`, `trans`.
    place: AtomicU64,
    /// The pool's generation, `len`, `packet_type`.
    life: AtomicU64,
    timestamp_ns: AtomicU64,
    /// `flow_hash`, `origin`, `flags`.
    flow: AtomicU64,
    /// The annotations that most packets use: addresses and paint.
    anno: [AtomicU64; 2],
    /// The others, in the second cache line: accessed only if one of them is not 0.
    further: [AtomicU64; FURTHER.len()],
}

const _: () = assert!(size_of::<Kept>() == 128 && std::mem::offset_of!(Kept, further) == 64);

/// The words of the annotations that are in an entry's first line.
const FIRST: [usize; 2] = [0, 2];
/// The words that are in the second.
const FURTHER: [usize; 4] = [1, 3, 4, 5];

/// The state of an in-flight entry: its number (the slot's generation in this table), the slot's holder, and
/// marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InFlight(u64);

impl InFlight {
    /// The slot was granted empty.
    const GRANTED: u64 = 1 << 48;
    /// The NF asked the host to hold the packet.
    const HELD: u64 = 1 << 49;
    /// The entry's second line is valid.
    const FURTHER: u64 = 1 << 50;
    /// The bit offset of the group member to which the slot was enqueued, or for which it is held.
    const MEMBER: u32 = 51;

    fn of(generation: u32, holder: u16) -> InFlight {
        InFlight(u64::from(generation) | u64::from(holder) << 32)
    }

    fn generation(self) -> u32 {
        self.0 as u32
    }

    fn holder(self) -> u16 {
        (self.0 >> 32) as u16
    }

    pub fn is_granted(self) -> bool {
        self.0 & InFlight::GRANTED != 0
    }

    pub fn is_held(self) -> bool {
        self.0 & InFlight::HELD != 0
    }

    /// Whether the entry belongs to one member: granted or held.
    pub fn is_marked(self) -> bool {
        self.0 & (InFlight::GRANTED | InFlight::HELD) != 0
    }

    pub fn member(self) -> u8 {
        (self.0 >> InFlight::MEMBER) as u8
    }

    /// Whether a member may be working on the packet.
    #[inline(always)]
    pub fn is_in_work_of(self, member: u8) -> bool {
        !self.is_held() && (!self.is_granted() || self.member() == member)
    }
}

/// A slot and its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotAddress {
    pub region: u16,
    pub slot: u32,
    pub buf: u64,
}

impl SlotAddress {
    #[inline(always)]
    pub fn of(span: &Span, region: u16, slot: u32) -> SlotAddress {
        SlotAddress { region, slot, buf: span.buffer(slot).unwrap_or(0) }
    }
}

#[inline(always)]
fn word(anno: &[u8], at: usize) -> u64 {
    anno.as_chunks().0.get(at).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[inline(always)]
fn set_word(anno: &mut [u8], at: usize, word: u64) {
    if let Some(bytes) = anno.as_chunks_mut().0.get_mut(at) {
        *bytes = word.to_ne_bytes();
    }
}

impl InFlightTable {
    /// The table of a region with this number of slots, none in flight.
    pub fn new(slots: u32) -> InFlightTable {
        let new = || Kept { state: AtomicU64::new(InFlight::of(1, HOST).0), ..Kept::default() };
        InFlightTable { kept: (0..slots).map(|_| new()).collect() }
    }

    /// Number of slots in the table.
    pub fn slots(&self) -> u32 {
        self.kept.len() as u32
    }

    /// The number of a slot's in-flight entry, or of its next one if it is not in flight; 0, which is never
    /// used, if there is no such slot.
    pub fn generation(&self, slot: u32) -> u32 {
        self.kept.get(slot as usize).map_or(0, |kept| kept.in_flight().generation())
    }

    /// Whether a slot is in this in-flight entry now and an NF may be working on it: not granted, not held.
    pub fn is_in_work(&self, slot: u32, generation: u32) -> bool {
        let entry = self.kept.get(slot as usize).map(Kept::in_flight);
        entry.is_some_and(|entry| {
            entry.generation() == generation && entry.holder() != HOST && !entry.is_marked()
        })
    }

    /// Whether a slot is not in flight.
    #[inline(always)]
    pub fn is_free(&self, slot: u32) -> bool {
        self.kept.get(slot as usize).is_some_and(|kept| kept.in_flight().holder() == HOST)
    }

    /// The holder of a slot.
    pub fn holder(&self, slot: u32) -> Option<u16> {
        self.kept.get(slot as usize).map(|kept| kept.in_flight().holder())
    }

    /// The slots of a holder.
    pub fn held_by(&self, holder: u16) -> impl Iterator<Item = u32> + '_ {
        let all = self.kept.iter().zip(0u32..);
        all.filter(move |(kept, _)| kept.in_flight().holder() == holder).map(|(_, slot)| slot)
    }

    /// Starts an in-flight entry and returns its number. `None` if the host does not hold the slot.
    #[inline(always)]
    pub(super) fn begin(&self, packet: &Packet, holder: u16, member: u8, granted: bool) -> Option<u32> {
        let kept = self.kept.get(packet.slot as usize)?;
        let entry = kept.in_flight();
        if entry.holder() != HOST {
            return None;
        }
        let marks = if granted { InFlight::GRANTED } else { 0 };
        let enqueued = InFlight::of(entry.generation(), holder).0 | u64::from(member) << InFlight::MEMBER;
        kept.keep(packet, InFlight(enqueued | marks));
        Some(entry.generation())
    }

    /// The in-flight entry that a descriptor names, if it belongs to this holder.
    #[inline(always)]
    pub(super) fn find(
        &self,
        slot: u32,
        generation: u32,
        holder: u16,
    ) -> Result<(&Kept, InFlight), DescriptorError> {
        if let Some(kept) = self.kept.get(slot as usize) {
            let entry = kept.in_flight();
            if (entry.0 ^ InFlight::of(generation, holder).0) << 16 == 0 {
                return Ok((kept, entry));
            }
        }
        Err(self.why_not(slot, generation))
    }

    #[cold]
    fn why_not(&self, slot: u32, generation: u32) -> DescriptorError {
        match self.kept.get(slot as usize) {
            None => DescriptorError::OutOfRange,
            Some(kept) if kept.in_flight().generation() != generation => DescriptorError::Stale,
            Some(_) => DescriptorError::NotHolder,
        }
    }

    /// The entry of a slot.
    pub(super) fn kept(&self, slot: u32) -> Option<(&Kept, InFlight)> {
        self.kept.get(slot as usize).map(|kept| (kept, kept.in_flight()))
    }

    /// Prefetches a slot's entry into the nearest cache: for many descriptors before the first one is
    /// checked.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: u32) {
        if let Some(kept) = self.kept.get(slot as usize) {
            prefetch_line(kept);
        }
    }
}

impl Kept {
    #[inline(always)]
    fn in_flight(&self) -> InFlight {
        InFlight(self.state.load(Relaxed))
    }

    /// Stores a descriptor and the state of its in-flight entry.
    #[inline(always)]
    fn keep(&self, packet: &Packet, entry: InFlight) {
        let Packet { data, mac, net, trans, len, anno, flow_hash, origin, flags, .. } = packet;
        let place =
            u64::from(*data) | u64::from(*mac) << 16 | u64::from(*net) << 32 | u64::from(*trans) << 48;
        let life =
            u64::from(packet.generation) | u64::from(*len as u16) << 32 | u64::from(packet.packet_type) << 48;
        let flow = u64::from(*flow_hash) | u64::from(*origin) << 32 | u64::from(*flags) << 48;
        self.handle.store(packet.handle, Relaxed);
        self.place.store(place, Relaxed);
        self.life.store(life, Relaxed);
        self.timestamp_ns.store(packet.timestamp_ns, Relaxed);
        self.flow.store(flow, Relaxed);
        for (kept, at) in self.anno.iter().zip(FIRST) {
            kept.store(word(anno, at), Relaxed);
        }
        let further = FURTHER.map(|at| word(anno, at));
        let mut marks = 0;
        if further.iter().fold(0, |all, word| all | word) != 0 {
            self.further.iter().zip(further).for_each(|(kept, word)| kept.store(word, Relaxed));
            marks = InFlight::FURTHER;
        }
        self.state.store(entry.0 | marks, Relaxed);
    }

    /// Ends an in-flight entry: the host holds the slot again, and descriptors of the entry are stale.
    #[inline(always)]
    pub fn end(&self, entry: InFlight) {
        // 0 is skipped when the count wraps: it means "no slot".
        let next = entry.generation().wrapping_add(1);
        self.state.store(InFlight::of(next + u32::from(next == 0), HOST).0, Relaxed);
    }

    /// Marks the entry as held, and stores the packet's present descriptor.
    pub fn hold(&self, packet: &Packet, entry: InFlight, member: u8) {
        let entry = entry.0 & !(InFlight::FURTHER | 0xff << InFlight::MEMBER) | InFlight::HELD;
        self.keep(packet, InFlight(entry | u64::from(member) << InFlight::MEMBER));
    }

    /// Sets the fields that only the host may set in a descriptor whose other fields are set already.
    #[inline(always)]
    pub fn identify(&self, place: SlotAddress, out: &mut Packet) {
        out.buf = place.buf;
        out.handle = self.handle.load(Relaxed);
        out.next = 0;
        (out.segments, out.reserved0) = (1, 0);
        out.slot = place.slot;
        out.generation = self.life.load(Relaxed) as u32;
        (out.version, out.region) = (LAYOUT_VERSION, place.region);
        out.reserved1 = 0;
    }

    /// The packet with the first byte and length that an NF without metadata returned. Its changes to the
    /// bytes are unknown, so header offsets and the flow hash are unset. Flags stay: they state what must
    /// still be done to the frame.
    #[inline(always)]
    pub fn restore_changed(
        &self,
        place: SlotAddress,
        entry: InFlight,
        (data, len): (u16, u16),
        out: &mut Packet,
    ) {
        self.identify(place, out);
        out.data = data;
        (out.mac, out.net, out.trans) = (NO_HEADER, NO_HEADER, NO_HEADER);
        (out.len, out.total) = (u32::from(len), u32::from(len));
        out.flow_hash = 0;
        self.restore_rest(entry, out);
    }

    /// The packet as it was enqueued, or as it was when it was held.
    pub fn restore(&self, place: SlotAddress, entry: InFlight, out: &mut Packet) {
        self.identify(place, out);
        let kept = self.place.load(Relaxed);
        (out.data, out.mac) = (kept as u16, (kept >> 16) as u16);
        (out.net, out.trans) = ((kept >> 32) as u16, (kept >> 48) as u16);
        let len = (self.life.load(Relaxed) >> 32) as u16;
        (out.len, out.total) = (u32::from(len), u32::from(len));
        out.flow_hash = self.flow.load(Relaxed) as u32;
        self.restore_rest(entry, out);
    }

    #[inline(always)]
    fn restore_rest(&self, entry: InFlight, out: &mut Packet) {
        out.packet_type = (self.life.load(Relaxed) >> 48) as u8;
        out.timestamp_ns = self.timestamp_ns.load(Relaxed);
        let flow = self.flow.load(Relaxed);
        (out.origin, out.flags) = ((flow >> 32) as u16, (flow >> 48) as u16);
        for (kept, at) in self.anno.iter().zip(FIRST) {
            set_word(&mut out.anno, at, kept.load(Relaxed));
        }
        let counts = entry.0 & InFlight::FURTHER != 0;
        for (kept, at) in self.further.iter().zip(FURTHER) {
            // An invalid second line is not read: it is another cache line.
            set_word(&mut out.anno, at, if counts { kept.load(Relaxed) } else { 0 });
        }
    }
}
