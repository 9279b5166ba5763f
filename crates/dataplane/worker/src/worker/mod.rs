//! A packet thread: its graph, and the resources that it works with.
//!
//! - `turn`: the loop; `virtual_time`: what it does with a virtual clock when nothing is left to do for now
//! - `walk`: the way of packets through the graph; `forward`: runs elements over them; `emitted`: pushes the
//!   packets that elements emit outside their batches; `held`: those that are held in the middle of a program; `pull`: pulls packets out of the graph
//! - `queues`: lets packets pass queues
//! - `give_up`: drops packets for reasons of the host's
//! - `fused_regions`: pushes packets through fused regions that run as one program
//! - `handoff`: hands packets over from worker to worker
//! - `handlers`: calls handlers and exchanges elements; `own_handlers`: those of every node
//! - `host`: implements the operations that elements call on their worker
//! - `profiled`: the same with probes
//! - `stopping`: ends the run when its NFs or its caller have requested that

mod emitted;
mod forward;
mod fused_regions;
mod give_up;
mod handlers;
mod handoff;
mod held;
mod host;
mod own_handlers;
mod profiled;
mod pull;
mod queues;
mod stopping;
mod turn;
mod virtual_time;
mod walk;

use crate::caller::Caller;
use crate::clock::Clock;
use crate::deferred::DeferredEmits;
use crate::ending::Ending;
use crate::exchange::Exchange;
use crate::fusion::FusedRegion;
use crate::graph::Node;
use crate::handoff::HandedOff;
use crate::mailbox::Mailbox;
use crate::order::NodeOrder;
use crate::printed::PrintedLines;
use crate::profile::{Probe, Probes};
use crate::quiescence::{Quiescence, WorkerActivity};
use crate::stop_requests::{EndsWith, StopRequests};
use crate::waiting::WaitingLists;
use codegen::Scratch;
use crossbeam_queue::ArrayQueue;
use element::{BoxElement, Work};
use shm::burst::Exits;
use shm::burst::Vector;
use shm::pool::PacketPool;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The most packets of a burst, unless the user sets another number. The cost of a hop between elements is
/// divided by the burst, and the descriptors and headers of two such bursts still fit the first-level cache.
/// A worker never waits until a burst is full.
pub const DEFAULT_BURST: usize = 64;

/// A packet thread's own copy of the graph, and the resources that it works with.
pub struct Worker {
    /// Its index among the workers.
    pub number: usize,
    /// The graph.
    pub nodes: Vec<Node>,
    /// The state cells of all programs.
    pub cells: Vec<u64>,
    /// Fused regions of elements that run as one program.
    pub regions: Vec<FusedRegion>,
    /// The packet pool.
    pub pool: PacketPool,
    /// The most packets of a burst.
    pub burst: usize,
    /// Whether it polls its sources without ever sleeping.
    pub polls: bool,
    /// The run's clock.
    pub clock: Clock,
    /// The time at the start of the current turn.
    pub now_ns: u64,
    /// Requests from other threads.
    pub mailbox: Arc<Mailbox>,
    /// Exchanges elements for ones with another configuration.
    pub exchange: Option<Arc<Exchange>>,
    /// The queue of packets for the first worker, which owns state of [`element::StateScope::OneWorker`].
    pub handoff: Arc<ArrayQueue<HandedOff>>,
    /// For each worker, the handoff queue of packets that sources of other workers received for it.
    pub rings: Vec<Arc<ArrayQueue<HandedOff>>>,
    /// Set when the run ends.
    pub stop: Arc<AtomicBool>,
    /// The requests of elements to end the run.
    pub stop_requests: Arc<StopRequests>,
    pub(crate) ending: Ending,
    /// The number of workers that have nothing left to do.
    pub quiescence: Arc<Quiescence>,
    /// Its progress, for other threads to read.
    pub activity: Arc<WorkerActivity>,
    /// The requested execution mode: whether fused regions have to run as one program each. The worker
    /// changes to it within milliseconds, or when the programs are compiled.
    pub is_fused: Arc<AtomicBool>,
    /// Lines that elements print.
    pub print: fn(&str),
    pub(crate) scratch: Scratch,
    /// Others, for programs that run while packets are held in the middle of one.
    pub(crate) spare_scratches: Vec<Scratch>,
    /// The elements that will call a handler after so many packets.
    pub(crate) callers: Vec<Caller>,
    /// The most packets of a burst just now: one shortly before an element calls a handler.
    pub(crate) most_at_once: usize,
    /// The nodes whose handlers elements have written, and that did not follow yet.
    pub(crate) written: Vec<usize>,
    /// Writes to handlers of elements that run: each of a node, a handler and a value. They are carried out as soon as
    /// the element has returned, or when it asks for them.
    pub(crate) late_writes: Vec<(usize, String, String)>,
    /// Whether flow caches rest, because a table has no room for new records.
    pub(crate) caches_rest: bool,
    /// How often an element was exchanged.
    pub(crate) exchanges: u64,
    #[expect(clippy::vec_box, reason = "taken and put back at each hop: a pointer is less to move")]
    pub(crate) exits: Vec<Box<Exits>>,
    pub(crate) vectors: Vec<Vector>,
    pub(crate) deferred: DeferredEmits,
    /// The order of the nodes.
    pub(crate) order: NodeOrder,
    /// The packets that wait at nodes in the middle of a burst.
    pub(crate) waiting: WaitingLists,
    /// The lines about its packets that were printed meanwhile.
    pub(crate) printed: PrintedLines,
    pub(crate) timers: BinaryHeap<Reverse<(u64, usize)>>,
    pub(crate) fire_at: Vec<u64>,
    /// When the first of the elements has something to do that told so in the current turn.
    pub(crate) wakes_at_ns: u64,
    /// How often the packets went back in the graph that are being processed (`walk`), and one; 0 between bursts.
    pub(crate) depth: usize,
    /// Whether sources skip the next turn.
    pub(crate) sources_wait: bool,
    /// Whether an element's slow path is running.
    pub(crate) is_slow: bool,
    /// Whether `quiescence` counts it as done.
    pub(crate) is_done: bool,
    /// Its probes and their counts.
    pub probes: Arc<Probes>,
    /// The active probe while probes are on.
    pub(crate) probe: Option<Box<Probe>>,
}

impl Worker {
    /// A worker with this graph, its fused regions and resources.
    pub fn new(
        number: usize,
        mut nodes: Vec<Node>,
        mut regions: Vec<FusedRegion>,
        pool: PacketPool,
        clock: Clock,
    ) -> Worker {
        let order = NodeOrder::of(&nodes);
        let ring = Arc::new(ArrayQueue::new(1));
        let is_fused = regions.iter().any(FusedRegion::is_wanted);
        let mut cells = vec![];
        regions.iter_mut().for_each(|region| region.settle_in(&mut nodes, &mut cells));
        regions.iter_mut().for_each(|region| region.find_returning(&nodes, &order));
        let fused: HashSet<usize> = regions.iter().flat_map(|region| region.parts.iter().copied()).collect();
        for (at, node) in nodes.iter_mut().enumerate() {
            if !fused.contains(&at) {
                node.settle_in(&mut cells);
            }
        }
        Worker {
            number,
            ending: Ending::new(&nodes),
            fire_at: vec![u64::MAX; nodes.len()],
            probes: Arc::new(Probes::new(&nodes, &regions)),
            probe: None,
            nodes,
            cells,
            regions,
            pool,
            burst: DEFAULT_BURST,
            polls: false,
            now_ns: clock.now_ns(),
            clock,
            mailbox: Arc::default(),
            exchange: None,
            handoff: Arc::clone(&ring),
            rings: vec![ring],
            is_done: false,
            stop: Arc::default(),
            stop_requests: Arc::new(StopRequests::new(EndsWith::All, [false], [false])),
            quiescence: Arc::new(Quiescence::new(1)),
            activity: Arc::default(),
            is_fused: Arc::new(AtomicBool::new(is_fused)),
            print: |line| println!("{line}"),
            scratch: Scratch::default(),
            spare_scratches: vec![],
            callers: vec![],
            most_at_once: usize::MAX,
            written: vec![],
            late_writes: vec![],
            caches_rest: false,
            exchanges: 0,
            exits: vec![],
            vectors: vec![],
            deferred: DeferredEmits::default(),
            order,
            waiting: WaitingLists::default(),
            printed: PrintedLines::default(),
            timers: BinaryHeap::new(),
            wakes_at_ns: u64::MAX,
            depth: 0,
            sources_wait: false,
            is_slow: false,
        }
    }

    /// Calls an element with its worker. The caller pushes the packets that it emits outside its batch by
    /// [`Worker::flush_deferred`].
    pub(crate) fn with_element(&mut self, node: usize, call: impl FnOnce(&mut BoxElement, &mut Work<'_>)) {
        if let Some(mut element) = self.nodes[node].element.take() {
            call(&mut element, &mut Work::new(self, node));
            self.nodes[node].element = Some(element);
            if !self.late_writes.is_empty() {
                self.write_late(node);
            }
            if !self.written.is_empty() {
                self.follow_written();
            }
        }
    }

    /// Carries out the writes to a node's handlers that came while its element ran.
    #[cold]
    fn write_late(&mut self, node: usize) {
        for (handler, value) in self.take_late_writes(node) {
            if let Err(mistake) = self.write_here(node, &handler, &value) {
                let line = format!("{}.{handler}: {mistake}", self.nodes[node].name);
                (self.print)(&line);
            } else if !self.written.contains(&node) {
                self.written.push(node);
            }
        }
    }

    /// Takes the writes to a node's handlers that wait until its element returns.
    pub(crate) fn take_late_writes(&mut self, node: usize) -> Vec<(String, String)> {
        let late = self.late_writes.extract_if(.., |(of, ..)| *of == node);
        late.map(|(_, handler, value)| (handler, value)).collect()
    }

    /// Prints the lines about the packets of a burst.
    #[cold]
    pub(crate) fn print_lines(&mut self) {
        self.printed.take().for_each(|line| (self.print)(&line));
    }

    /// Lets elements do what their handlers were asked for.
    #[cold]
    fn follow_written(&mut self) {
        for node in std::mem::take(&mut self.written) {
            self.with_element(node, |element, work| element.follow_write(work));
        }
    }
}
