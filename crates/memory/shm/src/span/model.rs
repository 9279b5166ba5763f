//! Readers of the table while a number is reused, under every interleaving: run by `scripts/model`.

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

impl Pointer for loom::sync::atomic::AtomicPtr<Span> {
    fn load(&self) -> *mut Span {
        self.load(Ordering::Acquire)
    }

    fn store(&self, span: *mut Span) {
        self.store(span, Ordering::Release);
    }
}

const fn span(first: u64, slots: u32) -> Span {
    Span { first, extent: (slots as u64 - 1) * 64 + 1, chains: first + 1, stride: 64, slots }
}

/// A region's span, and the shorter span of the next region with the same number.
static LONG: Span = span(1 << 20, 1000);
static SHORT: Span = span(2 << 20, 1);

#[test]
fn a_reader_has_one_span_or_the_other() {
    loom::model(|| {
        let start = std::ptr::from_ref(&LONG).cast_mut();
        let entry = Arc::new(SpanEntry(loom::sync::atomic::AtomicPtr::new(start)));
        let writer = {
            let entry = entry.clone();
            thread::spawn(move || {
                entry.set(&NOTHING);
                entry.set(&SHORT);
            })
        };
        let seen = *entry.get();
        assert!([LONG, NOTHING, SHORT].contains(&seen), "{seen:?}");
        writer.join().expect("ends");
        assert_eq!(*entry.get(), SHORT);
    });
}

/// An earlier version of the table: the words of a span, written one by one. The length is cleared first and
/// set last.
struct Words {
    first: AtomicU64,
    slots: AtomicU64,
}

/// That version relied on a half-written entry being too short. The assumption fails if the number is reused
/// between the reader's two loads.
#[test]
#[should_panic(expected = "reaches beyond")]
fn words_that_are_written_one_by_one_make_a_span_that_there_never_was() {
    loom::model(|| {
        let words = Words { first: AtomicU64::new(LONG.first), slots: AtomicU64::new(LONG.slots.into()) };
        let words = Arc::new(words);
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                words.slots.store(0, Ordering::Release);
                words.first.store(SHORT.first, Ordering::Relaxed);
                words.slots.store(SHORT.slots.into(), Ordering::Release);
            })
        };
        let slots = words.slots.load(Ordering::Acquire);
        let first = words.first.load(Ordering::Relaxed);
        let most = if first == SHORT.first { SHORT.slots } else { LONG.slots };
        assert!(slots <= u64::from(most), "{slots} slots from {first} reaches beyond what is mapped");
        writer.join().expect("ends");
    });
}
