//! `millrace bench chain | colocation | scale | acl | loss | back-to-back`: experiments on the user's chains.

use super::chain::positive;
use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::lab::Lab;
use ::bench::experiment::{Effort, acl, colocation, loss, repeat, scale};
use ::bench::figure::Figure;
use ::bench::shape::Shape;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// How thoroughly, and how figures are printed.
#[derive(Debug, Args)]
pub struct How {
    /// Trials as RFC 9971 has them, and more rounds
    #[arg(long)]
    full: bool,

    /// Just enough to see the direction of each result
    #[arg(long, hide = true, conflicts_with = "full")]
    miniature: bool,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum OwnExperiment {
    /// Measures throughput over how often the NFs of a chain stand in a row, in every mode.
    ///
    /// The NFs of a chain file whose links are one row from generated traffic to a port that discards, once,
    /// twice and so on: as one function (with a flow cache and without), as elements, and each in a process
    /// of its own.
    Chain {
        /// Chain file with generated traffic at a port, and a port that discards
        chain: PathBuf,

        /// One NF of it alone
        #[arg(long)]
        nf: Option<String>,

        /// How often they stand in a row, at most
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=64))]
        most: u16,

        #[command(flatten)]
        how: How,
    },
    /// Measures what independent chains carry at once, each on a core of its own, and how much they disturb
    /// each other.
    Colocation {
        /// Chain files; where there are fewer than chains at once, they are used again in turn
        #[arg(required = true, value_name = "CHAIN")]
        chains: Vec<PathBuf>,

        /// Chains at once, at most; as many as there are cores by default
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
        most: Option<u16>,

        /// How NFs run that run in this process
        #[arg(long = "as", value_name = "MODE", default_value = "cached",
              value_parser = PossibleValuesParser::new(Shape::KNOWN.map(Shape::name)).try_map(|text| text.parse::<Shape>()))]
        shape: Shape,

        #[command(flatten)]
        how: How,
    },
    /// Measures how a chain's throughput grows with flows, frame sizes, bursts and cores, and fits the
    /// growth.
    Scale {
        /// Chain file with generated traffic at a port
        chain: PathBuf,

        #[command(flatten)]
        how: How,
    },
    /// Measures an ISP's chain (firewall, router, NAPT) over the number of its rules: throughput and latency.
    Acl {
        /// Numbers of rules, made up in the manner of ClassBench's acl1
        #[arg(value_name = "RULES", default_values = ["251", "713", "8550"],
              value_parser = clap::value_parser!(u32).range(2..=100_000))]
        rules: Vec<u32>,

        /// A rule set in ClassBench's format, measured beside them
        #[arg(long, value_name = "FILE")]
        acl: Option<PathBuf>,

        #[command(flatten)]
        how: How,
    },
    /// Measures how many frames are lost over the offered load, from half to twice what a chain carries (RFC
    /// 2544, 26.3).
    Loss {
        /// Chain file with generated traffic at a port, and a port that discards
        chain: PathBuf,

        #[command(flatten)]
        how: How,
    },
    /// Measures how many frames may come back to back at the rate of a line before one is lost (RFC 2544,
    /// 26.4; RFC 9004).
    BackToBack {
        /// Chain file with generated traffic at a port, and a port that discards
        chain: PathBuf,

        /// The line's rate, in Gbit/s
        #[arg(long, default_value_t = 10.0, value_parser = positive)]
        line: f64,

        #[command(flatten)]
        how: How,
    },
}

impl How {
    /// Runs an experiment and prints its figures.
    fn carry_out(
        &self,
        experiment: impl FnOnce(&mut Lab) -> Result<Vec<Figure>, ::bench::BenchError>,
    ) -> anyhow::Result<ExitStatus> {
        let effort = Effort::of(self.full, self.miniature);
        let sentence = effort.sentence();
        figures::measured(self.json, effort, &sentence, |lab| {
            let mut figures = experiment(lab)?;
            figures.iter_mut().for_each(|figure| figure.command = figures::typed());
            Ok(figures)
        })
    }
}

/// Carries out an experiment.
///
/// # Errors
/// When a chain has mistakes or cannot be laid out, or its NFs do not stand in one row.
pub fn run(experiment: &OwnExperiment) -> anyhow::Result<ExitStatus> {
    match experiment {
        OwnExperiment::Chain { chain, nf, most, how } => {
            how.carry_out(|lab| repeat::chain(lab, chain, nf.as_deref(), usize::from(*most)))
        }
        OwnExperiment::Colocation { chains, most, shape, how } => how.carry_out(|lab| {
            let most = most.map_or(lab.machine.cores.len(), usize::from);
            Ok(vec![colocation::colocated(lab, chains, most, *shape, None)?])
        }),
        OwnExperiment::Scale { chain, how } => how.carry_out(|lab| scale::scale(lab, chain)),
        OwnExperiment::Acl { rules, acl: file, how } => {
            let counts: Vec<usize> = rules.iter().map(|count| *count as usize).collect();
            how.carry_out(|lab| {
                lab.acl.clone_from(file);
                acl::acl(lab, &counts)
            })
        }
        OwnExperiment::Loss { chain, how } => how.carry_out(|lab| loss::loss(lab, chain)),
        OwnExperiment::BackToBack { chain, line, how } => {
            how.carry_out(|lab| loss::back_to_back(lab, chain, *line))
        }
    }
}
