//! Prints what the elements of IP forwarding cost: cycles per packet of each alone, as machine code,
//! median over rounds, on frames of 64 bytes (with FCS) of 1,000 and 65,536 flows; and how long a
//! routing table takes to load.
//!
//! `forward_cycles [PREFIXES]` also loads the prefixes of a file, one a line, and looks addresses
//! under them up. Nothing else should run beside it.
#![expect(unsafe_code, reason = "reads the time stamp counter, writes packet memory")]

use click::config::NameTable;
use codegen::{CodeBuilder, Engine, Exits, Scratch};
use diag::{Diagnostics, SourceMap, Spanned};
use element::configure::Direction;
use element::{Configure, Element, Scope, Services, Shape};
use ir::eval::State;
use ir::{Table, Tables};
use packet::anno;
use port::Port;
use shm::Packet;
use shm::descriptor::NO_HEADER;
use shm::pool::{PacketPool, Pool, SharedPool};
use shm::region::{Region, RegionOptions};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 31;
const BURST: usize = 32;
const SLOTS: usize = 256;
const BURSTS_PER_ROUND: usize = 4096;

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

struct NoServices;

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
        _: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        make()
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

/// An element as a worker holds it.
struct Running {
    element: Box<dyn Element>,
    engine: Engine,
    cells: Vec<u64>,
    scratch: Scratch,
    exits: Exits,
}

impl Running {
    fn new(class: &str, config: &str, outputs: usize) -> Running {
        let class = element::find(elements::CLASSES, class).expect("a class");
        let shape = Shape { inputs: 1, outputs };
        let mut map = SourceMap::new();
        let source = map.add("example", config);
        let config = Spanned::verbatim(config, map.whole(source));
        let (names, mut diags) = (NameTable::new(), Diagnostics::new());
        let mut cx = Configure {
            name: "e",
            config: &config,
            span: config.span,
            shape,
            worker: 0,
            workers: 1,
            names: &names.scoped("e"),
            diags: &mut diags,
            services: &mut NoServices,
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
        Running { element, engine, cells, scratch, exits }
    }

    #[inline(never)]
    fn run(&mut self, packets: &mut [Packet], list: &[u16]) {
        let mut tables = ElementTables(self.element.as_mut());
        let mut state = State { cells: &mut self.cells, tables: &mut tables, now_ns: 1 };
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

/// A frame of 60 bytes with UDP, as it stands in memory without its FCS.
fn frame(flow: u32, destination: u32) -> [u8; 64] {
    let mut frame = [0u8; 64];
    frame[12] = 8;
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&46u16.to_be_bytes());
    (ip[8], ip[9]) = (64, 17);
    ip[12..16].copy_from_slice(&(0x0a00_0000 | flow).to_be_bytes());
    ip[16..20].copy_from_slice(&destination.to_be_bytes());
    let sum = packet::checksum::ipv4_header(ip, 0, 20).expect("a whole header");
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame[39] = 26;
    frame
}

#[inline(never)]
fn receive(packets: &mut [Packet], slots: &[Packet], frames: &[[u8; 64]], marked: bool) {
    let at = usize::from(anno::DST_IP.offset);
    for ((packet, slot), frame) in packets.iter_mut().zip(slots).zip(frames) {
        *packet = *slot;
        packet.mac = packet.data();
        assert!(packet.set_ends(packet.data(), 60));
        (packet.net, packet.trans) = (NO_HEADER, NO_HEADER);
        if marked {
            (packet.net, packet.trans) = (packet.data() + 14, packet.data() + 34);
            let destination = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]);
            packet.anno[at..at + 4].copy_from_slice(&destination.to_le_bytes());
        }
        // SAFETY: the slot is ours, its buffer has more than 128 + 64 bytes.
        unsafe { ((packet.buf() + u64::from(packet.data())) as *mut [u8; 64]).write_unaligned(*frame) };
    }
}

fn median(costs: &mut [f64]) -> (f64, f64, f64) {
    costs.sort_by(f64::total_cmp);
    let at = |share: usize| costs[(costs.len() - 1) * share / 10];
    (at(5), at(1), at(9))
}

/// Prints what an element costs a packet; destinations are what `destination` gives.
fn measure(label: &str, running: &mut Running, flows: u32, destination: &mut dyn FnMut(u64) -> u32) {
    let region = Region::create(RegionOptions::slots(1024)).expect("memory");
    let mut pool = PacketPool::Native(SharedPool::new(region).worker());
    let mut slots = vec![Packet::EMPTY; SLOTS];
    assert_eq!(pool.alloc(&mut slots), SLOTS);
    let mut random = Random(7);
    let frames: Vec<[u8; 64]> = (0..flows).map(|flow| frame(flow, destination(random.next()))).collect();
    let list: Vec<u16> = (0..BURST as u16).collect();
    let mut vector = vec![Packet::EMPTY; BURST];
    let marked = !running.engine.program().name.starts_with("CheckIPHeader");
    let (mut at_frame, mut at_slot, mut costs) = (0, 0, vec![]);
    for round in 0..ROUNDS + 3 {
        let mut sum = 0;
        for _ in 0..BURSTS_PER_ROUND {
            if at_frame + BURST > frames.len() {
                at_frame = 0;
            }
            at_slot = if at_slot + BURST > SLOTS { 0 } else { at_slot };
            receive(
                &mut vector,
                &slots[at_slot..at_slot + BURST],
                &frames[at_frame..at_frame + BURST],
                marked,
            );
            (at_frame, at_slot) = (at_frame + BURST, at_slot + BURST);
            let start = cycles();
            running.run(&mut vector, &list);
            sum += cycles() - start;
        }
        if round >= 3 {
            costs.push(sum as f64 / (BURSTS_PER_ROUND * BURST) as f64);
        }
    }
    let outputs = usize::from(running.engine.program().outputs);
    let emitted: usize = (0..outputs).map(|port| running.exits.output(port).len()).sum();
    let (median, low, high) = median(&mut costs);
    println!(
        "{label:<34} {flows:>6} flows: {median:6.1} ({low:.1} to {high:.1}), {emitted} of {BURST} emitted"
    );
    pool.free_all(&slots);
}

fn main() {
    let start = (Instant::now(), cycles());
    while start.0.elapsed().as_millis() < 50 {}
    let per_ns = (cycles() - start.1) as f64 / start.0.elapsed().as_nanos() as f64;
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
    by_handler.element.write("ctrl", &commands.join("\n"), &mut []).expect("routes");
    println!("{} routes by ctrl: {:.2} s", lines.len(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let table = by_handler.element.read("table", &[]).map_or(0, |table| table.lines().count());
    println!("table of {table} lines: {:.2} s", start.elapsed().as_secs_f64());
    let networks: Vec<u32> = four
        .filter_map(|line| line.split_once('/')?.0.parse::<std::net::Ipv4Addr>().ok().map(u32::from))
        .collect();
    let mut under = |random: u64| networks[random as usize % networks.len()] | (random >> 40) as u32 & 0xff;
    for flows in [1_000, 65_536, 1 << 20] {
        measure("RadixIPLookup(full table)", &mut full, flows, &mut under);
    }
}
