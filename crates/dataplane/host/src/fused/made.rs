//! The program that a stretch runs, made for cells as they are.
//!
//! A cell that no program writes is a part of the configuration: a colour, an Ethernet address. It changes
//! when a handler is written, and seldom. The program is made for what it holds, and made again, on a thread
//! of its own, when that changes; until then the stretch's elements run one by one.

use super::Stretch;
use super::cache::{Cache, CacheCounts, FlowCache};
use super::sources::Sources;
use codegen::{CodeBuilder, CodegenError, Engine};
use ir::{Inst, Program, Verified};
use rustix::process::getpid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use synth::link::{LinkError, Linked};
use synth::optimize::{Known, Report, optimize_with};

/// A program to run, and what it was made for.
pub struct Made {
    /// The program.
    pub program: Arc<Verified>,
    /// What it has less to do than the linked one.
    pub report: Report,
    /// How it is run.
    pub engine: Engine,
    /// What cells of the configuration held; none where it was made for nothing yet.
    config: Option<Config>,
}

/// Cells and what they hold.
pub(super) type Config = BTreeMap<u16, u64>;

/// A program that a thread makes, of what it is made, and what that is linked to.
pub(super) type Making = JoinHandle<Result<(Arc<Sources>, Arc<Linked>, Made), CannotMake>>;

/// Why a stretch has no program of its own.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotMake {
    #[error(transparent)]
    Code(#[from] CodegenError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl Made {
    /// The program of a stretch whose cells hold `cells`; it is evaluated until there is code.
    pub fn of(linked: &Verified, cells: &[u64]) -> Made {
        let config = config_cells(linked, cells);
        let known = Known { cells: config.clone(), ..Known::default() };
        let (program, report) = optimize_with(linked, &known).unwrap_or_else(|error| {
            tracing::error!("a bug: the optimised program is wrong ({error}); the stretch runs without");
            (linked.clone(), Report::default())
        });
        let program = Arc::new(program);
        Made { engine: Engine::Evaluator(Arc::clone(&program)), program, report, config: Some(config) }
    }

    /// What stands there until somebody wants the stretch to run as one.
    pub(super) fn nothing(linked: &Verified) -> Made {
        let program = Arc::new(linked.clone());
        let engine = Engine::Evaluator(Arc::clone(&program));
        Made { program, report: Report::default(), engine, config: None }
    }

    /// Whether it is right for cells as they are.
    fn is_for(&self, cells: &[u64]) -> bool {
        self.config.as_ref().is_some_and(|config| holds(cells, config))
    }
}

fn holds(cells: &[u64], config: &Config) -> bool {
    config.iter().all(|(cell, value)| cells.get(usize::from(*cell)) == Some(value))
}

/// The cells that a program never writes, and what they hold.
fn config_cells(program: &Program, cells: &[u64]) -> Config {
    let mut config: Config = (0..).zip(cells.iter().copied()).collect();
    for (_, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
        if let Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = inst {
            config.remove(cell);
        }
    }
    config
}

/// Lets this thread run wherever the program may: it was started by a packet thread, whose core is its own.
pub(super) fn leave_packet_core() {
    if let Ok(cores) = sched_getaffinity(Some(getpid())) {
        // Where that is refused, it shares the core for the moment.
        let _ = sched_setaffinity(None, &cores);
    }
}

impl Stretch {
    /// Whether its program can run now.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether somebody wants it to run as one.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub(super) fn end_cache(&mut self) {
        if let Some(mut cache) = self.cache.take() {
            self.before.add(CacheCounts { flows: 0, shortcuts: 0, ..cache.counts() });
            // A large one goes beside the packets.
            cache.clear();
        }
    }

    /// Has a flow cache while the program runs. Without it records may change in ways that it does not see.
    fn follow_cache(&mut self) {
        let is_wanted = self.is_ready && self.cache_wanted != FlowCache::Off;
        if is_wanted != self.cache.is_some() {
            let new = || Cache::new(self.cache_wanted, self.is_evaluated, Arc::clone(&self.made.program));
            let cache = is_wanted.then(|| Box::new(new()));
            self.end_cache();
            self.cache = cache;
        }
    }

    /// Sees to it that the program is one for these cells, where one is `wanted`: after a handler was written, and
    /// from time to time while one is being made. No packet waits for it. While a burst is `under_way` it is still the
    /// old one that packets leave.
    pub(crate) fn follow(&mut self, cells: &[u64], wanted: bool, under_way: bool) {
        self.is_wanted = wanted;
        let cells = &cells[self.cells.clone()];
        if !under_way {
            self.take_made(cells);
        }
        self.is_ready = wanted && !self.is_stale && self.made.is_for(cells);
        self.follow_cache();
        let has_failed = self
            .failed
            .as_ref()
            .is_some_and(|(sources, config)| Arc::ptr_eq(sources, &self.sources) && holds(cells, config));
        if !wanted || self.is_ready || under_way || self.next.is_some() || has_failed {
            return;
        }
        let (sources, cells) = (Arc::clone(&self.sources), cells.to_vec());
        let linked = (!self.is_stale).then(|| Arc::clone(&self.linked));
        let is_evaluated = self.is_evaluated;
        let make = move || {
            let linked = linked.map_or_else(|| sources.link().map(Arc::new), Ok)?;
            let mut made = Made::of(&linked.program, &cells);
            if !is_evaluated {
                let mut builder = CodeBuilder::new()?;
                let id = builder.add(&made.program)?;
                made.engine = Engine::Native(builder.finish()?.compiled(id));
            }
            Ok((sources, linked, made))
        };
        if is_evaluated {
            self.take(make(), &[]);
            self.is_ready = !self.is_stale;
            self.follow_cache();
            return;
        }
        let make = move || {
            leave_packet_core();
            make()
        };
        self.next = std::thread::Builder::new().name("synthesis".into()).spawn(make).ok();
    }

    /// Takes in what a thread has made.
    fn take_made(&mut self, cells: &[u64]) {
        if let Some(next) = self.next.take_if(|next| next.is_finished()) {
            let broke = |_| CodegenError::Machine("the thread that makes code broke".into());
            self.take(next.join().map_err(broke).map_err(CannotMake::from).and_then(|made| made), cells);
        }
    }

    fn take(&mut self, made: Result<(Arc<Sources>, Arc<Linked>, Made), CannotMake>, cells: &[u64]) {
        match made {
            Ok((sources, linked, made)) if Arc::ptr_eq(&sources, &self.sources) => {
                (self.linked, self.made, self.is_stale) = (linked, made, false);
                self.end_cache();
            }
            // A program has changed meanwhile.
            Ok(_) => {}
            // The elements go on one by one, until something else changes.
            Err(error) => {
                tracing::error!("no code for a stretch of elements: {error}");
                self.failed = Some((Arc::clone(&self.sources), config_cells(&self.linked.program, cells)));
            }
        }
    }
}
