//! Measures all workloads, by turns.

use super::child;
use super::measure::MeasureOptions;
use super::report::{Report, Row};
use super::scene::{PortKind, Stage};
use super::testpmd::{self, TestpmdOptions};
use super::workload::{FULL_TABLE_HANDLER, Workload};
use super::{full_table, isp, peers};
use crate::BenchError;
use crate::machine::Machine;
use crate::peer::find_program;
use crate::shape::Shape;
use crate::trial::{Order, by_turns};
use serde::Serialize;
use std::path::PathBuf;

/// The options of the benchmark.
#[derive(Clone, Debug)]
pub struct Options {
    /// The workloads.
    pub workloads: Vec<&'static Workload>,
    /// The kinds of ports.
    pub ports: Vec<PortKind>,
    /// The numbers of flows.
    pub flows: Vec<u64>,
    /// Number of rounds.
    pub rounds: usize,
    /// Length of each measurement, in seconds.
    pub seconds: f64,
    /// The execution modes of the NFs in this process; each workload is measured in all of them.
    pub shapes: Vec<Shape>,
    /// Burst size, in packets.
    pub burst: usize,
    /// The worker's core; the last one by default.
    pub core: Option<usize>,
    /// Whether to measure `dpdk-testpmd`, too.
    pub testpmd: bool,
    /// A file with the prefixes of the full table, in place of the generated ones.
    pub table: Option<PathBuf>,
    /// A file with rules, for the workloads that need a user's.
    pub acl: Option<PathBuf>,
    /// The folder for chains and captures.
    pub folder: PathBuf,
    /// This program, and its arguments in front of those of [`child::arguments`].
    pub program: (PathBuf, Vec<String>),
}

/// Huge pages that DPDK uses in this program if there are enough, in MiB.
const EAL_MIB: u64 = 512;

/// The size of packet slots, in MiB.
fn slots_mib(slots: u32) -> u64 {
    (u64::from(slots) * shm::descriptor::SLOT_BYTES as u64) >> 20
}

/// A measurement that runs once in every round.
enum Job {
    Chain { chain: PathBuf, options: MeasureOptions },
    Testpmd(TestpmdOptions),
}

/// A row that a program's hidden form measures: `PROGRAM bench ARGUMENTS`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LaidOut {
    /// The workload, followed by the mode unless it is modular.
    pub name: String,
    /// The kind of its ports.
    pub port: PortKind,
    /// Flows; `None` where frames have no contents.
    pub flows: Option<u64>,
    /// The arguments of [`child::arguments`].
    pub arguments: Vec<String>,
    /// Why it cannot be measured.
    pub skipped: Option<String>,
}

/// Writes the files of what [`run`] measures, without `dpdk-testpmd` and without measuring, so that several
/// programs can measure the same chains with the same arguments.
///
/// # Errors
/// When a file cannot be written.
pub fn lay_out(options: &Options) -> Result<Vec<LaidOut>, BenchError> {
    let options = Options { testpmd: false, ..options.clone() };
    let machine = Machine::look();
    let laid_out = |(job, row): (Job, Row)| match job {
        Job::Chain { chain, options } => Some(LaidOut {
            name: row.name,
            port: row.port,
            flows: row.flows,
            arguments: child::arguments(&chain, &options),
            skipped: row.skipped,
        }),
        Job::Testpmd(_) => None,
    };
    Ok(jobs(&options, &machine, packet_core(&options, &machine))?.into_iter().filter_map(laid_out).collect())
}

/// The worker's core.
fn packet_core(options: &Options, machine: &Machine) -> usize {
    options.core.or(machine.cores.last().copied()).unwrap_or(0)
}

/// Measures everything. `progress` gets a line before each measurement.
///
/// # Errors
/// When files cannot be written or nothing can be started. A workload that cannot run is skipped, and the
/// report says why.
pub fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    let machine = Machine::look();
    let core = packet_core(options, &machine);
    let mut jobs = jobs(options, &machine, core)?;
    let is_skipped = |(_, row): &(Job, Row)| row.skipped.is_some();
    by_turns(options.rounds, Order::Forward, &mut jobs, is_skipped, |(job, row), round| {
        progress(&format!("round {round} of {}: {}", options.rounds, row.title()));
        let answer = match job {
            Job::Chain { chain, options: how } => {
                child::measure(&options.program.0, &options.program.1, chain, how)?
            }
            Job::Testpmd(how) => testpmd::measure(how)?,
        };
        match answer {
            Ok(sample) => row.samples.push(sample),
            Err(why) => row.skipped = Some(why),
        }
        Ok::<(), BenchError>(())
    })?;
    progress("");
    let rows = jobs.into_iter().map(|(_, row)| row).collect();
    Ok(Report { machine, core, burst: options.burst, rounds: options.rounds, seconds: options.seconds, rows })
}

/// The measurements with their rows, in the order of measuring. Writes chains and captures.
fn jobs(options: &Options, machine: &Machine, core: usize) -> Result<Vec<(Job, Row)>, BenchError> {
    let main_core = machine.cores.iter().copied().find(|other| *other != core).unwrap_or(core);
    let mut jobs = Vec::new();
    let rules = options.acl.as_deref().map(isp::read).transpose()?;
    let stage = Stage::new(&options.folder, rules)?;
    let routes = routes(options, &stage)?;
    for &port in &options.ports {
        // Frames without contents have no flows.
        let flows =
            if port == PortKind::Null { options.flows.get(..1).unwrap_or_default() } else { &options.flows };
        for &flows in flows {
            let shown = (port != PortKind::Null).then_some(flows);
            if options.testpmd && port != PortKind::Memory {
                for mode in testpmd::MODES {
                    let mut row = Row::new(format!("testpmd-{mode}"), port, shown);
                    row.about = "dpdk-testpmd".into();
                    if find_program(testpmd::PROGRAM).is_none() {
                        row.skipped =
                            Some(format!("{} is not installed (Debian: dpdk-dev)", testpmd::PROGRAM));
                    }
                    let capture = match (port, options.workloads.first()) {
                        (PortKind::Pcap, Some(workload)) => stage.capture(workload, flows)?,
                        _ => PathBuf::new(),
                    };
                    let frames = options.workloads.first().map_or(flows, |workload| workload.frames(flows));
                    let buffers = port.slots(frames);
                    let job = Job::Testpmd(TestpmdOptions {
                        mode,
                        device: port.device(&capture).unwrap_or_default(),
                        seconds: options.seconds,
                        burst: options.burst,
                        buffers,
                        core,
                        main_core,
                        huge_pages: machine.free_huge_mib >= EAL_MIB + slots_mib(buffers),
                    });
                    jobs.push((job, row));
                }
            }
            let workloads = options.workloads.iter().filter(|workload| port.suits(workload));
            for (workload, shape) in workloads.flat_map(|workload| shapes(workload, &options.shapes)) {
                let mut row = Row::new(shown_name(workload, shape), port, shown);
                (row.about, row.gated) = (workload.about.into(), workload.gated && port == PortKind::Pcap);
                let asked = flows;
                let flows = workload.flows(flows);
                if flows < asked && shown.is_some() {
                    row.remark = Some(format!("{flows} flows"));
                }
                if workload.needs_rules() && options.acl.is_none() {
                    row.skipped = Some("no rules: give --acl FILE".into());
                }
                let chain = stage.lay_out(workload, port, flows)?;
                row.fastclick_share =
                    (port == PortKind::Pcap).then(|| peers::fastclick_share(workload.name, asked)).flatten();
                row.bess_cycles =
                    (port == PortKind::Memory).then(|| peers::bess_cycles(workload.name, asked)).flatten();
                let full = workload.needs_full_table();
                let writes =
                    routes.iter().filter(|_| full).map(|file| (FULL_TABLE_HANDLER.into(), file.clone()));
                let options = MeasureOptions {
                    writes: writes.collect(),
                    seconds: options.seconds,
                    burst: options.burst,
                    core,
                    warm_packets: workload.frames(flows) * 2,
                    slots: port.slots(workload.frames(flows)),
                    shape,
                };
                jobs.push((Job::Chain { chain, options }, row));
            }
        }
    }
    Ok(jobs)
}

/// The modes that a workload is measured in. The floor, plain forwarding and NFs in processes have only one.
fn shapes(workload: &'static Workload, shapes: &[Shape]) -> Vec<(&'static Workload, Shape)> {
    match workload.has_forms() {
        true => shapes.iter().map(|shape| (workload, *shape)).collect(),
        false => vec![(workload, Shape::Modular)],
    }
}

fn shown_name(workload: &Workload, shape: Shape) -> String {
    match shape {
        Shape::Modular => workload.name.into(),
        shape => format!("{} {}", workload.name, shape.name()),
    }
}

/// The file with the full table, if a workload needs it.
fn routes(options: &Options, stage: &Stage) -> Result<Option<PathBuf>, BenchError> {
    if !options.workloads.iter().any(|workload| workload.needs_full_table()) {
        return Ok(None);
    }
    let table = match &options.table {
        Some(path) => full_table::read(path)?,
        None => full_table::generated(),
    };
    Ok(Some(stage.routes(&full_table::commands(&table))?))
}
