//! The host's end of an NF channel: enqueues packets to an NF and takes its completions.
//!
//! The host keeps the descriptor of an in-flight packet in its private [`InFlightTable`], with the holder of
//! the slot and the number of the in-flight entry. The NF gets a ring descriptor and the bytes, and returns a
//! ring descriptor. The host accepts it only if this NF holds the slot in the in-flight entry that the table
//! has. Then the entry ends and the host holds the slot again, so that a second descriptor for it is
//! rejected. The packet is rebuilt from the private copy, with the first byte and length of the NF's
//! descriptor. Unless the NF uses metadata, nothing else that it writes outside the frame has an effect.
//!
//! An NF that uses a packet's metadata (annotations, header offsets) gets it by [`HostEnd::with_metadata`].
//! Then the descriptor is also parked in front of the packet. When the packet returns, the host reads the
//! NF's version once and checks it. The handle and the generation of the host's pool are never stored there.
//!
//! An NF may ask the host to keep a packet ([`Action::Hold`]): the in-flight entry stays open and is marked
//! as held. A later descriptor for the same in-flight entry ends it.
//!
//! When an NF has died, [`HostEnd::reclaim`] finds every slot that it held, each once. Packets in the ring
//! from the NF are returned. Packets that the NF had not taken are as they were enqueued. Held packets are as
//! they were when they were held. All others are lost. It must not be called while any process of the NF
//! still runs.

mod in_flight;

pub use in_flight::InFlightTable;

use crate::descriptor::{Packet, is_inside};
use crate::ring::{Action, Broken, Cells, Consumer, Descriptor, Producer};
use crate::slot::{park_in, prefetch, prefetch_block, unpark_into};
use crate::span::Span;
use in_flight::{DescriptorError, InFlight, Kept, SlotAddress};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Descriptors that are checked at a time.
const BURST: usize = 64;

/// The destination of a descriptor of an empty slot, which the NF may fill with a packet that it makes.
pub const GRANT: u16 = u16::MAX;

/// A slot that was reclaimed from a dead NF.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimedSlot {
    /// The packet.
    pub packet: Packet,
    /// Whether the NF had been granted the slot empty: then it holds no packet that the host enqueued.
    pub granted: bool,
}

/// The result for an in-flight packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completion {
    /// The NF sends it by this output.
    Output(u16),
    /// The NF made it in a granted slot and sends it by this output.
    Made(u16),
    /// The NF dropped it for its reason of this number.
    Dropped(u16),
    /// The NF died before it took the packet.
    NotTaken,
    /// The NF died after it took the packet.
    Lost,
    /// The host held the packet for the NF, and the NF died.
    Kept,
    /// A granted slot that the NF returns unused, or that was reclaimed: no packet.
    #[default]
    Unused,
}

impl Completion {
    /// The completion of a valid descriptor: its action (never [`Action::Hold`], which returns no packet),
    /// its destination, and whether the slot was granted.
    #[inline(always)]
    fn of(action: Action, destination: u16, granted: bool) -> Completion {
        match (action, granted) {
            (Action::Emit, false) => Completion::Output(destination),
            (Action::Emit, true) => Completion::Made(destination),
            (Action::Drop | Action::Hold, false) => Completion::Dropped(destination),
            (Action::Drop | Action::Hold, true) => Completion::Unused,
        }
    }

    /// Whether the slot was granted empty: then the packet is not one that the host enqueued.
    #[inline(always)]
    pub fn is_granted(self) -> bool {
        matches!(self, Completion::Made(_) | Completion::Unused)
    }
}

/// The counters of an NF channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelStats {
    /// Packets enqueued to the NF.
    pub enqueued: u64,
    /// Packets that the NF took from other members of its direct-path group.
    pub came: u64,
    /// Packets that other members of its direct-path group took from it.
    pub went: u64,
    /// Packets that returned by valid descriptors.
    pub returned: u64,
    /// Packets that the NF had taken when it died: they are lost.
    pub lost: u64,
    /// Packets that the NF had not taken when it died.
    pub untouched: u64,
    /// Packets that the host holds for the NF now.
    pub holding: u64,
    /// Packets that the host held for the NF when it died.
    pub inherited: u64,
    /// Descriptors of slots that do not exist.
    pub out_of_range: u64,
    /// Descriptors of in-flight entries that have ended.
    pub stale: u64,
    /// Descriptors of slots that the NF does not hold, for example because the host took them back already.
    pub not_held: u64,
    /// Descriptors that hold a packet which is already held.
    pub held_again: u64,
    /// Valid descriptors that would hold more packets than allowed: the packet returned and is dropped.
    pub held_too_many: u64,
    /// Descriptors of a slot that the NF holds, with an invalid action or range: the packet returned and is
    /// dropped.
    pub malformed: u64,
    /// How often an index of the NF was impossible.
    pub broken: u64,
}

/// The packets and slots that a dead NF held.
#[derive(Debug, Default)]
pub struct Reclaimed {
    /// Packets that it had returned.
    pub returned: Vec<(Packet, Completion)>,
    /// Packets that it had not taken, oldest first, as they were enqueued.
    pub untouched: Vec<ReclaimedSlot>,
    /// Packets that the host held for it, as they were when they were held.
    pub held: Vec<ReclaimedSlot>,
    /// Packets that it had taken: their contents are unknown. The caller frees them.
    pub lost: Vec<ReclaimedSlot>,
}

impl Reclaimed {
    /// Each packet and slot with its completion.
    pub fn completions(&self) -> impl Iterator<Item = (Packet, Completion)> {
        let dead = [
            (&self.untouched, Completion::NotTaken),
            (&self.held, Completion::Kept),
            (&self.lost, Completion::Lost),
        ];
        let dead = dead.into_iter().flat_map(|(slots, what)| {
            slots.iter().map(move |slot| (slot.packet, if slot.granted { Completion::Unused } else { what }))
        });
        self.returned.iter().copied().chain(dead)
    }
}

/// The host's end of the channel to one NF.
#[derive(Debug)]
pub struct HostEnd<C> {
    to: Producer<C>,
    /// The ring of empty slots: they must not wait behind packets whose processing needs them.
    grants: Option<Producer<C>>,
    from: Consumer<C>,
    check: DescriptorCheck,
    /// The most packets that the NF may hold.
    most: u64,
    /// The packets inside the direct-path group, and the share of this channel that was last added to them.
    group: Option<(Arc<Inside>, u64)>,
}

/// The state for checking the NF's descriptors.
#[derive(Debug, Default)]
struct DescriptorCheck {
    holder: u16,
    /// The number of this NF among those that share the holder number.
    member: u8,
    region: u16,
    /// Whether descriptors are parked in the metadata blocks.
    metadata: bool,
    /// The most packets that the host holds for the NF.
    holding_most: u64,
    /// Granted slots that the NF has and that are not held: they are empty and do not count as packets inside
    /// a direct-path group.
    granted: u64,
    stats: ChannelStats,
}

/// The packets inside a direct-path group: its NFs pass packets to each other without the host and share one
/// holder number in the in-flight table. The thread that enqueues to all of them writes the count.
#[derive(Debug)]
pub struct Inside {
    now: AtomicU64,
    most: u64,
}

impl Inside {
    /// The count of a direct-path group that may hold at most `most` packets.
    pub fn new(most: u64) -> Inside {
        Inside { now: AtomicU64::new(0), most }
    }

    /// How many more packets it may hold.
    pub fn room(&self) -> u64 {
        self.most.saturating_sub(self.now.load(Relaxed))
    }
}

impl HostEnd<crate::ring::Mapped> {
    /// Wakes the NF, after [`HostEnd::enqueue`] returned that it sleeps. A system call.
    #[cold]
    pub fn wake(&self) {
        self.to.wake();
    }
}

impl<C: Cells> HostEnd<C> {
    /// A channel over two new rings to the NF with the number `holder` in the in-flight table, which maps the
    /// slots of `region`.
    pub fn new(to: C, from: C, holder: u16, region: u16) -> HostEnd<C> {
        HostEnd {
            to: Producer::new(to),
            grants: None,
            from: Consumer::new(from),
            check: DescriptorCheck { holder, region, ..DescriptorCheck::default() },
            most: u64::MAX,
            group: None,
        }
    }

    /// As a member of a group that shares a holder number and the count `inside`. Each member may hold all
    /// packets of the group, as the first one does before it passes them on.
    #[must_use]
    pub fn in_group(mut self, member: u8, inside: Arc<Inside>) -> HostEnd<C> {
        (self.check.member, self.group) = (member, Some((inside, 0)));
        self
    }

    /// With a limit for the packets that the NF holds at a time: the ring alone does not limit an NF that
    /// takes packets and returns none. Granted slots count towards the limit, but are not limited themselves.
    #[must_use]
    pub fn limited_to(mut self, most: u64) -> HostEnd<C> {
        self.most = most;
        self
    }

    /// With a limit for the packets that the host holds for the NF, beside those that it has. The default is
    /// none.
    #[must_use]
    pub fn holding_at_most(mut self, most: u64) -> HostEnd<C> {
        self.check.holding_most = most;
        self
    }

    /// With or without parked descriptors in the metadata blocks of the slots. Without, header offsets and
    /// the flow hash of returned packets are unknown.
    #[must_use]
    pub fn with_metadata(mut self, metadata: bool) -> HostEnd<C> {
        self.check.metadata = metadata;
        self
    }

    /// Whether descriptors are parked in the metadata blocks.
    pub fn has_metadata(&self) -> bool {
        self.check.metadata
    }

    /// With a third new ring, for empty slots.
    #[must_use]
    pub fn with_grants(mut self, grants: C) -> HostEnd<C> {
        self.grants = Some(Producer::new(grants));
        self
    }

    /// The channel's counters.
    pub fn stats(&self) -> ChannelStats {
        self.check.stats
    }

    /// Counts packets that the NF took from other members of its direct-path group, and packets that they
    /// took from it.
    #[inline]
    pub fn note_passed(&mut self, came: u64, went: u64) {
        self.check.stats.came += came;
        self.check.stats.went += went;
    }

    /// Descriptors that were rejected.
    pub fn bad_claims(&self) -> u64 {
        let ChannelStats { out_of_range, stale, not_held, held_again, held_too_many, malformed, .. } =
            self.check.stats;
        out_of_range + stale + not_held + held_again + held_too_many + malformed
    }

    /// Slots that the NF has now according to the counters. Packets that the host holds for it are not
    /// included.
    #[inline]
    pub fn held(&self) -> u64 {
        let ChannelStats { came, went, .. } = self.check.stats;
        let held = self.in_flight().wrapping_add(came).wrapping_sub(went);
        // Packets that were passed are counted later than those that returned, so the difference may be
        // negative for a moment.
        if held > i64::MAX as u64 { 0 } else { held }
    }

    /// Packets that were enqueued here less those that returned here. Below 0 if another member of the
    /// direct-path group received them from the host.
    #[inline]
    fn in_flight(&self) -> u64 {
        let ChannelStats { enqueued, lost, untouched, holding, inherited, .. } = self.check.stats;
        enqueued.wrapping_sub(self.given_back() + lost + untouched + holding + inherited)
    }

    /// Updates the count of packets inside the direct-path group.
    #[inline]
    fn count_group(&mut self) {
        let now = self.in_flight().wrapping_sub(self.check.granted);
        if let Some((inside, before)) = &mut self.group {
            let change = now.wrapping_sub(std::mem::replace(before, now));
            inside.now.store(inside.now.load(Relaxed).wrapping_add(change), Relaxed);
        }
    }

    /// Packets that returned, whether their descriptors were valid or not.
    #[inline]
    pub fn given_back(&self) -> u64 {
        let ChannelStats { returned, held_too_many, malformed, .. } = self.check.stats;
        returned + held_too_many + malformed
    }

    /// Enqueues the first packets of the list, each of one segment, with a destination number that the NF
    /// reads. Returns how many were enqueued, and whether the NF sleeps and must be woken. Stops at a full
    /// ring, and before a packet that has several segments, reaches beyond its slot, or whose slot is not in
    /// the region or not held by the host. With the destination [`GRANT`], the packets are empty slots for
    /// the NF to fill.
    ///
    /// # Errors
    ///
    /// If the NF's index is impossible: the NF must be evicted.
    #[inline]
    pub fn enqueue(
        &mut self,
        in_flight: &InFlightTable,
        packets: &[Packet],
        list: &[u16],
        destination: u16,
    ) -> Result<(usize, bool), Broken> {
        // Two instances of the code: one function with both cases needs more registers than the processor
        // has.
        let enqueued = if self.check.metadata {
            self.enqueue_as::<true>(in_flight, packets, list, destination)
        } else {
            self.enqueue_as::<false>(in_flight, packets, list, destination)
        };
        self.count_group();
        enqueued
    }

    /// How many of `count` packets could be enqueued now with this destination.
    ///
    /// # Errors
    ///
    /// If the NF's index is impossible: the NF must be evicted.
    #[inline]
    pub fn room(&mut self, wanted: usize, destination: u16) -> Result<usize, Broken> {
        let granted = destination == GRANT;
        let free = match &self.group {
            _ if granted => u64::MAX,
            None => self.most.saturating_sub(self.held()),
            Some((inside, _)) => inside.room(),
        };
        let to = match &mut self.grants {
            Some(grants) if granted => grants,
            _ => &mut self.to,
        };
        let wanted = wanted.min(usize::try_from(free).unwrap_or(usize::MAX));
        Ok(to.room(wanted).inspect_err(|_| self.check.stats.broken += 1)?.min(wanted))
    }

    #[inline]
    fn enqueue_as<const METADATA: bool>(
        &mut self,
        in_flight: &InFlightTable,
        packets: &[Packet],
        list: &[u16],
        destination: u16,
    ) -> Result<(usize, bool), Broken> {
        let granted = destination == GRANT;
        let room = self.room(list.len(), destination)?;
        let DescriptorCheck { holder, member, region, .. } = self.check;
        let to = match &mut self.grants {
            Some(grants) if granted => grants,
            _ => &mut self.to,
        };
        let span = Span::of(region);
        let mut enqueued = 0;
        for list in list[..room].chunks(BURST) {
            // With a large pool, no data of a slot is in a cache.
            for packet in list.iter().filter_map(|&index| packets.get(usize::from(index))) {
                in_flight.prefetch(packet.slot);
                if METADATA {
                    prefetch_block(span, packet.slot);
                }
            }
            let descriptors = list.iter().map_while(|&index| {
                let packet = packets.get(usize::from(index))?;
                let is_ours = packet.region == region && span.buffer(packet.slot) == Some(packet.buf);
                let is_whole = packet.segments == 1 && is_inside(packet.data, packet.len);
                if !(is_ours && is_whole) {
                    return None;
                }
                let generation = in_flight.begin(packet, holder, member, granted)?;
                if METADATA {
                    // Without the fields that only the host needs.
                    park_in(span, &Packet { handle: 0, generation: 0, ..*packet });
                }
                let (slot, data, len) = (packet.slot, packet.data, packet.len as u16);
                Some(Descriptor { slot, generation, data, len, destination, ..Descriptor::default() })
            });
            // `room` has shown that they fit.
            let written = to.write_from(descriptors, list.len())?;
            enqueued += written;
            if written < list.len() {
                break;
            }
        }
        self.check.stats.enqueued += enqueued as u64;
        self.check.granted += if granted { enqueued as u64 } else { 0 };
        Ok((enqueued, to.publish()))
    }

    /// Takes the NF's completions: packets and completions are written to the front of both slices. Returns
    /// how many. It checks no more descriptors, valid or not, than both slices have room for, so that an NF
    /// that keeps sending bad ones cannot keep the host here. Bad descriptors are counted and skipped.
    /// Packets that are to be held are not returned here.
    ///
    /// The result beside the number is an error if the NF's index is impossible: the NF must be evicted.
    #[inline]
    pub fn take_back(
        &mut self,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        let taken = self.check.take(&mut self.from, None, in_flight, packets, completions);
        self.count_group();
        taken
    }

    /// The same for a direct ring from this NF to another member of its direct-path group that does not read
    /// it now. All packets in the ring leave by `output`, the output that the ring belongs to.
    pub fn take_from(
        &mut self,
        ring: &mut Consumer<C>,
        output: u16,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        let taken = self.check.take(ring, Some(output), in_flight, packets, completions);
        self.count_group();
        taken
    }

    /// Reclaims all slots that a dead NF held. Afterwards the NF holds nothing, and the rings must not be
    /// used again.
    pub fn reclaim(&mut self, in_flight: &InFlightTable) -> Reclaimed {
        // Whatever the NF overwrote, it has at most this many slots.
        let most = self.held() + self.check.stats.holding;
        self.collect(in_flight, most, |_| false)
    }

    /// The same for a member of a direct-path group whose other members live on. Packets that `others`
    /// recognises stay with those members.
    pub fn reclaim_among(&mut self, in_flight: &InFlightTable, others: impl Fn(u32) -> bool) -> Reclaimed {
        self.collect(in_flight, u64::MAX, others)
    }

    fn collect(&mut self, in_flight: &InFlightTable, most: u64, others: impl Fn(u32) -> bool) -> Reclaimed {
        let mut reclaimed = Reclaimed::default();
        // The downstream ring has precedence: its packets are returned. If its index is impossible, no packet
        // is returned.
        let capacity = self.from.cells().capacity() as usize;
        let (mut packets, mut completions) =
            (vec![Packet::EMPTY; capacity], vec![Completion::default(); capacity]);
        let (back, _) = self.take_back(in_flight, &mut packets, &mut completions);
        reclaimed.returned = packets.into_iter().zip(completions).take(back).collect();
        let DescriptorCheck { holder, member, region, .. } = self.check;
        let span = Span::of(region);
        let end = |slot: u32, kept: &Kept, entry: InFlight| {
            let mut packet = Packet::EMPTY;
            kept.end(entry);
            kept.restore(SlotAddress::of(span, region, slot), entry, &mut packet);
            ReclaimedSlot { packet, granted: entry.is_granted() }
        };
        let found = self.to.autopsy();
        for descriptor in self.to.untouched(found) {
            // A bad descriptor is old or overwritten. A descriptor of a held packet is skipped, too.
            if let Ok((kept, entry)) = in_flight.find(descriptor.slot, descriptor.generation, holder)
                && entry.is_in_work_of(member)
                && !others(descriptor.slot)
            {
                reclaimed.untouched.push(end(descriptor.slot, kept, entry));
            }
        }
        self.check.stats.untouched += reclaimed.untouched.len() as u64;
        let most = most.saturating_sub(back as u64 + reclaimed.untouched.len() as u64);
        for slot in in_flight.held_by(holder).take(usize::try_from(most).unwrap_or(usize::MAX)) {
            let Some((kept, entry)) = in_flight.kept(slot) else { continue };
            // The in-flight table records the member of a marked entry.
            let is_others = if entry.is_marked() { entry.member() != member } else { others(slot) };
            if is_others {
                continue;
            }
            let list = if entry.is_held() { &mut reclaimed.held } else { &mut reclaimed.lost };
            list.push(end(slot, kept, entry));
        }
        // All slots that were granted to it are reclaimed.
        self.check.granted = 0;
        let stats = &mut self.check.stats;
        stats.lost += reclaimed.lost.len() as u64;
        stats.inherited += reclaimed.held.len() as u64;
        stats.holding = stats.holding.saturating_sub(reclaimed.held.len() as u64);
        self.count_group();
        reclaimed
    }
}

impl DescriptorCheck {
    /// Takes descriptors from a ring; with `output`, all packets leave by that output. The parameters are
    /// those of [`HostEnd::take_from`], whose ring is borrowed from elsewhere.
    #[inline]
    fn take<C: Cells>(
        &mut self,
        ring: &mut Consumer<C>,
        output: Option<u16>,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        // Four instances of the code: one function with all cases needs more registers than the processor
        // has.
        match (self.metadata, output) {
            (true, None) => self.take_as::<C, true, false>(ring, 0, in_flight, packets, completions),
            (false, None) => self.take_as::<C, false, false>(ring, 0, in_flight, packets, completions),
            (true, Some(output)) => {
                self.take_as::<C, true, true>(ring, output, in_flight, packets, completions)
            }
            (false, Some(output)) => {
                self.take_as::<C, false, true>(ring, output, in_flight, packets, completions)
            }
        }
    }

    #[inline]
    fn take_as<C: Cells, const METADATA: bool, const DIRECT: bool>(
        &mut self,
        ring: &mut Consumer<C>,
        output: u16,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        let (holder, region, member) = (self.holder, self.region, self.member);
        let span = Span::of(region);
        let (mut left, mut back) = (packets.len().min(completions.len()), 0);
        let (packets, completions) = (&mut packets[..left], &mut completions[..left]);
        let mut descriptors = [Descriptor::default(); BURST];
        while left > 0 {
            let room = left.min(BURST);
            let count = match ring.take(&mut descriptors[..room]) {
                Ok(count) => count,
                Err(broken) => {
                    self.stats.broken += 1;
                    return (back, Err(broken));
                }
            };
            let descriptors = &descriptors[..count];
            descriptors.iter().for_each(|descriptor| in_flight.prefetch(descriptor.slot));
            if METADATA {
                descriptors.iter().for_each(|descriptor| prefetch(region, descriptor.slot));
            }
            let mut odd = 0;
            for descriptor in descriptors {
                let output = if DIRECT { output } else { descriptor.destination };
                // `left` limits the descriptors to the packets' room, so there is always an element.
                let (Some(packet), Some(completion)) = (packets.get_mut(back), completions.get_mut(back))
                else {
                    break;
                };
                match (in_flight.find(descriptor.slot, descriptor.generation, holder), plain(descriptor)) {
                    (Ok((kept, entry)), Some(action)) if entry.is_in_work_of(member) => {
                        kept.end(entry);
                        read(
                            METADATA,
                            kept,
                            entry,
                            SlotAddress::of(span, region, descriptor.slot),
                            descriptor,
                            packet,
                        );
                        *completion = Completion::of(action, output, entry.is_granted());
                        self.granted -= u64::from(entry.is_granted());
                        back += 1;
                    }
                    (found, _) => {
                        odd += 1;
                        back +=
                            usize::from(self.accept_odd(found, span, descriptor, output, packet, completion));
                    }
                }
            }
            self.stats.returned += (count - odd) as u64;
            // The host holds these packets now: if this process dies, all its slots are gone with it.
            ring.release(count);
            left -= count;
            if count < room {
                break;
            }
        }
        (back, Ok(()))
    }

    /// Handles the rarer descriptors: bad ones, held packets, and packets to be held. Returns whether a
    /// packet is returned.
    #[cold]
    fn accept_odd(
        &mut self,
        found: Result<(&Kept, InFlight), DescriptorError>,
        span: &Span,
        descriptor: &Descriptor,
        destination: u16,
        packet: &mut Packet,
        completion: &mut Completion,
    ) -> bool {
        let (kept, entry) = match found {
            Ok(found) => found,
            Err(error) => {
                *match error {
                    DescriptorError::OutOfRange => &mut self.stats.out_of_range,
                    DescriptorError::Stale => &mut self.stats.stale,
                    DescriptorError::NotHolder => &mut self.stats.not_held,
                } += 1;
                return false;
            }
        };
        // A member must not return a slot that is held for another member, or that was granted to another
        // one.
        if entry.is_marked() && entry.member() != self.member {
            self.stats.not_held += 1;
            return false;
        }
        let was_granted = entry.is_granted() && !entry.is_held();
        let place = SlotAddress::of(span, self.region, descriptor.slot);
        let is_hold =
            descriptor.action == Action::Hold as u8 && is_inside(descriptor.data, u32::from(descriptor.len));
        if is_hold && entry.is_held() {
            self.stats.held_again += 1;
            return false;
        }
        if is_hold && self.stats.holding < self.holding_most {
            let mut held = Packet::EMPTY;
            read(self.metadata, kept, entry, place, descriptor, &mut held);
            kept.hold(&held, entry, self.member);
            self.stats.holding += 1;
            self.granted -= u64::from(was_granted);
            return false;
        }
        kept.end(entry);
        self.granted -= u64::from(was_granted);
        self.stats.holding -= u64::from(entry.is_held());
        let granted = entry.is_granted();
        if let Some(action) = plain(descriptor) {
            read(self.metadata, kept, entry, place, descriptor, packet);
            self.stats.returned += 1;
            *completion = Completion::of(action, destination, granted);
        } else {
            // The host has the slot again, and the caller must free the packet.
            kept.restore(place, entry, packet);
            *(if is_hold { &mut self.stats.held_too_many } else { &mut self.stats.malformed }) += 1;
            *completion = Completion::of(Action::Drop, 0, granted);
        }
        true
    }
}

/// The action of a descriptor that stays inside its slot and does not hold the packet; `None` otherwise.
#[inline(always)]
fn plain(descriptor: &Descriptor) -> Option<Action> {
    let action = Action::from_number(descriptor.action).filter(|action| *action != Action::Hold)?;
    is_inside(descriptor.data, u32::from(descriptor.len)).then_some(action)
}

/// Rebuilds the packet of a valid descriptor.
#[inline(always)]
fn read(
    metadata: bool,
    kept: &Kept,
    entry: InFlight,
    place: SlotAddress,
    descriptor: &Descriptor,
    packet: &mut Packet,
) {
    if metadata && unpark_into(place.region, place.slot, packet) {
        // Memory that the NF can write is read once; then only the copy is used.
        packet.make_sound((descriptor.data, u32::from(descriptor.len)));
        kept.identify(place, packet);
    } else {
        kept.restore_changed(place, entry, (descriptor.data, descriptor.len), packet);
    }
}
