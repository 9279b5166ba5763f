//! `millrace run`: runs a chain and says what went where.

mod progress;
mod show;

use crate::{check, nf_process};
use anyhow::{Context, bail};
use clap::Args;
use host::chain::TrafficDecl;
use host::running::{Plan, Running};
use host::worker::Clock;
use host::{Options, assemble};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs a chain: a chain file (TOML) or a Click configuration.
///
/// The run ends when its sources have ended and every packet is through, when an element stops it
/// (`STOP true`, a Script), after `--for`, or at Ctrl-C (SIGINT, SIGTERM, SIGHUP).
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Chain file (TOML) or Click configuration
    chain: PathBuf,

    /// Sets a variable of the configuration, as `define` does
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_parser = check::definition)]
    defines: Vec<String>,

    /// Number of workers (packet threads), each with a queue of every device
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,

    /// Cores to pin the workers to, such as `1,2`
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: Option<u16>,

    /// Ends the run after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<f64>,

    /// How transparent elements run
    #[arg(long, value_enum, default_value_t = EngineArg::Native)]
    engine: EngineArg,

    /// Packet slots
    #[arg(long, default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(512..=4_194_304))]
    slots: u32,

    /// Prints this handler at the end, as `element.handler`; may stand several times
    #[arg(long = "handler", short = 'H', value_name = "ELEMENT.HANDLER")]
    handlers: Vec<String>,

    /// The accounts as JSON on standard output
    #[arg(long)]
    json: bool,

    /// Shows every element, also those that no packet reached
    #[arg(long)]
    all: bool,

    /// No progress line
    #[arg(long, short)]
    quiet: bool,
}

/// How transparent elements run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum EngineArg {
    /// As machine code
    Native,
    /// By the reference evaluator: slow, for comparing
    Evaluator,
}

/// Runs the command.
///
/// # Errors
/// When the chain cannot be read or the machine refuses something.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let mut loaded = check::load(&args.chain, &args.defines)?;
    let Some(chain) = loaded.chain else {
        check::show(&loaded.map, &loaded.diags, false);
        return Ok(ExitCode::from(2));
    };
    let cores = if args.cores.is_empty() { chain.cores.clone() } else { args.cores.clone() };
    check_cores(&cores)?;
    let workers = args.workers.map(usize::from).or(chain.workers).unwrap_or(cores.len()).max(1);
    let options =
        Options { workers, evaluator: args.engine == EngineArg::Evaluator, folder: chain.folder.clone() };
    let memory = shm::region::RegionOptions::slots(args.slots);
    let burst = args.burst.map(usize::from).or(chain.burst).unwrap_or(host::worker::DEFAULT_BURST);
    let interrupted = Arc::new(AtomicBool::new(false));
    let brief = nf_process::Brief {
        chain: args.chain.clone(),
        defines: args.defines.clone(),
        evaluator: options.evaluator,
        sources: loaded.sources,
    };
    let mut ports = host::ports::Ports::new(&chain, workers, memory, Box::new(made_traffic))
        .start_by(nf_process::starter(brief, burst)?, Arc::clone(&interrupted));
    host::nf::check(&chain, &options, &mut loaded.diags)?;
    ports.prepare(&mut loaded.diags);
    if loaded.diags.has_errors() {
        // What else is wrong is looked for, and nothing opened.
        ports = ports.dry();
    }
    let assembly = assemble(&chain.graph, &options, &mut ports, &mut loaded.diags)?;
    if !loaded.diags.is_empty() {
        check::show(&loaded.map, &loaded.diags, false);
    }
    let Some(assembly) = assembly else { return Ok(ExitCode::from(2)) };
    // What has no ports only tells other elements something.
    if assembly.graphs[0].iter().all(|node| node.class.ports == "0/0" && !node.has_task) {
        bail!("{} has no elements for packets: there is nothing to run", args.chain.display());
    }
    let mut pools = ports.pools().context("packet memory")?;
    // What elements print goes where Click's goes; standard output is for the accounts.
    let print = |line: &str| eprintln!("{line}");
    let plan = Plan { burst, clock: Clock::real(), cores, print, ..Plan::default() };
    for signal in ending_signals() {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let seconds = match args.seconds {
        Some(seconds) if seconds.is_finite() && seconds >= 0.0 => Some(seconds.min(1e9)),
        Some(seconds) => bail!("{seconds} is no time to run for"),
        None => None,
    };
    let running = Running::start(assembly, &plan, &mut pools)?;
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let progress = progress::Progress::new(!args.quiet && !args.json);
    let mut handlers = vec![];
    while !running.is_over() {
        if interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|at| Instant::now() >= at) {
            handlers = read_handlers(&running, &args.handlers);
            running.stop();
            break;
        }
        progress.update(&running);
        std::thread::sleep(Duration::from_millis(20));
    }
    progress.finish();
    let mut outcome = running.wait();
    if handlers.is_empty() {
        handlers = args.handlers.iter().map(|name| (name.clone(), outcome.read(name))).collect();
    }
    // Hints are no reason to fail: without huge pages, say, all is well and a little slower.
    let hints = ports.findings();
    drop(ports);
    outcome.close();
    let shown = if args.json {
        show::json(&outcome, &hints, &handlers)
    } else {
        show::text(&outcome, &hints, &handlers, args.all)
    };
    if let Err(error) = shown {
        eprintln!("millrace: the accounts cannot be written: {error}");
        return Ok(ExitCode::FAILURE);
    }
    let sound = outcome.is_sound() && handlers.iter().all(|(_, value)| value.is_ok());
    Ok(if sound && outcome.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Signals that end a run with its accounts: Ctrl-C, `kill`, and a terminal that is closed, unless `nohup`
/// says that the run is to outlive it.
fn ending_signals() -> impl Iterator<Item = i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let hangs_up = ignored & 1 << (SIGHUP - 1) == 0;
    [SIGINT, SIGTERM].into_iter().chain(hangs_up.then_some(SIGHUP))
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

fn read_handlers(running: &Running, names: &[String]) -> Vec<(String, Result<String, String>)> {
    names.iter().map(|name| (name.clone(), running.read(name))).collect()
}

/// Frames of made-up traffic that stand ready, at least: so many that a mix of sizes shows.
const LEAST_FRAMES: usize = 4_096;
/// And at most: they lie in memory.
const MOST_FRAMES: usize = 1 << 20;

/// Makes the frames of a port with made-up traffic: every flow of its `traffic` table equally often.
pub fn made_traffic(declared: &TrafficDecl, diags: &mut diag::Diagnostics) -> Option<Arc<port::FrameSet>> {
    let before = diags.errors();
    let spec: bench::traffic::TrafficSpec = declared.read(diags)?;
    for (key, mistake) in spec.mistakes() {
        diags.error(declared.place(key), mistake.to_string());
    }
    if diags.errors() > before {
        return None;
    }
    let flows = usize::try_from(spec.flows).unwrap_or(MOST_FRAMES).max(1);
    let frames = (flows * LEAST_FRAMES.div_ceil(flows)).min(MOST_FRAMES);
    let made = spec.prepare(frames).map_err(|error| error.to_string());
    let set = made.and_then(|made| port::FrameSet::new(made.iter()).map_err(|error| error.to_string()));
    match set {
        Ok(set) => Some(Arc::new(set)),
        Err(message) => {
            diags.error(declared.span, message);
            None
        }
    }
}
