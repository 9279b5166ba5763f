//! NFs are killed repeatedly, at any moment, or end by themselves at every step of the protocol, with
//! children that continue. After each end every slot is returned to the host, once, and another NF is not
//! affected.
//!
//! `MILLRACE_SOAK_KILLS` is the number of kills (`scripts/soak` for a thousand). Times are printed, and not
//! checked: they mean little on a busy machine.
#![expect(unsafe_code, reason = "the clock that all processes have")]

use chain::Access as NfAccess;
use chain::{Container, ExecutionMode};
use chain::{Rights, Terms};
use container::ContainerLauncher;
use container::runtime::{Installed, Runtime};
use element::nf::{Completions, NfLink};
use nf::ends::FIRST_COUNTER;
use nf_host::direct_group::DirectGroup;
use nf_host::link::ProcessLink;
use nf_host::memory::Memory;
use nf_host::process::Launchers;
use nf_host::{Command, Instance, NfOutput, NfSpec, Supervisor};
use packet::access::Access;
use rustix::process::{Pid, Signal, kill_process};
use shm::channel::Completion;
use shm::descriptor::flag;
use shm::pool::{PacketPool, Pool, SharedPool};
use shm::{HugePages, NativePool, Packet, PacketBytesMut, PacketRegion, RegionOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The number of kills if the environment sets none.
const KILLS: usize = 40;
/// Longer than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Packets that are enqueued at a time, and the most that are in flight.
const BURST: usize = 32;
const UNDER_WAY: usize = 512;
const SLOTS: u32 = 8192;

/// The number of kills.
fn kills() -> usize {
    std::env::var("MILLRACE_SOAK_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

/// Nanoseconds of the clock that all processes share.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time into its argument.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// One NF, and the counts of the packets that were enqueued to it.
struct Lane {
    instance: Arc<Instance>,
    link: ProcessLink,
    backs: Completions,
    /// For each slot, whether the NF holds it.
    enqueued: Vec<bool>,
    under_way: usize,
    passed: u64,
    lost: u64,
}

fn launchers() -> Launchers {
    Launchers::default().with(ExecutionMode::Container, Arc::new(ContainerLauncher))
}

/// Packet memory of NFs that map it.
fn group() -> Arc<OnceLock<Memory>> {
    let memory: Arc<OnceLock<Memory>> = Arc::default();
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    assert!(memory.set(Memory::of_group(1, false, options).expect("memory")).is_ok());
    memory
}

/// A burst of packets of 60 bytes, and how many there are: as many as the pool has slots for.
fn burst(pool: &mut NativePool) -> ([Packet; BURST], usize) {
    let mut packets = [Packet::EMPTY; BURST];
    let made = pool.alloc(&mut packets);
    for packet in &mut packets[..made] {
        assert!(packet.put(60));
        assert!(PacketBytesMut::new(packet).copy_in(0, &[5; 60]));
    }
    (packets, made)
}

impl Lane {
    fn new(
        supervisor: &Supervisor,
        number: u32,
        program: PathBuf,
        argument: &str,
        container: Option<Container>,
    ) -> Lane {
        let instance = Lane::instance(number, program, argument, group(), container);
        Lane::start(supervisor, Arc::new(instance))
    }

    fn instance(
        number: u32,
        program: PathBuf,
        argument: &str,
        memory: Arc<OnceLock<Memory>>,
        container: Option<Container>,
    ) -> Instance {
        let interfaces = || vec!["0".to_string(), "1".to_string()];
        let spec = NfSpec {
            name: format!("nf{number}"),
            command: Some(Command { program, arguments: vec![argument.into()], folder: PathBuf::new() }),
            inputs: interfaces(),
            outputs: interfaces(),
            burst: BURST,
            output: NfOutput::Log,
            terms: Terms { rights: Some(Rights::default()), container, ..Terms::default() },
            ..NfSpec::default()
        };
        Instance::new(spec, 0, number, memory)
    }

    fn start(supervisor: &Supervisor, instance: Arc<Instance>) -> Lane {
        supervisor.add(Arc::clone(&instance));
        let mut link = ProcessLink::new(Arc::clone(&instance), Some(supervisor.doorbell()), Arc::default());
        link.start().unwrap_or_else(|why| panic!("{why}: {:?}", instance.log.lines()));
        let enqueued = vec![false; SLOTS as usize];
        Lane { instance, link, backs: Completions::default(), enqueued, under_way: 0, passed: 0, lost: 0 }
    }

    /// Takes completions, and enqueues more packets; returns how many packets were passed.
    fn turn(&mut self, pool: &mut NativePool, enqueues: bool) -> u64 {
        self.link.collect(&mut self.backs);
        let passed = self.passed;
        self.settle(pool);
        if !enqueues || self.under_way >= UNDER_WAY || !self.link.is_up() {
            return self.passed - passed;
        }
        let (packets, made) = burst(pool);
        let list: Vec<u16> = (0..made as u16).collect();
        let enqueued = self.link.enqueue(0, &packets, &list);
        for packet in &packets[..enqueued] {
            assert!(!std::mem::replace(&mut self.enqueued[packet.slot() as usize], true), "enqueued twice");
        }
        self.under_way += enqueued;
        pool.free_all(&packets[enqueued..made]);
        self.passed - passed
    }

    fn settle(&mut self, pool: &mut NativePool) {
        for (completion, packets) in self.backs.runs() {
            for packet in packets {
                let slot = packet.slot() as usize;
                assert!(std::mem::replace(&mut self.enqueued[slot], false), "slot {slot} came back twice");
            }
            self.under_way -= packets.len();
            match completion {
                Completion::Output(_) => self.passed += packets.len() as u64,
                _ => self.lost += packets.len() as u64,
            }
            pool.free_all(packets);
        }
        self.backs.clear();
    }
}

/// Prints times in milliseconds: the least, the median, the ninth decile, the most.
fn spread(name: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |part: f64| {
        let index = ((times.len() - 1) as f64 * part) as usize;
        times.get(index).map_or(0.0, |ns| *ns as f64 / 1e6)
    };
    if !times.is_empty() {
        let [least, median, most, all] = [0.0, 0.5, 0.9, 1.0].map(at);
        println!(
            "{name}: median {median:.2} ms, from {least:.2} to {all:.2}, nine of ten up to {most:.2} ({} times)",
            times.len()
        );
    }
}

/// The parent of a process.
fn parent(pid: u64) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn no_slot_is_lost_however_an_nf_ends() {
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIP: no_slot_is_lost_however_an_nf_ends: NFs have namespaces of their own only as root's"
        );
        return;
    }
    soak(None);
}

#[test]
fn no_slot_is_lost_however_a_container_ends() {
    for runtime in Runtime::ALL.into_iter().filter(|runtime| !runtime.is_engine()) {
        match runtime.works() {
            Ok(()) => {
                println!("{}:", runtime.name());
                soak(Some(Container { runtime: Some(runtime), ..Container::default() }));
            }
            Err(why) => {
                eprintln!("SKIP: no_slot_is_lost_however_a_container_ends with {}: {why}", runtime.name());
            }
        }
    }
}

/// Ends an NF repeatedly: its process or, with a container, alternately that and its runtime.
fn soak(container: Option<Container>) {
    let kills = kills();
    let programs = Path::new(env!("CARGO_BIN_EXE_nf-monitor")).parent().expect("a folder");
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
    let mut pool = shared.worker();
    let supervisor = Supervisor::start(launchers()).expect("a supervisor");
    let mut mortal = Lane::new(&supervisor, 0, programs.join("examples/attacker"), "soak", container);
    let mut other = Lane::new(&supervisor, 1, env!("CARGO_BIN_EXE_nf-monitor").into(), "", None);

    let (mut to_noticed, mut to_first, mut by_itself) = (vec![], vec![], 0);
    let mut seed = now_ns() | 1;
    for kill in 0..kills {
        // Wait until the NF is up and passes packets.
        let end = Instant::now() + PATIENCE;
        while mortal.turn(&mut pool, true) == 0 {
            other.turn(&mut pool, true);
            assert!(Instant::now() < end, "it does not come back: {:?}", mortal.instance.log.lines());
        }
        let (page, pid) = (mortal.instance.status().page.clone(), mortal.instance.pid());
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Kill it after a lifetime that is long enough for an immediate restart.
        let kill_at = Instant::now() + Duration::from_micros(110_000 + (seed >> 33) % 80_000);
        let mut killed_ns = None;
        while !mortal.instance.is_buried() {
            mortal.turn(&mut pool, true);
            other.turn(&mut pool, true);
            if killed_ns.is_none() && Instant::now() > kill_at {
                let pid = if container.is_some() && kill % 2 == 1 { parent(pid).unwrap_or(pid) } else { pid };
                killed_ns = Some(now_ns());
                // It may have ended by itself.
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
                let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
            }
            assert!(Instant::now() < end, "it is not reclaimed: {:?}", mortal.instance.log.lines());
        }
        let noticed_ns = now_ns();
        mortal.settle(&mut pool);
        assert_eq!(mortal.under_way, 0, "after end {kill}: {:?}", mortal.instance.log.lines());
        // A counter has the time of an end by itself, before the kill.
        let own = page.map_or(0, |page| page.load(FIRST_COUNTER));
        let ended_ns = if own != 0 { Some(own) } else { killed_ns };
        by_itself += usize::from(own != 0);
        let Some(ended_ns) = ended_ns else { continue };
        to_noticed.push(noticed_ns.saturating_sub(ended_ns));
        while mortal.turn(&mut pool, true) == 0 {
            other.turn(&mut pool, true);
            assert!(Instant::now() < end, "it does not come back: {:?}", mortal.instance.log.lines());
        }
        to_first.push(now_ns().saturating_sub(ended_ns));
    }
    for lane in [&mut mortal, &mut other] {
        let end = Instant::now() + PATIENCE;
        while lane.under_way > 0 && Instant::now() < end {
            lane.turn(&mut pool, false);
        }
        lane.link.stop(&mut lane.backs);
        lane.settle(&mut pool);
        assert_eq!(lane.under_way, 0);
    }
    assert_eq!(other.lost, 0, "the other NF lost packets");
    assert!(other.passed > 1_000 && mortal.passed > 1_000);
    // It may have ended by itself more often than this loop observed.
    assert!(mortal.instance.restarts() as usize >= kills && other.instance.restarts() == 0);
    assert_eq!(pool.available(), pool.capacity(), "slots are missing");
    println!(
        "{kills} ends, {by_itself} of them by itself; through it {} packets, lost with it {}; through the other {}",
        mortal.passed, mortal.lost, other.passed
    );
    spread("from its end until all slots are the host's", to_noticed);
    spread("from its end to the first packet through the next", to_first);
}

/// A tap is killed at any moment: the packets that were shown to it were sent on long before, and each slot
/// is free once both the tap and the host have released it.
#[test]
fn no_slot_is_lost_however_a_tap_ends() {
    let kills = kills();
    let options =
        RegionOptions { huge_pages: HugePages::Never, only_for_reading: true, ..RegionOptions::slots(SLOTS) };
    let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
    let mut pool = shared.worker();
    let supervisor = Supervisor::start(launchers()).expect("a supervisor");
    let memory: Arc<OnceLock<Memory>> = Arc::default();
    let worker = Arc::clone(&shared);
    let tapped =
        Memory::of_tap(Arc::clone(shared.region()), Arc::new(move || PacketPool::Native(worker.worker())));
    assert!(memory.set(tapped).is_ok());
    let program = PathBuf::from(env!("CARGO_BIN_EXE_nf-monitor"));
    let terms = Terms { rights: Some(Rights::default()), access: NfAccess::Tap, ..Terms::default() };
    let spec = NfSpec {
        name: "tap".into(),
        command: Some(Command { program, arguments: vec![], folder: PathBuf::new() }),
        inputs: vec!["0".into()],
        burst: BURST,
        output: NfOutput::Log,
        terms,
        ..NfSpec::default()
    };
    let instance = Arc::new(Instance::new(spec, 0, 0, memory));
    supervisor.add(Arc::clone(&instance));
    let mut link = ProcessLink::new(Arc::clone(&instance), Some(supervisor.doorbell()), Arc::default());
    link.let_share(None);
    link.start().unwrap_or_else(|why| panic!("{why}: {:?}", instance.log.lines()));
    let (mut backs, mut shown, mut busiest) = (Completions::default(), 0u64, 0);
    let mut turn = |link: &mut ProcessLink, pool: &mut NativePool| {
        link.collect(&mut backs);
        for (completion, packets) in backs.runs() {
            assert_eq!(
                completion,
                Completion::Unused,
                "nothing comes back of what it is shown but the slots"
            );
            pool.free_all(packets);
        }
        backs.clear();
        let mut packets = [Packet::EMPTY; BURST];
        let made = pool.alloc(&mut packets);
        assert_eq!(made, BURST, "it has all the memory");
        for packet in &mut packets {
            assert!(packet.put(60));
            assert!(PacketBytesMut::new(packet).copy_in(0, &[5; 60]));
        }
        let list: Vec<u16> = (0..made as u16).collect();
        let enqueued = link.enqueue(0, &packets, &list);
        assert!(enqueued == 0 || link.shares());
        packets[..enqueued].iter_mut().for_each(|packet| packet.flags |= flag::SHARED);
        busiest = busiest.max(pool.in_use());
        // The packets were sent on, and are released.
        pool.free_all(&packets);
        shown += enqueued as u64;
        shown
    };
    let mut seed = now_ns() | 1;
    for kill in 0..kills {
        let (before, end) = (turn(&mut link, &mut pool), Instant::now() + PATIENCE);
        while turn(&mut link, &mut pool) < before + 2_000 {
            assert!(Instant::now() < end, "it is shown nothing: {:?}", instance.log.lines());
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let kill_at = Instant::now() + Duration::from_micros(110_000 + (seed >> 33) % 30_000);
        while Instant::now() < kill_at {
            turn(&mut link, &mut pool);
        }
        let restarts = instance.restarts();
        let pid = i32::try_from(instance.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), Signal::KILL).expect("killed");
        while instance.restarts() == restarts {
            turn(&mut link, &mut pool);
            assert!(Instant::now() < end, "kill {kill}: it does not come back: {:?}", instance.log.lines());
        }
    }
    link.stop(&mut backs);
    backs.runs().for_each(|(_, packets)| pool.free_all(packets));
    drop(link);
    assert!(busiest > BURST, "it never had a packet longer than the host did");
    assert_eq!((pool.in_use(), pool.stats().bad_frees), (0, 0), "slots are missing");
    assert!(instance.restarts() as usize >= kills);
    println!("{kills} kills of a tap, which was shown {shown} packets, {busiest} slots in use at most");
}

/// NFs of a direct-path group are killed at any moment, and the others keep their packets. Each packet that
/// was enqueued leaves the last NF, or is lost with a killed one, once.
#[test]
fn no_slot_is_lost_however_one_of_a_group_ends() {
    let kills = kills();
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    let shared = SharedPool::new(PacketRegion::create(options).expect("memory"));
    let mut pool = shared.worker();
    let supervisor = Supervisor::start(launchers()).expect("a supervisor");
    const MEMBERS: usize = 3;
    // Rings in both directions.
    let ways = [((0, 1), (1, 0)), ((1, 1), (2, 0)), ((2, 0), (1, 1)), ((1, 0), (0, 1))];
    let (group, memory) = (Arc::new(DirectGroup::new(MEMBERS, &ways)), group());
    let monitor = PathBuf::from(env!("CARGO_BIN_EXE_nf-monitor"));
    let keeper = monitor.with_file_name("examples/keeper");
    // Two of them keep packets that are in no ring.
    let programs = [&keeper, &monitor, &keeper];
    let lane = |member: usize| {
        let instance = Lane::instance(member as u32, programs[member].clone(), "", Arc::clone(&memory), None);
        let instance = Arc::new(instance.in_group(Arc::clone(&group), member as u8));
        Lane::start(&supervisor, instance)
    };
    let mut chain =
        Line { lanes: (0..MEMBERS).map(lane).collect(), held: [0; MEMBERS], direct: 0, through: 0 };
    let mut seed = now_ns() | 1;
    for kill in 0..kills {
        let (before, end) = (chain.through, Instant::now() + PATIENCE);
        // Packets are enqueued at both ends, and pass all of the NFs.
        while chain.through < before + 200 {
            chain.turn(&mut pool, true);
            assert!(Instant::now() < end, "nothing goes through: {:?}", chain.logs());
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let victim = (seed >> 33) as usize % MEMBERS;
        // One time in four, two are killed at once.
        let second = (seed >> 40).is_multiple_of(4).then_some((victim + 1) % MEMBERS);
        let kill_at = Instant::now() + Duration::from_micros((seed >> 33) % 130_000);
        while Instant::now() < kill_at {
            chain.turn(&mut pool, true);
        }
        let restarts: Vec<u64> = chain.lanes.iter().map(|lane| lane.instance.restarts()).collect();
        for victim in [Some(victim), second].into_iter().flatten() {
            let pid = i32::try_from(chain.lanes[victim].instance.pid()).ok().and_then(Pid::from_raw);
            kill_process(pid.expect("a process"), Signal::KILL).expect("killed");
        }
        while chain.lanes[victim].instance.restarts() == restarts[victim] {
            chain.turn(&mut pool, true);
            assert!(Instant::now() < end, "kill {kill}: it does not come back: {:?}", chain.logs());
        }
    }
    let end = Instant::now() + PATIENCE;
    while chain.held != [0; MEMBERS] && Instant::now() < end {
        chain.turn(&mut pool, false);
    }
    assert_eq!(chain.held, [0; MEMBERS], "packets are with nobody: {:?}", chain.logs());
    for member in 0..MEMBERS {
        let lane = &mut chain.lanes[member];
        lane.link.stop(&mut lane.backs);
        chain.settle(member, &mut pool);
    }
    assert_eq!(chain.held, [0; MEMBERS]);
    assert_eq!(pool.available(), pool.capacity(), "slots are missing");
    let lost: u64 = chain.lanes.iter().map(|lane| lane.lost).sum();
    let (direct, through) = (chain.direct, chain.through);
    for lane in &chain.lanes {
        assert_eq!(
            lane.link.status("bad-descriptors"),
            Some(String::new()),
            "{:?}",
            lane.instance.log.lines()
        );
    }
    println!(
        "{kills} kills in a direct-path group: {through} packets through all, {direct} times from NF to NF, lost {lost}"
    );
    assert!(direct > through, "they do not hand packets to each other");
}

/// NFs in a row, as a chain's elements would run them.
struct Line<const MEMBERS: usize> {
    lanes: Vec<Lane>,
    /// Packets that each holds, by its counters.
    held: [i64; MEMBERS],
    /// Packets that were passed from NF to NF.
    direct: u64,
    /// Packets that left at an end.
    through: u64,
}

impl<const MEMBERS: usize> Line<MEMBERS> {
    fn logs(&self) -> Vec<String> {
        self.lanes
            .iter()
            .map(|lane| format!("{:?} {:?}", lane.instance.state(), lane.instance.log.lines()))
            .collect()
    }

    /// A turn of the worker.
    fn turn(&mut self, pool: &mut NativePool, enqueues: bool) {
        for member in 0..MEMBERS {
            let lane = &mut self.lanes[member];
            lane.link.collect(&mut lane.backs);
            self.settle(member, pool);
        }
        for (member, input) in [(0, 0), (MEMBERS - 1, 1)].into_iter().filter(|_| enqueues) {
            let (packets, made) = burst(pool);
            let left = self.enqueue(member, input, &packets[..made]);
            pool.free_all(&packets[made - left..made]);
        }
    }

    /// Enqueues packets; returns how many are left.
    fn enqueue(&mut self, member: usize, input: usize, packets: &[Packet]) -> usize {
        let list: Vec<u16> = (0..packets.len() as u16).collect();
        let enqueued = self.lanes[member].link.enqueue(input, packets, &list);
        self.held[member] += enqueued as i64;
        packets.len() - enqueued
    }

    fn settle(&mut self, member: usize, pool: &mut NativePool) {
        let mut backs = std::mem::take(&mut self.lanes[member].backs);
        for &(output, count) in backs.passed() {
            let next = if output == 1 { member + 1 } else { member - 1 };
            self.held[member] -= count as i64;
            self.held[next] += count as i64;
            self.direct += count as u64;
        }
        for (completion, packets) in backs.runs() {
            self.held[member] -= packets.len() as i64;
            let next = match completion {
                Completion::Output(1) => Some((member + 1, 0)),
                Completion::Output(_) => member.checked_sub(1).map(|next| (next, 1)),
                _ => None,
            };
            let left = match (completion, next) {
                // Packets for an NF that is not up are dropped by the caller.
                (Completion::Output(_), Some((next, input))) if next < MEMBERS => {
                    self.enqueue(next, input, packets)
                }
                (Completion::Output(_), _) => {
                    self.through += packets.len() as u64;
                    packets.len()
                }
                _ => {
                    self.lanes[member].lost += packets.len() as u64;
                    packets.len()
                }
            };
            pool.free_all(&packets[packets.len() - left..]);
        }
        backs.clear();
        self.lanes[member].backs = backs;
    }
}
