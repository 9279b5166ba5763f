//! The process of an NF: `millrace run` starts it for an NF that `runs = "process"`; users do not.

use crate::check;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use host::nf::{Attachment, child};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one NF of a chain on memory that another process lends.
#[derive(Debug, Args)]
pub struct NfProcessArgs {
    /// Chain file
    chain: PathBuf,

    /// The NF
    nf: String,

    /// Variables, as the chain was given them
    #[arg(short = 'D', long = "define", value_parser = check::definition)]
    defines: Vec<String>,

    /// Packets that are worked on at a time
    #[arg(long)]
    burst: usize,

    /// By the reference evaluator
    #[arg(long)]
    evaluator: bool,

    /// Descriptor of packet memory
    #[arg(long)]
    region: RawFd,

    /// Slots in it
    #[arg(long)]
    slots: u32,

    /// Descriptor of the rings
    #[arg(long)]
    rings: RawFd,
}

/// Runs the command.
///
/// # Errors
/// When the NF cannot run.
pub fn run(args: NfProcessArgs) -> anyhow::Result<ExitCode> {
    // With the host, everything that this process works on is gone.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .context("tie this process to its host")?;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    // Ctrl-C goes to all processes of a terminal; the host says when it is over.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut loaded = check::load(&args.chain, &args.defines)?;
    let Some(chain) = loaded.chain else {
        check::show(&loaded.map, &loaded.diags, false);
        return Ok(ExitCode::from(2));
    };
    let nf = chain.processes.iter().find(|process| process.name == args.nf);
    let nf = nf.ok_or_else(|| anyhow!("{} has no NF `{}` in a process", args.chain.display(), args.nf))?;
    let NfProcessArgs { region, slots, rings, burst, .. } = args;
    let attachment = Attachment { region, slots, rings, burst };
    let options = host::Options { workers: 1, evaluator: args.evaluator, folder: chain.folder.clone() };
    let outcome =
        child::serve(nf, attachment, &options, &stop, &mut loaded.diags).map_err(|why| anyhow!(why))?;
    let findings = outcome.iter().flat_map(|outcome| &outcome.findings);
    findings.for_each(|finding| eprintln!("millrace: NF {}: {finding}", args.nf));
    if outcome.is_none() {
        check::show(&loaded.map, &loaded.diags, false);
        bail!("NF `{}` has mistakes", args.nf);
    }
    Ok(ExitCode::SUCCESS)
}
