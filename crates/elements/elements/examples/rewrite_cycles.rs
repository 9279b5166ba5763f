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
#![expect(unsafe_code, reason = "reads the time stamp counter")]

use click::config::NameTable;
use codegen::{CodeBuilder, Engine, Exits, Scratch};
use diag::{Diagnostics, SourceMap, Spanned};
use element::configure::Direction;
use element::{Configure, Element, Scope, Services, Shape};
use ir::eval::State;
use ir::{Table, Tables};
use port::Port;
use shm::Packet;
use shm::descriptor::HEADROOM;
use shm::pool::{PacketPool, Pool, SharedPool};
use shm::region::{Region, RegionOptions};
use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 31;
const SLOTS: usize = 256;
const PACKETS_PER_ROUND: usize = 1 << 17;

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

#[derive(Default)]
struct NoServices(HashMap<String, Arc<dyn Any + Send + Sync>>);

impl Services for NoServices {
    fn open_port(&mut self, name: &str, _: Direction) -> Result<Box<dyn Port>, String> {
        Err(format!("no port {name}"))
    }
    fn path(&self, name: &Path) -> PathBuf {
        name.to_path_buf()
    }
    fn shared_any(
        &mut self,
        _: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        self.0.entry(key.to_string()).or_insert_with(make).clone()
    }
    fn element(&self, _: &str, _: &str) -> Option<(String, &'static str)> {
        None
    }
}

struct ElementTables<'a>(&'a mut dyn Element);

impl Tables for ElementTables<'_> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.0.table(index)
    }
}

/// A rewriter as a worker holds it.
struct Rewriter {
    element: Box<dyn Element>,
    engine: Engine,
    cells: Vec<u64>,
    scratch: Scratch,
    exits: Exits,
}

impl Rewriter {
    fn new(class: &str, config: &str, shape: Shape) -> Rewriter {
        let class = element::find(elements::CLASSES, class).expect("a class");
        let mut map = SourceMap::new();
        let source = map.add("example", config);
        let config = Spanned::verbatim(config, map.whole(source));
        let (names, mut diags) = (NameTable::new(), Diagnostics::new());
        let mut cx = Configure {
            name: "nat",
            config: &config,
            span: config.span,
            shape,
            worker: 0,
            workers: 1,
            names: &names.scoped("nat"),
            diags: &mut diags,
            services: &mut NoServices::default(),
        };
        let element = (class.make)(&mut cx);
        assert!(!diags.has_errors(), "{}", diags.render_short(&map));
        let element = element.expect("an element");
        let program = element.lower(shape).expect("transparent").expect("valid");
        let mut builder = CodeBuilder::new().expect("this machine");
        let program = ir::Verified::new(program).expect("valid").into();
        let id = builder.add(&program).expect("compiles");
        let engine = Engine::Native(builder.finish().expect("memory").compiled(id));
        let cells = program.cells.iter().map(|cell| cell.init).collect();
        let (scratch, exits) = (Scratch::default(), Exits::with_capacity(8));
        Rewriter { element, engine, cells, scratch, exits }
    }

    #[inline(never)]
    fn run(&mut self, packets: &mut [Packet], list: &[u16], now_ns: u64) {
        let mut tables = ElementTables(self.element.as_mut());
        let mut state = State { cells: &mut self.cells, tables: &mut tables, now_ns };
        let (scratch, exits) = (&mut self.scratch, &mut self.exits);
        let burst = codegen::Burst { input: 0, packets, list };
        codegen::run(&self.engine, burst, &mut state, scratch, exits);
    }
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

/// A frame of 60 bytes, as it stands in memory without its FCS.
fn frame(flow: u32, tcp: bool) -> [u8; 64] {
    let mut frame = [0u8; 64];
    frame[12] = 8;
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&46u16.to_be_bytes());
    ip[8] = 64;
    ip[9] = if tcp { 6 } else { 17 };
    ip[12..16].copy_from_slice(&(0x0a00_0000 | flow >> 6).to_be_bytes());
    ip[16..20].copy_from_slice(&[192, 0, 2, (flow & 3) as u8 + 1]);
    frame[34..36].copy_from_slice(&(1024 + (flow & 63) as u16 * 16).to_be_bytes());
    frame[36..38].copy_from_slice(&443u16.to_be_bytes());
    if tcp {
        (frame[46], frame[47]) = (0x50, 0x10);
        frame[50] = 7;
    } else {
        frame[39] = 26;
        frame[40] = 7;
    }
    frame
}

/// Copies frames into slots and makes their descriptors: what receiving costs at least.
#[inline(never)]
fn receive(packets: &mut [Packet], slots: &[Packet], frames: &[[u8; 64]]) {
    for ((packet, slot), frame) in packets.iter_mut().zip(slots).zip(frames) {
        *packet = *slot;
        assert!(packet.set_ends(packet.data(), 60));
        (packet.mac, packet.net, packet.trans) = (packet.data(), packet.data() + 14, packet.data() + 34);
        // SAFETY: the slot is ours, its buffer has more than `HEADROOM + 64` bytes.
        unsafe { ((packet.buf() + u64::from(packet.data())) as *mut [u8; 64]).write_unaligned(*frame) };
    }
}

fn median(costs: &mut [f64]) -> (f64, f64, f64) {
    costs.sort_by(f64::total_cmp);
    let at = |share: usize| costs[(costs.len() - 1) * share / 10];
    (at(5), at(1), at(9))
}

fn measure(class: &str, config: &str, outputs: usize, flows: u32, burst: usize, tcp_share: u32) {
    let shape = Shape { inputs: 1, outputs };
    let mut rewriter = Rewriter::new(class, config, shape);
    let region = Region::create(RegionOptions::slots(1024)).expect("memory");
    let mut pool = PacketPool::Native(SharedPool::new(region).worker());
    let mut slots = vec![Packet::EMPTY; SLOTS];
    assert_eq!(pool.alloc(&mut slots), SLOTS);
    assert!(slots.iter().all(|slot| usize::from(slot.data()) == HEADROOM));

    let mut random = Random(7);
    let mut frames: Vec<[u8; 64]> = (0..flows).map(|flow| frame(flow, flow % 100 < tcp_share)).collect();
    for at in (1..frames.len()).rev() {
        frames.swap(at, (random.next() % (at as u64 + 1)) as usize);
    }
    let list: Vec<u16> = (0..burst as u16).collect();
    let mut vector = vec![Packet::EMPTY; burst];
    let mut now_ns = 1_000_000_000;
    let bursts = PACKETS_PER_ROUND / burst;
    let (mut at_frame, mut at_slot) = (0, 0);
    let mut next = |vector: &mut [Packet]| {
        if at_frame + burst > frames.len() {
            at_frame = 0;
        }
        if at_slot + burst > SLOTS {
            at_slot = 0;
        }
        receive(vector, &slots[at_slot..at_slot + burst], &frames[at_frame..at_frame + burst]);
        at_frame += burst;
        at_slot += burst;
    };
    let mut floor = vec![];
    let mut whole = vec![];
    let mut alone = vec![];
    for round in 0..ROUNDS + 3 {
        let start = cycles();
        for _ in 0..bursts {
            next(&mut vector);
        }
        let floor_cycles = cycles() - start;
        let start = cycles();
        for _ in 0..bursts {
            next(&mut vector);
            now_ns += 10_000;
            rewriter.run(&mut vector, &list, now_ns);
        }
        let whole_cycles = cycles() - start;
        let mut run_cycles = 0;
        for _ in 0..bursts {
            next(&mut vector);
            now_ns += 10_000;
            let start = cycles();
            rewriter.run(&mut vector, &list, now_ns);
            run_cycles += cycles() - start;
        }
        rewriter.element.tick(now_ns);
        if round >= 3 {
            let per_packet = |cycles: u64| cycles as f64 / (bursts * burst) as f64;
            floor.push(per_packet(floor_cycles));
            whole.push(per_packet(whole_cycles));
            alone.push(per_packet(run_cycles));
        }
    }
    let emitted: usize = (0..outputs).map(|port| rewriter.exits.output(port).len()).sum();
    assert_eq!(emitted, burst, "every packet has a mapping");
    let mut over: Vec<f64> = whole.iter().zip(&floor).map(|(whole, floor)| whole - floor).collect();
    let (floor, (over, low, high), whole, alone) =
        (median(&mut floor).0, median(&mut over), median(&mut whole).0, median(&mut alone).0);
    println!(
        "{class:<18} {flows:>6} flows, {tcp_share:>3}% TCP, bursts of {burst}: {over:6.1} over the floor \
         ({low:.1} to {high:.1}); floor {floor:.1}, whole {whole:.1}, run {alone:.1}"
    );
    pool.free_all(&slots);
}

fn main() {
    let start = (Instant::now(), cycles());
    while start.0.elapsed().as_millis() < 50 {}
    let per_ns = (cycles() - start.1) as f64 / start.0.elapsed().as_nanos() as f64;
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
