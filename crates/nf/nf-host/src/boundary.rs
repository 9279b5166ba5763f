//! The boundary of a trust group: packets cross it as copies.
//!
//! An NF maps the memory of its own trust group and no other. Where a chain has several groups, each has a region of
//! its own; a packet that is enqueued is copied into it, and what comes back is copied out again, so that nothing that
//! the NF does later can change it. Meanwhile the original stays where it is. Of an observer nothing comes back.
//!
//! A tap sees the memory that ports receive into. It is shown packets where they lie, each with a holder more, as long
//! as nobody writes them meanwhile; else it gets copies there.

use crate::memory::Copies;
use shm::channel::Completion;
use shm::channel::InFlightTable;
use shm::descriptor::flag;
use shm::pool::{PacketPool, Pool};
use shm::{Packet, chain};

/// Packets that cross at a time, at most.
const MOST: usize = 256;

/// One link's side of the boundary, or that of a direct-path group.
pub struct Boundary {
    pool: PacketPool,
    /// What each slot's copy is a copy of.
    originals: Box<[Packet]>,
    copies: Box<[Packet]>,
    /// Those that crossed last.
    crossed: usize,
    /// 0, 1, 2 and so on.
    list: Vec<u16>,
    /// Copies that are of no more use.
    gone: Vec<Packet>,
    /// Copies that were made, in and out.
    copied: u64,
    observes: bool,
    /// The region whose packets are shown in place.
    in_place: Option<u16>,
    /// Whether those that crossed last are no copies.
    shown: bool,
}

impl std::fmt::Debug for Boundary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boundary").field("observes", &self.observes).finish_non_exhaustive()
    }
}

impl Boundary {
    /// Into memory of so many slots. Originals of what an observer gets are nobody's business here.
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

    /// Shows packets of a region where they lie.
    #[must_use]
    pub fn showing(self, region: u16) -> Boundary {
        Boundary { in_place: Some(region), ..self }
    }

    /// Whether it is a tap's. What comes back of that is of the pool that ports receive from, like what others let go.
    pub fn is_taps(&self) -> bool {
        self.in_place.is_some()
    }

    /// Whether packets that crossed last are read where they lie.
    pub fn has_shown(&self) -> bool {
        self.shown
    }

    /// Copies that were made since the last call.
    pub fn take_copied(&mut self) -> u64 {
        std::mem::take(&mut self.copied)
    }

    /// Has the front packets of a list cross: those that can be shown where they lie, or copies, as many as there are
    /// slots for and up to the first that has several segments. What is to be enqueued, and its list.
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
            // Those behind may be shown again.
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

    /// Gives the front packets of a list a holder more, up to the first that somebody may still write, or that was
    /// shown and is not back; how many.
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

    /// Takes back what was not enqueued, all but the first `enqueued`.
    pub fn retract(&mut self, enqueued: usize) {
        let rest = self.copies.get(enqueued..self.crossed).unwrap_or_default();
        self.copied -= if self.shown { 0 } else { rest.len() as u64 };
        self.pool.free_all(rest);
        if self.is_taps() && !self.shown {
            self.pool.give_back_stock();
        }
    }

    /// Turns copies that are the host's again into their originals, each by what became of it: as the NF left it where
    /// it goes on, else as it was. False for an observer's, which are nothing any more.
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

/// Whether a packet of a region stays as it is until all who read it are done: it is whole, nobody has anything to do
/// to it before it is sent, and it is not in flight in the same in-flight table.
fn stays(packet: &Packet, region: u16, in_flight: &InFlightTable) -> bool {
    let is_whole = packet.segments() == 1 && packet.region() == region;
    is_whole && packet.flags & !flag::SHARED == 0 && in_flight.is_free(packet.slot())
}
