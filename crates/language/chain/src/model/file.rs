//! The declarations of a chain file.

use super::device::DeviceDecl;
use super::nf::NfDecl;
use super::port::PortDecl;
use diag::{SourceId, Span, Spanned};

/// The declarations of a chain file.
pub(crate) struct ChainFile {
    pub source: SourceId,
    pub run: Run,
    pub ports: Vec<PortDecl>,
    pub devices: Vec<DeviceDecl>,
    pub nfs: Vec<NfDecl>,
    pub links: Vec<Spanned>,
    pub entries: Option<Vec<Spanned>>,
    /// Whether syntax errors may hide declarations.
    pub damaged: bool,
}

/// The settings of `[run]`.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The number of workers, if the chain file sets it or the cores.
    pub workers: Option<usize>,
    /// Cores to pin workers to.
    pub cores: Vec<usize>,
    /// Their locations in the chain file.
    pub core_spans: Vec<Span>,
    /// The burst size, if the chain file sets it.
    pub burst: Option<usize>,
    /// Whether packet threads never sleep.
    pub poll: bool,
    /// The NFs whose scripts end the run.
    pub ends_with: EndsWith,
}

/// The NFs whose scripts end a run, by `stop`.
#[derive(Clone, Debug, Default)]
pub enum EndsWith {
    /// All that have scripts: the run ends with the last one.
    #[default]
    All,
    /// The first NF that requests it.
    First,
    /// These NFs: the run ends with the last of them.
    Nfs(Vec<Spanned>),
}

impl ChainFile {
    /// The names of ports, devices and NFs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ports = self.ports.iter().map(|port| port.name.as_str());
        let devices = self.devices.iter().map(|device| device.name.as_str());
        ports.chain(devices).chain(self.nfs.iter().map(|nf| nf.name.as_str()))
    }
}
