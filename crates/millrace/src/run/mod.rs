//! `millrace run`: runs a chain and prints its packet accounting.

mod progress;
mod show;

use crate::check;
use crate::exit::ExitStatus;
use crate::launch;
use crate::order::OrderArgs;
use crate::signals;
use crate::text::complain;
use crate::times;
use crate::virtual_time::{self, VirtualTime};
use anyhow::Context;
use clap::Args;
use control::api::Order;
use nf_host::NfOutput;
use runtime::resources::Resources;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Runs a chain: a chain file (TOML) or a Click configuration.
///
/// The run ends when its sources have ended and every packet is through, when an element stops it
/// (`STOP true`, a Script; of several NFs with scripts the last one, or those in `ends_with`), when an NF in
/// a process refuses to run, after
/// `--for`, or at Ctrl-C (SIGINT, SIGTERM, SIGHUP). A second Ctrl-C ends it at once, without accounts.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    order: OrderArgs,

    /// Ends the run after this time: `1s`, `500ms`, `2min`; a number alone counts seconds
    #[arg(long = "for", value_name = "TIME", value_parser = times::time)]
    time: Option<Duration>,

    /// Runs in virtual time, which goes on to the next event whenever nothing is left to do: waits, rates, delays and
    /// timeouts cost no time, and `--for` counts virtual seconds. It begins at START, in seconds since 1970
    #[arg(
        long,
        value_name = "START",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = virtual_time::START,
        value_parser = virtual_time::start
    )]
    simtime: Option<Duration>,

    /// Prints this handler at the end, as `element.handler`, with an argument behind a blank (`rt.lookup
    /// 1.2.3.4`);
    /// `*.handler` prints that of every element, `list`, `config`, `flatconfig`, `requirements`, `version`
    /// and
    /// `handlers` those of the configuration; may stand several times
    #[arg(long = "handler", short = 'H', value_name = "ELEMENT.HANDLER")]
    handlers: Vec<String>,

    /// The accounts as JSON on standard output
    #[arg(long, short = 'j')]
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
    let interrupted = signals::end_of_run()?;
    let virtual_time = args.simtime.map(|start| VirtualTime { start, time: args.time });
    let prepared = match launch::prepare(&order, NfOutput::Inherit, Arc::clone(&interrupted), virtual_time)? {
        Ok(prepared) => prepared,
        Err(refused) => {
            check::show(&refused.map, &refused.diags, refused.by_machine, false);
            return Ok(refused.refused());
        }
    };
    if !prepared.loaded.diags.is_empty() {
        check::show(&prepared.loaded.map, &prepared.loaded.diags, 0, false);
    }
    // Elements print to standard error, as in Click; standard output is for the packet accounting.
    let prepared = prepared.reads_last(!args.handlers.is_empty());
    let virtual_clock = prepared.virtual_clock();
    let mut launched = prepared.start(complain)?;
    let mut running = launched.running.take().context("it was started")?;
    tracing::info!("chain {} runs", order.chain.display());
    let names = running.read_last(&args.handlers);
    let deadline = args.time.filter(|_| virtual_clock.is_none()).map(|time| Instant::now() + time);
    let is_time_up = || match &virtual_clock {
        Some(clock) => clock.is_at_end(),
        None => deadline.is_some_and(|at| Instant::now() >= at),
    };
    // Virtual seconds pass quickly.
    let pause = Duration::from_millis(if virtual_clock.is_some() { 1 } else { 20 });
    let progress = progress::Progress::new(!args.quiet && !args.json);
    let mut handlers = vec![];
    while !running.is_over() {
        let is_refused = has_refused(&launched.resources);
        if interrupted.load(Ordering::Relaxed) || is_time_up() || is_refused {
            // After a deadline, too, the end must not wait for NFs.
            interrupted.store(true, Ordering::Relaxed);
            // An NF that does not run answers nothing.
            if !is_refused {
                handlers = names.iter().map(|name| (name.clone(), running.read(name))).collect();
            }
            running.stop();
            break;
        }
        progress.update(&running);
        std::thread::sleep(pause);
    }
    progress.finish();
    let mut outcome = running.wait();
    // The instances of an NF say the same.
    let mut said = HashSet::new();
    outcome.warnings.retain(|warning| said.insert(warning.clone()));
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
        complain(&format!("millrace: the accounts cannot be written: {error}"));
        return Ok(ExitStatus::Failed);
    }
    let sound = outcome.is_sound() && handlers.iter().all(|(_, value)| value.is_ok());
    Ok(ExitStatus::of(sound && outcome.warnings.is_empty()))
}

/// Whether an NF in a process refuses to run, or its program is no NF: the run would drop its packets.
fn has_refused(resources: &Resources) -> bool {
    resources
        .supervisor()
        .is_some_and(|supervisor| supervisor.instances().iter().any(|instance| instance.refusal().is_some()))
}
