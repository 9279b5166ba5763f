//! The host's side of an NF in a process of its own.

use super::{Command, READY, RING_CLAIMS, Rings};
use element::nf::{Backs, Fate, NfLink};
use rustix::fd::{AsFd, AsRawFd};
use rustix::process::Signal;
use shm::Packet;
use shm::lend::{GRANT, Lender, Loans, Verdict};
use shm::region::Region;
use shm::ring::{Action, Mapped};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long a process may take until it is ready.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a process may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// Bad claims after which an NF is ended.
const MOST_BAD: u64 = 1024;
/// Empty slots that an NF has for packets that it makes.
const GRANTS: usize = 512;
/// The shortest and the longest wait before a process is started anew; each failure doubles it.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// A process that lived so long did not fail at its start.
const LONG_LIFE: Duration = Duration::from_millis(100);

/// Held while a process is started.
static STARTING: Mutex<()> = Mutex::new(());

/// Packet memory that is lent out of, known once the chain's pool is made.
#[derive(Debug)]
pub struct Memory {
    region: Arc<Region>,
    loans: Loans,
    /// The last number of a holder that was given; 0 is the host.
    holders: AtomicU16,
    /// Packets that one NF may hold.
    most: u64,
}

impl Memory {
    /// Of a region that packets lie in, shared by so many NFs.
    pub fn new(region: Arc<Region>, nfs: usize) -> Memory {
        let loans = Loans::new(region.slots());
        // No NF may hold so much that others get none.
        let share = u64::from(region.slots()) / (2 * nfs.max(1) as u64);
        let most = share.clamp(64, 4 * u64::from(RING_CLAIMS));
        Memory { region, loans, holders: AtomicU16::new(0), most }
    }

    /// A number for a holder that no other has.
    fn holder(&self) -> Option<u16> {
        let next = |last: u16| last.checked_add(1);
        self.holders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().and_then(next)
    }
}

/// A way to an NF in a process of its own.
pub struct ProcessLink {
    name: String,
    command: Command,
    memory: Arc<OnceLock<Memory>>,
    process: Option<Process>,
    /// Its number as a holder of slots, the same for all its processes: each is buried before the next.
    holder: Option<u16>,
    back_off: Duration,
    /// When to start anew.
    restart_at: Option<Instant>,
    restarts: u64,
    /// Whether to look after the process at the next chance.
    look: bool,
    verdicts: Vec<Verdict>,
    /// Findings, each once, and how many of them were fetched.
    findings: Vec<String>,
    fetched: usize,
}

/// A process, and what it was given.
struct Process {
    child: Child,
    out: ChildStdout,
    lender: Lender<Mapped>,
    since: Instant,
    /// Empty slots that it has.
    granted: usize,
    /// Whether it was ended for what it did.
    evicted: bool,
    _rings: Rings,
}

impl ProcessLink {
    /// To the NF of that name, started by `command`; `memory` is there when packets are.
    pub fn new(name: &str, command: Command, memory: Arc<OnceLock<Memory>>) -> ProcessLink {
        ProcessLink {
            name: name.into(),
            command,
            memory,
            process: None,
            holder: None,
            back_off: BACK_OFF.0,
            restart_at: None,
            restarts: 0,
            look: false,
            // A whole ring at a time: what is lent in a turn comes back in one.
            verdicts: vec![Verdict::default(); RING_CLAIMS as usize],
            findings: vec![],
            fetched: 0,
        }
    }

    fn spawn(&mut self) -> Result<Process, String> {
        let failed =
            |what: &str, why: &dyn std::fmt::Display| format!("NF `{}`: cannot {what}: {why}", self.name);
        let memory =
            self.memory.get().ok_or_else(|| failed("start", &"there is no packet memory to share"))?;
        let Some(holder) = self.holder.or_else(|| memory.holder()) else {
            return Err(failed("start", &"there are too many NFs"));
        };
        self.holder = Some(holder);
        let rings = Rings::create(RING_CLAIMS).map_err(|error| failed("make rings", &error))?;
        // Nothing else stays open in the new program, also nothing of driver libraries; and one start at a time,
        // so that no other one gets the copies that do.
        let _one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        close_on_exec();
        let copy = |fd: rustix::fd::BorrowedFd<'_>| {
            rustix::io::dup(fd).map_err(|error| failed("share memory", &error))
        };
        let (region_fd, rings_fd) = (copy(memory.region.as_fd())?, copy(rings.as_fd())?);
        let mut child = std::process::Command::new(&self.command.program)
            .args(&self.command.arguments)
            .args(["--region", &region_fd.as_raw_fd().to_string()])
            .args(["--slots", &memory.region.slots().to_string()])
            .args(["--rings", &rings_fd.as_raw_fd().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("start {}", self.command.program.display()), &error))?;
        let out = child.stdout.take().ok_or_else(|| failed("hear", &"no pipe"))?;
        let [to, from, grants] = rings.rings();
        let lender = Lender::new(to, from, holder, memory.region.number());
        // Elements work with annotations and header offsets.
        let lender = lender.with_grants(grants).limited_to(memory.most).with_metadata(true);
        Ok(Process { child, out, lender, since: Instant::now(), granted: 0, evicted: false, _rings: rings })
    }

    /// Collects everything that a process held that runs no more.
    fn bury(&mut self, mut process: Process, out: &mut Backs) {
        let Some(memory) = self.memory.get() else { return };
        let estate = process.lender.bury(&memory.loans);
        estate.returned.iter().for_each(|(packet, verdict)| out.push(packet, fate(verdict)));
        for (lent, fate) in [(&estate.untouched, Fate::NotTaken), (&estate.lost, Fate::Lost)] {
            let fate = |granted| if granted { Fate::Unused } else { fate };
            lent.iter().for_each(|lent| out.push(&lent.packet, fate(lent.granted)));
        }
    }

    /// Buries a process that ended, and starts another one in a while.
    #[cold]
    fn look_after(&mut self, out: &mut Backs) {
        self.look = false;
        if self.process.as_mut().is_some_and(|process| !matches!(process.child.try_wait(), Ok(None)))
            && let Some(process) = self.process.take()
        {
            if process.since.elapsed() >= LONG_LIFE {
                self.back_off = BACK_OFF.0;
            }
            self.bury(process, out);
            self.restart_later();
        }
        if self.restart_at.is_some_and(|at| Instant::now() >= at) {
            self.restart_at = None;
            match self.spawn() {
                Ok(process) => {
                    self.process = Some(process);
                    self.restarts += 1;
                }
                Err(why) => {
                    self.tell(why);
                    self.restart_later();
                }
            }
        }
    }

    /// Has a process started in a while, each time a longer one.
    fn restart_later(&mut self) {
        self.restart_at = Some(Instant::now() + self.back_off);
        self.back_off = (2 * self.back_off).min(BACK_OFF.1);
    }

    /// Lends packets with a number for the NF; how many of the list.
    fn lend_as(&mut self, destination: u16, packets: &[Packet], list: &[u16]) -> usize {
        let (Some(process), Some(memory)) = (&mut self.process, self.memory.get()) else { return 0 };
        if process.evicted {
            return 0;
        }
        match process.lender.lend(&memory.loans, packets, list, destination) {
            Ok((lent, _)) => lent,
            Err(_) => {
                self.evict("broke its rings");
                0
            }
        }
    }

    /// An NF whose indices cannot be is ended: what it does with packets is anybody's guess.
    #[cold]
    fn evict(&mut self, what: &str) {
        self.look = true;
        if let Some(process) = self.process.as_mut().filter(|process| !process.evicted) {
            process.evicted = true;
            let _ = process.child.kill();
            self.tell(format!("NF `{}` {what} and was ended", self.name));
        }
    }

    /// Notes a finding, the first time.
    fn tell(&mut self, finding: String) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// Has every descriptor of this process that is open now, but for the standard ones, closed in programs that it
/// starts.
#[expect(unsafe_code, reason = "there is no safe function for this system call")]
fn close_on_exec() {
    // SAFETY: marks descriptors, and closes none here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// What becomes of a packet that an NF gave back.
fn fate(verdict: &Verdict) -> Fate {
    let output = usize::from(verdict.destination);
    match (verdict.action, verdict.granted) {
        (Action::Emit, false) => Fate::Output(output),
        (Action::Emit, true) => Fate::Made(output),
        // Nothing here keeps packets for an NF.
        (Action::Drop | Action::Hold, false) => Fate::Dropped,
        (Action::Drop | Action::Hold, true) => Fate::Unused,
    }
}

/// Takes back what a process gave; how many granted slots are among it, and whether its rings are sound.
fn take_back(
    lender: &mut Lender<Mapped>,
    loans: &Loans,
    verdicts: &mut [Verdict],
    out: &mut Backs,
) -> (usize, bool) {
    let (mut granted, mut is_sound) = (0, true);
    out.fill(verdicts.len(), |packets| {
        let (count, sound) = lender.take_back(loans, packets, verdicts);
        let verdicts = &verdicts[..count];
        granted = verdicts.iter().filter(|verdict| verdict.granted).count();
        is_sound = sound.is_ok();
        verdicts.iter().map(fate)
    });
    (granted, is_sound)
}

/// How the start of a process went.
enum Started {
    Ready,
    /// It ended before it was ready.
    Ended,
    /// It takes too long.
    Late,
}

/// Waits for the byte that says that a process is ready.
fn await_ready(process: &mut Process) -> Started {
    let mut poll = [rustix::event::PollFd::new(&process.out, rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec::try_from(PATIENCE).ok();
    if !rustix::event::poll(&mut poll, patience.as_ref()).is_ok_and(|ready| ready > 0) {
        return Started::Late;
    }
    let mut byte = [0];
    let ready = process.out.read_exact(&mut byte).is_ok() && byte == [READY];
    if ready { Started::Ready } else { Started::Ended }
}

impl NfLink for ProcessLink {
    fn start(&mut self) -> Result<(), String> {
        let mut process = self.spawn()?;
        let started = await_ready(&mut process);
        if matches!(started, Started::Late) {
            let _ = process.child.kill();
        }
        if !matches!(started, Started::Ready) {
            let status = process.child.wait();
            self.restart_later();
            // Killed by somebody: as at any other moment.
            let killed = status.as_ref().is_ok_and(|status| status.signal().is_some());
            if killed && matches!(started, Started::Ended) {
                return Ok(());
            }
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("NF `{}` does not run ({status}); its process says why", self.name));
        }
        self.process = Some(process);
        Ok(())
    }

    fn is_up(&self) -> bool {
        self.process.is_some()
    }

    fn lend(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize {
        self.lend_as(input as u16, packets, list)
    }

    fn grants_wanted(&self) -> usize {
        let most = self.memory.get().map_or(0, |memory| GRANTS.min(memory.region.slots() as usize / 8));
        self.process.as_ref().map_or(0, |process| most.saturating_sub(process.granted))
    }

    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize {
        let granted = self.lend_as(GRANT, packets, list);
        if let Some(process) = &mut self.process {
            process.granted += granted;
        }
        granted
    }

    fn collect(&mut self, out: &mut Backs) {
        if self.look {
            self.look_after(out);
        }
        let (Some(process), Some(memory)) = (&mut self.process, self.memory.get()) else { return };
        let (granted, sound) = take_back(&mut process.lender, &memory.loans, &mut self.verdicts, out);
        process.granted = process.granted.saturating_sub(granted);
        if process.lender.bad_claims() > MOST_BAD {
            self.evict("claimed packets that it does not have");
        } else if !sound {
            self.evict("broke its rings");
        }
    }

    fn tick(&mut self) {
        self.look = true;
    }

    fn stop(&mut self, out: &mut Backs) {
        if self.restart_at.take().is_some() {
            self.tell(format!("NF `{}` was down when the run ended", self.name));
        }
        let Some(mut process) = self.process.take() else { return };
        let pid = rustix::process::Pid::from_child(&process.child);
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let end = Instant::now() + GRACE;
        while matches!(process.child.try_wait(), Ok(None)) {
            if Instant::now() >= end {
                let _ = process.child.kill();
                let _ = process.child.wait();
                break;
            }
            // It may wait for room in the ring.
            if let Some(memory) = self.memory.get() {
                take_back(&mut process.lender, &memory.loans, &mut self.verdicts, out);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        self.bury(process, out);
    }

    fn take_findings(&mut self) -> Vec<String> {
        let new = self.findings[self.fetched..].to_vec();
        self.fetched = self.findings.len();
        new
    }

    fn restarts(&self) -> u64 {
        self.restarts
    }
}

impl Drop for ProcessLink {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// Of a chain that is not run.
pub struct NoLink;

impl NfLink for NoLink {
    fn start(&mut self) -> Result<(), String> {
        Err("processes of NFs are not started here".into())
    }

    fn is_up(&self) -> bool {
        false
    }

    fn lend(&mut self, _input: usize, _packets: &[Packet], _list: &[u16]) -> usize {
        0
    }

    fn grants_wanted(&self) -> usize {
        0
    }

    fn grant(&mut self, _packets: &[Packet], _list: &[u16]) -> usize {
        0
    }

    fn collect(&mut self, _out: &mut Backs) {}

    fn tick(&mut self) {}

    fn stop(&mut self, _out: &mut Backs) {}

    fn take_findings(&mut self) -> Vec<String> {
        vec![]
    }

    fn restarts(&self) -> u64 {
        0
    }
}
