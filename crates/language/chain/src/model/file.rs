//! The declarations of a chain file.

use super::device::DeviceDecl;
use super::nf::NfDecl;
use super::port::PortDecl;
use diag::{SourceId, Spanned};

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
    /// The burst size, if the chain file sets it.
    pub burst: Option<usize>,
    /// Whether packet threads never sleep.
    pub poll: bool,
}

impl ChainFile {
    /// The names of ports, devices and NFs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ports = self.ports.iter().map(|port| port.name.as_str());
        let devices = self.devices.iter().map(|device| device.name.as_str());
        ports.chain(devices).chain(self.nfs.iter().map(|nf| nf.name.as_str()))
    }
}
