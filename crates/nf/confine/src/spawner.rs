//! The thread that starts processes.
//!
//! The kernel ties "end with the host" to the thread that created a process, not to the program: an NF that a
//! worker started would end with the worker. This thread lives as long as the program. It uses the allowed
//! cores of the requesting thread; namespaces and priority are those of this thread, and so of the thread
//! that started the first process.
#![expect(unsafe_code, reason = "runs steps in the forked process")]

use crate::error::Error;
use crate::steps::{NOTE_BYTES, StepReport, Steps};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

/// A started process.
#[derive(Debug)]
pub(crate) struct Started {
    pub pid: Pid,
    pub pidfd: OwnedFd,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

/// Why a process was not started.
#[derive(Debug)]
pub(crate) struct Refused {
    pub error: io::Error,
    /// The report of the new process.
    pub report: Option<StepReport>,
}

impl Refused {
    /// The error for a program.
    pub fn of(self, program: PathBuf, user: Option<u32>) -> Error {
        match self.report {
            Some(StepReport::Failed(step, errno)) => {
                Error::Confine { program, step, source: io::Error::from_raw_os_error(errno) }
            }
            _ => Error::Exec { program, user, source: self.error },
        }
    }
}

struct Job {
    command: Command,
    steps: Steps,
    notes: OwnedFd,
    cores: Option<CpuSet>,
    answer: SyncSender<Result<Started, Refused>>,
}

/// A pipe for the reports of a new process: its reader, which does not block, and its writer.
pub(crate) fn notes() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// Starts a process that takes the steps before it executes.
pub(crate) fn start(
    command: Command,
    steps: Steps,
    notes: OwnedFd,
) -> Result<Result<Started, Refused>, Error> {
    static SPAWNER: Mutex<Option<Sender<Job>>> = Mutex::new(None);
    let (answer, answered) = sync_channel(1);
    let job = Job { command, steps, notes, cores: sched_getaffinity(None).ok(), answer };
    let ended = || Error::Spawner(io::Error::other("the thread that does this has ended"));
    {
        let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if spawner.is_none() {
            let (sender, jobs) = channel::<Job>();
            let thread = std::thread::Builder::new().name("nf-spawner".into());
            thread.spawn(move || jobs.into_iter().for_each(work)).map_err(Error::Spawner)?;
            *spawner = Some(sender);
        }
        spawner.as_ref().ok_or_else(ended)?.send(job).map_err(|_| ended())?;
    }
    answered.recv().map_err(|_| ended())
}

fn work(job: Job) {
    if let Some(cores) = job.cores {
        // The cores of an existing thread can be set.
        let _ = sched_setaffinity(None, &cores);
    }
    // The receiver is missing only if its thread was ended.
    let _ = job.answer.send(fork(job.command, job.steps, &job.notes));
}

fn fork(mut command: Command, steps: Steps, notes: &OwnedFd) -> Result<Started, Refused> {
    let is_placed = steps.is_placed();
    // SAFETY: `Steps::take` does only what is allowed between fork and exec, as its module states.
    unsafe { command.pre_exec(move || steps.take()) };
    let spawned = command.spawn();
    let mut pid = None;
    let mut failed = None;
    let mut bytes = [0; NOTE_BYTES];
    // All reports are written: the standard library waits until both processes have executed or ended.
    while matches!(rustix::io::read(notes, &mut bytes), Ok(NOTE_BYTES)) {
        match StepReport::parse(bytes) {
            Some(StepReport::Pid(number)) => pid = Pid::from_raw(number as i32),
            note => failed = failed.or(note),
        }
    }
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            // The library has waited for the process that it started; the other process has ended, too.
            if let Some(pid) = pid.filter(|_| is_placed) {
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
            return Err(Refused { error, report: failed });
        }
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if is_placed {
        // This process ended after it created the other one.
        let _ = child.wait();
    }
    let opened = pid.ok_or(rustix::io::Errno::SRCH);
    // No other part of the program waits for it, so the process id is still its own.
    match opened.and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))) {
        Ok((pid, pidfd)) => Ok(Started { pid, pidfd, stdin, stdout, stderr }),
        Err(error) => {
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
            Err(Refused { error: error.into(), report: failed })
        }
    }
}
