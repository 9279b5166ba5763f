//! `millrace daemon`: keeps a chain running, and serves control clients.
//!
//! - [`controller`]: one thread owns the chain and carries out the requests of all others
//! - [`attach`]: the socket to which external NFs attach

mod attach;
mod controller;

use crate::exit::ExitStatus;
use anyhow::Context;
use clap::Args;
use control::api::Order;
use control::{Platform, RuntimeDir, server};
use controller::ChainController;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keeps a chain running, which `millrace chain`, `nf`, `stats` and `top` control and show.
///
/// Ends at Ctrl-C (SIGINT, SIGTERM). A daemon that was killed leaves nothing that the next one minds; NFs
/// that attach by themselves attach anew.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Chain file or Click configuration to start with
    chain: Option<PathBuf>,

    /// Folder of the daemon's sockets
    #[arg(long)]
    at: Option<PathBuf>,
}

/// How often the main thread checks whether the daemon is to end.
const TURN: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// When another daemon uses the folder, the sockets cannot be made, or serving them fails.
pub fn run(args: &DaemonArgs) -> anyhow::Result<ExitStatus> {
    let place = RuntimeDir::new(args.at.as_deref());
    let _claimed = place.lock()?;
    let interrupted = crate::run::set_by_signals(false)?;
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
        runtime.spawn(async move { server::serve(&place, platform, ended).await })
    };
    if let Some(chain) = &args.chain
        && let Err(refusal) = controller.load(Order::new(chain), false)
    {
        eprintln!("{}", refusal.text().trim_end());
        return Ok(ExitStatus::Refused);
    }
    eprintln!("millrace: control this daemon at {}", place.control().display());
    while !interrupted.load(Ordering::Relaxed) && !serving.is_finished() {
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
