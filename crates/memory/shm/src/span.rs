//! Where packet memory lies in this process: the table that every access is checked against.
//!
//! A descriptor carries an address (`buf`) and the number of its region. Neither is believed: the
//! address must lie in the span that the table holds under that number. A span is entered when its
//! memory is mapped, and the memory stays mapped for the life of the process (a dropped region's
//! addresses are backed by anonymous memory instead, see `region`). So an access that passed the
//! check is memory-safe even when the descriptor was stale or made up; whether it speaks of the
//! right packet is the business of the ledger and of `channel::InFlightTable`.
//!
//! Reading the table takes no lock. A span is never changed: the table has a pointer to one, which whoever enters
//! memory publishes, and whoever takes it out replaces by a pointer to the span of nothing. So a reader has one span or
//! another, and never the length of one with the address of the next, also where a number is given again between two
//! of its loads. (Words that are written one by one do not do that, even if the length is set to 0 in between: a
//! reader that has loaded the old length may find the new address. `model` shows both.) Spans are as long-lived as the
//! memory that they speak of: until the process ends. Equal ones are one, so that memory which is given up and taken
//! again does not add to them.
#![expect(unsafe_code, reason = "follows pointers to spans that live for ever; vouches for foreign memory")]

use crate::descriptor::{BUF_BYTES, META_BYTES};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The most spans that can be known at once. Number 0 is never given: it means "no region".
pub const MAX_SPANS: usize = 256;

/// A range of slots: `slots` of them, one every `stride` bytes.
///
/// Memory that is not cut evenly (a driver's own pool) is told as one with a stride of a cache line:
/// then every cache line can be named, and those that start a slot are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub(crate) struct Span {
    /// Where the first slot's buffer lies.
    first: u64,
    /// How far behind it a buffer may begin, and one more; 0 where there is none.
    extent: u64,
    /// Where this process alone keeps descriptors of further segments, one for each slot; 0: in the metadata
    /// blocks.
    chains: u64,
    stride: u32,
    slots: u32,
}

/// The span of numbers that are not given.
static NOTHING: Span = Span { first: 0, extent: 0, chains: 0, stride: 0, slots: 0 };

/// A pointer that any thread reads while another changes it.
trait Pointer {
    fn load(&self) -> *mut Span;
    fn store(&self, span: *mut Span);
}

impl Pointer for AtomicPtr<Span> {
    #[inline(always)]
    fn load(&self) -> *mut Span {
        self.load(Ordering::Acquire)
    }

    fn store(&self, span: *mut Span) {
        self.store(span, Ordering::Release);
    }
}

/// An entry of the table: which span a number means now. Only ever points to spans that live for ever.
struct SpanEntry<P>(P);

impl<P: Pointer> SpanEntry<P> {
    #[inline(always)]
    fn get(&self) -> &'static Span {
        // SAFETY: `set` alone stores here beside the start value, and both are of a `&'static Span`. What that says
        // was written before it was stored.
        unsafe { &*self.0.load() }
    }

    fn set(&self, span: &'static Span) {
        self.0.store(std::ptr::from_ref(span).cast_mut());
    }
}

static SPANS: [SpanEntry<AtomicPtr<Span>>; MAX_SPANS] =
    [const { SpanEntry(AtomicPtr::new((&raw const NOTHING).cast_mut())) }; MAX_SPANS];

/// What is known of numbers and spans.
struct Numbers {
    taken: [bool; MAX_SPANS],
    /// The number that was given last. Numbers go round, so that a stale descriptor of a dropped region seldom meets a
    /// new region under its number.
    last: usize,
    /// Every span that was ever entered.
    spans: Vec<&'static Span>,
}

static NUMBERS: Mutex<Numbers> =
    Mutex::new(Numbers { taken: [false; MAX_SPANS], last: 0, spans: Vec::new() });

impl Span {
    /// The span with that number; empty when there is none.
    #[inline(always)]
    pub fn of(region: u16) -> &'static Span {
        SPANS[region as usize % MAX_SPANS].get()
    }

    /// Whether the buffer that starts at `buf`, and its metadata block, lie inside.
    #[inline(always)]
    pub fn holds(&self, buf: u64) -> bool {
        // One comparison for both ends: below the first buffer it wraps to a huge number.
        buf.wrapping_sub(self.first) < self.extent
    }

    /// Address of the buffer of a slot.
    #[inline(always)]
    pub fn buffer(&self, slot: u32) -> Option<u64> {
        (slot < self.slots).then(|| self.first + u64::from(slot) * u64::from(self.stride))
    }
}

/// The addresses of a slot's buffer, and of its descriptor while it is a further segment of a chain; `None` when
/// there is no such slot.
pub(crate) fn chained(region: u16, slot: u32) -> Option<(u64, u64)> {
    let span = Span::of(region);
    let buf = span.buffer(slot)?;
    let in_front = buf - META_BYTES as u64;
    Some((buf, if span.chains == 0 { in_front } else { span.chains + u64::from(slot) * META_BYTES as u64 }))
}

/// Enters a range of memory and returns its number.
///
/// `bytes` is the whole length: the last slot's buffer ends inside it. `chains` is 0, or has [`META_BYTES`] for
/// each slot.
///
/// Only code that mapped the memory for the life of the process may call this; hence it is not part
/// of the safe interface.
pub(crate) fn enter(base: u64, bytes: u64, stride: u32, chains: u64) -> Option<u16> {
    let last = bytes.checked_sub((META_BYTES + BUF_BYTES) as u64)?;
    let slots = u32::try_from(last / u64::from(stride) + 1).ok()?;
    let extent = u64::from(slots - 1) * u64::from(stride) + 1;
    let span = Span { first: base + META_BYTES as u64, extent, chains, stride, slots };
    let mut numbers = NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Numbers { taken, last, spans } = &mut *numbers;
    let number = (1..MAX_SPANS).map(|step| (*last + step) % MAX_SPANS).find(|&n| n != 0 && !taken[n])?;
    let known = spans.iter().copied().find(|known| **known == span);
    let span: &'static Span = known.unwrap_or_else(|| {
        let span = Box::leak(Box::new(span));
        spans.push(span);
        span
    });
    taken[number] = true;
    *last = number;
    SPANS[number].set(span);
    Some(number as u16)
}

/// Takes a range out of the table; its memory stays mapped.
pub(crate) fn leave(number: u16) {
    let mut numbers = NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let number = number as usize % MAX_SPANS;
    SPANS[number].set(&NOTHING);
    numbers.taken[number] = false;
}

/// Makes memory that a driver library mapped known, so that its packets can be read and written.
///
/// Slots are counted in cache lines from `base`; see [`SPAN_STRIDE_BYTES`].
///
/// # Safety
///
/// The memory is mapped readable and writable from `base` for `bytes`, `base` is aligned to 64, and
/// it stays mapped until the process ends.
// SAFETY: nothing is touched here; what the caller vouches for is written above, and used by whoever reads packets.
pub unsafe fn register_foreign(base: u64, bytes: u64) -> Option<u16> {
    enter(base, bytes, SPAN_STRIDE_BYTES, 0)
}

/// Stride of foreign memory: a cache line.
pub const SPAN_STRIDE_BYTES: u32 = 64;

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Regions of two shapes take turns under all numbers. What readers see meanwhile is for `model`.
    #[test]
    fn a_number_means_the_span_that_was_entered_last() {
        const STRIDE: u32 = 64;
        let shapes = [(1u64 << 40, 3u32), (2 << 40, 40_000)];
        let before = NUMBERS.lock().expect("nobody panicked").spans.len();
        for round in 0..2 * MAX_SPANS {
            let (base, slots) = shapes[round % 2];
            let bytes = u64::from(slots - 1) * u64::from(STRIDE) + (META_BYTES + BUF_BYTES) as u64;
            // Nobody reads bytes there: these are addresses.
            let number = enter(base, bytes, STRIDE, base + 64).expect("a number");
            let (span, first) = (Span::of(number), base + META_BYTES as u64);
            let last = first + u64::from((slots - 1) * STRIDE);
            assert!(span.holds(first) && span.holds(last));
            assert!(
                !span.holds(first - 1) && !span.holds(last + 1) && !span.holds(0) && !span.holds(u64::MAX)
            );
            assert_eq!((span.buffer(slots - 1), span.buffer(slots)), (Some(last), None));
            assert_eq!(chained(number, 1), Some((first + 64, base + 64 + META_BYTES as u64)));
            leave(number);
            let nothing = Span::of(number);
            assert!(!nothing.holds(first) && !nothing.holds(0) && !nothing.holds(u64::MAX));
            assert_eq!((nothing.buffer(0), chained(number, 0)), (None, None));
            // Whoever still has the span goes on with it.
            assert_eq!(span.buffer(slots - 1), Some(last));
        }
        let after = NUMBERS.lock().expect("nobody panicked").spans.len();
        assert_eq!(after - before, shapes.len(), "equal spans are one");
    }
}
