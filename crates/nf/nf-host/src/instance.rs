//! An NF instance of a chain, with or without a process that runs it.
//!
//! Two threads share it. The worker that enqueues packets (see [`super::link`]) takes over the sessions that
//! the supervisor started, and reclaims the slots of ended ones. The supervisor (see [`super::supervisor`])
//! starts, watches and ends processes. Neither waits for the other on the packet path: each reads one atomic
//! word.

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
    /// How its process is started; `None` for an external NF, which attaches.
    pub command: Option<Command>,
    /// Interfaces that it receives from, in the order of the element's inputs.
    pub inputs: Vec<String>,
    /// Interfaces that it sends to, in the order of the element's outputs.
    pub outputs: Vec<String>,
    /// Its configuration text.
    pub config: Vec<u8>,
    /// Packets that it should process at a time.
    pub burst: usize,
    /// Its rights and what the chain file sets for it.
    pub terms: Terms,
    /// Where its output is written.
    pub output: NfOutput,
    /// Whether its process runs elements of a configuration, which may end the whole run.
    pub has_elements: bool,
}

impl NfSpec {
    /// The specification of an NF of a chain, with the configuration that its process receives.
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

    /// The specification of an NF that is a program.
    pub fn of_program(nf: &ProcessNf, program: &Program, burst: usize, output: NfOutput) -> NfSpec {
        let (path, arguments) = (program.path.clone(), program.arguments.clone());
        let command = Command { program: path, arguments, folder: PathBuf::new() };
        NfSpec::of(nf, Some(command), program.config.clone().into_bytes(), burst, output)
    }
}

/// How to start the process of an NF.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program; for a container it may be a bundle or an image.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The working directory of the process.
    pub folder: PathBuf,
}

/// The state of an NF instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NfState {
    /// There is no process, and none is wanted.
    Stopped = 0,
    /// There is no process; the supervisor will start one, or an external NF will attach.
    Down = 1,
    /// There is a process that is not ready.
    Starting = 2,
    /// There is a process that receives packets.
    Up = 3,
    /// There is a process that was asked to end.
    Ending = 4,
}

impl NfState {
    /// The name of the state in command output.
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

/// A session after its handshake, with the host's ends of its rings.
#[derive(Debug)]
pub struct NfSession {
    /// The host's ends of its rings.
    pub host_end: HostEnd<Mapped>,
    /// The page of its counters.
    pub page: Arc<Page>,
    /// The hello message that it sent.
    pub hello: Arc<Hello>,
    /// The memory of the rings that the host ends use.
    pub rings: Rings,
    /// The direct rings that it writes, by number.
    pub exits: Vec<(u16, RingFile<1>)>,
}

/// A flag of the word that a link reads in every turn: a new session waits for the link.
const CAME: u8 = 1;
/// The flag for an ended session: its process has ended, and the link must reclaim its packets.
const GONE: u8 = 2;

/// An NF instance of one worker, with or without a process.
#[derive(Debug, Default)]
pub struct Instance {
    /// The NF.
    pub spec: NfSpec,
    /// The worker that enqueues to it.
    pub worker: usize,
    /// Its number among the instances of a supervisor.
    pub number: u32,
    /// The packet memory, set once the chain's pool exists.
    pub memory: Arc<OnceLock<Memory>>,
    /// The direct-path group that it belongs to, and its number there.
    pub direct_group: Option<(Arc<DirectGroup>, u8)>,
    /// The L3 interfaces of its outputs, by number.
    pub l3_interfaces: Vec<Option<Arc<Interface>>>,
    /// The number of neighbours that its process requested, and of requests that were refused.
    pub neighbours: [AtomicU64; 2],
    /// Messages that the supervisor is to send to the process, each with a descriptor.
    to_say: Mutex<Vec<(ToNf, OwnedFd)>>,
    /// Handler calls for the process.
    pub(crate) calls: Calls,
    /// Its number as a holder of slots. All its processes have the same number: the slots of each are
    /// reclaimed before the next starts.
    holder: OnceLock<Option<u16>>,
    changes: AtomicU8,
    came: Mutex<Option<NfSession>>,
    state: AtomicU8,
    /// Whether a process should run.
    wanted: AtomicBool,
    /// Whether the link has yet to reclaim the packets of the last process.
    unreclaimed: AtomicBool,
    restarts: AtomicU64,
    /// Whether the NF is only asked whether it would run.
    pub is_check: bool,
    /// Whether a process has been ready.
    was_up: AtomicBool,
    /// Whether its start has failed so often that no worker should wait for it.
    hopeless: AtomicBool,
    pid: AtomicU64,
    /// Whether the NF has requested the end of the run.
    over: AtomicBool,
    /// Whether a script in its process runs or waits for a time.
    has_script: AtomicBool,
    /// The state that its direct-path group shares.
    pub(crate) member: Arc<MemberState>,
    /// The last lines that its processes wrote.
    pub log: Arc<LogBuffer>,
    status: Mutex<InstanceStatus>,
    /// Drops by the reasons that the NF named, over all its processes. Only the link writes them.
    drops: [AtomicU64; MOST_REASONS],
    /// An external NF that has attached and was not taken over yet.
    external: Mutex<Option<ExternalNf>>,
}

/// The process of an external NF.
#[derive(Debug)]
pub struct ExternalNf {
    /// The socket to it.
    pub socket: Socket,
    /// Its pidfd, which stays valid when another process gets its process id.
    pub pidfd: OwnedFd,
    /// The hello message that it sent.
    pub hello: Hello,
}

/// The state of the process apart from its packets.
#[derive(Clone, Debug, Default)]
pub struct InstanceStatus {
    /// The hello message that it sent.
    pub hello: Arc<Hello>,
    /// The page of its counters.
    pub page: Option<Arc<Page>>,
    /// Why the last start failed.
    pub failure: Option<String>,
    /// Whether any start failed.
    pub has_failed: bool,
    /// Why the first start failed, of an NF that the host starts and that was never ready.
    pub refusal: Option<String>,
    /// Its warnings, each once.
    pub warnings: Vec<String>,
    /// Sentences about the isolation of the process: which parts are enforced and which are not.
    pub isolation: Vec<String>,
    /// The parts of the isolation that are not enforced.
    pub not_enforced: Vec<String>,
    /// Why a tap receives copies, if it does.
    pub why_copies: Option<String>,
}

impl Instance {
    /// An instance for an NF of a worker; `number` must be unique in the supervisor.
    pub fn new(spec: NfSpec, worker: usize, number: u32, memory: Arc<OnceLock<Memory>>) -> Instance {
        Instance { spec, worker, number, memory, ..Instance::default() }
    }

    /// The instance with L3 interfaces whose neighbours it may request.
    #[must_use]
    pub fn beside(self, l3_interfaces: Vec<Option<Arc<Interface>>>) -> Instance {
        Instance { l3_interfaces, ..self }
    }

    /// The instance as a member of a direct-path group; registers it in the group.
    #[must_use]
    pub fn in_group(self, group: Arc<DirectGroup>, member: u8) -> Instance {
        group.set_member(member, Arc::clone(&self.member));
        Instance { direct_group: Some((group, member)), ..self }
    }

    /// Its number as a holder of slots.
    pub fn holder(&self) -> Option<u16> {
        let next = || self.memory.get()?.holder();
        match &self.direct_group {
            Some((group, _)) => group.holder(next),
            None => *self.holder.get_or_init(next),
        }
    }

    /// Queues a message with a descriptor, which the supervisor sends to the process. Called by the link.
    pub fn say(&self, message: ToNf, descriptor: OwnedFd) {
        lock(&self.to_say).push((message, descriptor));
    }

    /// Takes the messages that are queued for the process. Called by the supervisor.
    pub fn take_to_say(&self) -> Vec<(ToNf, OwnedFd)> {
        std::mem::take(&mut *lock(&self.to_say))
    }

    /// The state of the NF.
    pub fn state(&self) -> NfState {
        let all = [NfState::Stopped, NfState::Down, NfState::Starting, NfState::Up, NfState::Ending];
        let number = self.state.load(Ordering::Acquire);
        all.into_iter().find(|state| *state as u8 == number).unwrap_or(NfState::Stopped)
    }

    /// Sets the state of the NF. Called by the supervisor.
    pub fn set_state(&self, state: NfState) {
        if self.state.swap(state as u8, Ordering::AcqRel) != state as u8 {
            tracing::info!("NF `{}` is {}", self.spec.name, state.name());
        }
    }

    /// Sets the state of an NF that has no process, and returns whether one should run. It is read once: with
    /// the state `Stopped` published, another thread may want a process again, and that one does not wait.
    pub fn set_down(&self) -> bool {
        let wanted = self.is_wanted();
        self.set_has_script(false);
        self.set_state(if wanted { NfState::Down } else { NfState::Stopped });
        wanted
    }

    /// Whether a process should run.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Sets whether a process should run.
    pub fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
    }

    /// The process id; 0 when there is no process.
    pub fn pid(&self) -> u64 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Sets the process id.
    pub fn set_pid(&self, pid: u64) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// The number of restarts.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Counts a restart.
    pub fn count_restart(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// The instance for a check: its NF is asked whether it would run.
    #[must_use]
    pub fn for_check(self) -> Instance {
        Instance { is_check: true, ..self }
    }

    /// Notes that a process is ready.
    pub(crate) fn set_was_up(&self) {
        self.was_up.store(true, Ordering::Relaxed);
    }

    /// Whether a process has been ready.
    pub fn was_up(&self) -> bool {
        self.was_up.load(Ordering::Relaxed)
    }

    /// Whether no process of it was ever ready, and it was said why.
    pub(crate) fn never_ran(&self) -> bool {
        !self.was_up() && self.status().has_failed
    }

    /// Why its NF does not run at all: it refused its configuration, or its program is no NF. `None` once a
    /// process has been ready, and for an NF that attaches by itself.
    pub fn refusal(&self) -> Option<String> {
        self.status().refusal.clone()
    }

    /// Notes why a start failed.
    pub(crate) fn set_failure(&self, why: &str) {
        let mut status = self.status();
        (status.failure, status.has_failed) = (Some(why.into()), true);
    }

    /// Notes that the NF itself, or the system, refuses to run it: another start would end alike.
    pub(crate) fn set_refusal(&self, why: &str) {
        self.set_failure(why);
        if !self.was_up() && self.spec.command.is_some() {
            self.status().refusal.get_or_insert_with(|| why.into());
        }
    }

    /// Sets whether its start has failed too often. Called by the supervisor.
    pub fn set_hopeless(&self, hopeless: bool) {
        self.hopeless.store(hopeless, Ordering::Relaxed);
    }

    /// Whether a process is about to start, of an NF that the host starts.
    pub fn is_coming(&self) -> bool {
        self.is_wanted()
            && self.spec.command.is_some()
            && matches!(self.state(), NfState::Down | NfState::Starting | NfState::Up)
            && !self.hopeless.load(Ordering::Relaxed)
    }

    /// Counts a drop for a reason that the NF named, by its number. Called by the link.
    #[inline]
    pub fn count_drop(&self, reason: usize) {
        if let Some(count) = self.drops.get(reason).or(self.drops.first()) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Drops by the NF's own reasons; reasons without a drop are omitted.
    pub fn drops(&self) -> Vec<(String, u64)> {
        let hello = Arc::clone(&self.status().hello);
        let named = std::iter::once(UNSTATED).chain(hello.reasons.iter().map(String::as_str));
        let counted =
            named.zip(&self.drops).map(|(name, count)| (name.into(), count.load(Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The NF's own counters.
    pub fn counters(&self) -> Vec<(String, u64)> {
        let status = self.status();
        let value = |number| status.page.as_ref().map_or(0, |page| page.load(FIRST_COUNTER + number));
        status.hello.counters.iter().enumerate().map(|(number, name)| (name.clone(), value(number))).collect()
    }

    /// Offers an external NF, which the instance accepts if it has no process.
    ///
    /// # Errors
    ///
    /// When the host starts this NF itself, when the NF is stopped, or when it has a process.
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

    /// Takes the external NF that waits.
    pub fn take_external(&self) -> Option<ExternalNf> {
        lock(&self.external).take()
    }

    /// Whether the NF has requested the end of the run.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Sets that the NF has requested the end of the run.
    pub fn set_over(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether a script of the NF holds the run: it runs or waits for a time, and has not requested the end.
    pub fn holds_run(&self) -> bool {
        self.has_script.load(Ordering::Relaxed) && !self.is_over()
    }

    /// Sets whether a script in its process runs or waits for a time.
    pub fn set_has_script(&self, has_script: bool) {
        self.has_script.store(has_script, Ordering::Relaxed);
    }

    /// Locks the status of the process.
    pub fn status(&self) -> MutexGuard<'_, InstanceStatus> {
        lock(&self.status)
    }

    /// Stores a warning, unless it is already stored.
    pub fn tell(&self, warning: String) {
        let mut status = self.status();
        if !status.warnings.contains(&warning) {
            tracing::info!("{warning}");
            status.warnings.push(warning);
        }
    }

    /// Passes a session to the link. Called by the supervisor.
    pub fn hand_over(&self, session: NfSession) {
        // Messages for the last session are not for this one.
        self.take_to_say();
        self.member.take_eviction();
        *lock(&self.came) = Some(session);
        self.unreclaimed.store(true, Ordering::Release);
        self.changes.fetch_or(CAME, Ordering::Release);
    }

    /// Reports that the process has ended entirely. Called by the supervisor.
    pub fn report_gone(&self) {
        self.changes.fetch_or(GONE, Ordering::Release);
    }

    /// Whether a new or an ended session waits for the link.
    #[inline]
    pub fn has_events(&self) -> bool {
        self.changes.load(Ordering::Relaxed) != 0
    }

    /// Takes the new session, if any, and whether the last one ended, since the last call. Called by the
    /// link.
    pub fn take_events(&self) -> (Option<NfSession>, bool) {
        let events = self.changes.swap(0, Ordering::AcqRel);
        let came = lock(&self.came).take();
        (came, events & GONE != 0)
    }

    /// Reports that the packets of the last process are reclaimed. Called by the link.
    pub fn report_buried(&self) {
        self.unreclaimed.store(false, Ordering::Release);
    }

    /// Whether the packets of the last process are reclaimed.
    pub fn is_buried(&self) -> bool {
        !self.unreclaimed.load(Ordering::Acquire)
    }
}
