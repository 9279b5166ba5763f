//! Packet threads allocate nothing in steady state. The test counts allocations for every element class, for
//! a fused region, and on both sides of an NF in a process of its own.
//!
//! The allocator counts its calls on packet threads while a window is open. A window opens when packets have
//! flowed for a while; by then, tables have grown to the number of flows. A failure names the configuration
//! and shows the backtrace of the first allocation.
#![expect(unsafe_code, reason = "an allocator")]

mod classes;

use chain::FusedElements;
use chain::SourceTexts;
use classes::{CASES, EXCEPTIONS};
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use nf_host::NfOutput;
use port::Port;
use port::frames::FrameSet;
use port::memory::MemoryPort;
use runtime::brief::{self, Brief};
use runtime::running::{RunPlan, Running};
use runtime::{Opener, Options, assemble};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use worker::fusion::FlowCache;

/// The system's allocator with a counter.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Whether a window is open.
static OPEN: AtomicBool = AtomicBool::new(false);
/// Calls of the allocator on packet threads in the window.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// The backtrace of the first one.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// Whether this is a packet thread. Const and without a destructor, so that reading it allocates nothing.
    static IS_PACKET_THREAD: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !OPEN.load(Ordering::Relaxed) || !IS_PACKET_THREAD.get() {
        return;
    }
    if CALLS.load(Ordering::Relaxed) > 0 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // The allocations of this function are not counted.
    IS_PACKET_THREAD.set(false);
    let trace = Backtrace::force_capture().to_string();
    CALLS.fetch_add(1, Ordering::Relaxed);
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
    IS_PACKET_THREAD.set(true);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Held by a test while it counts: there is only one window.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of a backtrace from this project, without the allocator's frames.
fn shortened(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().collect();
    let begin = lines.iter().rposition(|line| line.contains("allocations::count")).map_or(0, |at| at + 2);
    lines[begin.min(lines.len())..].iter().take(60).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

/// The shortest window: long enough for ageing and other timed work.
const WINDOW: Duration = Duration::from_millis(60);
/// The packets that an element has to process before a window and in it.
const PACKETS: u64 = 2_000;
/// The longest time for these packets.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts allocations while `moved` grows, after a warm-up. Returns the count with a backtrace if there are
/// any, or the reason why the packets stopped.
fn window(warm_up: Duration, moved: &dyn Fn() -> u64) -> Result<Option<String>, String> {
    let wait = |from: u64, least: Duration| {
        let start = Instant::now();
        while moved() < from + PACKETS || start.elapsed() < least {
            if start.elapsed() > PATIENCE {
                return Err(format!("{} packets moved in {PATIENCE:?}", moved() - from));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    };
    wait(0, warm_up)?;
    CALLS.store(0, Ordering::Relaxed);
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let from = moved();
    OPEN.store(true, Ordering::SeqCst);
    let waited = wait(from, WINDOW);
    OPEN.store(false, Ordering::SeqCst);
    waited?;
    let calls = CALLS.load(Ordering::Relaxed);
    // The thread that counts may still be storing the backtrace.
    let start = Instant::now();
    let first = || FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut trace = first();
    while calls > 0 && trace.is_none() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
        trace = first();
    }
    Ok(trace.map(|trace| format!("{calls} calls of the allocator; the first:\n{}", shortened(&trace))))
}

/// Frames of 40 flows for the port with this name.
fn frames(port: &str) -> Vec<Vec<u8>> {
    let ether = |ethertype: u16, payload: Vec<u8>| {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame.resize(frame.len().max(60), 0);
        frame
    };
    // An IPv4 packet; `fragment` has the flag for more fragments and the offset.
    let ip = |at: u8, protocol: u8, fragment: u16, transport: &[u8]| {
        let bytes = 20 + transport.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(bytes.to_be_bytes());
        packet.extend([0, at]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 10, 0, 0, at, 10, 1, 0, at % 8]);
        packet.extend(transport);
        assert!(packet::checksum::set_ipv4_header(packet.as_mut_slice(), 0, 20));
        packet
    };
    let udp = |at: u8| {
        ip(at, 17, 0, &[16, at, 0, 53, 0, 26, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    };
    let tcp = |at: u8| ip(at, 6, 0, &[16, at, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    let echo = |at: u8| {
        let mut message = vec![8, 0, 0, 0, 0, at, 0, 1, 1, 2, 3, 4];
        let sum = packet::checksum::icmp(message.as_slice(), 0, 12).expect("twelve bytes");
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        ip(at, 1, 0, &message)
    };
    let ip6 = |at: u8| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
        for last in [at, 200] {
            packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend([16, at, 0, 53, 0, 8, 1, 1]);
        packet
    };
    let arp =
        |at: u8| vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, at, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1];
    (1..=40u8)
        .flat_map(|at| match port {
            "ip" => vec![ether(0x800, udp(at)), ether(0x800, tcp(at)), ether(0x800, echo(at))],
            "udp" => vec![ether(0x800, udp(at))],
            "tcp" => vec![ether(0x800, tcp(at))],
            "echo" => vec![ether(0x800, echo(at))],
            "ip6" => vec![ether(0x86dd, ip6(at))],
            "arp" => vec![ether(0x806, arp(at))],
            "long" => vec![ether(0x800, ip(at, 17, 0, &[at; 1200]))],
            "fragments" => {
                vec![ether(0x800, ip(at, 17, 0x2000, &[at; 64])), ether(0x800, ip(at, 17, 8, &[at; 40]))]
            }
            "vlan" => vec![ether(0x8100, [vec![0, at % 4, 8, 0], udp(at)].concat())],
            _ => vec![
                ether(0x800, udp(at)),
                ether(0x800, tcp(at)),
                ether(0x86dd, ip6(at)),
                ether(0x806, arp(at)),
            ],
        })
        .collect()
}

/// Ports that receive the frames of their name and free the packets that are sent.
struct Ports;

impl Opener for Ports {
    fn open_port(&mut self, name: &str, direction: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(match direction {
            Direction::Receive => {
                MemoryPort::generator(name, Arc::new(FrameSet::new(frames(name)).expect("frames")))
            }
            _ => MemoryPort::sink(name),
        }))
    }
}

/// The options of a case.
fn options(folder: &Path, fused: FusedElements) -> Options {
    Options { fused, cache: FlowCache::Auto, folder: folder.to_path_buf(), ..Options::default() }
}

fn start(text: &str, options: &Options) -> Result<Running, String> {
    let mut map = SourceMap::new();
    let source = map.add("test.click", text);
    let mut diags = Diagnostics::new();
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &runtime::KnownClasses, &[], &mut diags);
    let assembly = assemble(&graph, options, &mut Ports, &mut diags).map_err(|error| error.to_string())?;
    let assembly = assembly.filter(|_| !diags.has_errors()).ok_or_else(|| diags.render_short(&map))?;
    let pool =
        SharedPool::new(PacketRegion::create(RegionOptions::slots(8192)).map_err(|error| error.to_string())?);
    let plan =
        RunPlan { on_thread: Arc::new(|_| IS_PACKET_THREAD.set(true)), print: |_| {}, ..RunPlan::default() };
    Running::start(assembly, &plan, |_| PacketPool::Native(pool.worker())).map_err(|error| error.to_string())
}

/// Runs a configuration and returns the allocations of the class's elements in steady state.
fn measure(class: &str, text: &str, options: &Options, warm_up: Duration) -> Result<Option<String>, String> {
    let running = start(text, options)?;
    let moved = || {
        let nodes = running.report().nodes.into_iter().filter(|node| node.class == class);
        nodes.map(|node| node.input + node.received + node.made + node.outputs.iter().sum::<u64>()).sum()
    };
    let found = window(warm_up, &moved);
    let cached = running.cache_counts();
    running.stop();
    let outcome = running.wait();
    if !outcome.is_sound() {
        return Err("the node counters do not balance".into());
    }
    if options.fused == FusedElements::All && options.cache == FlowCache::Eager && cached.hits <= cached.whole
    {
        return Err(format!("the flow cache was hardly used: {cached:?}"));
    }
    if options.fused == FusedElements::All && outcome.workers[0].regions.is_empty() {
        return Err("nothing was fused".into());
    }
    found
}

#[test]
fn no_element_allocates_in_steady_state() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let only = std::env::var("CLASS").ok();
    let mut failures = String::new();
    for (class, text) in CASES.iter().filter(|(class, _)| only.as_deref().is_none_or(|only| only == *class)) {
        let text = text.replace("FOLDER", &folder.path().display().to_string());
        match measure(class, &text, &options(folder.path(), FusedElements::Nothing), WINDOW) {
            Ok(None) => {}
            Ok(Some(found)) => writeln!(failures, "\n{class}: {text}\n{found}").expect("a string"),
            Err(why) => writeln!(failures, "\n{class}: {text}\nnot counted: {why}").expect("a string"),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// A fused region of mappings, rules and routes, as the whole program, and by the flow cache's templates.
/// Packets of a `Counter` have no templates, because it compares a number that they change.
#[test]
fn a_fused_region_allocates_nothing() {
    let _alone = alone();
    let text = "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(udp or tcp, -)
            -> r :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1)
            -> f :: IPFilter(deny dst port 7, allow all) -> t :: RadixIPLookup(10.0.0.0/8 0, 0/0 1)
            -> DecIPTTL -> COUNTER EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(out);
        c[1] -> d :: Discard; r[1] -> d; t[1] -> d;";
    for (cache, counter) in [(FlowCache::Never, "n :: Counter ->"), (FlowCache::Eager, "")] {
        let options = Options { cache, ..options(Path::new("."), FusedElements::All) };
        let found = measure("DecIPTTL", &text.replace("COUNTER", counter), &options, WINDOW)
            .unwrap_or_else(|why| panic!("{cache:?}: {why}"));
        assert!(found.is_none(), "{cache:?}: {}", found.unwrap_or_default());
    }
}

/// The packets that an NF in a process receives before its window, and in it.
const NF_PACKETS: u64 = 20_000;

/// The NF of the test below: this program, started again by the host. It passes packets on, and writes its
/// number of allocations into the file that its configuration names.
#[test]
fn the_nf() {
    if std::env::var_os(nf::ENVIRONMENT).is_none() {
        return;
    }
    let mut link = nf::Link::attach(&nf::Options::new("counted")).expect("a host");
    let file = String::from_utf8(link.config().to_vec()).expect("a path");
    let (mut packets, mut total) = (Vec::with_capacity(link.burst()), 0);
    let pass = |link: &mut nf::Link, packets: &mut Vec<nf::Packet>| {
        let count = link.receive(packets);
        packets.drain(..).for_each(|packet| link.pass(packet));
        if count == 0 {
            link.wait();
        }
        count as u64
    };
    while total < NF_PACKETS && !link.is_over() {
        total += pass(&mut link, &mut packets);
    }
    IS_PACKET_THREAD.set(true);
    OPEN.store(true, Ordering::SeqCst);
    while total < 2 * NF_PACKETS && !link.is_over() {
        total += pass(&mut link, &mut packets);
    }
    OPEN.store(false, Ordering::SeqCst);
    let trace = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
    let found = trace.map_or("nothing".into(), |trace| shortened(&trace));
    std::fs::write(&file, format!("{total} packets, {} calls\n{found}", CALLS.load(Ordering::Relaxed)))
        .expect("written");
    while !link.is_over() {
        pass(&mut link, &mut packets);
    }
    link.close();
}

/// Packets are enqueued to an NF in a process and return: neither side allocates.
#[test]
fn a_hop_through_an_nf_in_a_process_allocates_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let (said, chain_file) = (folder.path().join("nf.txt"), folder.path().join("chain.toml"));
    let program = std::env::current_exe().expect("this program");
    let text = format!(
        "links = [\"in -> [a]nf[b] -> out\"]
         [ports]
         in = {{ traffic = {{ flows = 40, size = 64 }} }}
         out = {{ discard = true }}
         [nf.nf]
         program = {program:?}
         arguments = [\"--exact\", \"the_nf\", \"--test-threads\", \"1\"]
         interfaces = [\"a\", \"b\"]
         confine = false
         config = {said:?}\n"
    );
    std::fs::write(&chain_file, text).expect("written");
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let mut sources = chain::SourceTexts::of_files();
    let chain =
        chain::load_from(&mut sources, &chain_file, &[], &runtime::KnownClasses, &mut map, &mut diags);
    let chain = chain.filter(|_| !diags.has_errors());
    let chain = chain.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    let brief = Brief {
        chain: chain_file,
        defines: vec![],
        evaluator: false,
        fused: false,
        cache: FlowCache::Off,
        sources: SourceTexts::of_files(),
    };
    let set = Arc::new(FrameSet::new(frames("ip")).expect("frames"));
    let made = Box::new(move |_: &chain::TrafficDecl, _: &mut Diagnostics| Some(Arc::clone(&set)));
    let starter = brief::starter(&brief, 64, NfOutput::Inherit).expect("a brief");
    let mut ports = runtime::resources::Resources::new(&chain, 1, RegionOptions::slots(8192), made)
        .start_by(starter, Arc::default());
    let options = Options { folder: folder.path().to_path_buf(), ..Options::default() };
    let assembly = assemble(&chain.graph, &options, &mut ports, &mut diags).expect("machine code");
    let assembly = assembly.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    let nfs = ports.supervisor().map(|nfs| nfs.handlers()).unwrap_or_default();
    let plan = RunPlan { on_thread: Arc::new(|_| IS_PACKET_THREAD.set(true)), nfs, ..RunPlan::default() };
    let running = Running::start(assembly, &plan, ports.pools().expect("memory")).expect("threads");
    // Packets that returned from the NF. Packets that were dropped before it started do not count.
    let moved = || {
        let report = running.report();
        let nf = report.nodes.iter().find(|node| node.class == "ProcessNF").expect("the NF");
        nf.outputs.iter().sum::<u64>()
    };
    let found = window(WINDOW, &moved);
    // The window of the NF.
    let start = Instant::now();
    while !said.exists() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    running.stop();
    let outcome = running.wait();
    drop(ports);
    assert_eq!(outcome.report.imbalance(), 0);
    let found = found.unwrap_or_else(|why| panic!("{why}"));
    assert!(found.is_none(), "the host's side: {}", found.unwrap_or_default());
    let said = std::fs::read_to_string(&said).expect("the NF moved packets");
    assert!(said.ends_with(" 0 calls\nnothing"), "the NF's side: {said}");
}

#[test]
fn every_class_is_counted_or_has_a_reason() {
    let listed: Vec<&str> = CASES.iter().chain(EXCEPTIONS).map(|(class, _)| *class).collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), distinct.len(), "a class is listed twice");
    let all: BTreeSet<&str> = runtime::registry::names().collect();
    let missing: Vec<_> = all.difference(&distinct).collect();
    let unknown: Vec<_> = distinct.difference(&all).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not listed: {missing:?}; no classes: {unknown:?}");
}
