//! From what a user asks for to a chain that runs: for `millrace run` and for the daemon.

use crate::check;
use anyhow::bail;
use control::api::{Cache, Engine, ExecutionMode, Order};
use diag::{Diagnostics, SourceMap};
use nf_host::NfOutput;
use runtime::brief::Brief;
use runtime::launch::{self, Launch};
use runtime::resources::Resources;
use runtime::running::{RunPlan, Running};
use runtime::{Assembly, Options, assemble};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use worker::clock::Clock;
use worker::fusion::FlowCache;

/// Why nothing runs.
pub struct Mistakes {
    /// The texts.
    pub map: SourceMap,
    /// What is wrong with them.
    pub diags: Diagnostics,
}

/// A chain without mistakes, its ports open.
pub struct Prepared {
    /// The texts.
    pub map: SourceMap,
    /// What is worth knowing about them.
    pub warnings: Diagnostics,
    assembly: Assembly,
    resources: Resources,
    plan: RunPlan,
    nfs: Vec<String>,
    devices: Vec<String>,
}

/// A chain that runs.
pub struct Launched {
    /// Its ports, and the processes of its NFs.
    pub resources: Resources,
    /// Its workers.
    pub running: Option<Running>,
    /// The names of its NFs, those in this process among them.
    pub nfs: Vec<String>,
    /// The virtual devices, and what each is.
    pub devices: Vec<String>,
}

/// Reads a chain, makes its elements and opens its ports; or says what is wrong with it.
///
/// # Errors
/// When it cannot be read, or the machine refuses something.
pub fn prepare(
    order: &Order,
    output: NfOutput,
    interrupted: Arc<AtomicBool>,
) -> anyhow::Result<Result<Prepared, Mistakes>> {
    let mut loaded = check::load(&order.chain, &order.defines)?;
    let Some(mut chain) = loaded.chain else {
        return Ok(Err(Mistakes { map: loaded.map, diags: loaded.diags }));
    };
    let cores = if order.cores.is_empty() { chain.cores.clone() } else { order.cores.clone() };
    check_cores(&cores)?;
    let workers = order.workers.map(usize::from).or(chain.workers).unwrap_or(cores.len()).max(1);
    let evaluator = order.engine == Engine::Evaluator;
    let options = Options {
        workers,
        evaluator,
        fused: chain.fused(order.mode.map(mode)),
        cache: flow_cache(order.cache),
        folder: chain.folder.clone(),
    };
    let memory = shm::packet_region::RegionOptions::slots(order.slots);
    let burst = order.burst.map(usize::from).or(chain.burst).unwrap_or(worker::DEFAULT_BURST);
    let brief = Brief {
        chain: order.chain.clone(),
        defines: order.defines.clone(),
        evaluator,
        fused: order.mode == Some(ExecutionMode::Fused),
        cache: flow_cache(order.cache),
        sources: loaded.sources,
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
        // What else is wrong is looked for, and nothing opened.
        resources = resources.dry();
    }
    let assembly = assemble(&chain.graph, &options, &mut resources, &mut loaded.diags)?;
    let Some(assembly) = assembly else {
        return Ok(Err(Mistakes { map: loaded.map, diags: loaded.diags }));
    };
    // What has no ports only tells other elements something.
    if assembly.graphs[0].iter().all(|node| node.class.codes.ports == "0/0" && !node.has_task) {
        bail!("{} has no elements for packets: there is nothing to run", order.chain.display());
    }
    let polls = order.poll || chain.poll;
    let plan = RunPlan { burst, polls, clock: Clock::real(), cores, ..RunPlan::default() };
    let nfs = chain.nfs.iter().map(|nf| nf.name.clone()).collect();
    let devices = chain.devices.iter().map(|device| device.describe(&chain.ports)).collect();
    Ok(Ok(Prepared { map: loaded.map, warnings: loaded.diags, assembly, resources, plan, nfs, devices }))
}

impl Prepared {
    /// Starts the workers; `print` gets what elements print.
    ///
    /// # Errors
    /// When the machine has no memory or no threads.
    pub fn start(self, print: fn(&str)) -> anyhow::Result<Launched> {
        let Prepared { assembly, resources, plan, nfs, devices, .. } = self;
        let running = launch::start(assembly, &resources, RunPlan { print, ..plan })?;
        Ok(Launched { resources, running: Some(running), nfs, devices })
    }
}

/// What the chain file calls it.
pub fn mode(form: ExecutionMode) -> chain::ExecutionMode {
    match form {
        ExecutionMode::Modular => chain::ExecutionMode::Modular,
        ExecutionMode::Fused => chain::ExecutionMode::Fused,
    }
}

/// When fused regions have a flow cache, as the host says it.
pub fn flow_cache(cache: Cache) -> FlowCache {
    match cache {
        Cache::Auto => FlowCache::Auto,
        Cache::Off => FlowCache::Off,
        Cache::Eager => FlowCache::Eager,
    }
}

/// A worker on a core that is not there would run anywhere, and nobody would know.
fn check_cores(cores: &[usize]) -> anyhow::Result<()> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Ok(()) };
    let is_allowed = |core: usize| core < rustix::thread::CpuSet::MAX_CPU && allowed.is_set(core);
    if let Some(core) = cores.iter().find(|core| !is_allowed(**core)) {
        let all = (0..rustix::thread::CpuSet::MAX_CPU).filter(|core| is_allowed(*core));
        let all: Vec<String> = all.map(|core| core.to_string()).collect();
        bail!("core {core} cannot be used; this process may run on {}", all.join(", "));
    }
    Ok(())
}
