//! The chain file: ports, NFs, and how they are linked, composed into one flat configuration.
//!
//! ```toml
//! links = [ "inside <-> [in]nat[out] <-> outside" ]   # in front of the tables
//!
//! [run]
//! workers = 1                          # or cores = [0, 1]
//! burst = 32
//! poll = true                          # packet threads never sleep; false by default
//!
//! [ports]
//! inside  = { capture = "in.pcap", passes = 1, write = "back.pcap" }
//! outside = { device = "net_af_packet0,iface=veth0", addresses = ["192.0.2.1/24"] }   # a station, with `mac`
//!
//! [device.uplink]                      # a virtual device: ports that NFs open by links, as they open a port
//! bridged = ["left", "right"]          # or bonded = [...], direct = "left", rootless = true
//! receives = { left = "vxlan", right = "net 192.168.0.0/16" }   # or one text for all ports; everything by default
//! sees = "inbound"                     # or "outbound": what NFs send by these ports; or "both"
//! peels = ["vlan", "vxlan"]            # layers to take off, outermost first
//! unpeeled = "pass"                    # or "drop": frames without these layers
//! sends = "opposite"                   # or "round-robin", "flow-hash", "symmetric-flow-hash", a port
//! across = { left = "right" }          # which port is opposite, where there are more than two
//! otherwise = "drop"                   # or "all", or a port: for packets that came in by none of them
//! addresses = ["10.0.0.1/24"]          # its own, as a station of its network; of ports, too
//! mac = "02:00:00:00:00:01"            # that of its (first) port by default
//!
//! [nf.nat]
//! click = "nat.click"                  # or inline = '''...'''
//! defines = { IP = "10.0.0.1" }
//! idle = ["spare"]                     # interfaces that stay without a link
//! runs = "process"                     # in a process of its own; "modular", in this one, by default
//!
//! [nf.monitor]
//! program = "./monitor"                # any program that links the SDK; it runs in a process of its own
//! arguments = ["--every", "10"]
//! interfaces = ["in", "out"]           # "0" and "1" by default
//! config = "text for the program"
//! when_down = "bypass"                 # or "drop", the default, or "hold"
//! trust = "ours"                       # NFs of one trust group share memory; by default each has its own
//! access = "observe"                   # looks at copies while packets go on; "tap" at packets; "inline" by default
//! cores = [1]                          # cores that it may run on
//! reads = ["rules"]                    # files and folders that it may read, and those it may write:
//! writes = ["/var/log/monitor"]        # other files than the system's are closed to it
//! network = false                      # whether it may use the network
//! memory_mib = 256                     # memory that it may use; 1,024 by default
//! cpu_share = 100                      # its share of a contended core, where everybody else has 100
//! confine = true                       # false: with the rights of whoever runs the chain
//! instances = 3                        # several of them share its packets
//! steer = "flow"                       # by this, or by { lan = "source", wan = "destination" }
//!
//! [nf.boxed]
//! image = "filter.tar"                 # an OCI image, or `bundle`, or a program with `runs = "container"`
//! runtime = "runc"                     # what starts its container; the first that works by default
//!
//! [nf.guest]
//! attach = true                        # a program that is started by somebody else, and attaches to the daemon
//! ```
//!
//! An NF's interfaces are what its Click file calls them in `FromDevice(NAME)` and `ToDevice(NAME)`; a
//! number counts them from 0. A Click file alone is a chain, too.
//!
//! Stages: [`table`] reads TOML with places, [`file`] the declarations, [`link`] the notation of links,
//! [`nf`] the Click files, [`wiring`] gives links their meaning, [`loops`] refuses rings, [`compose`] makes
//! one graph of all, in which [`device`] makes elements of virtual devices and of stations ([`station`]), and [`instances`] and [`spread`] of an NF
//! several. Each collects its mistakes. Invariants: elements keep the places in their own files;
//! the elements of an NF are next to each other and are called `nf/...`; no input panics.
//!
//! What it does not do: open ports, make elements, check arguments; `host::assemble` does.

mod compose;
mod device;
mod file;
mod fuzz;
pub mod image;
pub mod instances;
mod link;
mod loops;
mod nf;
mod ports;
mod sources;
mod spec;
mod spread;
mod station;
mod table;
#[cfg(test)]
mod tests;
mod variables;
mod wiring;

pub use device::{DeviceDecl, DeviceKind, DevicePort, Otherwise, Sees, Sends};
pub use fuzz::fuzz_chain;
pub use nf::{device_direction, device_name};
pub use ports::{PortDecl, PortKind, Sink, Source, TrafficDecl};
pub use sources::{Sources, folder_of};
pub use spec::{
    Access, Container, ContainerKind, ExecutionMode, FusedElements, Rights, RuntimeName, Terms, WhenDown,
    opposite_output,
};
pub use station::StationDecl;

use click::Classes;
use diag::{Diagnostics, SourceId, SourceMap, Span, Spanned};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A chain: one flat configuration, and what the chain file says about it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The elements of all NFs.
    pub graph: click::Graph,
    /// The ports that the chain file declares, in its order.
    pub ports: Vec<PortDecl>,
    /// The virtual devices, in its order.
    pub devices: Vec<DeviceDecl>,
    /// How many workers, where that is said.
    pub workers: Option<usize>,
    /// Cores to pin workers to.
    pub cores: Vec<usize>,
    /// Packets to work on at a time, where that is said.
    pub burst: Option<usize>,
    /// Whether packet threads never sleep.
    pub poll: bool,
    /// Folder that file names are relative to.
    pub folder: PathBuf,
    /// The NFs, in the order of the chain file.
    pub nfs: Vec<NfInfo>,
    /// The NFs that run in processes of their own.
    pub processes: Vec<ProcessNf>,
    /// The links, one for each direction.
    pub links: Vec<Link>,
    /// Links at which packets enter the chain, as indices of `links`.
    pub entries: Vec<usize>,
}

/// An NF of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NfInfo {
    /// Its name, and the prefix of its elements' names; of a Click file alone, the file's.
    pub name: String,
    /// Its Click file, or the chain file that it is written in.
    pub file: PathBuf,
    /// Its elements in the graph.
    pub elements: Range<usize>,
    /// What its Click file calls its interfaces, in the order of the file.
    pub interfaces: Vec<String>,
    /// How it runs.
    pub mode: ExecutionMode,
}

impl Chain {
    /// Which elements are to run as a part of a stretch where they can. `mode` is how NFs of this process run,
    /// whatever the chain file says.
    pub fn fused(&self, mode: Option<ExecutionMode>) -> FusedElements {
        match mode {
            Some(ExecutionMode::Fused) => return FusedElements::All,
            Some(_) => return FusedElements::Nothing,
            None => {}
        }
        // What is of no NF stands between them, and goes with them.
        if !self.nfs.iter().any(|nf| nf.mode == ExecutionMode::Fused) {
            return FusedElements::Nothing;
        }
        let mut wanted = vec![true; self.graph.elements.len()];
        for nf in self.nfs.iter().filter(|nf| nf.mode != ExecutionMode::Fused) {
            wanted[nf.elements.clone()].fill(false);
        }
        FusedElements::These(wanted)
    }
}

/// An NF that runs in a process of its own. In the chain's graph stands an element for it.
#[derive(Clone, Debug)]
pub struct ProcessNf {
    /// Its name.
    pub name: String,
    /// Where the chain file declares it.
    pub span: Span,
    /// What its process runs.
    pub body: Body,
    /// Interfaces that it receives from, in the order of the element's inputs.
    pub inputs: Vec<String>,
    /// Interfaces that it sends to, in the order of the element's outputs.
    pub outputs: Vec<String>,
    /// The port or device behind each of them whose neighbours it may ask for.
    pub stations: Vec<Option<String>>,
    /// On what terms it runs.
    pub terms: Terms,
}

/// What the process of an NF runs.
#[derive(Clone, Debug)]
pub enum Body {
    /// Elements, whose devices are its interfaces.
    Click(click::Graph),
    /// A program of somebody's.
    Program(Program),
    /// Whatever program attaches by itself, and what the chain file has for it to read.
    Visitor(String),
}

/// A program that is an NF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its file; a bare name is looked for along PATH.
    pub path: PathBuf,
    /// Where the chain file names it.
    pub span: Span,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What the chain file has for it to read.
    pub config: String,
}

/// A link, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where packets come from.
    pub from: End,
    /// Where they go to.
    pub to: End,
    /// Where it is written.
    pub span: Span,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// A port of [`Chain::ports`].
    Port(usize),
    /// A virtual device of [`Chain::devices`].
    Device(usize),
    /// An interface of an NF, both by number.
    Nf(usize, usize),
}

/// A variable that is given a value outside the Click text that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// The variable, without its `$`; on a command line `NF.VARIABLE` is that of one NF.
    pub name: Spanned,
    /// Its value.
    pub value: Spanned,
}

/// Where texts come from: files, or what a test makes up.
struct Files<'a> {
    read: &'a mut dyn FnMut(&Path) -> std::io::Result<Vec<u8>>,
    libraries: &'a mut dyn click::Libraries,
}

/// Loads a chain file, or a Click file as a chain of one NF. `defines` are variables from a command line:
/// `NAME` for all NFs, `nf.NAME` for one; they override what files say. `classes` are those of the elements
/// that there are. Mistakes are collected; with any
/// error there is no chain.
pub fn load(
    path: &Path,
    defines: &[Define],
    classes: &dyn Classes,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    let before = diags.errors();
    load_to_check(path, defines, classes, map, diags).filter(|_| diags.errors() == before)
}

/// Loads a chain as far as it can be understood, also with mistakes: whoever assembles it finds the
/// mistakes that are left. With any error it is not to be run; interfaces whose link has a mistake are idle.
pub fn load_to_check(
    path: &Path,
    defines: &[Define],
    classes: &dyn Classes,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    load_from(&mut Sources::of_files(), path, defines, classes, map, diags)
}

/// As [`load_to_check`], with texts from `sources`, which keeps those that it had to read.
pub fn load_from(
    sources: &mut Sources,
    path: &Path,
    defines: &[Define],
    classes: &dyn Classes,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    let sources = std::cell::RefCell::new(sources);
    let read = &mut |path: &Path| sources.borrow_mut().read(path);
    match read(path) {
        Ok(bytes) => {
            let source = map.add(path.display().to_string(), String::from_utf8_lossy(&bytes));
            let mut files = Files { read, libraries: &mut sources::Recorded(&sources) };
            read_text(path, source, defines, classes, &mut files, map, diags)
        }
        Err(error) => {
            diags.error(Span::NONE, format!("cannot read {}: {error}", path.display()));
            None
        }
    }
}

/// As [`load`], from a text.
fn load_text(
    path: &Path,
    source: SourceId,
    defines: &[Define],
    classes: &dyn Classes,
    files: &mut Files<'_>,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    let before = diags.errors();
    read_text(path, source, defines, classes, files, map, diags).filter(|_| diags.errors() == before)
}

fn read_text(
    path: &Path,
    source: SourceId,
    defines: &[Define],
    classes: &dyn Classes,
    files: &mut Files<'_>,
    map: &mut SourceMap,
    diags: &mut Diagnostics,
) -> Option<Chain> {
    let before = diags.errors();
    if !is_chain_file(path, map.text(source)) {
        let ast = click::parse_with(map, source, files.libraries, diags);
        variables::check_alone(&ast, defines, diags);
        let values: Vec<(String, Spanned)> =
            defines.iter().map(|define| (define.name.text.clone(), define.value.clone())).collect();
        let graph = click::flatten(&ast, classes, &values, diags);
        return Some(compose::alone(graph, path));
    }
    let declared = file::read(source, &folder_of(path), map, diags);
    let nfs = nf::load_all(&declared, path, defines, classes, files, map, diags);
    instances::check(&nfs, classes, diags);
    let wiring = wiring::resolve(&declared, &nfs, diags);
    loops::refuse(&nfs, &device::flows(&wiring.links, &declared.devices), diags);
    let sound = diags.errors() == before;
    Some(compose::compose(declared, nfs, wiring, sound, folder_of(path)))
}

/// By its extension; else a text whose first line is a TOML table or key is a chain file.
fn is_chain_file(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => true,
        Some("click") => false,
        _ => {
            let first = text.lines().map(str::trim).find(|line| !line.is_empty());
            first.is_some_and(|line| {
                let key = line.split_once('=').map(|(key, _)| key.trim_end());
                let bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                line.starts_with('#')
                    || (line.starts_with('[') && line.ends_with(']'))
                    || key.is_some_and(bare)
            })
        }
    }
}
