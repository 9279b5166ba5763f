//! The setting that experiments share: the effort, the folder for their chains, and their cores.
//!
//! - [`clock`]: sets a core's frequency, where that is possible
//! - [`effort`]: repeats and times of measurements
//! - [`row`]: chains of NFs in a row, in every execution mode
//! - [`sweep`]: measures points by turns, round by round, and returns their curves
//! - [`trial`]: measures a chain at saturation, at set rates, or without loss

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

/// Burst size, in packets.
pub const BURST: usize = 64;
/// Packet slots of an experiment's chain: enough for packets in processing, in rings and in caches.
pub const SLOTS: u32 = 32_768;

/// The environment of experiments.
pub struct Lab<'a> {
    /// How thoroughly experiments measure.
    pub effort: Effort,
    /// The machine.
    pub machine: Machine,
    /// Its sockets and cores.
    pub topology: Topology,
    /// A program that is an NF, with its arguments: the benchmark's relay. Without it the measurements that need it are
    /// skipped.
    pub program: Option<(PathBuf, Vec<String>)>,
    /// This program, where it can run Click configurations in processes and act as a peer system.
    pub millrace: Option<PathBuf>,
    folder: PathBuf,
    progress: &'a mut dyn FnMut(&str),
}

impl<'a> Lab<'a> {
    /// Writes chains into `folder`, where they stay.
    pub fn new(effort: Effort, folder: &Path, progress: &'a mut dyn FnMut(&str)) -> Lab<'a> {
        let machine = Machine::look();
        let topology = Topology::look(&machine.cores);
        Lab { effort, machine, topology, program: None, millrace: None, folder: folder.into(), progress }
    }

    /// The folder that chains are written to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reports progress.
    pub fn tell(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// The progress callback, for experiments that report progress themselves.
    pub fn progress(&mut self) -> &mut dyn FnMut(&str) {
        self.progress
    }

    /// The cores of the workers: the last ones first, at most as many as the machine has.
    pub fn cores(&self, workers: usize) -> Vec<usize> {
        // One thread of each physical core comes before the second threads.
        let first: Vec<usize> =
            self.topology.cores.iter().rev().filter_map(|core| core.threads.first().copied()).collect();
        let rest = self.machine.cores.iter().rev().copied().filter(|cpu| !first.contains(cpu));
        first.iter().copied().chain(rest).take(workers.max(1)).collect()
    }

    /// The cores that one worker leaves to NFs; its own core where there is no other.
    pub fn other_cores(&self) -> Vec<usize> {
        let own = self.cores(1);
        let others: Vec<usize> =
            self.machine.cores.iter().copied().filter(|core| !own.contains(core)).collect();
        if others.is_empty() { own } else { others }
    }

    /// The setting for chains that are changed while they run.
    pub fn setting(&self) -> Setting {
        Setting {
            core: self.machine.cores.last().copied(),
            runs_click: self.millrace.is_some(),
            slots: if self.effort.is_miniature() { 8_192 } else { 16_384 },
            ..Setting::default()
        }
    }

    /// A figure without curves, with the settings of all experiments. Experiments of papers set its source.
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
