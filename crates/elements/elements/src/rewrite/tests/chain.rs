//! Several elements that share state, on one worker: what [`crate::testing::Rig`] does for one.
//!
//! Elements run by the evaluator; that machine code does the same is tested element by element.

use crate::testing::{Exit, Out, TestPacket};
use codegen::{Engine, Scratch};
use element::configure::Shape;
use element::element::BoxElement;
use element::testing::{TestServices, configure};
use element::work::{Host, NodeCounter, Work};
use ir::Verified;
use ir::eval::EvalState;
use shm::Packet;
use shm::burst::{Batch, Exits, Vector};
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, Pool, SharedPool};
use std::collections::HashMap;

// Begins as the workers of other crates do: it implements the same trait.
struct Worker {
    now_ns: u64,
    pool: PacketPool,
}

impl Host for Worker {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn pool(&mut self) -> &mut PacketPool {
        &mut self.pool
    }
    fn burst(&self) -> usize {
        32
    }
    fn emit(&mut self, _: usize, _: usize, _: u16, _: &Packet) {}
    fn count_dropped(&mut self, _node: usize, _reason: usize, _count: usize) {}
    fn drop(&mut self, _: usize, _: usize, _: &[Packet]) {}
    fn pull(&mut self, _: usize, _: usize, _: usize, _: &mut Vector) -> usize {
        0
    }
    fn count(&mut self, _: usize, _: NodeCounter, _: usize) {}
    fn fire_at(&mut self, _: usize, _: u64) {}
    fn stop(&mut self, _: usize) {}

    fn hold_sources(&mut self) {}
    fn print(&mut self, _: &str) {}
    fn read_handler(&mut self, _: usize, handler: &str) -> Result<String, String> {
        Err(handler.to_string())
    }
    fn write_handler(&mut self, _: usize, handler: &str, _: &str) -> Result<(), String> {
        Err(handler.to_string())
    }
}

struct Node {
    element: BoxElement,
    program: Option<Verified>,
    cells: Vec<u64>,
    shape: Shape,
}

/// Elements of one worker.
pub struct Chain {
    nodes: HashMap<String, Node>,
    worker: Worker,
}

/// An element: name, class, configuration, inputs, outputs.
pub type Declaration = (&'static str, &'static str, &'static str, usize, usize);

impl Chain {
    /// Makes the elements in this order, as worker `worker` of `workers`; the mistakes, a line each.
    pub fn try_on(worker: usize, workers: usize, elements: &[Declaration]) -> Result<Chain, String> {
        let mut services = TestServices::default();
        for (name, class, ..) in elements {
            let class = element::class::find(crate::CLASSES, class).expect("a class");
            services.classes.insert(name.to_string(), class.name);
        }
        let mut nodes = HashMap::new();
        let region = PacketRegion::create(RegionOptions::slots(256)).expect("memory");
        let pool = PacketPool::Native(SharedPool::new(region).worker());
        let mut host = Worker { now_ns: 1_000_000_000, pool };
        let mut mistakes = String::new();
        for (name, class, config, inputs, outputs) in elements {
            let shape = Shape { inputs: *inputs, outputs: *outputs };
            let class = element::find(crate::CLASSES, class).expect("a class");
            let made = configure(class, name, config, shape, (worker, workers), &mut services);
            let element = match made {
                Ok(element) => element,
                Err(lines) => {
                    mistakes += &lines;
                    continue;
                }
            };
            let program = element.lower(shape).map(|program| program.expect("a valid program"));
            let cells = program.iter().flat_map(|program| program.cells.iter().map(|c| c.init)).collect();
            nodes.insert(name.to_string(), Node { element, program, cells, shape });
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        nodes.values_mut().for_each(|node| node.element.start(&mut Work::new(&mut host, 0)));
        Ok(Chain { nodes, worker: host })
    }

    /// The same for a single worker.
    pub fn new(elements: &[Declaration]) -> Chain {
        Chain::try_on(0, 1, elements).unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    /// One packet in; how it left.
    pub fn push(&mut self, name: &str, input: usize, packet: &TestPacket) -> Out {
        let Chain { nodes, worker } = self;
        let node = nodes.get_mut(name).expect("an element");
        let mut made = shm::chain::write_frame(&mut worker.pool, &packet.bytes).expect("a slot");
        let place = |at: Option<i32>| at.map_or(NO_HEADER, |at| (i32::from(made.data()) + at) as u16);
        (made.mac, made.net, made.trans) = (place(packet.mac), place(packet.net), place(packet.trans));
        made.anno = packet.anno;
        let mut packets = [made];
        let mut exits = Exits::with_capacity(8);
        let mut names: Vec<String> = node.element.reasons().iter().map(|name| name.to_string()).collect();
        let mut slow = None;
        match &node.program {
            Some(program) => {
                let now_ns = worker.now_ns;
                let mut state = EvalState { cells: &mut node.cells, tables: &mut node.element, now_ns };
                let (engine, mut scratch) = (Engine::Evaluator(program.clone().into()), Scratch::default());
                let burst = shm::burst::Burst { input, packets: &mut packets, list: &[0] };
                codegen::run(&engine, burst, &mut state, &mut scratch, &mut exits);
                slow = (0..program.slow.len()).find(|path| !exits.other(*path).is_empty());
                if slow.is_none() {
                    names.clone_from(&program.reasons);
                }
            }
            None => exits.reset(node.shape.outputs, names.len(), 0),
        }
        if slow.is_some() {
            exits.reset(node.shape.outputs, names.len(), 0);
        }
        let mut batch = Batch::new(&mut packets, &[0], &mut exits);
        let mut work = Work::new(worker, 0);
        match (slow, &node.program) {
            (Some(path), _) => node.element.as_transparent().unwrap().slow(path, &mut batch, &mut work),
            (None, None) => node.element.as_opaque().unwrap().push(input, &mut batch, &mut work),
            (None, Some(_)) => {}
        }
        let port = (0..node.shape.outputs).find(|port| !exits.output(*port).is_empty());
        let reason = (0..names.len()).find(|reason| !exits.dropped(*reason).is_empty());
        let exit = match (port, reason) {
            (Some(port), None) => Exit::Port(port),
            (None, Some(reason)) => Exit::Dropped(names[reason].clone()),
            _ => panic!("the packet left {port:?} and {reason:?}"),
        };
        let bytes = PacketBytes::new(&packets[0]).to_vec();
        let left = TestPacket { bytes, anno: packets[0].anno, ..packet.clone() };
        worker.pool.free_all(&packets);
        Out { exit, packet: left }
    }

    /// [`element::Transparent::usual_outputs`].
    pub fn usual_outputs(&self, name: &str, input: usize) -> Option<Vec<usize>> {
        self.nodes[name].element.usual_outputs(input)
    }

    /// Moves the clock and has all elements do their housekeeping.
    pub fn advance(&mut self, by_ns: u64) {
        self.worker.now_ns += by_ns;
        self.nodes.values_mut().for_each(|node| node.element.tick(self.worker.now_ns));
    }

    /// A read handler.
    pub fn read(&mut self, name: &str, handler: &str) -> String {
        let node = self.nodes.get_mut(name).expect("an element");
        node.element.handlers().read(handler, &node.cells).expect("a handler")
    }

    /// What an element found worth telling.
    pub fn warnings(&mut self, name: &str) -> Vec<String> {
        self.nodes.get_mut(name).expect("an element").element.take_warnings()
    }
}
