//! Measures the cycles per packet of receiving from memory and dropping the packets: the lower bound of every
//! figure over the in-memory port. `cargo run --release -p millrace-port --example memory_floor`

use port::{FrameSet, MemoryPort, Port};
use shm::{Packet, PacketPool, PacketRegion, RegionOptions, SharedPool};
use std::sync::Arc;
use std::time::Instant;

fn frame(flow: usize, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0u8; bytes];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..18].copy_from_slice(&[0x45, 0, 0, (bytes - 14) as u8]);
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..30].copy_from_slice(&(0x0a00_0000u32 + flow as u32).to_be_bytes());
    frame[30..34].copy_from_slice(&[192, 0, 2, 1]);
    frame
}

fn main() {
    let hz = testkit::cycles::per_ns() * 1e9;
    println!("time-stamp counter: {:.3} GHz; 64-byte frames; median of 7 runs", hz / 1e9);
    for (flows, burst) in [(1_000, 32), (1_000, 64), (65_536, 32), (65_536, 64)] {
        let frames =
            Arc::new(FrameSet::new((0..flows).map(|flow| frame(flow, 64))).expect("frames of 64 bytes"));
        let region = PacketRegion::create(RegionOptions::slots(8192)).expect("20 MB of memory");
        let mut pool = PacketPool::Native(SharedPool::new(region).worker());
        let rounds = 20_000_000 / flows;
        let restore = port::memory::restore_cost(&frames, &mut pool, burst, rounds as u32)
            .expect("slots for one burst");
        let mut cycles: Vec<f64> = (0..7)
            .map(|_| {
                let mut source = MemoryPort::generator("source", Arc::clone(&frames)).limit(20_000_000);
                let mut sink = MemoryPort::sink("sink");
                let mut vector = vec![Packet::EMPTY; 256];
                let list: Vec<u16> = (0..256).collect();
                let start = Instant::now();
                while !source.is_finished() {
                    let got = source.receive(&mut pool, &mut vector[..burst]).packets;
                    sink.send(&mut pool, &mut vector, &list[..got]);
                }
                start.elapsed().as_secs_f64() * hz / source.stats().rx_packets as f64
            })
            .collect();
        cycles.sort_by(f64::total_cmp);
        println!(
            "{flows:6} flows, bursts of {burst}: {:5.1} cycles/packet ({:.1} to {:.1}), {:.0} Mpps; of that the template copy {:.1}",
            cycles[3],
            cycles[0],
            cycles[6],
            hz / cycles[3] / 1e6,
            restore.as_secs_f64() * hz / (rounds * flows) as f64,
        );
    }
}
