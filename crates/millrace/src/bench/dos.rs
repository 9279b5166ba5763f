//! `millrace bench dos`: an attack is noticed and filtered.

use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::dos::{DosOptions, dos};
use clap::Args;

/// Measures how long it takes until an attack is noticed, a filter brought in, and normal traffic alone gets through.
///
/// A flood of SYNs goes to one server among normal flows; what notices it looks at a counter, as an orchestrator would by
/// `millrace chain handler`, and writes rules or starts a filter in a process or container (NetVM, figure 18).
#[derive(Debug, Args)]
pub struct DosArgs {
    /// Normal packets a second
    #[arg(long, value_name = "PPS", default_value_t = 50_000.0, value_parser = super::chain::frames_a_second)]
    normal: f64,

    /// Packets of the attack a second
    #[arg(long, value_name = "PPS", default_value_t = 500_000.0, value_parser = super::chain::frames_a_second)]
    attack: f64,

    /// Seconds that an attack takes
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = crate::times::measured)]
    seconds: f64,

    /// Attacks for each way of bringing the filter in
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,

    /// One attack of a second for each way
    #[arg(long, conflicts_with_all = ["seconds", "repeats"])]
    quick: bool,

    /// The figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When figures cannot be printed.
pub fn run(args: &DosArgs) -> anyhow::Result<ExitStatus> {
    let long =
        DosOptions { attack_s: args.seconds, repeats: usize::from(args.repeats), ..DosOptions::full() };
    let options = DosOptions {
        normal_pps: args.normal,
        attack_pps: args.attack,
        setting: figures::setting(),
        ..if args.quick { DosOptions::quick() } else { long }
    };
    figures::measured(args.json, |progress| dos(&options, progress))
}
