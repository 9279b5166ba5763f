//! Measures a worker's cycles element by element with the time stamp counter, while profiling is requested.
//!
//! A worker is at one [`Stage`] at any moment. With probes it reads the counter at each change of stage, once
//! a burst and not once a packet, and adds the elapsed cycles to the stage that it leaves. So a stage's
//! cycles do not include those of the elements downstream, and the sum of all stages is the worker's whole
//! time.
//!
//! A reading has a cost of its own: one such cost ([`Probes::cost`]) lies between two readings. The net
//! cycles of a stage are its cycles less this cost for each of [`StageCycles::readings`].
//!
//! Without probes none of this code runs. The worker's loop is compiled twice, and the variant without probes
//! does not contain it ([`crate::worker`]). Pushed packets enter the probes by a check that each burst needs
//! anyway: whether a node has a hook in front of its element ([`crate::graph::Node::is_hooked`]).
//!
//! The processor may still execute the end of one stage when it reads the counter for the next. Work within a
//! hundred cycles of a reading may therefore be added to the neighbouring stage. The error of a stage's
//! figure is that, divided by the burst.

use crate::clock;
use crate::counters::Count;
use crate::fusion::FusedRegion;
use crate::graph::Node;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A longer time between two readings is an interruption: the core ran something else.
const INTERRUPTION_NS: f64 = 500_000.0;
/// Readings of one calibration, and the number of calibrations; the smallest result is the cost.
const CALIBRATION: (u32, u32) = (2_000, 8);

/// The activity of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Its own loop: the clock, timers, housekeeping, requests.
    Turn,
    /// Tasks that found nothing to do, and turns in which none did.
    Waiting,
    /// Packets that are pushed into an element or pulled out of it.
    Element(usize),
    /// An element's task or timer: for example, one that receives packets from a port, a queue or an NF in a
    /// process.
    Task(usize),
    /// Packets that run through the program of a fused region.
    Program(usize),
}

/// The totals of one stage since the worker's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageCycles {
    /// The stage.
    pub stage: Stage,
    /// Ticks of the time stamp counter, readings included.
    pub cycles: u64,
    /// Readings of the counter, whose cost is part of `cycles`.
    pub readings: u64,
}

/// The probes of a worker, for the threads that switch and read them.
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
    /// The bits of an `f64`.
    cost: AtomicU64,
}

impl Probes {
    /// The probes of a worker with this graph.
    pub fn new(nodes: &[Node], regions: &[FusedRegion]) -> Probes {
        let programs: Vec<Vec<usize>> = regions.iter().map(|region| region.nodes().collect()).collect();
        let stages = place(nodes.len(), Stage::Program(programs.len()));
        let counts = (0..stages).map(|_| Default::default()).collect();
        Probes { nodes: nodes.len(), programs, counts, ..Probes::default() }
    }

    /// Requests or switches off the probes; the worker follows within milliseconds.
    pub fn set(&self, is_wanted: bool) {
        self.wanted.store(is_wanted, Ordering::Relaxed);
    }

    /// Whether the worker measures now.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// The totals of all stages.
    pub fn stages(&self) -> Vec<StageCycles> {
        let counts = self.counts.iter().enumerate();
        let found = counts.map(|(at, (cycles, readings))| StageCycles {
            stage: stage(self.nodes, at),
            cycles: cycles.get(),
            readings: readings.get(),
        });
        found.collect()
    }

    /// The nodes of the elements of a fused region.
    pub fn program(&self, region: usize) -> &[usize] {
        self.programs.get(region).map_or(&[], Vec::as_slice)
    }

    /// Cycles in which the core ran something else; no stage includes them.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.get()
    }

    /// The cost of a reading in cycles, measured when the probes were switched on.
    pub fn cost(&self) -> f64 {
        f64::from_bits(self.cost.load(Ordering::Relaxed))
    }
}

pub(crate) const TURN: usize = 0;
pub(crate) const WAITING: usize = 1;
const FIRST: usize = 2;

/// The index of a stage's counts.
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
    /// The index of the current stage.
    pub(crate) at: usize,
    /// The most cycles between two readings that are not an interruption.
    longest: u64,
}

impl Probe {
    /// Starts the first stage and measures the cost of a reading.
    pub(crate) fn new(told: &Arc<Probes>) -> Probe {
        let longest = (clock::cycles_per_ns().unwrap_or(1.0) * INTERRUPTION_NS) as u64;
        let mut cost = f64::INFINITY;
        for _ in 0..CALIBRATION.1 {
            // Separate counts: the worker's must not include the calibration.
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

    /// Enters a stage and returns the previous one.
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
