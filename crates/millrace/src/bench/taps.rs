//! `millrace bench taps`: what NFs cost that share traffic.

use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::taps::{TapOptions, taps};
use clap::Args;

/// Measures throughput over the number of NFs that share a virtual device, as copies, observers and taps.
///
/// NFs are processes that read, and with copies of their own swap, the addresses of each frame (MVMP, figure 6).
#[derive(Debug, Args)]
pub struct TapArgs {
    /// Frame sizes in bytes, with the FCS
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_parser = clap::value_parser!(u32).range(64..=1518))]
    sizes: Vec<u32>,

    /// The most NFs
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=32))]
    most: u16,

    /// How often each point is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,

    /// Seconds that a measurement takes, without warming up
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// Each point once, for a fifth of a second
    #[arg(long, conflicts_with_all = ["repeats", "seconds"])]
    quick: bool,

    /// The figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When this program's file is not known.
pub fn run(args: &TapArgs) -> anyhow::Result<ExitStatus> {
    let (repeats, seconds) = if args.quick { (1, 0.2) } else { (args.repeats, args.seconds) };
    let options = TapOptions {
        sizes: args.sizes.clone(),
        most: usize::from(args.most),
        repeats: usize::from(repeats),
        seconds,
        program: Some(figures::relay()?),
        setting: figures::setting(),
    };
    figures::measured(args.json, |progress| taps(&options, progress))
}
