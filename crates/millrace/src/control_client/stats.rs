//! `millrace stats`: the counters of the daemon's chain.

use super::nf;
use crate::accounting::{self, table::Look};
use crate::at::At;
use crate::exit::ExitStatus;
use crate::text::{print, print_found, print_if_read, print_json_line, rate};
use crate::times;
use clap::Args;
use control::Client;
use control::api::Stats;
use std::io::IsTerminal;
use std::time::Duration;

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);

/// Shows the packet accounting of the daemon's chain: packets in, out, and dropped, with the element and the reason.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Shows them again and again
    #[arg(long)]
    watch: bool,

    /// With --watch: time between two looks; a number alone counts seconds
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = times::time, requires = "watch")]
    interval: Duration,

    /// As JSON; with --watch, an object a line
    #[arg(long, short = 'j', conflicts_with = "prometheus")]
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
    if !args.watch {
        let stats = client.stats()?;
        print_found(args.json, &stats, || text(&stats, None, args.all))?;
        return Ok(ExitStatus::Good);
    }
    if args.json {
        return watch_as_json(&client, args.interval);
    }
    let mut last: Option<Stats> = None;
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let stats = client.stats()?;
        if !print_if_read(&format!("{clear}{}\n", text(&stats, last.as_ref(), args.all)))? {
            return Ok(ExitStatus::Good);
        }
        last = Some(stats);
        std::thread::sleep(args.interval.max(SHORTEST));
    }
}

/// Prints the counters as JSON again and again, an object a line, until nothing reads them.
///
/// # Errors
/// When no daemon answers, or it has no chain.
pub fn watch_as_json(client: &Client, interval: Duration) -> anyhow::Result<ExitStatus> {
    while print_json_line(&client.stats()?)? {
        std::thread::sleep(interval.max(SHORTEST));
    }
    Ok(ExitStatus::Good)
}

/// The counters as text, with rates since `last`. With `all`, elements that no packet reached are included.
pub fn text(stats: &Stats, last: Option<&Stats>, all: bool) -> String {
    let look = Look::of_stdout();
    let mut text = accounting::elements(&stats.elements, all, look);
    if !stats.nfs.is_empty() {
        text += &nf::list(&stats.nfs, look);
        text.push('\n');
    }
    text += &accounting::sum(stats, look);
    if let Some(rates) = last.and_then(|last| rates(stats, last)) {
        text += &rates;
    }
    for finding in &stats.warnings {
        text += &format!("warning: {finding}\n");
    }
    text
}

/// Packets received, sent and dropped in a second since `last`, and the bits of their frames; `None` if the two cannot be
/// compared.
pub fn rates(stats: &Stats, last: &Stats) -> Option<String> {
    let seconds = stats.up_s - last.up_s;
    // `last` is of another chain.
    if seconds <= 0.0 || stats.received < last.received {
        return None;
    }
    let rates = |packets: u64, bytes: Option<u64>| {
        let packets = rate(packets as f64 / seconds, "pps");
        match bytes {
            Some(bytes) => format!("{packets} ({})", rate(bytes as f64 * 8.0 / seconds, "bit/s")),
            None => packets,
        }
    };
    let since = |now: u64, before: u64| now.saturating_sub(before);
    Some(format!(
        "in {}   out {}   dropped {}\n",
        rates(since(stats.received, last.received), Some(since(stats.received_bytes, last.received_bytes))),
        rates(since(stats.sent, last.sent), Some(since(stats.sent_bytes, last.sent_bytes))),
        rates(since(stats.dropped, last.dropped), None)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_packets_and_bits() {
        let last = Stats { up_s: 1.0, received: 100, received_bytes: 6_000, ..Stats::default() };
        let now = Stats { up_s: 3.0, received: 900, received_bytes: 54_000, sent: 3_000_000, ..last.clone() };
        let now = Stats { sent_bytes: 180_000_000, dropped: 3, ..now };
        assert_eq!(
            rates(&now, &last).as_deref(),
            Some("in 400 pps (192.000 kbit/s)   out 1.500 Mpps (720.000 Mbit/s)   dropped 2 pps\n")
        );
        // Another chain, and a second look at the same moment.
        assert_eq!(rates(&last, &now), None);
        assert_eq!(rates(&now, &now), None);
    }
}
