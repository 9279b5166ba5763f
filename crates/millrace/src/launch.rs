//! Starts a chain from a request: for `millrace run` and for the daemon.

use crate::check::{self, Loaded};
use crate::exit::refuse;
use crate::virtual_time::{self, VirtualTime};
use control::api::{Cache, Engine, ExecutionMode, Order};
use nf_host::NfOutput;
use runtime::brief::Brief;
use runtime::launch::{self, Launch};
use runtime::machine::Machine;
use runtime::resources::Resources;
use runtime::running::{RunPlan, Running};
use runtime::{Assembly, Options, assemble};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use worker::clock::Clock;
use worker::fusion::FlowCache;
use worker::virtual_clock::VirtualClock;

/// A chain without errors, with open ports.
pub struct Prepared {
    /// Its texts, with any warnings about them.
    pub loaded: Loaded,
    assembly: Assembly,
    plan: RunPlan,
    launched: Launched,
}

/// A running chain.
pub struct Launched {
    /// Its ports, and the processes of its NFs.
    pub resources: Resources,
    /// Its workers; `None` once the caller has taken them.
    pub running: Option<Running>,
    /// The names of its NFs, including those in this process.
    pub nfs: Vec<String>,
    /// The virtual devices, each with a description.
    pub devices: Vec<String>,
}

/// Reads a chain, makes its elements and opens its ports. The inner error is the texts of a chain that cannot
/// run, with their errors. With `virtual_time`, devices and NFs in processes are errors.
///
/// # Errors
/// When the chain cannot be read or has no elements for packets, a core is not available, or the system
/// refuses a resource.
pub fn prepare(
    order: &Order,
    output: NfOutput,
    interrupted: Arc<AtomicBool>,
    virtual_time: Option<VirtualTime>,
) -> anyhow::Result<Result<Prepared, Loaded>> {
    let mut loaded = check::load(&order.chain, &order.defines, Machine::This)?;
    let Some(mut chain) = loaded.chain.take() else { return Ok(Err(loaded)) };
    if virtual_time.is_some() {
        virtual_time::refuse(&chain, &mut loaded.diags);
    }
    if !order.cores.is_empty() {
        check_cores(&order.cores)?;
        (chain.run.cores, chain.run.core_spans) = (order.cores.clone(), vec![]);
    }
    let cores = chain.run.cores.clone();
    let workers = order.workers.map(usize::from).or(chain.run.workers).unwrap_or(cores.len()).max(1);
    let burst = order.burst.map(usize::from).or(chain.run.burst).unwrap_or(worker::DEFAULT_BURST);
    let evaluator = order.engine == Engine::Evaluator;
    let options = Options {
        workers,
        evaluator,
        fused: chain.fused(order.mode.map(mode)),
        cache: flow_cache(order.cache),
        burst,
        folder: chain.folder.clone(),
        ..Options::default()
    };
    let memory = shm::packet_region::RegionOptions::slots(order.slots);
    let brief = Brief {
        chain: order.chain.clone(),
        defines: order.defines.clone(),
        evaluator,
        fused: order.mode == Some(ExecutionMode::Fused),
        cache: flow_cache(order.cache),
        sources: std::mem::take(&mut loaded.sources),
    };
    let launch = Launch {
        options: options.clone(),
        memory,
        traffic: Box::new(runtime::traffic::declared),
        cores: cores.clone(),
        burst,
        brief,
        output,
        interrupted,
    };
    let mut resources = launch.resources(&mut chain, &mut loaded.diags)?;
    if loaded.diags.has_errors() {
        // The elements are still checked, to report all errors at once, but nothing is opened.
        resources = resources.dry(Machine::This);
    }
    let assembly = assemble(&chain.graph, &options, &mut resources, &mut loaded.diags)?;
    let Some(assembly) = assembly else {
        loaded.by_machine = resources.refused_by_machine();
        return Ok(Err(loaded));
    };
    // An element without ports and without a task only informs other elements.
    if assembly.graphs[0].iter().all(|node| node.class.codes.ports == "0/0" && !node.has_task) {
        refuse!("{} has no elements for packets: there is nothing to run", order.chain.display());
    }
    let polls = order.poll || chain.run.poll;
    let ends_with = Some(chain.run.ends_with.clone());
    let clock = virtual_time.map_or_else(Clock::real, |time| Clock::Virtual(time.clock(workers)));
    let plan = RunPlan { burst, polls, clock, cores, ends_with, ..RunPlan::default() };
    let nfs = chain.nfs.iter().map(|nf| nf.name.clone()).collect();
    let devices = chain.devices.iter().map(|device| device.describe()).collect();
    let launched = Launched { resources, running: None, nfs, devices };
    Ok(Ok(Prepared { loaded, assembly, plan, launched }))
}

impl Prepared {
    /// The virtual clock of a run in virtual time.
    pub fn virtual_clock(&self) -> Option<Arc<VirtualClock>> {
        self.plan.clock.as_virtual().cloned()
    }

    /// The same for a caller that names handlers whose last values it wants, if `reads`.
    pub fn reads_last(mut self, reads: bool) -> Prepared {
        self.plan.reads_last = reads;
        self
    }

    /// Starts the workers. `print` is called with the text that elements print.
    ///
    /// # Errors
    /// When the system has no memory or threads left.
    pub fn start(self, print: fn(&str)) -> anyhow::Result<Launched> {
        let Prepared { assembly, plan, mut launched, .. } = self;
        launched.running = Some(launch::start(assembly, &launched.resources, RunPlan { print, ..plan })?);
        Ok(launched)
    }
}

/// Converts the execution mode of the interface to that of the chain file.
pub fn mode(mode: ExecutionMode) -> chain::ExecutionMode {
    match mode {
        ExecutionMode::Modular => chain::ExecutionMode::Modular,
        ExecutionMode::Fused => chain::ExecutionMode::Fused,
    }
}

/// Converts the flow-cache option of the interface to that of the host.
pub fn flow_cache(cache: Cache) -> FlowCache {
    match cache {
        Cache::Auto => FlowCache::Auto,
        Cache::Off => FlowCache::Off,
        Cache::Never => FlowCache::Never,
        Cache::Eager => FlowCache::Eager,
    }
}

/// Checks that this process may run on these cores. Otherwise the workers would start unpinned, with only a
/// warning.
fn check_cores(cores: &[usize]) -> anyhow::Result<()> {
    let (missing, all) = runtime::cores::missing(cores);
    match missing.first() {
        Some(core) => refuse!("core {core} cannot be used; this process may run on {all}"),
        None => Ok(()),
    }
}
