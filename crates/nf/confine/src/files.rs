//! The files that an NF may open, as a Landlock ruleset, which also restricts signals and sockets.
//!
//! Landlock does not restrict names, sizes and modes of files, or open files. It does not restrict
//! descriptors of shared memory either: whether an NF may reopen such a file for writing, through
//! `/proc/self/fd`, depends on the file's mode and on the NF's user id.

use crate::ask;
use crate::confinement::{Confinement, Sockets};
use crate::error::Error;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Programs and libraries of the system: readable and executable.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// The files of `/etc` that programs need to start. NFs of the superuser get only these, because file modes
/// do not restrict them.
const START: [&str; 5] =
    ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf"];

/// The lists of cores and memory nodes.
const READ: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// Devices without data.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The newest Landlock version that this file takes into account.
const KNOWN: ABI = ABI::V6;

/// A prepared ruleset, and the Landlock version of this machine.
#[derive(Debug)]
pub(crate) struct Files {
    pub ruleset: OwnedFd,
    abi: u32,
}

impl Files {
    /// Whether signals are restricted to the NF itself, and TCP and abstract UNIX sockets are restricted.
    pub fn holds_scopes(&self) -> bool {
        self.abi >= 6
    }

    /// The restrictions that this Landlock version lacks.
    pub fn lacks(&self) -> Option<&'static str> {
        match self.abi {
            5.. => None,
            3..=4 => Some("devices that are granted take all their commands before Linux 6.10"),
            _ => Some("files that are granted for reading can be emptied before Linux 6.2"),
        }
    }
}

/// The ruleset for an NF that executes `program`; `None` without Landlock.
///
/// # Errors
///
/// When a granted path cannot be opened.
pub(crate) fn ruleset(
    confinement: &Confinement,
    program: Option<&Path>,
    as_superuser: bool,
) -> Result<Option<Files>, Error> {
    let abi = ask::landlock_abi();
    if abi == 0 {
        return Ok(None);
    }
    let failed = |error: RulesetError| Error::Files(error.to_string());
    let mut rules = Rules(empty(confinement).map_err(failed)?);
    let (read, write) = (AccessFs::ReadFile | AccessFs::ReadDir, AccessFs::from_write(KNOWN));
    let execute = AccessFs::from_read(KNOWN);
    let system = SYSTEM.iter().map(|path| (*path, execute));
    let etc: &[&str] = if as_superuser { &START } else { &["/etc"] };
    let texts = etc.iter().chain(&READ).map(|path| (*path, read));
    let devices = DEVICES.iter().map(|path| (*path, AccessFs::ReadFile | AccessFs::WriteFile));
    for (path, access) in system.chain(texts).chain(devices) {
        match rules.add(Path::new(path), access) {
            Err(Error::Grant { .. }) => {} // This system does not have it.
            other => other?,
        }
    }
    let device_nodes = AccessFs::MakeChar | AccessFs::MakeBlock;
    let reads = confinement.reads.iter().map(|path| (path.as_path(), read));
    let writes = confinement.writes.iter().map(|path| (path.as_path(), (read | write) & !device_nodes));
    let program = program.map(|path| (path, AccessFs::Execute | AccessFs::ReadFile));
    for (path, access) in reads.chain(writes).chain(program) {
        rules.add(path, access)?;
    }
    // Landlock is available, so there is a descriptor.
    Ok(Option::<OwnedFd>::from(rules.0).map(|ruleset| Files { ruleset, abi }))
}

/// A ruleset that grants nothing.
fn empty(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::Signal)?;
    if confinement.sockets == Sockets::Inherited {
        ruleset = ruleset.scope(Scope::AbstractUnixSocket)?;
    }
    if confinement.sockets != Sockets::Network {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    ruleset.create()
}

struct Rules(RulesetCreated);

impl Rules {
    /// Grants access to everything below a path.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Error> {
        let grant = |source: io::Error| Error::Grant { path: path.into(), source };
        let is_folder = path.metadata().map_err(grant)?.is_dir();
        let access = if is_folder { access } else { access & AccessFs::from_file(KNOWN) };
        let opened = PathFd::new(path).map_err(|error| match error {
            PathFdError::OpenCall { source, .. } => grant(source),
            other => Error::Files(other.to_string()),
        })?;
        (&mut self.0)
            .add_rule(PathBeneath::new(opened, access))
            .map_err(|error| Error::Files(error.to_string()))?;
        Ok(())
    }
}
