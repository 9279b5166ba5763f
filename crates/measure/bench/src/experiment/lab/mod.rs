//! What experiments share: how thoroughly they measure, where their chains are laid out, on which cores they run.
//!
//! - [`clock`]: another frequency, where one can be set.
//! - [`effort`]: how often and how long.
//! - [`row`]: chains of NFs that stand in a row, in every form.
//! - [`sweep`]: points that are measured by turns, round by round, and the curves that come of it.
//! - [`trial`]: what a chain carries as fast as it goes, at set rates, or without loss.

pub mod clock;
pub mod effort;
pub mod row;
pub mod sweep;
pub mod trial;

pub use effort::Effort;
pub use row::{Mode, Nf};
pub use sweep::Case;

use super::Setting;
use crate::figure::{Axis, Figure};
use crate::machine::Machine;
use crate::machine::Topology;
use std::path::{Path, PathBuf};

/// Packets that are worked on at a time.
pub const BURST: usize = 64;
/// Packet slots of an experiment's chain: those under way, in rings and in caches.
pub const SLOTS: u32 = 32_768;

/// Where experiments are carried out.
pub struct Lab<'a> {
    /// How thoroughly.
    pub effort: Effort,
    /// The machine.
    pub machine: Machine,
    /// Its sockets and cores.
    pub topology: Topology,
    /// A program that is an NF, with its arguments: the benchmark's relay. Without it what needs it is skipped.
    pub program: Option<(PathBuf, Vec<String>)>,
    /// This program, where it runs Click configurations in processes and stands in for other systems.
    pub millrace: Option<PathBuf>,
    folder: PathBuf,
    progress: &'a mut dyn FnMut(&str),
}

impl<'a> Lab<'a> {
    /// With chains in that folder, where they stay.
    pub fn new(effort: Effort, folder: &Path, progress: &'a mut dyn FnMut(&str)) -> Lab<'a> {
        let machine = Machine::look();
        let topology = Topology::look(&machine.cores);
        Lab { effort, machine, topology, program: None, millrace: None, folder: folder.into(), progress }
    }

    /// Where chains are laid out.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says what is done now.
    pub fn tell(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// Who is told what is done, for experiments that tell it themselves.
    pub fn progress(&mut self) -> &mut dyn FnMut(&str) {
        self.progress
    }

    /// The packet threads' cores, the last ones first, no more than there are.
    pub fn cores(&self, workers: usize) -> Vec<usize> {
        // Physical ones before their second threads.
        let first: Vec<usize> =
            self.topology.cores.iter().rev().filter_map(|core| core.threads.first().copied()).collect();
        let rest = self.machine.cores.iter().rev().copied().filter(|cpu| !first.contains(cpu));
        first.iter().copied().chain(rest).take(workers.max(1)).collect()
    }

    /// Cores that one packet thread leaves to NFs; its own where there is no other.
    pub fn other_cores(&self) -> Vec<usize> {
        let own = self.cores(1);
        let others: Vec<usize> =
            self.machine.cores.iter().copied().filter(|core| !own.contains(core)).collect();
        if others.is_empty() { own } else { others }
    }

    /// How chains run that are changed while they run.
    pub fn setting(&self) -> Setting {
        Setting {
            core: self.machine.cores.last().copied(),
            runs_click: self.millrace.is_some(),
            slots: if self.effort.is_miniature() { 8_192 } else { 16_384 },
            ..Setting::default()
        }
    }

    /// A figure without curves, with the settings of all experiments. Whoever runs a paper's experiment says its source.
    pub fn sheet(&self, name: &str, title: &str, about: &str, x: Axis, y: Axis) -> Figure {
        let effort = &self.effort;
        Figure {
            name: name.into(),
            title: title.into(),
            about: about.into(),
            command: format!("millrace bench paper {name} --{}", effort.name),
            x,
            y,
            settings: vec![
                ("rounds".into(), format!("{}, by turns", effort.rounds)),
                ("burst".into(), BURST.to_string()),
                (
                    "first packet thread".into(),
                    format!("core {}", self.cores(1).first().copied().unwrap_or(0)),
                ),
            ],
            ..Figure::default()
        }
    }
}
