//! `millrace bench throughput`: the rate that a chain carries.

use super::chain::{ChainArgs, positive};
use super::figures;
use crate::exit::ExitStatus;
use ::bench::machine::Machine;
use ::bench::search::{Goal, GoalResult, Limits, Sustained, search, sustained};
use ::bench::trial::{Tally, Trials};
use clap::Args;
use serde::Serialize;

/// A search that takes longer than this fails, in seconds.
const PATIENCE_S: f64 = 3_600.0;
/// Length of a full-length trial where none is asked for, in seconds, and the longest that a search with
/// longer trials uses by itself.
const TRIAL_S: f64 = 0.2;
const LONGEST_S: f64 = 5.0;

/// Finds the rate that a chain carries: without loss (NDR), and with half a percent (PDR).
///
/// Frames arrive at the chain's ports with generated traffic at a set rate, whether it fetches them or not,
/// and are lost where a port's ring is full. The search is that of RFC 9971 (MLRsearch). The chain runs in
/// this process. With --send and --receive, whatever stands between two devices is measured in its place.
#[derive(Debug, Args)]
pub struct ThroughputArgs {
    #[command(flatten)]
    chain: ChainArgs,

    /// One trial of 60 s without loss decides, as RFC 2544 has it; the search takes half an hour or more
    #[arg(long, conflicts_with_all = ["trial", "trials"])]
    rfc2544: bool,

    /// Time that a full-length trial takes; by default 200ms, and longer where that is too short for the
    /// buffers of what is measured
    #[arg(long, value_name = "TIME", value_parser = crate::times::seconds)]
    trial: Option<f64>,

    /// Full-length trials that settle a load, of which half may lose more than the goal allows
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,

    /// Loss that the partial drop rate allows, in percent
    #[arg(long, default_value_t = 0.5, value_parser = percent)]
    loss: f64,

    /// How narrow the answers are to be, in percent of the load
    #[arg(long, default_value_t = 1.0, value_parser = percent)]
    width: f64,

    /// The most that is offered, in millions of frames a second, at all ports together
    #[arg(long, default_value_t = 200.0, value_parser = positive)]
    most: f64,

    /// The figures as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    positive(text).and_then(|number| if number < 50.0 { Ok(number) } else { Err("below 50 percent".into()) })
}

/// The result of the command.
#[derive(Serialize)]
struct Found {
    machine: Machine,
    /// The chain with its execution mode, or the devices.
    what: String,
    /// Frames that come out per frame that goes in, without loss: below 1 if the chain drops frames by its
    /// configuration.
    passed: f64,
    goals: Vec<FoundGoal>,
    #[serde(flatten)]
    tally: Tally,
    sound: bool,
}

#[derive(Serialize)]
struct FoundGoal {
    name: &'static str,
    goal: Goal,
    conforms_to_rfc2544: bool,
    result: GoalResult,
    /// What longer trials found at that load; `null` where there is no load that fails, and for all goals but
    /// the last.
    sustained: Option<Sustained>,
}

/// Runs the command.
///
/// # Errors
/// When the chain has errors, or nothing can be measured.
pub fn run(args: &ThroughputArgs) -> anyhow::Result<ExitStatus> {
    let width = args.width / 100.0;
    let goals = |trial_s: f64| -> Vec<(&'static str, Goal)> {
        if args.rfc2544 {
            return vec![("throughput", Goal { width, ..Goal::RFC2544 })];
        }
        let quick = |goal: Goal| Goal { width, ..goal.quick(trial_s, args.trials) };
        let partial = Goal { loss_ratio: args.loss / 100.0, ..Goal::PDR };
        vec![("NDR", quick(Goal::NDR)), ("PDR", quick(partial))]
    };
    let machine = Machine::look();
    let mut chain = args.chain.start(&machine)?;
    let limits = Limits { least: 1_000.0, most: args.most * 1e6, patience_s: PATIENCE_S };
    let mut trials = Trials::new(chain.as_mut());
    let mut trial_s = args.trial.unwrap_or(TRIAL_S);
    let found_goals = loop {
        let found = found_goals(&goals(trial_s), &limits, &mut trials)?;
        // Who sets the length of trials is told that it is too short, and gets what was asked for.
        let enough_s = found.iter().filter_map(|found| found.sustained).map(|found| found.enough_s);
        let enough_s = enough_s.fold(trial_s, f64::max).min(LONGEST_S);
        if args.trial.is_some() || args.rfc2544 || enough_s <= trial_s {
            break found;
        }
        crate::text::complain(&format!(
            "trials of {trial_s} s are too short for the buffers of what is measured: again, with trials of {enough_s:.1} s"
        ));
        trial_s = enough_s;
    };
    let found = Found {
        machine,
        what: args.chain.what(),
        tally: trials.tally,
        passed: chain.passed(),
        goals: found_goals,
        sound: chain.end()?,
    };
    crate::text::print_found(args.json, &found, || found.text())?;
    Ok(ExitStatus::of(found.sound))
}

/// Searches for all goals, and offers the highest load that was found in longer trials.
fn found_goals(
    goals: &[(&'static str, Goal)],
    limits: &Limits,
    trials: &mut Trials,
) -> anyhow::Result<Vec<FoundGoal>> {
    let wanted: Vec<Goal> = goals.iter().map(|(_, goal)| *goal).collect();
    let results = search(&wanted, limits, trials)?;
    let last = goals.len().saturating_sub(1);
    let found = goals.iter().zip(results).enumerate().map(|(number, ((name, goal), result))| {
        let conforms_to_rfc2544 = goal.conforms_to_rfc2544();
        // The last goal accepts most, so its load fills buffers most. In trials of a minute there is no
        // doubt, and longer ones would take an hour.
        let is_asked = number == last && !conforms_to_rfc2544;
        let sustained = if is_asked { sustained(goal, &result, trials)? } else { None };
        Ok(FoundGoal { name, goal: *goal, conforms_to_rfc2544, result, sustained })
    });
    found.collect()
}

impl Found {
    fn text(&self) -> String {
        let mut text = figures::head(&self.what, &self.machine) + "\n";
        for FoundGoal { name, goal, conforms_to_rfc2544, result, sustained } in &self.goals {
            let mpps = |load: f64| format!("{:.3}", load / 1e6);
            text += &match *result {
                GoalResult::Regular { lower, upper, throughput } => format!(
                    "{name:<10} {} Mpps: {} are carried, {} are not; {} come through\n",
                    mpps(lower),
                    mpps(lower),
                    mpps(upper),
                    mpps(throughput)
                ),
                GoalResult::AllCarried { highest, .. } => {
                    format!(
                        "{name:<10} all that was offered is carried, {} Mpps; try --most\n",
                        mpps(highest)
                    )
                }
                GoalResult::NoneCarried { lowest } => {
                    format!("{name:<10} nothing is carried, not even {lowest:.0} frames a second\n")
                }
            };
            let Goal { loss_ratio, exceed_ratio, final_trial_s, duration_sum_s, width } = goal;
            text += &format!(
                "           loss up to {} %, trials of {final_trial_s} s, {duration_sum_s:.1} s in all for a load, of which \
                 {} % may lose more; width {} %{}\n",
                loss_ratio * 100.0,
                exceed_ratio * 100.0,
                width * 100.0,
                if *conforms_to_rfc2544 { "" } else { "; shorter than RFC 2544 asks" }
            );
            if let Some(sustained) = sustained.filter(|sustained| !sustained.is_enough) {
                text += &format!(
                    "           NOT SUSTAINED: in longer trials {} Mpps come through at that load, and {:.0} frames were \
                     buffered: --trial {:.1}s is long enough\n",
                    mpps(sustained.rate),
                    sustained.buffered,
                    sustained.enough_s
                );
            }
        }
        text += &format!("\n{}\n", self.tally);
        if self.passed < 0.9999 {
            text += &format!(
                "where nothing is lost, {:.2} % of the frames come out: the chain drops the others\n",
                self.passed * 100.0
            );
        }
        text
    }
}
