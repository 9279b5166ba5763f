//! Where a worker's cycles go: element by element, by the time stamp counter, while somebody asks for it.
//!
//! A worker is at one [`Stage`] at any moment. With probes it reads the counter whenever it goes from one to another,
//! once a burst and not once a packet, and charges what has passed to the stage that it leaves. So each stage has its
//! own cycles only: those of the elements behind it are theirs, and all stages together are all that the worker did.
//!
//! A reading costs something itself. Between two readings lies the cost of one, which [`Probes::cost`] says; who wants
//! to know what a stage costs subtracts it for each of [`StageCycles::readings`].
//!
//! Without probes nothing of this runs. The loop of a worker exists twice, and the one without has no trace of it
//! ([`crate::worker`]). Packets that are pushed find their way here by a look that every burst has taken before there
//! were probes: whether an element has a detour ([`crate::graph::Node::has_detour`]).
//!
//! The processor may still be at the end of one stage when it reads the counter for the next: what lies within a
//! hundred cycles of a reading may be charged to the neighbour. Figures of stages are as good as that, divided by the
//! burst.

use crate::clock;
use crate::counters::Count;
use crate::fusion::FusedRegion;
use crate::graph::Node;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What takes longer between two readings is an interruption: something else had the core.
const INTERRUPTION_NS: f64 = 500_000.0;
/// Readings that tell what one costs, and how often that is found out: the least is it.
const CALIBRATION: (u32, u32) = (2_000, 8);

/// What a worker is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Its own loop: the clock, timers, housekeeping, requests.
    Turn,
    /// Tasks that found nothing to do, and turns in which none did.
    Waiting,
    /// Packets that are pushed into an element or pulled out of it, and on to the next.
    Element(usize),
    /// An element's task or timer: what fetches packets from a port, a queue, an NF in a process.
    Task(usize),
    /// Packets that run through the program of a fused region.
    Program(usize),
}

/// What a worker was at one stage, since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageCycles {
    /// The stage.
    pub stage: Stage,
    /// Ticks of the time stamp counter, readings included.
    pub cycles: u64,
    /// Readings whose cost is part of that.
    pub readings: u64,
}

/// The probes of a worker, for who switches and reads them.
#[derive(Debug, Default)]
pub struct Probes {
    pub(crate) wanted: AtomicBool,
    pub(crate) is_on: AtomicBool,
    nodes: usize,
    /// The elements of each fused region.
    programs: Vec<Vec<usize>>,
    /// Cycles and readings.
    counts: Vec<(Count, Count)>,
    interrupted: Count,
    /// The bits of a number.
    cost: AtomicU64,
}

impl Probes {
    /// For a worker of that graph.
    pub fn new(nodes: &[Node], regions: &[FusedRegion]) -> Probes {
        let programs: Vec<Vec<usize>> = regions.iter().map(|region| region.parts.clone()).collect();
        let stages = place(nodes.len(), Stage::Program(programs.len()));
        let counts = (0..stages).map(|_| Default::default()).collect();
        Probes { nodes: nodes.len(), programs, counts, ..Probes::default() }
    }

    /// Asks for probes, or for none; the worker follows within milliseconds.
    pub fn set(&self, is_wanted: bool) {
        self.wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Whether the worker has them now.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// What was found at all stages.
    pub fn stages(&self) -> Vec<StageCycles> {
        let counts = self.counts.iter().enumerate();
        let found = counts.map(|(at, (cycles, readings))| StageCycles {
            stage: stage(self.nodes, at),
            cycles: cycles.get(),
            readings: readings.get(),
        });
        found.collect()
    }

    /// The elements of a fused region, by their places in the graph.
    pub fn program(&self, region: usize) -> &[usize] {
        self.programs.get(region).map_or(&[], Vec::as_slice)
    }

    /// Cycles in which something else had the core, which are no stage's.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.get()
    }

    /// What a reading costs, in cycles, found out when the probes were switched on.
    pub fn cost(&self) -> f64 {
        f64::from_bits(self.cost.load(Ordering::Relaxed))
    }
}

pub(crate) const TURN: usize = 0;
pub(crate) const WAITING: usize = 1;
const FIRST: usize = 2;

/// Where a stage's counts stand.
pub(crate) fn place(nodes: usize, stage: Stage) -> usize {
    match stage {
        Stage::Turn => TURN,
        Stage::Waiting => WAITING,
        Stage::Element(node) => FIRST + 2 * node,
        Stage::Task(node) => FIRST + 2 * node + 1,
        Stage::Program(region) => FIRST + 2 * nodes + region,
    }
}

fn stage(nodes: usize, place: usize) -> Stage {
    match place {
        TURN => Stage::Turn,
        WAITING => Stage::Waiting,
        of if of >= FIRST + 2 * nodes => Stage::Program(of - FIRST - 2 * nodes),
        of if (of - FIRST).is_multiple_of(2) => Stage::Element((of - FIRST) / 2),
        of => Stage::Task((of - FIRST) / 2),
    }
}

fn ticks() -> u64 {
    clock::ticks().unwrap_or(0)
}

/// The worker's side.
pub(crate) struct Probe {
    probes: Arc<Probes>,
    last: u64,
    /// The place of the stage that it is at.
    pub(crate) at: usize,
    /// Cycles that are an interruption.
    longest: u64,
}

impl Probe {
    /// Begins, and finds out what a reading costs.
    pub(crate) fn new(told: &Arc<Probes>) -> Probe {
        let longest = (clock::cycles_per_ns().unwrap_or(1.0) * INTERRUPTION_NS) as u64;
        let mut cost = f64::INFINITY;
        for _ in 0..CALIBRATION.1 {
            // On counts of its own: the worker's would have them twice.
            let counts = (0..FIRST).map(|_| Default::default()).collect();
            let mut probe = Box::new(Probe {
                probes: Arc::new(Probes { counts, ..Probes::default() }),
                last: ticks(),
                at: TURN,
                longest,
            });
            let start = ticks();
            for at in 0..CALIBRATION.0 {
                probe.switch(std::hint::black_box(at as usize & 1));
            }
            cost = cost.min((ticks() - start) as f64 / f64::from(CALIBRATION.0));
        }
        told.cost.store(cost.to_bits(), Ordering::Relaxed);
        Probe { probes: Arc::clone(told), last: ticks(), at: TURN, longest }
    }

    /// Goes on to a stage; the one before.
    #[inline(never)]
    pub(crate) fn switch(&mut self, to: usize) -> usize {
        let now = ticks();
        let passed = now.saturating_sub(self.last);
        self.last = now;
        if let Some((cycles, readings)) = self.probes.counts.get(self.at) {
            readings.add(1);
            match passed > self.longest {
                false => cycles.add(passed as usize),
                true => self.probes.interrupted.add(passed as usize),
            }
        }
        std::mem::replace(&mut self.at, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_a_place_of_its_own() {
        let all = [Stage::Turn, Stage::Waiting, Stage::Element(0), Stage::Task(0), Stage::Element(2)];
        let more = [Stage::Task(2), Stage::Program(0), Stage::Program(1)];
        let places: Vec<usize> = all.iter().chain(&more).map(|stage| place(3, *stage)).collect();
        assert_eq!(places, [0, 1, 2, 3, 6, 7, 8, 9]);
        for (one, at) in all.iter().chain(&more).zip(places) {
            assert_eq!(stage(3, at), *one);
        }
    }

    #[test]
    fn what_passes_is_charged_to_the_stage_that_is_left() {
        let probes =
            Arc::new(Probes { counts: (0..4).map(|_| Default::default()).collect(), ..Probes::default() });
        let mut probe = Probe::new(&probes);
        assert!(
            clock::ticks().is_none() || (probes.cost() > 1.0 && probes.cost() < 100_000.0),
            "{}",
            probes.cost()
        );
        let wait = |ticks: u64| {
            let start = super::ticks();
            while clock::ticks().is_some() && super::ticks() - start < ticks {
                std::hint::spin_loop();
            }
        };
        let (own, other) = (2, 3);
        probe.switch(own);
        wait(20_000);
        assert_eq!(probe.switch(other), own);
        wait(60_000);
        assert_eq!(probe.switch(own), other);
        wait(20_000);
        probe.switch(TURN);
        let at = |place: usize| (probes.counts[place].0.get(), probes.counts[place].1.get());
        assert_eq!((at(own).1, at(other).1), (2, 1));
        if clock::ticks().is_some() && probes.interrupted() == 0 {
            assert!(at(own).0 >= 40_000 && at(other).0 >= 60_000, "{:?} {:?}", at(own), at(other));
        }
    }
}
