//! A chain that runs in this process while an experiment starts and stops its NFs and writes its handlers.

use super::script::Script;
use crate::BenchError;
use crate::load::Batching;
use crate::load::pace::Pace;
use crate::load::ports::Paced;
use crate::machine::Machine;
use crate::shape::Shape;
use crate::start::{Loaded, RunOptions, RunningChain, failed};
use crate::trial::closed::Window;
use nf_host::doorbell::Doorbell;
use nf_host::{Instance, NfOutput, NfState};
use runtime::running::RunPlan;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::report::Report;

/// Frames that wait at a port whose frames arrive at a set rate, at most.
const RING: u64 = 1_024;
/// How often something is looked at that takes less than a millisecond.
const LOOK: Duration = Duration::from_micros(50);
/// How long an NF may take to start or to end: its host gives it 20 s to start.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long packets may take to come: an NF may have to start first.
const PACKETS: Duration = PATIENCE;
/// How long packets flow before they are counted.
const WARM_UP: Duration = Duration::from_millis(200);

/// How a chain runs.
#[derive(Clone)]
pub struct Setting {
    /// Packets to work on at a time, 1 to 256.
    pub burst: usize,
    /// The packet thread's core; any where there is none.
    pub core: Option<usize>,
    /// Packet slots of 2,048 bytes.
    pub slots: u32,
    /// How NFs run that run in this process; as the chain file says where there is none.
    pub shape: Option<Shape>,
    /// Whether this program runs Click configurations in processes of their own ([`runtime::brief`]). Otherwise only
    /// programs can be started.
    pub runs_click: bool,
    /// Names of ports with generated traffic that arrives at a set rate, and when. The others have as many frames as
    /// are fetched.
    pub paced: HashMap<String, Arc<Pace>>,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            burst: worker::DEFAULT_BURST,
            core: None,
            slots: 16_384,
            shape: None,
            runs_click: false,
            paced: HashMap::new(),
        }
    }
}

impl Setting {
    /// Cores that the packet thread leaves to NFs.
    pub fn other_cores(&self) -> Vec<usize> {
        Machine::look().cores.into_iter().filter(|core| Some(*core) != self.core).collect()
    }
}

/// A running chain of one worker.
pub type LiveChain = RunningChain;

/// A window, and what was read before and behind it.
pub struct Watched<T> {
    /// Before.
    pub before: T,
    /// Behind.
    pub after: T,
    /// In between.
    pub window: Window,
    /// Whether something else had the core for too long, or cores that share packets were far apart.
    pub disturbed: bool,
}

impl LiveChain {
    /// Starts a chain. Its NFs in processes are started, and may not be ready when this returns.
    ///
    /// # Errors
    /// When the chain has mistakes, or something cannot be opened or started.
    pub fn start_script(script: &Script, setting: &Setting) -> Result<LiveChain, BenchError> {
        let mut loaded = Loaded::from_sources(script.sources(), &script.path, NfOutput::Log)?;
        let run = RunOptions {
            burst: setting.burst,
            cores: setting.core.into_iter().collect(),
            slots: setting.slots,
            shape: setting.shape,
            ..RunOptions::default()
        };
        let mut ports = loaded.ports(&run)?;
        let mut opened = Paced {
            ports: &mut ports,
            sources: setting.paced.clone(),
            sinks: HashMap::new(),
            room: RING,
            batching: Batching::Adaptive,
            rings: vec![],
            notes: HashMap::new(),
        };
        let assembly = loaded.assemble(&run, &mut opened)?;
        let plan = RunPlan { print: |_| {}, ..run.plan() };
        loaded.start(&run, (assembly, ports), plan)
    }

    /// The accounts now.
    pub fn report(&self) -> Report {
        self.running().report()
    }

    /// Reads `element.handler`.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub fn read(&self, handler: &str) -> Result<String, BenchError> {
        self.running().read(handler).map_err(failed)
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// When there is none, or it refuses.
    pub fn write(&self, handler: &str, value: &str) -> Result<(), BenchError> {
        self.running().write(handler, value).map_err(failed)
    }

    /// The places of NFs that run in processes of their own.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        self.ports.supervisor().map(nf_host::Supervisor::instances).unwrap_or_default()
    }

    /// The place of an NF in a process of its own, or that of an instance.
    ///
    /// # Errors
    /// When there is none.
    pub fn instance(&self, nf: &str) -> Result<Arc<Instance>, BenchError> {
        let found = self.instances().into_iter().find(|instance| instance.spec.name == nf);
        found.ok_or_else(|| failed(format!("NF `{nf}` runs in no process of its own")))
    }

    /// Wakes whoever looks after NFs in processes; `None` where there are none.
    pub fn doorbell(&self) -> Option<Doorbell> {
        self.ports.supervisor().map(nf_host::Supervisor::doorbell)
    }

    /// Asks for the process of an NF, or for its end. Does not wait.
    pub fn want(&self, instance: &Instance, wanted: bool) {
        instance.want(wanted);
        if let Some(doorbell) = self.doorbell() {
            doorbell.ring();
        }
    }

    /// Waits until all NFs in processes run.
    ///
    /// # Errors
    /// When one does not.
    pub fn await_nfs(&self) -> Result<(), BenchError> {
        self.instances().iter().try_for_each(|instance| await_state(instance, NfState::Up))
    }

    /// Waits until a count has grown past what it was, and tells since when, in seconds.
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

    /// Starts a chain, and once packets have flowed for a while counts them, with what `read` reads before and behind.
    ///
    /// # Errors
    /// As [`LiveChain::start_script`], when an NF does not start, when it ends by itself or no packets come, or when
    /// `read` fails.
    pub fn watched<T>(
        script: &Script,
        setting: &Setting,
        seconds: f64,
        read: impl Fn(&LiveChain) -> Result<T, BenchError>,
    ) -> Result<Watched<T>, BenchError> {
        let mut chain = LiveChain::start_script(script, setting)?;
        chain.await_nfs()?;
        std::thread::sleep(WARM_UP);
        chain.find_threads();
        let was_near = chain.await_near();
        let before = read(&chain)?;
        let window = chain.watch(seconds);
        if chain.running().is_over() {
            return Err(failed("the run ended by itself"));
        }
        let window = window?;
        let after = read(&chain)?;
        let is_far = !was_near || chain.is_far();
        chain.end();
        let disturbed = is_far || window.is_disturbed();
        Ok(Watched { before, after, window, disturbed })
    }
}

/// Packets that came out of an element by its outputs.
pub fn out_of(report: &Report, element: &str) -> u64 {
    let node = report.nodes.iter().find(|node| node.name == element);
    node.map_or(0, |node| node.outputs.iter().sum())
}

/// Waits until an NF is in a state.
///
/// # Errors
/// When that takes too long: with what the NF's host knows of it.
pub fn await_state(instance: &Instance, state: NfState) -> Result<(), BenchError> {
    await_until(PATIENCE, || instance.state() == state).map(drop).ok_or_else(|| {
        let (name, wanted, now) = (&instance.spec.name, state.name(), instance.state().name());
        let why = instance.status().failure.clone();
        failed(why.unwrap_or_else(|| format!("NF `{name}` is {now}, and not {wanted}, after {PATIENCE:?}")))
    })
}

/// Looks until something holds; when that was, or `None` after too long.
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
