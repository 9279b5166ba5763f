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
    /// The same as [`Nf::L2`], and two fifths of the source ports leave by another interface than the rest.
    pub const SWITCH: Nf =
        Nf { name: "switch", click: Some(include_str!("../../../../../../examples/bench/switch.click")) };
    /// A program that is an NF, and exchanges the addresses of a frame.
    pub const PROGRAM: Nf = Nf { name: "program", click: None };
    /// The same program, which writes into stamped frames how long it had them.
    pub const TIMED_PROGRAM: Nf = Nf { name: "program with times", click: None };

    /// Its Click configuration, where it is one.
    pub fn click(self) -> Option<&'static str> {
        self.click
    }

    /// The interfaces that packets enter and leave by: the files of the benchmark name theirs, the program's
    /// have numbers.
    fn ends(self) -> (&'static str, &'static str) {
        if self.click.is_some() { ("in", "out") } else { ("0", "1") }
    }
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
        let mut row = self.tables(nfs, mode, cores)?;
        row.links = vec![format!("in -> {} -> out", stops(nfs).join(" -> "))];
        self.write(&folder_of(nfs, mode, name), row)
    }

    /// Writes a chain of NFs with a virtual device without ports between each two.
    ///
    /// # Errors
    /// As [`Lab::row`].
    pub fn row_by_devices(&self, nfs: &[Nf], mode: Mode) -> Result<PathBuf, BenchError> {
        let mut row = self.tables(nfs, mode, &self.other_cores())?;
        let mut from = "in".to_string();
        for (number, nf) in (1..).zip(nfs) {
            // An NF opens a device by a link to it.
            let (entry, exit) = nf.ends();
            row.links.push(format!("{from} -> [{entry}]nf{number}"));
            from = format!("nf{number}[{exit}]");
            if number < nfs.len() {
                let device = format!("between{number}");
                row.links.push(format!("{from} -> {device}"));
                row.devices.insert(device.clone(), table([("rootless", true.into())]).into());
                from = device;
            }
        }
        row.links.push(format!("{from} -> out"));
        self.write(&folder_of(nfs, mode, "-devices"), row)
    }

    /// Writes a chain that begins with an L2 switch, by which two fifths of the flows leave; the others go on
    /// through the NFs behind it.
    ///
    /// # Errors
    /// As [`Lab::row`].
    pub fn row_behind_switch(&self, nfs: &[Nf], mode: Mode) -> Result<PathBuf, BenchError> {
        let all: Vec<Nf> = [Nf::SWITCH].into_iter().chain(nfs.iter().copied()).collect();
        let mut row = self.tables(&all, mode, &self.other_cores())?;
        let rest: Vec<String> = stops(&all).into_iter().skip(1).chain(["out".to_string()]).collect();
        row.links = vec![
            "in -> [in]nf1".to_string(),
            "nf1[out] -> out".into(),
            format!("nf1[rest] -> {}", rest.join(" -> ")),
        ];
        self.write(&folder_of(&all, mode, ""), row)
    }

    /// Writes a chain with so many ports that receive, each linked to one that discards by an NF of its own.
    ///
    /// # Errors
    /// As [`Lab::row`].
    pub fn side_by_side(&self, nf: Nf, mode: Mode, ports: usize) -> Result<PathBuf, BenchError> {
        let nfs = vec![nf; ports];
        let mut rows = self.tables(&nfs, mode, &self.other_cores())?;
        let stops = stops(&nfs);
        rows.links =
            (1..).zip(stops).map(|(port, stop)| format!("in{port} -> {stop} -> out{port}")).collect();
        rows.ports = ports;
        self.write(&format!("{ports}-ports-{}-{}", nf.name, dashed(mode)), rows)
    }

    /// The sections of NFs in a row.
    fn tables(&self, nfs: &[Nf], mode: Mode, cores: &[usize]) -> Result<Written, BenchError> {
        if mode.is_process && self.millrace.is_none() {
            return Err(failed("NFs in processes need the program `millrace`"));
        }
        let mut tables = toml::Table::new();
        for (number, nf) in (1..).zip(nfs) {
            tables.insert(format!("nf{number}"), self.nf(*nf, mode, cores)?.into());
        }
        Ok(Written { nfs: tables, ..Written::default() })
    }

    fn nf(&self, nf: Nf, mode: Mode, cores: &[usize]) -> Result<toml::Table, BenchError> {
        let mut keys = match nf.click {
            Some(text) => table([("inline", text.into())]),
            None => {
                let mut keys = self.relay().map_err(failed)?;
                keys.insert("interfaces".into(), vec!["0", "1"].into());
                if nf == Nf::TIMED_PROGRAM {
                    keys.insert("arguments".into(), vec!["nf-relay", "--times"].into());
                }
                keys
            }
        };
        if mode.is_process {
            if nf.click.is_some() {
                keys.insert("runs".into(), "process".into());
            }
            if mode == Mode::PROCESS {
                keys.insert("trust".into(), "lab".into());
            }
            keys.insert("cores".into(), chain_file::cores(cores));
        }
        Ok(keys)
    }

    fn write(&self, name: &str, written: Written) -> Result<PathBuf, BenchError> {
        let Written { links, nfs, devices, ports } = written;
        let traffic = format!(
            "flows = {FLOWS}\nsize = \"64\"\nsrc = \"10.0.0.0/16\"\ndst = \"198.18.1.0-198.19.254.255\"\n\
             src-port = \"1024-65535\"\ndst-port = \"1234\"\n"
        );
        let traffic = traffic.parse::<toml::Table>().map_err(failed)?;
        let numbers: Vec<String> =
            if ports == 0 { vec![String::new()] } else { (1..=ports).map(|port| port.to_string()).collect() };
        let mut declared = toml::Table::new();
        for number in numbers {
            declared.insert(format!("in{number}"), table([("traffic", traffic.clone().into())]).into());
            declared.insert(format!("out{number}"), table([("discard", true.into())]).into());
        }
        let mut chain = table([("links", links.into()), ("ports", declared.into()), ("nf", nfs.into())]);
        if !devices.is_empty() {
            chain.insert("device".into(), devices.into());
        }
        write_chain(&self.folder().join(name), &chain)
    }
}

/// What a chain file of NFs has.
#[derive(Default)]
struct Written {
    links: Vec<String>,
    nfs: toml::Table,
    devices: toml::Table,
    /// Ports that receive and as many that discard, with numbers in their names; 0 for one of each without.
    ports: usize,
}

/// The NFs of a row, as a link names them, with the interfaces that it enters and leaves by.
fn stops(nfs: &[Nf]) -> Vec<String> {
    let stop = |(number, nf): (usize, &Nf)| {
        let (entry, exit) = nf.ends();
        format!("[{entry}]nf{number}[{exit}]")
    };
    (1..).zip(nfs).map(stop).collect()
}

/// The name of an execution mode in the name of a folder.
fn dashed(mode: Mode) -> String {
    mode.name.replace([' ', ','], "-")
}

fn folder_of(nfs: &[Nf], mode: Mode, rest: &str) -> String {
    let names: Vec<&str> = nfs.iter().map(|nf| nf.name).collect();
    format!("{}-{}{rest}", names.join("-").replace(' ', "-"), dashed(mode))
}
