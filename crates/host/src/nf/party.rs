//! A party: NFs of one trust group and one worker that hand packets to each other, with no hop through the host.
//!
//! Between two of them lies a *way*: a ring that the one writes and the other reads. The host made it, and looks on
//! ([`Witness`]): packets count as the next NF's once that has taken them. While the reader is not there, the host reads
//! in its place, and what comes goes the way that it would go without a ring. A writer's ring lives as long as the
//! writer; a new one is read once the old is empty.
//!
//! To the books of loans a party is one holder. Who of it has a packet when one of them dies is known from the rings:
//! a packet that another has, or that lies in a ring to another, is not the dead one's ([`Party::others`]).

use super::border::Border;
use super::memory::RING_CLAIMS;
use super::seat::{Rings, Seat};
use nf::message::noted;
use shm::lend::{Inside, Loans};
use shm::page::Page;
use shm::ring::{Claim, Consumer, Culprit, Mapped, RingFile, Witness, standing};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// The most NFs of a party.
pub const MOST_MEMBERS: usize = 64;
/// Turns of the worker between two looks at a ring that is others'.
const UNLOOKED: u8 = 4;
/// The most ways from one NF: each comes with a descriptor.
pub const MOST_EXITS: usize = 16;

/// A member, and one of its outputs or inputs.
pub type Stop = (u8, u16);

/// The party.
#[derive(Debug)]
pub struct Party {
    seats: Vec<OnceLock<Weak<Seat>>>,
    /// Between whom packets go.
    pub ways: Vec<Arc<Way>>,
    /// Its number as a holder of slots.
    holder: OnceLock<Option<u16>>,
    inside: OnceLock<Arc<Inside>>,
    /// Who keeps which packet beyond its burst.
    notes: OnceLock<Page>,
    /// The rings between the host and each member that lives.
    rings: Mutex<Vec<Option<[Mapped; 2]>>>,
    border: OnceLock<Arc<Mutex<Border>>>,
}

/// From an output of one NF to an input of another.
#[derive(Debug)]
pub struct Way {
    /// Its number in the party.
    pub number: u16,
    /// The writer, and the output.
    pub from: Stop,
    /// The reader, and the input.
    pub to: Stop,
    state: Mutex<WayState>,
    /// Whether there is a reader: 0 for none, 1 for one without metadata, 2 for one with.
    reader: AtomicU8,
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
    /// Packets that readers took and the writer's books still have.
    passed: u64,
    /// Turns without a look.
    unlooked: u8,
}

#[derive(Debug)]
enum Reader {
    Host(Consumer<Mapped>),
    Nf(Witness<Mapped>),
    /// The same once the writer is gone: all that stands in the ring is the reader's.
    Heir(Witness<Mapped>),
}

/// What a writer's side is to do.
#[derive(Debug, Default)]
pub struct Turn {
    /// Packets that the reader took since the last turn.
    pub passed: u64,
    /// A ring that is the reader's from now on, and where it begins.
    pub hand_over: Option<(OwnedFd, u32)>,
    /// Who broke it.
    pub broken: Option<Culprit>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The words of a ring in a file of its own.
fn cells(file: &RingFile<1>) -> Mapped {
    let [ring] = file.rings();
    ring
}

impl Party {
    /// Of so many NFs, with ways between writer with output and reader with input.
    pub fn new(members: usize, ways: &[(Stop, Stop)]) -> Party {
        let way = |(number, (from, to)): (u16, &(Stop, Stop))| {
            Arc::new(Way {
                number,
                from: *from,
                to: *to,
                state: Mutex::default(),
                reader: AtomicU8::new(0),
                came: AtomicU64::new(0),
                pending: AtomicU64::new(0),
            })
        };
        Party {
            seats: (0..members).map(|_| OnceLock::new()).collect(),
            ways: (0..).zip(ways).map(way).collect(),
            holder: OnceLock::new(),
            inside: OnceLock::new(),
            notes: OnceLock::new(),
            rings: Mutex::new(vec![None; members]),
            border: OnceLock::new(),
        }
    }

    /// Notes the seat of a member.
    pub fn seat_member(&self, member: u8, seat: &Arc<Seat>) {
        if let Some(place) = self.seats.get(usize::from(member)) {
            let _ = place.set(Arc::downgrade(seat));
        }
    }

    /// The seat of a member.
    pub fn seat(&self, member: u8) -> Option<Arc<Seat>> {
        self.seats.get(usize::from(member))?.get()?.upgrade()
    }

    /// Its number as a holder, which `next` gives the first time.
    pub fn holder(&self, next: impl FnOnce() -> Option<u16>) -> Option<u16> {
        *self.holder.get_or_init(next)
    }

    /// What is inside it, of which each NF may have `quota`. All of it together fits into one ring, so that none
    /// is ever full for long.
    pub fn inside(&self, quota: u64) -> Arc<Inside> {
        let most = (quota * self.seats.len() as u64).min(u64::from(RING_CLAIMS));
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
    pub fn border(&self, make: impl FnOnce() -> Border) -> Arc<Mutex<Border>> {
        Arc::clone(self.border.get_or_init(|| Arc::new(Mutex::new(make()))))
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
        let is_own = |slot: &usize| noted(notes.load(*slot)).is_some_and(|(member, ..)| member == dead);
        (0..notes.words()).filter(is_own).for_each(|slot| notes.store(slot, 0));
    }

    /// Which slots are in work at others than a dead member, by number: lent to them, on the way to them, back from
    /// them, or noted; `taken` is what the dead one had taken from others and not let go of.
    ///
    /// A packet may stand in several rings, because nobody lets go of one before it stands in the next: the place that
    /// it came to by the most hops counts. Others go on working meanwhile. Rings are looked at in the order that
    /// packets take, and twice, so that what moves on is found where it goes.
    pub fn others(&self, dead: u8, taken: &[Claim], loans: &Loans) -> Vec<bool> {
        // The hops to the latest place known, and one; whether that is others'.
        let mut places = vec![(0, false); loans.slots() as usize];
        let mut mark = |slot: u32, generation: u32, hops: u8, others: bool| {
            if let Some(place) = places.get_mut(slot as usize)
                && loans.is_in_work(slot, generation)
            {
                *place = (*place).max((u16::from(hops) + 1, others));
            }
        };
        taken.iter().for_each(|claim| mark(claim.slot, claim.generation, claim.hops, false));
        let rings = lock(&self.rings).clone();
        let living = || rings.iter().enumerate().filter(|(at, _)| *at != usize::from(dead));
        for _ in 0..2 {
            let mut look = |ring: &Mapped| {
                standing(ring).for_each(|claim| mark(claim.slot, claim.generation, claim.hops, true));
            };
            living().flat_map(|(_, rings)| rings).for_each(|[to, _]| look(to));
            for way in &self.ways {
                let state = lock(&way.state);
                let files = state.ring.iter().map(|(file, _)| file).chain(&state.next);
                files.for_each(|file| look(&cells(file)));
            }
            living().flat_map(|(_, rings)| rings).for_each(|[_, from]| look(from));
        }
        if let Some(notes) = self.notes.get() {
            for slot in 0..loans.slots() {
                if let Some((member, generation, hops)) = noted(notes.load(slot as usize)) {
                    mark(slot, generation, hops, member != dead);
                }
            }
        }
        places.into_iter().map(|(_, others)| others).collect()
    }
}

impl Way {
    /// A new process writes into this ring from now on.
    pub fn begin(&self, file: RingFile<1>) {
        let mut state = lock(&self.state);
        if state.ring.is_none() {
            let reader = Reader::Host(Consumer::new(cells(&file)));
            state.ring = Some((file, reader));
        } else {
            state.next = Some(file);
        }
    }

    /// There is a reader from now on, and whether packets come to it with metadata; or none.
    pub fn set_reader(&self, metadata: Option<bool>) {
        self.reader.store(metadata.map_or(0, |metadata| 1 + u8::from(metadata)), Relaxed);
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
    /// `metadata` says whether the writer's packets have such, where it lives.
    pub fn turn(&self, metadata: Option<bool>, read: impl FnOnce(&mut Consumer<Mapped>)) -> Turn {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let mut turn = Turn { passed: std::mem::take(&mut state.passed), ..Turn::default() };
        let Some((file, reader)) = &mut state.ring else { return turn };
        let is_empty = match reader {
            Reader::Host(consumer) => {
                read(consumer);
                let wanted = metadata.map(|metadata| 1 + u8::from(metadata));
                let index = consumer.index();
                if wanted == Some(self.reader.load(Relaxed)) && state.next.is_none() && consumer.held() == 0 {
                    let copy = file.as_fd().try_clone_to_owned().ok();
                    turn.hand_over = copy.map(|copy| (copy, index));
                    if turn.hand_over.is_some() {
                        *reader = Reader::Nf(Witness::at(cells(file), index));
                    }
                    return turn;
                }
                index == consumer.published()
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
        if is_empty && let Some(next) = state.next.take() {
            let reader = Reader::Host(Consumer::new(cells(&next)));
            state.ring = Some((next, reader));
        }
        turn
    }

    /// The writer is gone for good: has `read` take what nobody else will. What stands in a ring to a reader is that
    /// one's from now on; packets that are, since the last turn.
    pub fn end(&self, mut read: impl FnMut(&mut Consumer<Mapped>)) -> u64 {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let mut passed = std::mem::take(&mut state.passed);
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
                // Where it broke the ring, nobody has what stands there.
                Err(Culprit::Producer) => None,
                Err(Culprit::Consumer) => Some((file, Reader::Heir(witness))),
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
    pub fn take_over(&self, taken: &mut Vec<Claim>) {
        self.set_reader(None);
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
        if state.ring.is_none()
            && let Some(next) = state.next.take()
        {
            let reader = Reader::Host(Consumer::new(cells(&next)));
            state.ring = Some((next, reader));
        }
    }

    fn see(&self, passed: u64, pending: u64) {
        self.came.store(self.came() + passed, Relaxed);
        self.pending.store(pending, Relaxed);
    }
}
