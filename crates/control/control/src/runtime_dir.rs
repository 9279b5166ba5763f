//! Where a daemon's sockets are.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A folder with the sockets of one daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeDir {
    folder: PathBuf,
}

/// Why a place cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Another daemon is there.
    #[error(
        "another daemon runs at {0}; steer that one, stop it, or start this one elsewhere with `--at FOLDER`"
    )]
    Taken(PathBuf),
    /// The system refuses.
    #[error("cannot {action} {path}: {source}; name another folder with `--at FOLDER`")]
    System {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder is somebody else's.
    #[error(
        "{path} belongs to user {uid} and can be written by others, who could put their own sockets there; \
         name another folder with `--at FOLDER`"
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
}

/// A place that is one daemon's as long as this lives.
#[derive(Debug)]
pub struct Claimed {
    place: RuntimeDir,
    _lock: OwnedFd,
}

impl RuntimeDir {
    /// The folder, or where daemons are when nothing is said: `/run/millrace` for root, else `millrace` in the user's
    /// folder for such things.
    pub fn new(folder: Option<&Path>) -> RuntimeDir {
        let folder = folder.map(Path::to_path_buf).unwrap_or_else(|| {
            let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            match of_user {
                _ if rustix::process::geteuid().is_root() => PathBuf::from("/run/millrace"),
                Some(folder) => folder.join("millrace"),
                None => {
                    let user = rustix::process::geteuid().as_raw();
                    std::env::temp_dir().join(format!("millrace-{user}"))
                }
            }
        });
        RuntimeDir { folder }
    }

    /// The socket that the interface is served at.
    pub fn control(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// The socket that NFs attach at.
    pub fn nf(&self) -> PathBuf {
        self.folder.join("nf.sock")
    }

    /// Makes it this daemon's: the folder is there, nobody else can write it, and what an earlier daemon left is gone.
    ///
    /// # Errors
    ///
    /// When another daemon is there, or the system refuses.
    pub fn lock(&self) -> Result<Claimed, PlaceError> {
        let path = || self.folder.clone();
        let failed = |action, source: std::io::Error| PlaceError::System { action, path: path(), source };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(&self.folder)
            .map_err(|error| failed("make", error))?;
        let found = std::fs::metadata(&self.folder).map_err(|error| failed("look at", error))?;
        let owner = found.uid();
        let foreign = owner != rustix::process::geteuid().as_raw() && owner != 0;
        if foreign || found.mode() & 0o022 != 0 {
            return Err(PlaceError::NotOurs { path: path(), uid: owner });
        }
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(self.folder.join("lock"), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed("lock", error.into()))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(PlaceError::Taken(path())),
            Err(error) => return Err(failed("lock", error.into())),
        }
        // The lock is ours: whoever made these is gone.
        for socket in [self.control(), self.nf()] {
            match std::fs::remove_file(&socket) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("clear", error));
                }
                _ => {}
            }
        }
        Ok(Claimed { place: self.clone(), _lock: lock })
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        for socket in [self.place.control(), self.place.nf()] {
            let _ = std::fs::remove_file(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_daemons_and_free_when_that_has_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = RuntimeDir::new(Some(&folder.path().join("deep/er")));
        let claimed = place.lock().expect("nobody is there");
        assert!(matches!(place.lock(), Err(PlaceError::Taken(_))));
        drop(claimed);
        // What a daemon that was killed leaves is no obstacle.
        std::fs::write(place.control(), "").expect("written");
        place.lock().expect("nobody is there any more");
        assert!(!place.control().exists());
    }

    #[test]
    fn a_folder_that_others_write_is_no_place() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
        let refused = RuntimeDir::new(Some(folder.path())).lock();
        assert!(matches!(refused, Err(PlaceError::NotOurs { .. })));
    }
}
