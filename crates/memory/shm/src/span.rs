//! The table of spans: the packet memory of this process, against which every access is checked.
//!
//! A descriptor contains an address (`buf`) and the number of its region. Neither is trusted: the address
//! must be in the span that the table has for that number. A span is entered when its memory is mapped, and
//! the memory stays mapped for the life of the process (the addresses of a dropped region are backed by
//! anonymous memory instead, see `packet_region`). So an access that passed the check is memory-safe even if
//! the descriptor is stale or invalid. Whether it names the right packet is checked by the ledger and by
//! `channel::InFlightTable`.
//!
//! Reading the table takes no lock. A span never changes. The table has a pointer to a span for each number;
//! entering memory replaces it by a pointer to another span, and removing memory replaces it by a pointer to
//! the empty span. So a reader gets one span or another, and never the length of one with the address of the
//! next, also if a number is reused between two of its loads. (Words that are written one by one do not
//! ensure that, even if the length is set to 0 in between: a reader that has loaded the old length may then
//! load the new address. `model` shows both.) Spans live as long as the memory that they describe: until the
//! process ends. Equal spans are stored once, so that memory which is released and reused needs no further
//! one.
#![expect(unsafe_code, reason = "follows pointers to spans that live for ever; vouches for foreign memory")]

use crate::descriptor::{BUF_BYTES, META_BYTES};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The most spans in the table. Number 0 is never used: it means "no region".
pub const MAX_SPANS: usize = 256;

/// A range of slots: `slots` of them, one every `stride` bytes.
///
/// Memory that is not divided evenly (a driver's own pool) is described with a stride of a cache line: then
/// every cache line has a slot number, and only those at which a slot starts are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
pub(crate) struct Span {
    /// Address of the first slot's buffer.
    first: u64,
    /// One more than the largest distance of a buffer from it; 0 for the empty span.
    extent: u64,
    /// Address of the private descriptors of further segments, one for each slot; 0: they are in the metadata
    /// blocks.
    chains: u64,
    stride: u32,
    slots: u32,
}

/// The span of unused numbers.
static NOTHING: Span = Span { first: 0, extent: 0, chains: 0, stride: 0, slots: 0 };

/// A pointer that threads read while another thread changes it.
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

/// An entry of the table: the span that a number has now. It only ever points to spans that live until the
/// process ends.
struct SpanEntry<P>(P);

impl<P: Pointer> SpanEntry<P> {
    #[inline(always)]
    fn get(&self) -> &'static Span {
        // SAFETY: only `set` stores here, beside the start value, and both are pointers to a `&'static Span`.
        // The span was written before its pointer was stored.
        unsafe { &*self.0.load() }
    }

    fn set(&self, span: &'static Span) {
        self.0.store(std::ptr::from_ref(span).cast_mut());
    }
}

static SPANS: [SpanEntry<AtomicPtr<Span>>; MAX_SPANS] =
    [const { SpanEntry(AtomicPtr::new((&raw const NOTHING).cast_mut())) }; MAX_SPANS];

/// The state of all numbers and spans.
struct Numbers {
    taken: [bool; MAX_SPANS],
    /// The number that was used last. Numbers are used in turn, so that a stale descriptor of a dropped
    /// region seldom meets a new region with the same number.
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

    /// Whether the buffer that starts at `buf` and its metadata block are inside the span.
    #[inline(always)]
    pub fn holds(&self, buf: u64) -> bool {
        // One comparison for both limits: an address below the first buffer wraps to a huge number.
        buf.wrapping_sub(self.first) < self.extent
    }

    /// Address of the buffer of a slot.
    #[inline(always)]
    pub fn buffer(&self, slot: u32) -> Option<u64> {
        (slot < self.slots).then(|| self.first + u64::from(slot) * u64::from(self.stride))
    }
}

/// The addresses of a slot's buffer and of the slot's descriptor as a further segment of a chain; `None` if
/// there is no such slot.
pub(crate) fn chained(region: u16, slot: u32) -> Option<(u64, u64)> {
    let span = Span::of(region);
    let buf = span.buffer(slot)?;
    let in_front = buf - META_BYTES as u64;
    Some((buf, if span.chains == 0 { in_front } else { span.chains + u64::from(slot) * META_BYTES as u64 }))
}

/// Enters a range of memory and returns its number.
///
/// `bytes` is the whole length: the last slot's buffer ends inside it. `chains` is 0, or the address of
/// [`META_BYTES`] for each slot.
///
/// Only code that mapped the memory for the life of the process may call this; so it is not part of the safe
/// interface.
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

/// Removes a range from the table; its memory stays mapped.
pub(crate) fn leave(number: u16) {
    let mut numbers = NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let number = number as usize % MAX_SPANS;
    SPANS[number].set(&NOTHING);
    numbers.taken[number] = false;
}

/// Registers memory that a driver library mapped, so that its packets can be read and written.
///
/// Slots are counted in cache lines from `base`; see [`SPAN_STRIDE_BYTES`].
///
/// # Safety
///
/// The memory is mapped readable and writable from `base` for `bytes`, `base` is aligned to 64, and
/// it stays mapped until the process ends.
// SAFETY: nothing is touched here. The caller guarantees the conditions above; accesses to packets rely on
// them.
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

    /// Regions of two shapes use all numbers in turn. `model` tests concurrent readers.
    #[test]
    fn a_number_means_the_span_that_was_entered_last() {
        const STRIDE: u32 = 64;
        let shapes = [(1u64 << 40, 3u32), (2 << 40, 40_000)];
        let before = NUMBERS.lock().expect("nobody panicked").spans.len();
        for round in 0..2 * MAX_SPANS {
            let (base, slots) = shapes[round % 2];
            let bytes = u64::from(slots - 1) * u64::from(STRIDE) + (META_BYTES + BUF_BYTES) as u64;
            // The test accesses no bytes: these are only addresses.
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
            // A reader that still has the span continues to use it.
            assert_eq!(span.buffer(slots - 1), Some(last));
        }
        let after = NUMBERS.lock().expect("nobody panicked").spans.len();
        assert_eq!(after - before, shapes.len(), "equal spans are one");
    }
}
