//! `millrace bench steering`: what several instances of an NF carry.

use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::steering::{SteeringOptions, steering};
use clap::Args;
use std::path::PathBuf;

/// Measures the packets that each of several instances of an NF gets, and their sum.
///
/// Once with `steer = "least-filled"` and once with `"flow"`, over 1, 2, 3, … instances in processes (NetVM, figure
/// 16). With a chain file, there are several of one of its NFs, which runs as the file says.
#[derive(Debug, Args)]
pub struct SteeringArgs {
    /// Chain file with generated traffic at a port
    chain: Option<PathBuf>,

    /// The NF of the chain file that there are to be several of; the first one by default
    #[arg(long, value_name = "NF", requires = "chain")]
    nf: Option<String>,

    /// The most instances
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=32))]
    most: u16,

    /// How often each number of instances is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,

    /// Seconds that a measurement takes, without warming up
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// Up to three instances, once each, for a fifth of a second
    #[arg(long, conflicts_with_all = ["most", "repeats", "seconds"])]
    quick: bool,

    /// The figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When the chain has mistakes, or nothing comes through one instance.
pub fn run(args: &SteeringArgs) -> anyhow::Result<ExitStatus> {
    let (most, repeats, seconds) =
        if args.quick { (3, 1, 0.2) } else { (args.most, args.repeats, args.seconds) };
    let options = SteeringOptions {
        most: usize::from(most),
        repeats: usize::from(repeats),
        seconds,
        processes: true,
        chain: args.chain.clone().map(|chain| (chain, args.nf.clone())),
        setting: figures::setting(),
    };
    figures::measured(args.json, |progress| steering(&options, progress))
}
