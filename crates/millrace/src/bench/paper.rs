//! `millrace bench paper` and `millrace bench all`: experiments from papers, and one report of all
//! experiments.

use super::figures::{self, Scratch};
use crate::exit::ExitStatus;
use crate::text::print;
use ::bench::experiment::Effort;
use ::bench::experiment::paper::{self, Paper};
use ::bench::experiment::peers::{PeersOptions, peers_and_latency};
use ::bench::experiment::workloads::workloads;
use ::bench::figure::{Figure, Report, Saved, write};
use ::bench::machine::Machine;
use ::bench::peer::{self, Peer};
use ::bench::wire::devices::Means;
use anyhow::Context;
use clap::Args;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of flows in the comparison with other systems, and the frame size in bytes, with FCS.
const PEERS: (u64, u16) = (1_000, 64);

/// How thoroughly to measure.
#[derive(Debug, Args)]
pub struct EffortArgs {
    /// Few rounds and short trials: all experiments in less than half an hour on two cores. This is the
    /// default
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// Trials as RFC 9971 has them, and more and longer rounds: about two hours
    #[arg(long)]
    full: bool,

    /// Just enough to see the direction of each result
    #[arg(long, hide = true, conflicts_with_all = ["quick", "full"])]
    miniature: bool,

    /// Keeps the chains that are measured, in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// A rule set in ClassBench's format, measured beside the generated ones of `snf-acl`
    #[arg(long, value_name = "FILE")]
    acl: Option<PathBuf>,

    /// Exit status 1 where a result is not as expected
    #[arg(long)]
    strict: bool,
}

impl EffortArgs {
    fn exit_status(&self, report: &Report) -> ExitStatus {
        let fails = self.strict && !report.figures.iter().all(Figure::holds);
        ExitStatus::of(!fails)
    }
}

/// Carries out experiments of papers, in the modes that this machine can run.
///
/// What a paper gives in numbers stands beside as a reference. What this machine cannot do is listed, with
/// the reason.
#[derive(Debug, Args)]
pub struct PaperArgs {
    /// Experiments, such as `niu-chain`, or the front of their names, such as `niu`
    #[arg(value_name = "NAME", required_unless_present = "list")]
    names: Vec<String>,

    /// Lists the experiments
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    effort: EffortArgs,

    /// Writes a report there: a page, Markdown, SVG, CSV and JSON
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

/// Carries out all experiments and writes one report: a page with plots, Markdown, CSV and JSON.
///
/// All experiments of papers, and Millrace beside other systems on the same ports (for which it needs root).
#[derive(Debug, Args)]
pub struct AllArgs {
    #[command(flatten)]
    effort: EffortArgs,

    /// Where the report is written, and each experiment as soon as it has ended
    #[arg(long, value_name = "FOLDER", default_value = "millrace-report")]
    to: PathBuf,

    /// Goes on with the report there: experiments that have ended are not carried out again. Refused on
    /// another machine, with other memory, with another build, with another effort, and with another file of --acl
    #[arg(long)]
    resume: bool,

    /// Only these experiments of papers, or those whose names begin so, and no other systems
    #[arg(long = "only", value_name = "NAME", hide = true)]
    only: Vec<String>,
}

/// Runs `bench paper`.
///
/// # Errors
/// When there is no such experiment, or the report cannot be written.
pub fn run(args: &PaperArgs) -> anyhow::Result<ExitStatus> {
    if args.list {
        let line = |paper: &Paper| format!("{:<20} {} [{}]\n", paper.name, paper.about, paper.source());
        print(&paper::ALL.iter().map(line).collect::<String>())?;
        return Ok(ExitStatus::Good);
    }
    let chosen = chosen(&args.names)?;
    let report = carry_out(&args.effort, &chosen, false, None)?;
    match &args.to {
        Some(folder) => finish(&report, folder)?,
        None => drop(figures::show(&report.figures, args.json)?),
    }
    Ok(args.effort.exit_status(&report))
}

/// Runs `bench all`.
///
/// # Errors
/// When the folder cannot be made, the frames for other systems cannot be made, or the report cannot be
/// written.
pub fn all(args: &AllArgs) -> anyhow::Result<ExitStatus> {
    // Made first, so that an error shows before the experiments run.
    std::fs::create_dir_all(&args.to).with_context(|| format!("cannot create {}", args.to.display()))?;
    let all = if args.only.is_empty() { paper::ALL.iter().collect() } else { chosen(&args.only)? };
    let saved = (args.to.as_path(), args.resume);
    let report = carry_out(&args.effort, &all, args.only.is_empty(), Some(saved))?;
    finish(&report, &args.to)?;
    Ok(args.effort.exit_status(&report))
}

/// Writes a report, and prints its files, the skipped measurements and the expectations that do not hold.
fn finish(report: &Report, folder: &Path) -> anyhow::Result<()> {
    let files = write(report, folder)?;
    let pages =
        files.iter().filter(|file| file.extension().is_some_and(|kind| kind != "svg" && kind != "csv"));
    let mut told: String = pages.map(|file| format!("{}\n", file.display())).collect();
    told += &format!("{} figures in {:.0} s\n", report.figures.len(), report.took_s);
    for figure in &report.figures {
        for skipped in &figure.skipped {
            told += &format!("SKIP: {}: {}: {}\n", figure.name, skipped.what, skipped.why);
        }
        for expectation in figure.expected.iter().filter(|expectation| !expectation.holds) {
            told += &format!("NOT AS EXPECTED: {}: {}\n", figure.name, expectation.sentence);
        }
    }
    Ok(print(&told)?)
}

/// The experiments with these names, or whose names begin with them.
fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Paper>> {
    figures::chosen(paper::ALL.iter().collect(), "experiment", |paper| paper.name, names)
}

/// Carries out experiments. With `saved` each is saved in that folder as it ends, and, where it is to be
/// resumed, those that have ended are not carried out again.
fn carry_out(
    args: &EffortArgs,
    papers: &[&Paper],
    with_peers: bool,
    saved: Option<(&Path, bool)>,
) -> anyhow::Result<Report> {
    figures::warn();
    let (began, start, machine) = (jiff::Timestamp::now(), Instant::now(), Machine::look());
    if machine.is_busy() {
        eprintln!("WARNING: something else runs on this machine (load {:.2})", machine.load);
    }
    let scratch = Scratch::new(args.keep.as_deref())?;
    let effort = Effort::of(args.full, args.miniature);
    let report = Report {
        machine: machine.clone(),
        program: program()?,
        began: began.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        took_s: 0.0,
        effort: effort.name.into(),
        rules: args.acl.as_deref().map(rules).transpose()?,
        figures: vec![],
    };
    let begin = |(folder, resume)| Saved::begin(folder, report.clone(), resume);
    let mut saved = saved.map(begin).transpose()?;
    let mut progress = figures::progress;
    let mut lab = figures::lab(effort.clone(), &scratch, &mut progress)?;
    lab.acl.clone_from(&args.acl);
    let mut found = vec![];
    let mut one = |name: &str, measure: &mut dyn FnMut() -> anyhow::Result<Vec<Figure>>| {
        if let Some(before) = saved.as_ref().and_then(|saved| saved.figures(name)) {
            found.extend_from_slice(before);
            return Ok(());
        }
        let start = Instant::now();
        let figures = measure()?;
        if let Some(saved) = &mut saved {
            saved.add(name, figures.clone(), start.elapsed().as_secs_f64())?;
        }
        found.extend(figures);
        anyhow::Ok(())
    };
    for paper in papers {
        one(paper.name, &mut || Ok(paper.run_or_skip(&mut lab)))?;
    }
    if with_peers {
        one("workloads", &mut || {
            let program = std::env::current_exe().context("this program's own file")?;
            Ok(match workloads(&mut lab, (program, vec!["bench".into()])) {
                Ok(mut figure) => {
                    figure.introduce(&effort.sentence());
                    vec![figure]
                }
                Err(why) => {
                    eprintln!("SKIP: workloads: {why}");
                    vec![]
                }
            })
        })?;
        one("peers", &mut || {
            let (rates, latencies) = peers_and_latency(&beside(&effort, &machine)?, &mut figures::progress)?;
            Ok(vec![rates, latencies])
        })?;
    }
    figures::progress("");
    let (took_s, began) = match &saved {
        Some(saved) => saved.took(),
        None => (start.elapsed().as_secs_f64(), report.began.as_str()),
    };
    Ok(Report { took_s, began: began.to_string(), figures: found, ..report })
}

/// The program and its build: its version, its commit where that is known, and what its file hashes to.
fn program() -> anyhow::Result<String> {
    let file = std::env::current_exe().context("this program's own file")?;
    let commit = option_env!("MILLRACE_BUILD_COMMIT").map(|commit| format!(", commit {commit}"));
    let (version, build) = (env!("CARGO_PKG_VERSION"), hash_of(&file)?);
    Ok(format!("millrace {version}{}, build {build}", commit.unwrap_or_default()))
}

/// A file of rules: its name, and what it hashes to.
fn rules(file: &Path) -> anyhow::Result<String> {
    let name = file.file_name().unwrap_or(file.as_os_str()).display();
    Ok(format!("{name}, {}", hash_of(file)?))
}

fn hash_of(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(format!("{:016x}", hasher.finish()))
}

/// The options of the comparison with other systems, for this effort.
fn beside(effort: &Effort, machine: &Machine) -> anyhow::Result<PeersOptions> {
    let core = machine.cores.last().copied().unwrap_or(0);
    let peers: Vec<Peer> = peer::built_in()?.iter().flat_map(peer::peers_of).collect();
    let trial_s = effort.trial_s.max(0.1);
    let (flows, size) = PEERS;
    Ok(PeersOptions {
        peers,
        rounds: effort.rounds,
        trial_s,
        size,
        flows,
        latency: (5_000.0, 4.0 * trial_s),
        tester_core: machine.cores.iter().copied().find(|other| *other != core).unwrap_or(core),
        core,
        means: Means::default(),
        millrace: std::env::current_exe()?,
        command: format!("millrace bench peers --rounds {} --seconds {trial_s}", effort.rounds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_chosen_by_name_or_its_front() {
        let names = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            chosen(&words).expect("known").iter().map(|paper| paper.name).collect()
        };
        assert_eq!(names(&["niu-chain"]), ["niu-chain"]);
        assert_eq!(names(&["mvmp", "snf-acl"]), ["mvmp-forward", "mvmp-duplicate", "mvmp-chain", "snf-acl"]);
        let error = chosen(&["ovs".into()]).err().expect("refused").to_string();
        assert!(error.contains("`ovs`") && error.contains("netvm-dos"), "{error}");
    }
}
