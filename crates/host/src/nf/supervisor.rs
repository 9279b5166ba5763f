//! The supervisor: one thread that starts the processes of NFs, shakes hands, watches and ends them.
//!
//! Nothing of this happens on a packet thread. A process is over when the kernel says so of all that it started;
//! only then is the link told to collect what it held.

use super::memory::RING_CLAIMS;
use super::seat::{Incarnation, NfOutput, Rights, Rings, Seat, State, Visitor};
use super::{find_program, log};
use confine::{Confined, Confinement, Sockets};
use nf::message::{FromNf, Hello, MOST_COUNTERS, MOST_REASONS, PROTOCOL, ToNf, Welcome};
use nf::socket::Socket;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use shm::descriptor::LAYOUT_VERSION;
use shm::lend::Lender;
use shm::page::Page;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a process may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The shortest and the longest wait before a process is started anew; each failure doubles it.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// A process that lived so long did not fail at its start.
const LONG_LIFE: Duration = Duration::from_millis(100);
/// How long a process that has hung up may take to end.
const DEAF: Duration = Duration::from_millis(200);
/// How often evictions and burials are looked for.
const TURN: Duration = Duration::from_millis(1);
/// The same when nothing is under way.
const IDLE_TURN: Duration = Duration::from_millis(20);

/// Held while a process is started: descriptors that are meant for one must not reach another.
static STARTING: Mutex<()> = Mutex::new(());

/// The thread, and the seats that it looks after.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    seats: Mutex<Vec<Arc<Seat>>>,
    /// Written to when something is to be done at once.
    bell: OwnedFd,
    end: AtomicBool,
}

/// Wakes the supervisor: for those who changed what is wanted of a seat.
#[derive(Clone, Debug)]
pub struct Bell(Arc<Shared>);

impl Bell {
    /// Rings.
    pub fn ring(&self) {
        let _ = rustix::io::write(&self.0.bell, &1u64.to_ne_bytes());
    }
}

impl Supervisor {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread or a descriptor.
    pub fn start() -> std::io::Result<Supervisor> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { seats: Mutex::default(), bell, end: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("supervisor".into()).spawn(move || run(&own))?;
        Ok(Supervisor { shared, thread: Some(thread) })
    }

    /// Looks after a seat from now on.
    pub fn add(&self, seat: Arc<Seat>) {
        self.shared.seats.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(seat);
        self.bell().ring();
    }

    /// Its bell.
    pub fn bell(&self) -> Bell {
        Bell(Arc::clone(&self.shared))
    }

    /// The seats.
    pub fn seats(&self) -> Vec<Arc<Seat>> {
        self.shared.seats.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        self.bell().ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the supervisor knows of a seat.
struct Watched {
    seat: Arc<Seat>,
    process: Option<Process>,
    back_off: Duration,
    /// When to start anew.
    start_at: Option<Instant>,
    /// Whether a process has been started before.
    started: bool,
}

struct Process {
    body: Body,
    /// Its number.
    pid: u64,
    /// Readable once the process has ended.
    pidfd: Option<OwnedFd>,
    socket: Socket,
    since: Instant,
    stage: Stage,
    /// The socket has nothing more to say since then.
    deaf_since: Option<Instant>,
}

enum Body {
    /// Started here, with all rights that this process has.
    Child(Child),
    /// Started here, and confined.
    Confined(Box<Confined>),
    /// It came by itself: all that is known of it is its descriptor.
    Visitor,
}

impl Process {
    fn new(body: Body, pid: u64, pidfd: Option<OwnedFd>, socket: Socket) -> Process {
        Process { body, pid, pidfd, socket, since: Instant::now(), stage: Stage::Spawned, deaf_since: None }
    }

    /// Ends it at once.
    fn kill(&mut self) {
        let _ = match (&mut self.body, &self.pidfd) {
            (Body::Child(child), _) => child.kill().ok(),
            (Body::Confined(confined), _) => confined.kill_all().ok(),
            (Body::Visitor, Some(pidfd)) => {
                rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL).ok()
            }
            (Body::Visitor, None) => None,
        };
    }

    /// How it ended, in words; `None` while it runs.
    fn ended(&mut self) -> Option<String> {
        match &mut self.body {
            Body::Child(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(status.to_string()),
                Err(error) => Some(error.to_string()),
            },
            Body::Confined(confined) => match confined.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(match confined.finding() {
                    Some(finding) => format!("{status}: {finding}"),
                    None => status.to_string(),
                }),
                Err(error) => Some(error.to_string()),
            },
            Body::Visitor => {
                let pidfd = self.pidfd.as_ref()?;
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                let ended = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now));
                ended.is_ok_and(|ended| ended > 0).then(|| "it went away".into())
            }
        }
    }
}

enum Stage {
    /// Nothing was said yet.
    Spawned,
    /// It was welcomed with these.
    Welcomed(Box<Incarnation>),
    /// It gets packets.
    Up,
    /// It was asked to end, then.
    Ending(Instant),
    /// It was killed for what it did.
    Killed,
    /// It ended; the link has not yet collected what it held.
    Gone,
}

fn run(shared: &Shared) {
    let mut watched: Vec<Watched> = vec![];
    while !shared.end.load(Ordering::Acquire) {
        let seats = shared.seats.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        for seat in seats.into_iter().skip(watched.len()) {
            watched.push(Watched {
                seat,
                process: None,
                back_off: BACK_OFF.0,
                start_at: None,
                started: false,
            });
        }
        watched.iter_mut().for_each(Watched::step);
        await_something(shared, &watched);
    }
    for one in &mut watched {
        if let Some(mut process) = one.process.take() {
            process.kill();
            match &mut process.body {
                Body::Child(child) => drop(child.wait()),
                Body::Confined(confined) => drop(confined.wait(GRACE)),
                Body::Visitor => {}
            }
        }
    }
}

/// Waits until a process says something or ends, the bell rings, or it is time to look.
fn await_something(shared: &Shared, watched: &[Watched]) {
    let mut polls = vec![PollFd::new(&shared.bell, PollFlags::IN)];
    let mut busy = false;
    for one in watched {
        busy |= one.start_at.is_some();
        let Some(process) = &one.process else { continue };
        busy |= !matches!(process.stage, Stage::Up);
        if process.deaf_since.is_none() {
            polls.push(PollFd::new(&process.socket, PollFlags::IN));
        }
        if let Some(pidfd) = process.pidfd.as_ref().filter(|_| !matches!(process.stage, Stage::Gone)) {
            polls.push(PollFd::new(pidfd, PollFlags::IN));
        }
    }
    let timeout = Timespec::try_from(if busy { TURN } else { IDLE_TURN }).ok();
    let _ = poll(&mut polls, timeout.as_ref());
    let mut rings = [0; 8];
    let _ = rustix::io::read(&shared.bell, &mut rings);
}

impl Watched {
    /// Does what is to be done now.
    fn step(&mut self) {
        self.hear();
        self.look_after();
        if self.process.is_none() {
            self.start_when_wanted();
        }
    }

    /// Takes what the process says.
    fn hear(&mut self) {
        while let Some(process) = self.process.as_mut().filter(|process| process.deaf_since.is_none()) {
            match process.socket.receive::<FromNf>(Duration::ZERO) {
                Ok(None) => return,
                Ok(Some((message, _))) => self.answer(message),
                Err(nf::NfError::HungUp) => process.deaf_since = Some(Instant::now()),
                Err(error) => {
                    process.deaf_since = Some(Instant::now());
                    self.seat.tell(format!("NF `{}`: {error}", self.seat.spec.name));
                }
            }
        }
    }

    fn answer(&mut self, message: FromNf) {
        let Some(process) = &mut self.process else { return };
        let name = &self.seat.spec.name;
        match message {
            FromNf::Hello(hello) if matches!(process.stage, Stage::Spawned) => {
                match welcome(&self.seat, &process.socket, hello) {
                    Ok(incarnation) => process.stage = Stage::Welcomed(Box::new(incarnation)),
                    Err(why) => {
                        let _ = process.socket.send(&ToNf::Refused { why: why.clone() }, &[]);
                        self.fail(format!("NF `{}` was refused: {why}", self.seat.spec.name));
                    }
                }
            }
            FromNf::Ready => {
                if let Stage::Welcomed(_) = process.stage
                    && let Stage::Welcomed(incarnation) = std::mem::replace(&mut process.stage, Stage::Up)
                {
                    let mut told = self.seat.told();
                    (told.hello, told.page) =
                        (Arc::clone(&incarnation.hello), Some(Arc::clone(&incarnation.page)));
                    told.failure = None;
                    drop(told);
                    self.seat.hand_over(*incarnation);
                    self.seat.set_state(State::Up);
                }
            }
            FromNf::Failed { why } => self.fail(format!("NF `{name}` does not run: {why}")),
            FromNf::Finding { text } => self.seat.tell(format!("NF `{name}`: {text}")),
            FromNf::Over => self.seat.set_over(),
            FromNf::Hello(_) => {}
        }
    }

    fn fail(&mut self, why: String) {
        self.seat.tell(why.clone());
        self.seat.told().failure = Some(why);
    }

    /// Watches over a process through its life.
    fn look_after(&mut self) {
        let Some(process) = &mut self.process else { return };
        if let Some(why) = self.seat.take_eviction()
            && !matches!(process.stage, Stage::Gone | Stage::Killed)
        {
            self.seat.tell(format!("NF `{}` {why} and was ended", self.seat.spec.name));
            process.kill();
            process.stage = Stage::Killed;
        }
        match &process.stage {
            Stage::Gone => {
                if self.seat.is_buried() {
                    self.process = None;
                    self.seat.set_state(if self.seat.is_wanted() { State::Down } else { State::Stopped });
                }
                return;
            }
            Stage::Spawned | Stage::Welcomed(_) if process.since.elapsed() > PATIENCE => {
                process.kill();
                let name = &self.seat.spec.name;
                let why = format!("NF `{name}` was not ready after {} s and was ended", PATIENCE.as_secs());
                self.fail(why);
            }
            Stage::Ending(since) if since.elapsed() > GRACE => {
                process.kill();
                process.stage = Stage::Killed;
            }
            // Whoever does not listen any more has failed.
            Stage::Up if process.deaf_since.is_some_and(|since| since.elapsed() > DEAF) => {
                process.kill();
                self.seat.tell(format!("NF `{}` hung up and was ended", self.seat.spec.name));
                process.stage = Stage::Killed;
            }
            Stage::Spawned | Stage::Welcomed(_) | Stage::Up if !self.seat.is_wanted() => {
                let _ = process.socket.send(&ToNf::Stop, &[]);
                process.stage = Stage::Ending(Instant::now());
                self.seat.set_state(State::Ending);
            }
            _ => {}
        }
        let Some(process) = &mut self.process else { return };
        let Some(status) = process.ended() else { return };
        // It may have said why on its last breath.
        self.hear();
        self.bury(&status);
    }

    /// The process has ended.
    fn bury(&mut self, status: &str) {
        let Some(process) = &mut self.process else { return };
        let name = &self.seat.spec.name;
        self.seat.log(format!("-- ended: {status}"));
        self.seat.set_pid(0);
        // Its counters stay readable until the next process brings its own.
        let was_up =
            matches!(process.stage, Stage::Up | Stage::Ending(_) | Stage::Killed) && !self.seat.is_buried();
        if process.since.elapsed() >= LONG_LIFE && was_up {
            self.back_off = BACK_OFF.0;
        }
        if matches!(process.stage, Stage::Spawned | Stage::Welcomed(_)) {
            let mut told = self.seat.told();
            told.failure.get_or_insert_with(|| {
                format!("NF `{name}` ended before it was ready ({status}); what it wrote says why")
            });
        }
        process.stage = Stage::Gone;
        if was_up {
            self.seat.report_gone();
        }
        let wanted = self.seat.is_wanted();
        self.seat.set_state(if wanted { State::Down } else { State::Stopped });
        if wanted {
            self.start_at = Some(Instant::now() + self.back_off);
            self.back_off = (2 * self.back_off).min(BACK_OFF.1);
        }
    }

    fn start_when_wanted(&mut self) {
        if !self.seat.is_wanted() {
            self.start_at = None;
            if self.seat.state() != State::Stopped {
                self.seat.set_state(State::Stopped);
            }
            return;
        }
        if self.start_at.is_some_and(|at| Instant::now() < at) || !self.seat.is_buried() {
            return;
        }
        if self.seat.spec.command.is_none() && !self.seat.has_visitor() {
            self.seat.set_state(State::Down);
            return;
        }
        self.start_at = None;
        self.seat.told().failure = None;
        let started = match self.seat.take_visitor() {
            Some(visitor) => receive(visitor),
            None => spawn(&self.seat).map(|process| (process, None)),
        };
        match started {
            Ok((process, hello)) => {
                self.seat.set_pid(process.pid);
                self.seat.set_state(State::Starting);
                self.seat.log(format!("-- started: process {}", process.pid));
                self.process = Some(process);
                hello.into_iter().for_each(|hello| self.answer(FromNf::Hello(hello)));
                if std::mem::replace(&mut self.started, true) {
                    self.seat.count_restart();
                }
            }
            Err(why) => {
                self.fail(why);
                self.seat.set_state(State::Down);
                self.start_at = Some(Instant::now() + self.back_off);
                self.back_off = (2 * self.back_off).min(BACK_OFF.1);
            }
        }
    }
}

/// Starts the process of a seat, with a socket to it for its standard input.
fn spawn(seat: &Arc<Seat>) -> Result<Process, String> {
    let name = &seat.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| format!("NF `{name}`: cannot {what}: {why}");
    let Some(command) = &seat.spec.command else {
        return Err(failed("start", &"there is no program"));
    };
    let (ours, theirs) = Socket::pair().map_err(|error| failed("make a socket", &error))?;
    // Nothing else stays open in the new program, also nothing of driver libraries.
    let _one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    close_on_exec();
    let (output, errors) = output(seat).map_err(|error| failed("share output", &error))?;
    // By a descriptor of the file: the user that the NF runs as may not be let through the folders above it.
    let shown = command.program.display();
    let path = find_program(&command.program).ok_or_else(|| failed("start", &"there is no such program"))?;
    let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty());
    let file = file.map_err(|error| failed(&format!("start {shown}"), &error))?;
    let mut start = std::process::Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    start.arg0(&command.program).args(&command.arguments);
    start.env(nf::ENVIRONMENT, "fd:0").stdin(Stdio::from(theirs.into_fd())).stdout(output).stderr(errors);
    if !command.folder.as_os_str().is_empty() {
        start.current_dir(&command.folder);
    }
    let failed = |why: &dyn std::fmt::Display| failed(&format!("start {shown}"), why);
    let (body, pid) = match &seat.spec.rights {
        None => {
            let child = start.spawn().map_err(|error| failed(&error))?;
            let pid = u64::from(child.id());
            (Body::Child(child), pid)
        }
        Some(rights) => {
            let confined = confinement(rights, user(seat)).spawn(start).map_err(|error| failed(&error))?;
            let pid = u64::from(confined.pid());
            (Body::Confined(Box::new(confined)), pid)
        }
    };
    let mut told = seat.told();
    if let Body::Confined(confined) = &body {
        let applied = confined.applied();
        told.isolation = applied.measures().iter().map(ToString::to_string).collect();
        told.not_enforced = applied.missing().map(ToString::to_string).collect();
    } else {
        told.isolation = vec!["none: the chain file says `confine = false`".into()];
    }
    drop(told);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pidfd = raw.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    if !seat.spec.cores.is_empty() {
        let mut cores = rustix::thread::CpuSet::new();
        let known = seat.spec.cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU);
        known.for_each(|core| cores.set(*core));
        if let Err(error) = rustix::thread::sched_setaffinity(raw, &cores) {
            seat.tell(format!("NF `{name}` runs on any core, not on those in `cores`: {error}"));
        }
    }
    Ok(Process::new(body, pid, pidfd, ours))
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
const EVEN_SHARE: u32 = 100;
/// The first of the user ids that NFs run as: above those of people, services and user namespaces.
const FIRST_USER: u32 = 1_000_000_000;

/// A user id that no other NF of this machine has, as far as its host can tell: by the host's number and the seat's.
fn user(seat: &Seat) -> u32 {
    FIRST_USER + std::process::id() % 1_000_000 * 1_000 + seat.number % 1_000
}

/// Where what a process writes goes, its errors and the rest. Standard output of this process is for the accounts of
/// whoever runs the chain.
fn output(seat: &Arc<Seat>) -> std::io::Result<(Stdio, Stdio)> {
    let write = match seat.spec.output {
        NfOutput::Inherit => rustix::io::dup(rustix::stdio::stderr())?,
        NfOutput::Log => log::pipe(Arc::clone(seat))?,
    };
    let errors = write.try_clone()?;
    Ok((Stdio::from(write), Stdio::from(errors)))
}

/// Takes in a process that came by itself.
fn receive(visitor: Visitor) -> Result<(Process, Option<Hello>), String> {
    let Visitor { socket, pid, hello } = visitor;
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("a process without a number")?;
    let pidfd = rustix::process::pidfd_open(raw, PidfdFlags::empty());
    let pidfd = pidfd.map_err(|error| format!("process {pid} cannot be watched: {error}"))?;
    Ok((Process::new(Body::Visitor, pid, Some(pidfd), socket), Some(hello)))
}

/// Looks at what an NF says of itself, makes its rings, and sends it what it works on.
fn welcome(seat: &Seat, socket: &Socket, mut hello: Hello) -> Result<Incarnation, String> {
    if hello.protocol != PROTOCOL {
        return Err(format!(
            "it speaks version {} of the attach protocol and this host version {PROTOCOL}: build it with the SDK of \
             this release",
            hello.protocol
        ));
    }
    hello.reasons.truncate(MOST_REASONS - 1);
    hello.counters.truncate(MOST_COUNTERS);
    let memory = seat.memory.get().ok_or("there is no packet memory to share")?;
    let holder = seat.holder().ok_or("there are too many NFs")?;
    let rings = Rings::create(RING_CLAIMS).map_err(|error| error.to_string())?;
    let page = Page::create().map_err(|error| error.to_string())?;
    let [to, from, grants] = rings.rings();
    let lender = Lender::new(to, from, holder, memory.region.number());
    let lender = lender.with_grants(grants).limited_to(memory.quota).holding_at_most(memory.quota);
    // What an observer says of packets has no effect, so that it needs no block to say it in.
    let lender = lender.with_metadata(hello.metadata && !seat.spec.observes);
    let spec = &seat.spec;
    let config = config_file(&spec.config)?;
    let welcome = Welcome {
        protocol: PROTOCOL,
        name: spec.name.clone(),
        layout: LAYOUT_VERSION,
        slots: memory.region.slots(),
        claims: RING_CLAIMS,
        quota: memory.quota,
        burst: spec.burst,
        writable: !spec.observes,
        inputs: spec.inputs.clone(),
        outputs: spec.outputs.clone(),
        config_bytes: spec.config.len(),
    };
    let for_reading = if spec.observes { Some(memory.region.for_reading()) } else { None };
    let for_reading = for_reading.transpose().map_err(|error| error.to_string())?;
    let region = for_reading.as_ref().map_or(memory.region.as_fd(), AsFd::as_fd);
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![region, rings.as_fd(), page.as_fd()];
    descriptors.extend(config.as_ref().map(AsFd::as_fd));
    socket.send(&ToNf::Welcome(welcome), &descriptors).map_err(|error| error.to_string())?;
    Ok(Incarnation { lender, page: Arc::new(page), hello: Arc::new(hello), rings })
}

/// The configuration as a file in memory.
fn config_file(config: &[u8]) -> Result<Option<OwnedFd>, String> {
    if config.is_empty() {
        return Ok(None);
    }
    shm::memfd::with(config).map(Some).map_err(|error| error.to_string())
}

/// Has every descriptor of this process that is open now, but for the standard ones, closed in programs that it
/// starts.
#[expect(unsafe_code, reason = "there is no safe function for this system call")]
fn close_on_exec() {
    // SAFETY: marks descriptors, and closes none here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
