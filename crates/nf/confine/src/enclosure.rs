//! The enclosure of a container runtime: it has all rights of the host, and no process of it outlives it.

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

/// A PID and a mount namespace for a program that the host trusts, a container runtime. Everything that the
/// runtime starts, in whatever further namespaces, ends with it, and it ends with the host. It keeps the
/// host's rights, and sees everything that the host sees except file systems hidden by [`Enclosure::hide`].
#[derive(Debug, Default)]
pub struct Enclosure(Mounts);

impl Enclosure {
    /// An enclosure with all mounts of the host.
    pub fn new() -> Enclosure {
        Enclosure::default()
    }

    /// Binds a file or directory to an existing path, visible only inside.
    ///
    /// # Errors
    ///
    /// When a path contains a zero byte.
    pub fn bind(&mut self, source: &Path, target: &Path, access: Access) -> io::Result<()> {
        self.0.bind(source, target, access)
    }

    /// Unmounts a file system, only inside.
    ///
    /// # Errors
    ///
    /// When the path contains a zero byte.
    pub fn hide(&mut self, place: &Path) -> io::Result<()> {
        self.0.hide(place)
    }

    /// Starts a program inside, as the first process of its PID namespace.
    ///
    /// # Errors
    ///
    /// When the machine or this process's rights do not allow such namespaces, or the program cannot be
    /// executed. No process is left then.
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
