//! NFs in processes of their own, over shared packet memory and rings.
//!
//! - [`seat`]: the place of an NF in a chain, shared by the two who look after it
//! - [`supervisor`]: has processes started (`start`), shakes hands (see the crate `nf`), watches and ends them
//! - [`link`]: the worker's side: lends packets, takes them back, buries
//! - [`party`]: NFs that hand packets to each other without the host; `parties`: which those are
//! - [`memory`]: the packet memory that is lent out of; `border`: how packets cross into a trust group's own
//! - `neighbours`: what processes want to know of theirs, and are told
//! - [`peer`]: who connected to a socket
//! - [`handlers`]: handlers of what runs in processes
//! - `log`: keeps what processes write; `vital`: whether they live
//! - [`container`]: those that run in containers
//! - [`child`]: the process of an NF that is a Click configuration: this program again; [`brief`]: what it is told
//!
//! Any program that links the crate `nf` or its C library can be an NF.

mod border;
pub mod brief;
pub mod child;
pub mod container;
mod cores;
pub mod handlers;
pub mod link;
mod log;
pub mod memory;
mod neighbours;
mod parties;
pub mod party;
pub mod peer;
pub mod seat;
#[cfg(test)]
mod simulation;
mod start;
pub mod supervisor;
mod vital;

pub use brief::Brief;
pub use cores::keep_off;
pub use parties::Parties;
pub use seat::{Command, NfOutput, NfSpec, Rights, Seat, State, Terms, WhenDown};
pub use supervisor::Supervisor;

use crate::assemble::{AssembleError, Options, assemble};
use crate::chain::{Body, Chain, Program, instances};
use crate::services::PortOpener;
use diag::Diagnostics;
use element::configure::Direction;
use port::{MemoryPort, Port};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Records the mistakes of all NFs that run in processes of their own: those would find them only when they
/// are started.
///
/// # Errors
/// When no machine code can be made.
pub fn check(chain: &Chain, options: &Options, diags: &mut Diagnostics) -> Result<(), AssembleError> {
    // By the evaluator: the processes make machine code for themselves.
    let options = Options { workers: 1, evaluator: true, ..options.clone() };
    // Mistakes of instances are those of the first.
    for nf in chain.processes.iter().filter(|nf| instances::is_first(&nf.name)) {
        let name = instances::family(&nf.name);
        if let Some(container) = nf.terms.container {
            let by_name =
                matches!(&nf.body, Body::Program(program) if container::is_name(&program.path, container));
            container::check::check_runtime(name, container, by_name, nf.span, diags);
        }
        match (&nf.body, nf.terms.container) {
            (Body::Click(graph), _) => {
                assemble(graph, &options, &mut AnyPort, diags)?;
            }
            (Body::Program(program), Some(container)) => {
                container::check::check(name, program, container, diags);
            }
            (Body::Program(program), None) => check_program(name, program, diags),
            (Body::Visitor(_), _) => {}
        }
    }
    Ok(())
}

/// Whether a file is there and can be run.
fn runs(path: &Path) -> std::io::Result<bool> {
    let found = std::fs::metadata(path)?;
    Ok(found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether a program is named without a folder, and so looked for as shells do.
fn is_bare(program: &Path) -> bool {
    program.components().count() == 1 && !program.has_root()
}

/// The file of a program; a bare name is looked for along PATH.
fn find_program(program: &Path) -> Option<PathBuf> {
    if !is_bare(program) {
        return Some(program.to_path_buf());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| runs(file).unwrap_or(false))
}

/// Whether there is such a program.
fn check_program(nf: &str, program: &Program, diags: &mut Diagnostics) {
    let shown = program.path.display();
    if is_bare(&program.path) {
        if find_program(&program.path).is_none() {
            diags
                .error(program.span, format!("there is no program `{shown}` for NF `{nf}` along PATH"))
                .help("write its path, relative to the chain file and with a `/` in it");
        }
        return;
    }
    match runs(&program.path) {
        Ok(true) => {}
        Ok(false) => {
            let message = format!("{shown}, which is NF `{nf}`, is no file that can be run");
            diags.error(program.span, message).help("name a program that links the SDK");
        }
        Err(error) => {
            diags
                .error(program.span, format!("there is no program {shown} for NF `{nf}`: {error}"))
                .help("build it first, or correct the path, which is relative to the chain file");
        }
    }
}

/// Opens nothing.
struct AnyPort;

impl PortOpener for AnyPort {
    fn open(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(MemoryPort::sink(name)))
    }
}
