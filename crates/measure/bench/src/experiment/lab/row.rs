//! Chains of NFs in a row, between generated traffic and a port that discards: the same NFs in every
//! execution mode.

use super::{BURST, Lab, SLOTS};
use crate::BenchError;
use crate::chain_file::{self, table, write_chain};
use crate::shape::Shape;
use crate::start::{RunOptions, failed};
use runtime::traffic::Change;
use std::path::PathBuf;
use traffic::SizeMix;

/// Flows of the traffic.
const FLOWS: u32 = 1_000;

/// A network function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nf {
    /// Its name in legends.
    pub name: &'static str,
    /// Its Click configuration; without one it is a program.
    click: Option<&'static str>,
}

impl Nf {
    /// L2 forwarding: the addresses of a frame are exchanged, as DPDK's l2fwd does.
    pub const L2: Nf =
        Nf { name: "L2FWD", click: Some(include_str!("../../../../../../examples/bench/l2.click")) };
    /// L3 forwarding by ten routes.
    pub const L3: Nf =
        Nf { name: "L3FWD", click: Some(include_str!("../../../../../../examples/bench/l3-10.click")) };
    /// A firewall of ten rules that lets all of the traffic pass.
    pub const FIREWALL: Nf = Nf {
        name: "firewall",
        click: Some(include_str!("../../../../../../examples/bench/firewall-10.click")),
    };
    /// A program that is an NF, and exchanges the addresses of a frame.
    pub const PROGRAM: Nf = Nf { name: "program", click: None };
}

/// The execution mode of the NFs in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// Its name in legends.
    pub name: &'static str,
    /// How those run that run in this process.
    shape: Shape,
    /// Whether each runs in a process of its own.
    is_process: bool,
}

impl Mode {
    /// As elements of this process.
    pub const MODULAR: Mode = Mode { name: "modular", shape: Shape::Modular, is_process: false };
    /// As one synthesized function.
    pub const FUSED: Mode = Mode { name: "fused", shape: Shape::Fused, ..Mode::MODULAR };
    /// The same with a flow cache where that is worth it.
    pub const CACHED: Mode = Mode { name: "fused, flow cache", shape: Shape::Cached, ..Mode::MODULAR };
    /// Each in a process of its own, all of one trust group: packets stay where they lie.
    pub const PROCESS: Mode = Mode { name: "processes", is_process: true, ..Mode::MODULAR };
    /// Each in a process and a trust group of its own: packets cross as copies.
    pub const APART: Mode = Mode { name: "processes, a trust group each", ..Mode::PROCESS };
}

impl From<Mode> for Shape {
    fn from(mode: Mode) -> Shape {
        mode.shape
    }
}

impl Lab<'_> {
    /// Options to run a chain of this execution mode on the first core, with frames of `size` bytes, or those
    /// of the chain file where it is `None`.
    pub fn run_options(&self, mode: impl Into<Shape>, size: Option<u16>) -> RunOptions {
        RunOptions {
            burst: BURST,
            cores: self.cores(1),
            slots: SLOTS,
            shape: Some(mode.into()),
            change: Change { size: size.map(SizeMix::fixed), ..Change::default() },
            ..RunOptions::default()
        }
    }

    /// Writes a chain of NFs in a row; returns its file. NFs in processes share the cores that the worker
    /// leaves.
    ///
    /// # Errors
    /// When this execution mode cannot run here, or a file cannot be written.
    pub fn row(&self, nfs: &[Nf], mode: Mode) -> Result<PathBuf, BenchError> {
        self.row_on(nfs, mode, &self.other_cores(), "")
    }

    /// Writes a chain as [`Lab::row`] does, with its processes on `cores`; `name` distinguishes chains on
    /// other cores.
    ///
    /// # Errors
    /// As [`Lab::row`].
    pub fn row_on(&self, nfs: &[Nf], mode: Mode, cores: &[usize], name: &str) -> Result<PathBuf, BenchError> {
        if mode.is_process && self.millrace.is_none() {
            return Err(failed("NFs in processes need the program `millrace`"));
        }
        let mut tables = toml::Table::new();
        let mut links = "in".to_string();
        for (number, nf) in nfs.iter().enumerate() {
            let (key, table) = (format!("nf{}", number + 1), self.nf(*nf, mode, cores)?);
            // The files of the benchmark name their interfaces; the program's have numbers.
            links += &match nf.click {
                None => format!(" -> [0]{key}[1]"),
                Some(_) => format!(" -> [in]{key}[out]"),
            };
            tables.insert(key, table.into());
        }
        links += " -> out";
        let names: Vec<&str> = nfs.iter().map(|nf| nf.name).collect();
        let folder = format!("{}-{}{name}", names.join("-"), mode.name.replace([' ', ','], "-"));
        self.write(&folder, &links, tables)
    }

    fn nf(&self, nf: Nf, mode: Mode, cores: &[usize]) -> Result<toml::Table, BenchError> {
        let mut keys = match nf.click {
            Some(text) => table([("inline", text.into())]),
            None => {
                let mut keys = self.relay().map_err(failed)?;
                keys.insert("interfaces".into(), vec!["0", "1"].into());
                keys
            }
        };
        if mode.is_process {
            if nf != Nf::PROGRAM {
                keys.insert("runs".into(), "process".into());
            }
            if mode == Mode::PROCESS {
                keys.insert("trust".into(), "lab".into());
            }
            keys.insert("cores".into(), chain_file::cores(cores));
        }
        Ok(keys)
    }

    fn write(&self, name: &str, links: &str, nfs: toml::Table) -> Result<PathBuf, BenchError> {
        let text = format!(
            "links = [\"{links}\"]\n[ports]\nout = {{ discard = true }}\n[ports.in.traffic]\nflows = {FLOWS}\n\
             size = \"64\"\nsrc = \"10.0.0.0/16\"\ndst = \"198.18.1.0-198.19.254.255\"\n\
             src-port = \"1024-65535\"\ndst-port = \"1234\"\n"
        );
        let mut chain = text.parse::<toml::Table>().map_err(failed)?;
        chain.insert("nf".into(), nfs.into());
        write_chain(&self.folder().join(name), &chain)
    }
}
