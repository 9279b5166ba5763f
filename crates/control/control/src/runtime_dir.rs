//! The folder of a daemon's sockets.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The folder of the system's daemon.
pub const OF_SYSTEM: &str = "/run/millrace";

/// The folder of the user's daemon.
fn of_user() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("millrace"),
        None => {
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("millrace-{user}"))
        }
    }
}

/// A folder that was named; an empty name names none.
fn given(folder: Option<&Path>) -> Option<&Path> {
    folder.filter(|folder| !folder.as_os_str().is_empty())
}

/// A folder with the sockets of one daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeDir {
    folder: PathBuf,
}

/// Why a daemon cannot use a folder.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Another daemon uses it.
    #[error(
        "another daemon runs at {0}; steer that one, stop it, or start this one elsewhere with `--at FOLDER`"
    )]
    Taken(PathBuf),
    /// The system returned an error.
    #[error("cannot {action} {path}: {source}; name another folder with `--at FOLDER`")]
    System {
        /// The failed operation.
        action: &'static str,
        /// The path of the operation.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The folder belongs to another user, or others may write to it.
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

/// A folder that this daemon has locked. Dropping this removes the sockets and releases the lock.
#[derive(Debug)]
pub struct Claimed {
    place: RuntimeDir,
    _lock: OwnedFd,
}

impl RuntimeDir {
    /// The folder of a daemon: the given one, or the default, which is [`OF_SYSTEM`] for root, else `millrace`
    /// in the user's runtime directory.
    pub fn new(folder: Option<&Path>) -> RuntimeDir {
        let folder = given(folder).map(Path::to_path_buf).unwrap_or_else(|| {
            if rustix::process::geteuid().is_root() { PathBuf::from(OF_SYSTEM) } else { of_user() }
        });
        RuntimeDir { folder }
    }

    /// The folder of the daemon that a client asks: the given one, or the first of the user's and the
    /// system's in which a daemon listens. If none listens: that of [`RuntimeDir::new`].
    pub fn find(folder: Option<&Path>) -> RuntimeDir {
        let default = RuntimeDir::new(folder);
        if given(folder).is_some() {
            return default;
        }
        let others = [of_user(), PathBuf::from(OF_SYSTEM)].map(|folder| RuntimeDir { folder });
        let listens = |place: &&RuntimeDir| match UnixStream::connect(place.control()) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        };
        std::iter::once(&default).chain(&others).find(listens).unwrap_or(&default).clone()
    }

    /// The socket of the daemon's interface.
    pub fn control(&self) -> PathBuf {
        self.folder.join("control.sock")
    }

    /// The socket to which NFs attach.
    pub fn nf(&self) -> PathBuf {
        self.folder.join("nf.sock")
    }

    /// Opens the socket of the daemon's interface. With `viewers`, a group by its number, its members may
    /// connect.
    ///
    /// # Errors
    ///
    /// When the socket cannot be made, or given to the group.
    pub fn listen(&self, viewers: Option<u32>) -> std::io::Result<UnixListener> {
        let Some(group) = viewers else { return UnixListener::bind(self.control()) };
        // In a folder that nobody else may enter, until its rights are those of the group.
        let private = self.folder.join("private");
        let _ = std::fs::remove_dir_all(&private);
        std::fs::DirBuilder::new().mode(0o700).create(&private)?;
        let socket = private.join("control.sock");
        let listener = UnixListener::bind(&socket)?;
        std::os::unix::fs::chown(&socket, None, Some(group))?;
        std::fs::set_permissions(&socket, Permissions::from_mode(0o660))?;
        std::fs::rename(&socket, self.control())?;
        std::fs::remove_dir(&private)?;
        Ok(listener)
    }

    /// Makes the folder, checks that no other user can write to it, locks it, and removes the sockets of an
    /// earlier daemon.
    ///
    /// # Errors
    ///
    /// When another daemon uses the folder, or the system returns an error.
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
        // The lock is held, so the daemon that made these sockets has ended.
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
        // The sockets of a daemon that was killed are no obstacle.
        std::fs::write(place.control(), "").expect("written");
        place.lock().expect("nobody is there any more");
        assert!(!place.control().exists());
    }

    #[test]
    fn a_folder_that_others_write_is_no_place() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("ours");
        let refused = RuntimeDir::new(Some(folder.path())).lock();
        assert!(matches!(refused, Err(PlaceError::NotOurs { .. })));
    }
}
