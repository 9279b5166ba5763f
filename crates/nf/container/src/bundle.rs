//! Bundles: the parts of a container, and the checks of a user's bundle.

use crate::config::{check_types, read};
use crate::elf::Elf;
use confine::Enclosure;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The parts of a container, without its NF's rights.
pub struct ContainerParts {
    /// The base of `config.json`.
    pub config: Value,
    /// The enclosure with the mounts of its root file system.
    pub enclosure: Enclosure,
}

/// The start of the runtime's command line: the NF's socket, which is the standard input, becomes descriptor
/// 3.
pub const WITH_SOCKET: [&str; 4] = ["/bin/sh", "-c", "exec \"$@\" 3<&0 </dev/null", "millrace-nf"];

/// The configuration of a bundle.
///
/// # Errors
///
/// When it does not exist, or is not valid.
pub fn read_config(bundle: &Path) -> Result<Value, String> {
    let file = bundle.join("config.json");
    let shown = file.display();
    if !bundle.is_dir() {
        return Err(format!("there is no folder {}", bundle.display()));
    }
    let bytes = std::fs::read(&file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let config: Value = serde_json::from_slice(&bytes).map_err(|error| format!("{shown}: {error}"))?;
    check_types(&config).map_err(|error| format!("{shown}: {error}"))?;
    if config["process"]["args"][0].is_null() {
        return Err(format!("{shown} says nothing of what is run: give it `process` with `args`"));
    }
    // The specification demands them, and runtimes refuse a container without.
    for field in ["cwd", "user"] {
        if config["process"][field].is_null() {
            return Err(format!("{shown}: `process` has no `{field}`"));
        }
    }
    Ok(config)
}

/// The root file system of a bundle.
///
/// # Errors
///
/// When it does not exist.
pub fn rootfs(bundle: &Path, config: &Value) -> Result<PathBuf, String> {
    let path: String = read(config, "/root/path");
    if path.is_empty() {
        return Err("config.json has no `root` with a `path`".into());
    }
    let path = bundle.join(path);
    let path =
        path.canonicalize().map_err(|error| format!("its root file system {}: {error}", path.display()))?;
    let found = std::fs::metadata(&path).map_err(|error| error.to_string())?;
    if !found.is_dir() {
        return Err(format!("its root file system {} is no folder", path.display()));
    }
    if found.permissions().mode() & 0o005 != 0o005 {
        return Err(format!(
            "its root file system {0} is closed to the user that the NF runs as: chmod 755 {0}",
            path.display()
        ));
    }
    Ok(path)
}

/// Checks that the program of a root file system can run on this machine.
///
/// # Errors
///
/// When it does not exist, or is for another machine.
pub fn runs(rootfs: &Path, arguments: &[String], environment: &[String]) -> Result<(), String> {
    let program = arguments.first().ok_or("it says nothing of what is run")?;
    let path = environment.iter().find_map(|entry| entry.strip_prefix("PATH="));
    let path = path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let candidates: Vec<String> = if program.contains('/') {
        vec![program.clone()]
    } else {
        path.split(':').map(|folder| format!("{folder}/{program}")).collect()
    };
    let Some(file) = candidates.iter().find_map(|candidate| inside(rootfs, candidate)) else {
        return Err(format!("there is no program {program} in its root file system"));
    };
    let elf = Elf::of(&file).map_err(|error| format!("{program}: {error}"))?;
    let foreign = elf.and_then(|elf| elf.is_foreign());
    foreign.map_or(Ok(()), |why| Err(format!("{program} in there {why}")))
}

/// A file inside a root file system, with links resolved as inside.
fn inside(rootfs: &Path, path: &str) -> Option<PathBuf> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let root =
        rustix::fs::open(rootfs, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()?;
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}
