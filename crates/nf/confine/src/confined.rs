//! An NF's process, from its start until nothing of it runs.

use crate::applied::Applied;
use crate::error::Error;
use crate::group::{Finding, Group};
use crate::spawner::{self, Started};
use crate::steps::Steps;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, pidfd_send_signal, waitpid};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a dropped NF may take to end.
const GRACE: Duration = Duration::from_secs(2);
/// The time between two checks of a killed group.
const PAUSE: Duration = Duration::from_micros(200);

/// A confined process and everything that it started. Drop kills it.
#[derive(Debug)]
pub struct Confined {
    /// Its standard input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    pid: Pid,
    pidfd: OwnedFd,
    applied: Applied,
    /// Set once it was waited for: its process id may belong to another process since then.
    status: Option<ExitStatus>,
    /// Set until the group is empty.
    group: Option<Arc<Group>>,
    /// The thread that sets limits on it.
    placing: Option<JoinHandle<()>>,
    finding: Option<Finding>,
}

impl Confined {
    /// Starts a program after these steps.
    pub(crate) fn start(
        command: Command,
        steps: Steps,
        notes: OwnedFd,
        group: Group,
        applied: Applied,
    ) -> Result<Confined, Error> {
        let (program, user) = (command.get_program().into(), steps.user.map(|(user, _)| user));
        match spawner::start(command, steps, notes)? {
            Ok(started) => Ok(Confined::new(started, Arc::new(group), applied)),
            Err(refused) => Err(refused.of(program, user)),
        }
    }

    fn new(started: Started, group: Arc<Group>, applied: Applied) -> Confined {
        let Started { pid, pidfd, stdin, stdout, stderr } = started;
        let placing = group.is_limited_later().then(|| {
            let group = Arc::clone(&group);
            std::thread::Builder::new().name("nf-limits".into()).spawn(move || group.place())
        });
        let placing = match placing {
            Some(Ok(thread)) => Some(thread),
            // The thread cannot be created. The caller was promised limits, so they are set here.
            Some(Err(_)) => {
                group.place();
                None
            }
            None => None,
        };
        let group = Some(group);
        Confined { stdin, stdout, stderr, pid, pidfd, applied, status: None, group, placing, finding: None }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// Becomes readable when its first process ends. Processes that it started may still run for a moment:
    /// check [`Confined::try_wait`].
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The mechanisms that were enforced on it.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Why it was killed, if that was for a limit; known once it has ended.
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// Kills it and everything that it started.
    ///
    /// # Errors
    ///
    /// When the system refuses the signal.
    pub fn kill_all(&self) -> Result<(), Error> {
        // The first process is killed before its group, so that no other process continues without it.
        let killed = if self.status.is_none() { self.signal(Signal::KILL) } else { Ok(()) };
        if let Some(group) = &self.group {
            group.kill();
        }
        killed
    }

    /// Its exit status, once nothing of it runs any more; `None` until then. Never waits. Kills processes
    /// that outlive the first one.
    ///
    /// # Errors
    ///
    /// When another part of the program has waited for the process.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        let Some(status) = self.reap()? else { return Ok(None) };
        if let Some(group) = &self.group {
            if !group.is_empty() {
                group.kill();
                if !group.is_empty() {
                    return Ok(None);
                }
            }
            // The thread still writes into the directories.
            if self.placing.as_ref().is_some_and(|thread| !thread.is_finished()) {
                return Ok(None);
            }
            self.finding = group.why_ended();
            self.placing = None;
            self.group = None;
        }
        Ok(Some(status))
    }

    /// Like [`Confined::try_wait`], but waits up to `timeout`.
    ///
    /// # Errors
    ///
    /// When another part of the program has waited for the process.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, Error> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if self.status.is_some() {
                std::thread::sleep(PAUSE.min(left));
            } else {
                // After an interruption the next turn continues the wait.
                let left = Timespec::try_from(left).ok();
                let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], left.as_ref());
            }
        }
    }

    /// Waits for its first process without blocking.
    fn reap(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            let waited = waitpid(Some(self.pid), WaitOptions::NOHANG);
            let waited = waited.map_err(|error| self.failed("wait for", error))?;
            self.status = waited.map(|(_, status)| ExitStatus::from_raw(status.as_raw()));
        }
        Ok(self.status)
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(&self.pidfd, signal) {
            // It has ended.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(self.failed("signal", error)),
        }
    }

    fn failed(&self, action: &'static str, error: rustix::io::Errno) -> Error {
        Error::Process { action, pid: self.pid(), source: error.into() }
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if self.status.is_some() && self.group.is_none() {
            return;
        }
        let _ = self.kill_all();
        // A process that does not end in this time hangs in the kernel; a later start removes its group.
        let _ = self.wait(GRACE);
    }
}
