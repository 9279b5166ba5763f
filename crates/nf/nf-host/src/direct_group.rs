//! A direct-path group: NFs of one trust group and one worker that hand packets to each other, with no hop through the
//! host.
//!
//! Between two of them lies a *way*: a ring that the one writes and the other reads. The host made it, and looks on
//! ([`Witness`]): packets count as the next NF's once that has taken them. While the reader is not there, the host
//! reads in its place, and what comes goes the way that it would go without a ring. A writer's ring lives as long as
//! the writer; a new one is read once the old is empty.
//!
//! To the in-flight table a direct-path group is one holder. Who of it has a packet when one of them dies is known from
//! the rings: a packet that another has, or that lies in a ring to another, is not the dead one's
//! ([`DirectGroup::others`]).

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
/// Turns of the worker between two looks at a ring that is others'.
const UNLOOKED: u8 = 4;
/// The most ways from one NF: each comes with a descriptor.
pub const MOST_EXITS: usize = 16;

/// A member, and one of its outputs or inputs.
pub type Stop = (u8, u16);

/// The direct-path group.
#[derive(Debug)]
pub struct DirectGroup {
    members: Vec<OnceLock<Arc<MemberState>>>,
    /// Between whom packets go.
    pub ways: Vec<Arc<DirectRing>>,
    /// Its number as a holder of slots.
    holder: OnceLock<Option<u16>>,
    inside: OnceLock<Arc<Inside>>,
    /// Who keeps which packet beyond its burst.
    notes: OnceLock<Page>,
    /// The rings between the host and each member that lives.
    rings: Mutex<Vec<Option<[Mapped; 2]>>>,
    boundary: OnceLock<Arc<Mutex<Boundary>>>,
}

/// From an output of one NF to an input of another.
#[derive(Debug)]
pub struct DirectRing {
    /// Its number in the direct-path group.
    pub number: u16,
    /// The writer, and the output.
    pub from: Stop,
    /// The reader, and the input.
    pub to: Stop,
    state: Mutex<WayState>,
    /// Whether there is a writer: 0 for none, 1 for one without metadata, 2 for one with.
    writer: AtomicU8,
    /// Packets that readers took, in all.
    came: AtomicU64,
    /// Packets that stand in it for a reader.
    pending: AtomicU64,
}

#[derive(Debug, Default)]
struct WayState {
    ring: Option<(RingFile<1>, Reader)>,
    /// Of the writer's next process.
    next: Option<RingFile<1>>,
    /// Packets that readers took and the writer's in-flight table still have.
    passed: u64,
    /// Turns without a look.
    unlooked: u8,
}

impl WayState {
    /// Has the host read the next ring, where there is one and the last is of no more use.
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
    /// The same once the writer is gone: all that stands in the ring is the reader's.
    Heir(Witness<Mapped>),
}

/// What a writer's side learns in a turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Packets that the reader took since the last turn.
    pub passed: u64,
    /// Who broke it.
    pub broken: Option<Culprit>,
}

/// Of a process whose packets have metadata, or not.
fn kind(metadata: bool) -> u8 {
    1 + u8::from(metadata)
}

/// The words of a ring in a file of its own.
fn cells(file: &RingFile<1>) -> Mapped {
    let [ring] = file.rings();
    ring
}

impl DirectGroup {
    /// Of so many NFs, with ways between writer with output and reader with input.
    pub fn new(members: usize, ways: &[(Stop, Stop)]) -> DirectGroup {
        let way = |(number, (from, to)): (u16, &(Stop, Stop))| {
            Arc::new(DirectRing {
                number,
                from: *from,
                to: *to,
                state: Mutex::default(),
                writer: AtomicU8::new(0),
                came: AtomicU64::new(0),
                pending: AtomicU64::new(0),
            })
        };
        DirectGroup {
            members: (0..members).map(|_| OnceLock::new()).collect(),
            ways: (0..).zip(ways).map(way).collect(),
            holder: OnceLock::new(),
            inside: OnceLock::new(),
            notes: OnceLock::new(),
            rings: Mutex::new(vec![None; members]),
            boundary: OnceLock::new(),
        }
    }

    /// Notes the state of a member.
    pub fn set_member(&self, member: u8, state: Arc<MemberState>) {
        if let Some(place) = self.members.get(usize::from(member)) {
            let _ = place.set(state);
        }
    }

    /// The state of a member.
    pub fn member(&self, member: u8) -> Option<&MemberState> {
        self.members.get(usize::from(member))?.get().map(Arc::as_ref)
    }

    /// Whether all is there that may be inside it.
    pub fn is_full(&self) -> bool {
        self.inside.get().is_some_and(|inside| inside.room() == 0)
    }

    /// Notes that packets found no room, with the member that has most of them.
    pub fn note_crowded(&self) {
        let members = self.members.iter().filter_map(OnceLock::get);
        if let Some(member) = members.max_by_key(|member| member.activity.held()) {
            member.activity.note_crowded();
        }
    }

    /// Its number as a holder, which `next` gives the first time.
    pub fn holder(&self, next: impl FnOnce() -> Option<u16>) -> Option<u16> {
        *self.holder.get_or_init(next)
    }

    /// What is inside it, of which each NF may have `quota`. All of it together fits into one ring, so that none
    /// is ever full for long.
    pub fn inside(&self, quota: u64) -> Arc<Inside> {
        let most = (quota * self.members.len() as u64).min(u64::from(RING_CLAIMS));
        Arc::clone(self.inside.get_or_init(|| Arc::new(Inside::new(most))))
    }

    /// The notes, for so many slots.
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

    /// Where packets cross into the group's memory, which `make` makes the first time.
    pub fn boundary(&self, make: impl FnOnce() -> Boundary) -> Arc<Mutex<Boundary>> {
        Arc::clone(self.boundary.get_or_init(|| Arc::new(Mutex::new(make()))))
    }

    /// A member's process is there, with these rings; or is gone.
    pub fn set_rings(&self, member: u8, rings: Option<&Rings>) {
        if let Some(place) = lock(&self.rings).get_mut(usize::from(member)) {
            *place = rings.map(|rings| {
                let [to, from, _] = rings.rings();
                [to, from]
            });
        }
    }

    /// Forgets what a dead member noted.
    pub fn forget(&self, dead: u8) {
        let Some(notes) = self.notes.get() else { return };
        for slot in 0..notes.words() {
            let note = notes.load(slot);
            if noted(note).is_some_and(|(member, ..)| member == dead) {
                // Unless somebody who lives notes the slot meanwhile.
                notes.replace(slot, note, 0);
            }
        }
    }

    /// Which slots are in work at others than a dead member, by number: enqueued to them, on the way to them, back from
    /// them, or noted; `taken` is what the dead one had taken from others and not let go of.
    ///
    /// A packet may stand in several rings, because nobody lets go of one before it stands in the next: the place that
    /// it came to by the most hops counts. Others go on working meanwhile, and a packet that moves on is missed where
    /// the next ring was looked at before: once at most for each way that it takes, so that there is one pass more than
    /// there are ways.
    pub fn others(&self, dead: u8, taken: &[Descriptor], in_flight: &InFlightTable) -> Vec<bool> {
        // The hops to the latest place known, and one; whether that is others'.
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
        // What is noted goes into a ring before the note is taken back, and so notes are looked at first; what comes
        // out of a ring is noted before it is let go of, and so they are looked at last, too.
        look_at_notes(&mut mark);
        for pass in 0..=self.ways.len() {
            let mut look = |ring: &Mapped| {
                standing(ring).for_each(|descriptor| {
                    mark(descriptor.slot, descriptor.generation, descriptor.hops, true)
                });
            };
            living().flat_map(|(_, rings)| rings).for_each(|[to, _]| look(to));
            let mut look_along = |way: &Arc<DirectRing>| {
                let state = lock(&way.state);
                let files = state.ring.iter().map(|(file, _)| file).chain(&state.next);
                files.for_each(|file| look(&cells(file)));
            };
            // Ways there and back: in one of the two directions a pass goes along with the packets.
            if pass % 2 == 0 {
                self.ways.iter().for_each(&mut look_along);
            } else {
                self.ways.iter().rev().for_each(&mut look_along);
            }
            living().flat_map(|(_, rings)| rings).for_each(|[_, from]| look(from));
            look_at_notes(&mut mark);
        }
        places.into_iter().map(|(_, others)| others).collect()
    }
}

impl DirectRing {
    /// A new process writes into this ring from now on, packets with metadata or without.
    pub fn begin(&self, file: RingFile<1>, metadata: bool) {
        self.writer.store(kind(metadata), Relaxed);
        let mut state = lock(&self.state);
        state.next = Some(file);
        state.go_on();
    }

    /// The reader's side, once all that was enqueued to it before has reached its ring: the way is the reader's from
    /// now on, where both sides agree about metadata; the ring, and where to begin.
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

    /// Packets that readers took, in all.
    pub fn came(&self) -> u64 {
        self.came.load(Relaxed)
    }

    /// Packets that stand in it for a reader.
    pub fn pending(&self) -> u64 {
        self.pending.load(Relaxed)
    }

    /// The writer's side: has `read` take what there is while the host reads, and looks on while the reader does.
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
            // Both sides' lines have to come from where they work.
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
                // Nobody writes there any more.
                Err(_) => true,
            },
        };
        if is_empty && state.next.is_some() {
            state.ring = None;
            state.go_on();
        }
        turn
    }

    /// The writer is gone for good: has `read` take what nobody else will. What stands in a ring to a reader is that
    /// one's from now on; packets that are, since the last turn.
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
                // Whoever broke it, the reader may have some of what stands there in work.
                Err(_) => Some((file, Reader::Heir(witness))),
            },
            heir => heir,
        };
        if let Some(next) = state.next.take() {
            read(&mut Consumer::new(cells(&next)));
        }
        passed
    }

    /// The reader is gone for good: the host reads from where it stopped. Where the writer is gone, too, what stands
    /// there is lost with the reader. What the reader had taken and not let go of goes into `taken`.
    pub fn take_over(&self, taken: &mut Vec<Descriptor>) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        self.pending.store(0, Relaxed);
        state.ring = match state.ring.take() {
            Some((file, Reader::Nf(mut witness))) => {
                // Of an index that cannot be the last that could counts.
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
