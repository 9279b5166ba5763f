//! The process of an NF that is a Click configuration.

use crate::check;
use crate::exit::ExitStatus;
use anyhow::{Context, anyhow, bail};
use chain::FusedElements;
use clap::Args;
use nf::ends::Ends;
use nf::message::FromNf;
use runtime::brief::Brief;
use runtime::machine::Machine;
use runtime::nf_process::serve;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one NF of a chain on memory that its host shares with it. `millrace run` starts it for an NF with
/// `runs = "process"`; users do not.
#[derive(Debug, Args)]
pub struct NfProcessArgs {
    /// The NF
    nf: String,
}

/// Runs the command.
///
/// # Errors
/// When this process was not started by a host, the NF is not in the chain or has errors, or the session
/// fails.
pub fn run(args: NfProcessArgs) -> anyhow::Result<ExitStatus> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    // Ctrl-C sends SIGINT to all processes of the terminal. It is ignored here: the host ends the session.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    // The handshake precedes the chain's text, so it is not known yet whether elements make packets.
    let mut attached = nf::attach(&nf::Options::new("click").metadata().makes_packets())
        .map_err(|error| anyhow!("{error}"))?;
    let brief: Brief = serde_json::from_slice(&std::mem::take(&mut attached.config)).context("the brief")?;
    let ends = Ends::new(attached);
    let mut loaded = check::load_from(brief.sources, &brief.chain, &brief.defines, Machine::This)?;
    let Some(chain) = loaded.chain else {
        ends.say(&FromNf::Failed { why: "the chain has mistakes".into() });
        check::show(&loaded.map, &loaded.diags, 0, false);
        return Ok(ExitStatus::Refused);
    };
    let nf = chain.processes.iter().find(|process| process.name == args.nf);
    let nf = nf.ok_or_else(|| anyhow!("{} has no NF `{}` in a process", brief.chain.display(), args.nf))?;
    let options = runtime::Options {
        evaluator: brief.evaluator,
        fused: if brief.fused { FusedElements::All } else { FusedElements::Nothing },
        cache: brief.cache,
        folder: chain.folder.clone(),
        ..runtime::Options::default()
    };
    let outcome = serve(nf, ends, &options, &stop, &mut loaded.diags).map_err(|why| anyhow!(why))?;
    if outcome.is_none() {
        check::show(&loaded.map, &loaded.diags, 0, false);
        bail!("NF `{}` has mistakes", args.nf);
    }
    Ok(ExitStatus::Good)
}
