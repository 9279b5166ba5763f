//! An NF instance: the place of an NF in a chain, whether a process runs it or not.
//!
//! Two threads share it. The worker that enqueues packets (see [`super::link`]) takes over what the supervisor started,
//! and reclaims the slots of what ended; the supervisor (see [`super::supervisor`]) starts, watches and ends processes. Neither
//! waits for the other on the packet path: each looks at one word.

use crate::calls::Calls;
use crate::direct_group::DirectGroup;
use crate::log::{LogBuffer, NfOutput};
use crate::member::{MemberState, lock};
use crate::memory::Memory;
use crate::rings::Rings;
use chain::{Body, ProcessNf, Program, Terms};
use nf::ends::FIRST_COUNTER;
use nf::message::{Hello, MOST_REASONS, ToNf, UNSTATED};
use nf::socket::Socket;
use port::interface::Interface;
use rustix::fd::OwnedFd;
use shm::channel::HostEnd;
use shm::page::Page;
use shm::ring::{Mapped, RingFile};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// An NF that does not run as elements of this process.
#[derive(Clone, Debug, Default)]
pub struct NfSpec {
    /// Its name in the chain.
    pub name: String,
    /// How its process is started; an NF without attaches by itself.
    pub command: Option<Command>,
    /// Interfaces that it receives from, in the order of the element's inputs.
    pub inputs: Vec<String>,
    /// Interfaces that it sends to, in the order of the element's outputs.
    pub outputs: Vec<String>,
    /// Its configuration.
    pub config: Vec<u8>,
    /// Packets to work on at a time.
    pub burst: usize,
    /// On what terms it runs.
    pub terms: Terms,
    /// Where what it writes goes.
    pub output: NfOutput,
    /// Whether its process runs elements of a configuration, which may end the whole run.
    pub has_elements: bool,
}

impl NfSpec {
    /// Of an NF of a chain, with what its process is told.
    pub fn of(
        nf: &ProcessNf,
        command: Option<Command>,
        config: Vec<u8>,
        burst: usize,
        output: NfOutput,
    ) -> NfSpec {
        NfSpec {
            name: nf.name.clone(),
            command,
            inputs: nf.inputs.clone(),
            outputs: nf.outputs.clone(),
            config,
            burst,
            terms: nf.terms.clone(),
            output,
            has_elements: matches!(nf.body, Body::Click(_)),
        }
    }

    /// Of an NF that is a program.
    pub fn of_program(nf: &ProcessNf, program: &Program, burst: usize, output: NfOutput) -> NfSpec {
        let (path, arguments) = (program.path.clone(), program.arguments.clone());
        let command = Command { program: path, arguments, folder: PathBuf::new() };
        NfSpec::of(nf, Some(command), program.config.clone().into_bytes(), burst, output)
    }
}

/// How to start the process of an NF.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program; of a container it may be a bundle or an image.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that it runs in.
    pub folder: PathBuf,
}

/// Where an NF is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NfState {
    /// No process, and none is wanted.
    Stopped = 0,
    /// No process; one is started in a while, or attaches.
    Down = 1,
    /// A process that is not ready.
    Starting = 2,
    /// A process that gets packets.
    Up = 3,
    /// A process that was asked to end.
    Ending = 4,
}

impl NfState {
    /// As operators read it.
    pub fn name(self) -> &'static str {
        match self {
            NfState::Stopped => "stopped",
            NfState::Down => "down",
            NfState::Starting => "starting",
            NfState::Up => "up",
            NfState::Ending => "ending",
        }
    }
}

/// A process that has shaken hands, and what it was given.
#[derive(Debug)]
pub struct NfSession {
    /// The host's ends of its rings.
    pub host_end: HostEnd<Mapped>,
    /// Its counters.
    pub page: Arc<Page>,
    /// What it said of itself.
    pub hello: Arc<Hello>,
    /// What the host end points into.
    pub rings: Rings,
    /// Rings to others of its direct-path group, by the number of the way.
    pub exits: Vec<(u16, RingFile<1>)>,
}

/// The word that a link looks at in every turn: a process is there to be taken over.
const CAME: u8 = 1;
/// The last process is gone, and nothing of it runs any more: what it held is to be collected.
const GONE: u8 = 2;

/// An NF of one worker, whether a process runs it or not.
#[derive(Debug)]
pub struct Instance {
    /// The NF.
    pub spec: NfSpec,
    /// The worker that enqueues to it.
    pub worker: usize,
    /// Its number among those of a supervisor.
    pub number: u32,
    /// Packet memory, known once the chain's pool is made.
    pub memory: Arc<OnceLock<Memory>>,
    /// The NFs that it hands packets to or gets them from, and its number among them.
    pub direct_group: Option<(Arc<DirectGroup>, u8)>,
    /// What it may ask for neighbours, by the number of its output.
    pub stations: Vec<Option<Arc<Interface>>>,
    /// Neighbours that its process wants to know, and questions of its processes that were refused.
    pub neighbours: [AtomicU64; 2],
    /// What the supervisor is to say to the process, with a descriptor.
    to_say: Mutex<Vec<(ToNf, OwnedFd)>>,
    /// Handlers that are called.
    pub(crate) calls: Calls,
    /// Its number as a holder of slots, the same for all its processes: the slots of each are reclaimed before the next starts.
    holder: OnceLock<Option<u16>>,
    changes: AtomicU8,
    came: Mutex<Option<NfSession>>,
    state: AtomicU8,
    /// Whether a process is wanted.
    wanted: AtomicBool,
    /// The link has collected what the last process held.
    reclaimed: AtomicBool,
    restarts: AtomicU64,
    /// Whether starting it has failed so often that nobody is to wait for it.
    hopeless: AtomicBool,
    pid: AtomicU64,
    /// The NF asks for the end of the run.
    over: AtomicBool,
    /// What a group of NFs may know of it.
    pub(crate) member: Arc<MemberState>,
    /// The last lines that its processes wrote.
    pub log: Arc<LogBuffer>,
    status: Mutex<InstanceStatus>,
    /// Drops by the reasons that the NF named, over all its processes. Written by the link alone.
    drops: [AtomicU64; MOST_REASONS],
    /// A process that came by itself and was not taken in yet.
    external: Mutex<Option<ExternalNf>>,
}

/// A process that came by itself.
#[derive(Debug)]
pub struct ExternalNf {
    /// To it.
    pub socket: Socket,
    /// Itself, whatever becomes of its number.
    pub pidfd: OwnedFd,
    /// What it said.
    pub hello: Hello,
}

/// What is known of the process beside its packets.
#[derive(Clone, Debug, Default)]
pub struct InstanceStatus {
    /// What it said of itself.
    pub hello: Arc<Hello>,
    /// Its counters.
    pub page: Option<Arc<Page>>,
    /// Why it did not start, the last time.
    pub failure: Option<String>,
    /// Findings, each once.
    pub warnings: Vec<String>,
    /// What is enforced upon its process and what is not, in sentences.
    pub isolation: Vec<String>,
    /// What of that is not enforced.
    pub not_enforced: Vec<String>,
    /// Why a tap is shown copies, where it is.
    pub why_copies: Option<String>,
}

impl Instance {
    /// For an NF of a worker; each has another number.
    pub fn new(spec: NfSpec, worker: usize, number: u32, memory: Arc<OnceLock<Memory>>) -> Instance {
        Instance {
            spec,
            worker,
            number,
            memory,
            direct_group: None,
            stations: vec![],
            neighbours: Default::default(),
            to_say: Mutex::default(),
            calls: Calls::default(),
            holder: OnceLock::new(),
            changes: AtomicU8::new(0),
            came: Mutex::default(),
            state: AtomicU8::new(NfState::Stopped as u8),
            wanted: AtomicBool::new(false),
            reclaimed: AtomicBool::new(true),
            restarts: AtomicU64::new(0),
            hopeless: AtomicBool::new(false),
            pid: AtomicU64::new(0),
            over: AtomicBool::new(false),
            member: Arc::default(),
            log: Arc::default(),
            status: Mutex::default(),
            drops: std::array::from_fn(|_| AtomicU64::new(0)),
            external: Mutex::default(),
        }
    }

    /// With stations that it may ask for neighbours.
    #[must_use]
    pub fn beside(self, stations: Vec<Option<Arc<Interface>>>) -> Instance {
        Instance { stations, ..self }
    }

    /// As a member of a direct-path group, which is told.
    #[must_use]
    pub fn in_group(self, group: Arc<DirectGroup>, member: u8) -> Instance {
        group.set_member(member, Arc::clone(&self.member));
        Instance { direct_group: Some((group, member)), ..self }
    }

    /// Its number as a holder.
    pub fn holder(&self) -> Option<u16> {
        let next = || self.memory.get()?.holder();
        match &self.direct_group {
            Some((group, _)) => group.holder(next),
            None => *self.holder.get_or_init(next),
        }
    }

    /// Has the supervisor say something to the process, with a descriptor; the link's.
    pub fn say(&self, message: ToNf, descriptor: OwnedFd) {
        lock(&self.to_say).push((message, descriptor));
    }

    /// What is to be said to the process; the supervisor's.
    pub fn take_to_say(&self) -> Vec<(ToNf, OwnedFd)> {
        std::mem::take(&mut *lock(&self.to_say))
    }

    /// Where the NF is.
    pub fn state(&self) -> NfState {
        let all = [NfState::Stopped, NfState::Down, NfState::Starting, NfState::Up, NfState::Ending];
        let number = self.state.load(Ordering::Acquire);
        all.into_iter().find(|state| *state as u8 == number).unwrap_or(NfState::Stopped)
    }

    /// Sets where the NF is; the supervisor's.
    pub fn set_state(&self, state: NfState) {
        if self.state.swap(state as u8, Ordering::AcqRel) != state as u8 {
            tracing::info!("NF `{}` is {}", self.spec.name, state.name());
        }
    }

    /// Whether a process is wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Wants a process, or none.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
    }

    /// Its process, by number; 0 when there is none.
    pub fn pid(&self) -> u64 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Notes its process.
    pub fn set_pid(&self, pid: u64) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// How often a process was started in the place of one that ended.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Counts a start in the place of one that ended.
    pub fn count_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes whether starting it has failed too often; the supervisor's.
    pub fn set_hopeless(&self, hopeless: bool) {
        self.hopeless.store(hopeless, Ordering::Relaxed);
    }

    /// Whether a process is about to come, of an NF that the host starts.
    pub fn is_coming(&self) -> bool {
        self.is_wanted()
            && self.spec.command.is_some()
            && matches!(self.state(), NfState::Down | NfState::Starting | NfState::Up)
            && !self.hopeless.load(Ordering::Relaxed)
    }

    /// Counts a drop for a reason that the NF named by its number; the link's.
    #[inline]
    pub fn count_drop(&self, reason: usize) {
        if let Some(count) = self.drops.get(reason).or(self.drops.first()) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Drops by the NF's own reasons, those that never happened left out.
    pub fn drops(&self) -> Vec<(String, u64)> {
        let hello = Arc::clone(&self.status().hello);
        let named = std::iter::once(UNSTATED).chain(hello.reasons.iter().map(String::as_str));
        let counted =
            named.zip(&self.drops).map(|(name, count)| (name.into(), count.load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The NF's own counters.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let told = self.status();
        let value = |number| told.page.as_ref().map_or(0, |page| page.load(FIRST_COUNTER + number));
        told.hello.counters.iter().enumerate().map(|(number, name)| (name.clone(), value(number))).collect()
    }

    /// Offers a process that came by itself, which is taken where there is a place for it.
    ///
    /// # Errors
    ///
    /// When the NF is started by the host, is stopped, or has a process.
    pub fn offer(&self, external: &mut Option<ExternalNf>) -> Result<(), String> {
        let name = &self.spec.name;
        if self.spec.command.is_some() {
            return Err(format!(
                "NF `{name}` is started by its host; only one with `attach = true` attaches"
            ));
        }
        let mut place = lock(&self.external);
        if place.is_some() || !matches!(self.state(), NfState::Down) {
            return Err(format!("NF `{name}` is {}", self.state().name()));
        }
        *place = external.take();
        Ok(())
    }

    /// Whether a process came.
    pub fn has_external(&self) -> bool {
        lock(&self.external).is_some()
    }

    /// The process that came.
    pub fn take_external(&self) -> Option<ExternalNf> {
        lock(&self.external).take()
    }

    /// Whether the NF asks for the end of the run.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Notes that it does.
    pub fn set_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// What is known beside the packets.
    pub fn status(&self) -> MutexGuard<'_, InstanceStatus> {
        lock(&self.status)
    }

    /// Notes a finding, the first time.
    pub fn tell(&self, finding: String) {
        let mut told = self.status();
        if !told.warnings.contains(&finding) {
            tracing::info!("{finding}");
            told.warnings.push(finding);
        }
    }

    /// Hands a process over to the link; the supervisor's.
    pub fn hand_over(&self, session: NfSession) {
        // What was meant for the last one is not for this.
        self.take_to_say();
        self.take_eviction();
        *lock(&self.came) = Some(session);
        self.reclaimed.store(false, Ordering::Release);
        self.changes.fetch_or(CAME, Ordering::Release);
    }

    /// Says that nothing of the process runs any more; the supervisor's.
    pub fn report_gone(&self) {
        self.changes.fetch_or(GONE, Ordering::Release);
    }

    /// Whether the link has anything to do here beside its packets.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.changes.load(Ordering::Relaxed) != 0
    }

    /// What came and went since the last call; the link's.
    pub fn take_news(&self) -> (Option<NfSession>, bool) {
        let news = self.changes.swap(0, Ordering::AcqRel);
        let came = lock(&self.came).take();
        (came, news & GONE != 0)
    }

    /// Says that what the last process held is collected; the link's.
    pub fn report_buried(&self) {
        self.reclaimed.store(true, Ordering::Release);
    }

    /// Whether nobody holds anything of the last process.
    pub fn is_buried(&self) -> bool {
        self.reclaimed.load(Ordering::Acquire)
    }

    /// Asks the supervisor to end the process at once; the link's.
    pub fn evict(&self, why: String) {
        self.member.evict(why);
    }

    /// Why the process is to be ended, when it is; the supervisor's.
    pub fn take_eviction(&self) -> Option<String> {
        self.member.take_eviction()
    }
}
