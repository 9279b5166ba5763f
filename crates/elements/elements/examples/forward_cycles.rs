//! Prints what the elements of IP forwarding cost: cycles per packet of each alone, as machine code,
//! median over rounds, on frames of 64 bytes (with FCS) of 1,000 and 65,536 flows; and how long a
//! routing table takes to load.
//!
//! `forward_cycles [PREFIXES]` also loads the prefixes of a file, one a line, and looks addresses
//! under them up. Nothing else should run beside it.

mod cycles;

use cycles::{Feed, ROUNDS, Running, WARM_UP, cycles, deciles};
use packet::anno;
use shm::Packet;
use shm::descriptor::NO_HEADER;
use std::time::Instant;
use table::Random;

const BURST: usize = 32;
const BURSTS_PER_ROUND: usize = 4096;

/// A frame with UDP and a right checksum.
fn frame(flow: u32, destination: u32) -> [u8; 64] {
    let mut frame = cycles::frame([0x0a00_0000 | flow, destination, 0, 0, 17]);
    let sum = packet::checksum::ipv4_header(&frame[14..], 0, 20).expect("a whole header");
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[39] = 26;
    frame
}

/// A packet whose headers nobody looked for, or one that is to go to its destination.
fn prepare(marked: bool) -> impl Fn(&mut Packet, &[u8; 64]) {
    move |packet, frame| {
        if marked {
            let destination = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]);
            anno::DST_IP.store(&mut packet.anno, destination.into());
        } else {
            (packet.net, packet.trans) = (NO_HEADER, NO_HEADER);
        }
    }
}

/// Prints what an element costs a packet; destinations are what `destination` gives.
fn measure(label: &str, running: &mut Running, flows: u32, destination: &mut dyn FnMut(u64) -> u32) {
    let mut random = Random::new(7);
    let frames = (0..flows).map(|flow| frame(flow, destination(random.bits()))).collect();
    let marked = !running.engine.program().name.starts_with("CheckIPHeader");
    let mut feed = Feed::new(frames, BURST, prepare(marked));
    let mut costs = vec![];
    for round in 0..ROUNDS + WARM_UP {
        let mut sum = 0;
        for _ in 0..BURSTS_PER_ROUND {
            feed.next();
            let start = cycles();
            running.run(&mut feed.vector, &feed.list, 1);
            sum += cycles() - start;
        }
        if round >= WARM_UP {
            costs.push(sum as f64 / (BURSTS_PER_ROUND * BURST) as f64);
        }
    }
    let emitted = running.emitted();
    let (median, low, high) = deciles(&mut costs);
    println!(
        "{label:<34} {flows:>6} flows: {median:6.1} ({low:.1} to {high:.1}), {emitted} of {BURST} emitted"
    );
}

fn main() {
    let per_ns = cycles::per_ns();
    println!(
        "cycles per packet, {per_ns:.3} GHz, bursts of {BURST}; median of {ROUNDS} rounds, first to ninth decile"
    );
    let ten = "10.0.0.0/8 0, 11.0.0.0/8 1.1.1.1 1, 12.0.0.0/16 0, 13.0.0.0/24 0, 14.1.2.3 1, 15.0.0.0/9 0, \
               16.0.0.0/8 1, 17.0.0.0/8 2.2.2.2 0, 18.26.0.0/16 0, 0.0.0.0/0 3.3.3.3 1";
    let mut any = |random: u64| 0x0a00_0000 + (random as u32 % 0x0a00_0000);
    for flows in [1_000, 65_536] {
        for (class, config, outputs) in [
            ("MarkIPHeader", "14", 1),
            ("CheckIPHeader2", "14", 1),
            ("CheckIPHeader", "14", 1),
            ("CheckIPHeader", "14, INTERFACES 1.0.0.1/8 2.0.0.1/8", 1),
            ("DecIPTTL", "", 2),
            ("RadixIPLookup", ten, 2),
            ("SetIPDSCP", "46", 1),
            ("IPMirror", "", 1),
        ] {
            let short: String = config.chars().take(18).collect();
            measure(&format!("{class}({short})"), &mut Running::new(class, config, outputs), flows, &mut any);
        }
    }
    let Some(path) = std::env::args().nth(1) else { return };
    let text = std::fs::read_to_string(&path).expect("a file of prefixes");
    let four = text.lines().filter(|line| !line.contains(':'));
    let lines: Vec<String> =
        four.clone().enumerate().map(|(at, line)| format!("{line} 9.9.9.{} {}", at % 200, at % 4)).collect();
    let start = Instant::now();
    let mut full = Running::new("RadixIPLookup", &lines.join(","), 4);
    println!("{} routes from the configuration: {:.2} s", lines.len(), start.elapsed().as_secs_f64());
    let mut by_handler = Running::new("RadixIPLookup", "", 4);
    let commands: Vec<String> = lines.iter().map(|line| format!("add {line}")).collect();
    let start = Instant::now();
    by_handler.element.handlers().write("ctrl", &commands.join("\n"), &mut []).expect("routes");
    println!("{} routes by ctrl: {:.2} s", lines.len(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let table = by_handler.element.handlers().read("table", &[]).map_or(0, |table| table.lines().count());
    println!("table of {table} lines: {:.2} s", start.elapsed().as_secs_f64());
    let networks: Vec<u32> = four
        .filter_map(|line| line.split_once('/')?.0.parse::<std::net::Ipv4Addr>().ok().map(u32::from))
        .collect();
    let mut under = |random: u64| networks[random as usize % networks.len()] | (random >> 40) as u32 & 0xff;
    for flows in [1_000, 65_536, 1 << 20] {
        measure("RadixIPLookup(full table)", &mut full, flows, &mut under);
    }
}
