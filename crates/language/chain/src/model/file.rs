//! A chain file as it is written.

use super::device::DeviceDecl;
use super::nf::NfDecl;
use super::port::PortDecl;
use diag::{SourceId, Spanned};

/// What a chain file says.
pub(crate) struct ChainFile {
    pub source: SourceId,
    pub workers: Option<usize>,
    pub cores: Vec<usize>,
    pub burst: Option<usize>,
    pub poll: bool,
    pub ports: Vec<PortDecl>,
    pub devices: Vec<DeviceDecl>,
    pub nfs: Vec<NfDecl>,
    pub links: Vec<Spanned>,
    pub entries: Option<Vec<Spanned>>,
    /// Whether mistakes in the syntax may hide declarations.
    pub damaged: bool,
}
