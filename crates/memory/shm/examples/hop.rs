//! The cost of passing packets to another process and back: cycles per packet for the round trip.
//!
//! `cargo run --release -p millrace-shm --example hop`: on one core, where the two processes yield to each
//! other, and on two. For comparison it measures a ring of the same descriptors between two threads of one
//! process, without an in-flight table, and a bare process switch. All rows run in turn in each round; the
//! program prints the median and the spread over the rounds.

mod measure;

use measure::{ROUNDS, clock, median_and_range, pin, ticks_per_ns};
use packet::access::Access;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::process::Pid;
use shm::channel::{Completion, HostEnd, InFlightTable};
use shm::ring::{Action, Cells, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{Packet, PacketRegion, Pool, RegionOptions, SharedPool};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLOTS: u32 = 4096;
const DESCRIPTORS: u32 = 1024;
/// Duration of a row in a round.
const LONG: Duration = Duration::from_millis(100);
const FRAME_BYTES: u32 = 60;

/// The NF's work for each packet.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Work {
    /// Nothing: it passes the descriptor on.
    Pass,
    /// It reads a byte of the frame.
    Read,
    /// It writes a byte of the frame.
    Write,
    /// It writes a byte of the frame and reads the descriptor.
    Consult,
    /// It writes a byte of the frame, and reads and writes the descriptor.
    Describe,
    /// It yields, and no packet is sent.
    Yield,
}

const WORKS: [Work; 6] = [Work::Pass, Work::Read, Work::Write, Work::Consult, Work::Describe, Work::Yield];

impl Work {
    fn needs_metadata(self) -> bool {
        matches!(self, Work::Consult | Work::Describe)
    }
}

/// A row of the output.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    two_cores: bool,
    burst: usize,
    what: Work,
    kind: Kind,
}

/// The path of the packets.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Between two threads, as descriptors without an in-flight table.
    Threads,
    /// To a process, with the same packets again and again.
    Process { writable: bool },
    /// To a process, with packets from the pool that are freed afterwards.
    Pooled,
}

fn rows() -> Vec<Row> {
    let again = Kind::Process { writable: true };
    let reading = Kind::Process { writable: false };
    let mut rows = vec![];
    for (two_cores, burst) in [(true, 64), (true, 256), (false, 1024)] {
        let mut row = |name, what, kind| rows.push(Row { name, two_cores, burst, what, kind });
        row("descriptors between two threads, no in-flight table", Work::Pass, Kind::Threads);
        row("packets to a process, descriptors only", Work::Pass, again);
        row("the same, from the pool and back", Work::Pass, Kind::Pooled);
        row("a byte read, memory mapped for reading", Work::Read, reading);
        row("a byte read, memory mapped for writing", Work::Read, again);
        row("a byte written", Work::Write, again);
        row("a byte written, the metadata read", Work::Consult, again);
        row("the same, from the pool and back", Work::Consult, Kind::Pooled);
        row("a byte and the metadata written", Work::Describe, again);
        row("the same, from the pool and back", Work::Describe, Kind::Pooled);
    }
    let switch = Row { name: "", two_cores: false, burst: 64, what: Work::Yield, kind: again };
    rows.push(Row { name: "a switch to the other process", ..switch });
    rows
}

fn memory(number: &str) -> OwnedFd {
    shm::memfd::inherited(number.parse().expect("a descriptor")).expect("left open")
}

/// The NF: this program, started again.
fn nf(arguments: &[String]) -> ! {
    let [region, rings, core, burst, what, writable] = arguments else { panic!("six arguments") };
    pin(core.parse().expect("a core"));
    let region = PacketRegion::attach(memory(region), SLOTS, writable == "true").expect("packet memory");
    let rings = RingFile::<2>::open(memory(rings), DESCRIPTORS).expect("rings");
    let work = WORKS.into_iter().find(|work| format!("{work:?}") == *what).expect("work");
    let [to_nf, from_nf] = rings.rings();
    let alone = || std::thread::yield_now();
    serve(
        Consumer::new(to_nf),
        Producer::new(from_nf),
        burst.parse().expect("a number"),
        alone,
        |descriptor| {
            descriptor.action = Action::Emit as u8;
            if matches!(work, Work::Pass | Work::Yield) {
                return;
            }
            let packet = if work.needs_metadata() {
                shm::unpark(region.number(), descriptor.slot)
            } else {
                shm::claimed(region.number(), descriptor)
            };
            let mut packet = packet.expect("a slot");
            let mut byte = [descriptor.len as u8];
            if work == Work::Read {
                assert!(shm::PacketBytes::new(&packet).copy_out(0, &mut byte));
                descriptor.destination = u16::from(byte[0]);
                return;
            }
            assert!(shm::PacketBytesMut::new(&mut packet).copy_in(0, &byte));
            if work == Work::Describe {
                packet.anno[16] = byte[0];
                assert!(shm::park(&packet));
            }
        },
    )
}

/// Passes on every packet, without end.
fn serve<C: Cells>(
    mut from: Consumer<C>,
    mut to: Producer<C>,
    burst: usize,
    idle: impl Fn(),
    work: impl Fn(&mut Descriptor),
) -> ! {
    let mut descriptors = vec![Descriptor::default(); burst];
    loop {
        let count = from.take(&mut descriptors).expect("a sound host");
        if count == 0 {
            idle();
            continue;
        }
        descriptors[..count].iter_mut().for_each(&work);
        to.push(&descriptors[..count]).expect("a sound host");
        from.release(count);
    }
}

/// The most packets in flight: on one core a burst, on two enough to keep both sides busy.
fn most_in_flight(row: &Row) -> usize {
    if row.two_cores { DESCRIPTORS as usize / 2 } else { row.burst }
}

fn threads(row: &Row, ticks_per_ns: f64) -> f64 {
    let [there, back] = RingFile::<2>::create(DESCRIPTORS).expect("rings").rings();
    let (mut to, mut from) = (Producer::new(there.clone()), Consumer::new(back.clone()));
    let (stop, burst, core) = (AtomicBool::new(false), row.burst, usize::from(row.two_cores));
    let idle = || if core == 0 { std::thread::yield_now() } else { std::hint::spin_loop() };
    pin(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(core);
            let (mut from, mut to) = (Consumer::new(there), Producer::new(back));
            let mut descriptors = vec![Descriptor::default(); burst];
            while !stop.load(Ordering::Relaxed) {
                let count = from.take(&mut descriptors).expect("sound");
                if count == 0 {
                    idle();
                    continue;
                }
                to.push(&descriptors[..count]).expect("sound");
                from.release(count);
            }
        });
        let mut descriptors = vec![Descriptor { slot: 1, ..Descriptor::default() }; most_in_flight(row)];
        to.push(&descriptors).expect("sound");
        let took = clock(ticks_per_ns, LONG, || {
            let count = from.take(&mut descriptors[..burst]).expect("sound");
            to.push(&descriptors[..count]).expect("sound");
            from.release(count);
            if core == 0 {
                std::thread::yield_now();
            }
            count
        });
        stop.store(true, Ordering::Relaxed);
        took
    })
}

/// Measures the host's side with another process as the NF.
fn process(row: &Row, ticks_per_ns: f64) -> f64 {
    let shared = SharedPool::new(PacketRegion::create(RegionOptions::slots(SLOTS)).expect("memory"));
    let rings = RingFile::<2>::create(DESCRIPTORS).expect("rings");
    let region_fd = rustix::io::dup(shared.region().as_fd()).expect("descriptors");
    let rings_fd = rustix::io::dup(rings.as_fd()).expect("descriptors");
    let writable = row.kind != Kind::Process { writable: false };
    let mut nf = Command::new(std::env::current_exe().expect("this program"))
        .args([region_fd.as_raw_fd().to_string(), rings_fd.as_raw_fd().to_string()])
        .args([usize::from(row.two_cores).to_string(), row.burst.to_string()])
        .args([format!("{:?}", row.what), writable.to_string()])
        .spawn()
        .expect("this program starts again");
    pin(0);
    let [to, from] = rings.rings();
    let host_end = HostEnd::new(to, from, 1, shared.region().number());
    let took = enqueue(row, &shared, host_end.with_metadata(row.what.needs_metadata()), ticks_per_ns);
    rustix::process::kill_process(Pid::from_child(&nf), rustix::process::Signal::KILL).expect("it runs");
    nf.wait().expect("a child");
    took
}

fn enqueue(
    row: &Row,
    shared: &std::sync::Arc<SharedPool>,
    mut host_end: HostEnd<Mapped>,
    ticks_per_ns: f64,
) -> f64 {
    let (mut pool, in_flight, burst) = (shared.worker(), InFlightTable::new(SLOTS), row.burst);
    let most = if row.what == Work::Yield { 0 } else { most_in_flight(row) };
    let list: Vec<u16> = (0..most.max(burst) as u16).collect();
    let mut packets = vec![Packet::EMPTY; most.max(burst)];
    let mut completions = vec![Completion::default(); burst];
    let fill = |packets: &mut [Packet]| {
        packets.iter_mut().for_each(|packet| assert!(packet.set_ends(packet.data(), FRAME_BYTES)));
    };
    if row.kind != Kind::Pooled {
        let made = pool.alloc(&mut packets[..most]);
        fill(&mut packets);
        host_end.enqueue(&in_flight, &packets, &list[..made], 0).expect("sound");
    }
    clock(ticks_per_ns, LONG, || {
        if row.kind == Kind::Pooled && host_end.held() as usize + burst <= most {
            let made = pool.alloc(&mut packets[..burst]);
            fill(&mut packets[..made]);
            host_end.enqueue(&in_flight, &packets, &list[..made], 0).expect("sound");
        }
        if !row.two_cores {
            std::thread::yield_now();
        }
        let (back, sound) = host_end.take_back(&in_flight, &mut packets[..burst], &mut completions);
        sound.expect("a sound NF");
        if row.kind == Kind::Pooled {
            pool.free_all(&packets[..back]);
        } else {
            host_end.enqueue(&in_flight, &packets, &list[..back], 0).expect("sound");
        }
        back
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        nf(&arguments);
    }
    let (rows, ticks) = (rows(), ticks_per_ns());
    let mut figures = vec![vec![]; rows.len()];
    for _ in 0..ROUNDS {
        for (row, figures) in rows.iter().zip(&mut figures) {
            figures.push(if row.kind == Kind::Threads { threads(row, ticks) } else { process(row, ticks) });
        }
    }
    println!("cycles per packet there and back, {ROUNDS} rounds, {ticks:.3} cycles per ns");
    println!("{:<42}cores burst  median  spread", "");
    for (row, figures) in rows.iter().zip(&mut figures) {
        let (name, cores, burst) = (row.name, if row.two_cores { 2 } else { 1 }, row.burst);
        println!("{name:<42}{cores:>5} {burst:>5} {}", median_and_range(figures));
    }
}
