//! The setting that experiments share: the effort, the folder for their chains, and their cores.
//!
//! - [`accounting`]: counts packets, their order and their execution mode over all chains
//! - [`clock`]: sets a core's frequency, where that is possible
//! - [`effort`]: repeats and times of measurements
//! - [`row`]: chains of NFs in a row, in every execution mode
//! - [`sweep`]: measures points by turns, round by round, and returns their curves
//! - [`trial`]: measures a chain at saturation, at set rates, or without loss

pub mod accounting;
pub mod clock;
pub mod effort;
pub mod row;
pub mod sweep;
pub mod trial;

pub use effort::{Effort, sentence_of};
pub use row::{Mode, Nf};
pub use sweep::Case;

use crate::chain_file;
use crate::figure::{Axis, Figure};
use crate::machine::Machine;
use crate::machine::Topology;
use crate::start::RunOptions;
use accounting::Accounting;
use std::cell::RefCell;
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
    /// This program, where it can be the benchmark's relay and run Click configurations in processes. Without
    /// it the measurements that need it are skipped.
    pub millrace: Option<PathBuf>,
    /// A user's rule set in ClassBench's format, which the experiments about rules measure beside their own.
    pub acl: Option<PathBuf>,
    /// What the chains have counted that ended since it was last taken.
    accounting: RefCell<Accounting>,
    folder: PathBuf,
    progress: &'a mut dyn FnMut(&str),
}

impl<'a> Lab<'a> {
    /// Writes chains into `folder`, where they stay.
    pub fn new(effort: Effort, folder: &Path, progress: &'a mut dyn FnMut(&str)) -> Lab<'a> {
        let machine = Machine::look();
        let topology = Topology::look(&machine.cores);
        Lab {
            effort,
            machine,
            topology,
            millrace: None,
            acl: None,
            accounting: RefCell::default(),
            folder: folder.into(),
            progress,
        }
    }

    /// The folder that chains are written to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reports progress.
    pub fn tell(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// What the chains have counted that ended since this was last called.
    pub fn take_accounting(&self) -> Accounting {
        self.accounting.take()
    }

    /// The section of an NF that is a program: the benchmark's relay.
    ///
    /// # Errors
    /// That there is no such program.
    pub(super) fn relay(&self) -> Result<toml::Table, &'static str> {
        let program = self.millrace.as_deref().ok_or("there is no program to start as an NF here")?;
        Ok(chain_file::relay(program))
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

    /// Options to run chains that are changed while they run, on the last core.
    pub fn setting(&self) -> RunOptions {
        RunOptions {
            burst: worker::DEFAULT_BURST,
            cores: self.machine.cores.last().copied().into_iter().collect(),
            slots: if self.effort.is_miniature() { 8_192 } else { 16_384 },
            ..RunOptions::default()
        }
    }

    /// The key `cores` of an NF: the cores that the worker of such a chain leaves. No key where it leaves
    /// none.
    pub fn nf_cores(&self) -> toml::Table {
        match self.machine.cores.split_last() {
            Some((_, others)) if !others.is_empty() => {
                chain_file::table([("cores", chain_file::cores(others))])
            }
            _ => toml::Table::new(),
        }
    }

    /// A figure without curves over these axes, with the settings of all experiments. Experiments of papers
    /// set its source.
    pub fn sheet(&self, name: &str, title: &str, about: &str, (x, y): (Axis, Axis)) -> Figure {
        let (effort, core) = (&self.effort, self.cores(1).first().copied().unwrap_or(0));
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
                ("first packet thread".into(), format!("core {core}")),
            ],
            ..Figure::default()
        }
    }
}
