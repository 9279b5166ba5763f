//! `millrace bench`: cycles per packet of common workloads, and the experiments by name.
//!
//! [`bench::speed`] measures the workloads; this module has the options.

mod breakdown;
mod chain;
mod figures;
mod latency;
mod own;
mod paper;
mod peers;
mod processes;
mod report;
mod throughput;

pub use figures::warn;

use crate::exit::ExitStatus;
use crate::text::print;
use ::bench::shape::Shape;
use ::bench::speed::{self, MeasureOptions, Options, PortKind, workload};
use anyhow::Context;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Prints cycles per packet of network functions, beside dpdk-testpmd on the same kind of port.
///
/// 64-byte frames, one core. Every measurement is a process of its own; the workloads take turns, round by
/// round. Build in release mode, and let nothing else run meanwhile.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    experiment: Option<Experiment>,

    /// Workloads, such as `l2 napt-1`, or the front of their names, such as `napt`; all by default
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,

    /// Lists the workloads
    #[arg(long)]
    list: bool,

    /// Kinds of ports: memory, null (DPDK's net_null), pcap (DPDK's net_pcap)
    #[arg(long, value_delimiter = ',', default_value = "memory,null,pcap")]
    ports: Vec<PortKind>,

    /// Numbers of flows
    #[arg(long, value_delimiter = ',', default_value = "1000,65536", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    flows: Vec<u64>,

    /// How often everything is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// How long a measurement takes, without warming up
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// Packets that are worked on at a time, 1 to 256
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    burst: u16,

    /// Core of the packet thread; the last one by default
    #[arg(long)]
    core: Option<usize>,

    /// File with the prefixes of the full table, one in a line; made up by default
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,

    /// File with the rules of the workloads `isp-file*`, in ClassBench's format
    #[arg(long, value_name = "FILE")]
    acl: Option<PathBuf>,

    /// How NFs run that run in this process, each workload in all of these modes, side by side: modular,
    /// whole (fused, every packet through the whole program), fused (without a flow cache), cached (with one)
    #[arg(long = "as", value_name = "MODE", value_delimiter = ',', default_value = "modular,fused,cached")]
    shapes: Vec<Shape>,

    /// Leaves dpdk-testpmd out
    #[arg(long)]
    no_testpmd: bool,

    /// Keeps the chains and captures that are measured, in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// The figures as JSON
    #[arg(long, short = 'j', conflicts_with = "markdown")]
    json: bool,

    /// The figures as Markdown
    #[arg(long)]
    markdown: bool,

    /// Fails unless FastClick's share of I/O is reached
    #[arg(long)]
    gate: bool,

    /// Lays out the chains in the folder of `--keep`, measures nothing, and prints as JSON with which
    /// arguments each row is measured
    #[arg(long, hide = true, requires = "keep")]
    lay_out: bool,

    /// Measures one chain in this process
    #[arg(long, hide = true)]
    one: Option<PathBuf>,

    #[arg(long, hide = true, default_value_t = 0)]
    warm_packets: u64,

    #[arg(long, hide = true, default_value_t = 16_384)]
    slots: u32,

    #[arg(long, hide = true, value_parser = write)]
    write: Vec<(String, PathBuf)>,
}

/// Experiments that are asked for by name.
#[derive(Debug, Subcommand)]
enum Experiment {
    All(paper::AllArgs),
    Paper(paper::PaperArgs),
    Report(report::ReportArgs),
    Peers(peers::PeersArgs),
    Throughput(throughput::ThroughputArgs),
    #[command(flatten)]
    Own(own::OwnExperiment),
    Breakdown(breakdown::BreakdownArgs),
    Latency(latency::LatencyArgs),
    #[command(flatten)]
    Processes(processes::ProcessExperiment),
}

/// Parses `HANDLER=FILE`: a handler, and the file whose text is written to it.
fn write(text: &str) -> Result<(String, PathBuf), String> {
    let (handler, file) = text.split_once('=').ok_or("HANDLER=FILE")?;
    Ok((handler.into(), file.into()))
}

/// Runs the command.
///
/// # Errors
/// When there is no such workload, or its chains cannot be written or started.
pub fn run(args: &BenchArgs) -> anyhow::Result<ExitStatus> {
    match &args.experiment {
        Some(Experiment::All(args)) => return paper::all(args),
        Some(Experiment::Paper(args)) => return paper::run(args),
        Some(Experiment::Report(args)) => return report::run(args),
        Some(Experiment::Peers(args)) => return peers::run(args),
        Some(Experiment::Throughput(args)) => return throughput::run(args),
        Some(Experiment::Own(experiment)) => return own::run(experiment),
        Some(Experiment::Breakdown(args)) => return breakdown::run(args),
        Some(Experiment::Latency(args)) => return latency::run(args),
        Some(Experiment::Processes(experiment)) => return processes::run(experiment),
        None => {}
    }
    if let Some(chain) = &args.one {
        return one(args, chain);
    }
    if args.list {
        for workload in workload::all() {
            print(&format!("{:<22} {}\n", workload.name, workload.about))?;
        }
        return Ok(ExitStatus::Good);
    }
    let scratch = figures::Scratch::new(args.keep.as_deref())?;
    let program = std::env::current_exe().context("this program's own file")?;
    let options = Options {
        workloads: chosen(&args.workloads)?,
        ports: args.ports.clone(),
        flows: args.flows.clone(),
        rounds: usize::from(args.rounds),
        seconds: args.seconds,
        shapes: args.shapes.clone(),
        burst: usize::from(args.burst),
        core: args.core,
        testpmd: !args.no_testpmd,
        table: args.table.clone(),
        acl: args.acl.clone(),
        folder: scratch.folder.clone(),
        program: (program, vec!["bench".into()]),
    };
    if args.lay_out {
        print(&format!("{}\n", serde_json::to_string(&speed::lay_out(&options)?)?))?;
        return Ok(ExitStatus::Good);
    }
    figures::warn();
    let report = speed::run(&options, &mut figures::progress)?;
    print(&match () {
        () if args.json => crate::text::json(&serde_json::from_str::<serde_json::Value>(&report.json()?)?)?,
        () if args.markdown => report.markdown(),
        () => report.text(),
    })?;
    let fails = args.gate && !report.holds();
    Ok(ExitStatus::of(!fails))
}

fn one(args: &BenchArgs, chain: &Path) -> anyhow::Result<ExitStatus> {
    let options = MeasureOptions {
        seconds: args.seconds,
        burst: usize::from(args.burst),
        core: args.core.unwrap_or(0),
        warm_packets: args.warm_packets,
        slots: args.slots,
        shape: args.shapes.first().copied().unwrap_or_default(),
        writes: args.write.clone(),
    };
    let sample = speed::measure_chain(chain, &options)?;
    print(&format!("{}\n", serde_json::to_string(&sample)?))?;
    Ok(ExitStatus::Good)
}

/// The workloads with these names, or whose names begin with them; always with `floor` and `forward`, to
/// which others are compared.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static workload::Workload>> {
    if names.is_empty() {
        return Ok(workload::all().collect());
    }
    let names: Vec<String> = ["floor".into(), "forward".into()].into_iter().chain(names.to_vec()).collect();
    figures::chosen(workload::all().collect(), "workload", |workload| workload.name, &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        chosen(&words).expect("known").iter().map(|workload| workload.name).collect()
    }

    #[test]
    fn what_shares_are_taken_of_is_always_measured() {
        assert_eq!(names(&["l3-10"]), ["floor", "forward", "l3-10"]);
        assert_eq!(names(&["napt"]), ["floor", "forward", "napt-1", "napt-2", "napt-4", "napt-10"]);
        assert_eq!(names(&[]).len(), workload::all().count());
    }

    #[test]
    fn an_unknown_workload_is_refused_with_the_list() {
        let error = chosen(&["l4".into()]).expect_err("refused").to_string();
        assert!(error.contains("`l4`") && error.contains("firewall-10"), "{error}");
    }
}
