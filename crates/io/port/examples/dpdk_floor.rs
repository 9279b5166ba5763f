//! Measures the cycles per packet of receiving from a DPDK device and dropping the packets, or sending them
//! back. `cargo run --release -p millrace-port --example dpdk_floor -- [--huge] net_null0 ...`
//!
//! For comparison: `dpdk-testpmd ... --vdev net_null0 -- --forward-mode=rxonly` (or `io`).

use port::dpdk::EalOptions;
use port::{Dpdk, DpdkPort, DpdkSpec, Port};
use shm::{HugePages, Packet, PacketPool, Pool, RegionOptions};
use std::time::{Duration, Instant};
use testkit::cycles::now as cycles;

/// Cycles per packet over half a second, and packets per second.
fn measure(port: &mut DpdkPort, pool: &mut PacketPool, burst: usize, send: bool) -> (f64, f64) {
    let mut vector = vec![Packet::EMPTY; 256];
    let list: Vec<u16> = (0..256).collect();
    let (start, from, mut packets) = (Instant::now(), cycles(), 0u64);
    while start.elapsed() < Duration::from_millis(500) {
        for _ in 0..1000 {
            let got = port.receive(pool, &mut vector[..burst]).packets;
            let taken = if send { port.send(pool, &mut vector, &list[..got]).packets } else { 0 };
            pool.free(&vector, &list[taken..got]);
            packets += got as u64;
        }
    }
    let packets = packets.max(1) as f64;
    ((cycles() - from) as f64 / packets, packets / start.elapsed().as_secs_f64())
}

fn main() {
    let (flags, specs): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let huge = flags.iter().any(|flag| flag == "--huge");
    let pages = if huge { HugePages::Require } else { HugePages::Never };
    let options = EalOptions { huge_pages: Some(huge), ..EalOptions::default() };
    let memory = RegionOptions { huge_pages: pages, ..RegionOptions::slots(16_384) };
    let dpdk = Dpdk::start(&options, memory).expect("DPDK starts");
    let mut pool = dpdk.pool();
    println!("huge pages: {huge}; median of 7 runs of 0.5 s, cycles/packet (Mpps)");
    for text in specs {
        let spec = DpdkSpec::parse(&text).expect("a device's name");
        let mut port = dpdk.open(&spec, 1).expect("the device opens").remove(0);
        for (what, send) in [("receive and drop", false), ("receive and send", true)] {
            for burst in [32, 64] {
                let mut runs: Vec<(f64, f64)> =
                    (0..7).map(|_| measure(&mut port, &mut pool, burst, send)).collect();
                runs.sort_by(|one, two| one.0.total_cmp(&two.0));
                println!(
                    "{} {what}, bursts of {burst}: {:.1} ({:.1}); {:.1} to {:.1}",
                    spec.name(),
                    runs[3].0,
                    runs[3].1 / 1e6,
                    runs[0].0,
                    runs[6].0
                );
            }
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    println!("{resident}");
}
