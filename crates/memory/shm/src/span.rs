//! Where packet memory lies in this process: the table that every access is checked against.
//!
//! A descriptor carries an address (`buf`) and the number of its region. Neither is believed: the
//! address must lie in the span that the table holds under that number. A span is entered when its
//! memory is mapped, and the memory stays mapped for the life of the process (a dropped region's
//! addresses are backed by anonymous memory instead, see `region`). So an access that passed the
//! check is memory-safe even when the descriptor was stale or made up; whether it speaks of the
//! right packet is the business of the ledger and of `lend::Loans`.
//!
//! Reading the table takes no lock. Each entry's words are independent: an entry seen half changed
//! gives a span that is too small, never one that reaches beyond mapped memory, because an entry is
//! emptied (`slots` = 0) before its address changes.

use crate::descriptor::{BUF_BYTES, META_BYTES};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The most spans that can be known at once. Number 0 is never given: it means "no region".
pub const MAX_SPANS: usize = 256;

struct Entry {
    base: AtomicU64,
    stride: AtomicU32,
    slots: AtomicU32,
    /// Where this process alone keeps descriptors of further segments, one for each slot; 0: in the metadata
    /// blocks.
    chains: AtomicU64,
}

static SPANS: [Entry; MAX_SPANS] = [const {
    Entry {
        base: AtomicU64::new(0),
        stride: AtomicU32::new(0),
        slots: AtomicU32::new(0),
        chains: AtomicU64::new(0),
    }
}; MAX_SPANS];

/// Which numbers are taken, and under which a number is given next. Numbers go round, so that a
/// stale descriptor of a dropped region seldom meets a new region under its number.
static TAKEN: Mutex<([bool; MAX_SPANS], usize)> = Mutex::new(([false; MAX_SPANS], 0));

/// A stretch of slots: `slots` of them, the first at `base`, one every `stride` bytes.
///
/// Memory that is not cut evenly (a driver's own pool) is told as one with a stride of a cache line:
/// then every cache line can be named, and those that start a slot are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub base: u64,
    pub stride: u32,
    pub slots: u32,
}

impl Span {
    /// The span with that number; empty when there is none.
    #[inline(always)]
    pub fn of(region: u16) -> Span {
        let entry = &SPANS[region as usize % MAX_SPANS];
        let slots = entry.slots.load(Ordering::Acquire);
        Span { base: entry.base.load(Ordering::Relaxed), stride: entry.stride.load(Ordering::Relaxed), slots }
    }

    /// Whether the buffer that starts at `buf`, and its metadata block, lie inside.
    #[inline(always)]
    pub fn holds(&self, buf: u64) -> bool {
        // One comparison for both ends: below the first buffer it wraps to a huge number.
        self.slots != 0
            && buf.wrapping_sub(self.base + META_BYTES as u64)
                <= u64::from(self.slots - 1) * u64::from(self.stride)
    }

    /// Address of the buffer of a slot.
    #[inline(always)]
    pub fn buffer(&self, slot: u32) -> Option<u64> {
        (slot < self.slots).then(|| self.base + u64::from(slot) * u64::from(self.stride) + META_BYTES as u64)
    }
}

/// The addresses of a slot's buffer, and of its descriptor while it is a further segment of a chain; `None` when
/// there is no such slot.
pub(crate) fn chained(region: u16, slot: u32) -> Option<(u64, u64)> {
    let buf = Span::of(region).buffer(slot)?;
    let chains = SPANS[region as usize % MAX_SPANS].chains.load(Ordering::Relaxed);
    let in_front = buf - META_BYTES as u64;
    Some((buf, if chains == 0 { in_front } else { chains + u64::from(slot) * META_BYTES as u64 }))
}

/// Enters a stretch of memory and returns its number.
///
/// `bytes` is the whole length: the last slot's buffer ends inside it. `chains` is 0, or has [`META_BYTES`] for
/// each slot.
///
/// Only code that mapped the memory for the life of the process may call this; hence it is not part
/// of the safe interface.
pub(crate) fn enter(base: u64, bytes: u64, stride: u32, chains: u64) -> Option<u16> {
    let last = bytes.checked_sub((META_BYTES + BUF_BYTES) as u64)?;
    let slots = u32::try_from(last / u64::from(stride) + 1).ok()?;
    let mut taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (used, last_given) = &mut *taken;
    let number = (1..MAX_SPANS).map(|step| (*last_given + step) % MAX_SPANS).find(|&n| n != 0 && !used[n])?;
    used[number] = true;
    *last_given = number;
    let entry = &SPANS[number];
    entry.base.store(base, Ordering::Relaxed);
    entry.stride.store(stride, Ordering::Relaxed);
    entry.chains.store(chains, Ordering::Relaxed);
    entry.slots.store(slots, Ordering::Release);
    Some(number as u16)
}

/// Takes a stretch out of the table; its memory stays mapped.
pub(crate) fn leave(number: u16) {
    let mut taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let number = number as usize % MAX_SPANS;
    SPANS[number].slots.store(0, Ordering::Release);
    taken.0[number] = false;
}

/// Makes memory that a driver library mapped known, so that its packets can be read and written.
///
/// Slots are counted in cache lines from `base`; see [`SPAN_STRIDE_BYTES`].
///
/// # Safety
///
/// The memory is mapped readable and writable from `base` for `bytes`, `base` is aligned to 64, and
/// it stays mapped until the process ends.
#[expect(unsafe_code, reason = "vouching for a mapping cannot be checked")]
// SAFETY: nothing is touched here; what the caller vouches for is written above, and used by whoever reads packets.
pub unsafe fn register_foreign(base: u64, bytes: u64) -> Option<u16> {
    enter(base, bytes, SPAN_STRIDE_BYTES, 0)
}

/// Stride of foreign memory: a cache line.
pub const SPAN_STRIDE_BYTES: u32 = 64;
