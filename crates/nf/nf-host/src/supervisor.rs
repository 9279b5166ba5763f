//! The supervisor: one thread that has the processes of NFs started, shakes hands, watches and ends them.
//!
//! Nothing of this happens on a packet thread, and nothing that an NF does keeps the supervisor for long. A process is
//! over when the kernel says so of all that it started; only then is the link told to collect what it held.

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

/// What a program may lack that says nothing.
const NO_SDK: &str = "does it link the SDK, and call it?";
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The shortest and the longest wait before a process is started anew; each failure doubles it.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// A process that lived so long did not fail at its start.
const LONG_LIFE: Duration = Duration::from_millis(100);
/// The wait after an eviction, the same way: who misbehaves costs its host a start each time.
const PENALTY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A process that lived so long without misbehaving may do so once more.
const GOOD_LIFE: Duration = Duration::from_secs(10);
/// Messages that are heard of one process in a turn: others want to be heard, too.
const HEARD_PER_TURN: usize = 32;
/// Such turns that are heard of one that has ended.
const LAST_TURNS: usize = 8;
/// Messages of one process in a second; more are a flood.
const MOST_PER_SECOND: u32 = 1000;
/// Findings of one NF that are kept, and the characters of one.
const MOST_FINDINGS: usize = 100;
const FINDING_CHARACTERS: usize = 4_000;
/// How long what processes wrote last may take to be passed on, at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a process that has hung up may take to end.
const DEAF: Duration = Duration::from_millis(200);
/// How often evictions and burials are looked for.
const TURN: Duration = Duration::from_millis(1);
/// The same when nothing is under way.
const IDLE_TURN: Duration = Duration::from_millis(20);

/// The thread, and the instances that it looks after.
#[derive(Debug)]
pub struct Supervisor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    instances: Mutex<Vec<Arc<Instance>>>,
    /// Rung when something is to be done at once.
    doorbell: Doorbell,
    end: AtomicBool,
}

impl Supervisor {
    /// Starts the thread, which has processes started by these.
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

    /// Looks after an instance from now on.
    pub fn add(&self, instance: Arc<Instance>) {
        lock(&self.shared.instances).push(instance);
        self.doorbell().ring();
    }

    /// Its doorbell: for those who changed what is wanted of an instance.
    pub fn doorbell(&self) -> Doorbell {
        self.shared.doorbell.clone()
    }

    /// The handlers of what sits there now.
    pub fn handlers(&self) -> NfHandlers {
        NfHandlers::new(self.instances(), self.doorbell())
    }

    /// The NF instances that it looks after.
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

/// What the supervisor knows of an instance.
struct Watched {
    instance: Arc<Instance>,
    process: Option<Process>,
    back_off: Duration,
    /// When to start anew.
    start_at: Option<Instant>,
    /// Starts it.
    starting: Option<JoinHandle<Result<Launched, LaunchError>>>,
    /// Whether a process has been started before.
    started: bool,
    /// The wait after the last eviction.
    penalty: Duration,
    /// Findings that were told.
    reported: usize,
    /// Read what processes write.
    logs: Vec<JoinHandle<()>>,
    /// Neighbours that its process wants to know.
    wishes: Wishes,
}

struct Process {
    body: Box<dyn NfProcess>,
    /// Its number.
    pid: u64,
    /// Readable once the first process in a container has ended, until it has: what started it ends later.
    inside: Option<OwnedFd>,
    socket: Socket,
    since: Instant,
    stage: Stage,
    /// The socket has nothing more to say since then.
    deaf_since: Option<Instant>,
    /// Messages since then.
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

    /// Looks how a container's first process ended, as soon as it has: that is soon not known any more.
    fn look_inside(&mut self) {
        if self.inside.take_if(|inside| peer::has_ended(inside)).is_some() {
            self.body.observe_memory();
        }
    }
}

enum Stage {
    /// Nothing was said yet.
    Spawned,
    /// It was welcomed with these.
    Welcomed(Box<NfSession>),
    /// It gets packets.
    Up,
    /// It was asked to end, then.
    Ending(Instant),
    /// It was killed for what it did.
    Killed,
    /// It ended; the link has not yet collected what it held.
    Gone,
}

fn run(shared: &Shared, launchers: &Launchers) {
    let (mut watched, mut stations): (Vec<Watched>, Vec<Arc<Interface>>) = (vec![], vec![]);
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
            stations = neighbours::stations(watched.iter().map(|one| &one.instance));
        }
        for station in &stations {
            let news = station.take_news();
            if !news.is_empty() {
                watched.iter_mut().for_each(|one| one.wishes.changed(&one.instance, station, &news));
            }
        }
        watched.iter_mut().for_each(|one| one.step(launchers));
        await_something(shared, &watched, stations.iter().any(|station| station.is_resolving()));
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
    // Nobody writes any more. Standard error itself may hang.
    let end = Instant::now() + LAST_WORDS;
    for log in watched.into_iter().flat_map(|one| one.logs) {
        while !log.is_finished() && Instant::now() < end {
            std::thread::sleep(TURN);
        }
    }
}

/// Waits until a process says something or ends, the doorbell rings, or it is time to look.
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
    /// Does what is to be done now.
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

    /// Takes what the process says, and ends it where that is too much.
    fn hear(&mut self) {
        for _ in 0..HEARD_PER_TURN {
            let Some(process) = self.process.as_mut().filter(|process| process.deaf_since.is_none()) else {
                return;
            };
            match process.socket.receive::<FromNf>(Duration::ZERO) {
                Ok(None) => return,
                Ok(Some((message, files))) => {
                    // What was asked for is no flood.
                    let Some(message) = process.calls.hear(message, files) else { continue };
                    let (count, since) = &mut process.heard;
                    if since.elapsed() > Duration::from_secs(1) {
                        (*count, *since) = (0, Instant::now());
                    }
                    *count += 1;
                    if *count > MOST_PER_SECOND {
                        // It is not listened to any more, and ended for that.
                        process.deaf_since = Some(Instant::now());
                        self.instance.evict("flooded its host with messages".into());
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

    /// Notes a finding, with what an NF has to say in it: of each NF so many, and nothing that does anything to a
    /// terminal.
    fn tell(&mut self, finding: String) -> String {
        let text: String = log::plain(&finding).chars().take(FINDING_CHARACTERS).collect();
        self.reported += usize::from(!self.instance.status().warnings.contains(&text));
        match self.reported.cmp(&MOST_FINDINGS) {
            std::cmp::Ordering::Less => self.instance.tell(text.clone()),
            std::cmp::Ordering::Equal => {
                self.instance
                    .tell(format!("NF `{}`: further findings are not kept", self.instance.spec.name));
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
                // What was started is the runtime. What speaks runs.
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
                    let mut told = self.instance.status();
                    (told.hello, told.page) = (Arc::clone(&session.hello), Some(Arc::clone(&session.page)));
                    told.failure = None;
                    drop(told);
                    process.watch = Watch::new(Instant::now());
                    self.instance.set_hopeless(false);
                    self.instance.hand_over(*session);
                    self.instance.set_state(NfState::Up);
                }
            }
            FromNf::Failed { why } => self.fail(format!("NF `{name}` does not run: {why}")),
            FromNf::Finding { text } => drop(self.tell(format!("NF `{name}`: {text}"))),
            FromNf::Over if self.instance.spec.has_elements => self.instance.set_over(),
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
        self.instance.status().failure = Some(why);
    }

    /// Ends a process for what it did.
    fn evict(&mut self, why: &str) {
        let Some(process) = &mut self.process else { return };
        if matches!(process.stage, Stage::Gone | Stage::Killed) {
            return;
        }
        process.body.kill();
        process.stage = Stage::Killed;
        self.penalty = (2 * self.penalty).clamp(PENALTY.0, PENALTY.1);
        // In words of the host's own: told however much the NF said.
        self.instance.tell(format!("NF `{}` {why} and was ended", self.instance.spec.name));
    }

    /// Looks whether it lives.
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

    /// Watches over a process through its life.
    fn look_after(&mut self) {
        if let Some(process) = &mut self.process {
            process.look_inside();
        }
        self.watch_over();
        if let Some(why) = self.instance.take_eviction() {
            self.evict(&why);
        }
        let Some(process) = &mut self.process else { return };
        for (message, descriptor) in self.instance.take_to_say() {
            if matches!(process.stage, Stage::Up)
                && process.socket.send(&message, &[descriptor.as_fd()]).is_err()
                && process.deaf_since.is_none()
            {
                self.instance.evict("does not listen to its host".into());
            }
        }
        if matches!(process.stage, Stage::Up) && process.deaf_since.is_none() {
            // Who does not listen now is told later.
            self.wishes.tell(&self.instance, |message| process.socket.send(message, &[]).is_ok());
        }
        if matches!(process.stage, Stage::Up) {
            process.calls.pass_on(&self.instance.calls, &process.socket, !self.instance.is_wanted());
        }
        match &process.stage {
            Stage::Gone => {
                if self.instance.is_buried() {
                    self.process = None;
                    self.instance.set_state(if self.instance.is_wanted() {
                        NfState::Down
                    } else {
                        NfState::Stopped
                    });
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
            // Whoever does not listen any more has failed.
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
            // In words of the host's own.
            self.instance.tell(format!("NF `{}` ran {why} and was ended", self.instance.spec.name));
        }
        // It may have said why on its last breath, and what it was asked for.
        for _ in 0..LAST_TURNS {
            self.hear();
        }
        self.reclaim(&status);
    }

    /// What is to be done about it.
    fn out_of_memory(&self) -> String {
        let rights = self.instance.spec.terms.rights.as_ref();
        match rights.map(|rights| rights.memory_bytes.unwrap_or(MEMORY_BYTES) >> 20) {
            Some(mebibytes) => format!("out of memory (limit {mebibytes} MiB: raise `memory_mib`)"),
            None => "out of memory".into(),
        }
    }

    /// The process has ended.
    fn reclaim(&mut self, status: &str) {
        let Some(process) = &mut self.process else { return };
        let name = &self.instance.spec.name;
        self.instance.log.push(format!("-- ended: {status}"));
        self.instance.set_pid(0);
        // Its counters stay readable until the next process brings its own.
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
                // The runtime has said why.
                _ if process.body.refused() => "",
                Stage::Spawned => "; it said no hello: what it wrote says why, or it does not link the SDK",
                _ => "; what it wrote says why",
            };
            let mut told = self.instance.status();
            told.failure
                .get_or_insert_with(|| format!("NF `{name}` ended before it was ready ({status}){hint}"));
        }
        process.stage = Stage::Gone;
        self.wishes.clear(&self.instance);
        if was_up {
            self.instance.report_gone();
        }
        let wanted = self.instance.is_wanted();
        self.instance.set_state(if wanted { NfState::Down } else { NfState::Stopped });
        if wanted {
            self.start_later(if was_evicted { self.penalty } else { Duration::ZERO });
        }
    }

    /// Has a process started in a while, each time a longer one.
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
        if self.instance.spec.command.is_none() && !self.instance.has_external() {
            self.instance.set_state(NfState::Down);
            return;
        }
        self.start_at = None;
        self.instance.status().failure = None;
        if let Some(external) = self.instance.take_external() {
            let received = receive(external).map(|(launched, hello)| (launched, Some(hello)));
            return self.take_in(received);
        }
        // To make a process takes some milliseconds, in which others may end.
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

    /// Takes over what was started meanwhile; whether nothing is being started.
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

    /// Has a process from now on, or waits for the next.
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
                self.fail(why);
                self.instance.set_state(NfState::Down);
                self.start_later(Duration::ZERO);
            }
        }
    }
}
