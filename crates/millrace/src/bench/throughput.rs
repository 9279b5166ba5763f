//! `millrace bench throughput`: the rate that a chain carries.

use super::chain::{ChainArgs, positive};
use super::figures;
use crate::exit::ExitStatus;
use ::bench::machine::Machine;
use ::bench::search::{Goal, GoalResult, Limits, search};
use ::bench::trial::{Tally, Trials};
use clap::Args;
use serde::Serialize;

/// A search that takes longer than this fails, in seconds.
const PATIENCE_S: f64 = 3_600.0;

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

    /// Time that a full-length trial takes
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = crate::times::seconds)]
    trial: f64,

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
    #[arg(long)]
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
}

/// Runs the command.
///
/// # Errors
/// When the chain has errors, or nothing can be measured.
pub fn run(args: &ThroughputArgs) -> anyhow::Result<ExitStatus> {
    let width = args.width / 100.0;
    let goals: Vec<(&'static str, Goal)> = match args.rfc2544 {
        true => vec![("throughput", Goal { width, ..Goal::RFC2544 })],
        false => {
            let quick = |goal: Goal| Goal { width, ..goal.quick(args.trial, args.trials) };
            let partial = Goal { loss_ratio: args.loss / 100.0, ..Goal::PDR };
            vec![("NDR", quick(Goal::NDR)), ("PDR", quick(partial))]
        }
    };
    let machine = Machine::look();
    let mut chain = args.chain.start(&machine)?;
    let limits = Limits { least: 1_000.0, most: args.most * 1e6, patience_s: PATIENCE_S };
    let wanted: Vec<Goal> = goals.iter().map(|(_, goal)| *goal).collect();
    let mut trials = Trials::new(chain.as_mut());
    let results = search(&wanted, &limits, &mut trials)?;
    let goal = |((name, goal), result): ((&'static str, Goal), GoalResult)| FoundGoal {
        name,
        goal,
        conforms_to_rfc2544: goal.conforms_to_rfc2544(),
        result,
    };
    let found = Found {
        machine,
        what: args.chain.what(),
        tally: trials.tally,
        passed: chain.passed(),
        goals: goals.into_iter().zip(results).map(goal).collect(),
        sound: chain.end()?,
    };
    crate::text::print_found(args.json, &found, || found.text())?;
    Ok(ExitStatus::of(found.sound))
}

impl Found {
    fn text(&self) -> String {
        let mut text = figures::head(&self.what, &self.machine) + "\n";
        for FoundGoal { name, goal, conforms_to_rfc2544, result } in &self.goals {
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
