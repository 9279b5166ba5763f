//! Verifies a plan: offers its load to the chain, or one worker's share of it.
//!
//! First it searches for the rate that the chain carries (RFC 9971, with half a percent of loss by default
//! and short trials) and compares it with the plan. Then it offers the planned load with stamped frames and
//! compares their median latency with the plan. It uses the median because a machine that takes the core away
//! now and then adds milliseconds to a few frames, which no plan foresees. At high loads only some frames
//! have stamps, because stamps cost time.
//!
//! Machines, above all virtual ones, have phases in which everything takes longer. Therefore the cost of
//! packets is measured again before and after the search: where it differs from that of the plan, the machine
//! changed, and the plan is not at fault.

use super::measure::flood;
use super::text::lines;
use super::{CapacityPlan, THROUGHPUT_BORNE};
use crate::BenchError;
use crate::load::{Offer, UnderTest};
use crate::search::{Goal, GoalResult, Limits, search_one};
use crate::stats::median;
use crate::trial::{Tally, Trials};
use crate::units::{Nanoseconds, scaled};
use serde::Serialize;

/// The factor by which the latency may differ from the plan.
pub const LATENCY_BORNE: f64 = 2.0;
/// How far the cost of packets may be from that of the plan, as a share of it.
const STEADY: f64 = 0.08;
/// Rounds in all, if the first one finds that the plan does not hold.
const ROUNDS: usize = 3;
/// Trials of the planned load in a round.
const LATENCY_TRIALS: usize = 3;
/// A search gives up after this many seconds.
const PATIENCE_S: f64 = 600.0;

/// How thoroughly to verify a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VerifyOptions {
    /// The highest loss at which a load counts as carried, as a share.
    pub loss_ratio: f64,
    /// Length of a trial, in seconds.
    pub trial_s: f64,
    /// Trials that decide whether a load is carried.
    pub trials: u32,
    /// Workers of the chain under test.
    pub workers: usize,
}

/// A planned value, and the measured one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The planned value.
    pub said: f64,
    /// The measured value.
    pub found: f64,
}

impl Compared {
    /// The difference of the measured value from the planned one, as a share of the planned one.
    pub fn off(self) -> f64 {
        self.found / self.said - 1.0
    }

    /// The factor by which the two differ, at least 1.
    pub fn factor(self) -> f64 {
        let factor = self.found / self.said;
        factor.max(1.0 / factor)
    }
}

/// The result of a verification.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verified {
    /// Carried rate, in frames a second.
    pub throughput: Compared,
    /// The least and the most that the plan said by the spread of its measurements, in frames a second.
    pub said_range: Option<(f64, f64)>,
    /// The result of the search.
    pub search: GoalResult,
    /// Median latency of a frame at the planned load, in nanoseconds; `None` where frames have no stamps.
    pub latency: Option<Compared>,
    /// The 99th percentile of latency, in nanoseconds.
    pub p99_ns: Option<f64>,
    /// The loss at the planned load, as a share of the frames.
    pub loss_ratio: f64,
    /// Workers of the chain under test.
    pub workers: usize,
    /// The carried rate of each round in frames a second, in ascending order.
    pub rounds: Vec<f64>,
    /// The cost of a packet before the first round and after each round, as a multiple of the plan's. Empty
    /// for a chain that was measured in a closed loop.
    pub paces: Vec<f64>,
    /// The number of trials, and of those that were disturbed.
    pub tally: Tally,
    /// Whether throughput and latency are within their limits.
    pub holds: bool,
}

/// Verifies a plan. The chain under test runs in the plan's execution mode and with its burst size. Where the
/// first round finds that the plan does not hold although the cost of packets did not change, three rounds
/// decide by their medians: a single search ends too low if the machine was busy with something else in a
/// trial that decided it.
///
/// # Errors
/// When nothing can be measured.
pub fn verify(
    plan: &CapacityPlan,
    under_test: &mut dyn UnderTest,
    options: &VerifyOptions,
) -> Result<Verified, BenchError> {
    let (mut rounds, mut tally) = (vec![], Tally::default());
    let saturation = plan.saturation * options.workers.max(1) as f64;
    let pace = |under_test: &mut dyn UnderTest| match plan.costs.has_ring {
        true => Ok::<_, BenchError>(Some(flood(under_test, options.trial_s)?.ns * saturation / 1e9)),
        false => Ok(None),
    };
    let mut paces: Vec<f64> = pace(under_test)?.into_iter().collect();
    for number in 1..=ROUNDS {
        rounds.push(round(plan, under_test, options, &mut tally)?);
        paces.extend(pace(under_test)?);
        let so_far = judged(plan, options, &rounds, paces.clone(), tally);
        if number == 1 && (so_far.holds || !so_far.is_steady()) {
            break;
        }
    }
    Ok(judged(plan, options, &rounds, paces, tally))
}

/// The results of one round.
struct Round {
    search: GoalResult,
    /// Carried rate, in frames a second.
    carried: f64,
    /// For each trial of the planned load: the median and the 99th percentile of latency, in nanoseconds.
    latencies: Vec<(f64, f64)>,
    /// For each trial, the loss as a share.
    losses: Vec<f64>,
}

/// Searches for the carried rate, then offers the planned load.
fn round(
    plan: &CapacityPlan,
    under_test: &mut dyn UnderTest,
    options: &VerifyOptions,
    tally: &mut Tally,
) -> Result<Round, BenchError> {
    let (passed, workers) = (under_test.passed(), options.workers.max(1) as f64);
    let (capacity, load) = (plan.capacity * workers, plan.load * workers);
    let mut offered = Trials::new(under_test);
    offered.tally = *tally;
    let goal = Goal { loss_ratio: options.loss_ratio, width: 0.02, ..Goal::PDR };
    let goal = goal.quick(options.trial_s, options.trials);
    let limits = Limits { least: capacity / 20.0, most: capacity * 2.0, patience_s: PATIENCE_S };
    let search = search_one(goal, &limits, &mut offered)?;
    let (mut latencies, mut losses) = (vec![], vec![]);
    for _ in 0..LATENCY_TRIALS {
        let observed = offered.offer(&Offer::sampled(load, options.trial_s))?;
        losses.push(observed.loss_ratio(passed));
        if let Some(latency) = observed.latency() {
            let ns = |quantile: f64| latency.value_at_quantile(quantile) as f64;
            latencies.push((ns(0.5), ns(0.99)));
        }
    }
    *tally = offered.tally;
    Ok(Round { carried: search.carried(), search, latencies, losses })
}

/// Compares the medians of all rounds with the plan.
fn judged(
    plan: &CapacityPlan,
    options: &VerifyOptions,
    rounds: &[Round],
    paces: Vec<f64>,
    tally: Tally,
) -> Verified {
    let mut by_rate: Vec<&Round> = rounds.iter().collect();
    by_rate.sort_by(|one, other| one.carried.total_cmp(&other.carried));
    let middle = by_rate.get(by_rate.len() / 2);
    let (found, search) = middle
        .map_or((0.0, GoalResult::NoneCarried { lowest: 0.0 }), |middle| (middle.carried, middle.search));
    let throughput = Compared { said: plan.capacity * options.workers.max(1) as f64, found };
    let latencies = || rounds.iter().flat_map(|round| &round.latencies);
    let latency = median(latencies().map(|(middle, _)| *middle));
    let latency = latency.map(|found| Compared { said: plan.latency_ns, found });
    let holds = throughput.off().abs() <= THROUGHPUT_BORNE
        && latency.is_none_or(|latency| latency.factor() <= LATENCY_BORNE);
    let all = options.workers.max(1) as f64;
    Verified {
        throughput,
        said_range: plan.capacity_range.map(|(least, most)| (least * all, most * all)),
        search,
        latency,
        p99_ns: median(latencies().map(|(_, tail)| *tail)),
        loss_ratio: median(rounds.iter().flat_map(|round| &round.losses).copied()).unwrap_or(0.0),
        workers: options.workers,
        rounds: by_rate.iter().map(|round| round.carried).collect(),
        paces,
        tally,
        holds,
    }
}

impl Verified {
    /// Whether the cost of packets stayed near that of the plan, as far as it is known.
    pub fn is_steady(&self) -> bool {
        self.paces.iter().all(|times| (times - 1.0).abs() <= STEADY)
    }

    /// The result as text.
    pub fn text(&self) -> String {
        let Compared { said, found } = self.throughput;
        let percent = self.throughput.off() * 100.0;
        let verdict = |holds: bool, borne: &str| match holds {
            true => format!("within {borne}"),
            false => format!("NOT within {borne}: the plan does not hold"),
        };
        let fine = verdict(percent.abs() <= THROUGHPUT_BORNE * 100.0, "15 %");
        let who = match self.workers {
            1 => "a worker".into(),
            workers => format!("a chain of {workers} workers"),
        };
        let mut text = String::new();
        let mut line = |name: &str, said: &str| lines(&mut text, name, said);
        let (carried, planned) = (scaled(found), scaled(said));
        line(
            "verified",
            &format!("{who} carries {carried}pps, {planned}pps were said: {percent:+.1} %, {fine}"),
        );
        if let Some((least, most)) = self.said_range {
            let (low, high) = (scaled(least), scaled(most));
            let is_in = if (least..=most).contains(&found) { "within" } else { "NOT within" };
            line("", &format!("that is {is_in} the {low}pps to {high}pps that the plan is sure of"));
        }
        let latency = match (self.latency, self.p99_ns) {
            (Some(latency), Some(p99)) => format!(
                "a frame takes {} at the planned load (median; 99 of 100 at most {}), {} were said: a factor of {:.1}, {}",
                Nanoseconds(latency.found),
                Nanoseconds(p99),
                Nanoseconds(latency.said),
                latency.factor(),
                verdict(latency.factor() <= LATENCY_BORNE, "a factor of 2")
            ),
            _ => "latency: not known, frames have no stamps here".into(),
        };
        line("", &latency);
        line("", &format!("{:.3} % of the frames are lost at the planned load", self.loss_ratio * 100.0));
        if let [least, .., most] = self.rounds.as_slice() {
            let (rounds, least, most) = (self.rounds.len(), scaled(*least), scaled(*most));
            line(
                "",
                &format!("these are the medians of {rounds} rounds, which found {least}pps to {most}pps"),
            );
        }
        if let (Some((before, after)), false) = (self.paces.split_first(), self.is_steady()) {
            let after: Vec<String> = after.iter().map(|times| format!("{times:.2}")).collect();
            let told = format!(
                "WARNING: the machine is not steady: a packet took {before:.2} times as long before the search, and {} \
                 times as long after it, as when the plan was made",
                after.join(", ")
            );
            line("", &told);
        }
        if self.tally.disturbed > 0 {
            let Tally { disturbed, trials, .. } = self.tally;
            let so = if 2 * disturbed > trials { ": this says nothing of the plan" } else { "" };
            line(
                "",
                &format!(
                    "WARNING: something else had the core, or cores had been moved apart, in {disturbed} of {trials} trials{so}"
                ),
            );
        }
        text
    }
}
