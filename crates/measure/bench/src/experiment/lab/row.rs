//! Chains of NFs that stand in a row, between generated traffic and a port that discards: the same functions in every
//! form.

use super::{BURST, Lab, SLOTS};
use crate::BenchError;
use crate::shape::Shape;
use crate::start::RunOptions;
use runtime::traffic::Change;
use std::path::PathBuf;
use traffic::SizeMix;

/// Flows of the traffic.
const FLOWS: u32 = 1_000;

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nf {
    /// L2 forwarding: the addresses of a frame are exchanged, as DPDK's l2fwd does.
    L2,
    /// L3 forwarding by ten routes.
    L3,
    /// A firewall of ten rules that lets all of the traffic pass.
    Firewall,
    /// A program that is an NF, and exchanges the addresses of a frame.
    Program,
}

impl Nf {
    /// Its name in legends.
    pub fn name(self) -> &'static str {
        match self {
            Nf::L2 => "L2FWD",
            Nf::L3 => "L3FWD",
            Nf::Firewall => "firewall",
            Nf::Program => "program",
        }
    }

    fn click(self) -> Option<&'static str> {
        match self {
            Nf::L2 => Some(include_str!("../../../../../../examples/bench/l2.click")),
            Nf::L3 => Some(include_str!("../../../../../../examples/bench/l3-10.click")),
            Nf::Firewall => Some(include_str!("../../../../../../examples/bench/firewall-10.click")),
            Nf::Program => None,
        }
    }
}

/// How NFs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As elements of this process.
    Modular,
    /// As one synthesized function.
    Fused,
    /// The same with a flow cache where that is worth it.
    Cached,
    /// Each in a process of its own, all of one trust group: packets stay where they lie.
    Process,
    /// Each in a process and a trust group of its own: packets cross as copies.
    Apart,
}

impl Mode {
    /// Its name in legends.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Modular => "modular",
            Mode::Fused => "fused",
            Mode::Cached => "fused, flow cache",
            Mode::Process => "processes",
            Mode::Apart => "processes, a trust group each",
        }
    }

    fn is_process(self) -> bool {
        matches!(self, Mode::Process | Mode::Apart)
    }
}

/// How those run that run in this process.
impl From<Mode> for Shape {
    fn from(mode: Mode) -> Shape {
        match mode {
            Mode::Fused => Shape::Fused,
            Mode::Cached => Shape::Cached,
            Mode::Modular | Mode::Process | Mode::Apart => Shape::Modular,
        }
    }
}

impl Lab<'_> {
    /// How a chain of that form runs on the first core, with frames of that size; of the chain file's where there is
    /// none.
    pub fn run_options(&self, form: impl Into<Shape>, size: Option<u16>) -> RunOptions {
        RunOptions {
            burst: BURST,
            cores: self.cores(1),
            slots: SLOTS,
            shape: Some(form.into()),
            change: Change { size: size.map(SizeMix::fixed), ..Change::default() },
            ..RunOptions::default()
        }
    }

    /// Lays out NFs in a row; the chain's file. NFs in processes share the cores that the packet thread leaves.
    ///
    /// # Errors
    /// When this form cannot run here, or nothing can be written.
    pub fn row(&self, nfs: &[Nf], form: Mode) -> Result<PathBuf, BenchError> {
        self.row_on(nfs, form, &self.other_cores(), "")
    }

    /// The same, with the cores of the processes said; `name` tells chains of other cores apart.
    ///
    /// # Errors
    /// As [`Lab::row`].
    pub fn row_on(&self, nfs: &[Nf], form: Mode, cores: &[usize], name: &str) -> Result<PathBuf, BenchError> {
        if form.is_process() && self.millrace.is_none() {
            return Err(BenchError::Measurement("NFs in processes need the program `millrace`".into()));
        }
        let mut tables = toml::Table::new();
        let mut links = "in".to_string();
        for (number, nf) in nfs.iter().enumerate() {
            let (key, table) = (format!("nf{}", number + 1), self.nf(*nf, form, cores)?);
            // The files of the benchmark name their interfaces; the program's have numbers.
            links += &match nf {
                Nf::Program => format!(" -> [0]{key}[1]"),
                _ => format!(" -> [in]{key}[out]"),
            };
            tables.insert(key, table.into());
        }
        links += " -> out";
        let names: Vec<&str> = nfs.iter().map(|nf| nf.name()).collect();
        let folder = format!("{}-{}{name}", names.join("-"), form.name().replace([' ', ','], "-"));
        self.write(&folder, &links, tables)
    }

    fn nf(&self, nf: Nf, form: Mode, cores: &[usize]) -> Result<toml::Table, BenchError> {
        let mut table = toml::Table::new();
        match nf.click() {
            Some(text) => {
                table.insert("inline".into(), text.into());
            }
            None => {
                let (program, arguments) = self.program.as_ref().ok_or_else(|| {
                    BenchError::Measurement("there is no program to start as an NF here".into())
                })?;
                table.insert("program".into(), program.display().to_string().into());
                table.insert("arguments".into(), arguments.clone().into());
                table.insert("interfaces".into(), vec!["0", "1"].into());
            }
        }
        if form.is_process() {
            if nf != Nf::Program {
                table.insert("runs".into(), "process".into());
            }
            if form == Mode::Process {
                table.insert("trust".into(), "lab".into());
            }
            table.insert("cores".into(), cores.iter().map(|core| *core as i64).collect::<Vec<_>>().into());
        }
        Ok(table)
    }

    fn write(&self, name: &str, links: &str, nfs: toml::Table) -> Result<PathBuf, BenchError> {
        let text = format!(
            "links = [\"{links}\"]\n[ports]\nout = {{ discard = true }}\n[ports.in.traffic]\nflows = {FLOWS}\n\
             size = \"64\"\nsrc = \"10.0.0.0/16\"\ndst = \"198.18.1.0-198.19.254.255\"\n\
             src-port = \"1024-65535\"\ndst-port = \"1234\"\n"
        );
        let mut chain = text.parse::<toml::Table>().map_err(crate::start::failed)?;
        chain.insert("nf".into(), nfs.into());
        self.put(name, &chain)
    }

    /// Writes a chain file into a folder of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, name: &str, chain: &toml::Table) -> Result<PathBuf, BenchError> {
        let folder = self.folder().join(name);
        let failed = |cause| BenchError::file("write", &folder, cause);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let path = folder.join("chain.toml");
        std::fs::write(&path, chain.to_string()).map_err(failed)?;
        Ok(path)
    }
}
