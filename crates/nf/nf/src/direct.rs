//! The direct rings of an NF to and from the other NFs of its direct-path group.
//!
//! The host created the rings and can read all of them; when an NF dies, they show which NF holds each
//! packet. A packet that an NF keeps beyond its burst is in no ring. The NF therefore notes the packet as its
//! own ([`Direct::record`]) before it releases the descriptor in the ring that the packet arrived by.

use crate::NfError;
use crate::attach::GroupFiles;
use crate::message::stamp;
use shm::page::Page;
use shm::ring::{Broken, Cells, Consumer, Descriptor, Mapped, Producer, RingFile};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Waiting descriptors up to which an NF still takes packets from other NFs: these may in turn wait for it.
const MOST_BACKLOG: usize = 4096;

/// Hops after which a packet passes through the host, where the count restarts.
const MOST_HOPS: u8 = 250;

/// The direct rings of an NF, and its notes.
#[derive(Debug)]
pub(crate) struct Direct {
    member: u8,
    notes: Page,
    /// The rings that the NF writes, by output.
    exits: Vec<Option<Exit>>,
    /// Whether no more packets are sent by them.
    closed: bool,
    pub entrances: Vec<Entrance>,
    /// The ring whose turn is next; the number after the last entrance is the host's ring.
    next: usize,
}

/// The result of sending a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// It is in the ring to another NF.
    Went,
    /// It waits for room in that ring.
    Waits,
    /// It must pass through the host.
    NotHere,
}

/// A ring to another NF.
#[derive(Debug)]
struct Exit {
    to: Producer<Mapped>,
    /// Whether the other NF sleeps and is to be woken.
    wakes: bool,
    /// Descriptors that did not fit into the ring.
    backlog: VecDeque<Descriptor>,
    _file: RingFile<1>,
}

/// A ring from another NF.
#[derive(Debug)]
pub(crate) struct Entrance {
    ring: u16,
    /// The interface by which its packets arrive.
    pub input: u16,
    pub from: Consumer<Mapped>,
    /// The index up to which the host's ring was published when this ring was opened: those packets are
    /// older.
    after: Option<u32>,
    _file: RingFile<1>,
}

impl Direct {
    pub fn new(files: GroupFiles) -> Direct {
        let mut exits: Vec<Option<Exit>> = vec![];
        for (output, file) in files.outputs {
            let [to] = file.rings();
            exits.resize_with(exits.len().max(usize::from(output) + 1), || None);
            exits[usize::from(output)] =
                Some(Exit { to: Producer::new(to), wakes: false, backlog: VecDeque::new(), _file: file });
        }
        Direct { member: files.member, notes: files.notes, exits, closed: false, entrances: vec![], next: 0 }
    }

    /// Opens a ring from another NF; `host` is the index up to which the host's ring is published.
    pub fn open(
        &mut self,
        (way, input): (u16, u16),
        (file, descriptors): (OwnedFd, u32),
        index: u32,
        host: u32,
    ) -> Result<(), NfError> {
        let file = RingFile::open(file, descriptors)?;
        let [from] = file.rings();
        let from = Consumer::at(from, index);
        self.entrances.retain(|entrance| entrance.ring != way);
        self.entrances.push(Entrance { ring: way, input, from, after: Some(host), _file: file });
        Ok(())
    }

    /// Has packets pass through the host from now on. Whether earlier packets are still in the rings, which
    /// they must not overtake.
    pub fn close_exits(&mut self) -> bool {
        let is_open = !std::mem::replace(&mut self.closed, true);
        is_open && !self.is_drained()
    }

    /// Whether the other NFs have taken and released all packets that were sent to them.
    pub fn is_drained(&mut self) -> bool {
        self.exits.iter_mut().flatten().all(|exit| {
            let most = exit.to.cells().capacity() as usize;
            exit.backlog.is_empty() && exit.to.room(most).is_ok_and(|room| room == most)
        })
    }

    /// Takes no more packets from other NFs: the host takes those that are in the rings.
    pub fn leave(&mut self) {
        self.entrances.clear();
    }

    /// Writes a descriptor into the ring of its output.
    #[inline(always)]
    pub fn send(&mut self, descriptor: Descriptor) -> Sent {
        let Some(Some(exit)) = self.exits.get_mut(usize::from(descriptor.destination)) else {
            return Sent::NotHere;
        };
        if self.closed || descriptor.hops >= MOST_HOPS {
            return Sent::NotHere;
        }
        if exit.backlog.is_empty() && exit.to.write_one(descriptor) == Ok(true) {
            return Sent::Went;
        }
        exit.wait(descriptor)
    }

    /// Publishes the sent packets to the other NFs. Calls `went` for waiting descriptors that find room now.
    /// Returns the waiting descriptors of a ring that its reader broke; they pass through the host. No NF is
    /// woken before [`Direct::wake`], so that NFs on the same core do not switch with every burst.
    pub fn flush(&mut self, mut went: impl FnMut(&Descriptor)) -> Vec<Descriptor> {
        let mut back = vec![];
        for place in &mut self.exits {
            let Some(exit) = place else { continue };
            match exit.flush(&mut went) {
                Ok(wakes) => exit.wakes |= wakes,
                Err(_) => back.extend(place.take().map(|exit| exit.backlog).into_iter().flatten()),
            }
        }
        back
    }

    /// Wakes sleeping NFs that packets were sent to.
    pub fn wake(&mut self) {
        for exit in self.exits.iter_mut().flatten().filter(|exit| exit.wakes) {
            exit.wakes = false;
            exit.to.wake();
        }
    }

    /// Whether descriptors wait for room.
    pub fn is_backed_up(&self) -> bool {
        self.exits.iter().flatten().any(|exit| !exit.backlog.is_empty())
    }

    /// Whether so many descriptors wait that no more packets may be taken.
    pub fn is_full(&self) -> bool {
        self.exits.iter().flatten().map(|exit| exit.backlog.len()).sum::<usize>() > MOST_BACKLOG
    }

    /// The ring whose turn it is; `None` for the host's.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        let turn = self.next;
        self.next = if turn >= self.entrances.len() { 0 } else { turn + 1 };
        (turn < self.entrances.len()).then_some(turn)
    }

    /// Takes descriptors from another NF's ring, once the NF has taken the older packets of the host's ring.
    #[inline]
    pub fn take(&mut self, turn: usize, descriptors: &mut [Descriptor], host: u32) -> usize {
        let Some(entrance) = self.entrances.get_mut(turn) else { return 0 };
        if let Some(after) = entrance.after {
            if host.wrapping_sub(after) > u32::MAX / 2 {
                return 0;
            }
            entrance.after = None;
        }
        match entrance.from.take(descriptors) {
            Ok(count) => count,
            // The host detects the broken ring, too, and ends its writer.
            Err(Broken { .. }) => {
                self.entrances.remove(turn);
                0
            }
        }
    }

    /// Releases all descriptors of other NFs' rings: each packet is in another ring by now, or is noted.
    #[inline]
    pub fn release(&mut self) {
        for entrance in &mut self.entrances {
            let held = entrance.from.held();
            if held > 0 {
                entrance.from.release(held);
            }
        }
    }

    /// Notes that this NF has a packet.
    pub fn record(&self, descriptor: &Descriptor) {
        self.notes
            .store(descriptor.slot as usize, stamp(self.member, descriptor.generation, descriptor.hops));
    }

    /// Deletes the note of a packet that is in another ring, unless the NF that took it there has noted it.
    pub fn forget(&self, descriptor: &Descriptor) {
        // The note has the hops at arrival, one less than those of the sent descriptor.
        let hops = descriptor.hops.saturating_sub(1);
        self.notes.replace(descriptor.slot as usize, stamp(self.member, descriptor.generation, hops), 0);
    }
}

impl Exit {
    #[cold]
    fn wait(&mut self, descriptor: Descriptor) -> Sent {
        self.backlog.push_back(descriptor);
        Sent::Waits
    }

    /// Publishes waiting descriptors; whether the reader is to be woken.
    fn flush(&mut self, went: &mut impl FnMut(&Descriptor)) -> Result<bool, Broken> {
        while let Some(descriptor) = self.backlog.front()
            && self.to.write(&[*descriptor])? == 1
        {
            went(descriptor);
            self.backlog.pop_front();
        }
        Ok(self.to.publish())
    }
}
