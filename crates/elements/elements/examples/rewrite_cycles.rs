//! Prints what address and port translation costs: cycles per packet, median over rounds with the
//! spread, as machine code on bursts of 32 and 64 frames of 64 bytes (with FCS).
//!
//! The frames of all flows come one after the other in random order, so that caches and branch
//! predictors see what traffic of many flows shows them; each is copied into one of 256 slots. The
//! *floor* is that copy with its descriptor, timed in the same rounds without the rewriter; what is
//! printed as *over the floor* is the whole loop less the floor. *Run* is the rewriter alone, timed
//! burst by burst.
//!
//! Nothing else should run beside it. `cargo run --release -p millrace-elements --example rewrite_cycles`

mod cycles;

use cycles::{Feed, ROUNDS, Running, WARM_UP, cycles, deciles};
use table::Random;

const PACKETS_PER_ROUND: usize = 1 << 17;

/// A frame of a flow: 64 flows of a client, to one of four servers.
fn frame(flow: u32, tcp: bool) -> [u8; 64] {
    let (client, server) = (0x0a00_0000 | flow >> 6, 0xc000_0201 + (flow & 3));
    let proto = if tcp { 6 } else { 17 };
    let mut frame = cycles::frame([client, server, 1024 + (flow & 63) * 16, 443, proto]);
    if tcp {
        (frame[46], frame[47]) = (0x50, 0x10);
        frame[50] = 7;
    } else {
        frame[39] = 26;
        frame[40] = 7;
    }
    frame
}

fn measure(class: &str, config: &str, outputs: usize, flows: u32, burst: usize, tcp_share: u32) {
    let mut rewriter = Running::new(class, config, outputs);
    let mut random = Random::new(7);
    let mut frames: Vec<[u8; 64]> = (0..flows).map(|flow| frame(flow, flow % 100 < tcp_share)).collect();
    for at in (1..frames.len()).rev() {
        frames.swap(at, (random.bits() % (at as u64 + 1)) as usize);
    }
    let mut feed = Feed::new(frames, burst, |_, _| ());
    let mut now_ns = 1_000_000_000;
    let bursts = PACKETS_PER_ROUND / burst;
    let (mut floor, mut whole, mut alone) = (vec![], vec![], vec![]);
    for round in 0..ROUNDS + WARM_UP {
        let start = cycles();
        for _ in 0..bursts {
            feed.next();
        }
        let floor_cycles = cycles() - start;
        let start = cycles();
        for _ in 0..bursts {
            feed.next();
            now_ns += 10_000;
            rewriter.run(&mut feed.vector, &feed.list, now_ns);
        }
        let whole_cycles = cycles() - start;
        let mut run_cycles = 0;
        for _ in 0..bursts {
            feed.next();
            now_ns += 10_000;
            let start = cycles();
            rewriter.run(&mut feed.vector, &feed.list, now_ns);
            run_cycles += cycles() - start;
        }
        rewriter.element.tick(now_ns);
        if round >= WARM_UP {
            let per_packet = |cycles: u64| cycles as f64 / (bursts * burst) as f64;
            floor.push(per_packet(floor_cycles));
            whole.push(per_packet(whole_cycles));
            alone.push(per_packet(run_cycles));
        }
    }
    assert_eq!(rewriter.emitted(), burst, "every packet has a mapping");
    let mut over: Vec<f64> = whole.iter().zip(&floor).map(|(whole, floor)| whole - floor).collect();
    let (floor, (over, low, high), whole, alone) =
        (deciles(&mut floor).0, deciles(&mut over), deciles(&mut whole).0, deciles(&mut alone).0);
    println!(
        "{class:<18} {flows:>6} flows, {tcp_share:>3}% TCP, bursts of {burst}: {over:6.1} over the floor \
         ({low:.1} to {high:.1}); floor {floor:.1}, whole {whole:.1}, run {alone:.1}"
    );
}

fn main() {
    let per_ns = cycles::per_ns();
    println!(
        "cycles of the time stamp counter, {per_ns:.3} GHz; median of {ROUNDS} rounds, first to ninth decile"
    );
    let napt = "pattern 203.0.113.1 1024-65535 - - 0 0, SEED 1";
    for flows in [1_000, 65_536] {
        for burst in [32, 64] {
            for tcp_share in [0, 100, 50] {
                measure("IPRewriter", napt, 1, flows, burst, tcp_share);
            }
        }
    }
    let two = "pattern 203.0.113.1 1024-65535 - - 1 0, SEED 1";
    measure("IPRewriter", two, 2, 65_536, 32, 100);
    let pairs = "pattern 203.0.113.1 - 0 0, SEED 1";
    measure("IPAddrPairRewriter", pairs, 1, 4_000, 32, 100);
}
