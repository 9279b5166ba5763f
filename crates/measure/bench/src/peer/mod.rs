//! Other systems to compare with; the harness starts them on the same ports.
//!
//! An [`Adapter`] is a small file: the Debian packages and programs that a system needs, the commands that
//! start it between two devices, and the command that prints its version. This program has [`built_in`] ones;
//! users add a system with one more file. A [`Bench`] is the environment of a system: network namespaces for
//! the system and the tester, two veth cables between them, and every process that was started in them. All
//! of it ends when the bench is dropped, and when this process ends, in whatever way.
//!
//! [`Missing`] says what the machine lacks (a package, a privilege). An experiment lists such systems as skipped; they
//! do not fail the whole run.
//!
//! This module sends no frames ([`crate::wire`] does).

mod adapter;
mod bench;
mod space;
#[cfg(test)]
mod tests;
mod variables;

pub use adapter::{Adapter, Does, Peer, built_in, load, peers_of};
pub use bench::{Bench, BenchOptions};
pub use space::Space;
pub use variables::Variables;

use crate::BenchError;

/// Why something cannot be measured here, and what would be needed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

impl From<BenchError> for Missing {
    fn from(error: BenchError) -> Missing {
        Missing(error.to_string())
    }
}

/// Where a program lies, in the folders of `PATH` and those that only root has there.
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(Into::into));
    all.map(|folder| folder.join(name)).find(|file| file.is_file())
}
