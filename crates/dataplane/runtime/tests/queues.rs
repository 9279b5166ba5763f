//! Queues that packets pass: the same packets, in the same order, with the same counters, as if they had
//! waited.

use chain::FusedElements;
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use port::frames::FrameSet;
use port::memory::{MemoryPort, SentFrames};
use port::{Moved, Port};
use runtime::running::{Outcome, RunPlan, Running};
use runtime::{Assembly, Opener, Options, assemble};
use shm::Packet;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::sync::Arc;
use std::time::{Duration, Instant};
use worker::fusion::FlowCache;

/// A port that takes as many packets as the next number says, again and again.
struct Narrow {
    inner: MemoryPort,
    takes: Vec<usize>,
    next: usize,
}

impl Port for Narrow {
    port::pass_on_to_inner!();

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        self.inner.receive(pool, out)
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let most = self.takes.get(self.next).copied().unwrap_or(list.len());
        self.next = (self.next + 1) % self.takes.len().max(1);
        self.inner.send(pool, packets, &list[..most.min(list.len())])
    }
}

/// Port `in` replays frames `count` times; all other ports collect the sent frames.
struct Ports {
    frames: Arc<FrameSet>,
    count: u64,
    takes: Vec<usize>,
    sent: SentFrames,
}

impl Opener for Ports {
    fn open_port(&mut self, name: &str, _: Direction, _: usize) -> Result<Box<dyn Port>, String> {
        if name == "in" {
            return Ok(Box::new(MemoryPort::generator("in", Arc::clone(&self.frames)).limit(self.count)));
        }
        let inner = MemoryPort::sink(name).keep_sent(Arc::clone(&self.sent));
        Ok(Box::new(Narrow { inner, takes: self.takes.clone(), next: 0 }))
    }
}

fn build(text: &str, ports: &mut Ports, options: &Options) -> Assembly {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("test.click", text);
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &runtime::registry::KnownClasses, &[], &mut diags);
    let assembly = assemble(&graph, options, ports, &mut diags).expect("machine code");
    assembly.unwrap_or_else(|| panic!("{text}\n{}", diags.render_short(&map)))
}

/// UDP datagrams that are numbered by their last two bytes.
fn frames(count: usize, ttl: u8) -> Vec<Vec<u8>> {
    let numbered = |at: usize| {
        let mut frame = vec![0x02; 12];
        frame.extend([0x08, 0, 0x45, 0, 0, 86, 0, 0, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([4, 0, 0, 53, 0, 66, 0, 0]);
        frame.resize(98, 0);
        assert!(packet::checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
        frame.extend((at as u16).to_be_bytes());
        frame
    };
    (0..count).map(numbered).collect()
}

/// The numbers of frames.
fn numbers(sent: &[Vec<u8>]) -> Vec<u16> {
    sent.iter().map(|frame| u16::from_be_bytes([frame[frame.len() - 2], frame[frame.len() - 1]])).collect()
}

fn ports(frames: &[Vec<u8>], count: u64, takes: &[usize]) -> Ports {
    let frames = Arc::new(FrameSet::new(frames).expect("frames"));
    Ports { frames, count, takes: takes.to_vec(), sent: SentFrames::default() }
}

fn start(assembly: Assembly) -> Running {
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(16_384)).expect("memory"));
    Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker())).expect("threads")
}

/// Runs a configuration; returns the sent frames and the outcome.
fn run(text: &str, mut ports: Ports, options: &Options) -> (Vec<Vec<u8>>, Outcome) {
    let outcome = start(build(text, &mut ports, options)).wait();
    assert!(outcome.is_sound(), "{text}\n{:?}", outcome.report.unbalanced().collect::<Vec<_>>());
    let sent = std::mem::take(&mut *ports.sent.lock().expect("no panic"));
    (sent, outcome)
}

/// Every mode: first with queues that keep their packets, one by one.
fn modes() -> Vec<(&'static str, Options)> {
    let kept = Options { pass_queues: false, ..Options::default() };
    let modular = Options::default();
    let fused = Options { fused: FusedElements::All, cache: FlowCache::Never, ..Options::default() };
    let evaluated = Options { evaluator: true, ..fused.clone() };
    let cached = Options { cache: FlowCache::Eager, ..fused.clone() };
    vec![
        ("kept", kept),
        ("modular", modular),
        ("fused", fused),
        ("fused, by the evaluator", evaluated),
        ("with a flow cache", cached),
    ]
}

/// Counters and handlers of an outcome, but for those of packets that waited, and for rates.
fn told(outcome: &mut Outcome) -> Vec<String> {
    let nodes = outcome.report.nodes.iter();
    let mut lines: Vec<String> = nodes
        .map(|node| {
            format!("{}: {} {:?} {:?} {}", node.name, node.input, node.outputs, node.dropped, node.sent)
        })
        .collect();
    let mut names = vec![];
    for node in &mut outcome.workers[0].nodes {
        let all = node.element.as_mut().map(|element| element.handlers().list()).unwrap_or_default();
        names.extend(all.into_iter().map(|handler| format!("{}.{}", node.name, handler.name)));
    }
    names.retain(|name| !name.ends_with("highwater_length") && !name.ends_with("rate"));
    lines.extend(names.into_iter().map(|name| format!("{name} = {:?}", outcome.read(&name))));
    lines
}

const NF: &str = "{ input -> check :: CheckIPHeader(14) -> ttl :: DecIPTTL -> count :: Counter -> output; \
     check[1] -> Discard; ttl[1] -> Discard; }";

/// NFs written as for Click, with a queue at each output.
fn chain() -> String {
    format!(
        "FromDevice(in) -> a :: {NF} -> qa :: Queue(500) -> ua :: Unqueue -> b :: {NF}
         -> qb :: ThreadSafeQueue -> before :: Counter -> ub :: Unqueue -> c :: {NF} -> qc :: Queue(1000) -> behind :: Counter
         -> out :: ToDevice(out);"
    )
}

#[test]
fn the_same_leaves_in_the_same_order_with_the_same_counts() {
    let mixed: Vec<Vec<u8>> = frames(100, 64).into_iter().chain(frames(30, 2)).chain(frames(90, 3)).collect();
    let mut first = None;
    for (mode, options) in modes() {
        let (sent, mut outcome) = run(&chain(), ports(&mixed, 5_000, &[]), &options);
        let told = told(&mut outcome);
        let (kept, told_kept) = first.get_or_insert_with(|| (sent.clone(), told.clone()));
        assert_eq!(numbers(&sent), numbers(kept), "{mode}");
        assert_eq!(&sent, kept, "{mode}");
        assert_eq!(&told, told_kept, "{mode}");
        for queue in ["qa", "qb", "qc"] {
            let length = outcome.read(&format!("{queue}.length"));
            assert_eq!(
                (length.as_deref(), outcome.read(&format!("{queue}.drops")).as_deref()),
                (Ok("0"), Ok("0"))
            );
            // Only a queue in which packets waited had any.
            let highwater = outcome.read(&format!("{queue}.highwater_length"));
            assert_eq!(highwater.as_deref() == Ok("0"), mode != "kept", "{mode}: {queue}");
        }
        let count = outcome.read("ua.count").expect("a count").parse::<u64>().expect("a number");
        let node = outcome.report.nodes.iter().find(|node| node.name == "ua").expect("there");
        assert!(count > 4_000 && count == node.input, "{count}");
    }
}

#[test]
fn a_region_goes_through_the_queue_of_a_link_and_ends_at_that_of_a_port() {
    for (pass_queues, elements, regions) in [(true, 20, 1), (false, 15, 3)] {
        let options = Options { pass_queues, fused: FusedElements::All, ..Options::default() };
        let assembly = build(&chain(), &mut ports(&frames(1, 9), 1, &[]), &options);
        let found = &assembly.regions[0];
        assert_eq!(found.len(), regions);
        let names: Vec<&str> = found
            .iter()
            .flat_map(|region| region.nodes())
            .map(|node| assembly.graphs[0][node].name.as_str())
            .collect();
        assert_eq!(names.contains(&"qa"), pass_queues, "{names:?}");
        assert!(!names.contains(&"qc") && !names.contains(&"behind"), "{names:?}");
        assert_eq!(names.len(), elements, "{names:?}");
    }
}

#[test]
fn what_a_port_does_not_take_waits_in_order() {
    let text =
        "FromDevice(in) -> Counter -> q :: Queue(4000) -> c :: Counter -> Paint(1) -> out :: ToDevice(out);";
    let expected: Vec<u16> = (0..251).cycle().take(3_000).collect();
    for takes in [&[0, 64][..], &[1], &[0, 0, 0, 7, 200, 0, 13], &[63], &[64, 64, 64, 1]] {
        let mut first = None;
        for (mode, options) in modes() {
            let (sent, mut outcome) = run(text, ports(&frames(251, 9), 3_000, takes), &options);
            assert_eq!(numbers(&sent), expected, "{mode}, {takes:?}");
            // What waits until the port is asked again in the same turn, waits in the element.
            let waited = outcome.read("q.highwater_length").expect("a length") != "0";
            let is_slow = takes.iter().sum::<usize>() < 32 || takes.len() > 5;
            assert!(waited == (mode == "kept" || is_slow), "{mode}, {takes:?}");
            let told = told(&mut outcome);
            assert_eq!(&told, first.get_or_insert_with(|| told.clone()), "{mode}, {takes:?}");
        }
    }
}

#[test]
fn a_full_queue_drops_what_does_not_fit() {
    let text = "FromDevice(in) -> Counter -> q :: Queue(100) -> out :: ToDevice(out);";
    for (mode, options) in modes() {
        let (sent, mut outcome) = run(text, ports(&frames(251, 9), 5_000, &[1]), &options);
        let drops = outcome.read("q.drops").expect("a count").parse::<usize>().expect("a number");
        assert!(drops > 1_000, "{mode}: {drops}");
        assert_eq!(sent.len() + drops, 5_000, "{mode}");
        assert_eq!(outcome.read("q.highwater_length").as_deref(), Ok("100"), "{mode}");
    }
}

/// Waits until something holds.
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn packets_wait_while_a_handler_says_so_and_pass_in_order_later() {
    let text = "FromDevice(in) -> a :: Counter -> Paint(1) -> q :: Queue(1000000) -> u :: Unqueue
         -> b :: Counter -> Paint(2) -> ToDevice(out);";
    for (mode, options) in modes() {
        // As many as there are slots, so that all of them can wait.
        let mut ports = ports(&frames(1000, 9), 200_000_000, &[]);
        let sent = Arc::clone(&ports.sent);
        let running = start(build(text, &mut ports, &options));
        let read = |name: &str| running.read(name).expect("a value").parse::<u64>().expect("a number");
        for _ in 0..5 {
            let before = read("b.count");
            wait_for("packets pass", || read("b.count") > before + 1000);
            running.write("u.active", "false").expect("a flag");
            let stopped = read("b.count");
            wait_for("packets wait", || read("q.length") > 1000);
            assert_eq!(read("b.count"), stopped, "{mode}");
            running.write("u.active", "true").expect("a flag");
            // Without that, as many packets come as are pulled.
            if mode != "kept" {
                wait_for("the queue is empty", || read("q.length") == 0);
            }
        }
        // Up to here nothing was dropped.
        let whole = sent.lock().expect("no panic").len();
        running.write("q.capacity", "10").expect("a capacity");
        if mode != "kept" {
            wait_for("a burst is larger than the queue", || read("q.drops") > 0);
        }
        running.write("q.capacity", "1000").expect("a capacity");
        running.stop();
        let outcome = running.wait();
        assert!(outcome.is_sound(), "{mode}");
        let sent = numbers(&sent.lock().expect("no panic"));
        let skip = sent.windows(2).position(|two| (two[0] + 1) % 1000 != two[1]);
        assert!(whole > 5_000 && skip.is_none_or(|at| at >= whole), "{mode}: {skip:?} of {whole}");
    }
}

#[test]
fn a_loop_through_a_queue_ends_with_the_time_to_live() {
    let text = "FromDevice(in) -> check :: CheckIPHeader(14) -> j :: Null -> ttl :: DecIPTTL -> a :: Counter
         -> b :: Paint(1) -> c :: Paint(2) -> d :: Paint(3) -> e :: Paint(4) -> q :: Queue(20000) -> u :: Unqueue -> j;
         check[1] -> Discard; ttl[1] -> late :: Counter -> Discard;";
    let mut first = None;
    for (mode, options) in modes() {
        let (_, mut outcome) = run(text, ports(&frames(50, 255), 500, &[]), &options);
        assert_eq!(outcome.read("late.count").as_deref(), Ok("500"), "{mode}");
        assert_eq!(outcome.read("u.count").as_deref(), Ok("127000"), "{mode}");
        let told = told(&mut outcome);
        assert_eq!(&told, first.get_or_insert_with(|| told.clone()), "{mode}");
    }
}

/// A packet goes round as often as its time to live lets it, however many elements a round has; and a chain is no
/// loop, however long it is.
#[test]
fn a_loop_ends_with_the_time_to_live_and_a_long_chain_with_its_end() {
    let rounds = "FromDevice(in) -> check :: CheckIPHeader(14) -> ttl :: DecIPTTL -> a :: Counter
         -> Align(4, 2) -> b :: Paint(1) -> c :: Paint(2) -> check;
         ttl[1] -> late :: Counter -> Discard; check[1] -> bad :: Counter -> Discard;";
    let long: String = (0..1_200).map(|_| "-> Paint(1) -> Align(4, 2) ").collect();
    let long = format!("FromDevice(in) {long} -> late :: Counter -> Discard;");
    for (text, each) in [(rounds, 254), (long.as_str(), 0)] {
        let mut first = None;
        for (mode, options) in modes() {
            let (_, mut outcome) = run(text, ports(&frames(50, 255), 500, &[]), &options);
            assert_eq!(outcome.read("late.count").as_deref(), Ok("500"), "{mode}");
            if each > 0 {
                assert_eq!(
                    outcome.read("a.count").as_deref(),
                    Ok((500 * each).to_string().as_str()),
                    "{mode}"
                );
            }
            let told = told(&mut outcome);
            assert_eq!(&told, first.get_or_insert_with(|| told.clone()), "{mode}");
        }
    }
}

/// Why packets wait in the first queue of a configuration; `None` if they pass it.
fn reason(queue: &str, options: &Options) -> Option<String> {
    let text = format!("FromDevice(in) -> {queue};");
    let assembly = build(&text, &mut ports(&frames(1, 9), 1, &[]), options);
    let passage = &assembly.queues[0];
    passage.path.as_ref().err().map(|why| why.describe(&assembly.graphs[0]).to_string())
}

#[test]
fn packets_wait_for_a_reason() {
    let one = Options::default();
    let two = Options { workers: 2, ..Options::default() };
    let small = Options { burst: 32, ..Options::default() };
    let all: &[(&str, &Options, Option<&str>)] = &[
        ("Queue -> ToDevice(out)", &one, None),
        ("Queue -> Counter -> SetIPChecksum -> ToDevice(out)", &one, None),
        ("FrontDropQueue -> ToDevice(out, BURST 64)", &one, None),
        ("NotifierQueue -> Discard", &one, None),
        ("FullNoteQueue -> Unqueue -> Discard", &one, None),
        ("Queue(64) -> Unqueue(64) -> Discard", &one, None),
        ("Queue(32) -> Unqueue(-1) -> Discard", &small, None),
        ("Queue -> ToDevice(out)", &two, None),
        ("Queue(63) -> ToDevice(out)", &one, Some("it has no room for a burst")),
        ("RED(5, 50, 0.1) -> Queue -> ToDevice(out)", &one, Some("it has a length that an element watches")),
        ("Queue -> RED(5, 50, 0.1) -> ToDevice(out)", &one, Some("it has a length that an element watches")),
        ("Queue -> s :: Shaper(1000) -> ToDevice(out)", &one, Some("s (Shaper) decides when they leave")),
        (
            "Queue -> s :: BandwidthShaper(1Mbps) -> ToDevice(out)",
            &one,
            Some("s (BandwidthShaper) decides when they leave"),
        ),
        (
            "Queue -> d :: DelayShaper(1) -> ToDevice(out)",
            &one,
            Some("d (DelayShaper) decides when they leave"),
        ),
        (
            "Queue -> r :: RoundRobinSched -> ToDevice(out); Idle -> Queue -> [1]r",
            &one,
            Some("r (RoundRobinSched) decides when they leave"),
        ),
        (
            "Queue -> r :: PrioSched -> ToDevice(out); Idle -> Queue -> [1]r",
            &one,
            Some("r (PrioSched) decides when they leave"),
        ),
        (
            "Queue -> r :: RatedUnqueue(1000) -> Discard",
            &one,
            Some("r (RatedUnqueue) takes packets when it chooses to"),
        ),
        (
            "Queue -> r :: DelayUnqueue(1) -> Discard",
            &one,
            Some("r (DelayUnqueue) takes packets when it chooses to"),
        ),
        ("Queue -> u :: Unqueue(ACTIVE false) -> Discard", &one, Some("u (Unqueue) is not active")),
        ("Queue -> u :: Unqueue(LIMIT 9) -> Discard", &one, Some("u (Unqueue) has a limit")),
        (
            "Queue -> u :: Unqueue(1) -> Discard",
            &one,
            Some("u (Unqueue) pulls fewer packets at a time than a burst has"),
        ),
        (
            "Queue -> d :: ToDevice(out, BURST 8)",
            &one,
            Some("d (ToDevice) pulls fewer packets at a time than a burst has"),
        ),
        ("Queue -> d :: Discard(ACTIVE false)", &one, Some("d (Discard) is not active")),
        ("q :: Queue -> Discard; q -> Discard", &one, Some("several elements pull from q (Queue)")),
        ("Queue -> d :: ToDump(/dev/null) -> Discard", &two, Some("one worker has the state of d (ToDump)")),
    ];
    for (queue, options, why) in all {
        assert_eq!(reason(queue, options).as_deref(), *why, "{queue}");
    }
}
