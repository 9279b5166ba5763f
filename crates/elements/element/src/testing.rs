//! The harness of the tests of element libraries: packets in, packets out.
//!
//! ```ignore
//! type Rig = element::testing::Rig<MyLibrary>;
//! let mut rig = Rig::new("Paint", "7", 1, 1);
//! let out = rig.push(0, &[TestPacket::frame(&bytes)]);
//! assert_eq!(out[0].exit, Exit::Port(0));
//! ```
//!
//! A transparent element runs twice, by the evaluator and as machine code, each in an instance of its
//! own; the harness asserts that both did the same to every packet and to the state cells. Every run
//! checks that no packet was lost or doubled and that the element's counters balance, and every rig that
//! all slots return to the pool.

pub mod arp;
pub mod capture;
mod frames;
pub mod ip;
mod trip;

pub use frames::{random_frames, random_packets};
pub use trip::{Exit, Out, TestPacket, dropped, exits};

use crate::class::Class;
use crate::configure::{Configure, Direction, Scope, Services, Shape};
use crate::element::{BoxElement, Progress};
use crate::handler::Access;
use crate::work::{Host, NodeCounter, Work};
use click::config::NameTable;
use codegen::{CodeBuilder, Engine, Precedence, Scratch};
use diag::{Diagnostics, SourceMap, Spanned};
use ir::eval::EvalState;
use ir::{Tables, Verified};
use port::Port;
use shm::Packet;
use shm::burst::Exits;
use shm::burst::{Batch, Vector};
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, Pool, SharedPool};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a rig's elements are looked up in: the library under test, and those that it uses.
pub trait Library {
    /// The class with that name.
    fn find(name: &str) -> Option<&'static Class>;
}

/// Services of a host that has nothing.
#[derive(Default)]
pub struct TestServices {
    /// Other elements: their names and classes.
    pub classes: HashMap<String, &'static str>,
    shared: HashMap<(Scope, String), Arc<dyn Any + Send + Sync>>,
    ports: HashMap<String, Vec<Box<dyn Port>>>,
    /// Queues, and whether they are downstream.
    queues: (Vec<String>, bool),
}

impl Services for TestServices {
    fn open_port(&mut self, name: &str, _direction: Direction) -> Result<Box<dyn Port>, String> {
        let port = self.ports.get_mut(name).and_then(Vec::pop);
        port.ok_or_else(|| format!("there is no port `{name}`"))
    }

    fn path(&self, name: &Path) -> PathBuf {
        name.to_path_buf()
    }

    // As in every implementation of the trait, whose signature this is.
    fn shared_any(
        &mut self,
        scope: Scope,
        key: &str,
        make: &mut dyn FnMut() -> Arc<dyn Any + Send + Sync>,
    ) -> Arc<dyn Any + Send + Sync> {
        self.shared.entry((scope, key.to_string())).or_insert_with(make).clone()
    }

    fn element(&self, _from: &str, name: &str) -> Option<(String, &'static str)> {
        let is_queue = self.queues.0.iter().any(|queue| queue == name);
        let class = self.classes.get(name).copied().or(is_queue.then_some("Queue"))?;
        Some((name.to_string(), class))
    }

    // Configurations of other elements are not known here: each names all.
    fn is_named_by(&self, _element: &str, class: &str) -> bool {
        self.classes.values().any(|other| *other == class)
    }

    fn is_queue(&self, class: &str) -> bool {
        class == "Queue"
    }

    fn queues_near(&self, _element: &str) -> (Vec<String>, bool) {
        // An element stands alone unless a test says otherwise, and pushes.
        (self.queues.0.clone(), self.queues.1 || self.queues.0.is_empty())
    }
}

/// A worker for one element.
pub struct TestHost {
    /// The clock.
    pub now_ns: u64,
    pool: PacketPool,
    emitted: Vec<(usize, Packet)>,
    dropped: Vec<(usize, Packet)>,
    /// Packets that were freed and then counted as dropped.
    counted_dropped: usize,
    /// What pulls from an input get.
    upstream: HashMap<usize, VecDeque<Packet>>,
    /// Counts by [`NodeCounter`].
    pub node_counters: [usize; 8],
    /// The time that the element wants to be called at.
    pub fire_at: Option<u64>,
    /// The time at which it will have something to do, as it said last.
    pub wake_at: Option<u64>,
    /// Whether it asked for the end.
    pub stopped: bool,
    /// What it printed.
    pub printed: Vec<String>,
    /// Handlers of other elements.
    pub handlers: HashMap<String, String>,
}

impl Host for TestHost {
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn pool(&mut self) -> &mut PacketPool {
        &mut self.pool
    }
    fn burst(&self) -> usize {
        32
    }
    fn emit(&mut self, _node: usize, port: usize, _place: u16, packet: &Packet) {
        self.emitted.push((port, *packet));
    }
    fn drop(&mut self, _node: usize, reason: usize, packets: &[Packet]) {
        self.dropped.extend(packets.iter().map(|packet| (reason, *packet)));
    }
    fn count_dropped(&mut self, _node: usize, _reason: usize, count: usize) {
        self.counted_dropped += count;
    }
    fn pull(&mut self, _node: usize, input: usize, most: usize, into: &mut Vector) -> usize {
        let queue = self.upstream.entry(input).or_default();
        let count = most.min(queue.len()).min(into.room());
        queue.drain(..count).for_each(|packet| assert!(into.push(&packet)));
        count
    }
    fn count(&mut self, _node: usize, counter: NodeCounter, count: usize) {
        self.node_counters[counter as usize] += count;
    }
    fn fire_at(&mut self, _node: usize, at_ns: u64) {
        self.fire_at = Some(at_ns);
    }
    fn wake_at(&mut self, at_ns: u64) {
        self.wake_at = Some(at_ns);
    }
    fn hold_sources(&mut self) {}

    fn stop(&mut self, _node: usize) {
        self.stopped = true;
    }
    fn print(&mut self, line: &str) {
        self.printed.push(line.to_string());
    }
    fn read_handler(&mut self, _node: usize, handler: &str) -> Result<String, String> {
        self.handlers.get(handler).cloned().ok_or_else(|| format!("no handler `{handler}`"))
    }
    fn write_handler(&mut self, _node: usize, handler: &str, value: &str) -> Result<(), String> {
        self.handlers.insert(handler.to_string(), value.to_string());
        Ok(())
    }
}

/// One instance of the element, with a worker of its own.
struct Instance {
    element: BoxElement,
    engine: Option<(Arc<Verified>, Engine)>,
    cells: Vec<u64>,
    exits: Exits,
    scratch: Scratch,
    host: TestHost,
    shape: Shape,
    /// Whether the element finds the pool empty.
    starved: bool,
}

/// An element under test, of a class of `L`.
pub struct Rig<L> {
    instances: Vec<Instance>,
    library: PhantomData<L>,
}

/// Slots of an instance's pool.
const SLOTS: u32 = 2048;
/// The clock at the start.
const START_NS: u64 = 1_000_000_000;

/// Makes an element of a host that has nothing to offer.
///
/// # Panics
/// With the rendered mistakes, where its configuration has some.
pub fn configured<L: Library>(class: &str, config: &str, shape: Shape) -> BoxElement {
    make::<L>(class, config, shape, &mut TestServices::default())
        .unwrap_or_else(|mistakes| panic!("{class}({config}): {mistakes}"))
}

/// Makes an element; the rendered mistakes where its configuration has some.
fn make<L: Library>(
    class: &str,
    config: &str,
    shape: Shape,
    services: &mut TestServices,
) -> Result<BoxElement, String> {
    let class = L::find(class).unwrap_or_else(|| panic!("no class {class}"));
    configure(class, "e", config, shape, (0, 1), services)
}

/// Makes an element of that name, as a worker of so many; the rendered mistakes where its configuration has
/// some.
///
/// # Errors
/// The mistakes, a line each.
pub fn configure(
    class: &Class,
    name: &str,
    config: &str,
    shape: Shape,
    (worker, workers): (usize, usize),
    services: &mut TestServices,
) -> Result<BoxElement, String> {
    let mut map = SourceMap::new();
    let source = map.add("test.click", config);
    let config = Spanned::verbatim(config, map.whole(source));
    let (names, mut diags) = (NameTable::new(), Diagnostics::new());
    let mut cx = Configure {
        name,
        config: &config,
        span: config.span,
        shape,
        worker,
        workers,
        names: &names.scoped(name),
        diags: &mut diags,
        services,
    };
    let element = (class.make)(&mut cx);
    if diags.has_errors() {
        return Err(diags.render_short(&map));
    }
    Ok(element.expect("an element where no mistake was recorded"))
}

impl Instance {
    fn new(element: BoxElement, shape: Shape, native: bool, slots: u32) -> Instance {
        let program = element.lower(shape).map(|lowered| lowered.expect("a valid program"));
        let engine = program.map(|program| {
            let parsed = ir::text::parse(&ir::text::print(&program)).expect("its own text");
            assert_eq!(parsed, *program, "the text form keeps the program");
            let program = Arc::new(program);
            if !native {
                return (Arc::clone(&program), Engine::Evaluator(program));
            }
            let mut builder = CodeBuilder::new().expect("this machine");
            let id = builder.add(&program).expect("compiles");
            (program, Engine::Native(builder.finish().expect("memory").compiled(id)))
        });
        let cells = engine.iter().flat_map(|(program, _)| program.cells.iter().map(|c| c.init)).collect();
        let region = PacketRegion::create(RegionOptions::slots(slots)).expect("memory");
        let host = TestHost {
            now_ns: START_NS,
            pool: PacketPool::Native(SharedPool::new(region).worker()),
            emitted: vec![],
            dropped: vec![],
            counted_dropped: 0,
            upstream: HashMap::new(),
            node_counters: [0; 8],
            fire_at: None,
            wake_at: None,
            stopped: false,
            printed: vec![],
            handlers: HashMap::new(),
        };
        let (exits, scratch) = (Exits::with_capacity(1), Scratch::default());
        let mut instance = Instance { element, engine, cells, exits, scratch, host, shape, starved: false };
        instance.element.start(&mut Work::new(&mut instance.host, 0));
        instance
    }

    /// Ends the run and starts one with a new element; keeps the pool, and the machine code where the
    /// new element has the same program.
    fn renew(&mut self, element: BoxElement) {
        self.finish();
        let program = element.lower(self.shape).map(|lowered| lowered.expect("a valid program"));
        assert!(program.as_ref() == self.engine.as_ref().map(|(program, _)| &**program), "another program");
        self.element = element;
        self.cells = program.iter().flat_map(|program| program.cells.iter().map(|c| c.init)).collect();
        let host = &mut self.host;
        (host.now_ns, host.node_counters, host.fire_at, host.stopped) = (START_NS, [0; 8], None, false);
        host.printed.clear();
        host.handlers.clear();
        self.element.start(&mut Work::new(&mut self.host, 0));
    }

    /// The accounts, and the packets that were emitted and dropped beside a batch and not removed yet.
    fn counters(&self) -> ([usize; 8], usize) {
        let left = self.host.emitted.len() + self.host.dropped.len() + self.host.counted_dropped;
        (self.host.node_counters, left)
    }

    /// Checks the element's counters: since `before`, `came` packets went in and `left` came out or were
    /// dropped, beside those that it emitted and dropped itself.
    fn settle(&self, before: ([usize; 8], usize), came: usize, left: usize) {
        let left = left + self.counters().1 - before.1;
        let since =
            |counter: NodeCounter| self.host.node_counters[counter as usize] - before.0[counter as usize];
        let sources =
            came + since(NodeCounter::Received) + since(NodeCounter::Made) + since(NodeCounter::Released);
        let sinks = left + since(NodeCounter::Sent) + since(NodeCounter::Merged) + since(NodeCounter::Held);
        let changes = NodeCounter::ALL.map(|account| (account, since(account)));
        assert_eq!(sources, sinks, "the node counters: {came} came, {left} left, {changes:?}");
    }

    fn insert(&mut self, packet: &TestPacket) -> Packet {
        let mut made = shm::chain::write_frame(&mut self.host.pool, &packet.bytes).expect("a slot");
        let place = |at: Option<i32>| {
            at.map_or(NO_HEADER, |at| (i32::from(made.data()) + at).try_into().expect("inside the slot"))
        };
        (made.mac, made.net, made.trans) = (place(packet.mac), place(packet.net), place(packet.trans));
        made.anno = packet.anno;
        made.packet_type = packet.packet_type;
        made.timestamp_ns = packet.timestamp_ns;
        made.origin = packet.origin;
        made
    }

    fn remove(&mut self, packet: &Packet) -> TestPacket {
        let place = |at: u16| (at != NO_HEADER).then(|| i32::from(at) - i32::from(packet.data()));
        let out = TestPacket {
            bytes: PacketBytes::new(packet).to_vec(),
            mac: place(packet.mac),
            net: place(packet.net),
            trans: place(packet.trans),
            anno: packet.anno,
            packet_type: packet.packet_type,
            timestamp_ns: packet.timestamp_ns,
            origin: packet.origin,
        };
        self.host.pool.free_all(std::slice::from_ref(packet));
        out
    }

    fn own_reason(&self, reason: usize) -> String {
        self.element.reasons().get(reason).expect("a reason with a name").to_string()
    }

    /// Packets of a run in input order, then those that were sent beside the batch in their order.
    fn push(&mut self, input: usize, packets: &[TestPacket]) -> Vec<Out> {
        let mut out = vec![];
        for chunk in packets.chunks(64) {
            out.extend(self.push_burst(input, chunk));
        }
        out
    }

    fn push_burst(&mut self, input: usize, packets: &[TestPacket]) -> Vec<Out> {
        let mut vector = Vector::new();
        let before = self.counters();
        for packet in packets {
            let inserted = self.insert(packet);
            assert!(vector.push(&inserted));
        }
        let mut spare = vec![Packet::EMPTY; if self.starved { self.host.pool.available() } else { 0 }];
        let taken = self.host.pool.alloc(&mut spare);
        let mut left: Vec<(u16, Exit)> = vec![];
        let (packets, list) = vector.parts();
        match &self.engine {
            Some((program, engine)) => {
                let now_ns = self.host.now_ns;
                let mut state = EvalState { cells: &mut self.cells, tables: &mut self.element, now_ns };
                let (scratch, exits) = (&mut self.scratch, &mut self.exits);
                let burst = shm::burst::Burst { input, packets: &mut *packets, list };
                if let Some(port) =
                    codegen::pass_in_order(engine, burst, Precedence::NONE, &mut state, scratch, exits)
                {
                    exits.extend(port, list);
                }
                loop {
                    // Slow paths take turns, as in a worker.
                    let of_path =
                        |path: usize| self.exits.other(path).iter().map(move |index| (*index, path));
                    let mut slow: Vec<(u16, usize)> = (0..program.slow.len()).flat_map(of_path).collect();
                    slow.sort_unstable();
                    left.extend(exits_of(&self.exits, |reason| program.reasons[reason].clone()));
                    for turn in slow.chunk_by(|(_, path), (_, next)| path == next) {
                        let list: Vec<u16> = turn.iter().map(|(index, _)| *index).collect();
                        self.exits.reset(self.shape.outputs, self.element.reasons().len(), 0);
                        let mut batch = Batch::new(packets, &list, &mut self.exits);
                        let element = self.element.as_transparent().expect("it has a program");
                        element.slow(turn[0].1, &mut batch, &mut Work::new(&mut self.host, 0));
                        let names = self.element.reasons();
                        left.extend(exits_of(&self.exits, |reason| names[reason].to_string()));
                    }
                    // Packets that were held behind those go on.
                    if self.scratch.first_held().is_none() {
                        break;
                    }
                    let mut state = EvalState { cells: &mut self.cells, tables: &mut self.element, now_ns };
                    let (scratch, exits) = (&mut self.scratch, &mut self.exits);
                    assert!(codegen::resume(engine, packets, Precedence::NONE, &mut state, scratch, exits));
                }
            }
            None => {
                self.exits.reset(self.shape.outputs, self.element.reasons().len(), 0);
                let mut batch = Batch::new(packets, list, &mut self.exits);
                let element = self.element.as_opaque().expect("it has no program");
                element.push(input, &mut batch, &mut Work::new(&mut self.host, 0));
                let names = self.element.reasons();
                left.extend(exits_of(&self.exits, |reason| names[reason].to_string()));
            }
        }
        self.host.pool.free_all(&spare[..taken]);
        let mut seen: Vec<u16> = left.iter().map(|(index, _)| *index).collect();
        seen.sort_unstable();
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "a packet left twice: {seen:?}");
        assert!(seen.iter().all(|index| list.contains(index)), "a packet that did not come in: {seen:?}");
        self.settle(before, list.len(), seen.len());
        left.sort_by_key(|(index, _)| *index);
        let mut out = vec![];
        for (index, exit) in left {
            let packet = *vector.packet(index);
            out.push(Out { exit, packet: self.remove(&packet) });
        }
        out.extend(self.beside());
        out
    }

    /// What was emitted and dropped beside a batch.
    fn beside(&mut self) -> Vec<Out> {
        let mut out = vec![];
        for (port, packet) in std::mem::take(&mut self.host.emitted) {
            assert!(port < self.shape.outputs, "output {port} of {}", self.shape.outputs);
            out.push(Out { exit: Exit::Port(port), packet: self.remove(&packet) });
        }
        for (reason, packet) in std::mem::take(&mut self.host.dropped) {
            let exit = Exit::Dropped(self.own_reason(reason));
            out.push(Out { exit, packet: self.remove(&packet) });
        }
        out
    }

    fn finish(&mut self) {
        let before = self.counters();
        self.element.stop(&mut Work::new(&mut self.host, 0));
        self.settle(before, 0, 0);
        self.beside();
        let upstream: Vec<Packet> = self.host.upstream.drain().flat_map(|(_, queue)| queue).collect();
        self.host.pool.free_all(&upstream);
        assert_eq!(self.host.pool.in_use(), 0, "slots that the element did not give back");
    }
}

fn exits_of(exits: &Exits, reason: impl Fn(usize) -> String) -> Vec<(u16, Exit)> {
    let ports = (0..exits.outputs())
        .flat_map(|port| exits.output(port).iter().map(move |index| (*index, Exit::Port(port))));
    let drops = (0..exits.reasons()).flat_map(|at| {
        let name = reason(at);
        exits.dropped(at).iter().map(move |index| (*index, Exit::Dropped(name.clone())))
    });
    ports.chain(drops).collect()
}

impl<L: Library> Rig<L> {
    /// An element with that many wired ports. Panics with the rendered mistakes where the
    /// configuration has some.
    pub fn new(class: &str, config: &str, inputs: usize, outputs: usize) -> Rig<L> {
        match Rig::try_new(class, config, inputs, outputs) {
            Ok(rig) => rig,
            Err(mistakes) => panic!("{class}({config}): {mistakes}"),
        }
    }

    /// The same; the mistakes, one line each with file, line and column, where there are some.
    pub fn try_new(class: &str, config: &str, inputs: usize, outputs: usize) -> Result<Rig<L>, String> {
        Rig::with_ports(class, config, inputs, outputs, |_| vec![])
    }

    /// The mistakes of a configuration, one line each. Panics where it has none.
    pub fn mistakes(class: &str, config: &str, inputs: usize, outputs: usize) -> Vec<String> {
        match Rig::<L>::try_new(class, config, inputs, outputs) {
            Ok(_) => panic!("{class}({config}) has no mistakes"),
            Err(mistakes) => mistakes.lines().map(str::to_string).collect(),
        }
    }

    /// An element with a small pool of `slots` slots.
    pub fn with_slots(class: &str, config: &str, shape: Shape, slots: u32) -> Result<Rig<L>, String> {
        Rig::build(class, config, shape, slots, |_, _| ())
    }

    /// Whether the element finds the pool empty from now on.
    pub fn starve(&mut self, starved: bool) {
        self.instances.iter_mut().for_each(|instance| instance.starved = starved);
    }

    /// Starts over with a new element of the same class and configuration: as a new rig, but quicker.
    pub fn renew(&mut self, class: &str, config: &str) {
        for instance in &mut self.instances {
            instance.renew(configured::<L>(class, config, instance.shape));
        }
    }

    /// The same with ports that the element may open. `ports` is called once for each instance.
    pub fn with_ports(
        class: &str,
        config: &str,
        inputs: usize,
        outputs: usize,
        mut ports: impl FnMut(usize) -> Vec<(String, Box<dyn Port>)>,
    ) -> Result<Rig<L>, String> {
        Rig::build(class, config, Shape { inputs, outputs }, SLOTS, |at, services| {
            for (name, port) in ports(at) {
                services.ports.entry(name).or_default().push(port);
            }
        })
    }

    /// An opaque element beside a queue `q`, whose length is its handler `length`.
    pub fn beside_queue<T: Any + Send + Sync>(
        class: &str,
        config: &str,
        outputs: usize,
        downstream: bool,
        length: &Arc<T>,
    ) -> Result<Rig<L>, String> {
        let key = format!("q: {}", std::any::type_name::<T>());
        Rig::build(class, config, Shape { inputs: 1, outputs }, SLOTS, |_, services| {
            services.queues = (vec!["q".into()], downstream);
            services.shared.insert((Scope::Worker, key.clone()), Arc::clone(length) as _);
        })
    }

    /// An opaque element that shares state with others of its worker.
    pub fn with_state<T: Any + Send + Sync>(
        class: &str,
        config: &str,
        (inputs, outputs): (usize, usize),
        key: &str,
        state: &Arc<T>,
    ) -> Result<Rig<L>, String> {
        let key = format!("{key}: {}", std::any::type_name::<T>());
        Rig::build(class, config, Shape { inputs, outputs }, SLOTS, |_, services| {
            services.shared.insert((Scope::Worker, key.clone()), Arc::clone(state) as _);
        })
    }

    /// The same beside another element, whose name and class are known and whose state it shares.
    ///
    /// # Panics
    /// With the rendered mistakes, where the configuration has some.
    pub fn with_named<T: Any + Send + Sync>(
        class: &str,
        config: &str,
        (inputs, outputs): (usize, usize),
        (name, of): (&str, &'static str),
        state: &Arc<T>,
    ) -> Rig<L> {
        let key = format!("{name}: {}", std::any::type_name::<T>());
        let built = Rig::build(class, config, Shape { inputs, outputs }, SLOTS, |_, services| {
            services.classes.insert(name.to_string(), of);
            services.shared.insert((Scope::Worker, key.clone()), Arc::clone(state) as _);
        });
        built.unwrap_or_else(|mistakes| panic!("{class}({config}): {mistakes}"))
    }

    fn build(
        class: &str,
        config: &str,
        shape: Shape,
        slots: u32,
        mut prepare: impl FnMut(usize, &mut TestServices),
    ) -> Result<Rig<L>, String> {
        let mut instances = vec![];
        for native in [false, true] {
            let mut services = TestServices::default();
            prepare(instances.len(), &mut services);
            let element = make::<L>(class, config, shape, &mut services)?;
            let transparent = element.lower(shape).is_some();
            instances.push(Instance::new(element, shape, native, slots));
            if !transparent {
                break;
            }
        }
        Ok(Rig { instances, library: PhantomData })
    }

    /// Does something with each instance and asserts that all did the same.
    fn both<T: PartialEq + std::fmt::Debug>(&mut self, mut what: impl FnMut(&mut Instance) -> T) -> T {
        let mut results = self.instances.iter_mut().map(&mut what);
        let first = results.next().expect("an instance");
        for other in results {
            assert_eq!(other, first, "machine code (left) against evaluator (right)");
        }
        let cells = &self.instances[0].cells;
        assert!(self.instances.iter().all(|instance| instance.cells == *cells), "state cells differ");
        first
    }

    /// Packets in at an input; what left, in input order, then what was emitted beside the batch.
    pub fn push(&mut self, input: usize, packets: &[TestPacket]) -> Vec<Out> {
        self.both(|instance| instance.push(input, packets))
    }

    /// One packet in; how it left.
    pub fn push_one(&mut self, input: usize, packet: &TestPacket) -> Out {
        let mut out = self.push(input, std::slice::from_ref(packet));
        assert_eq!(out.len(), 1, "one packet leaves");
        out.remove(0)
    }

    /// Pulls from an output of an opaque element.
    pub fn pull(&mut self, output: usize, most: usize) -> Vec<TestPacket> {
        self.both(|instance| {
            let mut vector = Vector::new();
            let Instance { element, host, .. } = instance;
            let element = element.as_opaque().expect("transparent elements are pulled through");
            let count = element.pull(output, most, &mut vector, &mut Work::new(host, 0));
            assert_eq!(count, vector.len());
            let packets: Vec<Packet> = vector.iter().copied().collect();
            packets.iter().map(|packet| instance.remove(packet)).collect()
        })
    }

    /// What the element gets when it pulls from an input.
    pub fn feed(&mut self, input: usize, packets: &[TestPacket]) {
        self.both(|instance| {
            for packet in packets {
                let packet = instance.insert(packet);
                instance.host.upstream.entry(input).or_default().push_back(packet);
            }
        });
    }

    /// Runs the element's task once; what it sent by output 0 and beside.
    pub fn task(&mut self) -> (Progress, Vec<Out>) {
        self.both(|instance| {
            let mut vector = Vector::new();
            let Instance { element, host, .. } = instance;
            let task = element.task().expect("it has a task");
            let progress = task.run_task(&mut vector, &mut Work::new(host, 0));
            let packets: Vec<Packet> = vector.iter().copied().collect();
            let exit = Exit::Port(0);
            let mut out: Vec<Out> = vec![];
            for packet in &packets {
                out.push(Out { exit: exit.clone(), packet: instance.remove(packet) });
            }
            out.extend(instance.beside());
            (progress, out)
        })
    }

    /// Moves the clock, and calls `tick` and, where the element asked for it, `fire`; what it sent.
    pub fn advance(&mut self, by_ns: u64) -> Vec<Out> {
        self.both(|instance| {
            instance.host.now_ns += by_ns;
            let before = instance.counters();
            let Instance { element, host, cells, .. } = instance;
            element.tick(host.now_ns);
            element.tick_cells(cells, host.now_ns);
            if host.fire_at.is_some_and(|at| at <= host.now_ns) {
                host.fire_at = None;
                element.fire(&mut Work::new(host, 0));
            }
            instance.settle(before, 0, 0);
            instance.beside()
        })
    }

    /// Reads every handler that can be read.
    pub fn read_all(&mut self) {
        self.both(|instance| {
            let handlers = instance.element.handlers();
            let list = handlers.list().into_iter().filter(|handler| handler.access != Access::Write);
            list.map(|handler| handlers.read(&handler.name, &instance.cells)).collect::<Vec<_>>()
        });
    }

    /// Reads a handler; panics where there is none.
    pub fn read(&mut self, handler: &str) -> String {
        self.both(|instance| instance.element.handlers().read(handler, &instance.cells))
            .unwrap_or_else(|| panic!("no read handler {handler}"))
    }

    /// Writes a handler.
    pub fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.both(|instance| instance.element.handlers().write(handler, value, &mut instance.cells))
    }

    /// Does something with the tables of that number.
    pub fn table<T: PartialEq + std::fmt::Debug>(
        &mut self,
        number: usize,
        mut what: impl FnMut(&mut dyn ir::Table) -> T,
    ) -> T {
        self.both(|instance| what(instance.element.table(number).expect("a table")))
    }

    /// What the element found worth telling.
    pub fn warnings(&mut self) -> Vec<String> {
        self.both(|instance| instance.element.take_warnings())
    }

    /// The worker of the first instance.
    pub fn host(&mut self) -> &mut TestHost {
        &mut self.instances[0].host
    }
}

impl<L> Drop for Rig<L> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.instances.iter_mut().for_each(Instance::finish);
        }
    }
}

/// Runs random packets through a transparent element and lets [`Rig`] compare evaluator and machine
/// code.
pub fn differential<L: Library>(class: &str, config: &str, inputs: usize, outputs: usize) {
    for seed in 1..=4 {
        let mut rig = Rig::<L>::new(class, config, inputs, outputs);
        assert_eq!(rig.instances.len(), 2, "{class} is transparent");
        for input in 0..inputs {
            rig.push(input, &random_packets(seed, 256));
        }
    }
}
