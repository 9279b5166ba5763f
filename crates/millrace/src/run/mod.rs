//! `millrace run`: runs a chain and prints its packet accounting.

mod progress;
mod show;

use crate::check;
use crate::exit::ExitStatus;
use crate::launch;
use crate::order::OrderArgs;
use crate::times;
use anyhow::Context;
use clap::Args;
use control::api::Order;
use nf_host::NfOutput;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs a chain: a chain file (TOML) or a Click configuration.
///
/// The run ends when its sources have ended and every packet is through, when an element stops it
/// (`STOP true`, a Script; of several NFs with scripts the last one, or those in `ends_with`), after
/// `--for`, or at Ctrl-C (SIGINT, SIGTERM, SIGHUP).
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    order: OrderArgs,

    /// Ends the run after this time: `1s`, `500ms`, `2min`; a number alone counts seconds
    #[arg(long = "for", value_name = "TIME", value_parser = times::time)]
    time: Option<Duration>,

    /// Prints this handler at the end, as `element.handler`, with an argument behind a blank (`rt.lookup
    /// 1.2.3.4`);
    /// `*.handler` prints that of every element, `list`, `config`, `flatconfig`, `requirements`, `version`
    /// and
    /// `handlers` those of the configuration; may stand several times
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

/// Runs the command.
///
/// # Errors
/// When the chain cannot be read, or the system refuses a resource that it needs.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitStatus> {
    let order = Order::from(args.order.clone());
    let interrupted = set_by_signals(false)?;
    let prepared = match launch::prepare(&order, NfOutput::Inherit, Arc::clone(&interrupted))? {
        Ok(prepared) => prepared,
        Err(refused) => {
            check::show(&refused.map, &refused.diags, false);
            return Ok(ExitStatus::Refused);
        }
    };
    if !prepared.loaded.diags.is_empty() {
        check::show(&prepared.loaded.map, &prepared.loaded.diags, false);
    }
    // Elements print to standard error, as in Click; standard output is for the packet accounting.
    let prepared = prepared.reads_last(!args.handlers.is_empty());
    let mut launched = prepared.start(|line: &str| eprintln!("{line}"))?;
    let mut running = launched.running.take().context("it was started")?;
    tracing::info!("chain {} runs", order.chain.display());
    let names = running.read_last(&args.handlers);
    let deadline = args.time.map(|time| Instant::now() + time);
    let progress = progress::Progress::new(!args.quiet && !args.json);
    let mut handlers = vec![];
    while !running.is_over() {
        if interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|at| Instant::now() >= at) {
            // After a deadline, too, the end must not wait for NFs.
            interrupted.store(true, Ordering::Relaxed);
            handlers = names.iter().map(|name| (name.clone(), running.read(name))).collect();
            running.stop();
            break;
        }
        progress.update(&running);
        std::thread::sleep(Duration::from_millis(20));
    }
    progress.finish();
    let mut outcome = running.wait();
    tracing::info!("chain {} has ended", order.chain.display());
    if handlers.is_empty() {
        handlers = names.iter().map(|name| (name.clone(), outcome.read(name))).collect();
    }
    // Hints do not make a run fail: without huge pages, for example, it is only a little slower.
    let hints = launched.resources.take_warnings();
    drop(launched);
    outcome.close();
    let shown = if args.json {
        show::json(&outcome, &hints, &handlers)
    } else {
        show::text(&outcome, &hints, &handlers, args.all)
    };
    if let Err(error) = shown {
        eprintln!("millrace: the accounts cannot be written: {error}");
        return Ok(ExitStatus::Failed);
    }
    let sound = outcome.is_sound() && handlers.iter().all(|(_, value)| value.is_ok());
    Ok(ExitStatus::of(sound && outcome.warnings.is_empty()))
}

/// A flag that is set by the signals that end a run, after which its packet accounting is printed: SIGINT
/// (Ctrl-C), SIGTERM (`kill`), and SIGHUP (the terminal is closed) unless it is ignored, as under `nohup`.
/// With `second_ends` the next one ends the program.
///
/// # Errors
/// When the system refuses.
pub fn set_by_signals(second_ends: bool) -> std::io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let hangs_up = ignored & 1 << (SIGHUP - 1) == 0;
    let flag: Arc<AtomicBool> = Arc::default();
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangs_up.then_some(SIGHUP)) {
        if second_ends {
            // It runs before the flag is set.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&flag))?;
        }
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
