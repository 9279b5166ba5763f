//! How the process of an NF is started, and welcomed: what it gets, and what keeps it to its rights.

use super::memory::RING_CLAIMS;
use super::party::Way;
use super::seat::{Incarnation, Rights, Rings, Seat, Visitor};
use super::supervisor::{Body, Process};
use super::{container, find_program, log, peer};
use confine::{Confinement, Sockets};
use nf::handler::MOST_HANDLERS;
use nf::message::{
    Hello, MOST_COUNTERS, MOST_REASONS, OwnAddress, PROTOCOL, Party, StationFacts, ToNf, Welcome,
};
use nf::socket::Socket;
use port::interface::Interface;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use shm::descriptor::LAYOUT_VERSION;
use shm::lend::Lender;
use shm::page::Page;
use shm::ring::RingFile;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The characters of a name that an NF gives.
const NAME_CHARACTERS: usize = 64;

/// Held while a process is started: descriptors that are meant for one must not reach another.
static STARTING: Mutex<()> = Mutex::new(());

/// What a start gives: a process, and the thread that reads what it writes.
pub(super) type Start = Result<(Process, JoinHandle<()>), String>;

/// Starts the process of a seat, with a socket to it for its standard input.
pub(super) fn spawn(seat: &Arc<Seat>) -> Start {
    let name = &seat.spec.name;
    let failed = |what: &str, why: &dyn std::fmt::Display| format!("NF `{name}`: cannot {what}: {why}");
    let Some(command) = &seat.spec.command else {
        return Err(failed("start", &"there is no program"));
    };
    if let Some(container) = seat.spec.terms.container {
        return container::spawn(seat, command, container);
    }
    let (ours, theirs) = Socket::pair().map_err(|error| failed("make a socket", &error))?;
    let _one = alone();
    let (output, log) = log::pipe(Arc::clone(seat)).map_err(|error| failed("share output", &error))?;
    let errors = output.try_clone().map_err(|error| failed("share output", &error))?;
    // By a descriptor of the file: the user that the NF runs as may not be let through the folders above it.
    let shown = command.program.display();
    let path = find_program(&command.program).ok_or_else(|| failed("start", &"there is no such program"))?;
    let file = rustix::fs::open(&path, OFlags::PATH, Mode::empty());
    let file = file.map_err(|error| failed(&format!("start {shown}"), &error))?;
    let mut start = std::process::Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    start.arg0(&command.program).args(&command.arguments);
    start.stdin(Stdio::from(theirs.into_fd())).stdout(output).stderr(errors);
    if !command.folder.as_os_str().is_empty() {
        start.current_dir(&command.folder);
    }
    if seat.spec.terms.rights.is_some() {
        start.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_for_all(name)));
    }
    start.env(nf::ENVIRONMENT, "fd:0");
    let failed = |why: &dyn std::fmt::Display| failed(&format!("start {shown}"), why);
    let (body, pid) = match &seat.spec.terms.rights {
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
        let missing =
            applied.missing().map(|measure| format!("{}: {}", measure.mechanism.name(), measure.text));
        told.not_enforced = missing.collect();
    } else {
        told.isolation = vec!["none: the chain file says `confine = false`".into()];
    }
    drop(told);
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pidfd = raw.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    if !seat.spec.terms.cores.is_empty() {
        let mut cores = rustix::thread::CpuSet::new();
        let known = seat.spec.terms.cores.iter().filter(|core| **core < rustix::thread::CpuSet::MAX_CPU);
        known.for_each(|core| cores.set(*core));
        if let Err(error) = rustix::thread::sched_setaffinity(raw, &cores) {
            seat.tell(format!("NF `{name}` runs on any core, not on those in `cores`: {error}"));
        }
    }
    Ok((Process::new(body, pid, pidfd, ours), log))
}

/// Nothing that is open now stays open in a program that is started while this is held, also nothing of driver
/// libraries; and nobody else starts one.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    let one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    close_on_exec();
    one
}

/// Whether a variable of this process's environment is for confined programs, too: others may hold secrets.
pub(super) fn is_for_all(name: &std::ffi::OsStr) -> bool {
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
const EVEN_SHARE: u32 = 100;
/// The first of the user ids that NFs run as: above those of people, services and user namespaces.
pub(super) const FIRST_USER: u32 = 1_000_000_000;

/// A user id that no other NF of this machine has, as far as its host can tell: by the host's number and the seat's.
pub(super) fn user(seat: &Seat) -> u32 {
    FIRST_USER + std::process::id() % 1_000_000 * 1_000 + seat.number % 1_000
}

/// Takes in a process that came by itself.
pub(super) fn receive(visitor: Visitor) -> Result<(Process, Option<Hello>), String> {
    let Visitor { socket, pidfd, hello } = visitor;
    let pid = peer::number(&pidfd).ok_or("the process that came has ended")?;
    Ok((Process::new(Body::Visitor, u64::from(pid), Some(pidfd), socket), Some(hello)))
}

/// Looks at what an NF says of itself, makes its rings, and sends it what it works on.
pub(super) fn welcome(seat: &Seat, socket: &Socket, mut hello: Hello) -> Result<Incarnation, String> {
    if hello.protocol != PROTOCOL {
        return Err(format!(
            "it speaks version {} of the attach protocol and this host version {PROTOCOL}: build it with the SDK of \
             this release",
            hello.protocol
        ));
    }
    hello.reasons.truncate(MOST_REASONS - 1);
    hello.counters.truncate(MOST_COUNTERS);
    hello.handlers.retain(|handler| is_name(&handler.name));
    hello.handlers.truncate(MOST_HANDLERS);
    let Hello { kind, sdk, reasons, counters, .. } = &mut hello;
    for name in [kind, sdk].into_iter().chain(reasons).chain(counters) {
        *name = log::plain(name).chars().take(NAME_CHARACTERS).collect();
    }
    let memory = seat.memory.get().ok_or("there is no packet memory to share")?;
    let holder = seat.holder().ok_or("there are too many NFs")?;
    let rings = Rings::create(RING_CLAIMS).map_err(|error| error.to_string())?;
    let page = Page::create().map_err(|error| error.to_string())?;
    let [to, from, grants] = rings.rings();
    let lender = Lender::new(to, from, holder, memory.region.number());
    let lender = lender.with_grants(grants).limited_to(memory.quota).holding_at_most(memory.quota);
    // What an observer says of packets has no effect, so that it needs no block to say it in.
    let lender = lender.with_metadata(hello.metadata && !seat.spec.terms.observes());
    let (lender, party) = match &seat.party {
        Some((party, member)) => {
            let lender = lender.in_party(*member, party.inside(memory.quota));
            (lender, Some((party, *member, exits(party, *member)?, party.notes(memory.region.slots())?)))
        }
        None => (lender, None),
    };
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
        writable: !spec.terms.observes(),
        inputs: spec.inputs.clone(),
        outputs: spec.outputs.clone(),
        stations: seat.stations.iter().map(|station| station.as_deref().and_then(facts)).collect(),
        config_bytes: spec.config.len(),
        party: party.as_ref().map(|(_, member, exits, _)| Party {
            member: *member,
            claims: RING_CLAIMS,
            outputs: exits.iter().map(|(way, _)| way.from.1).collect(),
        }),
    };
    let for_reading = if spec.terms.observes() { Some(memory.region.for_reading()) } else { None };
    let for_reading = for_reading.transpose().map_err(|error| error.to_string())?;
    let region = for_reading.as_ref().map_or(memory.region.as_fd(), AsFd::as_fd);
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![region, rings.as_fd(), page.as_fd()];
    descriptors.extend(config.as_ref().map(AsFd::as_fd));
    if let Some((_, _, exits, notes)) = &party {
        descriptors.push(notes.as_fd());
        descriptors.extend(exits.iter().map(|(_, ring)| ring.as_fd()));
    }
    socket.send(&ToNf::Welcome(welcome), &descriptors).map_err(|error| error.to_string())?;
    let exits = party.map(|(_, _, exits, _)| exits).unwrap_or_default();
    let exits = exits.into_iter().map(|(way, ring)| (way.number, ring)).collect();
    Ok(Incarnation { lender, page: Arc::new(page), hello: Arc::new(hello), rings, exits })
}

/// What an NF is told of what is behind an interface.
fn facts(station: &Interface) -> Option<StationFacts> {
    let addresses = station.addresses().iter().map(|own| OwnAddress { ip: own.ip, len: own.len }).collect();
    Some(StationFacts { mac: station.mac()?.to_string(), addresses })
}

/// Whether a handler may be called so.
fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !name.is_empty() && name.len() <= NAME_CHARACTERS && name.bytes().all(is_fine)
}

/// New rings for the ways that a member writes into.
fn exits(party: &super::party::Party, member: u8) -> Result<Vec<(&Arc<Way>, RingFile<1>)>, String> {
    let mine = party.ways.iter().filter(|way| way.from.0 == member);
    let ring = |way| Ok((way, RingFile::create(RING_CLAIMS).map_err(|error| error.to_string())?));
    mine.map(ring).collect()
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
