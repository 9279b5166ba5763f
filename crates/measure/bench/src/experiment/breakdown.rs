//! Measures the cycles of each stage of a chain: table I of NetVM, for any chain.
//!
//! The chain runs in a closed loop. In one run, so with the same memory and tables, it is measured in turn
//! with and without probes ([`worker::profile`]). The cost of one probe, a reading of the cycle counter, is
//! measured by repeated readings and subtracted from each stage by its number of readings. The stages then
//! have to add up to the cost of the chain without probes; the breakdown reports the difference.
//!
//! For an NF in a process of its own the breakdown has the host's stages, and how long the process ran as
//! seen from outside. Where the NF does not sleep, that time includes polling for packets.

mod text;

use super::lab::sentence_of;
use crate::BenchError;
use crate::experiment::live::await_until;
use crate::figure::{Axis, Expectation, Figure, Point, Series, Skipped};
use crate::load::DISTURBED;
use crate::start::{RunOptions, failed};
use crate::stats::Quantiles;
use crate::trial::again;
use crate::trial::closed::{ClosedLoop, PROCESS_NF, Window};
use crate::units::counted;
use runtime::running::Running;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use traffic::SizeMix;
use worker::profile::{Probes, Stage, StageCycles};
use worker::report::NodeReport;

/// How far the sum of the stages may be from the cost of the chain without probes, as a share of it.
pub const BORNE: f64 = 0.15;
/// How long a worker may take to switch its probes on or off.
const PATIENCE: Duration = Duration::from_secs(10);

/// How to measure a breakdown.
#[derive(Clone, PartialEq, Debug)]
pub struct BreakdownOptions {
    /// How the chain runs, on one core.
    pub run: RunOptions,
    /// Seconds with probes in each round, and as many without.
    pub seconds: f64,
    /// The number of rounds.
    pub rounds: usize,
}

/// The kind of a stage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A worker receives packets from a port.
    Receive,
    /// An element processes packets.
    #[default]
    Element,
    /// An element takes packets by itself: from a queue, or by a timer.
    Task,
    /// A fused region processes packets.
    Program,
    /// The host enqueues packets to an NF in a process.
    ToNf,
    /// The NF holds the packets: the time that its process ran.
    InNf,
    /// The host collects the NF's completions.
    FromNf,
    /// A worker sends packets to a port.
    Send,
    /// The worker's own loop.
    Loop,
    /// Turns and tasks that found no packets.
    Waiting,
}

impl Kind {
    /// Where it stands in a table, where packets come first and go last, and its name there.
    fn row(self) -> (u8, &'static str) {
        match self {
            Kind::Receive => (0, "receive"),
            Kind::Element => (1, "element"),
            Kind::Task => (1, "task"),
            Kind::Program => (1, "program"),
            Kind::ToNf => (1, "host to NF"),
            Kind::InNf => (1, "in the NF"),
            Kind::FromNf => (1, "NF to host"),
            Kind::Send => (2, "send"),
            Kind::Loop => (3, "loop"),
            Kind::Waiting => (4, "waiting"),
        }
    }

    /// The name of the kind in tables.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether a worker spends the cycles of this stage.
    pub fn is_of_worker(self) -> bool {
        self != Kind::InNf
    }
}

/// The cost of a stage.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct StageCost {
    /// The kind of the stage.
    pub kind: Kind,
    /// The name of the element; for a program, the number of its elements.
    pub name: String,
    /// The class of the element.
    pub class: String,
    /// Cycles per packet that the chain received, without those of the probes.
    pub cycles: Quantiles,
    /// The median in nanoseconds.
    pub ns: f64,
    /// Readings of the cycle counter per packet.
    pub readings: f64,
    /// The elements of a program.
    pub elements: Vec<String>,
}

/// Where a chain's cycles go.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Breakdown {
    /// The chain file.
    pub chain: String,
    /// The execution mode of its NFs.
    pub mode: &'static str,
    /// Burst size, in packets.
    pub burst: usize,
    /// The frame sizes, where they replace those of the chain file.
    pub size: Option<SizeMix>,
    /// The number of rounds.
    pub rounds: usize,
    /// Seconds with probes in each round, and as many without.
    pub seconds: f64,
    /// The stages, in the order of a packet's path as far as there is one.
    pub stages: Vec<StageCost>,
    /// Cycles per packet of all stages of the worker.
    pub sum: Quantiles,
    /// Cycles per packet of the chain without probes.
    pub unprobed: Quantiles,
    /// Cycles per packet that the probes cost; the stages do not include them.
    pub probes: Quantiles,
    /// The cost of one reading of the counter, in cycles.
    pub reading: f64,
    /// Ticks of the time stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
    /// The share of the time in which something else had the core.
    pub disturbed: f64,
    /// Rounds in which the cores of the worker and of the NFs were further apart than at other times.
    pub far: usize,
    /// Whether every packet was accounted for.
    pub sound: bool,
}

impl Breakdown {
    /// Whether something else had the core for too long, or the cores were far apart in most rounds.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed > DISTURBED || 2 * self.far > self.rounds
    }

    /// The difference of the stages' sum from the cost without probes, as a share of the latter.
    pub fn difference(&self) -> f64 {
        if self.unprobed.median > 0.0 { self.sum.median / self.unprobed.median - 1.0 } else { 0.0 }
    }

    /// Cycles per packet of all stages of a kind.
    pub fn cycles(&self, kind: Kind) -> f64 {
        self.stages.iter().filter(|stage| stage.kind == kind).map(|stage| stage.cycles.median).sum()
    }

    /// The stages as a figure with bars.
    pub fn figure(&self, command: &str) -> Figure {
        let (repeats, disturbed) = (self.rounds, self.is_disturbed());
        let series = [("packet thread", true), ("the NFs' processes", false)].map(|(name, own)| {
            let stages = self.stages.iter().enumerate().filter(|(_, stage)| stage.kind.is_of_worker() == own);
            let points =
                stages.map(|(at, stage)| Point { x: at as f64, y: stage.cycles, repeats, disturbed });
            Series::own(name, points.collect())
        });
        let has = |kind: Kind| self.stages.iter().any(|stage| stage.kind == kind);
        let skipped = [
            (
                Kind::Program,
                "the elements inside a fused program",
                "they run as one program, in which instructions of several elements are mixed; measure them with \
                 --as modular",
            ),
            (
                Kind::InNf,
                "the elements of an NF in a process",
                "only how long its process ran is known from outside, and that counts looking for packets",
            ),
        ];
        let skipped = skipped.into_iter().filter(|(kind, ..)| has(*kind));
        let setting = |name: &str, value: String| (name.to_string(), value);
        Figure {
            name: "breakdown".into(),
            title: "Cycles per packet of each stage".into(),
            about: format!(
                "{} {} ({}) in a closed loop on one core, bursts of {}: own cycles of each stage, for each packet received.",
                sentence_of(false, &self.measured()),
                self.chain,
                self.mode,
                self.burst
            ),
            source: Some("NetVM, table I".into()),
            command: command.into(),
            x: Axis::names("stage", self.stages.iter().map(StageCost::title)),
            y: Axis::linear("cost", "cycles per packet"),
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
            settings: vec![
                setting("burst", self.burst.to_string()),
                setting(
                    "frame size",
                    self.size.as_ref().map_or("the chain file's".into(), ToString::to_string),
                ),
                setting("rounds", self.rounds.to_string()),
                setting("seconds with probes, and as long without", self.seconds.to_string()),
                setting("cycles in a nanosecond", format!("{:.3}", self.cycles_per_ns)),
            ],
            skipped: skipped.map(|(_, what, why)| Skipped { what: what.into(), why: why.into() }).collect(),
            notes: vec![self.cost_of_probes()],
            expected: vec![Expectation::of_times(
                format!(
                    "the stages add up to the chain without probes within {:.0} %: {:+.1} %",
                    BORNE * 100.0,
                    self.difference() * 100.0
                ),
                self.difference().abs() <= BORNE,
            )],
        }
    }

    /// A sentence with the cost of the probes and the difference of the sum.
    pub fn cost_of_probes(&self) -> String {
        format!(
            "probes cost {:.1} cycles a packet ({:.0} a reading), subtracted; the sum is within {:.1} % of the unprobed \
             figure",
            self.probes.median,
            self.reading,
            self.difference().abs() * 100.0
        )
    }
}

/// Measures the chain in a file.
///
/// # Errors
/// When the machine has no time stamp counter, the chain has errors, or no packets arrive.
pub fn measure(path: &Path, options: &BreakdownOptions) -> Result<Breakdown, BenchError> {
    let Some(cycles_per_ns) = worker::clock::cycles_per_ns() else {
        return Err(failed("this machine has no time stamp counter; measure with `bench throughput`"));
    };
    let chain = ClosedLoop::warmed_up(path, &options.run)?;
    let probes = chain.running().probes().first().ok_or_else(|| failed("no packet thread"))?.clone();
    let nfs = nf_processes(&chain);
    let mut round = || -> Result<Round, BenchError> {
        let was_far = !chain.await_near();
        switch(chain.running(), &probes, false)?;
        let before = ran_ns(&nfs);
        let plain = chain.watch(options.seconds)?;
        let ran =
            ran_ns(&nfs).iter().zip(before).map(|(after, before)| after.saturating_sub(before)).collect();
        switch(chain.running(), &probes, true)?;
        let (stages, interrupted) = (probes.stages(), probes.interrupted());
        let probed = chain.watch(options.seconds)?;
        let interrupted = probes.interrupted() - interrupted;
        let stages = passed(&stages, &probes.stages());
        let is_far = was_far || chain.is_far();
        Ok(Round { plain, ran, probed, cost: probes.cost(), interrupted, stages, is_far })
    };
    let (mut rounds, mut repeats) = (vec![], options.rounds.max(1));
    for _ in 0..options.rounds.max(1) {
        let (measured, repeated) = again(repeats, &mut round, |round| round.is_far)?;
        repeats -= repeated;
        rounds.push(measured);
    }
    switch(chain.running(), &probes, false)?;
    let nodes = chain.running().report().nodes;
    let sound = chain.end().is_balanced();
    let of = |stage: Stage| label(stage, &nodes, &probes);
    Ok(Breakdown {
        chain: path.display().to_string(),
        mode: options.run.shape.unwrap_or_default().name(),
        burst: options.run.burst,
        size: options.run.change.size.clone(),
        seconds: options.seconds,
        sound,
        ..evaluate(&rounds, cycles_per_ns, &of, &nfs)
    })
}

/// Switches probes on or off and waits until that is so.
pub(super) fn switch(running: &Running, probes: &Probes, on: bool) -> Result<(), BenchError> {
    probes.set(on);
    let switched = await_until(PATIENCE, || probes.is_on() == on || running.is_over());
    match (probes.is_on() == on, switched) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(failed("the run ended by itself")),
        (false, None) => Err(failed("the packet thread takes no turns")),
    }
}

/// The measurements of a round.
struct Round {
    /// The window without probes.
    plain: Window,
    /// How long each NF's process ran during `plain`, in nanoseconds.
    ran: Vec<u64>,
    /// The window with probes.
    probed: Window,
    /// The cycles and readings of each stage during `probed`.
    stages: Vec<StageCycles>,
    /// The cost of one reading, in cycles.
    cost: f64,
    /// Cycles that belong to no stage.
    interrupted: u64,
    /// Whether the cores were further apart than at other times.
    is_far: bool,
}

/// The increase of each stage's counts.
fn passed(before: &[StageCycles], after: &[StageCycles]) -> Vec<StageCycles> {
    let difference = |(before, after): (&StageCycles, &StageCycles)| StageCycles {
        cycles: after.cycles.saturating_sub(before.cycles),
        readings: after.readings.saturating_sub(before.readings),
        ..*after
    };
    before.iter().zip(after).map(difference).collect()
}

impl StageCost {
    /// One that costs nothing and has no name.
    fn of(kind: Kind) -> StageCost {
        StageCost { kind, ..StageCost::default() }
    }

    /// Its name in tables and plots.
    pub fn title(&self) -> String {
        match self.kind {
            Kind::Loop | Kind::Waiting => self.kind.name().into(),
            kind if self.name.is_empty() => kind.name().into(),
            kind => format!("{} {}", kind.name(), self.name),
        }
    }
}

/// A stage by its name, without its cost.
fn label(stage: Stage, nodes: &[NodeReport], probes: &Probes) -> StageCost {
    let of = |node: usize, kind: fn(&NodeReport) -> Kind| match nodes.get(node) {
        Some(node) => {
            StageCost { name: node.name.clone(), class: node.class.clone(), ..StageCost::of(kind(node)) }
        }
        None => StageCost::of(Kind::Element),
    };
    match stage {
        Stage::Turn => StageCost::of(Kind::Loop),
        Stage::Waiting => StageCost::of(Kind::Waiting),
        Stage::Element(node) => of(node, |node| match () {
            () if node.class == PROCESS_NF => Kind::ToNf,
            () if node.sent > 0 => Kind::Send,
            () => Kind::Element,
        }),
        Stage::Task(node) => of(node, |node| match () {
            () if node.class == PROCESS_NF => Kind::FromNf,
            () if node.received > 0 => Kind::Receive,
            () if node.sent > 0 => Kind::Send,
            () => Kind::Task,
        }),
        Stage::Program(region) => {
            let elements: Vec<String> = probes
                .program(region)
                .iter()
                .filter_map(|node| nodes.get(*node).map(|node| node.name.clone()))
                .collect();
            let name = format!("of {}", counted(elements.len(), "element"));
            StageCost { elements, name, ..StageCost::of(Kind::Program) }
        }
    }
}

/// Combines all rounds.
fn evaluate(
    rounds: &[Round],
    cycles_per_ns: f64,
    label: &dyn Fn(Stage) -> StageCost,
    nfs: &[NfProcess],
) -> Breakdown {
    let spread =
        |figure: &dyn Fn(&Round) -> f64| Quantiles::of(rounds.iter().map(figure)).unwrap_or_default();
    let packets = |round: &Round| round.probed.packets.max(1) as f64;
    let own = |round: &Round, stage: &StageCycles| {
        (stage.cycles as f64 - stage.readings as f64 * round.cost) / packets(round)
    };
    let first = rounds.first().map_or(&[][..], |round| &round.stages);
    let mut stages = vec![];
    for (at, named) in first.iter().enumerate() {
        let of = |round: &Round| round.stages.get(at).copied();
        if rounds.iter().filter_map(of).all(|stage| stage.readings == 0) {
            continue;
        }
        // Noise can make the cost of a very short stage negative.
        let cycles = spread(&|round| of(round).map_or(0.0, |stage| own(round, &stage).max(0.0)));
        let readings = spread(&|round| of(round).map_or(0.0, |stage| stage.readings as f64 / packets(round)));
        let named = label(named.stage);
        let nf = nfs.iter().position(|nf| named.kind == Kind::FromNf && nf.name == named.name);
        if let Some(number) = nf {
            let ran = |round: &Round| round.ran.get(number).copied().unwrap_or(0) as f64;
            let ns = spread(&|round| ran(round) / round.plain.packets.max(1) as f64);
            let cycles = ns.map(|ns| ns * cycles_per_ns);
            stages.push(StageCost { kind: Kind::InNf, cycles, ns: ns.median, ..named.clone() });
        }
        let ns = cycles.median / cycles_per_ns;
        stages.push(StageCost { cycles, ns, readings: readings.median, ..named });
    }
    stages.sort_by_key(|stage| stage.kind.row().0);
    let wall = |round: &Round| (round.plain.wall_ns + round.probed.wall_ns) * cycles_per_ns;
    let lost = |round: &Round| round.plain.waited_ns * cycles_per_ns + round.interrupted as f64;
    Breakdown {
        rounds: rounds.len(),
        stages,
        sum: spread(&|round| round.stages.iter().map(|stage| own(round, stage)).sum()),
        unprobed: spread(&|round| round.plain.ns_per_packet() * cycles_per_ns),
        probes: spread(&|round| {
            round.stages.iter().map(|stage| stage.readings as f64 * round.cost).sum::<f64>() / packets(round)
        }),
        reading: spread(&|round| round.cost).median,
        cycles_per_ns,
        disturbed: spread(&|round| lost(round) / wall(round).max(1.0)).median,
        far: rounds.iter().filter(|round| round.is_far).count(),
        sound: true,
        ..Breakdown::default()
    }
}

/// An NF in a process of its own.
struct NfProcess {
    /// The name of the element that represents the NF.
    name: String,
    pid: u32,
}

/// All of a chain.
fn nf_processes(chain: &ClosedLoop) -> Vec<NfProcess> {
    let nodes = chain.running().report().nodes.into_iter().filter(|node| node.class == PROCESS_NF);
    let process = |node: NodeReport| {
        let pid = chain.running().read(&format!("{}.pid", node.name)).ok()?.trim().parse().ok()?;
        Some(NfProcess { name: node.name, pid })
    };
    nodes.filter_map(process).filter(|nf| nf.pid != 0).collect()
}

/// For how long each has run so far, all its threads together, in nanoseconds.
fn ran_ns(nfs: &[NfProcess]) -> Vec<u64> {
    let ran = |nf: &NfProcess| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", nf.pid)).ok()?;
        let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).ok();
        let first = |text: String| text.split_whitespace().next()?.parse::<u64>().ok();
        Some(tasks.flatten().filter_map(|task| of(task).and_then(first)).sum())
    };
    nfs.iter().map(|nf| ran(nf).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests;
