//! Runs whole chains: a configuration, packets in, packets out, and counters that balance.

use chain::FusedElements;
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use port::Port;
use port::frames::FrameSet;
use port::memory::{MemoryPort, SentFrames};
use runtime::running::{RunPlan, Running};
use runtime::{Assembly, Opener, Options, Outcome, assemble};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::sync::Arc;
use worker::fusion::Leads;

/// Port `in` replays frames `count` times; all other ports collect the sent frames.
struct TestPorts {
    frames: Arc<FrameSet>,
    count: u64,
    sent: SentFrames,
}

impl Opener for TestPorts {
    fn open_port(&mut self, name: &str, _: Direction, worker: usize) -> Result<Box<dyn Port>, String> {
        Ok(Box::new(match name {
            "in" => MemoryPort::generator("in", Arc::clone(&self.frames))
                .limit(self.count)
                .start_at(worker * self.frames.count() / 2),
            _ => MemoryPort::sink(name).keep_sent(Arc::clone(&self.sent)),
        }))
    }
}

fn build(text: &str, ports: &mut TestPorts, options: &Options) -> Result<Assembly, String> {
    let mut map = SourceMap::new();
    let source = map.add("test.click", text);
    let mut diags = Diagnostics::new();
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &runtime::registry::KnownClasses, &[], &mut diags);
    let assembly = assemble(&graph, options, ports, &mut diags).expect("machine code");
    match assembly {
        Some(assembly) if !diags.has_errors() => Ok(assembly),
        _ => Err(diags.render_short(&map)),
    }
}

/// Runs a configuration on `count` frames for each worker; returns the sent frames and the outcome.
fn run(text: &str, frames: &[Vec<u8>], count: u64, options: &Options) -> (Vec<Vec<u8>>, Outcome) {
    let frames = Arc::new(FrameSet::new(frames).expect("frames"));
    let mut ports = TestPorts { frames, count, sent: SentFrames::default() };
    let sent = Arc::clone(&ports.sent);
    let assembly = build(text, &mut ports, options).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let region = PacketRegion::create(RegionOptions::slots(4096)).expect("memory");
    let pool = SharedPool::new(region);
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    let outcome = running.expect("threads").wait();
    assert_eq!(outcome.slots_lost, 0);
    assert_eq!(outcome.report.imbalance(), 0);
    assert_eq!(outcome.report.unbalanced().next(), None, "counters that do not balance");
    let sent = std::mem::take(&mut *sent.lock().expect("no panic"));
    (sent, outcome)
}

fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|at| vec![at as u8; 60 + at % 7]).collect()
}

#[test]
fn packets_go_through_in_order_and_are_counted() {
    for evaluator in [false, true] {
        let options = Options { evaluator, ..Options::default() };
        let text = "FromDevice(in) -> c :: Counter -> Paint(3) -> ToDevice(out);";
        let (sent, outcome) = run(text, &frames(100), 250, &options);
        let expected: Vec<Vec<u8>> = frames(100).into_iter().cycle().take(250).collect();
        assert_eq!(sent, expected);
        assert_eq!((outcome.report.received(), outcome.report.sent()), (250, 250));
        let counter = outcome.report.nodes.iter().find(|node| node.name == "c").expect("the counter");
        assert_eq!((counter.input, counter.outputs.clone()), (250, vec![250]));
    }
}

#[test]
fn every_worker_runs_the_graph_and_the_books_add_up() {
    let options = Options { workers: 2, ..Options::default() };
    let (sent, outcome) = run("FromDevice(in) -> Counter -> ToDevice(out);", &frames(64), 1000, &options);
    assert_eq!(sent.len(), 2000);
    assert_eq!(outcome.report.received(), 2000);
}

#[test]
fn dropped_packets_have_a_reason() {
    let (_, outcome) = run("FromDevice(in) -> d :: Discard;", &frames(10), 33, &Options::default());
    let node = outcome.report.nodes.iter().find(|node| node.name == "d").expect("the sink");
    assert_eq!(node.dropped, [("discarded".to_string(), 33)]);
}

#[test]
fn handlers_are_read_and_written_while_packets_flow() {
    let frames = Arc::new(FrameSet::new(frames(8)).expect("frames"));
    let mut ports = TestPorts { frames, count: u64::MAX, sent: SentFrames::default() };
    let options = Options { workers: 2, ..Options::default() };
    let text = "FromDevice(in) -> c :: Counter -> p :: Paint(1) -> d :: Discard;";
    let assembly = build(text, &mut ports, &options).expect("a valid configuration");
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    let running = running.expect("threads");
    while running.read("c.count").expect("a count").parse::<u64>().expect("a number") < 10_000 {}
    assert_eq!(running.read("p.color").as_deref(), Ok("1"));
    running.write("p.color", "7").expect("a colour");
    assert_eq!(running.read("p.color").as_deref(), Ok("7"));
    assert!(running.write("p.color", "700").is_err());
    assert!(running.read("p.nothing").is_err());
    assert!(running.read("nobody.count").is_err());
    running.stop();
    let outcome = running.wait();
    assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0));
    assert!(outcome.report.received() >= 10_000);
}

/// A fused region is compiled for the values of its configuration, and compiled again when a handler changes
/// them.
#[test]
fn a_region_follows_its_handlers_while_packets_flow() {
    for evaluator in [false, true] {
        let frames = Arc::new(FrameSet::new(frames(8)).expect("frames"));
        let mut ports = TestPorts { frames, count: u64::MAX, sent: SentFrames::default() };
        let options = Options { evaluator, fused: FusedElements::All, ..Options::default() };
        let text = "FromDevice(in) -> Paint(1) -> s :: Switch(0) -> a :: Counter -> d :: Discard;
            s[1] -> b :: Counter -> p :: Paint(3) -> d;";
        let assembly = build(text, &mut ports, &options).expect("a valid configuration");
        let branches = |program: &ir::Program| {
            program.blocks.iter().filter(|block| matches!(block.term, ir::Term::Switch(..))).count()
        };
        let region = &assembly.regions[0][0];
        // Each counter asks whether it calls a handler, which a cell of its configuration decides, as one does
        // about the switch. The second counter is never reached.
        assert_eq!((branches(&region.linked.program), branches(&region.compiled.program)), (3, 0));
        let counted = |program: &ir::Program| -> Vec<u16> {
            let insts = program.blocks.iter().flat_map(|block| &block.insts);
            insts
                .filter_map(
                    |(_, inst)| if let ir::Inst::CellAdd(cell, _) = inst { Some(*cell) } else { None },
                )
                .collect()
        };
        let by_first = counted(&region.compiled.program);
        let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
        let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
        let running = running.expect("threads");
        let count = |name: &str| running.read(name).expect("a count").parse::<u64>().expect("a number");
        while count("a.count") < 10_000 {}
        assert_eq!(count("b.count"), 0);
        running.write("s.switch", "1").expect("an output");
        let before = count("a.count");
        while count("b.count") < 100_000 {}
        assert_eq!(count("a.count"), before, "packets go by the switch as it is now");
        running.write("s.switch", "0").expect("an output");
        let before = count("b.count");
        while count("a.count") < 200_000 {}
        assert_eq!(count("b.count"), before);
        running.write("s.switch", "1").expect("an output");
        std::thread::sleep(std::time::Duration::from_millis(300));
        running.stop();
        let outcome = running.wait();
        assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0));
        assert_eq!(outcome.report.unbalanced().next(), None);
        let region = &outcome.workers[0].regions[0];
        assert_ne!(counted(&region.compiled.program), by_first, "it was made again for the switch as it is");
        assert!(region.is_ready(), "and runs");
    }
}

/// The parts of the only fused region as `[input]element`, the parts where packets enter, and the outputs
/// that lead to an element of the region and yet leave it.
fn region(text: &str) -> [Vec<String>; 3] {
    let frames = Arc::new(FrameSet::new(frames(1)).expect("frames"));
    let mut ports = TestPorts { frames, count: 1, sent: SentFrames::default() };
    let options = Options { fused: FusedElements::All, ..Options::default() };
    let assembly = build(text, &mut ports, &options).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let [regions] = &assembly.regions[..] else { panic!("one worker") };
    let [region] = &regions[..] else { panic!("{} fused regions", regions.len()) };
    let name = |node: usize| &assembly.graphs[0][node].name;
    let parts = &region.layout.parts;
    let left = parts.iter().flat_map(|part| {
        let leads = part.leads.iter().enumerate();
        let left = leads.filter(|(_, leads)| matches!(leads, Leads::Seldom | Leads::Loop));
        left.map(move |(port, leads)| format!("[{}]{}[{port}] {leads:?}", part.input, name(part.node)))
    });
    [
        parts.iter().map(|part| format!("[{}]{}", part.input, name(part.node))).collect(),
        region.entries().map(|(node, input)| format!("[{input}]{}", name(node))).collect(),
        left.collect(),
    ]
}

const PATTERN: &str = "pattern 203.0.113.1 1024-65535 - - 0 1";

/// A slot still has the bytes of packets that were in it before.
#[test]
fn a_header_of_an_earlier_packet_is_not_taken_back() {
    let text = "FromDevice(in) -> s :: Switch(0) -> UDPIPEncap(10.0.0.1, 1, 10.0.0.2, 2) -> EnsureEther -> m :: EtherMirror
                -> ToDevice(out); s[1] -> Strip(14) -> MarkIPHeader -> EnsureEther -> m;";
    for fused in [FusedElements::Nothing, FusedElements::All] {
        // The destination becomes that of the new header's source, or of the frame's own.
        let mut frame = vec![7; 60];
        frame[6..14].copy_from_slice(&[5, 5, 5, 5, 5, 5, 8, 0]);
        frame[14] = 0x45;
        for (branch, destination) in [(0, [1; 6]), (1, [5; 6])] {
            let options = Options { fused: fused.clone(), burst: 1, ..Options::default() };
            let text = text.replace("Switch(0)", &format!("Switch({branch})"));
            let (sent, _) = run(&text, &[frame.clone()], 10_000, &options);
            assert_eq!(sent.len(), 10_000);
            assert!(sent.iter().all(|frame| frame[..6] == destination), "{branch} {fused:?}");
        }
    }
}

#[test]
fn the_way_back_through_a_rewriter_is_no_loop() {
    let [parts, entries, left] = region(&format!(
        "a :: IPRewriter({PATTERN}, drop); b :: IPRewriter({PATTERN}, drop);
         FromDevice(in) -> [0]a; a[0] -> [0]b; b[0] -> ToDevice(wan);
         FromDevice(wan) -> [1]b; b[1] -> [1]a; a[1] -> ToDevice(lan);"
    ));
    assert_eq!(parts, ["[0]a", "[1]a", "[0]b", "[1]b"]);
    assert_eq!(entries, ["[0]a", "[1]b"]);
    // A packet that meets the mapping of the other way.
    assert_eq!(left, ["[1]a[0] Seldom", "[0]b[1] Seldom"]);
}

#[test]
fn packets_may_turn_back_and_come_in_by_one_input() {
    let [parts, entries, left] = region(&format!(
        "a :: IPRewriter({PATTERN}, drop); b :: IPRewriter({PATTERN}, drop);
         FromDevice(in) -> [0]a; a[0] -> [0]b; b[0] -> IPMirror -> [1]b; b[1] -> [1]a; a[1] -> ToDevice(lan);"
    ));
    assert_eq!((parts.len(), entries), (5, vec!["[0]a".into()]));
    assert_eq!(left, ["[1]a[0] Seldom", "[0]b[1] Seldom", "[1]b[0] Seldom"]);
}

#[test]
fn an_input_of_both_ways_is_a_part_for_each_wire() {
    let [parts, entries, left] = region(
        "a :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1); b :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);
         FromDevice(lan) -> out :: CheckIPHeader -> a; a[0] -> ToDevice(lan); a[1] -> up :: Paint(1) -> b;
         b[1] -> mirror :: IPMirror -> in :: CheckIPHeader -> b; b[0] -> down :: Paint(0) -> back :: Paint(2) -> a;
         out[1] -> Discard; in[1] -> Discard;",
    );
    let of = |name: &str| parts.iter().filter(|part| *part == name).count();
    // Behind its choice, what leaves `a` by output 1 is one way, whatever it came by.
    let names = ["[0]a", "[0]b", "[0]out", "[0]up", "[0]mirror", "[0]in", "[0]down", "[0]back"];
    assert_eq!(names.map(of), [2, 2, 1, 1, 1, 1, 1, 1], "{parts:?}");
    assert_eq!(entries, ["[0]out"]);
    // Packets that turn back.
    assert_eq!(left, ["[0]a[1] Seldom", "[0]b[0] Seldom", "[0]b[1] Seldom"]);
}

#[test]
fn what_leads_to_a_choice_is_copied_with_it() {
    let [parts, _, left] = region(
        "a :: StaticIPLookup(10.0.0.0/8 0, 0.0.0.0/0 1);
         FromDevice(lan) -> outward :: Paint(1) -> ip :: Strip(14) -> check :: CheckIPHeader -> a;
         a[0] -> ToDevice(lan); a[1] -> mirror :: IPMirror -> Unstrip(14) -> inward :: Paint(2) -> ip;
         check[1] -> Discard;",
    );
    let of = |name: &str| parts.iter().filter(|part| *part == name).count();
    assert_eq!(["[0]ip", "[0]check", "[0]a", "[0]mirror", "[0]inward"].map(of), [2, 2, 2, 1, 1], "{parts:?}");
    assert_eq!(left, ["[0]a[1] Seldom"]);
}

#[test]
fn a_loop_is_cut_and_a_source_that_never_sends_is_no_entry() {
    // Packets that take the loop once stay in the region.
    let [parts, entries, left] = region(
        "FromDevice(in) -> i :: Paint(1) -> c :: CheckPaint(1) -> ToDevice(out); c[1] -> p :: Paint(2) -> i;",
    );
    assert_eq!(parts, ["[0]i", "[0]i", "[0]c", "[0]c", "[0]p"]);
    assert_eq!((entries, left), (vec!["[0]i".into()], vec!["[0]c[1] Seldom".into()]));
    // Of one that leads nowhere else, nothing is copied.
    let [parts, entries, left] = region(
        "FromDevice(in) -> i :: Paint(1) -> c :: CheckPaint(1) -> Discard; c[1] -> p :: Paint(2) -> i;",
    );
    assert_eq!((parts.len(), entries), (4, vec!["[0]i".into()]));
    assert_eq!(left, ["[0]p[0] Loop"]);
    let [parts, entries, left] = region(&format!(
        "a :: IPRewriter({PATTERN}, drop); FromDevice(in) -> s :: Strip(14) -> a; Idle -> [1]a;
         a[0] -> ToDevice(wan); a[1] -> Discard;"
    ));
    assert_eq!((parts, entries), (vec!["[0]a".into(), "[0]s".into()], vec!["[0]s".into()]));
    assert_eq!(left, ["[0]a[1] Seldom"], "Discard has a program, too");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let frames = Arc::new(FrameSet::new(frames(1)).expect("frames"));
    let mut ports = TestPorts { frames, count: 1, sent: SentFrames::default() };
    let text = "FromDevice(in) -> Paint(300) -> Counter(5) -> Discard;\nIdl -> Discard;";
    let mistakes = build(text, &mut ports, &Options::default()).err().expect("mistakes");
    assert!(mistakes.contains("test.click:1:25"), "{mistakes}");
    assert!(mistakes.contains("test.click:1:41"), "{mistakes}");
    assert!(mistakes.contains("Idl"), "{mistakes}");
}

/// The CPU time of this thread for checking a configuration; other load of the machine does not count.
fn seconds_to_check(outputs: usize) -> f64 {
    let arms: String = (0..outputs).map(|port| format!("t[{port}] -> Discard;\n")).collect();
    let text = format!("FromDevice(in) -> t :: Tee;\n{arms}");
    let frames = Arc::new(FrameSet::new(frames(1)).expect("frames"));
    let mut ports = TestPorts { frames, count: 1, sent: SentFrames::default() };
    let spent = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let before = spent();
    let options = Options { evaluator: true, ..Options::default() };
    build(&text, &mut ports, &options).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    spent() - before
}

#[test]
fn the_time_for_a_configuration_grows_as_it_does() {
    let (small, large) = (seconds_to_check(15_000), seconds_to_check(60_000));
    // Four times as large; quadratic cost would take sixteen times as long.
    assert!(large < small * 9.0, "{small} s and {large} s");
}

#[test]
fn what_is_required_must_be_there() {
    let mistakes = |text: &str| {
        let frames = Arc::new(FrameSet::new(frames(1)).expect("frames"));
        let mut ports = TestPorts { frames, count: 1, sent: SentFrames::default() };
        build(&format!("{text}; FromDevice(in) -> c :: Counter -> Discard;"), &mut ports, &Options::default())
            .err()
    };
    assert_eq!(mistakes("require(package userlevel, ip6, package \"tcpudp\")"), None);
    let found = mistakes("require(nonsense, package etherswich, linuxmodule)").expect("mistakes");
    let expected = [
        "test.click:1:9: error: there is no package `nonsense`; those that are here: ",
        "test.click:1:27: error: there is no package `etherswich`; did you mean `etherswitch`?",
        "test.click:1:39: error: there is no package `linuxmodule`; the configuration is for another driver",
    ];
    assert_eq!(found.lines().count(), 3, "{found}");
    assert!(found.lines().zip(expected).all(|(line, start)| line.starts_with(start)), "{found}");
}

#[test]
fn threads_of_elements_are_taken_and_checked() {
    let mistakes = |arguments: &str| {
        let frames = Arc::new(FrameSet::new(frames(1)).expect("frames"));
        let mut ports = TestPorts { frames, count: 1, sent: SentFrames::default() };
        let text = format!(
            "f :: FromDevice(in) -> c :: Counter -> both :: {{ input -> inner :: Null -> output }} -> Discard;
             StaticThreadSched({arguments})"
        );
        build(&text, &mut ports, &Options::default()).err()
    };
    assert_eq!(mistakes("f 0, c 1, both 0, both/inner 1"), None);
    // As FastClick has them: counted from the last thread, and a core of a socket.
    assert_eq!(mistakes("f -2, c 0/1"), None);
    let found = mistakes("f, d 0, c x, both 0/y").expect("mistakes");
    for part in ["write `ELEMENT THREAD`", "there is no element `d`", "`x`", "`y`"] {
        assert!(found.contains(part), "{part} is missing in {found}");
    }
}

#[test]
fn red_finds_its_queues_and_keeps_them_short() {
    for (red, drops) in [
        // Pushed towards a queue that no element empties before the end.
        ("red :: RED(5, 20, 1, STABILITY 0) -> q :: Queue(1000) -> u :: Unqueue(ACTIVE false)", true),
        // No packet waits in the queue.
        ("red :: RED(50, 200, 1) -> q :: Queue(1000) -> Unqueue", false),
        // Pulled out of the queue.
        ("q :: Queue(1000) -> red :: RED(500, 600, 1) -> Unqueue", false),
    ] {
        let (_, mut outcome) =
            run(&format!("FromDevice(in) -> {red} -> Discard;"), &frames(10), 400, &Options::default());
        assert_eq!(outcome.read("red.queues").as_deref(), Ok("q"));
        let node = outcome.report.nodes.iter().find(|node| node.name == "red").expect("there");
        assert_eq!((node.input, node.dropped_total() > 300), (400, drops), "{red}: {:?}", node.dropped);
    }
}

#[test]
fn a_run_ends_though_an_element_asks_on_and_nobody_is_left_to_answer() {
    let text = "FromDevice(in) -> SetIPAddress(192.0.2.7)
                    -> q :: ARPQuerier(192.0.2.1, 02:00:00:00:00:01) -> ToDevice(out);
                Idle -> [1] q;";
    let begun = std::time::Instant::now();
    let (sent, outcome) = run(text, &frames(1), 1, &Options::default());
    // The ARP requests would continue for minutes.
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert!(!sent.is_empty() && sent.iter().all(|frame| frame[12..14] == [8, 6]), "questions only");
    let querier = outcome.report.nodes.iter().find(|node| node.name == "q").expect("the querier");
    let stopped = querier.dropped.iter().find(|(reason, _)| reason == "arp-stopped");
    assert_eq!(stopped.map(|(_, count)| *count), Some(1), "{:?}", querier.dropped);
}

/// UDP packets of eight hosts of 10.0.0.0/16.
fn udp_frames() -> FrameSet {
    let frame = |host: u8| {
        let mut frame = [vec![2; 12], vec![8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
        frame.extend([10, 0, 0, host, 10, 1, 0, 1, 4, 0, 0, 53, 0, 26, 0, 0]);
        frame.resize(60, 0);
        assert!(packet::checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
        frame
    };
    FrameSet::new((0..8).map(frame).collect::<Vec<_>>()).expect("frames")
}

/// Rules for `count` sources, each with its own decision for UDP, and a rule that denies all other packets.
fn rules(count: usize, action: &str) -> String {
    let rules = (0..count).map(|at| format!("{action} src host 10.9.{}.{} and udp", at / 250, at % 250));
    rules.chain([format!("{action} src net 10.0.0.0/16"), "deny all".into()]).collect::<Vec<_>>().join(", ")
}

/// Rules are exchanged at all workers while packets flow, with few rules and with enough rules for a table.
/// No packet is lost, and none is decided by the old rules after the handler was written.
#[test]
fn rules_are_exchanged_while_packets_flow() {
    for (evaluator, fused, count) in [
        (false, FusedElements::All, 3),
        (false, FusedElements::All, 300),
        (false, FusedElements::Nothing, 300),
        (true, FusedElements::All, 300),
    ] {
        let told = format!("evaluator {evaluator}, {count} rules, {fused:?}");
        let frames = Arc::new(udp_frames());
        let mut ports = TestPorts { frames, count: u64::MAX, sent: SentFrames::default() };
        let is_fused = fused != FusedElements::Nothing;
        let options = Options { workers: 2, evaluator, fused, ..Options::default() };
        let text = format!(
            "FromDevice(in) -> Strip(14) -> CheckIPHeader -> f :: IPFilter({}) -> a :: Counter -> d :: Discard;
             f[1] -> b :: Counter -> d;",
            rules(count, "allow")
        );
        let assembly = build(&text, &mut ports, &options).expect("a valid configuration");
        let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
        let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
        let running = running.expect("threads");
        let count_of = |name: &str| running.read(name).expect("a count").parse::<u64>().expect("a number");
        let goes_on = |name: &str| {
            let (from, start) = (count_of(name), std::time::Instant::now());
            while count_of(name) < from + 50_000 {
                assert!(start.elapsed().as_secs() < 60, "{told}: {name} stays at {from}");
            }
        };
        goes_on("a.count");
        assert_eq!((count_of("b.count"), count_of("f.drops")), (0, 0), "{told}");
        // The other output, by a program or table with other decisions.
        running.write("f.config", &rules(count, "1")).expect("rules");
        let before = count_of("a.count");
        goes_on("b.count");
        assert_eq!(count_of("a.count"), before, "{told}");
        assert_eq!(running.read("f.config"), Ok(rules(count, "1")));
        // All packets are denied: no rule matches.
        running.write("f.config", &rules(count, "1").replace("10.0.0.0", "10.77.0.0")).expect("rules");
        let before = count_of("b.count");
        goes_on("f.drops");
        assert_eq!(count_of("b.count"), before, "{told}");
        // Errors change nothing and are reported with their location.
        let mistakes = running.write("f.config", "allow tcp, alow udp, 7 icmp").expect_err("mistakes");
        assert!(
            mistakes.contains("f.config:1:12: error: `alow`") && mistakes.contains("no output 7"),
            "{mistakes}"
        );
        goes_on("f.drops");
        // A single rule, for which the program is a different one.
        running.write("f.config", "allow all").expect("rules");
        let before = count_of("f.drops");
        goes_on("a.count");
        assert_eq!(count_of("f.drops"), before, "{told}");
        assert!(running.read("f.handlers").expect("handlers").contains("config\trw"));
        let refused = running.write("a.config", "COUNT_CALL 7 f.x").expect_err("it counts");
        assert!(refused.contains("it keeps state"), "{refused}");
        std::thread::sleep(std::time::Duration::from_millis(300));
        running.stop();
        let outcome = running.wait();
        assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0), "{told}");
        assert_eq!(outcome.report.unbalanced().next(), None, "{told}");
        let ready = outcome.workers.iter().flat_map(|worker| &worker.regions).map(|one| one.is_ready());
        assert!(ready.clone().count() > 0 && ready.clone().all(|ready| ready == is_fused), "{told}");
    }
}

/// A fused region whose program stays the same is not compiled again: only its table changes.
#[test]
fn other_rules_in_a_table_need_no_other_program() {
    let frames = Arc::new(udp_frames());
    let mut ports = TestPorts { frames, count: u64::MAX, sent: SentFrames::default() };
    let options = Options { fused: FusedElements::All, ..Options::default() };
    let text = format!(
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> f :: IPFilter({}) -> a :: Counter -> d :: Discard;",
        rules(300, "allow")
    );
    let assembly = build(&text, &mut ports, &options).expect("a valid configuration");
    let made = Arc::clone(&assembly.regions[0][0].compiled.program);
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    let running = running.expect("threads");
    running.write("f.config", &rules(400, "allow").replace("10.0.0.0/16", "10.0.0.0/15")).expect("rules");
    assert_eq!(running.fused(), (1, 1), "it never ran element by element");
    running.stop();
    let outcome = running.wait();
    assert!(Arc::ptr_eq(&made, &outcome.workers[0].regions[0].compiled.program));
}

#[test]
fn sources_and_both_ways_of_a_bypass_are_pulled_from() {
    for (active, around) in [("false", 0), ("true", 7)] {
        let text = format!(
            "InfiniteSource(LENGTH 60, LIMIT 7, STOP true) -> PullNull -> b :: Bypass({active})
             -> c :: Counter -> Unqueue -> ToDevice(out);
             b[1] -> d :: Counter -> [1]b;"
        );
        for burst in [1, 32] {
            let options = Options { burst, ..Options::default() };
            let (sent, outcome) = run(&text, &frames(1), 1, &options);
            let passed = |name: &str| {
                let node = outcome.report.nodes.iter().find(|node| node.name == name).expect("the element");
                node.input
            };
            assert_eq!((sent.len(), passed("c"), passed("d")), (7, 7, around), "{active} {burst}");
        }
    }
}
