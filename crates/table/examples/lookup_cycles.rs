//! Prints what a lookup costs: median cycles and nanoseconds over rounds, with the spread.
//!
//! Keys come in random order in bursts of 32 and 64, each round from another part of the same
//! sequence, so that the branch predictor cannot learn it. Nothing else should run beside it.
#![expect(unsafe_code, reason = "reads the time stamp counter")]

use std::hint::black_box;
use std::time::Instant;
use table::flow::{FlowConfig, FlowTable};

const ROUNDS: usize = 31;

fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC is part of the x86-64 baseline and reads a counter.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

fn cycles_per_ns() -> f64 {
    let (start, start_cycles) = (Instant::now(), cycles());
    while start.elapsed().as_millis() < 50 {}
    (cycles() - start_cycles) as f64 / start.elapsed().as_nanos() as f64
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Runs `round` (which returns how many lookups it did) and prints a line.
fn measure(what: &str, per_ns: f64, mut round: impl FnMut(usize) -> usize) {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|i| {
            let start = cycles();
            let lookups = round(i);
            (cycles() - start) as f64 / lookups as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    let (low, median, high) = (costs[ROUNDS / 10], costs[ROUNDS / 2], costs[ROUNDS * 9 / 10]);
    println!("{what:<62} {median:7.1} {low:7.1} {high:7.1} {:8.2}", median / per_ns);
}

/// An IPv4 flow: two words for narrow keys, five for IPv6.
fn flow_key<const W: usize>(n: u64) -> [u64; W] {
    let spread = n.wrapping_mul(0x9e37_79b9);
    std::array::from_fn(|i| match i {
        0 => (0x0a00_0000 + (n & 0xffff)) << 32 | (spread & 0xffff_ffff),
        1 => (1024 + (n >> 3 & 0xbfff)) << 48 | 443 << 32 | 6,
        _ => 0x2001_0db8_0000_0000 | n,
    })
}

fn flow<const W: usize>(flows: u64, record_bytes: usize, use_record: bool, per_ns: f64) {
    let config = FlowConfig {
        record_bytes,
        capacity: flows as u32,
        initial_keys: flows as u32,
        seed: 42,
        ..FlowConfig::default()
    };
    let mut table = FlowTable::<W>::new(&config).expect("the machine has the memory");
    for n in 0..flows {
        table.insert(&flow_key(n)).expect("sized for them");
    }
    let mut random = Random(1);
    const PER_ROUND: usize = 1 << 17;
    for (case, first) in [("hit", 0), ("miss", flows)] {
        let keys: Vec<[u64; W]> =
            (0..PER_ROUND * 2).map(|_| flow_key(first + random.next() % flows)).collect();
        for burst in [32usize, 64] {
            let list: Vec<u16> = (0..burst as u16).collect();
            let mut out = vec![0u64; burst];
            let touch = if use_record { ", record used" } else { "" };
            let what = format!("flow {W}x8 B, {flows} flows, {case}, burst {burst}, {record_bytes} B{touch}");
            measure(&what, per_ns, |round| {
                let from = round * 4096 % PER_ROUND;
                for keys in keys[from..from + PER_ROUND].chunks_exact(burst) {
                    table.lookup_batch(black_box(keys), &list, &mut out);
                    if use_record && case == "hit" {
                        for &address in &out {
                            // SAFETY: a hit's address is that of a record in use.
                            unsafe {
                                let count = address as *mut u64;
                                count.write(count.read().wrapping_add(1));
                            }
                        }
                    }
                    black_box(&mut out);
                }
                PER_ROUND
            });
        }
    }
}

fn main() {
    let per_ns = cycles_per_ns();
    println!("time stamp counter: {per_ns:.3} cycles/ns, {ROUNDS} rounds\n");
    println!("{:<62} {:>7} {:>7} {:>7} {:>8}", "cycles per lookup", "median", "p10", "p90", "ns");
    for flows in [1 << 10, 1 << 16, 1 << 20] {
        flow::<2>(flows, 64, false, per_ns);
        flow::<2>(flows, 64, true, per_ns);
        flow::<5>(flows, 64, false, per_ns);
    }
}
