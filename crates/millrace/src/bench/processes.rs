//! `millrace bench deploy | dos | steering | taps`: experiments on NFs in processes of their own.

use super::chain::frames_a_second;
use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::deploy::deploy;
use ::bench::experiment::dos::{DosOptions, dos};
use ::bench::experiment::steering::steering;
use ::bench::experiment::taps::taps;
use ::bench::experiment::{Effort, sentence_of};
use ::bench::units::counted;
use clap::Subcommand;
use std::path::PathBuf;

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum ProcessExperiment {
    /// Measures how long it takes from the order to start an NF until it says hello, and until its first
    /// packet comes out.
    ///
    /// In every way that this machine has: rules exchanged in place, chains exchanged, processes, containers.
    /// With a chain file, the NFs of that chain are started, one after the other (NetVM, figure 17).
    Deploy {
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
        #[arg(long, short = 'j')]
        json: bool,
    },
    /// Measures how long it takes until an attack is noticed, a filter brought in, and normal traffic alone
    /// gets through.
    ///
    /// A flood of SYNs goes to one server among normal flows; what notices it looks at a counter, as an
    /// orchestrator would by `millrace chain handler`, and writes rules or starts a filter in a process or
    /// container (NetVM, figure 18).
    Dos {
        /// Normal packets a second
        #[arg(long, value_name = "PPS", default_value_t = 50_000.0, value_parser = frames_a_second)]
        normal: f64,

        /// Packets of the attack a second
        #[arg(long, value_name = "PPS", default_value_t = 500_000.0, value_parser = frames_a_second)]
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
        #[arg(long, short = 'j')]
        json: bool,
    },
    /// Measures the packets that each of several instances of an NF gets, and their sum.
    ///
    /// Once with `steer = "least-filled"` and once with `"flow"`, over 1, 2, 3, … instances in processes
    /// (NetVM, figure 16). With a chain file, there are several of one of its NFs, which runs as the file
    /// says.
    Steering {
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
        #[arg(long, short = 'j')]
        json: bool,
    },
    /// Measures throughput over the number of NFs that share a virtual device, as copies, observers and taps.
    ///
    /// NFs are processes that read, and with copies of their own swap, the addresses of each frame (MVMP,
    /// figure 6).
    Taps {
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
        #[arg(long, short = 'j')]
        json: bool,
    },
}

/// Carries out an experiment.
///
/// # Errors
/// When no process can be started, or a chain does not run.
pub fn run(experiment: &ProcessExperiment) -> anyhow::Result<ExitStatus> {
    let effort = |rounds: u16, seconds| Effort { rounds: rounds.into(), seconds, ..Effort::FULL };
    match experiment {
        ProcessExperiment::Deploy { chain, repeats, quick, image, json } => {
            let repeats = if *quick { 3 } else { *repeats };
            let (effort, chain) = (effort(repeats, Effort::FULL.seconds), chain.as_deref());
            let sentence = sentence_of(*quick, &format!("{} of each way", counted(repeats.into(), "repeat")));
            figures::measured(*json, effort, &sentence, |lab| Ok(vec![deploy(lab, chain, image.as_deref())?]))
        }
        ProcessExperiment::Dos { normal, attack, seconds, repeats, quick, json } => {
            let long = DosOptions { attack_s: *seconds, repeats: usize::from(*repeats), ..DosOptions::FULL };
            let options = DosOptions {
                normal_pps: *normal,
                attack_pps: *attack,
                ..if *quick { DosOptions::QUICK } else { long }
            };
            let attacks = counted(options.repeats, "attack");
            let measured = format!("{attacks} of {} s with each defence", options.attack_s);
            figures::measured(*json, Effort::FULL, &sentence_of(*quick, &measured), |lab| {
                Ok(dos(lab, &options))
            })
        }
        ProcessExperiment::Steering { chain, nf, most, repeats, seconds, quick, json } => {
            let (most, repeats, seconds) = if *quick { (3, 1, 0.2) } else { (*most, *repeats, *seconds) };
            let chain = chain.as_deref().map(|chain| (chain, nf.as_deref()));
            let sentence = rounds(*quick, repeats, seconds);
            let effort = effort(repeats, seconds);
            figures::measured(*json, effort, &sentence, |lab| steering(lab, most.into(), chain))
        }
        ProcessExperiment::Taps { sizes, most, repeats, seconds, quick, json } => {
            let (repeats, seconds) = if *quick { (1, 0.2) } else { (*repeats, *seconds) };
            let sentence = rounds(*quick, repeats, seconds);
            let effort = effort(repeats, seconds);
            figures::measured(*json, effort, &sentence, |lab| Ok(taps(lab, sizes, (*most).into())))
        }
    }
}

/// Rounds at saturation, as a sentence.
fn rounds(is_quick: bool, repeats: u16, seconds: f64) -> String {
    sentence_of(is_quick, &format!("{} of {seconds} s for each point", counted(repeats.into(), "round")))
}
