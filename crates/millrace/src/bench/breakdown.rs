//! `millrace bench breakdown`: the cycles per packet of each stage of a chain.

use super::figures;
use crate::exit::ExitStatus;
use ::bench::experiment::breakdown::{Breakdown, BreakdownOptions, measure};
use ::bench::figure::Figure;
use ::bench::machine::Machine;
use ::bench::shape::Shape;
use ::bench::start::RunOptions;
use clap::Args;
use runtime::traffic::Change;
use serde::Serialize;
use std::path::PathBuf;
use traffic::SizeMix;

/// Packet slots: for packets being processed, and for the mempool's caches.
const SLOTS: u32 = 16_384;

/// Prints cycles per packet of each stage of a chain: ports, elements, programs, NFs in processes.
///
/// The chain runs in this process as fast as it goes, with probes and without in turn. What the probes cost
/// is measured and subtracted, and the sum of the stages held against the chain without probes.
#[derive(Debug, Args)]
pub struct BreakdownArgs {
    /// Chain file, or a Click configuration, whose ports always have packets: generated traffic, a DPDK
    /// device
    chain: PathBuf,

    /// How NFs run that run in this process: modular (each element has a row), whole (fused, every packet
    /// through the whole program), fused (without a flow cache), cached
    #[arg(long = "as", value_name = "MODE", default_value = "modular")]
    shape: Shape,

    /// Sizes of generated frames, FCS counted, such as `64`, `imix` or `data-centre`; as in the chain file by
    /// default
    #[arg(long)]
    size: Option<SizeMix>,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,

    /// Core of the packet thread; the last one by default
    #[arg(long)]
    core: Option<usize>,

    /// How long is measured with probes in a round, and as long without
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// How often
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    machine: Machine,
    breakdown: Breakdown,
    figure: Figure,
}

/// Runs the command.
///
/// # Errors
/// When the chain has errors, or nothing can be measured.
pub fn run(args: &BreakdownArgs) -> anyhow::Result<ExitStatus> {
    let machine = Machine::look();
    let run = RunOptions {
        burst: usize::from(args.burst),
        cores: vec![args.core.or(machine.cores.last().copied()).unwrap_or(0)],
        slots: SLOTS,
        shape: Some(args.shape),
        change: Change { size: args.size.clone(), ..Change::default() },
        ..RunOptions::default()
    };
    let options = BreakdownOptions { run, seconds: args.seconds, rounds: usize::from(args.rounds) };
    figures::warn();
    let breakdown = measure(&args.chain, &options)?;
    let sound = breakdown.sound;
    let found = Found { figure: breakdown.figure(&args.command()), machine, breakdown };
    let Found { machine, breakdown, .. } = &found;
    let text = || format!("{}; {}\n{}", machine.processor, breakdown.measured(), breakdown.text());
    crate::text::print_found(args.json, &found, text)?;
    Ok(ExitStatus::of(sound))
}

impl BreakdownArgs {
    /// The command line that repeats the measurement.
    fn command(&self) -> String {
        let size = self.size.as_ref().map(|size| format!(" --size {size}")).unwrap_or_default();
        format!(
            "millrace bench breakdown {} --as {}{size} --burst {} --seconds {} --rounds {}",
            self.chain.display(),
            self.shape.name(),
            self.burst,
            self.seconds,
            self.rounds
        )
    }
}
