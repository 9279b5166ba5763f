//! The consumer's side of a ring.

use super::sync::{Cells, fence};
use super::{Broken, Descriptor, ahead};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;

/// The consumer of a ring.
#[derive(Debug)]
pub struct Consumer<C> {
    cells: C,
    /// The index behind the last released descriptor.
    head: u32,
    /// The index behind the last taken descriptor.
    taken: u32,
    /// The producer's tail when it was last read.
    tail: u32,
}

impl<C: Cells> Consumer<C> {
    /// The consumer of a new ring, whose words are all 0.
    pub fn new(cells: C) -> Consumer<C> {
        Consumer::at(cells, 0)
    }

    /// The consumer of an empty ring whose indices are all `index`.
    pub fn at(cells: C, index: u32) -> Consumer<C> {
        Consumer { cells, head: index, taken: index, tail: index }
    }

    /// A consumer in place of a dead one, from behind the last descriptor that the dead one took.
    pub(super) fn succeed(cells: C, index: u32) -> Consumer<C> {
        cells.taken().store(index, Relaxed);
        cells.head().store(index, Release);
        cells.asleep().store(0, Relaxed);
        Consumer::at(cells, index)
    }

    /// Takes the next descriptors, as many as are published and `out` has room for. If this consumer dies,
    /// descriptors that it has taken are lost, until [`Consumer::release`] is called for them.
    ///
    /// # Errors
    ///
    /// If the producer's index is impossible.
    #[inline]
    pub fn take(&mut self, out: &mut [Descriptor]) -> Result<usize, Broken> {
        let mut there = self.tail.wrapping_sub(self.taken) as usize;
        if there < out.len() {
            // The entries that the producer wrote before it published this index are visible.
            let tail = self.cells.tail().load(Acquire);
            // The tail cannot move back, nor further than the capacity beyond the last released descriptor.
            let most = self.cells.capacity() - self.tail.wrapping_sub(self.head);
            there += ahead(tail, self.tail, most)? as usize;
            self.tail = tail;
        }
        let count = there.min(out.len());
        if count == 0 {
            return Ok(0);
        }
        for (descriptor, at) in out[..count].iter_mut().zip(0u32..) {
            *descriptor = self.cells.read(self.taken.wrapping_add(at));
        }
        self.taken = self.taken.wrapping_add(count as u32);
        self.cells.taken().store(self.taken, Relaxed);
        // A process is killed between two instructions. In program order this store precedes every access to
        // the packets, and the fence makes the compiler keep that order.
        compiler_fence(SeqCst);
        Ok(count)
    }

    /// Releases the oldest `count` taken descriptors: their packets are in another ring by now.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let held = self.taken.wrapping_sub(self.head);
        self.head = self.head.wrapping_add(u32::try_from(count).unwrap_or(held).min(held));
        self.cells.head().store(self.head, Release);
    }

    /// The index behind the last taken descriptor, where another consumer can continue once all are released.
    pub fn index(&self) -> u32 {
        self.taken
    }

    /// The index behind the last descriptor that the producer has published.
    pub fn published(&self) -> u32 {
        self.cells.tail().load(Acquire)
    }

    /// Descriptors taken and not released.
    pub fn held(&self) -> usize {
        self.taken.wrapping_sub(self.head) as usize
    }

    /// Announces that this consumer is about to sleep. True if it may: then the producer's next
    /// [`super::Producer::publish`] returns that the consumer must be woken. False if there are descriptors
    /// to take.
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

    /// Announces that this consumer is awake.
    pub fn wake(&mut self) {
        self.cells.asleep().store(0, Relaxed);
    }

    /// The words of the ring.
    pub fn cells(&self) -> &C {
        &self.cells
    }
}

#[cfg(not(loom))]
impl Consumer<super::Mapped> {
    /// Sleeps until there are descriptors to take, at most for the time `most`. The kernel wakes it when the
    /// producer calls [`super::Producer::wake`].
    pub fn sleep(&mut self, most: std::time::Duration) {
        Consumer::sleep_on(std::iter::once(self), most);
    }

    /// The same on several rings, at most [`MOST_RINGS`]: until one of them has descriptors to take.
    pub fn sleep_on<'a>(rings: impl Iterator<Item = &'a mut Self>, most: std::time::Duration) {
        // An array: an NF that sleeps now and then must not allocate.
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

/// The most rings that a consumer can sleep on at a time.
#[cfg(not(loom))]
pub const MOST_RINGS: usize = 64;

/// How long a consumer of several rings sleeps if the kernel cannot wait for several futexes.
#[cfg(not(loom))]
const WITHOUT_WAITV: std::time::Duration = std::time::Duration::from_micros(200);

/// Waits until a producer of one of the rings wakes it. The caller checks the rings after any wake-up. Other
/// processes share the words, so the futexes are not private.
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
        // Before Linux 5.16 there is no wait for several futexes.
        std::thread::sleep(most.min(WITHOUT_WAITV));
    }
}
