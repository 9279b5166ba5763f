//! Measures the cycles for each hop when an NF passes a packet to the next one of its trust group.
//!
//! `cargo run --release -p millrace-nf --example pass`: two processes pass the same packets to each other and
//! back, with the library that NFs link, on one core, where they yield to each other, and on two. For
//! comparison, two threads of one process do the same with a ring of the same descriptors. The rows alternate
//! from round to round; the median and the spread are reported.

#[path = "../../../memory/shm/examples/measure/mod.rs"]
mod measure;

use measure::{ROUNDS, median_and_range, pin, ticks_per_ns};
use nf::ends::{Ends, Received};
use nf::message::{DirectGroup, FromNf, ToNf, Welcome};
use nf::socket::Socket;
use nf::{Attached, GroupFiles, Options};
use rustix::fd::{AsFd, BorrowedFd};
use shm::descriptor::{HEADROOM, LAYOUT_VERSION};
use shm::page::Page;
use shm::ring::{Action, Consumer, Descriptor, Producer, RingFile};
use shm::{PacketRegion, RegionOptions};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLOTS: u32 = 2048;
const DESCRIPTORS: u32 = 1024;
const BURST: usize = 64;
/// How long a row runs in a round.
const LONG: Duration = Duration::from_millis(150);
/// Turns between two checks of the socket.
const LISTEN_AFTER: u32 = 4096;

/// Yields the core to the other side if both use the same one.
fn idle(two_cores: bool) {
    if two_cores {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

/// Passes on the received packets; returns how many.
fn turn(ends: &mut Ends) -> usize {
    let (mut came, mut count) = ([Received::default(); BURST], 0);
    ends.fetch_received(|_, received| {
        came[count] = received;
        count += 1;
    });
    came[..count].iter().for_each(|received| ends.give_received(received, Action::Emit, 0));
    count
}

/// The other NF: this program again.
fn other(two_cores: bool) -> ! {
    pin(usize::from(two_cores));
    let mut ends = Ends::new(nf::attach(&Options::new("pass").host("fd:0")).expect("a host"));
    ends.ready().expect("a host");
    let mut turns: u32 = 0;
    while !ends.is_over() {
        if turns.is_multiple_of(LISTEN_AFTER) {
            ends.listen();
        }
        turns = turns.wrapping_add(1);
        if turn(&mut ends) == 0 {
            idle(two_cores);
        }
    }
    std::process::exit(0)
}

/// Runs turns, each of which returns how many packets made two hops; returns the cycles for each hop.
fn clock(ticks_per_ns: f64, turn: impl FnMut() -> usize) -> f64 {
    measure::clock(ticks_per_ns, LONG, turn) / 2.0
}

/// The packets to pass: on one core as many as fit into a ring, on two enough to keep both sides busy.
fn packets(two_cores: bool) -> Vec<Descriptor> {
    let descriptor =
        |slot| Descriptor { slot, generation: 1, data: HEADROOM as u16, len: 60, ..Descriptor::default() };
    (0..if two_cores { DESCRIPTORS / 2 } else { DESCRIPTORS }).map(descriptor).collect()
}

fn welcome(member: u8) -> Welcome {
    Welcome {
        protocol: nf::message::PROTOCOL,
        layout: LAYOUT_VERSION,
        slots: SLOTS,
        descriptors: DESCRIPTORS,
        quota: u64::from(DESCRIPTORS),
        burst: BURST,
        writable: true,
        inputs: vec!["0".into()],
        outputs: vec!["0".into()],
        group: Some(DirectGroup { member, descriptors: DESCRIPTORS, outputs: vec![0] }),
        ..Welcome::default()
    }
}

/// Two NFs of a direct-path group, one in this process and one in another. This process is their host, too.
fn processes(two_cores: bool, ticks_per_ns: f64) -> f64 {
    let region = PacketRegion::create(RegionOptions::slots(SLOTS)).expect("memory");
    let notes = Page::create_for(SLOTS as usize).expect("memory");
    let [page, my_page] = [(); 2].map(|()| Page::create().expect("memory"));
    let [there, back] = [(); 2].map(|()| RingFile::<1>::create(DESCRIPTORS).expect("rings"));
    let [mine, others] = [(); 2].map(|()| RingFile::<3>::create(DESCRIPTORS).expect("rings"));
    let copy = |file: BorrowedFd<'_>| file.try_clone_to_owned().expect("descriptors");

    let (host, theirs) = Socket::pair().expect("a socket");
    let mut process = Command::new(std::env::current_exe().expect("this program"))
        .arg(two_cores.to_string())
        .stdin(Stdio::from(theirs.into_fd()))
        .spawn()
        .expect("this program starts again");
    let hear = || host.receive::<FromNf>(Duration::from_secs(5)).expect("an NF").expect("in time").0;
    assert!(matches!(hear(), FromNf::Hello(_)));
    let files = [region.as_fd(), others.as_fd(), page.as_fd(), notes.as_fd(), back.as_fd()];
    host.send(&ToNf::Welcome(welcome(1)), &files).expect("it listens");
    let open = |way, ring: &RingFile<1>, socket: &Socket| {
        let message = ToNf::Direct { ring: way, input: 0, descriptors: DESCRIPTORS, index: 0 };
        socket.send(&message, &[ring.as_fd()]).expect("it listens");
    };
    open(0, &there, &host);
    assert_eq!(hear(), FromNf::Ready);

    pin(0);
    let (my_host, socket) = Socket::pair().expect("a socket");
    let [to_me, ..] = mine.rings();
    let exit = RingFile::open(copy(there.as_fd()), DESCRIPTORS).expect("a ring");
    let mut ends = Ends::new(Attached {
        socket,
        welcome: welcome(0),
        region,
        rings: mine,
        page: my_page,
        config: vec![],
        makes: false,
        metadata: false,
        reasons: 1,
        counters: 0,
        group: Some(GroupFiles { member: 0, notes, outputs: vec![(0, exit)] }),
    });
    open(1, &back, &my_host);
    ends.listen();
    Producer::new(to_me).push(&packets(two_cores)).expect("room");
    let took = clock(ticks_per_ns, || {
        let count = turn(&mut ends);
        if count == 0 {
            idle(two_cores);
        }
        count
    });
    process.kill().expect("it runs");
    process.wait().expect("a child");
    took
}

/// Passes the same descriptors between two threads.
fn threads(two_cores: bool, ticks_per_ns: f64) -> f64 {
    let [there, back] = RingFile::<2>::create(DESCRIPTORS).expect("rings").rings();
    let (mut to, mut from) = (Producer::new(there.clone()), Consumer::new(back.clone()));
    let stop = AtomicBool::new(false);
    pin(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(usize::from(two_cores));
            let (mut from, mut to) = (Consumer::new(there), Producer::new(back));
            let mut descriptors = [Descriptor::default(); BURST];
            while !stop.load(Ordering::Relaxed) {
                let count = from.take(&mut descriptors).expect("sound");
                if count == 0 {
                    idle(two_cores);
                    continue;
                }
                to.push(&descriptors[..count]).expect("sound");
                from.release(count);
            }
        });
        to.push(&packets(two_cores)).expect("sound");
        let mut descriptors = [Descriptor::default(); BURST];
        let took = clock(ticks_per_ns, || {
            let count = from.take(&mut descriptors).expect("sound");
            to.push(&descriptors[..count]).expect("sound");
            from.release(count);
            if count == 0 {
                idle(two_cores);
            }
            count
        });
        stop.store(true, Ordering::Relaxed);
        took
    })
}

/// A measurement, on two cores or one.
type Measure = fn(bool, f64) -> f64;

fn main() {
    if let Some(two_cores) = std::env::args().nth(1) {
        other(two_cores == "true");
    }
    let ticks = ticks_per_ns();
    let rows = [true, false].into_iter().flat_map(|two_cores| {
        let rows: [(&str, Measure); 2] =
            [("a ring between two threads", threads), ("NF to NF of a trust group", processes)];
        rows.map(|(name, measure)| (name, two_cores, measure, vec![]))
    });
    let mut rows: Vec<(&str, bool, Measure, Vec<f64>)> = rows.collect();
    for _ in 0..ROUNDS {
        for (_, two_cores, measure, figures) in &mut rows {
            figures.push(measure(*two_cores, ticks));
        }
    }
    println!("cycles for each hop, bursts of {BURST}, {ROUNDS} rounds, {ticks:.3} cycles per ns");
    println!("{:<28}cores  median  spread", "");
    for (name, two_cores, _, figures) in &mut rows {
        println!("{name:<28}{:>5} {}", 1 + u8::from(*two_cores), median_and_range(figures));
    }
}
