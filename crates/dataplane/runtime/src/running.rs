//! A running chain: its threads, its handlers, and its report at the end.

use crate::assemble::Assembly;
use crate::handlers::{Asked, Handlers, Last, Merged};
use chain::{EndsWith, device_direction, instances};
use crossbeam_queue::ArrayQueue;
use element::configure::Direction;
use nf_host::handlers::NfHandlers;
use shm::pool::{PacketPool, Pool};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use worker::Worker;
use worker::clock::Clock;
use worker::exchange::Exchange;
use worker::fusion::CacheCounts;
use worker::graph::Node;
use worker::profile::Probes;
use worker::quiescence::{Quiescence, WorkerActivity};
use worker::report::{NodeCounterReader, PortReport, Report};
use worker::stop_requests::{self, StopRequests};

/// The least capacity of a handoff queue, in packets.
const HANDOFF_PACKETS: usize = 1024;
/// Stack of a packet thread: of packets that elements make of packets that elements made, a thousand generations are
/// each pushed inside the call of the one before.
const STACK_BYTES: usize = 16 << 20;

/// The options for running an assembled chain.
pub struct RunPlan {
    /// The most packets of a burst, 1 to 256.
    pub burst: usize,
    /// Whether workers poll their sources without ever sleeping.
    pub polls: bool,
    /// The clock.
    pub clock: Clock,
    /// Cores to which workers are pinned, in order; further workers are not pinned.
    pub cores: Vec<usize>,
    /// Called on each packet thread before its first turn, for example to register it with a driver library.
    pub on_thread: Arc<dyn Fn(usize) + Send + Sync>,
    /// Prints the lines of printing elements.
    pub print: fn(&str),
    /// Handlers of NFs that run in processes of their own.
    pub nfs: NfHandlers,
    /// The NFs whose scripts end the run; `None` if the caller ends it when they request it.
    pub ends_with: Option<EndsWith>,
    /// Whether the caller names handlers whose last values it wants: the run does not end by itself before
    /// [`Running::read_last`] was called.
    pub reads_last: bool,
}

impl Default for RunPlan {
    fn default() -> RunPlan {
        RunPlan {
            burst: worker::DEFAULT_BURST,
            polls: false,
            clock: Clock::real(),
            cores: vec![],
            on_thread: Arc::new(|_| {}),
            print: |line| println!("{line}"),
            nfs: NfHandlers::default(),
            ends_with: Some(EndsWith::default()),
            reads_last: false,
        }
    }
}

/// The result of a run.
pub struct Outcome {
    /// The packet accounting.
    pub report: Report,
    /// The counters of ports and files.
    pub ports: Vec<PortReport>,
    /// The warnings of elements.
    pub warnings: Vec<String>,
    /// Slots that were not returned to the pool; 0 in a correct run. Until [`Outcome::close`], devices have
    /// some in their rings.
    pub slots_lost: usize,
    /// The workers with their elements as they were at the end.
    pub workers: Vec<Worker>,
    handlers: Arc<Handlers>,
    /// The last handler values of NFs in processes.
    last: Last,
}

impl Outcome {
    /// Closes all ports and counts the slots again: devices return the slots of their receive and transmit
    /// rings. Handlers cannot be read after this.
    pub fn close(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.nodes.clear());
        self.slots_lost = slots_lost(&self.workers, &self.report);
    }

    /// Whether every packet and every slot is accounted for.
    pub fn is_sound(&self) -> bool {
        self.slots_lost == 0 && self.is_balanced()
    }

    /// Whether every element has accounted for every packet.
    pub fn is_balanced(&self) -> bool {
        self.report.imbalance() == 0 && self.report.unbalanced().next().is_none()
    }

    /// Reads `element.handler` as it was at the end, merged over the workers. Handlers of NFs in processes
    /// are available if they were named in [`Running::read_last`].
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn read(&mut self, name: &str) -> Result<String, String> {
        match self.last.get(name) {
            Some(said) => said.clone(),
            None => self.read_here(name).map(|(_, text)| text),
        }
    }

    /// The same for this process's elements only, with the rule for merging the value further.
    pub(crate) fn read_here(&mut self, name: &str) -> Merged {
        self.handlers.read_ended(&mut self.workers, name)
    }
}

/// A running chain.
pub struct Running {
    threads: Vec<JoinHandle<Worker>>,
    handlers: Arc<Handlers>,
    asked: Asked,
    activities: Vec<Arc<WorkerActivity>>,
    /// For each worker, its requested execution mode and its number of fused regions.
    fused_switches: Vec<(Arc<AtomicBool>, usize)>,
    probes: Vec<Arc<Probes>>,
    node_counters: NodeCounterReader,
    stop: Halt,
    stop_requests: Arc<StopRequests>,
    quiescence: Arc<Quiescence>,
}

/// Ends the threads when a run is dropped without waiting for it.
struct Halt(Arc<AtomicBool>);

impl Drop for Halt {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Running {
    /// Starts the workers; `pool` creates each worker's handle of the packet pool.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        mut assembly: Assembly,
        plan: &RunPlan,
        mut pool: impl FnMut(usize) -> PacketPool,
    ) -> std::io::Result<Running> {
        let node_counters = NodeCounterReader::new(&assembly.graphs);
        let stop: Arc<AtomicBool> = Arc::default();
        let stop_requests = Arc::new(stop_requests(&assembly, plan));
        let finish = Arc::new(Quiescence::new(assembly.graphs.len()));
        if plan.reads_last || assembly.graphs[0].iter().any(decides_end) {
            finish.hold();
        }
        finish.keep_open(plan.reads_last);
        let workers = assembly.graphs.len();
        let packets = HANDOFF_PACKETS.max(2 * workers * shm::burst::LIST_CAPACITY);
        let home = Arc::new(ArrayQueue::new(HANDOFF_PACKETS));
        let rings: Vec<_> = (0..workers).map(|_| Arc::new(ArrayQueue::new(packets))).collect();
        let mailboxes = assembly.graphs.iter().map(|_| Arc::default()).collect();
        let exchange = Arc::new(Exchange::new(assembly.live, mailboxes));
        let handlers = Handlers::new(&mut assembly.graphs[0], Arc::clone(&exchange), plan.nfs.clone());
        let (mut threads, mut activities, mut fused_switches, mut probes) = (vec![], vec![], vec![], vec![]);
        let graphs = assembly.graphs.into_iter().zip(assembly.regions);
        for (number, (nodes, regions)) in graphs.enumerate() {
            let mut worker = Worker::new(number, nodes, regions, pool(number), plan.clock.clone());
            worker.burst = plan.burst.clamp(1, shm::burst::LIST_CAPACITY);
            worker.polls = plan.polls;
            worker.stop = Arc::clone(&stop);
            worker.stop_requests = Arc::clone(&stop_requests);
            worker.quiescence = Arc::clone(&finish);
            worker.print = plan.print;
            worker.mailbox = Arc::clone(&exchange.mailboxes[number]);
            worker.exchange = Some(Arc::clone(&exchange));
            // All workers start in the same execution mode.
            fused_switches.push((Arc::clone(&worker.is_fused), worker.regions.len()));
            (worker.handoff, worker.rings) = (Arc::clone(&home), rings.clone());
            activities.push(Arc::clone(&worker.activity));
            probes.push(Arc::clone(&worker.probes));
            let (on_thread, core) = (Arc::clone(&plan.on_thread), plan.cores.get(number).copied());
            let thread = std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    if let Some(core) = core
                        && let Err(error) = pin(core)
                    {
                        tracing::warn!("core {core} cannot be used: {error}");
                    }
                    on_thread(number);
                    worker.run();
                    worker
                })?;
            threads.push(thread);
        }
        let handlers = Arc::new(handlers);
        Ok(Running {
            threads,
            handlers,
            asked: vec![],
            activities,
            fused_switches,
            probes,
            node_counters,
            stop: Halt(stop),
            stop_requests,
            quiescence: finish,
        })
    }

    /// Requests the end of all workers. Scripts that decide about the end execute their rest before, without
    /// waiting.
    pub fn stop(&self) {
        self.handlers.halt(&self.stop_requests);
        // A first worker that has ended, or died, ends no others.
        if self.activities[0].ended.load(Ordering::Acquire) || self.threads[0].is_finished() {
            self.stop.0.store(true, Ordering::Relaxed);
        }
    }

    /// Whether all workers have ended.
    pub fn is_over(&self) -> bool {
        self.activities.iter().all(|activity| activity.ended.load(Ordering::Acquire))
            || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Whether elements have requested the end of the run.
    pub fn is_end_requested(&self) -> bool {
        self.stop_requests.is_requested()
    }

    /// Whether a script holds the run: it runs or waits for a time. Up to a millisecond old.
    pub fn is_held(&self) -> bool {
        !self.is_over() && self.stop_requests.is_held()
    }

    /// Sets the execution mode while packets flow: elements run as one program where possible, or one by one.
    /// Their state is kept. The workers change by themselves.
    pub fn set_fused(&self, is_fused: bool) {
        self.fused_switches.iter().for_each(|(switch, _)| switch.store(is_fused, Ordering::Relaxed));
    }

    /// The number of fused regions that run as one program now, and their total number, over all workers.
    pub fn fused(&self) -> (usize, usize) {
        let now = self.activities.iter().map(|activity| activity.fused.load(Ordering::Relaxed)).sum();
        (now, self.fused_switches.iter().map(|(_, regions)| regions).sum())
    }

    /// The probes of each worker: while switched on, they measure the worker's cycles.
    pub fn probes(&self) -> &[Arc<Probes>] {
        &self.probes
    }

    /// The statistics of the flow caches over all workers; up to a millisecond old.
    pub fn cache_counts(&self) -> CacheCounts {
        let mut counts = CacheCounts::default();
        for activity in &self.activities {
            counts.add(*activity.cache.lock().unwrap_or_else(PoisonError::into_inner));
        }
        counts
    }

    /// The packet accounting now.
    pub fn report(&self) -> Report {
        report(&self.node_counters, &self.activities)
    }

    /// The chain's handlers, for threads that may wait for answers.
    pub fn handlers(&self) -> &Arc<Handlers> {
        &self.handlers
    }

    /// Reads `element.handler`, merged over the workers.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn read(&self, name: &str) -> Result<String, String> {
        self.handlers.read(name)
    }

    /// Writes `element.handler` at all workers.
    ///
    /// # Errors
    /// The reason as a sentence.
    pub fn write(&self, name: &str, value: &str) -> Result<(), String> {
        self.handlers.write(name, value)
    }

    /// Has the last values of these handlers stored for [`Outcome::read`]: those of elements are read before
    /// elements drop what they hold, those in a process before it ends. Returns the handlers, with those that
    /// patterns stand for; NFs in processes are asked for theirs, and the run does not end before they
    /// answer.
    pub fn read_last(&mut self, calls: &[String]) -> Vec<String> {
        if calls.is_empty() {
            self.quiescence.keep_open(false);
            return vec![];
        }
        self.quiescence.keep_open(true);
        self.quiescence.hold();
        let names: Vec<String> = calls.iter().flat_map(|call| self.handlers.calls(call)).collect();
        self.asked = self.handlers.ask_last(&names);
        self.quiescence.keep_open(false);
        names
    }

    /// Waits for the end of the run.
    pub fn wait(self) -> Outcome {
        let activities = self.activities;
        let workers = self.threads.into_iter().map(|thread| match thread.join() {
            Ok(worker) => worker,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let mut workers: Vec<Worker> = workers.collect();
        workers.iter_mut().for_each(Worker::drop_handed);
        let (mut ports, mut warnings): (Vec<PortReport>, Vec<String>) = (vec![], vec![]);
        for worker in &mut workers {
            // The index of each port's report by direction: a worker's elements share its queue.
            let mut places: HashMap<(String, Option<Direction>), usize> = HashMap::new();
            for node in &mut worker.nodes {
                let Some(element) = &mut node.element else { continue };
                warnings.extend(element.take_warnings());
                let Some((name, stats)) = element.port_stats() else { continue };
                let report = PortReport::new(name.clone(), node.name.clone(), &stats);
                let direction = device_direction(node.class.name);
                match places.get(&(name.clone(), direction)).filter(|_| direction.is_some()) {
                    Some(at) => ports[*at].add(report),
                    None => {
                        places.insert((name, direction), ports.len());
                        ports.push(report);
                    }
                }
            }
        }
        let report = report(&self.node_counters, &activities);
        let slots_lost = slots_lost(&workers, &report);
        let last = self.handlers.hear_last(self.asked);
        let handlers = self.handlers;
        Outcome { report, ports, warnings, slots_lost, workers, handlers, last }
    }
}

/// The stop requests of a run that has not started.
fn stop_requests(assembly: &Assembly, plan: &RunPlan) -> StopRequests {
    let numbers = |names: &[diag::Spanned]| {
        let nfs = assembly.nfs.iter().enumerate();
        let named = nfs.filter(|(_, nf)| names.iter().any(|name| name.text == instances::family(nf)));
        named.map(|(number, _)| number).collect()
    };
    let ends_with = match &plan.ends_with {
        None => stop_requests::EndsWith::Caller,
        Some(EndsWith::All) => stop_requests::EndsWith::All,
        Some(EndsWith::First) => stop_requests::EndsWith::First,
        Some(EndsWith::Nfs(names)) => stop_requests::EndsWith::Nfs(numbers(names)),
    };
    let holds = |node: &Node| node.element.as_ref().is_some_and(|element| element.holds_run());
    let held = assembly.graphs.iter().map(|nodes| nodes.iter().any(holds));
    let decides = |nf| assembly.graphs[0].iter().any(|node| node.nf == nf && decides_end(node));
    StopRequests::new(ends_with, (0..assembly.nfs.len()).map(decides), held)
}

/// Whether the element is a script that decides about the end of its NF.
fn decides_end(node: &Node) -> bool {
    node.element.as_ref().is_some_and(|element| element.decides_end())
}

/// The report of the workers with these statistics.
fn report(node_counters: &NodeCounterReader, activities: &[Arc<WorkerActivity>]) -> Report {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let busy_ns = activities.iter().map(|activity| activity.busy_ns.load(Ordering::Relaxed)).max();
    let waited_ns = activities.iter().map(|activity| activity.waited_ns.load(Ordering::Relaxed)).sum();
    Report {
        nodes: node_counters.nodes(),
        busy_s: seconds(busy_ns.unwrap_or(0)),
        waited_s: seconds(waited_ns),
        workers: activities.len(),
    }
}

fn slots_lost(workers: &[Worker], report: &Report) -> usize {
    let held: i64 = report.nodes.iter().map(|node| node.held).sum();
    let in_use = workers.first().map_or(0, |worker| worker.pool.in_use());
    in_use.saturating_sub(usize::try_from(held).unwrap_or(0))
}

/// Pins the calling thread to a core.
///
/// # Errors
/// If the machine has no such core, or the system refuses; then the thread may run on any core.
pub fn pin(core: usize) -> std::io::Result<()> {
    let mut cores = rustix::thread::CpuSet::new();
    if core >= rustix::thread::CpuSet::MAX_CPU {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    cores.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &cores)?)
}
