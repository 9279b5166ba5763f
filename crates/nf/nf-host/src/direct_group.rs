//! A direct-path group: NFs of one trust group and one worker that pass packets to each other by direct
//! rings, without the host.
//!
//! A direct ring has one NF as writer and another as reader. The host creates it and reads its indices
//! ([`Witness`]): a packet counts as the reader's once the reader has taken it. While the reader does not
//! run, the host reads the ring in its place and emits the packets as if there were no direct ring. A ring
//! lives as long as its writer's process; the ring of the writer's next process is read once the old ring is
//! empty.
//!
//! In the in-flight table a direct-path group is one holder. When a member dies, the rings show which packets
//! it held: a packet that another member holds, or that is in a ring to another member, is not the dead
//! member's ([`DirectGroup::others`]).

use crate::boundary::Boundary;
use crate::member::{MemberState, lock};
use crate::rings::{RING_CLAIMS, Rings};
use nf::message::noted;
use shm::channel::{InFlightTable, Inside};
use shm::page::Page;
use shm::ring::{Consumer, Culprit, Descriptor, Mapped, RingFile, Witness, standing};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// The most NFs of a direct-path group.
pub const MOST_MEMBERS: usize = 64;
/// Turns of the worker between two reads of the indices of a ring between two NFs.
const UNLOOKED: u8 = 4;
/// The most direct rings that one NF writes: each needs a descriptor.
pub const MOST_EXITS: usize = 16;

/// A member, and one of its outputs or inputs.
pub type Stop = (u8, u16);

/// A direct-path group.
#[derive(Debug, Default)]
pub struct DirectGroup {
    members: Vec<OnceLock<Arc<MemberState>>>,
    /// The direct rings between the members.
    pub direct_rings: Vec<Arc<DirectRing>>,
    /// Its number as a holder of slots.
    holder: OnceLock<Option<u16>>,
    inside: OnceLock<Arc<Inside>>,
    /// For each slot, the member that keeps its packet beyond a burst.
    notes: OnceLock<Page>,
    /// The rings between the host and each member that runs.
    rings: Mutex<Vec<Option<[Mapped; 2]>>>,
    boundary: OnceLock<Arc<Mutex<Boundary>>>,
}

/// A direct ring, from an output of one NF to an input of another.
#[derive(Debug, Default)]
pub struct DirectRing {
    /// Its number in the direct-path group.
    pub number: u16,
    /// The writer, and the output.
    pub from: Stop,
    /// The reader, and the input.
    pub to: Stop,
    state: Mutex<RingState>,
    /// The kind of the writer: 0 for none, 1 for a writer without metadata, 2 for one with metadata.
    writer: AtomicU8,
    /// Packets that readers have taken in all.
    came: AtomicU64,
    /// Packets that wait in the ring for an NF that reads it.
    pending: AtomicU64,
}

#[derive(Debug, Default)]
struct RingState {
    ring: Option<(RingFile<1>, Reader)>,
    /// The ring of the writer's next process.
    next: Option<RingFile<1>>,
    /// Packets that readers have taken and that the writer's side has not yet recorded.
    passed: u64,
    /// Turns since the indices were read.
    unlooked: u8,
}

impl RingState {
    /// Has the host read the next ring, if there is one and the last ring is closed.
    fn go_on(&mut self) {
        if self.ring.is_none()
            && let Some(next) = self.next.take()
        {
            let reader = Reader::Host(Consumer::new(cells(&next)));
            self.ring = Some((next, reader));
        }
    }
}

#[derive(Debug)]
enum Reader {
    Host(Consumer<Mapped>),
    Nf(Witness<Mapped>),
    /// An NF that reads a ring whose writer has ended: all packets in the ring are the reader's.
    Heir(Witness<Mapped>),
}

/// The result of a turn for the writer's side.
#[derive(Debug, Default)]
pub struct Turn {
    /// Packets that the reader took since the last turn.
    pub passed: u64,
    /// The side that wrote an impossible index.
    pub broken: Option<Culprit>,
}

/// The kind of a writer, with metadata or without.
fn kind(metadata: bool) -> u8 {
    1 + u8::from(metadata)
}

/// The words of the ring in a ring file.
fn cells(file: &RingFile<1>) -> Mapped {
    let [ring] = file.rings();
    ring
}

impl DirectGroup {
    /// A group of `members` NFs, with a direct ring for each pair of writer and output, reader and input.
    pub fn new(members: usize, direct_rings: &[(Stop, Stop)]) -> DirectGroup {
        let ring = |(number, (from, to)): (u16, &(Stop, Stop))| {
            Arc::new(DirectRing { number, from: *from, to: *to, ..DirectRing::default() })
        };
        DirectGroup {
            members: (0..members).map(|_| OnceLock::new()).collect(),
            direct_rings: (0..).zip(direct_rings).map(ring).collect(),
            rings: Mutex::new(vec![None; members]),
            ..DirectGroup::default()
        }
    }

    /// Sets the state of a member.
    pub fn set_member(&self, member: u8, state: Arc<MemberState>) {
        if let Some(place) = self.members.get(usize::from(member)) {
            let _ = place.set(state);
        }
    }

    /// The state of a member.
    pub fn member(&self, member: u8) -> Option<&MemberState> {
        self.members.get(usize::from(member))?.get().map(Arc::as_ref)
    }

    /// Whether the group holds as many packets as it may.
    pub fn is_full(&self) -> bool {
        self.inside.get().is_some_and(|inside| inside.room() == 0)
    }

    /// Records that packets found no room, at the member that holds the most packets.
    pub fn note_crowded(&self) {
        let members = self.members.iter().filter_map(OnceLock::get);
        if let Some(member) = members.max_by_key(|member| member.activity.held()) {
            member.activity.note_crowded();
        }
    }

    /// The group's number as a holder of slots, which the first call takes from `next`.
    pub fn holder(&self, next: impl FnOnce() -> Option<u16>) -> Option<u16> {
        *self.holder.get_or_init(next)
    }

    /// The count of packets inside the group, of which each NF may hold `quota`. All of them fit into one
    /// ring, so that no ring stays full for long.
    pub fn inside(&self, quota: u64) -> Arc<Inside> {
        let most = (quota * self.members.len() as u64).min(u64::from(RING_CLAIMS));
        Arc::clone(self.inside.get_or_init(|| Arc::new(Inside::new(most))))
    }

    /// The notes about kept packets, a word for each of `slots` slots.
    ///
    /// # Errors
    ///
    /// When the system has no memory.
    pub fn notes(&self, slots: u32) -> Result<&Page, String> {
        if let Some(notes) = self.notes.get() {
            return Ok(notes);
        }
        let made = Page::create_for(slots as usize).map_err(|error| error.to_string())?;
        Ok(self.notes.get_or_init(|| made))
    }

    /// The trust boundary of the group's memory, which `make` creates at the first call.
    pub fn boundary(&self, make: impl FnOnce() -> Boundary) -> Arc<Mutex<Boundary>> {
        Arc::clone(self.boundary.get_or_init(|| Arc::new(Mutex::new(make()))))
    }

    /// Sets the rings of a member's process, or that it has none.
    pub fn set_rings(&self, member: u8, rings: Option<&Rings>) {
        if let Some(place) = lock(&self.rings).get_mut(usize::from(member)) {
            *place = rings.map(|rings| {
                let [to, from, _] = rings.rings();
                [to, from]
            });
        }
    }

    /// Deletes the notes of a dead member.
    pub fn forget(&self, dead: u8) {
        let Some(notes) = self.notes.get() else { return };
        for slot in 0..notes.words() {
            let note = notes.load(slot);
            if noted(note).is_some_and(|(member, ..)| member == dead) {
                // A living member may have written another note for the slot meanwhile; that note stays.
                notes.replace(slot, note, 0);
            }
        }
    }

    /// Which slots belong to other members than a dead one, by number: enqueued to them, in a ring to them or
    /// from them, or noted. `taken` are the packets that the dead member had taken from others and not
    /// released.
    ///
    /// A packet may be in several rings, because a member releases a packet only once it is in the next ring.
    /// The position with the most hops counts. The other members go on working during the search. A packet
    /// that moves is missed if the next ring was searched before, at most once for each direct ring on its
    /// path. So there is one pass more than there are direct rings.
    pub fn others(&self, dead: u8, taken: &[Descriptor], in_flight: &InFlightTable) -> Vec<bool> {
        // One more than the hops of the latest known position, and whether that position is another member's.
        let mut places = vec![(0, false); in_flight.slots() as usize];
        let mut mark = |slot: u32, generation: u32, hops: u8, others: bool| {
            if let Some(place) = places.get_mut(slot as usize)
                && in_flight.is_in_work(slot, generation)
            {
                *place = (*place).max((u16::from(hops) + 1, others));
            }
        };
        taken
            .iter()
            .for_each(|descriptor| mark(descriptor.slot, descriptor.generation, descriptor.hops, false));
        let rings = lock(&self.rings).clone();
        let living = || rings.iter().enumerate().filter(|(at, _)| *at != usize::from(dead));
        let look_at_notes = |mark: &mut dyn FnMut(u32, u32, u8, bool)| {
            let Some(notes) = self.notes.get() else { return };
            for slot in 0..in_flight.slots() {
                if let Some((member, generation, hops)) = noted(notes.load(slot as usize)) {
                    mark(slot, generation, hops, member != dead);
                }
            }
        };
        // A member writes a noted packet into a ring before it deletes the note, so the notes are searched
        // first. A member notes a packet from a ring before it releases it, so the notes are searched last,
        // too.
        look_at_notes(&mut mark);
        for pass in 0..=self.direct_rings.len() {
            let mut look = |ring: &Mapped| {
                standing(ring).for_each(|descriptor| {
                    mark(descriptor.slot, descriptor.generation, descriptor.hops, true)
                });
            };
            living().flat_map(|(_, rings)| rings).for_each(|[to, _]| look(to));
            let mut look_along = |ring: &Arc<DirectRing>| {
                let state = lock(&ring.state);
                let files = state.ring.iter().map(|(file, _)| file).chain(&state.next);
                files.for_each(|file| look(&cells(file)));
            };
            // With rings in both directions, every second pass searches them in the order of the packets.
            if pass % 2 == 0 {
                self.direct_rings.iter().for_each(&mut look_along);
            } else {
                self.direct_rings.iter().rev().for_each(&mut look_along);
            }
            living().flat_map(|(_, rings)| rings).for_each(|[_, from]| look(from));
            look_at_notes(&mut mark);
        }
        places.into_iter().map(|(_, others)| others).collect()
    }
}

impl DirectRing {
    /// Sets the ring that a new process of the writer writes, with metadata or without.
    pub fn begin(&self, file: RingFile<1>, metadata: bool) {
        self.writer.store(kind(metadata), Relaxed);
        let mut state = lock(&self.state);
        state.next = Some(file);
        state.go_on();
    }

    /// Gives the ring to the reader's process, once all packets that were enqueued to it before are in its
    /// own ring, and if both sides agree about metadata. Returns the ring and the index of the first
    /// descriptor.
    pub fn open(&self, metadata: bool) -> Option<(OwnedFd, u32)> {
        if self.writer.load(Relaxed) != kind(metadata) {
            return None;
        }
        let mut state = lock(&self.state);
        let is_old = state.next.is_some();
        let (file, reader) = state.ring.as_mut()?;
        let Reader::Host(consumer) = reader else { return None };
        let index = consumer.index();
        if is_old || consumer.held() > 0 {
            return None;
        }
        let copy = file.as_fd().try_clone_to_owned().ok()?;
        *reader = Reader::Nf(Witness::at(cells(file), index));
        Some((copy, index))
    }

    /// Packets that readers have taken in all.
    pub fn came(&self) -> u64 {
        self.came.load(Relaxed)
    }

    /// Packets that wait in the ring for an NF that reads it.
    pub fn pending(&self) -> u64 {
        self.pending.load(Relaxed)
    }

    /// The writer's side of a turn: while the host reads, calls `read` for the packets; while an NF reads,
    /// reads the indices.
    pub fn turn(&self, read: impl FnOnce(&mut Consumer<Mapped>)) -> Turn {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let mut turn = Turn { passed: std::mem::take(&mut state.passed), ..Turn::default() };
        let Some((_, reader)) = &mut state.ring else { return turn };
        let is_empty = match reader {
            Reader::Host(consumer) => {
                read(consumer);
                consumer.index() == consumer.published()
            }
            // Each read transfers two cache lines from the cores of the NFs.
            Reader::Nf(_) if state.unlooked < UNLOOKED => {
                state.unlooked += 1;
                false
            }
            Reader::Nf(witness) => match witness.look() {
                Ok(seen) => {
                    state.unlooked = 0;
                    self.see(u64::from(seen.passed), u64::from(seen.pending));
                    turn.passed += u64::from(seen.passed);
                    witness.is_drained()
                }
                Err(culprit) => {
                    turn.broken = Some(culprit);
                    false
                }
            },
            Reader::Heir(witness) => match witness.look() {
                Ok(_) => witness.is_drained(),
                // This ring has no writer any more.
                Err(_) => true,
            },
        };
        if is_empty && state.next.is_some() {
            state.ring = None;
            state.go_on();
        }
        turn
    }

    /// Ends the writer's side: calls `read` for the packets that no other reader takes. Packets in a ring
    /// that an NF reads are that NF's from now on; returns how many packets became the reader's since the
    /// last turn.
    pub fn end(&self, mut read: impl FnMut(&mut Consumer<Mapped>)) -> u64 {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let mut passed = std::mem::take(&mut state.passed);
        self.writer.store(0, Relaxed);
        state.ring = match state.ring.take() {
            Some((_, Reader::Host(mut consumer))) => {
                read(&mut consumer);
                None
            }
            Some((file, Reader::Nf(mut witness))) => match witness.look() {
                Ok(seen) => {
                    self.see(u64::from(seen.passed + seen.pending), 0);
                    passed += u64::from(seen.passed + seen.pending);
                    Some((file, Reader::Heir(witness)))
                }
                // With a broken ring, too, the reader may hold some of its packets.
                Err(_) => Some((file, Reader::Heir(witness))),
            },
            heir => heir,
        };
        if let Some(next) = state.next.take() {
            read(&mut Consumer::new(cells(&next)));
        }
        passed
    }

    /// Ends the reader's side: the host reads from the index where the reader stopped. If the writer has
    /// ended, too, the packets in the ring are lost with the reader. Packets that the reader had taken and
    /// not released are added to `taken`.
    pub fn take_over(&self, taken: &mut Vec<Descriptor>) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        self.pending.store(0, Relaxed);
        state.ring = match state.ring.take() {
            Some((file, Reader::Nf(mut witness))) => {
                // For an impossible index, the last plausible one counts.
                let seen = witness.look().unwrap_or_default();
                self.see(u64::from(seen.passed), 0);
                state.passed += u64::from(seen.passed);
                let ring = cells(&file);
                let count = standing(&ring).count().saturating_sub(seen.pending as usize);
                taken.extend(standing(&ring).take(count));
                Some((file, Reader::Host(witness.succeed())))
            }
            Some((file, Reader::Heir(_))) => {
                taken.extend(standing(&cells(&file)));
                None
            }
            other => other,
        };
        state.go_on();
    }

    fn see(&self, passed: u64, pending: u64) {
        self.came.store(self.came() + passed, Relaxed);
        self.pending.store(pending, Relaxed);
    }
}
