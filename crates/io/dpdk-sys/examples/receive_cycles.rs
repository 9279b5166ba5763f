//! Measures receiving a burst and freeing it, by the flags that the device sets: nanoseconds per packet, the
//! minimum of many bursts. The device is net_null with the test driver; each figure includes the cost of
//! both:
//!
//!     cargo run --release -p millrace-dpdk-sys --example receive_cycles [MILLIONS OF PACKETS [FLAGS]]

use dpdk_sys::{Bus, Device, Eal, EalOptions, Mempool};
use dpdk_test_driver::FlaggedQueue;
use shm::{HugePages, Packet, PacketRegion, Pool, RegionOptions};
use std::sync::Arc;
use std::time::Instant;

const BURST: usize = 64;
/// The number of bursts that are timed together: some 100 microseconds.
const BURSTS: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions = std::env::args().nth(1).map_or(Ok(50), |text| text.parse::<usize>())?;
    let options = EalOptions { huge_pages: Some(false), memory_mib: 256, ..EalOptions::default() };
    let eal = Eal::start(&options)?;
    let memory = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(4096) };
    let region = PacketRegion::create(memory)?;
    let mempool = Mempool::in_region(eal, &region)?;
    let mut pool = mempool.worker();
    let device = Arc::new(Device::start(eal, Bus::Vdev, "net_null0", "size=64", 2, &mempool)?);
    let mut vector = vec![Packet::EMPTY; BURST];
    let all = ["", "ptypes=1", "rss=1", "rss=1,ptypes=1,good-checksum=1", "no-checksum=1"].map(String::from);
    for arguments in std::env::args().nth(2).map_or(all.to_vec(), |one| vec![one]) {
        let queue = device.queues().remove(0);
        let mut flagged = FlaggedQueue::new("net_null0", queue, &arguments).ok_or("the driver refuses")?;
        let (mut least, mut odd, mut packets) = (f64::MAX, 0, 0);
        while packets < millions * 1_000_000 {
            let start = Instant::now();
            for _ in 0..BURSTS {
                let got = flagged.queue.receive(&mut vector);
                pool.free_all(&vector[..got.packets]);
                odd += got.odd;
                packets += got.packets;
            }
            least = least.min(start.elapsed().as_nanos() as f64 / (BURST * BURSTS) as f64);
        }
        let share = odd as f64 / packets as f64;
        println!("{arguments:<32} {least:6.2} ns/packet, {share:.2} on the slow path");
    }
    Ok(())
}
