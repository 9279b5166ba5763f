//! The side that takes descriptors out.

use super::sync::{Cells, fence};
use super::{Broken, Descriptor, ahead};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;

/// The consumer of a ring.
#[derive(Debug)]
pub struct Consumer<C> {
    cells: C,
    /// Behind the last descriptor released.
    head: u32,
    /// Behind the last descriptor taken.
    taken: u32,
    /// The producer's tail when it was last read.
    tail: u32,
}

impl<C: Cells> Consumer<C> {
    /// Of a new ring, whose words are all 0.
    pub fn new(cells: C) -> Consumer<C> {
        Consumer::at(cells, 0)
    }

    /// Of a ring without descriptors, whose indices all stand at `index`.
    pub fn at(cells: C, index: u32) -> Consumer<C> {
        Consumer { cells, head: index, taken: index, tail: index }
    }

    /// In the place of a consumer that will never move again, from behind the last descriptor that it took.
    pub(super) fn succeed(cells: C, index: u32) -> Consumer<C> {
        cells.taken().store(index, Relaxed);
        cells.head().store(index, Release);
        cells.asleep().store(0, Relaxed);
        Consumer::at(cells, index)
    }

    /// Takes the next descriptors, as many as there are and `out` has room for. From here on they are this
    /// consumer's to lose; [`Consumer::release`] ends that.
    ///
    /// # Errors
    ///
    /// When the producer's index cannot be.
    #[inline]
    pub fn take(&mut self, out: &mut [Descriptor]) -> Result<usize, Broken> {
        let mut there = self.tail.wrapping_sub(self.taken) as usize;
        if there < out.len() {
            // What the producer wrote stands in front of it.
            let tail = self.cells.tail().load(Acquire);
            // It cannot go back, nor past what is not released yet.
            let most = self.cells.capacity() - self.tail.wrapping_sub(self.head);
            there += ahead(tail, self.tail, most)? as usize;
            self.tail = tail;
        }
        let count = there.min(out.len());
        if count == 0 {
            return Ok(0);
        }
        for (descriptor, at) in out[..count].iter_mut().zip(0u32..) {
            let [first, second] = self.cells.entry(self.taken.wrapping_add(at));
            *descriptor = Descriptor::from_words([first.load(Relaxed), second.load(Relaxed)]);
        }
        self.taken = self.taken.wrapping_add(count as u32);
        self.cells.taken().store(self.taken, Relaxed);
        // Whoever is killed is so between two instructions: in their order this store comes before all that
        // is done to the packets, if the compiler leaves it there.
        compiler_fence(SeqCst);
        Ok(count)
    }

    /// Gives up the oldest `count` descriptors that were taken: each packet stands in another ring by now.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let held = self.taken.wrapping_sub(self.head);
        self.head = self.head.wrapping_add(u32::try_from(count).unwrap_or(held).min(held));
        self.cells.head().store(self.head, Release);
    }

    /// Behind the last descriptor that was taken: where another consumer can go on once all is released.
    pub fn index(&self) -> u32 {
        self.taken
    }

    /// Behind the last descriptor that the producer has published, as it says.
    pub fn published(&self) -> u32 {
        self.cells.tail().load(Acquire)
    }

    /// Descriptors taken and not released.
    pub fn held(&self) -> usize {
        self.taken.wrapping_sub(self.head) as usize
    }

    /// Says that this consumer is about to sleep. True when it may: then whoever publishes next is told to
    /// wake it. False when there is something to take.
    pub fn doze(&mut self) -> bool {
        self.cells.asleep().store(1, Relaxed);
        // See `Producer::publish`.
        fence(SeqCst);
        if self.cells.tail().load(Acquire) == self.taken {
            return true;
        }
        self.wake();
        false
    }

    /// Says that this consumer is awake.
    pub fn wake(&mut self) {
        self.cells.asleep().store(0, Relaxed);
    }

    /// Where the words are.
    pub fn cells(&self) -> &C {
        &self.cells
    }
}

#[cfg(not(loom))]
impl Consumer<super::Mapped> {
    /// Gives up the processor until there is something to take, for so long at most. The kernel wakes a sleeper when
    /// the producer asks it to ([`super::Producer::wake`]).
    pub fn sleep(&mut self, most: std::time::Duration) {
        Consumer::sleep_on(std::iter::once(self), most);
    }

    /// The same on several rings, at most [`MOST_RINGS`]: until there is something to take from one of them.
    pub fn sleep_on<'a>(rings: impl Iterator<Item = &'a mut Self>, most: std::time::Duration) {
        // An array: an NF that rests now and then asks for no memory.
        let (mut array, mut count) = ([const { None }; MOST_RINGS], 0);
        for (place, ring) in array.iter_mut().zip(rings) {
            (*place, count) = (Some(ring), count + 1);
        }
        let rings = &mut array[..count];
        if rings.iter_mut().flatten().all(|ring| ring.doze()) {
            wait(rings, most);
        }
        rings.iter_mut().flatten().for_each(|ring| ring.wake());
    }
}

/// Rings that a consumer can sleep on at a time.
#[cfg(not(loom))]
pub const MOST_RINGS: usize = 64;

/// How long a consumer of several rings sleeps where the kernel cannot wait for all of them.
#[cfg(not(loom))]
const WITHOUT_WAITV: std::time::Duration = std::time::Duration::from_micros(200);

/// Waits until a producer of one of the rings wakes it. Whatever ends the wait, the caller looks again. The words are
/// shared with other processes: no private futexes.
#[cfg(not(loom))]
fn wait(rings: &[Option<&mut Consumer<super::Mapped>>], most: std::time::Duration) {
    use rustix::thread::futex::{self, Flags, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags};
    let Ok(timeout) = Timespec::try_from(most) else { return };
    if let [Some(ring)] = rings {
        let _ = futex::wait(ring.cells.tail(), Flags::empty(), ring.taken, Some(&timeout));
        return;
    }
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let end = now + timeout;
    let mut waits = [const { Wait::new() }; MOST_RINGS];
    for (wait, ring) in waits.iter_mut().zip(rings.iter().flatten()) {
        wait.val = u64::from(ring.taken);
        wait.uaddr = WaitPtr::new(std::ptr::from_ref(ring.cells.tail()).cast_mut().cast());
        wait.flags = WaitFlags::SIZE_U32;
    }
    let count = rings.len().min(MOST_RINGS);
    let flags = WaitvFlags::empty();
    let waited = futex::waitv(&waits[..count], flags, Some(&end), rustix::time::ClockId::Monotonic);
    if waited == Err(rustix::io::Errno::NOSYS) {
        // Before Linux 5.16 nobody waits for several at a time.
        std::thread::sleep(most.min(WITHOUT_WAITV));
    }
}
