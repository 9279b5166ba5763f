//! The trust boundary of a trust group: packets cross it as copies.
//!
//! An NF maps the memory of its own trust group and no other. In a chain with several groups each group has a
//! region of its own. An enqueued packet is copied into that region, and a returned packet is copied back, so
//! that the NF cannot change it later. Meanwhile the original stays in its slot. An observer returns no
//! packets.
//!
//! A tap reads the memory that ports receive into. Packets are shown to it in place, each with one more
//! reference, while no other holder may write them. All other packets it receives as copies in the same
//! memory.

use crate::memory::Copies;
use shm::channel::Completion;
use shm::channel::InFlightTable;
use shm::descriptor::flag;
use shm::pool::{PacketPool, Pool};
use shm::{Packet, chain};

/// The most packets that cross at a time.
const MOST: usize = 256;

/// The trust boundary of one link or of one direct-path group.
pub struct Boundary {
    pool: PacketPool,
    /// For each slot of a copy, the original.
    originals: Box<[Packet]>,
    copies: Box<[Packet]>,
    /// The number of packets that crossed last.
    crossed: usize,
    /// The indices 0, 1, 2 and so on.
    list: Vec<u16>,
    /// Copies that are to be freed.
    gone: Vec<Packet>,
    /// Copies that were made, in both directions.
    copied: u64,
    observes: bool,
    /// The region whose packets are shown in place.
    in_place: Option<u16>,
    /// Whether the packets that crossed last are shown in place.
    shown: bool,
}

impl std::fmt::Debug for Boundary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boundary").field("observes", &self.observes).finish_non_exhaustive()
    }
}

impl Boundary {
    /// A trust boundary of a memory with `slots` slots. For an observer, no originals are recorded.
    pub fn new(copies: &Copies, slots: u32, observes: bool) -> Boundary {
        Boundary {
            pool: copies.worker(),
            originals: vec![Packet::EMPTY; if observes { 0 } else { slots as usize }].into(),
            copies: vec![Packet::EMPTY; MOST].into(),
            crossed: 0,
            list: Vec::with_capacity(MOST),
            gone: Vec::with_capacity(MOST),
            copied: 0,
            observes,
            in_place: None,
            shown: false,
        }
    }

    /// The same, with packets of `region` shown in place.
    #[must_use]
    pub fn showing(self, region: u16) -> Boundary {
        Boundary { in_place: Some(region), ..self }
    }

    /// Whether it is a tap's. Packets that a tap returns belong to the pool that ports receive from, as all
    /// freed packets do.
    pub fn is_taps(&self) -> bool {
        self.in_place.is_some()
    }

    /// Whether the packets that crossed last are shown in place.
    pub fn has_shown(&self) -> bool {
        self.shown
    }

    /// Copies that were made since the last call.
    pub fn take_copied(&mut self) -> u64 {
        std::mem::take(&mut self.copied)
    }

    /// Lets the front packets of a list cross. They are the packets that can be shown in place, or else
    /// copies: as many as there are slots, up to the first packet with several segments. Returns the packets
    /// to enqueue and their list.
    pub fn cross(
        &mut self,
        packets: &[Packet],
        list: &[u16],
        in_flight: &InFlightTable,
    ) -> (&[Packet], &[u16]) {
        let shown = self.show(packets, list, in_flight);
        self.shown = shown > 0;
        self.crossed = match self.in_place {
            _ if self.shown => shown,
            None => self.copy(packets, list),
            // Later packets of the list may be shown in place again.
            Some(region) => {
                let stays = |index: &u16| {
                    packets.get(usize::from(*index)).is_some_and(|packet| stays(packet, region, in_flight))
                };
                let front = list.iter().position(stays).unwrap_or(list.len());
                let copied = self.copy(packets, &list[..front]);
                self.pool.give_back_stock();
                copied
            }
        };
        let count = u16::try_from(self.crossed).unwrap_or(u16::MAX);
        self.list.extend(self.list.len() as u16..count);
        (&self.copies[..usize::from(count)], &self.list[..usize::from(count)])
    }

    fn copy(&mut self, packets: &[Packet], list: &[u16]) -> usize {
        let count = chain::clone_front(&mut self.pool, packets, list, &mut self.copies);
        for (copy, index) in self.copies[..count].iter().zip(list) {
            let original = self.originals.get_mut(copy.slot() as usize);
            if let (Some(original), Some(packet)) = (original, packets.get(usize::from(*index))) {
                *original = *packet;
            }
        }
        self.copied += count as u64;
        count
    }

    /// Adds a reference to the front packets of a list, up to the first packet that another holder may still
    /// write, or that was shown and not yet returned; returns how many.
    fn show(&mut self, packets: &[Packet], list: &[u16], in_flight: &InFlightTable) -> usize {
        let Some(region) = self.in_place else { return 0 };
        let there = list.iter().map_while(|index| packets.get(usize::from(*index)));
        let front = there.take_while(|packet| stays(packet, region, in_flight));
        let mut count = 0;
        for (packet, shown) in front.zip(self.copies.iter_mut()) {
            *shown = *packet;
            count += 1;
        }
        let shown = &mut self.copies[..count];
        if !self.pool.share(shown) {
            return 0;
        }
        shown.iter_mut().for_each(|packet| packet.flags |= flag::SHARED);
        count
    }

    /// Frees the copies and references of packets that were not enqueued: all but the first `enqueued`.
    pub fn retract(&mut self, enqueued: usize) {
        let rest = self.copies.get(enqueued..self.crossed).unwrap_or_default();
        self.copied -= if self.shown { 0 } else { rest.len() as u64 };
        self.pool.free_all(rest);
        if self.is_taps() && !self.shown {
            self.pool.give_back_stock();
        }
    }

    /// Replaces returned copies by their originals. An original that continues gets the bytes as the NF left
    /// them; any other stays as it was. False for an observer's copies, which are freed.
    pub fn leave(&mut self, packets: &mut [Packet], completions: &[Completion]) -> bool {
        if self.observes {
            self.pool.free_all(packets);
            return false;
        }
        for packet in packets.iter() {
            shm::prefetch_data(packet.region(), packet.slot());
            self.originals.get(packet.slot() as usize).into_iter().for_each(shm::prefetch_packet);
        }
        self.gone.clear();
        self.gone.extend_from_slice(packets);
        for (packet, completion) in packets.iter_mut().zip(completions) {
            let copy = *packet;
            let Some(mut original) = self.originals.get(copy.slot() as usize).copied() else { continue };
            let goes_on = matches!(completion, Completion::Output(_) | Completion::Made(_));
            if goes_on && chain::copy_into(&copy, &mut original) {
                self.copied += 1;
            }
            *packet = original;
        }
        self.pool.free_all(&self.gone);
        true
    }
}

/// Whether a packet of a region stays unchanged until all readers have released it: it has one segment, no
/// work on it is left before it is sent, and it is not in the same in-flight table.
fn stays(packet: &Packet, region: u16, in_flight: &InFlightTable) -> bool {
    let is_whole = packet.segments() == 1 && packet.region() == region;
    is_whole && packet.flags & !flag::SHARED == 0 && in_flight.is_free(packet.slot())
}
