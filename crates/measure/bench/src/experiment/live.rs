//! A chain that runs in this process while an experiment starts and stops its NFs and writes its handlers.

use super::lab::Lab;
use super::lab::trial::{self, RING};
use super::script::Script;
use crate::BenchError;
use crate::load::Batching;
use crate::load::pace::Pace;
use crate::load::ports::Rings;
use crate::start::{Loaded, RunOptions, RunningChain, failed};
use crate::trial::closed::Window;
use nf_host::doorbell::Doorbell;
use nf_host::{Instance, NfOutput, NfState};
use runtime::running::RunPlan;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::report::Report;

/// The polling interval for events that may take less than a millisecond.
const LOOK: Duration = Duration::from_micros(50);
/// How long an NF may take to start or to end. Its host allows 20 s for a start.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long the first packet may take: an NF may have to start first.
const PACKETS: Duration = PATIENCE;
/// How long packets flow before they are counted.
const WARM_UP: Duration = Duration::from_millis(200);

/// A running chain of one worker.
pub type LiveChain = RunningChain;

/// A measured window, and what was read before and after it.
pub struct Watched<T> {
    /// What was read before the window.
    pub before: T,
    /// What was read after the window.
    pub after: T,
    /// The measured window.
    pub window: Window,
    /// Whether something else had the core for too long, or cores that share packets were far apart.
    pub disturbed: bool,
}

impl LiveChain {
    /// Starts a chain, and its NFs in processes, which may not be ready when this returns.
    ///
    /// # Errors
    /// When the chain has mistakes, or something cannot be opened or started.
    pub fn start_script(script: &Script, run: &RunOptions) -> Result<LiveChain, BenchError> {
        LiveChain::start_paced(script, run, HashMap::new())
    }

    /// Starts a chain as [`LiveChain::start_script`] does. The generated frames of the ports in `sources`
    /// arrive at the set rate of their pace; other ports with generated traffic always have frames.
    ///
    /// # Errors
    /// As [`LiveChain::start_script`].
    pub fn start_paced(
        script: &Script,
        run: &RunOptions,
        sources: HashMap<String, Arc<Pace>>,
    ) -> Result<LiveChain, BenchError> {
        let mut loaded = Loaded::from_sources(script.sources(), &script.path, NfOutput::Log)?;
        let rings =
            Rings { sources, sinks: HashMap::new(), room: RING, batching: Batching::Adaptive, timed: None };
        let plan = RunPlan { print: |_| {}, ..run.plan() };
        rings.start(&mut loaded, run, plan).map(|(chain, _)| chain)
    }

    /// The current packet accounting.
    pub fn report(&self) -> Report {
        self.running().report()
    }

    /// Reads `element.handler`.
    ///
    /// # Errors
    /// When the handler does not exist, or does not answer.
    pub fn read(&self, handler: &str) -> Result<String, BenchError> {
        self.running().read(handler).map_err(failed)
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// When the handler does not exist, or refuses the value.
    pub fn write(&self, handler: &str, value: &str) -> Result<(), BenchError> {
        self.running().write(handler, value).map_err(failed)
    }

    /// The NF instances that run in processes of their own.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        self.resources.supervisor().map(nf_host::Supervisor::instances).unwrap_or_default()
    }

    /// The NF instance of that name, which runs in a process of its own.
    ///
    /// # Errors
    /// When there is no such NF instance.
    pub fn instance(&self, nf: &str) -> Result<Arc<Instance>, BenchError> {
        let found = self.instances().into_iter().find(|instance| instance.spec.name == nf);
        found.ok_or_else(|| failed(format!("NF `{nf}` runs in no process of its own")))
    }

    /// The doorbell that wakes the supervisor of NFs in processes; `None` where there are none.
    pub fn doorbell(&self) -> Option<Doorbell> {
        self.resources.supervisor().map(nf_host::Supervisor::doorbell)
    }

    /// Requests the start of an NF's process, or its end. Does not wait.
    pub fn want(&self, instance: &Instance, wanted: bool) {
        instance.want(wanted);
        if let Some(doorbell) = self.doorbell() {
            doorbell.ring();
        }
    }

    /// Waits until all NFs in processes run.
    ///
    /// # Errors
    /// When an NF does not start.
    pub fn await_nfs(&self) -> Result<(), BenchError> {
        self.instances().iter().try_for_each(|instance| await_state(instance, NfState::Up))
    }

    /// Waits until a count exceeds `before`; returns the seconds since `since`.
    ///
    /// # Errors
    /// When it does not grow.
    pub fn await_growth(
        &self,
        what: &str,
        before: u64,
        since: Instant,
        count: impl Fn(&Report) -> u64,
    ) -> Result<f64, BenchError> {
        let grown = await_until(PACKETS, || count(&self.report()) > before);
        let told = || failed(format!("no packet came out of {what} in {PACKETS:?}"));
        grown.ok_or_else(told).map(|at| (at - since).as_secs_f64())
    }

    /// Starts a chain with the lab's setting, and once packets have flowed for a while counts them for as
    /// long as a saturation point takes, with what `read` reads before and behind.
    ///
    /// # Errors
    /// As [`LiveChain::start_script`] and [`trial::ended`], when an NF does not start, when it ends by itself
    /// or no packets come, or when `read` fails.
    pub fn watched<T>(
        lab: &Lab,
        script: &Script,
        read: impl Fn(&LiveChain) -> Result<T, BenchError>,
    ) -> Result<Watched<T>, BenchError> {
        LiveChain::watched_as(lab, script, &lab.setting(), |_| Ok(()), read)
    }

    /// The same with other options, and with what is to be done before packets are counted.
    ///
    /// # Errors
    /// As [`LiveChain::watched`], and when `prepare` fails.
    pub fn watched_as<T>(
        lab: &Lab,
        script: &Script,
        run: &RunOptions,
        prepare: impl FnOnce(&LiveChain) -> Result<(), BenchError>,
        read: impl Fn(&LiveChain) -> Result<T, BenchError>,
    ) -> Result<Watched<T>, BenchError> {
        let mut chain = LiveChain::start_script(script, run)?;
        chain.await_nfs()?;
        prepare(&chain)?;
        std::thread::sleep(WARM_UP);
        chain.find_threads();
        let was_near = chain.await_near();
        let before = read(&chain)?;
        let window = chain.watch(lab.effort.seconds);
        if chain.running().is_over() {
            return Err(failed("the run ended by itself"));
        }
        let window = window?;
        let after = read(&chain)?;
        let is_far = !was_near || chain.is_far();
        trial::ended(lab, chain)?;
        let disturbed = is_far || window.is_disturbed();
        Ok(Watched { before, after, window, disturbed })
    }
}

/// The number of packets that left an element through its outputs.
pub fn out_of(report: &Report, element: &str) -> u64 {
    let node = report.nodes.iter().find(|node| node.name == element);
    node.map_or(0, |node| node.outputs.iter().sum())
}

/// Waits until an NF is in a state.
///
/// # Errors
/// When that takes too long; the error has the NF's failure, where its host knows it.
pub fn await_state(instance: &Instance, state: NfState) -> Result<(), BenchError> {
    await_until(PATIENCE, || instance.state() == state).map(drop).ok_or_else(|| {
        let (name, wanted, now) = (&instance.spec.name, state.name(), instance.state().name());
        let why = instance.status().failure.clone();
        failed(why.unwrap_or_else(|| format!("NF `{name}` is {now}, and not {wanted}, after {PATIENCE:?}")))
    })
}

/// Polls until `holds` returns true; returns that time, or `None` after `patience`.
pub fn await_until(patience: Duration, holds: impl Fn() -> bool) -> Option<Instant> {
    let start = Instant::now();
    loop {
        if holds() {
            return Some(Instant::now());
        }
        if start.elapsed() > patience {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}
