//! An NF's ways to and from the other NFs of its direct-path group, with no hop through the host.
//!
//! The host made the rings, and can follow what goes through them; whoever dies, it knows from them whose each packet
//! was. What an NF keeps beyond the burst that it came with stands in no ring: then it notes that the packet is its own
//! ([`Direct::record`]), before it lets go of the place in the ring that it came by.

use crate::NfError;
use crate::attach::GroupFiles;
use crate::message::stamp;
use shm::page::Page;
use shm::ring::{Broken, Cells, Consumer, Descriptor, Mapped, Producer, RingFile};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Descriptors that wait for room, with which an NF still takes from others: they may wait for it, too.
const MOST_BACKLOG: usize = 4096;

/// Hops after which a packet goes by the host, where they are counted anew.
const MOST_HOPS: u8 = 250;

/// The ways.
#[derive(Debug)]
pub(crate) struct Direct {
    member: u8,
    notes: Page,
    /// By output.
    exits: Vec<Option<Exit>>,
    /// Nothing more goes out by them.
    closed: bool,
    pub entrances: Vec<Entrance>,
    /// Whose turn it is to be taken from; behind the entrances the host's.
    next: usize,
}

/// What became of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// It stands in the ring to another NF.
    Went,
    /// It waits for room there.
    Waits,
    /// It is for the host to carry.
    NotHere,
}

/// To another NF.
#[derive(Debug)]
struct Exit {
    to: Producer<Mapped>,
    /// The other sleeps, and is to be woken.
    wakes: bool,
    /// Descriptors that did not fit.
    backlog: VecDeque<Descriptor>,
    _file: RingFile<1>,
}

/// From another NF.
#[derive(Debug)]
pub(crate) struct Entrance {
    ring: u16,
    /// The interface that packets come in by.
    pub input: u16,
    pub from: Consumer<Mapped>,
    /// Where the host's ring stood when this way was opened: what stands there is older.
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

    /// Opens a way from another NF; `host` is how far the host's ring is published.
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

    /// Has packets go through the host from now on. Whether some are on their way that they must not overtake.
    pub fn close_exits(&mut self) -> bool {
        let is_open = !std::mem::replace(&mut self.closed, true);
        is_open && !self.is_drained()
    }

    /// Whether others have taken and let go of all that was sent to them.
    pub fn is_drained(&mut self) -> bool {
        self.exits.iter_mut().flatten().all(|exit| {
            let most = exit.to.cells().capacity() as usize;
            exit.backlog.is_empty() && exit.to.room(most).is_ok_and(|room| room == most)
        })
    }

    /// Takes nothing more from others: what stands in their rings is for the host to take.
    pub fn leave(&mut self) {
        self.entrances.clear();
    }

    /// Puts a descriptor on its way.
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

    /// Shows the others what was sent. Descriptors that find room now go into `went`; those of a way that its other end
    /// broke are the host's to carry, and come back. Nobody is woken before [`Direct::wake`], so that others of the
    /// same core do not take turns with every burst.
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

    /// Wakes others that sleep and were sent something.
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

    /// Whether so many wait that nothing more may come in.
    pub fn is_full(&self) -> bool {
        self.exits.iter().flatten().map(|exit| exit.backlog.len()).sum::<usize>() > MOST_BACKLOG
    }

    /// Whose turn it is; `None` for the host.
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        let turn = self.next;
        self.next = if turn >= self.entrances.len() { 0 } else { turn + 1 };
        (turn < self.entrances.len()).then_some(turn)
    }

    /// Takes descriptors from another NF, which the host's ring must be ahead of.
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
            // Its producer is no business of this NF's: the host sees the same.
            Err(Broken { .. }) => {
                self.entrances.remove(turn);
                0
            }
        }
    }

    /// Lets go of all that was taken from others: each packet stands in another ring by now, or is noted.
    #[inline]
    pub fn release(&mut self) {
        for entrance in &mut self.entrances {
            let held = entrance.from.held();
            if held > 0 {
                entrance.from.release(held);
            }
        }
    }

    /// Notes that a packet is this NF's.
    pub fn record(&self, descriptor: &Descriptor) {
        self.notes
            .store(descriptor.slot as usize, stamp(self.member, descriptor.generation, descriptor.hops));
    }

    /// Takes that back once it stands in another ring: whoever took it there may have noted it as its own.
    pub fn forget(&self, descriptor: &Descriptor) {
        // As it came here: one hop less.
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

    /// Whether the other is to be woken.
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
