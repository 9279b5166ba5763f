//! How far workers are, and when a run is over: when none of them has anything left to do.

use crate::fusion::CacheCounts;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// How far a worker is, for who watches it.
#[derive(Debug, Default)]
pub struct WorkerActivity {
    /// Turns that did something.
    pub busy_turns: AtomicU64,
    /// Whether the loop has ended.
    pub ended: AtomicBool,
    /// Nanoseconds from the first to the last turn that did something.
    pub busy_ns: AtomicU64,
    /// How much of that passed in turns that did nothing.
    pub waited_ns: AtomicU64,
    /// Fused regions that run as one program now.
    pub fused: AtomicUsize,
    /// What their flow caches have done.
    pub cache: Mutex<CacheCounts>,
}

/// How many workers of a run have nothing left to do. A worker stays until all have: another one may
/// still hand packets over.
#[derive(Debug)]
pub struct Quiescence {
    /// Workers of the run.
    workers: usize,
    /// Those that have nothing left to do.
    pub(crate) done: AtomicUsize,
    /// How often one of them got something to do again.
    pub(crate) woken: AtomicUsize,
    /// Packets on their way from worker to worker, until who took them is through with them.
    under_way: AtomicUsize,
}

impl Quiescence {
    /// For so many workers.
    pub fn new(workers: usize) -> Quiescence {
        let none = || AtomicUsize::new(0);
        Quiescence { workers, done: none(), woken: none(), under_way: none() }
    }

    /// Says that so many packets are about to be handed over.
    pub(crate) fn hand(&self, packets: usize) {
        self.under_way.fetch_add(packets, Ordering::AcqRel);
    }

    /// Says that so many of them were taken, and went as far as they go; or were not handed over after all.
    pub(crate) fn take(&self, packets: usize) {
        self.under_way.fetch_sub(packets, Ordering::AcqRel);
    }

    /// Whether nobody has anything left to do, and nobody will.
    pub(crate) fn is_over(&self) -> bool {
        // All are done at one moment at which nothing is under way: nobody has been woken in between.
        let woken = self.woken.load(Ordering::Acquire);
        self.done.load(Ordering::Acquire) >= self.workers
            && self.under_way.load(Ordering::Acquire) == 0
            && self.woken.load(Ordering::Acquire) == woken
    }
}
