//! What it costs to hand packets to another process and get them back: cycles per packet.
//!
//! `cargo run --release -p millrace-shm --example hop`: on one core, where the two processes yield to each
//! other, and on two; beside it the same ring inside one thread, and a bare process switch.

use packet::access::Access;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::thread::CpuSet;
use shm::lend::{Lender, Loans};
use shm::ring::{Action, Claim, Consumer, Producer, RingFile};
use shm::{Packet, Pool, Region, RegionOptions, SharedPool};
use std::process::Command;
use std::time::{Duration, Instant};

const SLOTS: u32 = 8192;
const CLAIMS: u32 = 1024;
const LONG: Duration = Duration::from_millis(200);
const ROUNDS: usize = 5;

/// What an NF does with each packet.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Work {
    /// Nothing: it hands the claim on.
    Pass,
    /// It reads the descriptor and writes a byte of the frame.
    Touch,
    /// It yields, and nothing comes.
    Yield,
}

fn work(name: &str) -> Work {
    [Work::Pass, Work::Touch].into_iter().find(|work| format!("{work:?}") == name).unwrap_or(Work::Yield)
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set).expect("a core of this machine");
}

fn memory(number: &str) -> OwnedFd {
    shm::memfd::inherited(number.parse().expect("a descriptor")).expect("left open")
}

fn nf(arguments: &[String]) -> ! {
    let [region, rings, core, burst, what] = arguments else { panic!("five arguments") };
    pin(core.parse().expect("a core"));
    let region = Region::attach(memory(region), SLOTS, true).expect("packet memory");
    let rings = RingFile::<2>::open(memory(rings), CLAIMS).expect("rings");
    let [to_nf, from_nf] = rings.rings();
    let (mut from, mut to) = (Consumer::new(to_nf), Producer::new(from_nf));
    let mut claims = vec![Claim::default(); burst.parse().expect("a number")];
    let what = work(what);
    loop {
        let count = from.take(&mut claims).expect("a sound host");
        if count == 0 {
            std::thread::yield_now();
            continue;
        }
        for claim in &mut claims[..count] {
            claim.action = Action::Emit as u8;
            if what == Work::Touch {
                let mut packet = shm::unpark(region.number(), claim.slot).expect("a slot");
                assert!(shm::PacketBytesMut::new(&mut packet).copy_in(0, &[claim.len as u8]));
            }
        }
        to.push(&claims[..count]).expect("a sound host");
        from.release(count);
    }
}

/// Cycles per packet there and back, or per switch where the NF only yields.
fn measure(cores: [usize; 2], burst: usize, what: Work, ticks: f64) -> f64 {
    let shared = SharedPool::new(Region::create(RegionOptions::slots(SLOTS)).expect("memory"));
    let rings = RingFile::<2>::create(CLAIMS).expect("rings");
    let region_fd = rustix::io::dup(shared.region().as_fd()).expect("descriptors");
    let rings_fd = rustix::io::dup(rings.as_fd()).expect("descriptors");
    let mut nf = Command::new(std::env::current_exe().expect("this program"))
        .args([region_fd.as_raw_fd().to_string(), rings_fd.as_raw_fd().to_string()])
        .args([cores[1].to_string(), burst.to_string(), format!("{what:?}")])
        .spawn()
        .expect("this program starts again");
    pin(cores[0]);
    let mut pool = shared.worker();
    let [to, from] = rings.rings();
    let loans = Loans::new(SLOTS);
    let mut lender = Lender::new(to, from, 1, shared.region().number());
    let list: Vec<u16> = (0..burst as u16).collect();
    let mut packets = vec![Packet::EMPTY; burst];
    let mut back = Vec::with_capacity(burst);
    let (mut through, mut turns, mut start) = (0u64, 0u64, Instant::now());
    let mut warm = false;
    loop {
        turns += 1;
        if what != Work::Yield {
            let made = pool.alloc(&mut packets);
            for packet in &mut packets[..made] {
                (packet.len, packet.total) = (60, 60);
            }
            let (lent, _) = lender.lend(&loans, &packets[..made], &list[..made], 0).expect("sound");
            pool.free_all(&packets[lent..made]);
        }
        if cores[0] == cores[1] {
            std::thread::yield_now();
        }
        loop {
            back.clear();
            let count = lender.take_back(&loans, &mut back).expect("a sound NF");
            through += count as u64;
            back.iter().for_each(|returned| pool.free_all(std::slice::from_ref(&returned.packet)));
            if count < burst {
                break;
            }
        }
        if turns.is_multiple_of(64) && start.elapsed() > LONG {
            if warm {
                break;
            }
            (warm, through, turns, start) = (true, 0, 0, Instant::now());
        }
    }
    let took = start.elapsed().as_nanos() as f64;
    nf.kill().expect("it runs");
    nf.wait().expect("a child");
    let count = if what == Work::Yield { 2 * turns } else { through };
    took * ticks / count.max(1) as f64
}

/// Cycles per claim through a ring inside one thread.
fn inside(burst: usize, ticks: f64) -> f64 {
    let rings = RingFile::<1>::create(CLAIMS).expect("rings");
    let [ring] = rings.rings();
    let (mut producer, mut consumer) = (Producer::new(ring.clone()), Consumer::new(ring));
    let mut claims = vec![Claim { slot: 1, ..Claim::default() }; burst];
    let (start, mut through) = (Instant::now(), 0);
    while start.elapsed() < LONG {
        for _ in 0..64 {
            producer.push(&claims).expect("sound");
            let count = consumer.take(&mut claims).expect("sound");
            consumer.release(count);
            through += count;
        }
    }
    start.elapsed().as_nanos() as f64 * ticks / through as f64
}

/// Ticks of the time-stamp counter per nanosecond, as the kernel found them.
fn ticks_per_ns() -> f64 {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mhz =
        info.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse().ok());
    mhz.map_or(1.0, |mhz: f64| mhz / 1000.0)
}

fn show(name: &str, burst: usize, measure: impl Fn() -> f64) {
    let mut figures: Vec<f64> = (0..ROUNDS).map(|_| measure()).collect();
    figures.sort_by(f64::total_cmp);
    let (low, middle, high) = (figures[0], figures[ROUNDS / 2], figures[ROUNDS - 1]);
    println!("{name:<44} {burst:>5}  {middle:>8.1}  {low:.1} to {high:.1}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.is_empty() {
        nf(&arguments);
    }
    let ticks = ticks_per_ns();
    println!("{:<44} burst    cycles  of {ROUNDS} rounds", "per packet, there and back, unless said");
    show("a switch to the other process, on one core", 0, || measure([0, 0], 64, Work::Yield, ticks));
    for burst in [32, 64, 256, 1024] {
        show("one way through a ring, in one thread", burst, || inside(burst, ticks));
        show("claims only, on one core", burst, || measure([0, 0], burst, Work::Pass, ticks));
        show("one byte touched, on one core", burst, || measure([0, 0], burst, Work::Touch, ticks));
        show("claims only, on two cores", burst, || measure([0, 1], burst, Work::Pass, ticks));
        show("one byte touched, on two cores", burst, || measure([0, 1], burst, Work::Touch, ticks));
    }
}
