//! The directories and control groups of containers, and their removal.
//!
//! `/run/millrace-nfs/HOST/NUMBER-NF/` belongs to a container; `HOST` belongs to a host, which keeps
//! `HOST.lock` beside it locked as long as it lives. The next host that starts a container removes the
//! directories whose lock is free: by then no process of those containers runs any more, because their
//! enclosures ended with their host.

use confine::{control_group_trees, remove_control_group};
use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

/// The directory of all hosts.
const ALL: &str = "/run/millrace-nfs";
/// The prefix of containers' control groups. None is the child of another, because a parent might be removed
/// while its child is created. Groups with the prefix `millrace-` belong to the crate `confine`.
const GROUP: &str = "container-of-millrace-";
/// A file that records that an engine was used.
const ENGINE: &str = "engine";

/// The directory of this host.
#[derive(Debug)]
struct Host {
    folder: PathBuf,
    name: String,
    /// Locked as long as this process lives.
    _lock: File,
}

/// The directory of a container. Removed when it is dropped.
#[derive(Debug)]
pub struct Folder {
    /// The directory of the bundle.
    pub path: PathBuf,
    /// The container's name.
    pub id: String,
    /// The directory of the runtime's state.
    pub state: PathBuf,
    removed: bool,
    /// Removed when the last of its containers is removed.
    host: Arc<Host>,
}

/// Creates a directory that other users may pass through but not read: by name they can open what they have
/// access to.
fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o711).create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o711))
}

impl Host {
    fn known() -> MutexGuard<'static, Weak<Host>> {
        static HOST: Mutex<Weak<Host>> = Mutex::new(Weak::new());
        HOST.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of this host; the first caller creates it, and it exists as long as any caller uses it.
    fn get() -> Result<Arc<Host>, String> {
        let mut known = Host::known();
        if let Some(host) = known.upgrade() {
            return Ok(host);
        }
        let host = Host::make(Path::new(ALL)).map_err(|error| format!("{ALL}: {error}"))?;
        let host = Arc::new(host);
        *known = Arc::downgrade(&host);
        Ok(host)
    }

    fn make(all: &Path) -> io::Result<Host> {
        make_folder(all)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{:x}", std::process::id(), since.as_micros());
        // The lock is created before the directory, so that another host that sees the directory finds the
        // lock taken.
        let lock = File::create(all.join(format!("{name}.lock")))?;
        lock.try_lock().map_err(io::Error::from)?;
        let folder = all.join(&name);
        make_folder(&folder.join("state"))?;
        make_folder(&folder)?;
        Ok(Host { folder, name, _lock: lock })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        remove_tree(&self.folder);
        let _ = std::fs::remove_file(self.folder.with_extension("lock"));
    }
}

/// Removes the directories and groups of hosts that have ended, unless this host has done so already;
/// `engines` removes the containers of engines, for a host's name.
pub fn sweep_all(engines: &dyn Fn(&str)) {
    let is_known = Host::known().upgrade().is_some();
    if !is_known {
        sweep(Path::new(ALL), engines);
    }
}

/// Removes the directories and groups of hosts that have ended.
fn sweep(all: &Path, engines: &dyn Fn(&str)) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let lock = entry.path();
        let Some(name) = lock.file_name().and_then(|name| name.to_str()?.strip_suffix(".lock")) else {
            continue;
        };
        let Ok(file) = File::open(&lock) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let of_host = format!("{GROUP}{name}-");
        if std::fs::exists(all.join(name).join(ENGINE)).unwrap_or(false) {
            engines(name);
        }
        for tree in control_group_trees() {
            let groups = std::fs::read_dir(tree).into_iter().flatten().flatten();
            let left = groups.filter(|group| group.file_name().to_string_lossy().starts_with(&of_host));
            left.for_each(|group| remove_control_group(&group.path()));
        }
        remove_tree(&all.join(name));
        let _ = std::fs::remove_file(&lock);
    }
}

impl Folder {
    /// Creates the directory for a container of an NF.
    pub fn make(nf: &str) -> Result<Folder, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let host = Host::get()?;
        let name = format!("{}-{nf}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = Folder {
            path: host.folder.join(&name),
            id: format!("{}-{name}", host.name),
            state: host.folder.join("state"),
            removed: false,
            host,
        };
        let make = || {
            make_folder(&folder.path)?;
            // Runtimes open it from inside the container.
            std::fs::DirBuilder::new().mode(0o755).create(folder.root())?;
            std::fs::set_permissions(folder.root(), std::fs::Permissions::from_mode(0o755))
        };
        make().map_err(|error| error.to_string())?;
        Ok(folder)
    }

    /// The name of its host.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// Records that an engine has a container of this host, so that the next host checks for it.
    pub fn note_engine(&self) -> io::Result<()> {
        File::create(self.host.folder.join(ENGINE)).map(drop)
    }

    /// The path of its root file system.
    pub fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    /// The path of its configuration.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// The path of the runtime's log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.json")
    }

    /// Its control group, in each hierarchy.
    pub fn control_group(&self) -> PathBuf {
        Path::new("/").join(format!("{GROUP}{}", self.id))
    }

    /// The directories of its control groups.
    pub fn control_groups(&self) -> Vec<PathBuf> {
        control_group_trees().into_iter().map(|tree| tree.join(format!("{GROUP}{}", self.id))).collect()
    }

    /// Creates a mount point inside its root file system, a directory or a file, if it does not exist.
    pub fn make_place(&self, inside: &Path, is_folder: bool) -> io::Result<PathBuf> {
        make_place(&self.root(), inside, is_folder)
    }

    /// Removes all of it, once no process of the container runs.
    pub fn remove(&mut self) {
        if std::mem::replace(&mut self.removed, true) {
            return;
        }
        self.control_groups().iter().for_each(|group| remove_control_group(group));
        let _ = std::fs::remove_dir_all(self.state.join(&self.id));
        remove_tree(&self.path);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Creates a mount point below a root, if it does not exist.
///
/// # Errors
///
/// When its path contains a symbolic link, which could lead out of the root.
pub fn make_place(root: &Path, inside: &Path, is_folder: bool) -> io::Result<PathBuf> {
    let mut parts = inside.components().peekable();
    let mut place = root.to_path_buf();
    while let Some(part) = parts.next() {
        match part {
            std::path::Component::Normal(name) => place.push(name),
            // The parent of the root is the root.
            std::path::Component::ParentDir if place != root => {
                place.pop();
                continue;
            }
            _ => continue,
        }
        let last = parts.peek().is_none();
        match std::fs::symlink_metadata(&place) {
            Ok(found) if found.is_symlink() => {
                let shown = Path::new("/").join(place.strip_prefix(root).unwrap_or(&place));
                return Err(io::Error::other(format!("{} is a symbolic link in there", shown.display())));
            }
            Ok(_) => {}
            Err(_) if last && !is_folder => drop(File::create(&place)?),
            Err(_) => std::fs::DirBuilder::new().mode(0o755).create(&place)?,
        }
    }
    Ok(place)
}

/// The directories of a process's control groups.
pub fn control_groups_of(pid: u64) -> Vec<PathBuf> {
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut paths: Vec<&str> = own.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
    paths.sort_unstable();
    paths.dedup();
    let trees = control_group_trees();
    let groups =
        trees.iter().flat_map(|tree| paths.iter().map(|path| tree.join(path.trim_start_matches('/'))));
    // The root group belongs to no container.
    groups.filter(|group| !trees.contains(group)).collect()
}

/// The PID namespace of a process.
pub fn pid_namespace(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Removes a directory with its contents, unless something is mounted in it: that would delete other data.
fn remove_tree(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_below =
        |line: &str| line.split(' ').nth(1).is_some_and(|place| Path::new(place).starts_with(folder));
    if !mounts.lines().any(is_below) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_host_left_is_taken_away_and_what_a_living_one_has_is_not() {
        let all = tempfile::tempdir().expect("a folder");
        let living = Host::make(all.path()).expect("made");
        std::fs::write(all.path().join("1-dead.lock"), "").expect("written");
        std::fs::create_dir_all(all.path().join("1-dead/0-nf/root/lib")).expect("made");
        sweep(all.path(), &|_| panic!("no engine was used"));
        assert!(living.folder.join("state").exists());
        assert!(!all.path().join("1-dead").exists() && !all.path().join("1-dead.lock").exists());
    }

    #[test]
    fn no_place_is_made_behind_a_link() {
        let (root, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let root = root.path();
        assert!(make_place(root, Path::new("/a/b/c"), false).expect("made").is_file());
        assert!(make_place(root, Path::new("/a/b"), true).expect("there").is_dir());
        assert!(make_place(root, Path::new("/../d"), true).expect("made").starts_with(root));
        // As with `$ORIGIN/../lib`: the directory in between is created, too.
        let beside = make_place(root, Path::new("/a/bin/../lib/x"), false).expect("made");
        assert!(beside == root.join("a/lib/x") && root.join("a/bin/../lib/x").is_file());
        std::os::unix::fs::symlink(outside.path(), root.join("out")).expect("linked");
        let refused = make_place(root, Path::new("/out/x"), false).expect_err("refused");
        assert!(refused.to_string().contains("/out is a symbolic link"), "{refused}");
        assert_eq!(std::fs::read_dir(outside.path()).expect("there").count(), 0);
    }
}
