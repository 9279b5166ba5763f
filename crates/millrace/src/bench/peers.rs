//! `millrace bench peers`: compares Millrace with other systems on the same ports.

use super::figures;
use crate::exit::{ExitStatus, Mistake};
use crate::text::print;
use ::bench::experiment::peers::{PeersOptions, peers_and_latency};
use ::bench::figure::{Figure, paragraph};
use ::bench::machine::Machine;
use ::bench::peer::{self, Peer};
use ::bench::wire::devices::Means;
use anyhow::Context;
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Compares Millrace with other systems: the same frames, ports and cores, taking turns.
///
/// Each system is started between two veth cables in network namespaces of its own (which needs root), and
/// the rate is searched for that it carries with up to half a percent of loss; then its latency is measured
/// at a low rate. What is not installed is left out and listed. A file adds a system: `--peer FILE`.
#[derive(Debug, Args)]
pub struct PeersArgs {
    /// Systems, such as `linux-forward millrace-fused`, or the front of their names, such as `millrace`; all
    /// by default
    #[arg(value_name = "PEER")]
    peers: Vec<String>,

    /// Adds the system that this file describes; may stand several times
    #[arg(long = "peer", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Lists the systems
    #[arg(long)]
    list: bool,

    /// How often each has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// How long a full-length trial takes
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// Bytes of a frame, with its checksum
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(64..=1518))]
    size: u16,

    /// Number of flows
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    flows: u64,

    /// Frames a second at which latency is measured
    #[arg(long, value_name = "RATE", default_value_t = 5000.0, value_parser = super::chain::frames_a_second)]
    latency_rate: f64,

    /// How the tester reaches its devices: af-packet, af-xdp
    #[arg(long, value_name = "MEANS", default_value = "af-packet")]
    tester: Means,

    /// Core of the systems; the last one by default. The tester has the first one
    #[arg(long)]
    core: Option<usize>,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When there is no such system, or the frames cannot be made.
pub fn run(args: &PeersArgs) -> anyhow::Result<ExitStatus> {
    let mut adapters = peer::built_in()?;
    for file in &args.files {
        let adapter = match peer::load(file) {
            Ok(adapter) => adapter,
            Err(mistakes) => {
                eprintln!("{mistakes}");
                return Ok(ExitStatus::Refused);
            }
        };
        // A user's system replaces a built-in one of the same name.
        adapters.retain(|known| known.name != adapter.name);
        adapters.push(adapter);
    }
    let all: Vec<Peer> = adapters.iter().flat_map(peer::peers_of).collect();
    if args.list {
        for peer in &all {
            let missing = peer.adapter.missing().map_or(String::new(), |why| format!(" ({why})"));
            print(&format!("{:<26} {}{missing}\n", peer.name, peer.adapter.about))?;
        }
        return Ok(ExitStatus::Good);
    }
    let peers = chosen(all, &args.peers)?;
    let machine = Machine::look();
    let core = args.core.or(machine.cores.last().copied()).unwrap_or(0);
    let options = PeersOptions {
        peers,
        rounds: usize::from(args.rounds),
        trial_s: args.seconds,
        size: args.size,
        flows: args.flows,
        latency: (args.latency_rate, 4.0 * args.seconds),
        tester_core: machine.cores.iter().copied().find(|other| *other != core).unwrap_or(core),
        core,
        means: args.tester,
        millrace: std::env::current_exe().context("this program's own file")?,
        command: figures::typed(),
    };
    figures::warn();
    let (rates, latencies) = peers_and_latency(&options, &mut figures::progress)?;
    figures::progress("");
    for skipped in &rates.skipped {
        eprintln!("SKIP: {}: {}", skipped.what, skipped.why);
    }
    let both = [&rates, &latencies];
    crate::text::print_found(args.json, &figures::Listed { figures: &both }, || text(&both))?;
    Ok(ExitStatus::of(rates.holds()))
}

/// The systems with these names, or whose names begin with them; all if there are no names.
fn chosen(all: Vec<Peer>, names: &[String]) -> anyhow::Result<Vec<Peer>> {
    if names.is_empty() {
        return Ok(all);
    }
    figures::chosen(all, "system", |peer| &peer.name, names)
        .map_err(|error| Mistake::new(format_args!("{error}; `--peer FILE` adds one")).into())
}

/// Figures as text. Their settings and notes, which are the same, follow the last one.
fn text(figures: &[&Figure]) -> String {
    let mut text = String::new();
    for figure in figures {
        let names =
            figure.series.iter().flat_map(|series| series.points.iter().map(|point| figure.x.value(point.x)));
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let _ = writeln!(text, "{}\n\n{}", figure.title, paragraph("", &figure.about));
        for series in &figure.series {
            for point in &series.points {
                let number =
                    |value: f64| if value < 100.0 { format!("{value:.3}") } else { format!("{value:.0}") };
                let _ = writeln!(
                    text,
                    "{:<width$}  {:<16} {:>10} {:<5} ({} to {}){}",
                    figure.x.value(point.x),
                    series.name,
                    number(point.y.median),
                    figure.y.unit,
                    number(point.y.min),
                    number(point.y.max),
                    if point.disturbed { " disturbed" } else { "" }
                );
            }
        }
        for expectation in &figure.expected {
            let holds = if expectation.holds { "holds" } else { "FAILS" };
            let _ = writeln!(text, "  {holds}: {}", expectation.sentence);
        }
        text.push('\n');
    }
    if let Some(figure) = figures.last() {
        for (name, value) in &figure.settings {
            let _ = writeln!(text, "  {name}: {value}");
        }
        for note in &figure.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> anyhow::Result<Vec<String>> {
        let all = peer::built_in().expect("sound").iter().flat_map(peer::peers_of).collect();
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Ok(chosen(all, &words)?.into_iter().map(|peer| peer.name).collect())
    }

    #[test]
    fn systems_are_chosen_by_name_or_its_front() {
        assert_eq!(names(&["linux-forward"]).expect("known"), ["linux-forward"]);
        assert_eq!(names(&["millrace-fused", "nft"]).expect("known"), ["nftables", "millrace-fused"]);
        assert_eq!(names(&["millrace-firewall"]).expect("known").len(), 4);
        assert_eq!(names(&[]).expect("all").len(), 13);
        let error = names(&["vpp"]).expect_err("refused").to_string();
        assert!(
            error.contains("`vpp`") && error.contains("linux-forward") && error.contains("--peer"),
            "{error}"
        );
    }
}
