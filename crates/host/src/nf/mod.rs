//! NFs in processes of their own: this program again, with packet memory and rings.
//!
//! - [`link`]: the host's side: starts the process, lends packets, takes them back, buries and starts anew
//! - [`child`]: the process's side: runs the NF's elements with the rings for ports
//!
//! The process gets its descriptors by inheritance and what they mean by its arguments ([`Attachment`]). It
//! says that it is ready by a byte on its standard output. It ends at SIGTERM, and with the host.

pub mod child;
pub mod link;

use crate::assemble::{Options, assemble};
use crate::chain::Chain;
use crate::services::PortOpener;
use codegen::CodegenError;
use diag::Diagnostics;
use element::configure::Direction;
use port::{MemoryPort, Port};
use shm::ring::RingFile;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// Claims that a ring of an NF holds.
pub(crate) const RING_CLAIMS: u32 = 1024;
/// The rings of an NF: packets to it, packets from it, empty slots to it.
pub(crate) type Rings = RingFile<3>;
/// What a process writes when it is ready.
pub(crate) const READY: u8 = b'!';

/// What a process is told about the memory that its NF works on.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// Descriptor of packet memory.
    pub region: RawFd,
    /// Slots in it.
    pub slots: u32,
    /// Descriptor of the rings.
    pub rings: RawFd,
    /// Packets to work on at a time.
    pub burst: usize,
}

/// How to start the process of an NF: this program, and what it needs to find the NF again.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments, up to those of the [`Attachment`].
    pub arguments: Vec<String>,
}

/// Records the mistakes of all NFs that run in processes of their own: those would find them only when they
/// are started.
///
/// # Errors
/// When no machine code can be made.
pub fn check(chain: &Chain, options: &Options, diags: &mut Diagnostics) -> Result<(), CodegenError> {
    // By the evaluator: the processes make machine code for themselves.
    let options = Options { workers: 1, evaluator: true, ..options.clone() };
    for nf in &chain.processes {
        assemble(&nf.graph, &options, &mut AnyPort, diags)?;
    }
    Ok(())
}

/// Opens nothing.
struct AnyPort;

impl PortOpener for AnyPort {
    fn open(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(MemoryPort::sink(name)))
    }
}
