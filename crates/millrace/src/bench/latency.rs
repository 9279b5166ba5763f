//! `millrace bench latency`: the latency of frames through a chain.

use super::chain::{ChainArgs, frames_a_second, positive};
use super::figures;
use crate::accounting::table::{align_right, table};
use crate::exit::ExitStatus;
use ::bench::load::{Arrival, FlowRecord, Offer};
use ::bench::machine::Machine;
use ::bench::search::{Goal, Limits, search_one};
use ::bench::trial::{Tally, Trials};
use clap::Args;
use serde::Serialize;

/// The load of an idle chain, in frames per second: no frame waits for another.
const IDLE: f64 = 100.0;
/// The fewest frames of a row, so that the 99th percentile is meaningful.
const LEAST_FRAMES: f64 = 200.0;
/// The trials that decide whether a load is carried, in the search for the partial drop rate: their length in seconds,
/// and their number.
const SEARCH: (f64, u32) = (0.1, 5);
/// Loads as shares of the partial drop rate (PDR).
const SHARES: [(&str, f64); 3] = [("10 % of PDR", 0.1), ("50 % of PDR", 0.5), ("90 % of PDR", 0.9)];

/// Measures how long frames take through a chain, at rest, at shares of what it carries, and at set rates.
///
/// Every frame says when it was due, and is looked at when the chain sends it: from its arrival in the port's
/// ring, and whether the chain was ready then or not (corrected for coordinated omission). What is lost,
/// comes twice, or comes behind a later frame of its flow is counted exactly. The chain runs in this process.
/// With --send and --receive, whatever stands between two devices is measured in its place.
#[derive(Debug, Args)]
pub struct LatencyArgs {
    #[command(flatten)]
    chain: ChainArgs,

    /// Rates, in frames a second (`100,20kpps`); by default 100, and 10, 50 and 90 percent of what the chain
    /// carries with half a percent of loss
    #[arg(long, value_delimiter = ',', value_parser = frames_a_second)]
    rate: Vec<f64>,

    /// Time for each rate; at low rates it takes as long as 200 frames do
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::times::seconds)]
    seconds: f64,

    /// Frames come in bursts of so many at once, the bursts evenly; one after the other by default
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(2..=1 << 20))]
    at_once: Option<u64>,

    /// The most that is offered in the search for what the chain carries, in millions of frames a second
    #[arg(long, default_value_t = 200.0, value_parser = positive)]
    most: f64,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    machine: Machine,
    /// The chain with its execution mode, or the devices.
    what: String,
    /// The length of a rate's trial in seconds, at least.
    seconds: f64,
    /// The partial drop rate: stamped frames per second that the chain carries with half a percent of loss.
    /// `None` if rates were given.
    pdr: Option<f64>,
    rows: Vec<Row>,
    #[serde(flatten)]
    tally: Tally,
    sound: bool,
}

/// A rate with its results.
#[derive(Serialize)]
struct Row {
    name: String,
    /// Frames per second.
    rate: f64,
    frames: u64,
    #[serde(rename = "lost")]
    lost_packets: u64,
    duplicates: u64,
    reordered: u64,
    /// Received frames without a known stamp: too short for one, or made by the chain.
    strangers: u64,
    disturbed: bool,
    /// Latencies in nanoseconds; `None` if no stamped frame was received.
    latency_ns: Option<Quantiles>,
}

#[derive(Serialize)]
struct Quantiles {
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    #[serde(rename = "p99.9")]
    p99_9: u64,
    max: u64,
}

impl Quantiles {
    fn of(seen: &FlowRecord) -> Option<Quantiles> {
        let at = |quantile| seen.latency.value_at_quantile(quantile);
        (!seen.latency.is_empty()).then(|| Quantiles {
            min: seen.latency.min(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: seen.latency.max(),
        })
    }
}

/// Runs the command.
///
/// # Errors
/// When the chain has errors, or nothing can be measured.
pub fn run(args: &LatencyArgs) -> anyhow::Result<ExitStatus> {
    let machine = Machine::look();
    let mut chain = args.chain.start(&machine)?;
    let passed = chain.passed();
    let mut trials = Trials::new(chain.as_mut()).stamped();
    let mut pdr = None;
    let mut rates: Vec<(String, f64)> = args.rate.iter().map(|rate| (String::new(), *rate)).collect();
    if rates.is_empty() {
        let goal = Goal { width: 0.02, ..Goal::PDR.quick(SEARCH.0, SEARCH.1) };
        let limits = Limits { least: 1_000.0, most: args.most * 1e6, patience_s: 600.0 };
        let carried = search_one(goal, &limits, &mut trials)?.carried();
        pdr = Some(carried);
        rates.push(("idle".into(), IDLE));
        rates.extend(SHARES.map(|(name, share)| (name.to_string(), carried * share)));
        rates.retain(|(_, rate)| *rate > 0.0);
    }
    let mut rows = vec![];
    for (name, rate) in rates {
        let arrival = args.at_once.map_or(Arrival::Even, Arrival::Bursts);
        let offer = Offer { arrival, ..Offer::stamped(rate, args.seconds.max(LEAST_FRAMES / rate)) };
        let observed = trials.offer(&offer)?;
        let seen = observed.seen.as_ref();
        let count = |of: fn(&FlowRecord) -> u64| seen.map_or(0, of);
        let through = count(|seen| seen.frames) + count(|seen| seen.strangers);
        rows.push(Row {
            name,
            rate,
            frames: observed.intended,
            lost_packets: ((observed.intended as f64 * passed) as u64).saturating_sub(through),
            duplicates: count(|seen| seen.duplicates),
            reordered: count(|seen| seen.reordered),
            strangers: count(|seen| seen.strangers),
            disturbed: observed.is_disturbed(),
            latency_ns: seen.and_then(Quantiles::of),
        });
    }
    let tally = trials.tally;
    let found = Found {
        machine,
        what: args.chain.what(),
        seconds: args.seconds,
        pdr,
        rows,
        tally,
        sound: chain.end()?,
    };
    crate::text::print_found(args.json, &found, || found.text())?;
    Ok(ExitStatus::of(found.sound))
}

impl Found {
    fn text(&self) -> String {
        let mut text = figures::head(&self.what, &self.machine);
        text += &format!(
            "one trial of {} s for each rate, longer where that is less than {LEAST_FRAMES} frames\n",
            self.seconds
        );
        if let Some(pdr) = self.pdr {
            text += &format!(
                "PDR: {:.3} Mpps of stamped frames are carried with half a percent of loss, by {} trials of {} s\n",
                pdr / 1e6,
                SEARCH.1,
                SEARCH.0
            );
        }
        let header = ["load", "frames/s", "frames", "lost", "twice", "late"];
        let times = ["min µs", "p50", "p90", "p99", "p99.9", "max"];
        let mut table = table(header.iter().chain(&times).chain(&[""]).copied());
        for row in &self.rows {
            let counts = [row.frames, row.lost_packets, row.duplicates, row.reordered];
            let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
            let found = row.latency_ns.as_ref();
            let found = found.map(|all| [all.min, all.p50, all.p90, all.p99, all.p99_9, all.max].map(us));
            let mut cells = vec![row.name.clone(), format!("{:.0}", row.rate)];
            cells.extend(counts.map(|count| count.to_string()));
            cells.extend(found.unwrap_or_else(|| ["-"; 6].map(String::from)));
            cells.push(match () {
                () if row.disturbed => "disturbed".into(),
                () if row.latency_ns.is_none() => "no room for stamps: UDP takes 64 bytes, TCP 76".into(),
                () => String::new(),
            });
            table.add_row(cells);
        }
        align_right(&mut table, 1..header.len() + times.len());
        text += &format!("\n{table}\n\n");
        text += "late: behind a later frame of its flow. Times are from a frame's arrival in its port's ring to when the \
                 chain sends it; stamps cost some cycles a frame.\n";
        text + &format!("{}\n", self.tally)
    }
}
