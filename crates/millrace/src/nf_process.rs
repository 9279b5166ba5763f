//! Processes of NFs: how `millrace run` starts them, and what the process of a Click configuration does.

use crate::{check, launch};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use control::api::Cache;
use host::chain::{Body, ProcessNf, Sources};
use host::fused::Wanted;
use host::nf::{NfOutput, NfSpec, child};
use host::ports::Starter;
use nf::ends::Ends;
use nf::message::FromNf;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one NF of a chain on memory that another process lends. `millrace run` starts it for an NF that
/// `runs = "process"`; users do not.
#[derive(Debug, Args)]
pub struct NfProcessArgs {
    /// The NF
    nf: String,
}

/// What the process of a Click configuration is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Brief {
    /// Chain file.
    pub chain: PathBuf,
    /// Variables, as the chain was given them.
    pub defines: Vec<String>,
    /// Whether elements run by the reference evaluator.
    pub evaluator: bool,
    /// Whether its elements run as one program where they can.
    pub fused: bool,
    /// When they have a flow cache then.
    pub cache: Cache,
    /// The texts that the chain was read from: what a user writes meanwhile is not for this run.
    pub sources: Sources,
}

/// Says how the process of each NF is started.
///
/// # Errors
/// When the texts cannot be passed on.
pub fn starter(brief: Brief, burst: usize, output: NfOutput) -> anyhow::Result<Starter> {
    let brief = serde_json::to_vec(&brief).context("the texts of the chain")?;
    Ok(Box::new(move |nf: &ProcessNf| {
        match &nf.body {
            Body::Click(_) => {
                let arguments = vec!["nf-process".into(), "--".into(), nf.name.clone()];
                // Also when the file was replaced meanwhile.
                let program = PathBuf::from("/proc/self/exe");
                let command = host::nf::Command { program, arguments, folder: PathBuf::new() };
                NfSpec::of(nf, Some(command), brief.clone(), burst, output)
            }
            Body::Program(program) => NfSpec::of_program(nf, program, burst, output),
            Body::Visitor(config) => NfSpec::of(nf, None, config.clone().into_bytes(), burst, output),
        }
    }))
}

/// Runs the command.
///
/// # Errors
/// When the NF cannot run.
pub fn run(args: NfProcessArgs) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    // Ctrl-C goes to all processes of a terminal; the host says when it is over.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    // Whether its elements make packets shows only when they do.
    let mut attached = nf::attach(&nf::Options::new("click").metadata().makes_packets())
        .map_err(|error| anyhow!("{error}"))?;
    let brief: Brief = serde_json::from_slice(&std::mem::take(&mut attached.config)).context("the brief")?;
    let ends = Ends::new(attached);
    let mut loaded = check::load_from(brief.sources, &brief.chain, &brief.defines)?;
    let Some(chain) = loaded.chain else {
        ends.say(&FromNf::Failed { why: "the chain has mistakes".into() });
        check::show(&loaded.map, &loaded.diags, false);
        return Ok(ExitCode::from(2));
    };
    let nf = chain.processes.iter().find(|process| process.name == args.nf);
    let nf = nf.ok_or_else(|| anyhow!("{} has no NF `{}` in a process", brief.chain.display(), args.nf))?;
    let options = host::Options {
        evaluator: brief.evaluator,
        fused: if brief.fused { Wanted::All } else { Wanted::Nothing },
        cache: launch::flow_cache(brief.cache),
        folder: chain.folder.clone(),
        ..host::Options::default()
    };
    let outcome = child::serve(nf, ends, &options, &stop, &mut loaded.diags).map_err(|why| anyhow!(why))?;
    if outcome.is_none() {
        check::show(&loaded.map, &loaded.diags, false);
        bail!("NF `{}` has mistakes", args.nf);
    }
    Ok(ExitCode::SUCCESS)
}
