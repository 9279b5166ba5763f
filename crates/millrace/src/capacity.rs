//! `millrace plan`: the resources that a load needs, and whether this machine has them.
//!
//! [`bench::capacity`] measures and computes; this module has the options and the output.

use crate::exit::ExitStatus;
use crate::text::{print, print_json};
use ::bench::capacity::measure::{Measured, RING, measure};
use ::bench::capacity::verify::{Verified, VerifyOptions, verify};
use ::bench::capacity::{Ask, CapacityPlan, make};
use ::bench::load::{Batching, ChainOptions, ChainUnderTest, DISTURBED, UnderTest};
use ::bench::machine::{Machine, Topology};
use ::bench::shape::Shape;
use ::bench::start::RunOptions;
use ::bench::units::{Nanoseconds, Rate};
use anyhow::Context;
use clap::Args;
use runtime::traffic::Change;
use serde::Serialize;
use std::path::PathBuf;
use traffic::SizeMix;

/// Packet slots: for packets being processed, and for the mempool's caches.
const SLOTS: u32 = 16_384;
/// The most times that a plan is made and verified. It is repeated if verification fails and the machine's
/// speed changed meanwhile.
const ATTEMPTS: usize = 3;

/// Plans how many cores and queues, which burst and which frequency a load needs, and what latency to
/// expect.
///
/// What packets cost is measured here, at the sizes asked for, in a closed loop; how sockets and cores lie is
/// read from /sys. Exit status 1: this machine does not do it, or `--verify` found that the plan does not
/// hold.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Chain file with generated traffic at a port
    chain: PathBuf,

    /// What is to be carried, at all ports together: `5Mpps`, or `10Gbps` on the wire (with 20 bytes of
    /// preamble and gap for each frame)
    #[arg(long)]
    rate: Rate,

    /// Sizes of frames, FCS counted: `64`, `64:7,594:4,1518:1`, `genome:aaafg` (RFC 6985), `imix`,
    /// `data-centre`; as in the chain file by default
    #[arg(long)]
    size: Option<SizeMix>,

    /// How long a frame may take on average, such as `200us`
    #[arg(long, value_name = "TIME", value_parser = crate::times::nanoseconds)]
    latency: Option<Nanoseconds>,

    /// Runs the plan, or one worker's share of it where this machine has too few cores, and fails where what
    /// it carries is off by more than 15 % or what frames take by more than a factor of two
    #[arg(long)]
    verify: bool,

    /// Loss that counts as carried when the plan is verified, in percent
    #[arg(long, default_value_t = 0.5, value_parser = percent)]
    loss: f64,

    /// Time that a trial takes when the plan is verified
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = crate::times::measured)]
    trial: f64,

    /// Trials that settle a load when the plan is verified
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    trials: u32,

    /// How NFs run that run in this process: modular, whole (fused, every packet through the whole
    /// program), fused (without a flow cache), cached (with one)
    #[arg(long = "as", value_name = "MODE", default_value = "cached")]
    shape: Shape,

    /// Core of the packet thread while it is measured; the last one by default
    #[arg(long)]
    core: Option<usize>,

    /// How long is measured for each burst, three times
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = crate::times::measured)]
    seconds: f64,

    /// The plan as JSON
    #[arg(long, short = 'j')]
    json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.0..50.0).contains(&number) { Ok(number) } else { Err("0 to 50 percent".into()) }
}

#[derive(Serialize)]
struct Found {
    machine: Machine,
    topology: Topology,
    #[serde(flatten)]
    checked: CheckedPlan,
}

/// Runs the command.
///
/// # Errors
/// When the chain has errors, nothing can be measured, or packets are unaccounted for.
pub fn run(args: &PlanArgs) -> anyhow::Result<ExitStatus> {
    let machine = Machine::look();
    let topology = Topology::look(&machine.cores);
    let core = args.core.or(machine.cores.last().copied()).unwrap_or(0);
    crate::bench::warn();
    let run = RunOptions {
        burst: 1,
        cores: vec![core],
        slots: SLOTS,
        shape: Some(args.shape),
        change: Change { size: args.size.clone(), ..Change::default() },
        ..RunOptions::default()
    };
    let (mut attempt, mut again) = (1, make_and_verify(args, &topology, &run)?);
    while let CheckedPlan { verified: Some(verified), .. } = &again
        && !verified.holds
        && !verified.is_steady()
        && attempt < ATTEMPTS
    {
        crate::text::complain(
            "the machine is not what it was when the plan was made: all of it is done again",
        );
        again = make_and_verify(args, &topology, &run)?;
        attempt += 1;
    }
    let holds = again.plan.fits && again.verified.as_ref().is_none_or(|verified| verified.holds);
    if args.json {
        print_json(&Found { machine, topology, checked: again })?;
    } else {
        let CheckedPlan { plan, verified, disturbed, far } = again;
        let mut text = plan.text();
        if disturbed > DISTURBED {
            let percent = disturbed * 100.0;
            text += &format!(
                "WARNING: something else had the core for {percent:.1} % of the time while it was measured\n"
            );
        }
        if plan.costs.has_ring && plan.costs.open.is_none() {
            text += "WARNING: something else had the core while loads at a set rate were offered: what they cost beside a full \
                     ring is not in the plan\n";
        }
        if far {
            text +=
                "WARNING: a hypervisor had moved cores apart for a part of the time while it was measured\n";
        }
        text += &verified.map(|verified| verified.text()).unwrap_or_default();
        print(&text)?;
    }
    Ok(ExitStatus::of(holds))
}

/// A plan, with its verification and the conditions of the measurement.
#[derive(Serialize)]
struct CheckedPlan {
    /// The share of the measuring time in which other threads had the core.
    disturbed: f64,
    /// Whether, during a part of that time, cores that share packets had different last-level caches (a
    /// hypervisor had moved them).
    far: bool,
    plan: CapacityPlan,
    verified: Option<Verified>,
}

/// Measures, makes the plan, and verifies it with `--verify`.
fn make_and_verify(args: &PlanArgs, topology: &Topology, run: &RunOptions) -> anyhow::Result<CheckedPlan> {
    let Measured { costs, facts, mean_bytes, disturbed, far } = measure(&args.chain, run, args.seconds)?;
    let ask = Ask {
        chain: args.chain.display().to_string(),
        rate: args.rate,
        frames: args.rate.frames(mean_bytes),
        size: args.size.as_ref().map_or("the chain file's".into(), ToString::to_string),
        mean_bytes,
        latency: args.latency,
    };
    let plan = make(&ask, &costs, &facts, topology);
    // At or above the capacity, queues are full and the latency depends on their size alone.
    let verified = match args.verify && plan.load < plan.capacity {
        true => Some(put_to_the_test(args, &plan, run.clone())?),
        false => None,
    };
    Ok(CheckedPlan { plan, verified, disturbed, far })
}

/// Offers the load to the chain with the planned number of workers, or one worker's share of it if this
/// machine has too few cores.
fn put_to_the_test(args: &PlanArgs, plan: &CapacityPlan, run: RunOptions) -> anyhow::Result<Verified> {
    let cores = plan.worker_cores();
    let cores = if plan.fits && cores.len() > 1 { cores } else { run.cores.clone() };
    let workers = cores.len();
    let rings = (RING as u32).saturating_mul(u32::try_from(workers).unwrap_or(u32::MAX));
    let run = RunOptions { burst: plan.burst, cores, slots: SLOTS.saturating_add(rings), ..run };
    let options = ChainOptions { run, ring: RING, batching: Batching::Adaptive, parts: false };
    let started = ChainUnderTest::start(&args.chain, &options).context("the plan cannot be verified")?;
    let mut under_test: Box<dyn UnderTest> = Box::new(started);
    let (loss_ratio, trial_s, trials) = (args.loss / 100.0, args.trial, args.trials);
    let how = VerifyOptions { loss_ratio, trial_s, trials, workers };
    let verified = verify(plan, under_test.as_mut(), &how);
    // The chain is ended even if the verification failed.
    let sound = under_test.end()?;
    let verified = verified?;
    anyhow::ensure!(sound, "not every packet was accounted for");
    Ok(verified)
}
