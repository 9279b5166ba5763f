//! Lending packets to an NF: the host's end of an NF's rings.
//!
//! The host keeps the descriptor of a packet that is in flight in its private [`InFlightTable`], with who holds the
//! slot and in which in-flight entry; the NF gets a descriptor, and the bytes. What comes back is a descriptor: the
//! slot must be one that this NF holds, in the in-flight entry that the in-flight table knows. Then, and only then, the
//! in-flight table says that the host holds it again, and a second descriptor on it is a bad one. The packet is the
//! private copy, with first byte and length as the descriptor says: nothing that an NF writes beside the frame has any
//! effect.
//!
//! An NF that works with what the platform knows of a packet (annotations, header offsets) gets it by
//! [`HostEnd::with_metadata`]: then the descriptor is also parked in front of the packet, and what the NF made
//! of it is read back, once, and checked. What only the host may know (its pool's handle) never lies there.
//!
//! An NF may have a packet kept ([`Action::Hold`]): the in-flight entry stays open, the host notes that, and a later
//! descriptor on the same in-flight entry ends it.
//!
//! When an NF has died, [`HostEnd::reclaim`] finds every slot that it held, each once: what stands in the ring
//! from the NF came back, what the NF had not taken is as it was enqueued, what it had kept is as it was when it
//! said so, the rest is lost with it. It must not be called before nothing of the NF runs any more.

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

/// Descriptors that are looked at at a time.
const BURST: usize = 64;

/// The destination of a descriptor on an empty slot that an NF may make a packet in.
pub const GRANT: u16 = u16::MAX;

/// A slot that was reclaimed from a dead NF.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimedSlot {
    /// The packet.
    pub packet: Packet,
    /// Whether it was an empty slot that was granted: then it is no packet that came in.
    pub granted: bool,
}

/// What became of an in-flight packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Completion {
    /// The NF sends it out of an output.
    Output(u16),
    /// The NF made it in a slot that was granted, and sends it out of an output.
    Made(u16),
    /// The NF dropped it, for its reason of that number.
    Dropped(u16),
    /// The NF died, and had not taken it.
    NotTaken,
    /// The NF died with it.
    Lost,
    /// The NF had it kept for later, and died.
    Kept,
    /// A slot that was granted and is not needed any more: no packet.
    #[default]
    Unused,
}

impl Completion {
    /// What a sound descriptor says: an action that is no [`Action::Hold`] (what is kept does not come back), where the
    /// packet goes, and whether it lies in a slot that was granted.
    #[inline(always)]
    fn of(action: Action, destination: u16, granted: bool) -> Completion {
        match (action, granted) {
            (Action::Emit, false) => Completion::Output(destination),
            (Action::Emit, true) => Completion::Made(destination),
            (Action::Drop | Action::Hold, false) => Completion::Dropped(destination),
            (Action::Drop | Action::Hold, true) => Completion::Unused,
        }
    }

    /// Whether the slot was granted: then it is no packet that the NF was given.
    #[inline(always)]
    pub fn is_granted(self) -> bool {
        matches!(self, Completion::Made(_) | Completion::Unused)
    }
}

/// What an NF did, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelStats {
    /// Packets enqueued to it.
    pub enqueued: u64,
    /// Packets that the NF took from others of its direct-path group.
    pub came: u64,
    /// Packets that others of its direct-path group took from it.
    pub went: u64,
    /// Packets that came back by good descriptors.
    pub returned: u64,
    /// Packets that an NF held when it died and had taken: they are lost.
    pub lost: u64,
    /// Packets that an NF held when it died and had not taken.
    pub untouched: u64,
    /// Packets that an NF has kept by the host at the moment.
    pub holding: u64,
    /// Packets that an NF had kept by the host when it died.
    pub inherited: u64,
    /// Descriptors of slots that there are not.
    pub out_of_range: u64,
    /// Descriptors of lives of slots that are over.
    pub stale: u64,
    /// Descriptors of slots that somebody else holds, those given back twice among them.
    pub not_held: u64,
    /// Descriptors that have a packet kept which is kept already.
    pub held_again: u64,
    /// Good descriptors that would have more packets kept than may be: the packet came back, and is dropped.
    pub held_too_many: u64,
    /// Good descriptors of what cannot be: the packet came back, and is dropped.
    pub malformed: u64,
    /// Times that one of the NF's indices could not be.
    pub broken: u64,
}

/// What a dead NF held.
#[derive(Debug, Default)]
pub struct Reclaimed {
    /// Packets that it had given back.
    pub returned: Vec<(Packet, Completion)>,
    /// Packets that it had not taken, oldest first, as they were enqueued.
    pub untouched: Vec<ReclaimedSlot>,
    /// Packets that it had kept, as they were then.
    pub held: Vec<ReclaimedSlot>,
    /// Packets that it had taken: nobody knows what it did to them. To be freed.
    pub lost: Vec<ReclaimedSlot>,
}

impl Reclaimed {
    /// Each packet and slot, and what became of it.
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

/// The host's end of one NF.
#[derive(Debug)]
pub struct HostEnd<C> {
    to: Producer<C>,
    /// Of empty slots: they must not wait behind packets that wait for them.
    grants: Option<Producer<C>>,
    from: Consumer<C>,
    check: DescriptorCheck,
    /// Packets that the NF may hold.
    most: u64,
    /// What all NFs that share its in-flight entries hold, and what of that was enqueued here as it was counted last.
    group: Option<(Arc<Inside>, u64)>,
}

/// Where descriptors are looked at.
#[derive(Debug)]
struct DescriptorCheck {
    holder: u16,
    /// Which of the NFs that share the holder's number.
    member: u8,
    region: u16,
    /// Whether descriptors go with the packets.
    metadata: bool,
    /// Packets that the NF may have kept.
    holding_most: u64,
    /// Granted slots that are out and not kept: empty, they are no packets inside a direct-path group.
    granted: u64,
    stats: ChannelStats,
}

/// Packets inside a direct-path group: NFs that hand packets to each other without the host, and are one holder to its
/// books. Written by the thread that enqueues to them all.
#[derive(Debug)]
pub struct Inside {
    now: AtomicU64,
    most: u64,
}

impl Inside {
    /// Of a direct-path group that may hold so many.
    pub fn new(most: u64) -> Inside {
        Inside { now: AtomicU64::new(0), most }
    }

    /// How many more it may hold.
    pub fn room(&self) -> u64 {
        self.most.saturating_sub(self.now.load(Relaxed))
    }
}

impl HostEnd<crate::ring::Mapped> {
    /// Wakes the NF: for when [`HostEnd::enqueue`] says that it sleeps. A system call.
    #[cold]
    pub fn wake(&self) {
        self.to.wake();
    }
}

impl<C: Cells> HostEnd<C> {
    /// Over two new rings, to an NF that the in-flight table knows as `holder` and that sees the slots of `region`.
    pub fn new(to: C, from: C, holder: u16, region: u16) -> HostEnd<C> {
        HostEnd {
            to: Producer::new(to),
            grants: None,
            from: Consumer::new(from),
            check: DescriptorCheck {
                holder,
                member: 0,
                region,
                metadata: false,
                holding_most: 0,
                granted: 0,
                stats: ChannelStats::default(),
            },
            most: u64::MAX,
            group: None,
        }
    }

    /// As one of those that share a holder's number, with what all of them together hold: each of them may have all of
    /// that, and the first does, before it passes it on.
    #[must_use]
    pub fn in_group(mut self, member: u8, inside: Arc<Inside>) -> HostEnd<C> {
        (self.check.member, self.group) = (member, Some((inside, 0)));
        self
    }

    /// With a limit to the packets that the NF holds at a time: the ring is no limit to an NF that takes and
    /// does not give. Empty slots that are granted count, too, and are not limited.
    #[must_use]
    pub fn limited_to(mut self, most: u64) -> HostEnd<C> {
        self.most = most;
        self
    }

    /// With packets that the NF may have kept, beside those that it holds: none, unless this says so.
    #[must_use]
    pub fn holding_at_most(mut self, most: u64) -> HostEnd<C> {
        self.check.holding_most = most;
        self
    }

    /// With or without the descriptors of packets, in the metadata blocks of their slots. Without, header
    /// offsets and the flow's hash are unknown of what comes back.
    #[must_use]
    pub fn with_metadata(mut self, metadata: bool) -> HostEnd<C> {
        self.check.metadata = metadata;
        self
    }

    /// Whether descriptors go with the packets.
    pub fn has_metadata(&self) -> bool {
        self.check.metadata
    }

    /// With a third new ring, by which empty slots are granted.
    #[must_use]
    pub fn with_grants(mut self, grants: C) -> HostEnd<C> {
        self.grants = Some(Producer::new(grants));
        self
    }

    /// What was counted.
    pub fn stats(&self) -> ChannelStats {
        self.check.stats
    }

    /// Notes that the NF took packets from others of its direct-path group, and that others took such from it.
    #[inline]
    pub fn note_passed(&mut self, came: u64, went: u64) {
        self.check.stats.came += came;
        self.check.stats.went += went;
    }

    /// Descriptors that were no good.
    pub fn bad_claims(&self) -> u64 {
        let ChannelStats { out_of_range, stale, not_held, held_again, held_too_many, malformed, .. } =
            self.check.stats;
        out_of_range + stale + not_held + held_again + held_too_many + malformed
    }

    /// Slots that the NF holds to work on, as far as the in-flight table says: those that it has kept are not among
    /// them.
    #[inline]
    pub fn held(&self) -> u64 {
        let ChannelStats { came, went, .. } = self.check.stats;
        let held = self.on_loan().wrapping_add(came).wrapping_sub(went);
        // What was passed is counted after what came back.
        if held > i64::MAX as u64 { 0 } else { held }
    }

    /// Packets that were enqueued here less those that came back here: below 0 where others of a direct-path group
    /// lend.
    #[inline]
    fn on_loan(&self) -> u64 {
        let ChannelStats { enqueued, lost, untouched, holding, inherited, .. } = self.check.stats;
        enqueued.wrapping_sub(self.given_back() + lost + untouched + holding + inherited)
    }

    /// Counts what the direct-path group holds.
    #[inline]
    fn count_party(&mut self) {
        let now = self.on_loan().wrapping_sub(self.check.granted);
        if let Some((inside, before)) = &mut self.group {
            let change = now.wrapping_sub(std::mem::replace(before, now));
            inside.now.store(inside.now.load(Relaxed).wrapping_add(change), Relaxed);
        }
    }

    /// Packets that came back, whatever was said of them.
    #[inline]
    pub fn given_back(&self) -> u64 {
        let ChannelStats { returned, held_too_many, malformed, .. } = self.check.stats;
        returned + held_too_many + malformed
    }

    /// Enqueues packets of one segment, the front ones of the list, as many as fit, with a number that the NF
    /// reads; how many, and whether the NF sleeps and is to be woken. Stops in front of a packet that has
    /// several segments, reaches beyond its slot, or has no slot of the region that is the host's to lend. With
    /// [`GRANT`] as the number, packets are empty slots for the NF to fill.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
    #[inline]
    pub fn enqueue(
        &mut self,
        in_flight: &InFlightTable,
        packets: &[Packet],
        list: &[u16],
        destination: u16,
    ) -> Result<(usize, bool), Broken> {
        // Each in code of its own: together they want more registers than there are.
        let enqueued = if self.check.metadata {
            self.enqueue_as::<true>(in_flight, packets, list, destination)
        } else {
            self.enqueue_as::<false>(in_flight, packets, list, destination)
        };
        self.count_party();
        enqueued
    }

    /// How many of so many packets could be enqueued now with that number for the NF.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
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
            // Of a large pool nothing that belongs to a slot is in a cache.
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
                    // Without what is nobody else's business.
                    park_in(span, &Packet { handle: 0, generation: 0, ..*packet });
                }
                let (slot, data, len) = (packet.slot, packet.data, packet.len as u16);
                Some(Descriptor { slot, generation, data, len, destination, ..Descriptor::default() })
            });
            // There is room: it was asked for.
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

    /// Takes back what the NF gave: packets and what it says of them, into the front of both slices; how many.
    /// Looks at no more descriptors, good or bad, than both have room for: an NF that goes on and on giving bad ones
    /// must not keep its host here. Bad descriptors are counted and passed over; what is kept for the NF does not
    /// come back here.
    ///
    /// Beside the number, an error when the NF's index cannot be: it is to be evicted.
    #[inline]
    pub fn take_back(
        &mut self,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        let taken = self.check.take(&mut self.from, None, in_flight, packets, completions);
        self.count_party();
        taken
    }

    /// The same from a ring of the NF's to another of its direct-path group that does not read it now: all that stands
    /// there leaves by the output that the ring belongs to.
    pub fn take_from(
        &mut self,
        ring: &mut Consumer<C>,
        output: u16,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        let taken = self.check.take(ring, Some(output), in_flight, packets, completions);
        self.count_party();
        taken
    }

    /// Collects what a dead NF held. Afterwards it holds nothing, and the rings are of no more use.
    pub fn reclaim(&mut self, in_flight: &InFlightTable) -> Reclaimed {
        // What the NF scribbled can hide packets up to here.
        let most = self.held() + self.check.stats.holding;
        self.collect(in_flight, most, |_| false)
    }

    /// The same of one that others of its direct-path group live on: what they have in work, which `others` knows,
    /// stays theirs.
    pub fn reclaim_among(&mut self, in_flight: &InFlightTable, others: impl Fn(u32) -> bool) -> Reclaimed {
        self.collect(in_flight, u64::MAX, others)
    }

    fn collect(&mut self, in_flight: &InFlightTable, most: u64, others: impl Fn(u32) -> bool) -> Reclaimed {
        let mut reclaimed = Reclaimed::default();
        // The downstream ring wins: what stands there came back. Where its index cannot be, nothing does.
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
            // A bad descriptor is history, or scribbled over; so is one on what is kept.
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
            // Whose a marked one is the in-flight table says.
            let is_others = if entry.is_marked() { entry.member() != member } else { others(slot) };
            if is_others {
                continue;
            }
            let list = if entry.is_held() { &mut reclaimed.held } else { &mut reclaimed.lost };
            list.push(end(slot, kept, entry));
        }
        // All that it was granted has come back.
        self.check.granted = 0;
        let stats = &mut self.check.stats;
        stats.lost += reclaimed.lost.len() as u64;
        stats.inherited += reclaimed.held.len() as u64;
        stats.holding = stats.holding.saturating_sub(reclaimed.held.len() as u64);
        self.count_party();
        reclaimed
    }
}

impl DescriptorCheck {
    /// Takes descriptors out of a ring; all of them leave by `output` where that is said.
    #[inline]
    fn take<C: Cells>(
        &mut self,
        ring: &mut Consumer<C>,
        output: Option<u16>,
        in_flight: &InFlightTable,
        packets: &mut [Packet],
        completions: &mut [Completion],
    ) -> (usize, Result<(), Broken>) {
        // Each in code of its own: together they want more registers than there are.
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
                // As many as there are descriptors: there is always one.
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
            // Ours now: should this process die, all slots die with it.
            ring.release(count);
            left -= count;
            if count < room {
                break;
            }
        }
        (back, Ok(()))
    }

    /// What comes back in another way than most: by a bad descriptor, or kept, or to be kept. Whether it comes back.
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
        // What another of the direct-path group had kept, or was granted, is not for this one to give back.
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
            // It is a packet of ours all the same, and somebody has to free it.
            kept.restore(place, entry, packet);
            *(if is_hold { &mut self.stats.held_too_many } else { &mut self.stats.malformed }) += 1;
            *completion = Completion::of(Action::Drop, 0, granted);
        }
        true
    }
}

/// What is to happen to a packet by a descriptor that lies in its slot and does not have it kept.
#[inline(always)]
fn plain(descriptor: &Descriptor) -> Option<Action> {
    let action = match descriptor.action {
        0 => Action::Drop,
        1 => Action::Emit,
        _ => return None,
    };
    is_inside(descriptor.data, u32::from(descriptor.len)).then_some(action)
}

/// The packet that a good descriptor speaks of.
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
        // One read of what the NF can write, then only the copy is used.
        packet.make_sound((descriptor.data, u32::from(descriptor.len)));
        kept.identify(place, packet);
    } else {
        kept.restore_changed(place, entry, (descriptor.data, descriptor.len), packet);
    }
}
