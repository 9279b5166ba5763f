//! The start and end of NF processes: launchers, the processes that they return, and confinement.
//!
//! A [`Launcher`] starts NFs of one execution mode, and returns an [`NfProcess`]. [`ProcessLauncher`] starts
//! programs of this machine, confined or not; other launchers are in crates of their own.
//!
//! Invariants: a descriptor for one process reaches no other process ([`alone`]). An NF has ended when the
//! kernel reports the end of everything that it started ([`NfProcess::exit_status`]).

use crate::instance::{ExternalNf, Instance};
use crate::log;
use crate::member::lock;
use crate::peer;
use chain::{ExecutionMode, Rights};
use confine::{Confined, Confinement, Finding, Sockets, program};
use nf::message::Hello;
use nf::socket::Socket;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, pidfd_send_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a process may take to become ready.
pub const READY_PATIENCE: Duration = Duration::from_secs(20);
/// The memory limit of a confined NF whose chain file sets none.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// A process that runs an NF, or ran one.
pub trait NfProcess: Send {
    /// A pidfd, readable once the process has ended; `None` if the system gave none.
    fn pidfd(&self) -> Option<BorrowedFd<'_>>;

    /// Kills the process at once, with everything that it started.
    fn kill(&mut self);

    /// How the process ended, in words; `None` while anything of it runs.
    fn exit_status(&mut self) -> Option<String>;

    /// Waits for its end, not much longer than `patience`.
    fn wait(&mut self, patience: Duration);

    /// The process id of the NF's first process, where the started process is another one that starts the NF;
    /// `None` before the NF's process exists.
    fn init_pid(&self) -> Option<u64> {
        None
    }

    /// Reads whether it exceeded its memory limit. To be called as soon as the process
    /// [`NfProcess::init_pid`] has ended, because the kernel soon discards this information.
    fn observe_memory(&mut self) {}

    /// Whether the kernel killed it because it exceeded its memory limit; known once it has ended.
    fn out_of_memory(&self) -> bool {
        false
    }

    /// Whether the program that should start the NF failed and reported why.
    fn refused(&self) -> bool {
        false
    }
}

/// A started process, and what its supervisor needs of it.
pub struct Launched {
    /// The process.
    pub process: Box<dyn NfProcess>,
    /// The process id.
    pub pid: u64,
    /// The socket to it.
    pub socket: Socket,
    /// The thread that reads its output.
    pub log: Option<JoinHandle<()>>,
}

/// Why no process was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step failed.
    #[error("NF `{nf}`: cannot {what}: {why}")]
    Step {
        /// The NF.
        nf: String,
        /// The step that failed.
        what: String,
        /// The error of the step.
        why: String,
    },
    /// The process was started and failed before it had a socket to the host.
    #[error("NF `{nf}`: {why}")]
    NotAttached {
        /// The NF.
        nf: String,
        /// The reason.
        why: String,
    },
}

impl LaunchError {
    /// The error of a failed step.
    pub fn step(nf: &str, what: impl Into<String>, why: &dyn std::fmt::Display) -> LaunchError {
        LaunchError::Step { nf: nf.into(), what: what.into(), why: why.to_string() }
    }
}

/// Starts NFs that run in one execution mode.
pub trait Launcher: Send + Sync {
    /// Starts the process of an NF. Called on a thread that may block.
    ///
    /// # Errors
    ///
    /// When the process was not started; then no part of it is left.
    fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError>;
}

/// The launcher of each execution mode.
#[derive(Clone)]
pub struct Launchers(Vec<(ExecutionMode, Arc<dyn Launcher>)>);

impl Default for Launchers {
    /// Only the launcher of programs of this machine.
    fn default() -> Launchers {
        Launchers(vec![(ExecutionMode::Process, Arc::new(ProcessLauncher))])
    }
}

impl Launchers {
    /// Adds a launcher.
    #[must_use]
    pub fn with(mut self, mode: ExecutionMode, launcher: Arc<dyn Launcher>) -> Launchers {
        self.0.push((mode, launcher));
        self
    }

    /// Starts the process of an NF in its execution mode.
    pub(crate) fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
        let mode = match instance.spec.terms.container {
            Some(_) => ExecutionMode::Container,
            None => ExecutionMode::Process,
        };
        match self.0.iter().find(|(known, _)| *known == mode) {
            Some((_, launcher)) => launcher.launch(instance),
            None => {
                let why = format!("nothing here starts what runs as `{}`", mode.name());
                Err(LaunchError::step(&instance.spec.name, "start", &why))
            }
        }
    }
}

/// The launcher of programs of this machine.
pub struct ProcessLauncher;

/// Held while a process is started: a descriptor for one process must not reach another.
static STARTING: Mutex<()> = Mutex::new(());

impl Launcher for ProcessLauncher {
    fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
        spawn(instance)
    }
}

/// Starts the process of an instance, with a socket to it as its standard input.
fn spawn(instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
    let name = &instance.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| LaunchError::step(name, what, why);
    let Some(command) = &instance.spec.command else {
        return Err(failed("start", &"there is no program"));
    };
    let (ours, theirs) = Socket::pair().map_err(|error| failed("make a socket", &error))?;
    let _one = alone();
    let (output, errors, log) = outputs(instance)?;
    // The program is started by a descriptor of its file: the NF's user may not have access to the
    // directories above it.
    let shown = command.program.display();
    let path = program::find(&command.program).ok_or_else(|| failed("start", &"there is no such program"))?;
    let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty());
    let file = file.map_err(|error| failed(&format!("start {shown}"), &error))?;
    let mut start = std::process::Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    start.arg0(&command.program).args(&command.arguments);
    start.stdin(Stdio::from(theirs.into_fd())).stdout(output).stderr(errors);
    if !command.folder.as_os_str().is_empty() {
        start.current_dir(&command.folder);
    }
    if instance.spec.terms.rights.is_some() {
        start.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_for_all(name)));
    }
    start.env(nf::ENVIRONMENT, "fd:0");
    if instance.is_check {
        start.env(nf::CHECK_ENVIRONMENT, "1");
    }
    let failed = |why: &dyn std::fmt::Display| failed(&format!("start {shown}"), why);
    let (process, pid): (Box<dyn NfProcess>, u64) = match &instance.spec.terms.rights {
        None => {
            let child = start.spawn().map_err(|error| failed(&error))?;
            let pid = child.id().into();
            instance.status().isolation = vec!["none: the chain file says `confine = false`".into()];
            (Box::new(FreeProcess { child, pidfd: peer::of_number(pid) }), pid)
        }
        Some(rights) => {
            let confined =
                confinement(rights, user(instance)).spawn(start).map_err(|error| failed(&error))?;
            let (applied, mut status) = (confined.applied(), instance.status());
            status.isolation = applied.measures().iter().map(ToString::to_string).collect();
            let missing =
                applied.missing().map(|measure| format!("{}: {}", measure.mechanism.name(), measure.text));
            status.not_enforced = missing.collect();
            drop(status);
            let pid = confined.pid().into();
            (Box::new(confined), pid)
        }
    };
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if !instance.spec.terms.cores.is_empty() {
        let mut cores = rustix::thread::CpuSet::new();
        let known = instance.spec.terms.cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU);
        known.for_each(|core| cores.set(*core));
        if let Err(error) = rustix::thread::sched_setaffinity(raw, &cores) {
            instance.tell(format!("NF `{name}` runs on any core, not on those in `cores`: {error}"));
        }
    }
    Ok(Launched { process, pid, socket: ours, log: Some(log) })
}

/// The descriptors for the standard output and standard error of a process, and the thread that reads both.
///
/// # Errors
///
/// When the system has no pipe or no thread.
pub fn outputs(instance: &Instance) -> Result<(OwnedFd, OwnedFd, JoinHandle<()>), LaunchError> {
    let name = &instance.spec.name;
    let failed = |error: std::io::Error| LaunchError::step(name, "share output", &error);
    let (output, log) = log::pipe(name, instance.spec.output, Arc::clone(&instance.log)).map_err(failed)?;
    let errors = output.try_clone().map_err(failed)?;
    Ok((output, errors, log))
}

/// A process with all rights of this process.
struct FreeProcess {
    child: Child,
    pidfd: Option<OwnedFd>,
}

impl NfProcess for FreeProcess {
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
    }

    fn exit_status(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn wait(&mut self, _patience: Duration) {
        let _ = self.child.wait();
    }
}

impl NfProcess for Confined {
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        Some(Confined::pidfd(self))
    }

    fn kill(&mut self) {
        let _ = self.kill_all();
    }

    fn exit_status(&mut self) -> Option<String> {
        match self.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(match self.finding() {
                Some(Finding::Other(finding)) => format!("{status}: {finding}"),
                Some(Finding::OutOfMemory) | None => status.to_string(),
            }),
            Err(error) => Some(error.to_string()),
        }
    }

    fn wait(&mut self, patience: Duration) {
        let _ = Confined::wait(self, patience);
    }

    fn out_of_memory(&self) -> bool {
        self.finding() == Some(&Finding::OutOfMemory)
    }
}

/// The process of an external NF, of which only the pidfd is known.
struct ExternalProcess(OwnedFd);

impl NfProcess for ExternalProcess {
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    fn kill(&mut self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }

    fn exit_status(&mut self) -> Option<String> {
        peer::has_ended(&self.0).then(|| "it went away".into())
    }

    fn wait(&mut self, _patience: Duration) {}
}

/// Takes over the process of an external NF.
pub(crate) fn receive(external: ExternalNf) -> Result<(Launched, Hello), String> {
    let ExternalNf { socket, pidfd, hello } = external;
    let pid = u64::from(peer::number(&pidfd).ok_or("the process that came has ended")?);
    Ok((Launched { process: Box::new(ExternalProcess(pidfd)), pid, socket, log: None }, hello))
}

/// Locks the start of processes. While the lock is held, no descriptor that is open now, including those of
/// driver libraries, stays open in a started program, and no other thread starts one.
pub fn alone() -> MutexGuard<'static, ()> {
    let one = lock(&STARTING);
    close_on_exec();
    one
}

/// Whether confined programs receive this environment variable, too. Other variables may contain secrets.
pub fn is_for_all(name: &std::ffi::OsStr) -> bool {
    const NAMES: [&str; 8] =
        ["PATH", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "RUST_LOG"];
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name) || name.starts_with("LC_") || name.starts_with("MILLRACE_")
}

/// The confinement that enforces these rights.
fn confinement(rights: &Rights, user: u32) -> Confinement {
    Confinement {
        user: Some((user, user)),
        sockets: if rights.network { Sockets::Network } else { Sockets::Inherited },
        reads: rights.reads.clone(),
        writes: rights.writes.clone(),
        memory_bytes: Some(rights.memory_bytes.unwrap_or(MEMORY_BYTES)),
        cpu_weight: rights.cpu_share.unwrap_or(EVEN_SHARE),
        ..Confinement::default()
    }
}

/// The CPU weight of an NF whose chain file sets none.
pub const EVEN_SHARE: u32 = 100;
/// The first of the user ids that NFs run as: above those of people, services and user namespaces.
pub const FIRST_USER: u32 = 1_000_000_000;

/// A user id that no other NF of this machine has, as far as the host can know: derived from the host's
/// process id and the instance's number.
pub fn user(instance: &Instance) -> u32 {
    FIRST_USER + std::process::id() % 1_000_000 * 1_000 + instance.number % 1_000
}

/// Waits for a child process to end, and kills it after `patience`: then there is no status.
///
/// # Errors
///
/// When the kernel does not report whether the process has ended.
pub fn end_within(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            None => {
                // It may have just ended; either way it must be reaped.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
        }
    }
}

/// Marks every open descriptor of this process except the standard ones as close-on-exec.
#[expect(unsafe_code, reason = "there is no safe function for this system call")]
fn close_on_exec() {
    // SAFETY: marks descriptors, and closes none here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
