//! The directory of one control group, which is removed with its last process.
//!
//! The program that created it keeps it locked; the kernel releases the lock when that program ends. An
//! unlocked directory with our prefix thus has no owner any more, in whatever PID namespace its owner was.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, Signal};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The prefix of the names of groups.
const PREFIX: &str = "millrace-";
/// How long killed processes in an abandoned group may take to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// A control group that this program created, or that it removes because nobody uses it any more.
#[derive(Debug)]
pub(super) struct Dir {
    path: PathBuf,
    /// The directory, locked where the group is this program's own.
    lock: OwnedFd,
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Dir {
    /// A group that nobody uses any more, to be removed with this value.
    pub fn abandoned(path: &Path) -> io::Result<Dir> {
        Ok(Dir { path: path.into(), lock: open(path)? })
    }

    /// Creates a group in a directory.
    pub fn make(base: &Path) -> io::Result<Dir> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                // The name exists: a program with the same process id, in another PID namespace or earlier,
                // created it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Another program that sweeps abandoned groups may have removed it meanwhile.
            if let Ok(lock) = open(&path)
                && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
                && path.join("cgroup.procs").exists()
            {
                return Ok(Dir { path, lock });
            }
        }
    }

    /// Kills and removes groups whose owners have ended.
    pub fn sweep(base: &Path) {
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
                continue;
            }
            let path = entry.path();
            let Ok(lock) = open(&path) else { continue };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            Dir { path, lock }.remove();
        }
    }

    /// Removes it, and kills the processes in it.
    pub fn remove(&self) {
        let end = Instant::now() + PATIENCE;
        // Only the end of processes is worth a wait: a group without any has groups of its own below, which
        // stay.
        while fs::remove_dir(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
            && !self.is_empty()
            && Instant::now() < end
        {
            self.kill();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The descriptor of the directory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// Whether the kernel can kill all of a group at once.
    pub fn has_kill(&self) -> bool {
        self.path.join("cgroup.kill").exists()
    }

    /// Kills all processes in it; in version 1, those that are in it now.
    pub fn kill(&self) {
        if self.has_kill() {
            // Fails only for a removed group, which has no processes.
            let _ = self.write("cgroup.kill", "1");
            return;
        }
        // No process can be created meanwhile, if the group limits processes.
        let _ = self.write("pids.max", "0");
        for pid in self.processes() {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Whether no process runs in it. A removed group is empty.
    pub fn is_empty(&self) -> bool {
        match fs::read_to_string(self.path.join("cgroup.events")) {
            Ok(events) => !events.lines().any(|line| line == "populated 1"),
            Err(_) => self.processes().is_empty(),
        }
    }

    /// The processes in it, by their ids in this PID namespace.
    pub fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Opens the file by which processes enter it.
    pub fn entrance(&self) -> io::Result<OwnedFd> {
        Ok(fs::OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))?.into())
    }

    /// Writes one of its files.
    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(self.path.join(file))?.write_all(value.as_bytes())
    }

    /// Whether it has a file.
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // A group with processes is left to the next program that sweeps: its removal is not worth a wait.
        let _ = fs::remove_dir(&self.path);
    }
}
