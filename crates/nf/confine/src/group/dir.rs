//! The folder of one control group, which is removed with its last process.
//!
//! Who made it keeps it locked; the kernel takes the lock away when that program dies. An unlocked folder by our
//! name is thus one that nobody cares for any more, in whatever PID namespace its maker was.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::{Pid, Signal};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Names of groups begin with this.
const PREFIX: &str = "millrace-";
/// How long it may take until what was killed in a forgotten group has ended.
const PATIENCE: Duration = Duration::from_millis(200);

/// A control group of our own.
#[derive(Debug)]
pub(super) struct Dir {
    path: PathBuf,
    /// The folder, locked.
    lock: OwnedFd,
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

impl Dir {
    /// Makes a group in a folder.
    pub fn make(base: &Path) -> io::Result<Dir> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                // Made by a program that has our number in a PID namespace of its own, or had it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Somebody who looked for forgotten groups may have taken it in between.
            if let Ok(lock) = open(&path)
                && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
                && path.join("cgroup.procs").exists()
            {
                return Ok(Dir { path, lock });
            }
        }
    }

    /// Kills and removes groups whose makers are no more.
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
            let forgotten = Dir { path, lock };
            let end = Instant::now() + PATIENCE;
            while !forgotten.is_empty() && Instant::now() < end {
                forgotten.kill();
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The folder.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// Whether the kernel kills all of a group at once.
    pub fn has_kill(&self) -> bool {
        self.path.join("cgroup.kill").exists()
    }

    /// Kills everything in it; of version 1, what is in it now.
    pub fn kill(&self) {
        if self.has_kill() {
            // Only a group that is gone refuses this, and in that is nobody.
            let _ = self.write("cgroup.kill", "1");
            return;
        }
        // Nothing new is made meanwhile, where the group limits that.
        let _ = self.write("pids.max", "0");
        for pid in self.processes() {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Whether no process runs in it. A group that is gone is empty.
    pub fn is_empty(&self) -> bool {
        match fs::read_to_string(self.path.join("cgroup.events")) {
            Ok(events) => !events.lines().any(|line| line == "populated 1"),
            Err(_) => self.processes().is_empty(),
        }
    }

    /// Processes in it, by their numbers here.
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

    /// A number in a file of lines `name number`.
    pub fn number(&self, file: &str, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // One that is not empty is left to the next program that sweeps: to remove it is not worth a wait.
        let _ = fs::remove_dir(&self.path);
    }
}
