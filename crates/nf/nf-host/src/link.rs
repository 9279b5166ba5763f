//! The worker's side of an NF in a process of its own: it enqueues packets, takes completions, and reclaims
//! the packets of an NF that died.
//!
//! The supervisor manages the processes. The link and the supervisor share an [`Instance`].

use crate::boundary::Boundary;
use crate::direct_group::{DirectGroup, DirectRing};
use crate::doorbell::Doorbell;
use crate::instance::{Instance, NfSession, NfState};
use crate::log::NfOutput;
use crate::member::lock;
use crate::process::READY_PATIENCE;
use crate::rings::RING_CLAIMS;
use chain::{Access, WhenDown, opposite_output};
use element::nf::{Completions, NfLink};
use nf::message::ToNf;
use shm::Packet;
use shm::channel::{ChannelStats, Completion, GRANT, HostEnd, InFlightTable};
use shm::ring::{Consumer, Culprit, Mapped};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the link waits for an NF before it reports this.
const SAY_AFTER: Duration = Duration::from_secs(2);
/// How long the link waits for an NF to become ready.
const START_PATIENCE: Duration = Duration::from_secs(21);
/// How long the supervisor may take to end an NF: longer than its own grace period.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Bad descriptors after which an NF is evicted.
const MOST_BAD: u64 = 1024;
/// Completions that are taken at a time: a whole ring, because all packets of a turn may be returned at once.
const MOST_BACK: usize = RING_CLAIMS as usize;
/// Descriptors that are taken at a time from a ring that has no writer any more.
const BURST: usize = 64;
/// Empty slots that are granted to an NF that makes packets.
const GRANTS: usize = 512;

/// The channel to an NF in a process of its own.
pub struct ProcessLink {
    instance: Arc<Instance>,
    /// `None` where nobody listens.
    doorbell: Option<Doorbell>,
    /// Set when the whole run is to end: no link waits for its NF then.
    interrupted: Arc<AtomicBool>,
    current: Option<NfSession>,
    /// The trust boundary that packets cross as copies, and the number of copies.
    boundary: Option<Arc<Mutex<Boundary>>>,
    copied: u64,
    /// Whether the packets that were enqueued last are shown in place and not copied.
    shared: bool,
    /// For each direct ring to this NF, the packets that the in-flight table has recorded.
    came: Vec<u64>,
    /// Whether the last packets for the NF did not all find room in its ring.
    refused: bool,
    /// Empty slots that the NF holds.
    granted: usize,
    /// Whether the NF was evicted.
    evicted: bool,
    /// The output opposite each input.
    across: Vec<Option<usize>>,
    /// How many of the instance's warnings were fetched.
    fetched: usize,
    /// Bad descriptors of earlier processes.
    bad: [u64; BAD.len()],
}

impl ProcessLink {
    /// Whether the NF that runs said that it makes packets.
    fn makes_packets(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.hello.makes)
    }

    /// A link to the NF of an instance.
    pub fn new(
        instance: Arc<Instance>,
        doorbell: Option<Doorbell>,
        interrupted: Arc<AtomicBool>,
    ) -> ProcessLink {
        let (inputs, outputs) = (&instance.spec.inputs, &instance.spec.outputs);
        let across = (0..inputs.len()).map(|input| opposite_output(inputs, outputs, input)).collect();
        ProcessLink {
            instance,
            doorbell,
            interrupted,
            current: None,
            boundary: None,
            copied: 0,
            shared: false,
            came: vec![],
            refused: false,
            granted: 0,
            evicted: false,
            across,
            fetched: 0,
            bad: [0; BAD.len()],
        }
    }

    /// The link of a chain that does not run: no NF is ever behind it, and none is waited for.
    pub fn to_nothing() -> ProcessLink {
        let instance = Instance::default();
        instance.status().failure = Some("processes of NFs are not started here".into());
        ProcessLink::new(Arc::new(instance), None, Arc::default())
    }

    /// Reports why no packets are passed yet.
    fn say_that_it_waits(&self, most: Duration) {
        let (name, seconds) = (&self.instance.spec.name, most.as_secs_f64().round());
        let line = format!("waiting for NF `{name}`, which is not ready yet: for up to {seconds} s more");
        match self.instance.spec.output {
            NfOutput::Log => self.instance.log.push(format!("-- {line}")),
            // A write error is no reason to end: standard error may have no reader.
            NfOutput::Inherit => drop(writeln!(std::io::stderr(), "millrace: {line}")),
        }
    }

    /// Takes over a new session, and reclaims the packets of an ended one.
    #[cold]
    fn take_events(&mut self, out: &mut Completions) {
        let (came, gone) = self.instance.take_events();
        // A process that started and ended since the last call held no packets; it is still to be reported as
        // reclaimed.
        if let Some(mut came) = came {
            if self.boundary.is_none() {
                self.boundary = self.find_boundary();
            }
            if let Some((group, member)) = &self.instance.direct_group {
                group.set_rings(*member, Some(&came.rings));
                for (number, ring) in came.exits.drain(..) {
                    if let Some(direct) = group.direct_rings.get(usize::from(number)) {
                        direct.begin(ring, came.host_end.has_metadata());
                    }
                }
                self.came = entrances(group, *member).map(|direct| direct.came()).collect();
            }
            self.refused = false;
            (self.current, self.granted, self.evicted) = (Some(came), 0, false);
        }
        if gone {
            self.reclaim(out);
            self.instance.report_buried();
            self.doorbell.iter().for_each(Doorbell::ring);
        }
    }

    /// The trust boundary that packets cross into the memory of the NF's trust group, if that has its own
    /// memory.
    fn find_boundary(&self) -> Option<Arc<Mutex<Boundary>>> {
        let memory = self.instance.memory.get()?;
        let (copies, region) = (memory.copies.as_ref()?, &memory.region);
        let make = || {
            let boundary = Boundary::new(copies, region.slots(), self.instance.spec.terms.observes());
            if memory.is_ports() { boundary.showing(region.number()) } else { boundary }
        };
        Some(match &self.instance.direct_group {
            Some((group, _)) => group.boundary(make),
            None => Arc::new(Mutex::new(make())),
        })
    }

    /// Reclaims all packets of an ended process.
    fn reclaim(&mut self, out: &mut Completions) {
        let (Some(mut current), Some(memory)) = (self.current.take(), self.instance.memory.get()) else {
            return;
        };
        let mut returned = vec![];
        let reclaimed = match &self.instance.direct_group {
            None => current.host_end.reclaim(&memory.in_flight),
            Some((group, member)) => {
                let mut taken = vec![];
                entrances(group, *member).for_each(|direct| direct.take_over(&mut taken));
                for direct in group.direct_rings.iter().filter(|direct| direct.from.0 == *member) {
                    // Packets in a ring to a living NF belong to that NF.
                    let passed = direct.end(|ring| {
                        empty(&mut current.host_end, ring, direct.from.1, &memory.in_flight, &mut returned);
                    });
                    current.host_end.note_passed(0, passed);
                    out.pass(usize::from(direct.from.1), passed as usize);
                }
                group.set_rings(*member, None);
                let others = group.others(*member, &taken, &memory.in_flight);
                let has = |slot: u32| others.get(slot as usize).copied().unwrap_or_default();
                let reclaimed = current.host_end.reclaim_among(&memory.in_flight, has);
                group.forget(*member);
                reclaimed
            }
        };
        let stats = current.host_end.stats();
        self.bad.iter_mut().zip(BAD).for_each(|(sum, bad)| *sum += (bad.count)(&stats));
        self.instance.member.activity.observe(0, 0);
        if self.instance.spec.terms.observes() {
            let unseen = reclaimed.untouched.iter().chain(&reclaimed.lost).filter(|slot| !slot.granted);
            out.miss(unseen.count());
        }
        let mut boundary = self.boundary.as_ref().map(|boundary| lock(boundary));
        for (packet, completion) in returned.into_iter().chain(reclaimed.completions()) {
            note_drop(&self.instance, completion);
            let mut packet = [packet];
            if boundary.as_ref().is_some_and(|boundary| boundary.is_taps()) {
                out.push(&packet[0], Completion::Unused);
            } else if boundary.as_mut().is_none_or(|boundary| boundary.leave(&mut packet, &[completion])) {
                out.push(&packet[0], completion);
            }
        }
    }

    /// Enqueues packets with a destination number for the NF; returns how many of the list were enqueued.
    fn enqueue_as(&mut self, destination: u16, packets: &[Packet], list: &[u16]) -> usize {
        let (Some(current), Some(memory)) = (&mut self.current, self.instance.memory.get()) else { return 0 };
        // An NF that is to end receives no more packets, and returns those that it holds.
        if self.evicted || !self.instance.is_wanted() {
            return 0;
        }
        let asked = list.len();
        // Packets that find no room in the ring are not copied.
        let room =
            if self.boundary.is_some() { current.host_end.room(asked, destination) } else { Ok(asked) };
        let Ok(room) = room else {
            self.evict("broke its rings");
            return 0;
        };
        let mut boundary = self.boundary.as_ref().map(|boundary| lock(boundary));
        let (packets, list) = match &mut boundary {
            Some(boundary) => boundary.cross(packets, &list[..room], &memory.in_flight),
            None => (packets, list),
        };
        let result = current.host_end.enqueue(&memory.in_flight, packets, list, destination);
        let enqueued = result.as_ref().map_or(0, |(enqueued, _)| *enqueued);
        if destination != GRANT {
            self.refused = enqueued < asked;
            match &self.instance.direct_group {
                // The member with the most packets inside the group blocks all others.
                Some((group, _)) if enqueued == 0 && group.is_full() => group.note_crowded(),
                _ if enqueued == 0 => self.instance.member.activity.note_crowded(),
                _ => {}
            }
        }
        if let Some(boundary) = &mut boundary {
            boundary.retract(enqueued);
            self.copied += boundary.take_copied();
            self.shared = boundary.has_shown();
        }
        drop(boundary);
        match result {
            Ok((_, true)) => current.host_end.wake(),
            Ok((_, false)) => {}
            Err(_) => self.evict("broke its rings"),
        }
        enqueued
    }

    /// Ends an NF that wrote impossible indices or too many bad descriptors: its packets cannot be trusted
    /// any more.
    #[cold]
    fn evict(&mut self, what: &str) {
        if !std::mem::replace(&mut self.evicted, true) {
            self.instance.member.evict(what.into());
            self.doorbell.iter().for_each(Doorbell::ring);
        }
    }

    /// Updates the in-flight table for packets that this NF exchanges with others of its direct-path group.
    fn follow_direct(&mut self, out: &mut Completions) {
        let (Some((group, member)), Some(memory)) =
            (self.instance.direct_group.clone(), self.instance.memory.get())
        else {
            return;
        };
        let (mut went, mut is_full, mut sound) = (0, false, true);
        for direct in group.direct_rings.iter().filter(|direct| direct.from.0 == member) {
            let (current, instance) = (&mut self.current, &self.instance);
            let (boundary, copied) = (self.boundary.as_deref(), &mut self.copied);
            let turn = direct.turn(|ring| {
                let Some(current) = current else { return };
                // The host reads the ring only while its reader does not run.
                out.fill(MOST_BACK, |packets, completions| {
                    let (count, taken) = current.host_end.take_from(
                        ring,
                        direct.from.1,
                        &memory.in_flight,
                        packets,
                        completions,
                    );
                    sound &= taken.is_ok();
                    receive(instance, boundary, &mut packets[..count], &mut completions[..count], copied)
                });
            });
            if turn.passed > 0 {
                went += turn.passed;
                out.pass(usize::from(direct.from.1), turn.passed as usize);
            }
            is_full |= direct.pending() >= u64::from(RING_CLAIMS);
            match turn.broken {
                None => {}
                Some(Culprit::Producer) => sound = false,
                Some(Culprit::Consumer) => {
                    if let Some(reader) = group.member(direct.to.0) {
                        reader.evict("broke its rings".into());
                        self.doorbell.iter().for_each(Doorbell::ring);
                    }
                }
            }
        }
        let Some(current) = &mut self.current else { return };
        let mut waiting = 0;
        for (seen, direct) in self.came.iter_mut().zip(entrances(&group, member)) {
            // Packets that wait for room here are older than those in the direct ring, and must be enqueued
            // first.
            if !self.refused
                && self.instance.is_wanted()
                && let Some((file, index)) = direct.open(current.host_end.has_metadata())
            {
                let (number, input, descriptors) = (direct.number, direct.to.1, RING_CLAIMS);
                self.instance.say(ToNf::Direct { ring: number, input, descriptors, index }, file);
                self.doorbell.iter().for_each(Doorbell::ring);
            }
            let came = direct.came();
            current.host_end.note_passed(came - std::mem::replace(seen, came), 0);
            waiting += direct.pending();
        }
        current.host_end.note_passed(0, went);
        let stats = current.host_end.stats();
        // An NF that waits for room at another member is not at fault.
        let held = if is_full { 0 } else { current.host_end.held() + waiting };
        self.instance.member.activity.observe(current.host_end.given_back() + stats.went, held);
        if !sound {
            self.evict("broke its rings");
        }
    }

    /// Takes the completions of the NF.
    fn take_back(&mut self, out: &mut Completions) {
        let (Some(current), Some(memory)) = (&mut self.current, self.instance.memory.get()) else { return };
        let (instance, copied) = (&self.instance, &mut self.copied);
        let boundary = self.boundary.as_deref();
        let (mut granted, mut sound) = (0, true);
        out.fill(MOST_BACK, |packets, completions| {
            let (count, taken) = current.host_end.take_back(&memory.in_flight, packets, completions);
            granted = completions[..count].iter().filter(|completion| completion.is_granted()).count();
            sound = taken.is_ok();
            receive(instance, boundary, &mut packets[..count], &mut completions[..count], copied)
        });
        self.granted = self.granted.saturating_sub(granted);
        if self.instance.direct_group.is_none() {
            self.instance.member.activity.observe(current.host_end.given_back(), current.host_end.held());
        }
        if current.host_end.bad_claims() > MOST_BAD {
            let what = worst(&current.host_end.stats());
            self.evict(what);
        } else if !sound {
            self.evict("broke its rings");
        }
    }
}

/// The direct rings to a member of a direct-path group.
fn entrances(group: &DirectGroup, member: u8) -> impl Iterator<Item = &Arc<DirectRing>> {
    group.direct_rings.iter().filter(move |direct| direct.to.0 == member)
}

/// Counts the drops among the completions, and replaces copies by the originals on the host's side of the
/// trust boundary; returns how many packets continue. Adds the copies that this made to `copied`.
fn receive(
    instance: &Instance,
    boundary: Option<&Mutex<Boundary>>,
    packets: &mut [Packet],
    completions: &mut [Completion],
    copied: &mut u64,
) -> usize {
    completions.iter().for_each(|completion| note_drop(instance, *completion));
    let Some(mut boundary) = boundary.map(lock) else { return packets.len() };
    if boundary.is_taps() {
        completions.fill(Completion::Unused);
        return packets.len();
    }
    let goes_on = boundary.leave(packets, completions);
    *copied += boundary.take_copied();
    if goes_on { packets.len() } else { 0 }
}

/// Takes all descriptors out of a ring whose writer has ended, as far as the index is plausible.
fn empty(
    host_end: &mut HostEnd<Mapped>,
    ring: &mut Consumer<Mapped>,
    output: u16,
    in_flight: &InFlightTable,
    out: &mut Vec<(Packet, Completion)>,
) {
    let (mut packets, mut completions) = ([Packet::EMPTY; BURST], [Completion::default(); BURST]);
    // At most the descriptors that fit into a ring: another process may still write to it.
    for _ in 0..=RING_CLAIMS as usize / BURST {
        let before = ring.index();
        let (count, taken) = host_end.take_from(ring, output, in_flight, &mut packets, &mut completions);
        out.extend(packets.iter().copied().zip(completions).take(count));
        if taken.is_err() || ring.index() == before {
            return;
        }
    }
}

/// A kind of bad descriptors.
struct Bad {
    name: &'static str,
    count: fn(&ChannelStats) -> u64,
    /// The misbehaviour that causes most descriptors of this kind, in words.
    what: &'static str,
}

/// The kinds. The host does not record whether a completed in-flight entry was once of this NF.
const BAD: [Bad; 6] = [
    Bad { name: "out-of-range", count: |stats| stats.out_of_range, what: "claimed slots that there are not" },
    Bad {
        name: "stale",
        count: |stats| stats.stale,
        what: "claimed packets that it had given back already, or never had",
    },
    Bad { name: "not-held", count: |stats| stats.not_held, what: "claimed slots that others have" },
    Bad {
        name: "held-again",
        count: |stats| stats.held_again,
        what: "had packets kept that were kept already",
    },
    Bad {
        name: "held-too-many",
        count: |stats| stats.held_too_many,
        what: "had more packets kept than it may",
    },
    Bad { name: "malformed", count: |stats| stats.malformed, what: "gave packets back as they cannot be" },
];

/// The misbehaviour that caused most of the bad descriptors.
fn worst(stats: &ChannelStats) -> &'static str {
    BAD.iter().max_by_key(|bad| (bad.count)(stats)).map_or("made bad descriptors", |bad| bad.what)
}

/// Counts a drop with the NF's own reason.
#[inline]
fn note_drop(instance: &Instance, completion: Completion) {
    if let Completion::Dropped(reason) = completion {
        instance.count_drop(reason.into());
    }
}

impl NfLink for ProcessLink {
    fn start(&mut self) -> Result<(), String> {
        self.instance.want(true);
        self.doorbell.iter().for_each(Doorbell::ring);
        let start = Instant::now();
        let (end, mut is_logged) = (start + START_PATIENCE, false);
        while !self.instance.has_events() {
            if start.elapsed() > SAY_AFTER && !std::mem::replace(&mut is_logged, true) {
                self.say_that_it_waits(READY_PATIENCE.saturating_sub(start.elapsed()));
            }
            if let Some(why) = self.instance.status().failure.clone() {
                return Err(why);
            }
            // An external NF attaches at any time, and the run does not wait for it.
            let is_ours = self.instance.spec.command.is_some();
            if !is_ours || self.interrupted.load(Ordering::Relaxed) || Instant::now() > end {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        // A process that started and ended meanwhile received no packets.
        self.take_events(&mut Completions::default());
        Ok(())
    }

    fn is_up(&self) -> bool {
        self.current.is_some() && self.instance.is_wanted()
    }

    fn enqueue(&mut self, input: usize, packets: &[Packet], list: &[u16]) -> usize {
        self.enqueue_as(input as u16, packets, list)
    }

    fn grants_wanted(&self) -> usize {
        if !self.makes_packets() {
            return 0;
        }
        // Granted slots count against the NF's quota: half of the quota is kept for received packets.
        let most = self.instance.memory.get().map_or(0, |memory| {
            let quota = usize::try_from(memory.quota).unwrap_or(usize::MAX);
            GRANTS.min(memory.region.slots() as usize / 8).min(quota / 2)
        });
        most.saturating_sub(self.granted)
    }

    fn grant(&mut self, packets: &[Packet], list: &[u16]) -> usize {
        let granted = self.enqueue_as(GRANT, packets, list);
        self.granted += granted;
        granted
    }

    fn collect(&mut self, out: &mut Completions) {
        if self.instance.has_events() {
            self.take_events(out);
        }
        self.take_back(out);
        if self.instance.direct_group.is_some() {
            self.follow_direct(out);
        }
    }

    fn across(&self, input: usize) -> Option<usize> {
        self.across.get(input).copied().flatten()
    }

    fn is_bypassed(&self) -> bool {
        self.instance.spec.terms.when_down == WhenDown::Bypass
    }

    fn observes(&self) -> bool {
        self.instance.spec.terms.observes()
    }

    fn shares(&self) -> bool {
        self.shared
    }

    fn let_share(&mut self, why_not: Option<String>) {
        if self.instance.spec.terms.access == Access::Tap {
            self.instance.status().why_copies = why_not;
        }
    }

    fn waits_when_down(&self) -> bool {
        self.instance.spec.terms.when_down == WhenDown::Hold && self.instance.is_wanted()
    }

    fn is_coming(&self) -> bool {
        self.instance.is_coming()
    }

    fn stop(&mut self, out: &mut Completions) {
        let is_down = matches!(self.instance.state(), NfState::Down | NfState::Starting);
        // That it never ran is said already.
        if self.instance.is_wanted() && is_down && !self.instance.never_ran() {
            self.instance.tell(format!("NF `{}` was down when the run ended", self.instance.spec.name));
        }
        self.instance.want(false);
        self.doorbell.iter().for_each(Doorbell::ring);
        let end = Instant::now() + STOP_PATIENCE;
        while self.instance.state() != NfState::Stopped || self.instance.has_events() {
            // The NF may wait for room in its ring.
            self.collect(out);
            if Instant::now() > end {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        // If the process has not ended, its slots are lost and not reused.
        self.collect(out);
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let status = self.instance.status();
        let new = status.warnings.get(self.fetched..).unwrap_or_default().to_vec();
        self.fetched = status.warnings.len();
        new
    }

    fn is_over(&self) -> bool {
        self.instance.is_over()
    }

    fn holds_run(&self) -> bool {
        self.instance.holds_run()
    }

    fn may_make(&self) -> bool {
        self.is_up() && self.makes_packets()
    }

    fn status(&self, what: &str) -> Option<String> {
        Some(match what {
            "state" => self.instance.state().name().to_string(),
            "restarts" => self.instance.restarts().to_string(),
            "pid" => self.instance.pid().to_string(),
            "kind" => self.instance.status().hello.kind.clone(),
            "copied" => self.copied.to_string(),
            "bad-descriptors" => {
                let stats = self.current.as_ref().map(|current| current.host_end.stats()).unwrap_or_default();
                let all = self.bad.iter().zip(&BAD).map(|(sum, bad)| (bad, sum + (bad.count)(&stats)));
                let some = all.filter(|(_, count)| *count > 0);
                lines(&some.map(|(bad, count)| (bad.name.into(), count)).collect::<Vec<_>>())
            }
            "drops" => lines(&self.instance.drops()),
            "counters" => lines(&self.instance.counters()),
            "neighbours" => {
                let [wanted, refused] =
                    self.instance.neighbours.each_ref().map(|count| count.load(Ordering::Relaxed));
                lines(&[("wanted".into(), wanted), ("refused".into(), refused)])
            }
            _ => return None,
        })
    }
}

/// Formats named numbers, a line for each.
fn lines(named: &[(String, u64)]) -> String {
    named.iter().map(|(name, count)| format!("{name} {count}\n")).collect()
}
