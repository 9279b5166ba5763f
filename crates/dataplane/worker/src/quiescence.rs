//! The workers' progress, and the end of a run: the moment at which no worker has anything left to do.

use crate::fusion::CacheCounts;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A worker's progress, for other threads to read.
#[derive(Debug, Default)]
pub struct WorkerActivity {
    /// Whether the loop has ended.
    pub ended: AtomicBool,
    /// Nanoseconds from the first to the last turn that did something.
    pub busy_ns: AtomicU64,
    /// Nanoseconds of that in turns without work.
    pub waited_ns: AtomicU64,
    /// Number of its fused regions that run as one program now.
    pub fused: AtomicUsize,
    /// The statistics of their flow caches.
    pub cache: Mutex<CacheCounts>,
}

/// The number of workers of a run that have nothing left to do. A worker stays until all are done: another
/// one may still hand packets over.
#[derive(Debug)]
pub struct Quiescence {
    /// Number of workers of the run.
    workers: usize,
    /// Workers that have nothing left to do.
    pub(crate) done: AtomicUsize,
    /// How often one of them became busy again.
    pub(crate) woken: AtomicUsize,
    /// Packets in handoff queues or being processed by the worker that took them.
    under_way: AtomicUsize,
    /// Whether the run is ended by a worker once nothing is left to do: scripts have to execute their rest,
    /// and handlers have to be read before.
    is_held: AtomicBool,
    /// Whether the run goes on although nothing is left to do, or its NFs request the end.
    is_kept_open: AtomicBool,
}

impl Quiescence {
    /// The state of a run with this number of workers.
    pub fn new(workers: usize) -> Quiescence {
        let none = || AtomicUsize::new(0);
        let (is_held, is_kept_open) = (AtomicBool::new(false), AtomicBool::new(false));
        Quiescence { workers, done: none(), woken: none(), under_way: none(), is_held, is_kept_open }
    }

    /// Adds packets that are about to be handed over.
    pub(crate) fn hand(&self, packets: usize) {
        self.under_way.fetch_add(packets, Ordering::AcqRel);
    }

    /// Subtracts packets whose processing is complete, or that were not handed over after all.
    pub(crate) fn take(&self, packets: usize) {
        self.under_way.fetch_sub(packets, Ordering::AcqRel);
    }

    /// From now on a worker ends the run.
    pub fn hold(&self) {
        self.is_held.store(true, Ordering::Release);
    }

    /// Keeps the run from ending by itself or at the request of its NFs, for a bounded time.
    pub fn keep_open(&self, keeps: bool) {
        self.is_kept_open.store(keeps, Ordering::Release);
    }

    /// Whether the run must not end by itself.
    pub(crate) fn is_kept_open(&self) -> bool {
        self.is_kept_open.load(Ordering::Acquire)
    }

    /// Whether a worker ends the run.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    /// Whether the run is over by itself.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_held() && self.is_dry()
    }

    /// Whether all workers are done and none can become busy again.
    pub(crate) fn is_dry(&self) -> bool {
        // All are done at one moment at which no packet is under way, and none became busy in between.
        let woken = self.woken.load(Ordering::Acquire);
        self.done.load(Ordering::Acquire) >= self.workers
            && self.under_way.load(Ordering::Acquire) == 0
            && self.woken.load(Ordering::Acquire) == woken
    }
}
