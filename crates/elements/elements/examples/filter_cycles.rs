//! Prints what `IPFilter` costs: cycles per packet of the element alone, as machine code, for lists of
//! 1 to 8,550 rules, median over rounds, on frames of 64 bytes (with FCS) that lie in rules chosen at
//! random; and how long a list takes to configure.
//!
//! `filter_cycles [RULES TRACE ...]` reads filter sets and traces in ClassBench's formats instead of
//! making sets up (a trace may be gzip'd). Nothing else should run beside it.
#![expect(unsafe_code, reason = "reads the time stamp counter, writes packet memory")]

use click::config::NameTable;
use codegen::{CodeBuilder, Engine, Exits, Scratch};
use diag::{Diagnostics, SourceMap, Spanned};
use element::configure::Direction;
use element::{Configure, Element, Scope, Services, Shape};
use elements::filter::classbench::configuration;
use ir::eval::State;
use ir::{Table, Tables};
use port::Port;
use shm::Packet;
use shm::pool::{PacketPool, Pool, SharedPool};
use shm::region::{Region, RegionOptions};
use std::any::Any;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use table::acl::classbench::{Filter, parse_filters, parse_trace};
use table::acl::generate::{Profile, Random, filters, headers};
use table::acl::{Rule, Schema};

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
    scratch: Scratch,
    exits: Exits,
    made_ms: f64,
}

impl Running {
    fn new(config: &str) -> Running {
        let start = Instant::now();
        let class = element::find(elements::CLASSES, "IPFilter").expect("a class");
        let shape = Shape { inputs: 1, outputs: 1 };
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
        let (scratch, exits) = (Scratch::default(), Exits::with_capacity(8));
        let made_ms = start.elapsed().as_secs_f64() * 1e3;
        Running { element, engine, scratch, exits, made_ms }
    }

    #[inline(never)]
    fn run(&mut self, packets: &mut [Packet], list: &[u16]) {
        let mut tables = ElementTables(self.element.as_mut());
        let mut state = State { cells: &mut [], tables: &mut tables, now_ns: 1 };
        let (scratch, exits) = (&mut self.scratch, &mut self.exits);
        let burst = codegen::Burst { input: 0, packets, list };
        codegen::run(&self.engine, burst, &mut state, scratch, exits);
    }
}

/// A frame of 60 bytes, as it stands in memory without its FCS, for a five-tuple.
fn frame([src, dst, sport, dport, proto]: [u32; 5]) -> [u8; 64] {
    let mut frame = [0u8; 64];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&46u16.to_be_bytes());
    (frame[22], frame[23]) = (64, proto as u8);
    frame[26..30].copy_from_slice(&src.to_be_bytes());
    frame[30..34].copy_from_slice(&dst.to_be_bytes());
    frame[34..36].copy_from_slice(&(sport as u16).to_be_bytes());
    frame[36..38].copy_from_slice(&(dport as u16).to_be_bytes());
    frame
}

#[inline(never)]
fn receive(packets: &mut [Packet], slots: &[Packet], frames: &[[u8; 64]]) {
    for ((packet, slot), frame) in packets.iter_mut().zip(slots).zip(frames) {
        *packet = *slot;
        packet.mac = packet.data();
        assert!(packet.set_ends(packet.data(), 60));
        (packet.net, packet.trans) = (packet.data() + 14, packet.data() + 34);
        // SAFETY: the slot is ours, its buffer has more than 128 + 64 bytes.
        unsafe { ((packet.buf() + u64::from(packet.data())) as *mut [u8; 64]).write_unaligned(*frame) };
    }
}

fn median(costs: &mut [f64]) -> (f64, f64, f64) {
    costs.sort_by(f64::total_cmp);
    let at = |share: usize| costs[(costs.len() - 1) * share / 10];
    (at(5), at(1), at(9))
}

/// Prints what the element costs a packet.
fn measure(label: &str, running: &mut Running, keys: &[[u32; 5]]) {
    let region = Region::create(RegionOptions::slots(1024)).expect("memory");
    let mut pool = PacketPool::Native(SharedPool::new(region).worker());
    let mut slots = vec![Packet::EMPTY; SLOTS];
    assert_eq!(pool.alloc(&mut slots), SLOTS);
    let frames: Vec<[u8; 64]> = keys.iter().map(|key| frame(*key)).collect();
    let list: Vec<u16> = (0..BURST as u16).collect();
    let mut vector = vec![Packet::EMPTY; BURST];
    let (mut at_frame, mut at_slot, mut costs) = (0, 0, vec![]);
    let (mut passed, mut seen) = (0, 0);
    for round in 0..ROUNDS + 3 {
        let mut bursts = Vec::with_capacity(BURSTS_PER_ROUND);
        for _ in 0..BURSTS_PER_ROUND {
            if at_frame + BURST > frames.len() {
                at_frame = 0;
            }
            at_slot = if at_slot + BURST > SLOTS { 0 } else { at_slot };
            receive(&mut vector, &slots[at_slot..at_slot + BURST], &frames[at_frame..at_frame + BURST]);
            (at_frame, at_slot) = (at_frame + BURST, at_slot + BURST);
            let start = cycles();
            running.run(&mut vector, &list);
            bursts.push((cycles() - start) as f64);
            (passed, seen) = (passed + running.exits.output(0).len(), seen + BURST);
        }
        if round >= 3 {
            // The median burst: what the machine does beside shows in a few bursts of a round.
            costs.push(median(&mut bursts).0 / BURST as f64);
        }
    }
    let (median, low, high) = median(&mut costs);
    println!(
        "{label:<30} {:>8.1} ms {:>6} headers {median:7.1} ({low:.1} to {high:.1}), {}% allowed",
        running.made_ms,
        keys.len(),
        passed * 100 / seen,
    );
    pool.free_all(&slots);
}

fn text(path: &str) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
        return text;
    }
    String::from_utf8(bytes).expect("text")
}

/// Every second rule allows.
fn config(filters: &[Filter]) -> String {
    configuration(filters, |at| if at % 2 == 0 { "allow" } else { "deny" })
}

/// Headers in rules chosen at random.
fn inside(filters: &[Filter], count: usize) -> Vec<[u32; 5]> {
    let schema = Schema::ipv4_five_tuple();
    let rules: Vec<Rule> = filters.iter().map(|filter| filter.rule().expect("a rule")).collect();
    let keys = headers(&schema, &rules, count, 0.0, 2);
    keys.iter().map(|key| std::array::from_fn(|at| key[at])).collect()
}

/// A firewall as people write it.
const TEN: &str =
    "deny src net 10.0.0.0/8, deny src net 192.168.0.0/16, deny ip frag, deny tcp && dst port 23,
    allow tcp && dst port 80 or 443, allow udp && dst port 53, allow icmp type echo,
    deny udp && dst port 137-139, allow tcp opt ack, allow dst net 18.26.0.0/16, deny all";

/// Headers of clients: TCP to web servers, some DNS, some others.
fn clients(count: usize) -> Vec<[u32; 5]> {
    let mut random = Random::new(5);
    let header = |_| {
        let (src, dst) = (random.within(0x0b00_0000, 0xbfff_ffff), random.within(0x1200_0000, 0x1fff_ffff));
        let sport = random.within(1024, 65535);
        let (proto, dport) = match random.below(10) {
            0..6 => (6, 443),
            6 => (6, 80),
            7 | 8 => (17, 53),
            _ => (17, random.within(1, 65535)),
        };
        [src, dst, sport, dport, proto]
    };
    (0..count).map(header).collect()
}

fn main() {
    let start = (Instant::now(), cycles());
    while start.0.elapsed().as_millis() < 50 {}
    let per_ns = (cycles() - start.1) as f64 / start.0.elapsed().as_nanos() as f64;
    println!(
        "cycles per packet, {per_ns:.3} GHz, bursts of {BURST}; median of {ROUNDS} rounds, first to ninth decile"
    );
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        for headers in [1_000, 65_536] {
            measure("allow all", &mut Running::new("allow all"), &clients(headers));
            measure("a firewall of 10 rules", &mut Running::new(TEN), &clients(headers));
            for count in [1, 10, 32, 33, 100, 1_000, 8_550] {
                let set = filters(Profile::Acl, count, 1);
                let label = format!("{count} rules");
                measure(&label, &mut Running::new(&config(&set)), &inside(&set, headers));
            }
        }
        return;
    }
    for pair in arguments.chunks(2) {
        let [rules, trace] = pair else { panic!("arguments come in pairs: RULES TRACE") };
        let set = parse_filters(&text(rules)).expect("filters");
        let trace = parse_trace(&text(trace)).expect("a trace");
        let keys: Vec<[u32; 5]> = trace.iter().map(|header| header.key).collect();
        let label = format!("{} ({})", rules.rsplit('/').next().unwrap_or(""), set.len());
        let mut running = Running::new(&config(&set));
        measure(&label, &mut running, &keys);
        println!("    {}", running.element.read("program", &[]).unwrap_or_default().replace('\n', "; "));
    }
}
