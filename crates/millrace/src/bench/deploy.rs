//! `millrace bench deploy`: how long it takes until an NF works.

use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::deploy::{DeployOptions, deploy};
use clap::Args;
use std::path::PathBuf;

/// Measures how long it takes from the order to start an NF until it says hello, and until its first packet comes out.
///
/// In every way that this machine has: rules exchanged in place, chains exchanged, processes, containers. With a chain
/// file, the NFs of that chain are started, one after the other (NetVM, figure 17).
#[derive(Debug, Args)]
pub struct DeployArgs {
    /// Chain file whose NFs are started, with generated traffic at a port
    chain: Option<PathBuf>,

    /// How often each way is measured
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,

    /// Each way three times
    #[arg(long, conflicts_with = "repeats")]
    quick: bool,

    /// An image that podman or docker has, whose program is an NF with two interfaces
    #[arg(long, value_name = "NAME")]
    image: Option<String>,

    /// The figure as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When a chain has mistakes.
pub fn run(args: &DeployArgs) -> anyhow::Result<ExitStatus> {
    let options = DeployOptions {
        repeats: if args.quick { 3 } else { usize::from(args.repeats) },
        program: Some(figures::relay()?),
        image: args.image.clone(),
        chain: args.chain.clone(),
        setting: figures::setting(),
    };
    figures::measured(args.json, |progress| Ok(vec![deploy(&options, progress)?]))
}
