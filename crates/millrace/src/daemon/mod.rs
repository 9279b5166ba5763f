//! `millrace daemon`: keeps a chain running, and serves control clients.
//!
//! - [`controller`]: one thread owns the chain and carries out the requests of all others
//! - [`attach`]: the socket to which external NFs attach

mod attach;
mod controller;

use crate::at::At;
use crate::exit::{ExitStatus, refuse};
use crate::signals;
use crate::text::complain;
use anyhow::Context;
use clap::Args;
use control::api::Order;
use control::{ClientError, Platform, server};
use controller::ChainController;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keeps a chain running, which `millrace chain`, `nf`, `stats` and `top` control and show.
///
/// Ends at Ctrl-C (SIGINT, SIGTERM), at the second one at once. At SIGHUP it reads the file of its chain again
/// and runs it in the place of the one that runs; one with mistakes changes nothing. A daemon that was killed leaves nothing that the next one minds; NFs
/// that attach by themselves attach anew.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Chain file or Click configuration to start with
    chain: Option<PathBuf>,

    /// A group (its name or number) whose members may see: `stats`, `top`, `chain show`, `nf list`, `nf logs`,
    /// and reading handlers
    #[arg(long)]
    group: Option<String>,

    #[command(flatten)]
    at: At,
}

/// How often the main thread checks whether the daemon is to end.
const TURN: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// When another daemon uses the folder, the sockets cannot be made, or serving them fails.
pub fn run(args: &DaemonArgs) -> anyhow::Result<ExitStatus> {
    let viewers = args.group.as_deref().map(group).transpose()?;
    let place = args.at.own();
    let _claimed = place.lock()?;
    let (interrupted, reload) = (signals::end_of_daemon()?, signals::reload()?);
    let controller = Arc::new(ChainController::open(place.nf())?);
    let _listener = attach::open(&place.nf(), Arc::clone(&controller))
        .with_context(|| format!("NFs cannot attach at {}", place.nf().display()))?;
    let (end, ended) = tokio::sync::watch::channel(false);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("control")
        .enable_all()
        .build()
        .context("threads of the interface")?;
    let serving = {
        let (place, platform) = (place.clone(), Arc::clone(&controller) as Arc<dyn Platform>);
        runtime.spawn(async move { server::serve(&place, viewers, platform, ended).await })
    };
    if let Some(chain) = &args.chain
        && let Err(refusal) = controller.load(Order::new(chain), false)
    {
        complain(refusal.text().trim_end());
        return Ok(ExitStatus::of_error(&ClientError::Refused(refusal).into()));
    }
    complain(&format!("millrace: control this daemon at {}", place.control().display()));
    while !interrupted.load(Ordering::Relaxed) && !serving.is_finished() {
        if reload.swap(false, Ordering::Relaxed) {
            complain(&read_again(&controller));
        }
        std::thread::sleep(TURN);
    }
    let _ = end.send(true);
    controller.close();
    if serving.is_finished() {
        runtime.block_on(serving)?.with_context(|| format!("the socket {}", place.control().display()))?;
    }
    runtime.shutdown_timeout(TURN);
    Ok(ExitStatus::Good)
}

/// Reads the chain's file again and exchanges the chain; returns what became of it.
fn read_again(controller: &ChainController) -> String {
    match controller.reload() {
        Ok(chain) => format!(
            "{}millrace: SIGHUP: {} was read again and runs, as number {}",
            chain.warnings,
            chain.path.display(),
            chain.version
        ),
        Err(refusal) => {
            let goes_on = controller.status().chain.filter(|chain| chain.running);
            let goes_on = goes_on.map_or("no chain runs".into(), |chain| {
                format!("nothing was changed: {} runs on, as number {}", chain.path.display(), chain.version)
            });
            format!("{}\nmillrace: SIGHUP: {goes_on}", refusal.text().trim_end())
        }
    }
}

/// The number of a group.
///
/// # Errors
/// When there is no such group.
fn group(name: &str) -> anyhow::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    // getent(1) asks all databases of users, not only /etc/group.
    let output = Command::new("getent").args(["group", "--", name]).output().context("getent")?;
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    match line.split(':').nth(2).and_then(|number| number.parse().ok()) {
        Some(number) => Ok(number),
        None => refuse!("there is no group `{name}`; `getent group` lists all"),
    }
}
