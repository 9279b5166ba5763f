//! Other systems to compare with, started by the harness on the same ports.
//!
//! An [`Adapter`] is one small file: the Debian packages and programs that a system needs, the commands that start it
//! between two devices, and how to tell its version. [`built_in`] ones are part of this program; a user adds a system by
//! writing one more. [`Bench`] is where a system runs: network namespaces for the system and the tester, a pair of veth
//! cables between them, and everything that was started in there. It goes away as a whole, with every process and device,
//! when it is dropped and when this process ends in whatever way.
//!
//! What is missing (a package, a privilege) is [`Missing`], which an experiment tells as skipped, and never a failure of
//! the whole run.
//!
//! What this module does not do: send frames ([`crate::wire`] does).

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

/// Why something cannot be measured here, and what would be needed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// Where a program lies, in the folders of `PATH` and those that only root has there.
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(Into::into));
    all.map(|folder| folder.join(name)).find(|file| file.is_file())
}
