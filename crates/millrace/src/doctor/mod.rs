//! `millrace doctor`: the features of this machine, with remedies for missing ones.
//!
//! A list of probes, each of which examines one feature and returns findings. Invariants: a probe leaves the
//! machine unchanged, needs no root (a finding states where a feature is denied to this user), never panics,
//! and ends within its time limit; all probes together take less than two seconds, unless a container runtime
//! does not answer. Probes read files below a root folder, which tests replace by a tree of their own, and
//! ask the running kernel only through [`machine::Kernel`].
//!
//! It does not measure; `millrace bench` does.

mod confinement;
mod containers;
mod cpu;
mod machine;
mod memory;
mod network;
mod report;
mod virtualization;

use crate::exit::ExitStatus;
use clap::Args;

use machine::{LiveKernel, Machine};
use report::{Finding, Probe};

/// Reports what this machine offers (cores, huge pages, drivers, virtualization, container runtimes,
/// confinement), and how to get what it lacks. Changes nothing and needs no root.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Findings as JSON
    #[arg(long, short = 'j')]
    json: bool,

    /// Only what is limited or missing
    #[arg(long)]
    lacks: bool,

    /// Ends with status 1 if anything is limited or missing
    #[arg(long)]
    strict: bool,
}

/// All probes by section, in the order of the report.
const SECTIONS: [(&str, &[Probe]); 6] = [
    ("Processor", cpu::PROBES),
    ("Memory", memory::PROBES),
    ("Network", network::PROBES),
    ("Virtualization", virtualization::PROBES),
    ("Containers", containers::PROBES),
    ("Confinement", confinement::PROBES),
];

/// Runs the command.
///
/// # Errors
///
/// Only if the report cannot be written to standard output; a closed pipe is not an error.
pub fn run(args: DoctorArgs) -> anyhow::Result<ExitStatus> {
    let mut sections = examine(&Machine::new("/", &LiveKernel));
    let is_complete = report::is_complete(&sections);
    if args.lacks {
        for (_, findings) in &mut sections {
            findings.retain(|finding| finding.status != report::Status::Ok);
        }
        sections.retain(|(_, findings)| !findings.is_empty());
    }
    let text = if args.json {
        report::json(&sections)?
    } else {
        report::table(&sections, crate::console::colours(&std::io::stdout()))
    };
    crate::text::print(&text)?;
    Ok(ExitStatus::of(is_complete || !args.strict))
}

/// The findings by section. Each probe runs in a thread of its own, because some of them wait for a program.
fn examine(machine: &Machine<'_>) -> Vec<(&'static str, Vec<Finding>)> {
    std::thread::scope(|scope| {
        let running: Vec<_> = SECTIONS
            .iter()
            .map(|(section, probes)| {
                let probes: Vec<_> = probes.iter().map(|probe| scope.spawn(move || probe(machine))).collect();
                (*section, probes)
            })
            .collect();
        running
            .into_iter()
            .map(|(section, probes)| {
                let findings = probes.into_iter().flat_map(|probe| {
                    let broken = "this probe failed; please report it with the file it looked at";
                    probe.join().unwrap_or_else(|_| vec![Finding::missing("probe", broken)])
                });
                (section, findings.collect())
            })
            .collect()
    })
}

#[cfg(test)]
mod tests;
