//! `millrace stats`: the counters of the daemon's chain.

use super::At;
use super::nf;
use crate::accounting;
use crate::exit::ExitStatus;
use crate::text::{print, print_json};
use crate::times;
use clap::Args;
use control::api::Stats;
use std::io::IsTerminal;
use std::time::Duration;

/// Shows the packet accounting of the daemon's chain: packets in, out, and dropped, with the element and the reason.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Shows them again and again
    #[arg(long, short)]
    watch: bool,

    /// With --watch: time between two looks; a number alone counts seconds
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = times::time, requires = "watch")]
    interval: Duration,

    /// As JSON
    #[arg(long, conflicts_with_all = ["watch", "prometheus"])]
    json: bool,

    /// As Prometheus reads them
    #[arg(long, conflicts_with = "watch")]
    prometheus: bool,

    /// Shows every element, also those that no packet reached
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    at: At,
}

/// Runs the command.
///
/// # Errors
/// When no daemon answers, or it has no chain.
pub fn run(args: &StatsArgs) -> anyhow::Result<ExitStatus> {
    let client = args.at.client()?;
    if args.prometheus {
        print(&client.metrics()?)?;
        return Ok(ExitStatus::Good);
    }
    let mut last: Option<Stats> = None;
    loop {
        let stats = client.stats()?;
        if args.json {
            print_json(&stats)?;
            break;
        }
        let text = text(&stats, last.as_ref(), args.all);
        if !args.watch {
            print(&text)?;
            break;
        }
        let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
        print(&format!("{clear}{text}\n"))?;
        last = Some(stats);
        std::thread::sleep(args.interval.max(Duration::from_millis(100)));
    }
    Ok(ExitStatus::Good)
}

/// The counters as text, with rates since `last`. With `all`, elements that no packet reached are included.
pub fn text(stats: &Stats, last: Option<&Stats>, all: bool) -> String {
    let mut text = accounting::elements(&stats.elements, all);
    if !stats.nfs.is_empty() {
        text += &nf::list(&stats.nfs);
        text.push('\n');
    }
    text += &accounting::sum(stats);
    if let Some(rates) = last.and_then(|last| rates(stats, last)) {
        text += &rates;
    }
    for finding in &stats.warnings {
        text += &format!("warning: {finding}\n");
    }
    text
}

/// Packets received, sent and dropped in millions per second since `last`; `None` if the two cannot be
/// compared.
pub fn rates(stats: &Stats, last: &Stats) -> Option<String> {
    let seconds = stats.up_s - last.up_s;
    // `last` is of another chain.
    if seconds <= 0.0 || stats.received < last.received {
        return None;
    }
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds / 1e6;
    Some(format!(
        "in {:.3} Mpps   out {:.3} Mpps   dropped {:.3} Mpps\n",
        rate(stats.received, last.received),
        rate(stats.sent, last.sent),
        rate(stats.dropped, last.dropped)
    ))
}
