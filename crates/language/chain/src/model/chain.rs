//! A composed chain.

use super::device::DeviceDecl;
use super::file::Run;
use super::nf::Body;
use super::port::PortDecl;
use crate::spec::{ExecutionMode, FusedElements, Terms};
use diag::Span;
use std::ops::Range;
use std::path::PathBuf;

/// A chain: one flat configuration, and the declarations of the chain file.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The elements of all NFs.
    pub graph: click::Graph,
    /// The ports that the chain file declares, in its order.
    pub ports: Vec<PortDecl>,
    /// The virtual devices, in the order of the chain file.
    pub devices: Vec<DeviceDecl>,
    /// The settings of the run.
    pub run: Run,
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
    /// Its name, which is the prefix of its elements' names. For a Click file alone, the name of the file.
    pub name: String,
    /// Its Click file, or the chain file that contains its text.
    pub file: PathBuf,
    /// Its elements in the graph.
    pub elements: Range<usize>,
    /// The names of its interfaces in its Click file, in the order of the file.
    pub interfaces: Vec<String>,
    /// Its execution mode.
    pub mode: ExecutionMode,
}

impl Chain {
    /// The elements that are to be part of a fused region where possible. `mode` overrides the chain file for
    /// the NFs of this process.
    pub fn fused(&self, mode: Option<ExecutionMode>) -> FusedElements {
        match mode {
            Some(ExecutionMode::Fused) => return FusedElements::All,
            Some(_) => return FusedElements::Nothing,
            None => {}
        }
        // Elements of no NF are between the NFs, and are fused if any NF is.
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

/// An NF that runs in a process of its own. One element of the chain's graph represents it.
#[derive(Clone, Debug)]
pub struct ProcessNf {
    /// Its name.
    pub name: String,
    /// The location of its declaration in the chain file.
    pub span: Span,
    /// What its process runs.
    pub body: Body,
    /// Interfaces that it receives from, in the order of the element's inputs.
    pub inputs: Vec<String>,
    /// Interfaces that it sends to, in the order of the element's outputs.
    pub outputs: Vec<String>,
    /// For each output, the port or device with an L3 interface that it sends to: the NF may request its
    /// neighbours.
    pub l3_interfaces: Vec<Option<String>>,
    /// How it runs.
    pub terms: Terms,
}

/// A link, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end that sends.
    pub from: End,
    /// The end that receives.
    pub to: End,
    /// The location of the link in the chain file.
    pub span: Span,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// A port of [`Chain::ports`].
    Port(usize),
    /// A virtual device of [`Chain::devices`].
    Device(usize),
    /// An interface of an NF: the number of the NF and that of the interface.
    Nf(usize, usize),
}
