//! Prints the cost of a lookup: median cycles and nanoseconds over rounds, with the spread.
//!
//! Keys are in random order in bursts of 32 and 64. Each round uses another part of the same sequence, so
//! that the branch predictor cannot learn it. No other program should run at the same time.
#![expect(unsafe_code, reason = "writes records at the addresses that a table gave")]

use flate2::read::GzDecoder;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::time::Instant;
use table::Random;
use table::flow::{FlowConfig, FlowTable};
use table::lpm::{Lpm4, Lpm6};
use testkit::cycles::{deciles, now as cycles, per_ns as cycles_per_ns};

const ROUNDS: usize = 31;

/// Runs `round` (which returns how many lookups it did) and prints a line.
fn measure(what: &str, per_ns: f64, mut round: impl FnMut(usize) -> usize) {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|i| {
            let start = cycles();
            let lookups = round(i);
            (cycles() - start) as f64 / lookups as f64
        })
        .collect();
    let (median, low, high) = deciles(&mut costs);
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
    let mut random = Random::new(1);
    const PER_ROUND: usize = 1 << 17;
    for (case, first) in [("hit", 0), ("miss", flows)] {
        let keys: Vec<[u64; W]> =
            (0..PER_ROUND * 2).map(|_| flow_key(first + random.bits() % flows)).collect();
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

/// The cost of inserting a flow while the table grows from 1 k to 1 M flows, and of removing it.
fn churn(per_ns: f64) {
    let config = FlowConfig { capacity: 1 << 20, seed: 42, ..FlowConfig::default() };
    let mut table = FlowTable::<2>::new(&config).expect("the machine has the memory");
    let mut costs: Vec<u64> = (0..1u64 << 20)
        .map(|n| {
            let start = cycles();
            table.insert(&flow_key(n)).expect("sized for them");
            cycles() - start
        })
        .collect();
    costs.sort_unstable();
    let at = |share: f64| costs[(share * (costs.len() - 1) as f64) as usize] as f64;
    println!(
        "\ninsert, 1 k growing to 1 M flows: median {:.0} cycles, 99.9% {:.0}, slowest {:.0} us",
        at(0.5),
        at(0.999),
        at(1.0) / per_ns / 1000.0
    );
    let start = cycles();
    let gone = table.expire(1, 1 << 20, |_| Some(0), |_, _| {});
    let each = (cycles() - start) as f64 / gone as f64;
    println!("expire, all of 1 M flows: {each:.0} cycles each; {} KiB index", table.index_bytes() >> 10);
}

/// Prefixes of a full table: IPv4 and IPv6 as (address, length).
type Routes = (Vec<(u32, u8)>, Vec<(u128, u8)>);

/// A full table: the file on the command line (compressed by gzip, a prefix a line), else a generated one
/// with the same distribution of lengths.
fn full_routes() -> Routes {
    let (mut four, mut six) = (Vec::new(), Vec::new());
    if let Some(path) = std::env::args().nth(1) {
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        for line in BufReader::new(GzDecoder::new(file)).lines().map_while(Result::ok) {
            let Some((address, len)) = line.trim().split_once('/') else { continue };
            let Ok(len) = len.parse() else { continue };
            match address.parse() {
                Ok(IpAddr::V4(address)) => four.push((address.to_bits(), len)),
                Ok(IpAddr::V6(address)) => six.push((address.to_bits(), len)),
                Err(_) => {}
            }
        }
        return (four, six);
    }
    println!("no file with a full table is named: routes are made up\n");
    let mut random = Random::new(3);
    for _ in 0..900_000 {
        let bits = random.bits();
        let len = 24 - (bits >> 40 & 15).saturating_sub(7) as u8;
        four.push(((bits as u32 % 0xd000_0000) + 0x0100_0000, len));
    }
    for _ in 0..160_000 {
        let bits = u128::from(random.bits());
        six.push((0x2 << 124 | (bits & 0xffff_ffff_ffff) << 76, 48 - (bits >> 60) as u8));
    }
    (four, six)
}

fn lpm(per_ns: f64) {
    const PER_ROUND: usize = 1 << 17;
    let (four, six) = full_routes();
    let mut ten = Lpm4::new().expect("the machine has the memory");
    for (n, &(prefix, len)) in
        [(0, 0), (0x0a00_0000, 8), (0xac10_0000, 12), (0xc0a8_0000, 16), (0xc0a8_0100, 24)]
            .iter()
            .chain(&[(0x0a01_0000, 16), (0x0a01_0200, 24), (0x0a80_0000, 9), (0xe000_0000, 4)])
            .chain(&[(0xc0a8_0180, 25)])
            .enumerate()
    {
        ten.insert(prefix, len, n as u32).expect("valid route");
    }
    let mut full = Lpm4::new().expect("the machine has the memory");
    let start = Instant::now();
    for (n, &(prefix, len)) in four.iter().enumerate() {
        full.insert(prefix, len, n as u32).expect("valid route");
    }
    println!(
        "\nfull IPv4 table: {} routes built in {} ms, {} KiB read by lookups; 10 routes: {} KiB",
        full.len(),
        start.elapsed().as_millis(),
        full.lookup_bytes() >> 10,
        ten.lookup_bytes() >> 10
    );
    let mut worst = std::time::Duration::ZERO;
    for &(prefix, len) in four.iter().step_by(97).chain(&[(0, 0), (0x0a00_0000, 8)]) {
        let start = Instant::now();
        let value = full.remove(prefix, len).unwrap_or(0);
        full.insert(prefix, len, value).expect("valid route");
        worst = worst.max(start.elapsed());
    }
    println!("slowest remove and insert, default route included: {} µs", worst.as_micros());

    let mut random = Random::new(9);
    let anywhere: Vec<u32> = (0..PER_ROUND * 2).map(|_| random.bits() as u32).collect();
    let in_table: Vec<u32> = (0..PER_ROUND * 2)
        .map(|_| {
            let (prefix, len) = four[random.bits() as usize % four.len()];
            prefix | (random.bits() as u32).checked_shr(u32::from(len)).unwrap_or(0)
        })
        .collect();
    let private: Vec<u32> = (0..PER_ROUND * 2)
        .map(|_| {
            let bits = random.bits() as u32;
            if bits & 1 == 0 { 0x0a00_0000 | bits >> 8 } else { 0xc0a8_0000 | bits >> 16 }
        })
        .collect();
    for (what, table, addresses) in [
        ("ipv4, 10 routes, addresses in the routes", &ten, &private),
        ("ipv4, 10 routes, any address", &ten, &anywhere),
        ("ipv4, full table, addresses in the routes", &full, &in_table),
        ("ipv4, full table, any address", &full, &anywhere),
    ] {
        for burst in [32, 64] {
            let mut values = vec![0; burst];
            measure(&format!("{what}, burst {burst}"), per_ns, |round| {
                let from = round * 4096 % PER_ROUND;
                for burst in addresses[from..from + PER_ROUND].chunks_exact(burst) {
                    table.lookup_batch(black_box(burst), &mut values);
                    black_box(&mut values);
                }
                PER_ROUND
            });
        }
    }

    let mut full = Lpm6::new().expect("the machine has the memory");
    let start = Instant::now();
    for (n, &(prefix, len)) in six.iter().enumerate() {
        full.insert(prefix, len, n as u32).expect("valid route");
    }
    println!(
        "\nfull IPv6 table: {} routes built in {} ms, {} KiB read by lookups",
        full.len(),
        start.elapsed().as_millis(),
        full.lookup_bytes() >> 10
    );
    let in_table: Vec<u128> = (0..PER_ROUND * 2)
        .map(|_| {
            let (prefix, len) = six[random.bits() as usize % six.len()];
            let host = u128::from(random.bits()) << 64 | u128::from(random.bits());
            prefix | host.checked_shr(u32::from(len)).unwrap_or(0)
        })
        .collect();
    for burst in [32, 64] {
        let mut values = vec![0; burst];
        let what = format!("ipv6, full table, addresses in the routes, burst {burst}");
        measure(&what, per_ns, |round| {
            let from = round * 4096 % PER_ROUND;
            for burst in in_table[from..from + PER_ROUND].chunks_exact(burst) {
                full.lookup_batch(black_box(burst), &mut values);
                black_box(&mut values);
            }
            PER_ROUND
        });
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
    churn(per_ns);
    lpm(per_ns);
}
