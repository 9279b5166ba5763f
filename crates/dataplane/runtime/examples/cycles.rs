//! Cycles per packet of a configuration between the in-memory generator and sink.
//!
//! `cargo run --release -p millrace-runtime --example cycles -- 'FromDevice(in) -> ToDevice(out)' [flows]
//! [burst]`

use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use port::Port;
use port::frames::FrameSet;
use port::memory::MemoryPort;
use runtime::running::{RunPlan, Running};
use runtime::{Opener, Options, assemble};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::sync::Arc;
use std::time::Duration;

struct Memory(Arc<FrameSet>);

impl Opener for Memory {
    fn open_port(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(match name {
            "in" => MemoryPort::generator("in", Arc::clone(&self.0)),
            _ => MemoryPort::sink(name),
        }))
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let text = args.next().unwrap_or_else(|| "FromDevice(in) -> ToDevice(out)".into());
    let flows: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let burst: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(32);
    let frames: Vec<Vec<u8>> = (0..flows).map(|flow| udp(flow as u32)).collect();
    let frames = Arc::new(FrameSet::new(frames).expect("frames"));
    for round in 0..5 {
        let mut map = SourceMap::new();
        let source = map.add("argument", text.as_str());
        let mut diags = Diagnostics::new();
        let ast = click::parse(&mut map, source, &mut diags);
        let graph = click::flatten(&ast, &runtime::registry::KnownClasses, &[], &mut diags);
        let mut ports = Memory(Arc::clone(&frames));
        let assembly = assemble(&graph, &Options::default(), &mut ports, &mut diags).expect("machine code");
        let Some(assembly) = assembly else { panic!("{}", diags.render(&map, false)) };
        let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(8192)).expect("memory"));
        let plan = RunPlan { burst, cores: vec![1], ..RunPlan::default() };
        let running =
            Running::start(assembly, &plan, |_| PacketPool::Native(pool.worker())).expect("threads");
        std::thread::sleep(Duration::from_millis(200));
        let (start, from) = (std::time::Instant::now(), running.report().received());
        std::thread::sleep(Duration::from_millis(600));
        let packets = running.report().received() - from;
        let ns = start.elapsed().as_nanos() as f64 / packets as f64;
        running.stop();
        let outcome = running.wait();
        println!("round {round}: {ns:.2} ns, {:.1} Mpps, drops {:?}", 1e3 / ns, outcome.report.dropped());
    }
}

fn udp(flow: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0];
    ip.extend(((flow / 50_000) as u16 + 1).to_be_bytes());
    ip.extend([10, 1, (flow % 10) as u8, 1]);
    let sum: u32 = ip.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(((flow % 50_000) as u16 + 1024).to_be_bytes());
    frame.extend([0, 80, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}
