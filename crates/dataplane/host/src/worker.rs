//! The loop of a packet thread.
//!
//! Each turn reads the clock once, runs every task once, calls timers that are due, and from time to
//! time does housekeeping and answers requests from other threads. A worker that finds nothing to do
//! for a while yields its core, then sleeps for short times.
//!
//! The loop exists twice: with probes ([`crate::probe`]) and, compiled without them, for all other times.

use crate::control::Mailbox;
use crate::forward::{Handed, Outbox};
use crate::fused::{CacheCounts, FormWanted, Stretch};
use crate::live::Exchange;
use crate::node::Node;
use crate::probe::{Probe, Probes};
use codegen::{Exits, Scratch};
use crossbeam_queue::ArrayQueue;
use element::{Progress, Vector, Work};
use shm::pool::PacketPool;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Packets that are worked on at a time unless the user says otherwise. What a hop between elements costs
/// is shared by so many; their descriptors and headers still fit the first-level cache twice over. A burst
/// never waits to be full.
pub const DEFAULT_BURST: usize = 64;
/// Turns without work before the worker yields its core.
const SPIN_TURNS: u32 = 200;
/// Turns without work before it sleeps.
const YIELD_TURNS: u32 = 400;
/// How long it sleeps at a time, at least and at most. In between it sleeps for a hundredth of the time that it has
/// slept already: a packet waits little after a short pause, and a worker that nobody needs costs next to nothing.
const SLEEP: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(10));
/// How often elements do housekeeping.
const TICK_NS: u64 = 1_000_000;
/// Turns without work after which a run whose sources have ended is over, although packets are kept:
/// nobody will fetch them.
const GIVE_UP_TURNS: u32 = YIELD_TURNS + 2_000;
/// The same in time slept.
const GIVE_UP_SLEPT: Duration = Duration::from_millis(200);

/// The time of a run.
#[derive(Clone)]
pub enum Clock {
    /// The machine's.
    Real {
        /// When the run started.
        start: Instant,
        /// The same moment in nanoseconds since the epoch.
        epoch_ns: u64,
    },
    /// Set by a test or a replay.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The machine's clock from now on.
    pub fn real() -> Clock {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock::Real { start: Instant::now(), epoch_ns: epoch.as_nanos() as u64 }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Clock::Real { start, epoch_ns } => epoch_ns + start.elapsed().as_nanos() as u64,
            Clock::Manual(now) => now.load(Ordering::Relaxed),
        }
    }
}

/// How far a worker is, for who watches it.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Turns that did something.
    pub busy_turns: AtomicU64,
    /// Whether the loop has ended.
    pub ended: AtomicBool,
    /// Nanoseconds from the first to the last turn that did something.
    pub busy_ns: AtomicU64,
    /// How much of that passed in turns that did nothing.
    pub waited_ns: AtomicU64,
    /// Stretches that run as one program now.
    pub fused: AtomicUsize,
    /// What their flow caches have done.
    pub cache: Mutex<CacheCounts>,
}

/// How many workers of a run have nothing left to do. A worker stays until all have: another one may
/// still hand packets over.
#[derive(Debug)]
pub struct Finish {
    /// Workers of the run.
    workers: usize,
    /// Those that have nothing left to do.
    done: AtomicUsize,
    /// How often one of them got something to do again.
    woken: AtomicUsize,
    /// Packets on their way from worker to worker, until who took them is through with them.
    under_way: AtomicUsize,
}

impl Finish {
    /// For so many workers.
    pub fn new(workers: usize) -> Finish {
        let none = || AtomicUsize::new(0);
        Finish { workers, done: none(), woken: none(), under_way: none() }
    }

    /// Says that so many packets are about to be handed over.
    pub(crate) fn hand(&self, packets: usize) {
        self.under_way.fetch_add(packets, Ordering::AcqRel);
    }

    /// Says that so many of them were taken, and went as far as they go; or were not handed over after all.
    pub(crate) fn take(&self, packets: usize) {
        self.under_way.fetch_sub(packets, Ordering::AcqRel);
    }

    /// Whether nobody has anything left to do, and nobody will.
    fn is_over(&self) -> bool {
        // All are done at one moment at which nothing is under way: nobody has been woken in between.
        let woken = self.woken.load(Ordering::Acquire);
        self.done.load(Ordering::Acquire) >= self.workers
            && self.under_way.load(Ordering::Acquire) == 0
            && self.woken.load(Ordering::Acquire) == woken
    }
}

/// A packet thread's own graph and everything it works with.
pub struct Worker {
    /// Which one.
    pub number: usize,
    /// The graph.
    pub nodes: Vec<Node>,
    /// The state cells of all programs.
    pub cells: Vec<u64>,
    /// Stretches of elements that run as one program.
    pub stretches: Vec<Stretch>,
    /// The packet pool.
    pub pool: PacketPool,
    /// Packets to work on at a time.
    pub burst: usize,
    /// Whether it looks for packets without ever sleeping.
    pub polls: bool,
    /// The run's clock.
    pub clock: Clock,
    /// The burst's time.
    pub now_ns: u64,
    /// Requests from other threads.
    pub mailbox: Arc<Mailbox>,
    /// Gives elements other configurations.
    pub(crate) exchange: Option<Arc<Exchange>>,
    /// Packets for the worker that owns state of [`element::StateScope::OneWorker`], the first one.
    pub home: Arc<ArrayQueue<Handed>>,
    /// For each worker, what sources of others have received for it.
    pub rings: Vec<Arc<ArrayQueue<Handed>>>,
    /// Set when any worker wants the run to end.
    pub stop: Arc<AtomicBool>,
    /// How many workers have nothing left to do.
    pub finish: Arc<Finish>,
    /// How far it is.
    pub pulse: Arc<Pulse>,
    /// The form that is wanted.
    pub form: Arc<FormWanted>,
    /// Lines that elements print.
    pub print: fn(&str),
    pub(crate) scratch: Scratch,
    #[expect(clippy::vec_box, reason = "taken and put back at each hop: a pointer is less to move")]
    pub(crate) exits: Vec<Box<Exits>>,
    pub(crate) vectors: Vec<Vector>,
    pub(crate) outbox: Outbox,
    pub(crate) timers: BinaryHeap<Reverse<(u64, usize)>>,
    pub(crate) fire_at: Vec<u64>,
    pub(crate) depth: usize,
    /// Whether sources are to wait for a turn.
    pub(crate) sources_wait: bool,
    /// Whether an element's slow path is under way.
    pub(crate) is_slow: bool,
    /// Whether it is counted among those that have nothing left to do.
    pub(crate) is_done: bool,
    /// Whether probes are wanted, and what they find.
    pub probes: Arc<Probes>,
    /// While they are on.
    pub(crate) probe: Option<Box<Probe>>,
}

/// How far the loop of a worker is, from one form of it to the other.
struct Turns {
    tasks: Vec<usize>,
    finished: Vec<bool>,
    idle_turns: u32,
    next_tick_ns: u64,
    first_ns: Option<u64>,
    /// Turns in which no task did anything. Timers do not count: an element that asks again and again for an answer
    /// that nobody is left to give must not keep the run from ending.
    stale_turns: u32,
    last_held: i64,
    idle_since_ns: Option<u64>,
    slept: Duration,
    is_over: bool,
}

impl Worker {
    /// What `nodes` and the rest make up.
    pub fn new(
        number: usize,
        mut nodes: Vec<Node>,
        mut stretches: Vec<Stretch>,
        pool: PacketPool,
        clock: Clock,
    ) -> Worker {
        let ring = Arc::new(ArrayQueue::new(1));
        let is_fused = stretches.iter().any(Stretch::is_wanted);
        let mut cells = vec![];
        stretches.iter_mut().for_each(|stretch| stretch.settle_in(&mut nodes, &mut cells));
        let fused: HashSet<usize> =
            stretches.iter().flat_map(|stretch| stretch.parts.iter().copied()).collect();
        for (at, node) in nodes.iter_mut().enumerate() {
            if !fused.contains(&at) {
                node.settle_in(&mut cells);
            }
        }
        Worker {
            number,
            fire_at: vec![u64::MAX; nodes.len()],
            probes: Arc::new(Probes::new(&nodes, &stretches)),
            probe: None,
            nodes,
            cells,
            stretches,
            pool,
            burst: DEFAULT_BURST,
            polls: false,
            now_ns: clock.now_ns(),
            clock,
            mailbox: Arc::default(),
            exchange: None,
            home: Arc::clone(&ring),
            rings: vec![ring],
            is_done: false,
            stop: Arc::default(),
            finish: Arc::new(Finish::new(1)),
            pulse: Arc::default(),
            form: Arc::new(FormWanted::new(is_fused)),
            print: |line| println!("{line}"),
            scratch: Scratch::default(),
            exits: vec![],
            vectors: vec![],
            outbox: Outbox::default(),
            timers: BinaryHeap::new(),
            depth: 0,
            sources_wait: false,
            is_slow: false,
        }
    }

    /// Runs until the sources have ended and their packets are through, or until asked to stop.
    pub fn run(&mut self) {
        for node in 0..self.nodes.len() {
            self.with_element(node, |element, work| element.start(work));
        }
        let tasks: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].has_task).collect();
        let mut turns = Turns {
            finished: vec![false; tasks.len()],
            tasks,
            idle_turns: 0,
            next_tick_ns: 0,
            first_ns: None,
            stale_turns: 0,
            last_held: i64::MAX,
            idle_since_ns: None,
            slept: Duration::ZERO,
            is_over: false,
        };
        while !turns.is_over {
            turns = match self.probe.is_some() {
                true => self.turns::<true>(turns),
                false => self.turns::<false>(turns),
            };
        }
        if let (Some(first), now_ns) = (turns.first_ns, self.clock.now_ns()) {
            let busy = self.pulse.busy_ns.load(Ordering::Relaxed);
            // A run that was stopped while busy was busy until now.
            let busy = if turns.idle_turns == 0 { now_ns - first } else { busy };
            self.pulse.busy_ns.store(busy, Ordering::Relaxed);
        }
        self.settle_books();
        // Before elements settle what they hold; what comes later is dropped (`drop_handed`).
        self.take_handed(false);
        for node in 0..self.nodes.len() {
            self.with_element(node, |element, work| element.stop(work));
        }
        self.settle_books();
        self.mailbox.close();
        self.answer_requests();
        self.pulse.ended.store(true, Ordering::Release);
    }

    /// Takes turns until the run is over, or probes are wanted where there are none, or none where there are.
    fn turns<const PROBED: bool>(&mut self, turns: Turns) -> Turns {
        // As variables of its own, which the compiler may keep where it likes.
        let Turns {
            tasks,
            mut finished,
            mut idle_turns,
            mut next_tick_ns,
            mut first_ns,
            mut stale_turns,
            mut last_held,
            mut idle_since_ns,
            mut slept,
            ..
        } = turns;
        while !self.stop.load(Ordering::Relaxed) {
            if PROBED {
                self.probe_turn();
            }
            let turn_start_ns = self.clock.now_ns();
            self.now_ns = turn_start_ns;
            let sources_wait = std::mem::take(&mut self.sources_wait);
            let mut worked = self.take_handed(sources_wait);
            for (at, &node) in tasks.iter().enumerate() {
                if finished[at] || (sources_wait && self.nodes[node].inputs.is_empty()) {
                    continue;
                }
                if self.nodes[node].spread.is_some() && !self.can_spread() {
                    worked = true;
                    continue;
                }
                let before = if PROBED { self.probe_task(node) } else { 0 };
                let progress = self.run_task(node);
                if PROBED {
                    self.probe_task_end(before, progress == Progress::Idle);
                }
                match progress {
                    Progress::Worked => worked = true,
                    Progress::Idle => {}
                    Progress::Finished => finished[at] = true,
                }
            }
            stale_turns = if worked { 0 } else { stale_turns.saturating_add(1) };
            worked |= self.fire_timers::<PROBED>();
            if self.now_ns >= next_tick_ns {
                next_tick_ns = self.now_ns + TICK_NS;
                self.tick();
                self.follow_probes();
                if self.probe.is_some() != PROBED {
                    return Turns {
                        tasks,
                        finished,
                        idle_turns,
                        next_tick_ns,
                        first_ns,
                        stale_turns,
                        last_held,
                        idle_since_ns,
                        slept,
                        is_over: false,
                    };
                }
            }
            if self.mailbox.has_requests() {
                self.settle_books();
                self.answer_requests();
            }
            if worked {
                idle_turns = 0;
                slept = Duration::ZERO;
                if let (Some(since), Some(_)) = (idle_since_ns.take(), first_ns) {
                    let waited = self.pulse.waited_ns.load(Ordering::Relaxed);
                    self.pulse.waited_ns.store(waited + (turn_start_ns - since), Ordering::Relaxed);
                }
                let first = *first_ns.get_or_insert(turn_start_ns);
                let turns = self.pulse.busy_turns.load(Ordering::Relaxed);
                self.pulse.busy_turns.store(turns + 1, Ordering::Relaxed);
                self.pulse.busy_ns.store(self.now_ns - first, Ordering::Relaxed);
            } else {
                idle_turns = idle_turns.saturating_add(1);
                idle_since_ns.get_or_insert(turn_start_ns);
            }
            if PROBED && !worked {
                self.probe_idle();
            }
            if stale_turns == 0 {
                continue;
            }
            if self.sources_ended(&tasks, &finished) {
                let held: i64 = self.nodes.iter().map(|node| node.books.held()).sum();
                if held < std::mem::replace(&mut last_held, held) {
                    // A timer let packets go: others may follow.
                    stale_turns = 1;
                    slept = Duration::ZERO;
                }
                let is_late = stale_turns > GIVE_UP_TURNS || slept > GIVE_UP_SLEPT;
                if held > 0 && is_late && self.awaits() {
                    stale_turns = 1;
                    slept = Duration::ZERO;
                }
                let nobody_comes = stale_turns > GIVE_UP_TURNS || slept > GIVE_UP_SLEPT;
                let is_over = if held == 0 { stale_turns > 2 } else { nobody_comes };
                if is_over && !std::mem::replace(&mut self.is_done, true) {
                    self.finish.done.fetch_add(1, Ordering::AcqRel);
                }
                if is_over && self.finish.is_over() {
                    break;
                }
            }
            match idle_turns {
                0 => {}
                1..SPIN_TURNS => std::hint::spin_loop(),
                // At the end of a run there is nothing to be early for.
                _ if self.polls && !self.is_done => std::hint::spin_loop(),
                SPIN_TURNS..YIELD_TURNS => std::thread::yield_now(),
                _ => {
                    let due_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
                    let until_due = Duration::from_nanos(due_ns.saturating_sub(self.now_ns));
                    let sleep = (slept / 100).clamp(SLEEP.0, SLEEP.1).min(until_due.max(SLEEP.0));
                    std::thread::sleep(sleep);
                    slept += sleep;
                }
            }
        }
        Turns {
            tasks,
            finished,
            idle_turns,
            next_tick_ns,
            first_ns,
            stale_turns,
            last_held,
            idle_since_ns,
            slept,
            is_over: true,
        }
    }

    /// Says that there is something to do again.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.is_done) {
            self.finish.woken.fetch_add(1, Ordering::AcqRel);
            self.finish.done.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether all sources of the graph have ended.
    fn sources_ended(&self, tasks: &[usize], finished: &[bool]) -> bool {
        let mut sources = tasks.iter().zip(finished).filter(|(node, _)| self.nodes[**node].inputs.is_empty());
        // A configuration without any source waits for its scripts, or for somebody to stop it.
        let none = sources.clone().next().is_none();
        !(none && self.number == 0) && sources.all(|(_, finished)| *finished)
    }

    /// Whether packets are kept for something that is to come yet.
    fn awaits(&self) -> bool {
        self.nodes.iter().any(|node| node.element.as_ref().is_some_and(|element| element.awaits()))
    }

    /// Runs an element's task and what it sends on.
    fn run_task(&mut self, node: usize) -> Progress {
        let mut vector = self.vectors.pop().unwrap_or_default();
        vector.clear();
        let outbox_start = self.outbox.len();
        let mut progress = Progress::Finished;
        self.with_element(node, |element, work| progress = element.task(&mut vector, work));
        if self.nodes[node].spread.is_some() {
            self.spread(node, &mut vector);
        }
        if !vector.is_empty() {
            let (packets, list) = vector.parts();
            self.leave(node, 0, packets, list);
        }
        self.flush_outbox(node, outbox_start);
        self.vectors.push(vector);
        progress
    }

    /// Calls an element with its worker; what it emits beside a batch is sent on afterwards only by
    /// who calls [`Worker::flush_outbox`].
    pub(crate) fn with_element(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut dyn element::Element, &mut Work<'_>),
    ) {
        if let Some(mut element) = self.nodes[node].element.take() {
            call(element.as_mut(), &mut Work::new(self, node));
            self.nodes[node].element = Some(element);
        }
    }

    fn fire_timers<const PROBED: bool>(&mut self) -> bool {
        let mut fired = false;
        while let Some(&Reverse((at_ns, node))) = self.timers.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.timers.pop();
            // An element that wished for another time meanwhile has another entry.
            if self.fire_at[node] == at_ns {
                self.fire_at[node] = u64::MAX;
                let outbox_start = self.outbox.len();
                let before = if PROBED { self.probe_task(node) } else { 0 };
                self.with_element(node, |element, work| element.fire(work));
                self.flush_outbox(node, outbox_start);
                if PROBED {
                    self.probe_task_end(before, false);
                }
                fired = true;
            }
        }
        fired
    }

    /// Has stretches follow what their cells hold.
    pub(crate) fn follow_cells(&mut self) {
        let (is_fused, under_way) = (self.form.is_fused(), self.depth > 0);
        if !under_way {
            self.settle_books();
        }
        self.stretches.iter_mut().for_each(|stretch| stretch.follow(&self.cells, is_fused, under_way));
        let ready = self.stretches.iter().filter(|stretch| stretch.is_ready()).count();
        self.pulse.fused.store(ready, Ordering::Relaxed);
    }

    fn tick(&mut self) {
        self.settle_books();
        self.follow_cells();
        self.tick_caches();
        let now_ns = self.now_ns;
        for node in &mut self.nodes {
            if let Some(element) = &mut node.element {
                element.tick(now_ns);
            }
        }
    }
}
