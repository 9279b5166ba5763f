//! A simulation of a direct-path group in one process. Its NFs take, keep, return packets and die at random
//! times. The links must never lose a slot, never take a slot from a living NF, and count each packet once.

use crate::direct_group::{DirectGroup, Stop};
use crate::handshake::welcome;
use crate::instance::{Instance, NfSpec};
use crate::link::ProcessLink;
use crate::memory::Memory;
use crate::process::Launchers;
use crate::supervisor::Supervisor;
use element::nf::{Completions, NfLink};
use nf::ends::{Ends, Received};
use nf::message::{Hello, PROTOCOL, ToNf};
use nf::socket::Socket;
use nf::{Access, Attached, GroupFiles};
use proptest::prelude::*;
use shm::channel::Completion;
use shm::page::Page;
use shm::pool::{Pool, SharedPool};
use shm::ring::{Action, Cells, Mapped, RingFile};
use shm::{HugePages, NativePool, Packet, PacketBytesMut, PacketRegion, RegionOptions};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const MEMBERS: usize = 3;
const SLOTS: u32 = 2048;

/// Direct rings of a chain in both directions.
const RINGS: [(Stop, Stop); 4] = [((0, 1), (1, 0)), ((1, 1), (2, 0)), ((2, 0), (1, 1)), ((1, 0), (0, 1))];

/// A step of the simulation.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The host enqueues packets to an NF.
    Enqueue { member: usize, count: usize },
    /// The worker's turn for an NF.
    Collect { member: usize },
    /// An NF takes packets, and keeps some of them.
    Work { member: usize, keeps: usize, shows: bool, drops: bool },
    /// It returns packets that it kept.
    Give { member: usize, holds: bool },
    /// It receives messages of the host.
    Listen { member: usize },
    /// It ends, and another process takes its place.
    Die { member: usize },
    /// It ends while it has packets in work, before it publishes those that it returned.
    Rip { member: usize },
    /// A process writes a value into memory that NFs share with the host.
    Scribble { member: usize, at: usize, value: u32 },
}

struct Nf {
    ends: Ends,
    ours: Socket,
    kept: Vec<(u16, Received)>,
    /// The shared rings: those with the host, and those that it writes for others.
    rings: Vec<Mapped>,
    notes: Page,
}

struct Lane {
    instance: Arc<Instance>,
    link: ProcessLink,
    nf: Option<Nf>,
    /// The balance of the element's counters: packets in, less those out, passed on, dropped and lost. The
    /// next NF's balance counts packets passed on.
    held: i64,
}

struct Chain {
    lanes: Vec<Lane>,
    pool: NativePool,
    region: Arc<PacketRegion>,
    direct_group: Arc<DirectGroup>,
    /// For each slot, whether an NF has it.
    out: Vec<bool>,
    emitted: u64,
    lost_packets: u64,
    passed: u64,
    /// Whether a process has written over shared memory: NFs may then lose their packets, and be ended.
    hostile: bool,
    _supervisor: Supervisor,
}

impl Chain {
    fn new() -> Chain {
        let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
        let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
        let supervisor = Supervisor::start(Launchers::default()).expect("a thread");
        let group = Arc::new(DirectGroup::new(MEMBERS, &RINGS));
        let memory = Arc::new(OnceLock::new());
        assert!(memory.set(Memory::new(Arc::clone(shared.region()), MEMBERS)).is_ok());
        let lane = |member: usize| {
            let names = || vec!["0".to_string(), "1".into()];
            let spec = NfSpec {
                name: format!("nf{member}"),
                inputs: names(),
                outputs: names(),
                burst: 32,
                ..NfSpec::default()
            };
            let instance = Instance::new(spec, 0, member as u32, Arc::clone(&memory));
            let instance = Arc::new(instance.in_group(Arc::clone(&group), member as u8));
            instance.want(true);
            let link = ProcessLink::new(Arc::clone(&instance), Some(supervisor.doorbell()), Arc::default());
            Lane { instance, link, nf: None, held: 0 }
        };
        let lanes = (0..MEMBERS).map(lane).collect();
        let mut chain = Chain {
            lanes,
            pool: shared.worker(),
            region: Arc::clone(shared.region()),
            direct_group: Arc::clone(&group),
            out: vec![false; SLOTS as usize],
            emitted: 0,
            lost_packets: 0,
            passed: 0,
            hostile: false,
            _supervisor: supervisor,
        };
        (0..MEMBERS).for_each(|member| chain.start(member));
        chain
    }

    /// Starts an NF as its process would, and has the link take it over.
    fn start(&mut self, member: usize) {
        let lane = &mut self.lanes[member];
        let (ours, theirs) = Socket::pair().expect("a socket");
        let hello = Hello { protocol: PROTOCOL, kind: "simulated".into(), ..Hello::default() };
        let session = welcome(&lane.instance, &ours, hello).expect("welcome");
        let (message, files) =
            theirs.receive::<ToNf>(Duration::ZERO).expect("a message").expect("a message now");
        let ToNf::Welcome(welcome) = message else { panic!("{message:?}") };
        let mut files = files.into_iter();
        let mut next = || files.next().expect("a descriptor");
        let region = PacketRegion::attach(next(), welcome.slots, true).expect("memory");
        let rings = RingFile::open(next(), welcome.descriptors).expect("rings");
        let page = Page::open(next()).expect("a page");
        let group = welcome.group.as_ref().expect("a direct-path group");
        let notes = next();
        let shared_notes = notes.try_clone().expect("a descriptor");
        let [notes, shared_notes] =
            [notes, shared_notes].map(|file| Page::open_for(file, welcome.slots as usize).expect("notes"));
        let mut shared: Vec<Mapped> = rings.rings().into();
        let mut ring = |output: &u16| {
            let file: RingFile<1> = RingFile::open(next(), group.descriptors).expect("a ring");
            shared.extend(file.rings());
            (*output, file)
        };
        let outputs = group.outputs.iter().map(&mut ring).collect();
        let files = Some(GroupFiles { member: group.member, notes, outputs });
        let attached = Attached {
            socket: theirs,
            welcome,
            region,
            rings,
            page,
            config: vec![],
            makes: false,
            metadata: false,
            reasons: 1,
            counters: 0,
            group: files,
        };
        let ends = Ends::new(attached);
        lane.nf = Some(Nf { ends, ours, kept: vec![], rings: shared, notes: shared_notes });
        lane.instance.hand_over(session);
        self.collect(member);
    }

    /// The worker's turn: takes completions, and sends messages.
    fn collect(&mut self, member: usize) {
        let mut backs = Completions::default();
        self.lanes[member].link.collect(&mut backs);
        self.settle(member, &backs);
        let lane = &self.lanes[member];
        for (message, file) in lane.instance.take_to_say() {
            // If the process has just ended, no reader is left.
            let _ = lane.nf.as_ref().map(|nf| nf.ours.send(&message, &[file.as_fd()]));
        }
    }

    /// The supervisor's part: ends the NFs that a link evicted.
    fn supervise(&mut self) {
        for member in 0..MEMBERS {
            if let Some(why) = self.lanes[member].instance.member.take_eviction() {
                assert!(self.hostile, "NF {member} {why}");
                self.step(Step::Die { member });
            }
        }
    }

    fn settle(&mut self, member: usize, backs: &Completions) {
        for &(output, count) in backs.passed() {
            self.lanes[member].held -= count as i64;
            let ring = RINGS.iter().find(|(from, _)| *from == (member as u8, output as u16)).expect("a ring");
            self.lanes[usize::from(ring.1.0)].held += count as i64;
            self.passed += count as u64;
        }
        for (completion, packets) in backs.runs() {
            for packet in packets {
                let slot = packet.slot() as usize;
                assert!(std::mem::replace(&mut self.out[slot], false), "slot {slot} came back twice");
                for lane in &self.lanes {
                    let kept = lane.nf.iter().flat_map(|nf| &nf.kept);
                    let mine = kept.filter(|(_, enqueued)| enqueued.slot as usize == slot).count();
                    assert!(
                        self.hostile || mine == 0,
                        "slot {slot} came back as {completion:?} from {member}, and an NF has it"
                    );
                }
            }
            self.lanes[member].held -= packets.len() as i64;
            match completion {
                Completion::Output(output) => {
                    self.emitted += packets.len() as u64;
                    let ring = RINGS.iter().find(|(from, _)| *from == (member as u8, output));
                    // A packet for another output than the ring's leaves the chain here.
                    let next = ring.map(|(_, to)| (usize::from(to.0), usize::from(to.1)));
                    self.enqueue(next, packets);
                }
                _ => {
                    self.lost_packets += packets.len() as u64;
                    self.pool.free_all(packets);
                }
            }
        }
    }

    /// Enqueues packets to an NF, and frees those for which it has no room.
    fn enqueue(&mut self, to: Option<(usize, usize)>, packets: &[Packet]) {
        let list: Vec<u16> = (0..packets.len() as u16).collect();
        let enqueued = to.map_or(0, |(member, input)| {
            let enqueued = self.lanes[member].link.enqueue(input, packets, &list);
            self.lanes[member].held += enqueued as i64;
            enqueued
        });
        packets[..enqueued].iter().for_each(|packet| self.out[packet.slot() as usize] = true);
        self.pool.free_all(&packets[enqueued..]);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Enqueue { member, count } => {
                let mut packets = [Packet::EMPTY; 64];
                let made = self.pool.alloc(&mut packets[..count]);
                for packet in &mut packets[..made] {
                    assert!(packet.put(60));
                    assert!(PacketBytesMut::new(packet).copy_in(0, &[7; 60]));
                }
                self.enqueue(Some((member, member.min(1))), &packets[..made]);
            }
            Step::Collect { member } => {
                self.collect(member);
                self.supervise();
            }
            Step::Scribble { member, at, value } => {
                self.hostile = true;
                let Some(nf) = &mut self.lanes[member].nf else { return };
                let ring = &nf.rings[at % nf.rings.len()];
                let entry = ring.entry((at / 8) as u32);
                match at % 7 {
                    0 => ring.tail().store(value, Relaxed),
                    1 => ring.head().store(value, Relaxed),
                    2 => ring.taken().store(value, Relaxed),
                    3 => ring.tail().store(ring.tail().load(Relaxed).wrapping_add(value % 70), Relaxed),
                    4 => entry[0].store(u64::from(value % SLOTS) | 1 << (32 + value % 4), Relaxed),
                    5 => entry[1].store(u64::from(value) << (at % 32), Relaxed),
                    _ => nf.notes.store(value as usize % SLOTS as usize, u64::from(value) * 0x1_0001),
                }
            }
            Step::Work { member, keeps, shows, drops } => {
                let Some(nf) = &mut self.lanes[member].nf else { return };
                let came: Vec<_> = nf.ends.fetch_all().collect();
                for (at, (input, enqueued)) in came.into_iter().enumerate() {
                    if at < keeps {
                        nf.kept.push((input, enqueued));
                    } else {
                        give(&mut nf.ends, input, &enqueued, drops && at % 5 == 0);
                    }
                }
                if shows {
                    nf.ends.flush();
                }
            }
            Step::Give { member, holds } => {
                let Some(nf) = &mut self.lanes[member].nf else { return };
                for (input, enqueued) in std::mem::take(&mut nf.kept) {
                    if holds && nf.ends.hold(&enqueued) {
                        nf.kept.push((input, enqueued));
                    } else {
                        give(&mut nf.ends, input, &enqueued, false);
                    }
                }
            }
            Step::Listen { member } => {
                let Some(nf) = &mut self.lanes[member].nf else { return };
                nf.ends.listen();
            }
            Step::Rip { member } => {
                self.step(Step::Work { member, keeps: 9, shows: false, drops: true });
                self.step(Step::Die { member });
            }
            Step::Die { member } => {
                if self.lanes[member].nf.take().is_some() {
                    self.lanes[member].instance.report_gone();
                    self.collect(member);
                    assert!(self.lanes[member].instance.is_buried());
                    self.start(member);
                }
            }
        }
    }

    /// Ends the simulation: all NFs return their packets, and then all slots must be free.
    fn end(mut self) {
        for _ in 0..if self.hostile { 20 } else { 200 } {
            for member in 0..MEMBERS {
                self.step(Step::Listen { member });
                self.step(Step::Give { member, holds: false });
                self.step(Step::Work { member, keeps: 0, shows: true, drops: true });
                self.collect(member);
            }
        }
        for member in 0..MEMBERS {
            let nf = self.lanes[member].nf.take();
            assert!(nf.is_some_and(|nf| nf.kept.is_empty()));
            let _ = self.lanes[member].instance.member.take_eviction();
            self.lanes[member].instance.report_gone();
            self.collect(member);
        }
        (0..MEMBERS).for_each(|member| self.collect(member));
        assert!(self.out.iter().all(|out| !out), "slots are with NFs that there are no more");
        assert_eq!(self.pool.available(), self.pool.capacity(), "slots are missing");
        if self.hostile {
            return;
        }
        let held: Vec<i64> = self.lanes.iter().map(|lane| lane.held).collect();
        assert_eq!(held, [0; MEMBERS], "the counters do not balance");
        for lane in &self.lanes {
            assert_eq!(
                lane.link.status("bad-descriptors"),
                Some(String::new()),
                "{}",
                lane.instance.spec.name
            );
        }
        assert!(self.direct_group.direct_rings.iter().all(|ring| ring.pending() == 0));
        assert_eq!(self.region.slots(), SLOTS);
    }
}

/// Sends a packet to the opposite interface, or drops it.
fn give(ends: &mut Ends, input: u16, enqueued: &Received, drops: bool) {
    let (action, output) = if drops { (Action::Drop, 0) } else { (Action::Emit, 1 - input.min(1)) };
    ends.give_received(enqueued, action, output);
}

fn steps(hostile: bool) -> impl Strategy<Value = Vec<Step>> {
    let member = 0..MEMBERS;
    let scribble = (member.clone(), any::<usize>(), any::<u32>())
        .prop_map(|(member, at, value)| Step::Scribble { member, at, value });
    let step = prop_oneof![
        u32::from(hostile) => scribble,
        6 => (member.clone(), 1..64usize).prop_map(|(member, count)| Step::Enqueue { member: member & 2, count }),
        8 => member.clone().prop_map(|member| Step::Collect { member }),
        9 => (member.clone(), 0..70usize, any::<bool>(), any::<bool>())
            .prop_map(|(member, keeps, shows, drops)| Step::Work { member, keeps: keeps % 9, shows, drops }),
        2 => (member.clone(), any::<bool>()).prop_map(|(member, first)| Step::Give {
            member,
            holds: first && member == 1
        }),
        3 => member.clone().prop_map(|member| Step::Listen { member }),
        1 => member.clone().prop_map(|member| Step::Die { member }),
        1 => member.prop_map(|member| Step::Rip { member }),
    ];
    proptest::collection::vec(step, 1..400)
}

#[test]
fn packets_go_from_nf_to_nf() {
    let mut chain = Chain::new();
    for _ in 0..50 {
        chain.step(Step::Enqueue { member: 0, count: 32 });
        for member in 0..MEMBERS {
            chain.step(Step::Listen { member });
            chain.step(Step::Work { member, keeps: 0, shows: true, drops: false });
            chain.collect(member);
        }
    }
    // Packets pass all NFs but the last, from which they leave the chain.
    assert!(chain.passed > 40 * 32 * 2, "{} packets passed", chain.passed);
    assert!(chain.emitted > 40 * 32 && chain.lost_packets == 0, "{} {}", chain.emitted, chain.lost_packets);
    chain.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_taken_from_the_living(steps in steps(false)) {
        let mut chain = Chain::new();
        for step in steps {
            chain.step(step);
        }
        chain.end();
    }

    #[test]
    fn no_slot_is_lost_whatever_anybody_writes(steps in steps(true)) {
        let mut chain = Chain::new();
        for step in steps {
            chain.step(step);
        }
        chain.end();
    }
}
