//! The supervisor: a thread that has NF processes started, performs the handshake, watches the processes and
//! ends them.
//!
//! No packet thread does any of this, and no NF can block the supervisor for long. A process has ended when
//! the kernel reports the end of everything that it started. Only then does the link reclaim its packets.

use crate::calls::Open;
use crate::doorbell::Doorbell;
use crate::handlers::NfHandlers;
use crate::handshake::welcome;
use crate::instance::{Instance, NfSession, NfState};
use crate::log;
use crate::member::lock;
use crate::neighbours::{self, Wishes};
use crate::peer;
use crate::process::{LaunchError, Launched, Launchers, MEMORY_BYTES, NfProcess, READY_PATIENCE, receive};
use crate::watchdog::{Running, Watch};
use nf::ends::HEARTBEAT;
use nf::message::{FromNf, Hello, ToNf};
use nf::socket::Socket;
use port::interface::Interface;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The likely reason why a program sent no hello.
const NO_SDK: &str = "does it link the SDK, and call it?";
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The shortest and the longest wait before a process is restarted; each failure doubles the wait.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// After a lifetime of this length the wait is the shortest again.
const LONG_LIFE: Duration = Duration::from_millis(100);
/// The shortest and the longest wait after an eviction, which doubles in the same way: each misbehaviour
/// delays the next start.
const PENALTY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// After a lifetime of this length without an eviction, the penalty is zero again.
const GOOD_LIFE: Duration = Duration::from_secs(10);
/// Messages that are received from one process in a turn; the other processes need their turn, too.
const HEARD_PER_TURN: usize = 32;
/// The turns of this kind in which messages of an ended process are received.
const LAST_TURNS: usize = 8;
/// Messages that one process may send in a second; more are a flood.
const MOST_PER_SECOND: u32 = 1000;
/// Warnings that are stored for one NF, and the characters of one warning.
const MOST_WARNINGS: usize = 100;
const WARNING_CHARACTERS: usize = 4_000;
/// How long the log threads may take at the end to pass on the last output of the processes.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a process that has closed its socket may take to end.
const DEAF: Duration = Duration::from_millis(200);
/// How often the supervisor checks for evictions and reclaims.
const TURN: Duration = Duration::from_millis(1);
/// The same while no process starts or ends.
const IDLE_TURN: Duration = Duration::from_millis(20);

/// The supervisor's thread, and the NF instances that it watches.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    instances: Mutex<Vec<Arc<Instance>>>,
    /// Rung when the supervisor has to act at once.
    doorbell: Doorbell,
    end: AtomicBool,
}

impl Supervisor {
    /// Starts the thread. It starts processes with these launchers.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread or a descriptor.
    pub fn start(launchers: Launchers) -> std::io::Result<Supervisor> {
        let doorbell = Doorbell::new()?;
        let shared = Arc::new(Shared { instances: Mutex::default(), doorbell, end: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("supervisor".into()).spawn(move || run(&own, &launchers))?;
        Ok(Supervisor { shared, thread: Some(thread) })
    }

    /// Adds an instance, which the supervisor watches from now on.
    pub fn add(&self, instance: Arc<Instance>) {
        lock(&self.shared.instances).push(instance);
        self.doorbell().ring();
    }

    /// The supervisor's doorbell, for threads that change what an instance should do.
    pub fn doorbell(&self) -> Doorbell {
        self.shared.doorbell.clone()
    }

    /// The handlers of the instances that the supervisor watches now.
    pub fn handlers(&self) -> NfHandlers {
        NfHandlers::new(self.instances(), self.doorbell())
    }

    /// The NF instances that the supervisor watches.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        lock(&self.shared.instances).clone()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Release);
        self.doorbell().ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The supervisor's state of an instance.
struct Watched {
    instance: Arc<Instance>,
    process: Option<Process>,
    back_off: Duration,
    /// When the next process is to be started.
    start_at: Option<Instant>,
    /// The thread that starts a process.
    starting: Option<JoinHandle<Result<Launched, LaunchError>>>,
    /// Whether a process has been started before.
    started: bool,
    /// The wait that the last eviction caused.
    penalty: Duration,
    /// Warnings that were reported.
    reported: usize,
    /// The threads that read the output of the processes.
    logs: Vec<JoinHandle<()>>,
    /// Neighbours that the process requested.
    wishes: Wishes,
}

struct Process {
    body: Box<dyn NfProcess>,
    /// The process id.
    pid: u64,
    /// The pidfd of the first process in a container, until that has ended: the process that started it ends
    /// later.
    inside: Option<OwnedFd>,
    socket: Socket,
    since: Instant,
    stage: Stage,
    /// Since when nothing is received from the socket any more.
    deaf_since: Option<Instant>,
    /// Messages since that time.
    heard: (u32, Instant),
    calls: Open,
    watch: Watch,
}

impl Process {
    fn new(body: Box<dyn NfProcess>, pid: u64, socket: Socket) -> Process {
        let since = Instant::now();
        let (stage, watch) = (Stage::Spawned, Watch::new(since));
        let (deaf_since, heard, calls) = (None, (0, since), Open::default());
        Process { body, pid, inside: None, socket, since, stage, deaf_since, heard, calls, watch }
    }

    /// Reads how a container's first process ended, as soon as it has ended: the kernel soon discards this
    /// information.
    fn look_inside(&mut self) {
        if self.inside.take_if(|inside| peer::has_ended(inside)).is_some() {
            self.body.observe_memory();
        }
    }
}

enum Stage {
    /// No message was received yet.
    Spawned,
    /// The host has sent the welcome message for this session.
    Welcomed(Box<NfSession>),
    /// The NF receives packets.
    Up,
    /// The NF was asked to end at this time.
    Ending(Instant),
    /// The supervisor killed the process for misbehaviour or because it did not end in time.
    Killed,
    /// The process ended; the link has not yet reclaimed its packets.
    Gone,
}

fn run(shared: &Shared, launchers: &Launchers) {
    let (mut watched, mut l3_interfaces): (Vec<Watched>, Vec<Arc<Interface>>) = (vec![], vec![]);
    while !shared.end.load(Ordering::Acquire) {
        let instances = lock(&shared.instances).clone();
        for instance in instances.into_iter().skip(watched.len()) {
            watched.push(Watched {
                instance,
                process: None,
                back_off: BACK_OFF.0,
                start_at: None,
                starting: None,
                started: false,
                penalty: Duration::ZERO,
                reported: 0,
                logs: vec![],
                wishes: Wishes::default(),
            });
            l3_interfaces = neighbours::l3_interfaces(watched.iter().map(|one| &one.instance));
        }
        for interface in &l3_interfaces {
            let events = interface.take_events();
            if !events.is_empty() {
                watched.iter_mut().for_each(|one| one.wishes.changed(&one.instance, interface, &events));
            }
        }
        watched.iter_mut().for_each(|one| one.step(launchers));
        await_something(shared, &watched, l3_interfaces.iter().any(|interface| interface.is_resolving()));
    }
    for one in &mut watched {
        while !one.is_started() && one.process.is_none() {
            std::thread::sleep(TURN);
        }
        if let Some(mut process) = one.process.take() {
            process.body.kill();
            process.body.wait(GRACE);
        }
    }
    // No process writes any more. A write to standard error may block.
    let end = Instant::now() + LAST_WORDS;
    for log in watched.into_iter().flat_map(|one| one.logs) {
        while !log.is_finished() && Instant::now() < end {
            std::thread::sleep(TURN);
        }
    }
}

/// Waits until a process sends a message or ends, the doorbell rings, or the time for the next check is
/// reached.
fn await_something(shared: &Shared, watched: &[Watched], resolving: bool) {
    let mut polls = vec![PollFd::new(&shared.doorbell, PollFlags::IN)];
    let mut busy = resolving;
    for one in watched {
        busy |= one.wishes.is_behind();
        busy |= one.start_at.is_some() || one.starting.is_some();
        let Some(process) = &one.process else { continue };
        busy |= !matches!(process.stage, Stage::Up);
        if process.deaf_since.is_none() {
            polls.push(PollFd::new(&process.socket, PollFlags::IN));
        }
        if let Some(inside) = &process.inside {
            polls.push(PollFd::new(inside, PollFlags::IN));
        }
        if let Some(pidfd) = process.body.pidfd().filter(|_| !matches!(process.stage, Stage::Gone)) {
            polls.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
        }
    }
    let timeout = Timespec::try_from(if busy { TURN } else { IDLE_TURN }).ok();
    let _ = poll(&mut polls, timeout.as_ref());
    shared.doorbell.clear();
}

impl Watched {
    /// Performs one turn for this instance.
    fn step(&mut self, launchers: &Launchers) {
        self.hear();
        self.look_after();
        if !self.process.as_ref().is_some_and(|process| matches!(process.stage, Stage::Up)) {
            self.instance.calls.forget();
        }
        if self.process.is_none() {
            self.start_when_wanted(launchers);
        }
    }

    /// Receives messages of the process, and evicts the process when it sends too many.
    fn hear(&mut self) {
        for _ in 0..HEARD_PER_TURN {
            let Some(process) = self.process.as_mut().filter(|process| process.deaf_since.is_none()) else {
                return;
            };
            match process.socket.receive::<FromNf>(Duration::ZERO) {
                Ok(None) => return,
                Ok(Some((message, files))) => {
                    // Answers to the host's own calls do not count as a flood.
                    let Some(message) = process.calls.hear(message, files) else { continue };
                    let (count, since) = &mut process.heard;
                    if since.elapsed() > Duration::from_secs(1) {
                        (*count, *since) = (0, Instant::now());
                    }
                    *count += 1;
                    if *count > MOST_PER_SECOND {
                        // The supervisor does not receive from it any more, and ends it for the flood.
                        process.deaf_since = Some(Instant::now());
                        self.instance.member.evict("flooded its host with messages".into());
                        return;
                    }
                    self.answer(message);
                }
                Err(nf::NfError::HungUp) => process.deaf_since = Some(Instant::now()),
                Err(error) => {
                    process.deaf_since = Some(Instant::now());
                    self.tell(format!("NF `{}`: {error}", self.instance.spec.name));
                }
            }
        }
    }

    /// Stores a warning that may contain text of the NF. The number of warnings for each NF is bounded, and
    /// control characters are removed.
    fn tell(&mut self, warning: String) -> String {
        // Lines stay lines, and none can be taken for one of the host's.
        let lines: Vec<String> = warning.lines().map(log::plain).collect();
        let text: String = lines.join("\n    ").chars().take(WARNING_CHARACTERS).collect();
        self.reported += usize::from(!self.instance.status().warnings.contains(&text));
        match self.reported.cmp(&MOST_WARNINGS) {
            std::cmp::Ordering::Less => self.instance.tell(text.clone()),
            std::cmp::Ordering::Equal => {
                self.instance
                    .tell(format!("NF `{}`: further warnings are not kept", self.instance.spec.name));
            }
            std::cmp::Ordering::Greater => {}
        }
        text
    }

    fn answer(&mut self, message: FromNf) {
        let Some(process) = &mut self.process else { return };
        let name = &self.instance.spec.name;
        match message {
            FromNf::Hello(hello) if matches!(process.stage, Stage::Spawned) => {
                // The started process may be the container runtime. A process that sends a hello runs.
                if let Some(pid) = process.body.init_pid() {
                    process.pid = pid;
                    process.inside = peer::of_number(pid);
                    self.instance.set_pid(pid);
                }
                match welcome(&self.instance, &process.socket, hello) {
                    Ok(session) => process.stage = Stage::Welcomed(Box::new(session)),
                    Err(why) => {
                        let _ = process.socket.send(&ToNf::Refused { why: why.clone() }, &[]);
                        self.fail(format!("NF `{}` was refused: {why}", self.instance.spec.name));
                    }
                }
            }
            FromNf::Ready => {
                if let Stage::Welcomed(_) = process.stage
                    && let Stage::Welcomed(session) = std::mem::replace(&mut process.stage, Stage::Up)
                {
                    let mut instance_status = self.instance.status();
                    (instance_status.hello, instance_status.page) =
                        (Arc::clone(&session.hello), Some(Arc::clone(&session.page)));
                    instance_status.failure = None;
                    drop(instance_status);
                    process.watch = Watch::new(Instant::now());
                    self.instance.set_hopeless(false);
                    self.instance.set_was_up();
                    self.instance.hand_over(*session);
                    self.instance.set_state(NfState::Up);
                }
            }
            FromNf::Failed { why } => self.refuse(format!("NF `{name}` does not run: {why}")),
            FromNf::Finding { text } => drop(self.tell(format!("NF `{name}`: {text}"))),
            FromNf::Over if self.instance.spec.has_elements => self.instance.set_over(),
            FromNf::HoldsRun { holds } if self.instance.spec.has_elements => {
                self.instance.set_has_script(holds);
            }
            FromNf::HoldsRun { .. } => {}
            FromNf::Over => {
                drop(self.tell(format!("NF `{name}` asks for the end of the run, which is not its own")))
            }
            FromNf::Resolve { hops } if matches!(process.stage, Stage::Up) => {
                self.wishes.resolve(&self.instance, &hops);
            }
            FromNf::Forget { hops } => self.wishes.forget(&self.instance, &hops),
            FromNf::Hello(_) | FromNf::Resolve { .. } | FromNf::Answer { .. } | FromNf::Refusal { .. } => {}
        }
    }

    fn fail(&mut self, why: String) {
        let why = self.tell(why);
        self.instance.set_failure(&why);
    }

    fn refuse(&mut self, why: String) {
        let why = self.tell(why);
        self.instance.set_refusal(&why);
    }

    /// Ends a process for misbehaviour.
    fn evict(&mut self, why: &str) {
        let Some(process) = &mut self.process else { return };
        if matches!(process.stage, Stage::Gone | Stage::Killed) {
            return;
        }
        process.body.kill();
        process.stage = Stage::Killed;
        self.penalty = (2 * self.penalty).clamp(PENALTY.0, PENALTY.1);
        // This is the host's own warning, which the bound on the NF's warnings does not affect.
        self.instance.tell(format!("NF `{}` {why} and was ended", self.instance.spec.name));
    }

    /// Checks with the watchdog that the NF makes progress.
    fn watch_over(&mut self) {
        let Some(process) = &mut self.process else { return };
        if !matches!(process.stage, Stage::Up) {
            return;
        }
        let beats = self.instance.status().page.as_ref().map_or(0, |page| page.load(HEARTBEAT));
        let running = || Running::of(process.pid);
        if let Some(why) = process.watch.look(Instant::now(), &self.instance.member.activity, beats, running)
        {
            self.evict(why);
        }
    }

    /// Performs a turn of a process's life: the watchdog, messages to it, its end.
    fn look_after(&mut self) {
        if let Some(process) = &mut self.process {
            process.look_inside();
        }
        self.watch_over();
        if let Some(why) = self.instance.member.take_eviction() {
            self.evict(&why);
        }
        let Some(process) = &mut self.process else { return };
        for (message, descriptor) in self.instance.take_to_say() {
            if matches!(process.stage, Stage::Up)
                && process.socket.send(&message, &[descriptor.as_fd()]).is_err()
                && process.deaf_since.is_none()
            {
                self.instance.member.evict("does not listen to its host".into());
            }
        }
        if matches!(process.stage, Stage::Up) && process.deaf_since.is_none() {
            // A message that the socket does not accept now is sent in a later turn.
            self.wishes.tell(&self.instance, |message| process.socket.send(message, &[]).is_ok());
        }
        if matches!(process.stage, Stage::Up) {
            process.calls.pass_on(&self.instance.calls, &process.socket, !self.instance.is_wanted());
        }
        match &process.stage {
            Stage::Gone => {
                if self.instance.is_buried() {
                    self.process = None;
                    self.instance.set_down();
                }
                return;
            }
            Stage::Spawned | Stage::Welcomed(_) if process.since.elapsed() > READY_PATIENCE => {
                process.body.kill();
                let (name, seconds) = (&self.instance.spec.name, READY_PATIENCE.as_secs());
                let why = match process.stage {
                    Stage::Spawned => {
                        format!("NF `{name}` said no hello in {seconds} s and was ended: {NO_SDK}")
                    }
                    _ => format!("NF `{name}` was not ready after {seconds} s and was ended"),
                };
                self.fail(why);
            }
            Stage::Ending(since) if since.elapsed() > GRACE => {
                process.body.kill();
                process.stage = Stage::Killed;
            }
            // An NF that has closed its socket has failed.
            Stage::Up if process.deaf_since.is_some_and(|since| since.elapsed() > DEAF) => {
                self.evict("hung up");
            }
            Stage::Spawned | Stage::Welcomed(_) | Stage::Up if !self.instance.is_wanted() => {
                let _ = process.socket.send(&ToNf::Stop, &[]);
                process.stage = Stage::Ending(Instant::now());
                self.instance.set_state(NfState::Ending);
            }
            _ => {}
        }
        let Some(process) = &mut self.process else { return };
        let Some(mut status) = process.body.exit_status() else { return };
        if process.body.out_of_memory() {
            let why = self.out_of_memory();
            status = format!("{status}: {why}");
            // This is the host's own warning.
            self.instance.tell(format!("NF `{}` ran {why} and was ended", self.instance.spec.name));
        }
        // Its last messages may contain a reason for the end, and answers to calls.
        for _ in 0..LAST_TURNS {
            self.hear();
        }
        self.reclaim(&status);
    }

    /// The words for an end for lack of memory, with the setting that helps.
    fn out_of_memory(&self) -> String {
        let rights = self.instance.spec.terms.rights.as_ref();
        match rights.map(|rights| rights.memory_bytes.unwrap_or(MEMORY_BYTES) >> 20) {
            Some(mebibytes) => format!("out of memory (limit {mebibytes} MiB: raise `memory_mib`)"),
            None => "out of memory".into(),
        }
    }

    /// Handles the end of the process: sets the state, and schedules the next start.
    fn reclaim(&mut self, status: &str) {
        let Some(process) = &mut self.process else { return };
        let name = &self.instance.spec.name;
        self.instance.log.push(format!("-- ended: {status}"));
        self.instance.set_pid(0);
        // Its counters stay readable until the next process has a page of its own.
        let was_up = matches!(process.stage, Stage::Up | Stage::Ending(_) | Stage::Killed)
            && !self.instance.is_buried();
        let (was_evicted, lived) = (matches!(process.stage, Stage::Killed), process.since.elapsed());
        if lived >= LONG_LIFE && was_up {
            self.back_off = BACK_OFF.0;
        }
        if lived >= GOOD_LIFE && !was_evicted {
            self.penalty = Duration::ZERO;
        }
        if matches!(process.stage, Stage::Spawned | Stage::Welcomed(_)) {
            let hint = match &process.stage {
                // The runtime has reported the reason.
                _ if process.body.refused() => "",
                Stage::Spawned => "; it said no hello: what it wrote says why, or it does not link the SDK",
                _ => "; what it wrote says why",
            };
            let why = format!("NF `{name}` ended before it was ready ({status}){hint}");
            // One that says nothing may do better the next time, unless it has had enough times.
            let has_spoken = self.instance.log.has_lines_of_nf() && !status.starts_with("exit status: 0");
            let refuses = ended_by_itself(status) && (has_spoken || self.back_off >= BACK_OFF.1);
            let (has_failed, has_refused) = {
                let status = self.instance.status();
                (status.failure.is_some(), status.refusal.is_some())
            };
            match () {
                () if refuses && !has_refused => self.instance.set_refusal(&why),
                () if !has_failed => self.instance.set_failure(&why),
                () => {}
            }
        }
        process.stage = Stage::Gone;
        self.wishes.clear(&self.instance);
        if was_up {
            self.instance.report_gone();
        }
        if self.instance.set_down() {
            self.start_later(if was_evicted { self.penalty } else { Duration::ZERO });
        }
    }

    /// Schedules the next start. Each wait is longer than the last.
    fn start_later(&mut self, at_least: Duration) {
        self.start_at = Some(Instant::now() + self.back_off.max(at_least));
        self.instance.set_hopeless(self.back_off >= BACK_OFF.1);
        self.back_off = (2 * self.back_off).min(BACK_OFF.1);
    }

    fn start_when_wanted(&mut self, launchers: &Launchers) {
        if !self.is_started() {
            return;
        }
        if !self.instance.is_wanted() {
            self.start_at = None;
            if self.instance.state() != NfState::Stopped {
                self.instance.set_state(NfState::Stopped);
            }
            return;
        }
        if self.start_at.is_some_and(|at| Instant::now() < at) || !self.instance.is_buried() {
            return;
        }
        let external = self.instance.take_external();
        if self.instance.spec.command.is_none() && external.is_none() {
            self.instance.set_state(NfState::Down);
            return;
        }
        self.start_at = None;
        self.instance.status().failure = None;
        if let Some(external) = external {
            let received = receive(external).map(|(launched, hello)| (launched, Some(hello)));
            return self.take_in(received);
        }
        // The launch takes some milliseconds, in which other processes may end.
        let (instance, launchers) = (Arc::clone(&self.instance), launchers.clone());
        let start =
            std::thread::Builder::new().name("nf-starter".into()).spawn(move || launchers.launch(&instance));
        match start {
            Ok(start) => self.starting = Some(start),
            Err(error) => {
                let name = &self.instance.spec.name;
                self.take_in(Err(format!("NF `{name}`: cannot make a thread to start it: {error}")));
            }
        }
    }

    /// Takes the result of a finished launch; whether no launch is in progress.
    fn is_started(&mut self) -> bool {
        if self.starting.as_ref().is_some_and(|starting| !starting.is_finished()) {
            return false;
        }
        let Some(starting) = self.starting.take() else { return true };
        let started = starting.join().map_err(|_| "the thread that starts NFs has ended".to_string());
        let started = started.and_then(|started| started.map_err(|error| error.to_string()));
        self.take_in(started.map(|launched| (launched, None)));
        self.process.is_none()
    }

    /// Stores a started process, or schedules the next attempt after a failure.
    fn take_in(&mut self, started: Result<(Launched, Option<Hello>), String>) {
        match started {
            Ok((Launched { process, pid, socket, log }, hello)) => {
                self.logs.retain(|log| !log.is_finished());
                self.logs.extend(log);
                self.instance.set_pid(pid);
                self.instance.set_state(NfState::Starting);
                self.instance.log.push(format!("-- started: process {pid}"));
                self.process = Some(Process::new(process, pid, socket));
                hello.into_iter().for_each(|hello| self.answer(FromNf::Hello(hello)));
                if std::mem::replace(&mut self.started, true) {
                    self.instance.count_restart();
                }
            }
            Err(why) => {
                self.refuse(why);
                self.instance.set_state(NfState::Down);
                self.start_later(Duration::ZERO);
            }
        }
    }
}
/// Whether a process chose its end: one that crashed, or was killed, may do better the next time. Container runtimes
/// report a signal as a status from 128 on.
fn ended_by_itself(status: &str) -> bool {
    let code = status
        .strip_prefix("exit status: ")
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    code.and_then(|code| code.parse().ok()).is_some_and(|code: u32| code < 128)
}
