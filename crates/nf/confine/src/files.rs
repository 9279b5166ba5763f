//! The list of files that an NF may open, as a Landlock ruleset; with it go the reach of signals and of sockets.
//!
//! What Landlock does not know, it does not hold back: looking at names, sizes and modes of files, and files that
//! are opened already. Descriptors of shared memory are not its business either: whether an NF may open such a
//! file anew for writing, through `/proc/self/fd`, rests on the file's mode and on the NF's user id.

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

/// Programs and libraries of the system: read and executed.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Of `/etc`, what programs need to start; all that the superuser's NFs get, to whom modes of files mean little.
const START: [&str; 5] =
    ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf"];

/// Which cores and nodes there are.
const READ: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// Devices that hold nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The newest interface that this file has considered.
const KNOWN: ABI = ABI::V6;

/// A ruleset, ready to be entered, and how far it reaches here.
#[derive(Debug)]
pub(crate) struct Files {
    pub ruleset: OwnedFd,
    abi: u32,
}

impl Files {
    /// Whether an NF's signals stay with it.
    pub fn holds_signals(&self) -> bool {
        self.abi >= 6
    }

    /// Whether TCP and sockets of abstract names are held back.
    pub fn holds_sockets(&self) -> bool {
        self.abi >= 6
    }

    /// What the kernel's interface lacks.
    pub fn lacks(&self) -> Option<&'static str> {
        match self.abi {
            5.. => None,
            3..=4 => Some("devices that are granted take all their commands before Linux 6.10"),
            _ => Some("files that are granted for reading can be emptied before Linux 6.2"),
        }
    }
}

/// The ruleset for an NF that executes `program`; `None` where there is no Landlock.
///
/// # Errors
///
/// When something that was granted cannot be opened.
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
            Err(Error::Grant { .. }) => {} // Not of this system.
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
    // There is Landlock, so there is a descriptor.
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
    /// Grants something beneath a path.
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
