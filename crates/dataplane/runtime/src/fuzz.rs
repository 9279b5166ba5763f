//! Random chains that run modular and fused and must give the same results: for fuzzing and for property
//! tests.
//!
//! The bytes choose a chain of elements that branches and joins, its frames, and the size of its bursts.
//! Compared are the frames sent by each port in their order, the counters of every element, and its handlers;
//! also with bursts of one packet. Only where packets wait in queues, the order is that of the queues.

mod answers;
mod both_ways;
mod classes;
#[cfg(test)]
mod pressure;
mod queues;
mod routers;
mod tcp;

pub use both_ways::fuzz_both_ways;
pub use classes::{LEFT_OUT, fuzz_classes};
pub use queues::fuzz_queues;
pub use routers::fuzz_routers;

use crate::assemble::{Options, assemble};
use crate::registry::KnownClasses;
use crate::running::{Outcome, RunPlan, Running};
use crate::services::Opener;
use answers::Answers;
use chain::FusedElements;
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use packet::checksum;
use port::frames::FrameSet;
use port::memory::{MemoryPort, SentFrames};
use port::{Moved, Port};
use shm::Packet;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use worker::clock::Clock;
use worker::fusion::FlowCache;
use worker::virtual_clock::VirtualClock;

/// Elements of one output. None adds bytes in front of a packet without writing them.
const THROUGH: &[&str] = &[
    "Strip(14)",
    "MarkMACHeader",
    "MarkIPHeader(0)",
    "CheckIPHeader",
    "CheckIPHeader(VERBOSE true, DETAILS true)",
    "MarkIPHeader(14)",
    "CheckIPHeader(14)",
    "DecIPTTL",
    "Counter",
    "Paint(1)",
    "Paint(2)",
    "EtherMirror",
    "IPMirror",
    "EtherRewrite(02:00:00:00:00:01, 02:00:00:00:00:02)",
    "EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)",
    "SetIPChecksum",
    "SetUDPChecksum",
    "GetIPAddress(16)",
    "StoreIPAddress(10.0.0.7, 12)",
    "SetIPDSCP(10)",
    "CheckLength(80)",
    "Truncate(70)",
    "FixIPSrc(10.0.0.1)",
    "IPGWOptions(10.0.0.1)",
    "IPFragmenter(68)",
    "DropBroadcasts",
    "SetAnnoByte(0, 7)",
    "VLANEncap(7)",
    "VLANDecap",
    "IPFilter(allow src net 10.0.0.0/9, allow udp && dst port < 1030, deny ttl 3, allow tcp opt syn, deny all)",
    "IPFilter(drop dst port 53, drop icmp, allow all)",
    "CheckUDPHeader",
    "CheckTCPHeader",
];

/// Elements of several outputs, with their number of outputs.
const PARTING: &[(&str, usize)] = &[
    ("Classifier(12/0800, 12/8100, -)", 3),
    ("Classifier(9/11, 9/06 33/02%02, -)", 3),
    ("IPClassifier(udp, tcp and dst port 80 or 443, src host 10.1.0.1, -)", 4),
    ("IPClassifier(ip ttl < 4, -)", 2),
    ("PaintSwitch", 3),
    ("CheckPaint(1)", 2),
    ("StaticIPLookup(10.0.0.0/9 0, 10.128.0.0/10 192.0.2.1 1, 10.192.0.0/12 2, 0/0 192.0.2.9 1)", 3),
    ("RadixIPLookup(10.0.0.0/9 0, 10.0.0.0/16 192.0.2.1 1, 0/0 0)", 2),
    ("DecIPTTL", 2),
    ("CheckIPHeader", 2),
    ("CheckLength(64)", 2),
    ("IPFragmenter(100)", 2),
    ("StaticSwitch(1)", 3),
    ("IPFilter(1 dst port 53, drop icmp, allow all)", 2),
    ("Switch(0)", 2),
];

/// Elements whose result depends on the order of packets, with their number of outputs.
const IN_ORDER: &[(&str, usize)] = &[
    ("IPRewriter(pattern 203.0.113.1 1024-1039# - - 0 0, SEED 1)", 1),
    ("IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, SEED 1)", 2),
    ("UDPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0, SEED 3)", 1),
    ("TCPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0, SEED 3)", 1),
    ("IPAddrPairRewriter(pattern 203.0.113.1-203.0.113.9# - 0 0)", 1),
    ("RoundRobinSwitch", 3),
];

/// Elements whose own code processes some packets.
const SLOW: [&str; 2] = ["IPGWOptions", "IPFragmenter"];

/// Elements without a program, at which a fused region ends. In the last one, packets may wait.
const OPAQUE: &[&str] = &["Print(CONTENTS false, ACTIVE false)", "SetTimestamp", "Queue(500) -> Unqueue"];

/// The most elements in a row.
const MOST_ELEMENTS: usize = 14;

struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(first)
    }

    fn one_of<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.byte() % of.len()]
    }
}

/// A chain of elements. Output 0 of each leads to the next one, its other outputs to later elements or to a
/// port. With `keeps_order`, packets arrive everywhere in their order: none waits in a queue.
fn chain(choices: &mut Choices<'_>, keeps_order: bool) -> String {
    let count = 2 + choices.byte() % (MOST_ELEMENTS - 1);
    let (mut text, mut wires) = (String::new(), String::from("FromDevice(in) -> e0;\n"));
    // Whether all packets have taken the same path so far.
    let mut together = true;
    // From this element on, no element depends on the order of packets: wires may lead back to it. In a loop,
    // packets of a burst pass it one after the other, and go round one after the other.
    let mut free = 0;
    for at in 0..count {
        let (what, outputs) = match choices.byte() % 8 {
            0 | 1 => *choices.one_of(PARTING),
            2 if together || keeps_order => {
                free = at + 1;
                *choices.one_of(IN_ORDER)
            }
            3 if choices.byte().is_multiple_of(4) => {
                let opaque = if keeps_order { &OPAQUE[..OPAQUE.len() - 1] } else { OPAQUE };
                (*choices.one_of(opaque), 1)
            }
            _ => (*choices.one_of(THROUGH), 1),
        };
        together &= outputs == 1 && !SLOW.iter().any(|slow| what.starts_with(slow));
        match what.split_once(" -> ") {
            // Pulls packets and pushes them again.
            Some((first, second)) => {
                text += &format!("e{at} :: {{ input -> {first} -> {second} -> output }};\n")
            }
            None => text += &format!("e{at} :: {what};\n"),
        }
        (0..outputs).for_each(|output| wires += &wire(choices, (at, output), count, free));
    }
    text + &wires
}

/// The wire of an output of element `at`, of so many elements: to one of the next elements, to a port, or back to an
/// element from `free` on.
fn wire(choices: &mut Choices<'_>, (at, output): (usize, usize), count: usize, free: usize) -> String {
    // A few wires lead back; the time to live ends such loops.
    if output > 0 && choices.byte().is_multiple_of(8) && free <= at {
        let back = free + choices.byte() % (at + 1 - free);
        return format!("e{at}[{output}] -> CheckIPHeader(14) -> DecIPTTL -> e{back};\n");
    }
    match at + 1 + if output == 0 { 0 } else { choices.byte() % 5 } {
        next if next > count + 1 => format!("e{at}[{output}] -> Discard;\n"),
        next if next < count => format!("e{at}[{output}] -> e{next};\n"),
        next => format!("e{at}[{output}] -> c{at}x{output} :: Counter -> ToDevice(out{});\n", next % 3),
    }
}

/// A mostly valid frame.
fn frame(choices: &mut Choices<'_>) -> Vec<u8> {
    let options = [0, 0, 0, 4, 8][choices.byte() % 5];
    let protocol = [17, 17, 6, 6, 1, 47][choices.byte() % 6];
    let payload = choices.byte() % 140;
    let (headers, transport) = (20 + options, if protocol == 6 { 20 } else { 8 });
    let mut frame = vec![0x02; 12];
    if choices.byte().is_multiple_of(16) {
        frame.extend([0x81, 0, 0, 7]);
    }
    frame.extend([0x08, 0]);
    let ip = frame.len();
    let total = (headers + transport + payload) as u16;
    let source = [10, [0, 1, 130, 200][choices.byte() % 4], 0, choices.byte() as u8 % 3];
    let target = [10, [0, 129, 193, 255][choices.byte() % 4], choices.byte() as u8 % 2, 9];
    let (ttl, fragment) = ([9, 9, 9, 1, 2, 3][choices.byte() % 6], choices.byte());
    frame.push(0x40 | (headers / 4) as u8);
    frame.push(0);
    frame.extend(total.to_be_bytes());
    frame.extend([0, fragment as u8]);
    frame.extend(match fragment % 16 {
        0 => [0x20, 0],
        1 => [0, 9],
        2 => [0x40, 0],
        _ => [0, 0],
    });
    frame.extend([ttl, protocol, 0, 0]);
    frame.extend(source);
    frame.extend(target);
    frame.extend(std::iter::repeat_n(1, options));
    let fits = checksum::set_ipv4_header(frame.as_mut_slice(), ip, headers);
    debug_assert!(fits, "the header was written");
    let port = 1020 + (choices.byte() % 16) as u16;
    frame.extend(port.to_be_bytes());
    frame.extend([80u16, 53, 443, 1025][choices.byte() % 4].to_be_bytes());
    match protocol {
        6 => {
            frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, choices.byte() as u8 & 0x17, 0, 1, 0xbe, 0xef, 0, 0])
        }
        _ => frame.extend([((transport + payload) >> 8) as u8, (transport + payload) as u8, 0, 0]),
    }
    frame.extend((0..payload).map(|at| at as u8));
    // Some are corrupt, and some are shorter than their length fields.
    match choices.byte() % 12 {
        0 => {
            let at = choices.byte() % frame.len();
            frame[at] ^= choices.byte() as u8;
        }
        1 => frame.truncate(1 + choices.byte() % frame.len()),
        _ => {}
    }
    frame
}

/// A port that advances the clock by a step with every received burst.
struct Ticking {
    inner: MemoryPort,
    now_ns: Arc<AtomicU64>,
    step_ns: u64,
    is_finished: Arc<AtomicBool>,
}

impl Port for Ticking {
    port::pass_on_to_inner!();

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        self.now_ns.fetch_add(self.step_ns, Ordering::Relaxed);
        let moved = self.inner.receive(pool, out);
        self.is_finished.store(self.inner.is_finished(), Ordering::Relaxed);
        moved
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        self.inner.send(pool, packets, list)
    }
}

/// Port `in` receives each frame `passes` times, and port `back` what answers the frames that left by `wan`;
/// all other ports collect the sent frames by name.
struct Ends {
    frames: Arc<FrameSet>,
    passes: u64,
    now_ns: Arc<AtomicU64>,
    step_ns: u64,
    is_finished: Arc<AtomicBool>,
    sent: BTreeMap<String, SentFrames>,
}

impl Opener for Ends {
    fn open_port(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        if name == "in" {
            let inner = MemoryPort::generator("in", Arc::clone(&self.frames))
                .limit(self.passes * self.frames.count() as u64);
            let (now_ns, is_finished) = (Arc::clone(&self.now_ns), Arc::clone(&self.is_finished));
            return Ok(Box::new(Ticking { inner, now_ns, step_ns: self.step_ns, is_finished }));
        }
        if name == "back" {
            let sent = Arc::clone(self.sent.entry("wan".into()).or_default());
            return Ok(Box::new(Answers::new(sent, Arc::clone(&self.is_finished))));
        }
        let sent = Arc::clone(self.sent.entry(name.into()).or_default());
        Ok(Box::new(MemoryPort::sink(name).keep_sent(sent)))
    }
}

/// An element's name, its packets in, its packets out by port, and its drops.
type Book = (String, u64, Vec<u64>, Vec<(String, u64)>);

/// The observable result of a run.
#[derive(PartialEq, Debug)]
struct Observed {
    sent: BTreeMap<String, Vec<Vec<u8>>>,
    counters: Vec<Book>,
    handlers: Vec<(String, Result<String, String>)>,
}

struct Setup {
    text: String,
    frames: Vec<Vec<u8>>,
    burst: usize,
    /// The time between two bursts.
    step_ns: u64,
    /// Whether packets wait for a time: the clock goes on by itself, and no packet passes a queue.
    is_timed: bool,
}

/// When the clock of a run begins, and how long a run with waiting packets lasts.
const START_NS: u64 = 5_000_000_000;
const TIME_NS: u64 = 3_000_000_000;
/// The file of a FromIPSummaryDump.
const SUMMARY: &str = "in.txt";
const SUMMARY_LINES: &str =
    "!data src dst proto sport dport\n10.0.0.1 10.0.0.9 U 1 2\n10.0.0.2 10.0.0.9 T 3 4\n";

impl Setup {
    /// Whether elements read or write files.
    fn has_files(&self) -> bool {
        self.text.contains("Dump(")
    }

    /// Whether no packets come that answer others. Answers come with the next burst.
    fn is_one_way(&self) -> bool {
        !self.text.contains("FromDevice(back")
    }
}

/// How a chain runs.
struct How {
    fused: FusedElements,
    evaluator: bool,
    cache: FlowCache,
    pass_queues: bool,
    /// Whether packets come one by one.
    one_by_one: bool,
}

/// What shortened the way of packets in a run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shortened {
    /// Packets that the flow cache handled.
    pub hits: u64,
    /// Unions of tables that were in use at the end.
    pub unions: usize,
}

fn run(setup: &Setup, how: How) -> Option<(Observed, Shortened)> {
    let How { fused, evaluator, cache, pass_queues, one_by_one } = how;
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("fuzz.click", setup.text.as_str());
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &KnownClasses, &[], &mut diags);
    let frames = Arc::new(FrameSet::new(&setup.frames).ok()?);
    let now_ns: Arc<AtomicU64> = Arc::new(START_NS.into());
    let virtual_clock =
        setup.is_timed.then(|| Arc::new(VirtualClock::new(1, START_NS, Some(START_NS + TIME_NS))));
    let clock = match &virtual_clock {
        Some(clock) => Clock::Virtual(Arc::clone(clock)),
        None => Clock::Manual(Arc::clone(&now_ns)),
    };
    let folder = setup.has_files().then(Folder::new);
    if let Some(folder) = &folder {
        std::fs::write(folder.0.join(SUMMARY), SUMMARY_LINES).expect("it can be written");
    }
    let (step_ns, is_finished) = (setup.step_ns, Arc::default());
    let mut ends = Ends { frames, passes: 8, now_ns, step_ns, is_finished, sent: BTreeMap::new() };
    let is_fused = fused != FusedElements::Nothing;
    let burst = if one_by_one { 1 } else { setup.burst };
    let path = folder.as_ref().map_or_else(Default::default, |folder| folder.0.clone());
    let options = Options { fused, evaluator, cache, burst, pass_queues, folder: path, ..Options::default() };
    let assembly = assemble(&graph, &options, &mut ends, &mut diags).expect("machine code");
    let assembly = assembly.unwrap_or_else(|| panic!("{}\n{}", setup.text, diags.render_short(&map)));
    let mut regions = assembly.regions.iter().flatten();
    assert!(regions.all(|region| region.is_wanted() == is_fused));
    let region = PacketRegion::create(RegionOptions::slots(2048)).expect("memory");
    let pool = SharedPool::new(region);
    let plan = RunPlan { burst, clock, print: |_| {}, ..RunPlan::default() };
    let running = Running::start(assembly, &plan, |_| PacketPool::Native(pool.worker()));
    let running = running.expect("threads");
    while virtual_clock.is_some() && !running.is_over() {
        if virtual_clock.as_ref().is_some_and(|clock| clock.is_at_end()) {
            running.stop();
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    let mut outcome = running.wait();
    assert!(outcome.is_sound(), "{}\n{:?}", setup.text, outcome.report.unbalanced().collect::<Vec<_>>());
    let regions = &outcome.workers[0].regions;
    let hits = regions.iter().map(|region| region.cache_counts().hits).sum();
    let unions = regions.iter().map(|region| region.unions()).sum();
    Some((
        Observed {
            counters: counters(&outcome),
            handlers: handlers(&mut outcome),
            sent: {
                drop(outcome);
                sent(&ends).into_iter().chain(folder.iter().flat_map(files)).collect()
            },
        },
        Shortened { hits, unions },
    ))
}

fn sent(ends: &Ends) -> BTreeMap<String, Vec<Vec<u8>>> {
    let frames = |sent: &SentFrames| sent.lock().expect("no panic").clone();
    ends.sent.iter().map(|(name, sent)| (name.clone(), frames(sent))).collect()
}

/// A folder of a run, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("millrace-fuzz-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left there is in nobody's way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The bytes of the files that were written.
fn files(folder: &Folder) -> Vec<(String, Vec<Vec<u8>>)> {
    let written = std::fs::read_dir(&folder.0).expect("it is there").flatten();
    let read = |file: std::fs::DirEntry| {
        let bytes = std::fs::read(file.path()).expect("it is there");
        (file.file_name().to_string_lossy().into_owned(), vec![bytes])
    };
    written.map(read).collect()
}

fn counters(outcome: &Outcome) -> Vec<Book> {
    let nodes = outcome.report.nodes.iter();
    nodes.map(|node| (node.name.clone(), node.input, node.outputs.clone(), node.dropped.clone())).collect()
}

fn handlers(outcome: &mut Outcome) -> Vec<(String, Result<String, String>)> {
    let mut names = vec![];
    for node in &mut outcome.workers[0].nodes {
        let handlers = node.element.as_mut().map(|element| element.handlers().list());
        names.extend(handlers.into_iter().flatten().map(|handler| format!("{}.{}", node.name, handler.name)));
    }
    let read = |name: String| {
        let value = outcome.read(&name);
        (name, value)
    };
    names.into_iter().map(read).collect()
}

/// The lines of a value in their order.
#[cfg(test)]
fn sorted(value: &str) -> String {
    let mut lines: Vec<&str> = value.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Runs a chain that its scripts change while packets of a few flows are repeated. Returns the values of its
/// handlers at the end, and what shortened the packets' way. Two passes take 12 times `step_ns`.
#[cfg(test)]
pub(crate) fn run_changing(
    text: &str,
    fused: FusedElements,
    evaluator: bool,
    cache: FlowCache,
    step_ns: u64,
) -> (Vec<String>, Shortened) {
    let mut seed: Vec<u8> = (0..=255).cycle().take(900).collect();
    seed.iter_mut().enumerate().for_each(|(at, byte)| *byte = byte.wrapping_mul(37) ^ (at / 7) as u8);
    let mut choices = Choices(&seed);
    let frames: Vec<Vec<u8>> = (0..30).map(|_| frame(&mut choices)).collect();
    let setup = Setup { text: text.into(), frames, burst: 5, step_ns, is_timed: false };
    let (seen, shortened) =
        run(&setup, How { fused, evaluator, cache, pass_queues: true, one_by_one: false }).expect("frames");
    // A full table evicts by what is merged so far, and so later mappings may take other places.
    let is_full = text.contains("MAPPING_CAPACITY");
    let handlers = seen.handlers.iter().map(|(name, value)| {
        let value = value.as_ref().map(|value| if is_full { sorted(value) } else { value.clone() });
        format!("{name} {value:?}")
    });
    (handlers.chain(seen.counters.iter().map(|book| format!("{book:?}"))).collect(), shortened)
}

/// Runs the chain that the bytes encode modular, fused, and fused with a flow cache. Returns the number of
/// packets that the flow cache handled.
///
/// # Panics
/// If the results differ.
pub fn fuzz_forms(data: &[u8]) -> u64 {
    let mut choices = Choices(data);
    let text = chain(&mut choices, true);
    let burst = 1 + choices.byte() % 64;
    let frames = (0..4 + choices.byte() % 40).map(|_| frame(&mut choices)).collect();
    // Too short for records to expire.
    let step_ns = [0, 0, 10_000_000, 100_000_000, 250_000_000][choices.byte() % 5];
    all_do_the_same(&Setup { text, frames, burst, step_ns, is_timed: false }).hits
}

/// Runs a chain in all ways. Returns what shortened the packets' way in all of them.
///
/// # Panics
/// If the results differ.
fn all_do_the_same(setup: &Setup) -> Shortened {
    let has_queues = setup.text.contains("Queue");
    let (nothing, all_of) = (FusedElements::Nothing, FusedElements::All);
    let kept = How {
        fused: nothing.clone(),
        evaluator: true,
        cache: FlowCache::Never,
        pass_queues: false,
        one_by_one: false,
    };
    let modular = run(setup, kept);
    let mut all = Shortened::default();
    for (fused, evaluator, cache, one_by_one) in [
        (&nothing, false, FlowCache::Never, false),
        (&all_of, true, FlowCache::Never, false),
        (&all_of, false, FlowCache::Never, false),
        (&all_of, true, FlowCache::Eager, false),
        (&all_of, false, FlowCache::Eager, false),
        (&nothing, false, FlowCache::Never, true),
    ] {
        // Packets wait in a queue for a turn, and the clock moves with each burst.
        if one_by_one && (has_queues || setup.is_timed || setup.step_ns > 0 || !setup.is_one_way()) {
            continue;
        }
        let pass_queues = !setup.is_timed;
        let how = How { fused: fused.clone(), evaluator, cache, pass_queues, one_by_one };
        let fused = run(setup, how);
        let (Some((modular, _)), Some((fused, shortened))) = (&modular, &fused) else { continue };
        all.hits += shortened.hits;
        all.unions += shortened.unions;
        let told = format!(
            "evaluator {evaluator}, flow cache {cache:?}, bursts of {}, one by one {one_by_one}:\n{}",
            setup.burst, setup.text
        );
        for (one, other) in modular.counters.iter().zip(&fused.counters) {
            assert_eq!(one, other, "{told}");
        }
        // A queue may hold other packets until the next turn; rates say when packets passed. Packets that pass a
        // queue are not counted as having waited. RED looks at the queue once for all packets that come together.
        let is_timed = |name: &str| {
            (has_queues || one_by_one)
                && ["rate", "highwater_length", "avg_queue_size", "RED@1.stats"]
                    .iter()
                    .any(|end| name.ends_with(end))
        };
        for (one, other) in modular.handlers.iter().zip(&fused.handlers) {
            assert!(one == other || one.0 == other.0 && is_timed(&one.0), "{one:?} and {other:?}, {told}");
        }
        for ((name, one), (same, other)) in modular.sent.iter().zip(&fused.sent) {
            let (mut one, mut other) = (one.clone(), other.clone());
            if has_queues {
                one.sort_unstable();
                other.sort_unstable();
            }
            let differs = one.iter().zip(&other).position(|(one, other)| one != other);
            let at = differs.map(|at| (at, &one[at], &other[at]));
            assert_eq!((name, one.len(), at), (same, other.len(), None), "{told}");
        }
    }
    all
}

#[cfg(test)]
mod tests;
