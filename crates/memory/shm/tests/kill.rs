//! An NF in its own process that is killed, at each step of the protocol and at random moments.
//!
//! The NF is this program, started again with the test `the_nf` and the inherited memory files.

use packet::access::Access;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Signal, getpid, kill_process};
use shm::channel::{Completion, HostEnd, InFlightTable, Reclaimed};
use shm::ring::{Action, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{
    HugePages, NativePool, Packet, PacketBytes, PacketBytesMut, PacketRegion, Pool, RegionOptions, SharedPool,
};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SLOTS: u32 = 1024;
const CLAIMS: u32 = 256;
const BURST: usize = 32;
const NF: u16 = 7;
/// The burst, counted from 0, in which an NF dies.
const LAST_BURST: u32 = 1;

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// A memory file that this process inherited.
fn memory(name: &str) -> OwnedFd {
    shm::memfd::inherited(variable(name).expect("a descriptor")).expect("left open")
}

/// The NF: takes packets, increments their first byte, returns them.
#[test]
fn the_nf() {
    let Some(step) = variable::<u32>("NF_STEP") else { return };
    let metadata = variable("NF_METADATA") == Some(true);
    let region = PacketRegion::attach(memory("NF_REGION"), SLOTS, true).expect("packet memory");
    let rings = RingFile::<2>::open(memory("NF_RINGS"), CLAIMS).expect("rings");
    let [to_nf, from_nf] = rings.rings();
    let (mut from, mut to) = (Consumer::new(to_nf), Producer::new(from_nf));
    let mut descriptors = [Descriptor::default(); BURST];
    for burst in 0u32.. {
        let die_at = |here| {
            if (burst, here) == (LAST_BURST, step) {
                kill_process(getpid(), Signal::KILL).expect("own process");
            }
        };
        die_at(0);
        let count = loop {
            match from.take(&mut descriptors).expect("a sound host") {
                0 => std::thread::yield_now(),
                count => break count,
            }
        };
        die_at(1);
        for descriptor in &mut descriptors[..count] {
            descriptor.action = Action::Emit as u8;
            let packet = if metadata {
                shm::unpark(region.number(), descriptor.slot)
            } else {
                shm::claimed(region.number(), descriptor)
            };
            let mut packet = packet.expect("a slot");
            let mut first = [0];
            assert!(PacketBytes::new(&packet).copy_out(0, &mut first));
            assert!(PacketBytesMut::new(&mut packet).copy_in(0, &[first[0].wrapping_add(1)]));
            // Long enough that many NFs are killed here.
            (0..100).for_each(|_| std::hint::spin_loop());
        }
        let mut written = to.write(&descriptors[..count]).expect("a sound host");
        die_at(2);
        to.publish();
        while written < count {
            written += to.push(&descriptors[written..count]).expect("a sound host").0;
            std::thread::yield_now();
        }
        die_at(3);
        from.release(count);
        die_at(4);
    }
}

/// The host's side with one running NF.
struct Host {
    pool: NativePool,
    in_flight: InFlightTable,
    host_end: HostEnd<Mapped>,
    nf: Child,
    _rings: RingFile<2>,
}

impl Host {
    fn start(shared: &Arc<SharedPool>, step: u32, metadata: bool) -> Host {
        let rings = RingFile::<2>::create(CLAIMS).expect("rings");
        // Copies of the file descriptors that stay open in the new program.
        let region_fd = rustix::io::dup(shared.region().as_fd()).expect("descriptors");
        let rings_fd = rustix::io::dup(rings.as_fd()).expect("descriptors");
        let number = |fd: &OwnedFd| rustix::fd::AsRawFd::as_raw_fd(fd).to_string();
        let nf = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "the_nf", "--nocapture"])
            .env("NF_STEP", step.to_string())
            .env("NF_METADATA", metadata.to_string())
            .env("NF_REGION", number(&region_fd))
            .env("NF_RINGS", number(&rings_fd))
            .stdout(Stdio::null())
            .spawn()
            .expect("this program starts again");
        let [to, from] = rings.rings();
        let host_end = HostEnd::new(to, from, NF, shared.region().number()).with_metadata(metadata);
        Host { pool: shared.worker(), in_flight: InFlightTable::new(SLOTS), host_end, nf, _rings: rings }
    }

    /// Enqueues up to `count` packets that start with a byte of 5; returns how many.
    fn enqueue(&mut self, count: usize) -> usize {
        let mut packets = vec![Packet::EMPTY; count];
        let made = self.pool.alloc(&mut packets);
        for packet in &mut packets[..made] {
            assert!(packet.put(60));
            assert!(PacketBytesMut::new(packet).copy_in(0, &[5]));
        }
        let list: Vec<u16> = (0..made as u16).collect();
        let (enqueued, _) = self.host_end.enqueue(&self.in_flight, &packets, &list, 0).expect("a sound NF");
        self.pool.free_all(&packets[enqueued..made]);
        enqueued
    }

    fn take_back(&mut self) -> usize {
        let (mut packets, mut completions) = ([Packet::EMPTY; 2 * BURST], [Completion::default(); 2 * BURST]);
        let (count, sound) = self.host_end.take_back(&self.in_flight, &mut packets, &mut completions);
        sound.expect("a sound NF");
        let back: Vec<(Packet, Completion)> = packets.into_iter().zip(completions).take(count).collect();
        self.free(&back);
        count
    }

    /// Frees returned packets, which the NF has processed.
    fn free(&mut self, back: &[(Packet, Completion)]) {
        for (packet, completion) in back {
            assert_eq!((first_byte(packet), completion), (6, &Completion::Output(0)));
            self.pool.free_all(&[*packet]);
        }
    }

    /// Reclaims and frees the slots that the dead NF held.
    fn reclaim(&mut self) -> Reclaimed {
        assert!(!self.nf.wait().expect("a child").success());
        let reclaimed = self.host_end.reclaim(&self.in_flight);
        self.free(&reclaimed.returned);
        // The NF did not write them.
        assert!(reclaimed.untouched.iter().all(|enqueued| first_byte(&enqueued.packet) == 5));
        for enqueued in reclaimed.untouched.iter().chain(&reclaimed.lost) {
            self.pool.free_all(&[enqueued.packet]);
        }
        assert_eq!(self.host_end.held(), 0, "{:?}", self.host_end.stats());
        assert_eq!(self.pool.stats().bad_frees, 0);
        assert_eq!(self.pool.available(), SLOTS as usize, "a slot is lost");
        reclaimed
    }
}

fn first_byte(packet: &Packet) -> u8 {
    let mut first = [0];
    assert!(PacketBytes::new(packet).copy_out(0, &mut first));
    first[0]
}

fn pool() -> Arc<SharedPool> {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(SLOTS) };
    SharedPool::new(PacketRegion::create(options).expect("memory"))
}

#[test]
fn an_nf_that_dies_at_a_step_leaves_what_that_step_left() {
    let shared = pool();
    // Before taking, taken, written, published, released: the numbers of returned, lost and untouched
    // packets.
    let steps = [(32, 0, 68), (32, 32, 36), (32, 32, 36), (64, 0, 36), (64, 0, 36)];
    for ((step, expected), metadata) in (0..).zip(steps).flat_map(|at| [(at, false), (at, true)]) {
        let mut host = Host::start(&shared, step, metadata);
        assert_eq!(host.enqueue(100), 100);
        let reclaimed = host.reclaim();
        let found = (reclaimed.returned.len(), reclaimed.lost.len(), reclaimed.untouched.len());
        assert_eq!(found, expected, "step {step}");
        let stats = host.host_end.stats();
        assert_eq!((stats.enqueued, stats.returned as usize), (100, expected.0));
        assert_eq!((stats.stale, stats.not_held, stats.out_of_range, stats.malformed), (0, 0, 0, 0));
    }
}

#[test]
fn an_nf_that_is_killed_at_any_moment_costs_no_slot() {
    let shared = pool();
    let (mut through, mut lost) = (0, 0);
    for round in 0..40u64 {
        let mut host = Host::start(&shared, u32::MAX, round % 2 == 1);
        // Until packets flow, and then some microseconds more, different in each round.
        let patience = Instant::now() + Duration::from_secs(30);
        while host.host_end.stats().returned == 0 {
            host.enqueue(BURST);
            host.take_back();
            assert!(Instant::now() < patience, "the NF does nothing");
        }
        let end = Instant::now() + Duration::from_micros(37 * (round * round % 41));
        while Instant::now() < end {
            host.enqueue(BURST);
            host.take_back();
        }
        host.nf.kill().expect("it runs");
        // The host keeps running while the NF dies.
        host.enqueue(BURST);
        let reclaimed = host.reclaim();
        let stats = host.host_end.stats();
        assert_eq!(stats.enqueued, stats.returned + stats.lost + stats.untouched, "{stats:?}");
        assert!(reclaimed.lost.len() <= BURST, "it never takes more");
        through += stats.returned;
        lost += stats.lost;
    }
    println!("{through} packets came back, {lost} were lost with 40 NFs");
}
