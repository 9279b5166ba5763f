//! Several workers: packets of both directions of a flow use the same state, whichever worker receives them.

use chain::FusedElements;
use diag::{Diagnostics, SourceMap};
use element::configure::Direction;
use element::element::{BoxElement, Element, Opaque};
use element::handler::{Handlers, Row};
use element::work::Work;
use packet::access::Access;
use port::{Moved, Port, PortInfo, PortStats};
use runtime::registry::KnownClasses;
use runtime::running::{Outcome, RunPlan, Running};
use runtime::services::Opened;
use runtime::{Opener, Options, assemble};
use shm::burst::Batch;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, Pool, SharedPool};
use shm::{Packet, PacketBytes, PacketBytesMut};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use worker::Worker;

type Frames = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A port over queues: sent frames are appended to one, received frames are taken from one. Any worker may
/// receive them.
struct Line {
    name: String,
    from: Option<Frames>,
    to: Option<Frames>,
    /// Whether the port is finished once its queue is empty.
    ends: bool,
    shares_flows: bool,
    stats: PortStats,
}

fn lock(frames: &Frames) -> std::sync::MutexGuard<'_, VecDeque<Vec<u8>>> {
    frames.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port for Line {
    fn name(&self) -> &str {
        &self.name
    }

    fn info(&self) -> PortInfo {
        PortInfo { shares_flows: self.shares_flows, ..PortInfo::default() }
    }

    fn set_origin(&mut self, _origin: u16) {}

    fn receive(&mut self, pool: &mut PacketPool, out: &mut [Packet]) -> Moved {
        let Some(from) = &self.from else { return Moved::default() };
        // A few at a time, so that other workers get some.
        let frames: Vec<Vec<u8>> = {
            let mut waiting = lock(from);
            let count = waiting.len().min(5).min(out.len());
            waiting.drain(..count).collect()
        };
        let got = pool.alloc(&mut out[..frames.len()]);
        assert_eq!(got, frames.len(), "enough slots");
        for (packet, frame) in out.iter_mut().zip(&frames) {
            let len = frame.len() as u32;
            packet.mac = packet.data();
            assert!(packet.set_ends(packet.data(), len));
            assert!(PacketBytesMut::new(packet).copy_in(0, frame));
        }
        let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
        self.stats.rx_packets += got as u64;
        Moved { packets: got, bytes }
    }

    fn send(&mut self, pool: &mut PacketPool, packets: &mut [Packet], list: &[u16]) -> Moved {
        let to = self.to.as_ref().expect("an output");
        for &index in list {
            lock(to).push_back(PacketBytes::new(&packets[usize::from(index)]).to_vec());
        }
        pool.free(packets, list);
        self.stats.tx_packets += list.len() as u64;
        Moved { packets: list.len(), bytes: 0 }
    }

    fn is_finished(&self) -> bool {
        self.ends && self.from.as_ref().is_none_or(|from| lock(from).is_empty())
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

/// Ports by name: `from` has the queues for receiving, `to` those for sending.
#[derive(Default)]
struct Lines {
    from: HashMap<String, Frames>,
    to: HashMap<String, Frames>,
    /// The only worker that receives from a port, as if a device had filled only its queue.
    reader: HashMap<String, usize>,
    /// Whether the run ends when all queues are empty.
    ends: bool,
    /// Whether the ports report that they distribute packets by flow.
    shares_flows: bool,
}

impl Opener for Lines {
    fn open_port(&mut self, name: &str, direction: Direction, worker: usize) -> Opened {
        let (from, to) = match direction {
            Direction::Receive if self.reader.get(name).is_some_and(|reader| *reader != worker) => {
                (None, None)
            }
            Direction::Receive => (self.from.get(name).cloned(), None),
            Direction::Send => (None, Some(self.to.get(name).cloned().ok_or("no such line")?)),
        };
        let (ends, shares_flows) = (self.ends, self.shares_flows);
        Ok(Box::new(Line { name: name.into(), from, to, ends, shares_flows, stats: PortStats::default() }))
    }
}

const HOSTS: u8 = 40;
const PACKETS: u8 = 8;

/// Numbered packets of a flow for each host, the hosts in turn.
fn frames(protocol: u8) -> VecDeque<Vec<u8>> {
    let frame = |(number, host): (u8, u8)| {
        let mut frame =
            [vec![2; 12], vec![8, 0, 0x45, 0, 0, 46, 0, number, 0x40, 0, 64, protocol, 0, 0]].concat();
        frame.extend([10, 0, 0, host, 203, 0, 113, 80]);
        match protocol {
            // An echo request.
            1 => frame.extend([8, 0, 0, 0, 7, host % 3, 0, number]),
            _ => frame.extend([4, host % 3, 0, 53, 0, 26, 0, 0]),
        }
        frame.resize(60, number);
        assert!(packet::checksum::set_ipv4_header(frame.as_mut_slice(), 14, 20));
        if protocol == 1 {
            let sum = packet::checksum::icmp(&frame, 34, 26).expect("a message");
            frame[36..38].copy_from_slice(&sum.to_be_bytes());
        }
        frame
    };
    (0..PACKETS).flat_map(|number| (0..HOSTS).map(move |host| (number, host))).map(frame).collect()
}

/// Starts a configuration with these ports.
fn started(text: &str, options: &Options, ports: &mut Lines) -> Running {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("test.click", text);
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &KnownClasses, &[], &mut diags);
    let assembly = assemble(&graph, options, ports, &mut diags).expect("machine code");
    let assembly = assembly.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    running.expect("threads")
}

/// The packets that each worker's element of that name received.
fn shares(outcome: &Outcome, name: &str) -> Vec<u64> {
    let of_worker = |worker: &Worker| {
        worker.nodes.iter().find(|node| node.name == name).expect("an element").counters.input.get()
    };
    outcome.workers.iter().map(of_worker).collect()
}

/// Runs a chain until as many packets were sent to `back` as were received at `inside`. Returns the frames,
/// and the packets of `nat` on each worker.
fn round_trip(
    text: &str,
    protocol: u8,
    workers: usize,
    fused: FusedElements,
    in_order: bool,
) -> (Vec<Vec<u8>>, Vec<u64>) {
    let mut ports = Lines::default();
    let (wire, back) = (Frames::default(), Frames::default());
    ports.from.insert("inside".into(), Arc::new(Mutex::new(frames(protocol))));
    ports.from.insert("wire".into(), Arc::clone(&wire));
    ports.to.insert("wire".into(), wire);
    ports.to.insert("back".into(), Arc::clone(&back));
    if in_order {
        ports.reader = HashMap::from([("inside".into(), 0), ("wire".into(), workers - 1)]);
    }
    let running = started(text, &Options { workers, fused, ..Options::default() }, &mut ports);
    let (start, all) = (Instant::now(), usize::from(HOSTS) * usize::from(PACKETS));
    while lock(&back).len() < all {
        if start.elapsed() > Duration::from_secs(20) {
            panic!("{} of {all} came back: {:#?}\n{text}", lock(&back).len(), running.report());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    running.stop();
    let outcome = running.wait();
    assert!(outcome.is_sound(), "{:?}", outcome.report.unbalanced().collect::<Vec<_>>());
    let shares = shares(&outcome, "nat");
    let back = lock(&back).drain(..).collect();
    (back, shares)
}

/// The common part of the chains: packets return over the wire, and leave as Ethernet frames.
const WAYS: &str = "FromDevice(inside) -> Strip(14) -> in :: CheckIPHeader; out :: EtherEncap(0x0800, 2:2:2:2:2:2, 4:4:4:4:4:4) -> ToDevice(wire);
    FromDevice(wire) -> Strip(14) -> reply :: CheckIPHeader; home :: EtherEncap(0x0800, 4:4:4:4:4:4, 2:2:2:2:2:2) -> ToDevice(back);";

#[test]
fn both_directions_of_a_flow_meet_one_state() {
    let chains = [
        // A NAPT.
        (17, "in -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        // Ports in order: the next port may belong to another worker.
        (6, "in -> nat :: TCPRewriter(pattern 203.0.113.1 2000-2099# - - 0 1, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        // Hardly more ports than flows: workers have no choice.
        (17, "in -> nat :: IPRewriter(pattern 203.0.113.1 1024-1103 - - 0 1, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        // An endpoint to which any host may send.
        (17, "in -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop, MAPPING ENDPOINT_INDEPENDENT, FILTERING ENDPOINT_INDEPENDENT); nat[0] -> IPMirror -> StoreIPAddress(198.51.100.9, src) -> SetIPChecksum -> out; reply -> [1]nat; nat[1] -> home"),
        // A load balancer without NAT: replies have another address than requests.
        (17, "m :: RoundRobinIPMapper(- - 10.9.0.1 - 0 1, - - 10.9.0.2 - 0 1, - - 10.9.0.3 - 0 1);
              in -> nat :: IPRewriter(m, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        // A NAPT, and a load balancer that changes its packets.
        (17, "m :: RoundRobinIPMapper(- - 10.9.0.1 - 0 1, - - 10.9.0.2 - 0 1, - - 10.9.0.3 - 0 1);
              in -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop); nat[0] -> lb :: IPRewriter(m, drop);
              lb[0] -> IPMirror -> out; reply -> [1]lb; lb[1] -> [1]nat; nat[1] -> home"),
        // Addresses are translated to addresses.
        (17, "in -> nat :: IPAddrRewriter(pattern 198.51.100.1-198.51.100.200 - 0 1, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        (17, "in -> nat :: IPAddrPairRewriter(pattern 198.51.100.1-198.51.100.200 - 0 1, drop); nat[0] -> IPMirror -> out; reply -> [1]nat; nat[1] -> home"),
        // Echo requests, which have an identifier instead of ports.
        (1, "in -> nat :: ICMPPingRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, drop); nat[0] -> ICMPPingResponder -> out; reply -> [1]nat; nat[1] -> home"),
        // ICMP errors about translated packets.
        (17, "in -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1); nat[0] -> ICMPError(203.0.113.80, unreachable, port) -> out;
              reply -> errors :: ICMPRewriter(nat); errors[0] -> home; nat[1] -> Discard"),
    ];
    for (protocol, chain) in chains {
        for (workers, fused, in_order) in
            [(2, FusedElements::Nothing, true), (3, FusedElements::All, true), (3, FusedElements::All, false)]
        {
            let (back, shares) = round_trip(&format!("{WAYS} {chain};"), protocol, workers, fused, in_order);
            let told = format!("{workers} workers: {chain}");
            assert!(shares.iter().all(|packets| *packets >= 20), "{shares:?}, {told}");
            // The offset of a packet's number: in its IP header, or in the header of the packet that an error
            // is about.
            let number_at = match protocol {
                1 => 41,
                _ if chain.contains("ICMPError") => 14 + 20 + 8 + 5,
                _ => 19,
            };
            let mut next = HashMap::new();
            for frame in &back {
                assert_eq!(frame[30..33], [10, 0, 0], "{told}");
                let number = next.entry(frame[33]).or_insert(0);
                assert!(!in_order || frame[number_at] == *number, "flows keep their order: {told}");
                *number += 1;
            }
            assert!(
                next.len() == usize::from(HOSTS) && next.values().all(|count| *count == PACKETS),
                "{told}"
            );
        }
    }
}

/// One worker reads, others process, and one writes the file: at the normal end of a run, every packet is in
/// the file.
#[test]
fn nothing_is_left_between_workers_at_the_end() {
    for workers in [2, 3, 4] {
        for round in 0..10 {
            let folder = tempfile::tempdir().expect("a folder");
            let mut ports = Lines::default();
            let frames: VecDeque<Vec<u8>> = frames(17);
            let all = frames.len() as u64;
            ports.from.insert("inside".into(), Arc::new(Mutex::new(frames)));
            ports.reader.insert("inside".into(), 0);
            ports.ends = true;
            let text =
                "FromDevice(inside) -> Queue(1000) -> Unqueue -> c :: Counter -> out :: ToDump(out.pcap);";
            let options = Options { workers, folder: folder.path().into(), ..Options::default() };
            let outcome = started(text, &options, &mut ports).wait();
            assert!(outcome.is_sound(), "{:?}", outcome.report.unbalanced().collect::<Vec<_>>());
            let out = outcome.report.nodes.iter().find(|node| node.name == "out").expect("a file");
            assert_eq!((out.sent, outcome.report.dropped()), (all, 0), "{workers} workers, round {round}");
        }
    }
}

/// Packets that a device distributed by flow stay with the worker that received them, unless an element has
/// per-flow state.
#[test]
fn packets_go_elsewhere_only_for_state_or_to_share_the_work() {
    let counted = "FromDevice(inside) -> c :: Counter -> ToDevice(back);";
    let kept = "FromDevice(inside) -> Strip(14) -> CheckIPHeader -> IPReassembler -> c :: Counter -> Unstrip(14) -> ToDevice(back);";
    for (text, shares_flows, is_spread) in
        [(counted, true, false), (counted, false, true), (kept, true, true)]
    {
        for fused in [FusedElements::Nothing, FusedElements::All] {
            let (frames, back) = (frames(17), Frames::default());
            let all = frames.len() as u64;
            let mut ports = Lines { ends: true, shares_flows, ..Lines::default() };
            ports.from.insert("inside".into(), Arc::new(Mutex::new(frames)));
            ports.to.insert("back".into(), Arc::clone(&back));
            ports.reader.insert("inside".into(), 1);
            let options = Options { workers: 2, fused, ..Options::default() };
            let outcome = started(text, &options, &mut ports).wait();
            assert!(outcome.is_sound(), "{:?}", outcome.report.unbalanced().collect::<Vec<_>>());
            let shares = shares(&outcome, "c");
            assert_eq!((shares.iter().sum::<u64>(), lock(&back).len() as u64), (all, all), "{text}");
            assert_eq!(shares[0] > 0, is_spread, "{shares:?}, {shares_flows}: {text}");
        }
    }
}

/// An element with a panic in a handler.
struct Faulty;

impl Opaque for Faulty {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.list().iter().for_each(|index| batch.emit(*index, 0));
    }
}

impl Element for Faulty {
    fn handlers(&mut self) -> Handlers<'_> {
        const HANDLERS: &[Row<Faulty>] = &[Row::read_write(
            "faulty",
            |_, _| panic!("faulty cannot be read"),
            |_, value, _| panic!("faulty cannot be {value}"),
        )];
        Handlers::of(self, HANDLERS)
    }
}

#[test]
fn a_handler_that_panics_is_an_answer() {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("test.click", "RatedSource(RATE 1000) -> t :: Tee(1) -> c :: Counter -> Discard;");
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &KnownClasses, &[], &mut diags);
    let assembly =
        assemble(&graph, &Options::default(), &mut Lines::default(), &mut diags).expect("machine code");
    let mut assembly = assembly.unwrap_or_else(|| panic!("{}", diags.render_short(&map)));
    let node = assembly.graphs[0].iter_mut().find(|node| node.name == "t").expect("an element");
    node.element = Some(BoxElement::opaque(Faulty));
    let pool = SharedPool::new(PacketRegion::create(RegionOptions::slots(4096)).expect("memory"));
    let running = Running::start(assembly, &RunPlan::default(), |_| PacketPool::Native(pool.worker()));
    let running = running.expect("threads");
    let handlers = Arc::clone(running.handlers());
    for answer in [handlers.read("t.faulty").map(drop), handlers.write("t.faulty", "odd")] {
        let why = answer.expect_err("it panics");
        assert!(why.contains("a mistake of Millrace") && why.contains("faulty cannot be"), "{why}");
    }
    // The worker keeps processing packets.
    let count = || handlers.read("c.count").expect("it answers").trim().parse::<u64>().expect("a number");
    let (before, end) = (count(), Instant::now() + Duration::from_secs(30));
    while count() < before + 10 {
        assert!(Instant::now() < end, "no packet after {before}");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.stop();
    let outcome = running.wait();
    assert_eq!((outcome.slots_lost, outcome.report.imbalance()), (0, 0));
}
