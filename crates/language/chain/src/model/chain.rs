//! A chain as it is composed.

use super::device::DeviceDecl;
use super::nf::Body;
use super::port::PortDecl;
use crate::spec::{ExecutionMode, FusedElements, Terms};
use diag::Span;
use std::ops::Range;
use std::path::PathBuf;

/// A chain: one flat configuration, and what the chain file says about it.
#[derive(Clone, Debug, Default)]
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
    /// Which elements are to run as a part of a fused region where they can. `mode` is how NFs of this process run,
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
