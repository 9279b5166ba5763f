//! Where a container runtime runs: with all rights of the host, and with no way to leave anything behind.

use crate::applied::{Applied, Mechanism};
use crate::confined::Confined;
use crate::error::Error;
use crate::group::Group;
use crate::mounts::{Access, Mounts};
use crate::spawner;
use crate::steps::{Host, Steps};
use std::io;
use std::path::Path;
use std::process::Command;

/// A PID and a mount namespace for a program that the host trusts, a container runtime: what it starts, in whatever
/// further namespaces, ends with it, and it ends with the host. It keeps the host's rights, and loses none of what it
/// sees but by [`Enclosure::hide`].
#[derive(Debug, Default)]
pub struct Enclosure(Mounts);

impl Enclosure {
    /// One that sees what the host sees.
    pub fn new() -> Enclosure {
        Enclosure::default()
    }

    /// Shows a file or folder at a place that is there already, in here only.
    ///
    /// # Errors
    ///
    /// When a path has a zero byte in it.
    pub fn bind(&mut self, source: &Path, target: &Path, access: Access) -> io::Result<()> {
        self.0.bind(source, target, access)
    }

    /// Unmounts a file system, in here only.
    ///
    /// # Errors
    ///
    /// When the path has a zero byte in it.
    pub fn hide(&mut self, place: &Path) -> io::Result<()> {
        self.0.hide(place)
    }

    /// Starts a program in here, as the first process of its PID namespace.
    ///
    /// # Errors
    ///
    /// When the machine or this process's rights have no such namespaces, or the program cannot be executed. No
    /// process is left then.
    pub fn spawn(self, command: Command) -> Result<Confined, Error> {
        let (notes, report) = spawner::notes().map_err(Error::Spawner)?;
        let mounts = Some(self.0);
        let steps = Steps { own_pids: true, mounts, ..Steps::new(report, Host::in_proc()) };
        let mut applied = Applied::default();
        applied.enforced(Mechanism::Descendants, "they end with it, in a PID namespace");
        applied.enforced(Mechanism::HostDeath, "by signal");
        Confined::start(command, steps, notes, Group::none(), applied)
    }
}
