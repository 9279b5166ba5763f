//! How processes of NFs are started and ended: what launches one, what it is then known by, and what keeps it to its
//! rights.
//!
//! A [`Launcher`] starts what runs in one execution mode, and hands over an [`NfProcess`]. [`ProcessLauncher`] starts
//! programs of this machine, confined or not; others live in crates of their own.
//!
//! Invariants: descriptors that are meant for one process reach no other ([`alone`]); an NF is over when the kernel
//! says so of all that it started ([`NfProcess::exit_status`]).

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
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a process may take until it is ready.
pub const READY_PATIENCE: Duration = Duration::from_secs(20);
/// What a confined NF may use where its chain file does not say.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// A process that runs an NF, or ran one.
pub trait NfProcess: Send {
    /// Readable once it has ended; `None` where the system gave none.
    fn pidfd(&self) -> Option<BorrowedFd<'_>>;

    /// Ends it at once, with all that it started.
    fn kill(&mut self);

    /// How it ended, in words; `None` while anything of it runs.
    fn exit_status(&mut self) -> Option<String>;

    /// Waits for its end, not much longer than so long.
    fn wait(&mut self, patience: Duration);

    /// The NF's first process, by its number, where something else was started that starts it; `None` before it is
    /// there.
    fn init_pid(&self) -> Option<u64> {
        None
    }

    /// Looks whether it used more memory than it may. To be called as soon as the process [`NfProcess::init_pid`] has
    /// ended, because that is soon not known any more.
    fn observe_memory(&mut self) {}

    /// Whether the kernel ended it because it used more memory than it may; known once it has ended.
    fn out_of_memory(&self) -> bool {
        false
    }

    /// Whether what was to start the NF could not, and said why.
    fn refused(&self) -> bool {
        false
    }
}

/// A process that was started, and what its supervisor needs of it.
pub struct Launched {
    /// The process.
    pub process: Box<dyn NfProcess>,
    /// Its number.
    pub pid: u64,
    /// To it.
    pub socket: Socket,
    /// The thread that reads what it writes.
    pub log: Option<JoinHandle<()>>,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step failed.
    #[error("NF `{nf}`: cannot {what}: {why}")]
    Step {
        /// The NF.
        nf: String,
        /// What was to be done.
        what: String,
        /// Why it was not.
        why: String,
    },
    /// It was started, and did not come so far that it can be spoken to.
    #[error("NF `{nf}`: {why}")]
    NotAttached {
        /// The NF.
        nf: String,
        /// Why.
        why: String,
    },
}

impl LaunchError {
    /// Of a step that failed.
    pub fn step(nf: &str, what: impl Into<String>, why: &dyn std::fmt::Display) -> LaunchError {
        LaunchError::Step { nf: nf.into(), what: what.into(), why: why.to_string() }
    }
}

/// Starts NFs that run in one execution mode.
pub trait Launcher: Send + Sync {
    /// Starts the process of an NF. Called on a thread on which nothing else waits.
    ///
    /// # Errors
    ///
    /// Why it was not started; then nothing of it is left.
    fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError>;
}

/// Who starts what runs in which execution mode.
#[derive(Clone)]
pub struct Launchers(Vec<(ExecutionMode, Arc<dyn Launcher>)>);

impl Default for Launchers {
    /// Only programs of this machine.
    fn default() -> Launchers {
        Launchers(vec![(ExecutionMode::Process, Arc::new(ProcessLauncher))])
    }
}

impl Launchers {
    /// With one more.
    #[must_use]
    pub fn with(mut self, mode: ExecutionMode, launcher: Arc<dyn Launcher>) -> Launchers {
        self.0.push((mode, launcher));
        self
    }

    /// Starts the process of an NF as it is to run.
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

/// Starts programs of this machine.
pub struct ProcessLauncher;

/// Held while a process is started: descriptors that are meant for one must not reach another.
static STARTING: Mutex<()> = Mutex::new(());

impl Launcher for ProcessLauncher {
    fn launch(&self, instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
        spawn(instance)
    }
}

/// Starts the process of an instance, with a socket to it for its standard input.
fn spawn(instance: &Arc<Instance>) -> Result<Launched, LaunchError> {
    let name = &instance.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| LaunchError::step(name, what, why);
    let Some(command) = &instance.spec.command else {
        return Err(failed("start", &"there is no program"));
    };
    let (ours, theirs) = Socket::pair().map_err(|error| failed("make a socket", &error))?;
    let _one = alone();
    let (output, errors, log) = outputs(instance)?;
    // By a descriptor of the file: the user that the NF runs as may not be let through the folders above it.
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
    let failed = |why: &dyn std::fmt::Display| failed(&format!("start {shown}"), why);
    let started = match &instance.spec.terms.rights {
        None => Started::Free(start.spawn().map_err(|error| failed(&error))?),
        Some(rights) => {
            let confined =
                confinement(rights, user(instance)).spawn(start).map_err(|error| failed(&error))?;
            Started::Confined(Box::new(confined))
        }
    };
    let pid = u64::from(match &started {
        Started::Free(child) => child.id(),
        Started::Confined(confined) => confined.pid(),
    });
    let mut told = instance.status();
    if let Started::Confined(confined) = &started {
        let applied = confined.applied();
        told.isolation = applied.measures().iter().map(ToString::to_string).collect();
        let missing =
            applied.missing().map(|measure| format!("{}: {}", measure.mechanism.name(), measure.text));
        told.not_enforced = missing.collect();
    } else {
        told.isolation = vec!["none: the chain file says `confine = false`".into()];
    }
    drop(told);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pidfd = peer::of_number(pid);
    if !instance.spec.terms.cores.is_empty() {
        let mut cores = rustix::thread::CpuSet::new();
        let known = instance.spec.terms.cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU);
        known.for_each(|core| cores.set(*core));
        if let Err(error) = rustix::thread::sched_setaffinity(raw, &cores) {
            instance.tell(format!("NF `{name}` runs on any core, not on those in `cores`: {error}"));
        }
    }
    let process: Box<dyn NfProcess> = match started {
        Started::Free(child) => Box::new(FreeProcess { child, pidfd }),
        Started::Confined(confined) => Box::new(ConfinedProcess { confined, pidfd }),
    };
    Ok(Launched { process, pid, socket: ours, log: Some(log) })
}

/// Where a process writes what it says and its mistakes, and the thread that reads both.
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

/// A process that was just started.
enum Started {
    Free(Child),
    Confined(Box<Confined>),
}

/// A process with all rights that this one has.
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

/// A confined process.
struct ConfinedProcess {
    confined: Box<Confined>,
    pidfd: Option<OwnedFd>,
}

impl NfProcess for ConfinedProcess {
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    fn kill(&mut self) {
        let _ = self.confined.kill_all();
    }

    fn exit_status(&mut self) -> Option<String> {
        match self.confined.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(match self.confined.finding() {
                Some(Finding::Other(finding)) => format!("{status}: {finding}"),
                Some(Finding::OutOfMemory) | None => status.to_string(),
            }),
            Err(error) => Some(error.to_string()),
        }
    }

    fn wait(&mut self, patience: Duration) {
        let _ = self.confined.wait(patience);
    }

    fn out_of_memory(&self) -> bool {
        self.confined.finding() == Some(&Finding::OutOfMemory)
    }
}

/// A process that came by itself: all that is known of it is its descriptor.
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

/// Takes in a process that came by itself.
pub(crate) fn receive(external: ExternalNf) -> Result<(Launched, Hello), String> {
    let ExternalNf { socket, pidfd, hello } = external;
    let pid = u64::from(peer::number(&pidfd).ok_or("the process that came has ended")?);
    Ok((Launched { process: Box::new(ExternalProcess(pidfd)), pid, socket, log: None }, hello))
}

/// Nothing that is open now stays open in a program that is started while this is held, also nothing of driver
/// libraries; and nobody else starts one.
pub fn alone() -> MutexGuard<'static, ()> {
    let one = lock(&STARTING);
    close_on_exec();
    one
}

/// Whether a variable of this process's environment is for confined programs, too: others may hold secrets.
pub fn is_for_all(name: &std::ffi::OsStr) -> bool {
    const NAMES: [&str; 8] =
        ["PATH", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "RUST_LOG"];
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name) || name.starts_with("LC_") || name.starts_with("MILLRACE_")
}

/// What keeps a process to its rights.
fn confinement(rights: &Rights, user: u32) -> Confinement {
    let sockets = if rights.network { Sockets::Network } else { Sockets::Inherited };
    let mut confinement = Confinement::new().user(user, user).sockets(sockets);
    for path in &rights.reads {
        confinement = confinement.reads(path);
    }
    for path in &rights.writes {
        confinement = confinement.writes(path);
    }
    if let Some(bytes) = rights.memory_bytes {
        confinement = confinement.memory_bytes(bytes);
    }
    confinement.cpu_weight(rights.cpu_share.unwrap_or(EVEN_SHARE))
}

/// The share of a contended core that everybody has.
pub const EVEN_SHARE: u32 = 100;
/// The first of the user ids that NFs run as: above those of people, services and user namespaces.
pub const FIRST_USER: u32 = 1_000_000_000;

/// A user id that no other NF of this machine has, as far as its host can tell: by the host's number and the
/// instance's.
pub fn user(instance: &Instance) -> u32 {
    FIRST_USER + std::process::id() % 1_000_000 * 1_000 + instance.number % 1_000
}

/// Has every descriptor of this process that is open now, but for the standard ones, closed in programs that it
/// starts.
#[expect(unsafe_code, reason = "there is no safe function for this system call")]
fn close_on_exec() {
    // SAFETY: marks descriptors, and closes none here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
