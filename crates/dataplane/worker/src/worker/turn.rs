//! The loop of a packet thread.
//!
//! Each turn reads the clock once, runs every task once and fires the timers that are due. Housekeeping runs
//! once in a millisecond; requests from other threads are answered at the end of a turn. A worker without
//! work yields its core after some turns, then sleeps for short times.
//!
//! The loop is compiled twice: with probes ([`crate::profile`]) and without them.

use super::Worker;
use crate::caller::Caller;
use crate::profile::TURN;
use element::{BoxElement, Progress};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Turns without work before the worker yields its core.
const SPIN_TURNS: u32 = 200;
/// Turns without work before it sleeps.
const YIELD_TURNS: u32 = 400;
/// The shortest and the longest sleep. Between these limits the worker sleeps for a hundredth of the time
/// that it has slept already: after a short pause a packet waits little, and an unused worker costs hardly
/// any CPU time.
const SLEEP: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(10));
/// So many packets before an element calls a handler, packets are processed one by one: a burst may become more
/// packets on its way.
const CLOSE: u64 = 1024;
/// So many bursts pass an element by before it counts as one that packets hardly reach: the others are not to be slow
/// for it.
const UNMOVED: u32 = 4096;
/// How often elements do housekeeping.
pub(super) const TICK_NS: u64 = 1_000_000;
/// Turns without work after which a run whose sources have ended is over although elements still hold
/// packets.
const GIVE_UP_TURNS: u32 = YIELD_TURNS + 2_000;
/// The same limit as a time slept.
const GIVE_UP_SLEPT: Duration = Duration::from_millis(200);
/// How long a worker sleeps without work before its run ends when packets may be under way that nothing counts
/// as held, and the longest time that this may put off the end of a run.
const UNSEEN_SLEPT: Duration = Duration::from_millis(50);
const UNSEEN_NS: u64 = 1_000_000_000;

/// The state of the loop, passed from one variant of the loop to the other.
#[derive(Default)]
struct Turns {
    tasks: Vec<usize>,
    finished: Vec<bool>,
    idle_turns: u32,
    next_tick_ns: u64,
    first_ns: Option<u64>,
    /// Turns in which no task did anything. Timers do not count: an element whose timer keeps repeating a
    /// request to which no answer can arrive must not keep the run from ending.
    stale_turns: u32,
    last_held: i64,
    /// When the sources had ended and nothing was held for the first time while packets might still come.
    empty_since_ns: Option<u64>,
    idle_since_ns: Option<u64>,
    slept: Duration,
    is_over: bool,
}

impl Worker {
    /// Runs until the sources have ended and their packets have left the graph, or until the run is stopped.
    pub fn run(&mut self) {
        for node in 0..self.nodes.len() {
            self.with_element(node, |element, work| element.start(work));
        }
        self.follow_queues();
        self.find_callers();
        if self.clock.as_virtual().is_some() {
            self.follow_cells();
        }
        let tasks: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].has_task).collect();
        let mut turns =
            Turns { finished: vec![false; tasks.len()], tasks, last_held: i64::MAX, ..Turns::default() };
        while !turns.is_over {
            turns = match self.probe.is_some() {
                true => self.turns::<true>(turns),
                false => self.turns::<false>(turns),
            };
        }
        if let (Some(first), now_ns) = (turns.first_ns, self.clock.now_ns()) {
            let busy = self.activity.busy_ns.load(Ordering::Relaxed);
            // A run that was stopped while busy counts as busy until now.
            let busy = if turns.idle_turns == 0 { now_ns - first } else { busy };
            self.activity.busy_ns.store(busy, Ordering::Relaxed);
        }
        if let Some(clock) = self.clock.as_virtual() {
            clock.leave(self.number);
        }
        self.settle_counters();
        // Before elements process what they hold in `stop`. Packets that arrive later are dropped
        // (`drop_handed`).
        self.take_handed(false);
        self.merge_caches(|_| true);
        for node in 0..self.nodes.len() {
            self.with_element(node, |element, work| element.stop(work));
        }
        self.print_lines();
        self.settle_counters();
        self.mailbox.close();
        self.answer_requests();
        self.activity.ended.store(true, Ordering::Release);
    }

    /// Runs turns until the run is over, or until probes have to be switched on or off.
    fn turns<const PROBED: bool>(&mut self, turns: Turns) -> Turns {
        // Local variables, which the compiler may keep in registers.
        let Turns {
            tasks,
            mut finished,
            mut idle_turns,
            mut next_tick_ns,
            mut first_ns,
            mut stale_turns,
            mut last_held,
            mut empty_since_ns,
            mut idle_since_ns,
            mut slept,
            ..
        } = turns;
        let mut is_over = true;
        let virtual_clock = self.clock.as_virtual().cloned();
        while !self.stop.load(Ordering::Relaxed) {
            if PROBED {
                self.probe_switch(TURN);
            }
            let epoch = virtual_clock.as_ref().map_or(0, |clock| clock.epoch());
            let turn_start_ns = self.clock.now_ns();
            self.now_ns = turn_start_ns;
            self.wakes_at_ns = u64::MAX;
            if virtual_clock.as_ref().is_some_and(|clock| self.stands_still(clock)) {
                if self.mailbox.has_requests() {
                    self.settle_counters();
                    self.answer_requests();
                }
                continue;
            }
            let sources_wait = std::mem::take(&mut self.sources_wait);
            // Virtual time went on to them: what they call comes before packets that are due at the same time, as in Click.
            let timed = virtual_clock.is_some() && self.fire_timers::<PROBED>();
            let mut worked = self.take_handed(sources_wait);
            for (at, &node) in tasks.iter().enumerate() {
                let this = &self.nodes[node];
                if finished[at] || this.rests || (sources_wait && this.inputs.is_empty()) {
                    continue;
                }
                if self.nodes[node].steering.is_some() && !self.can_spread() {
                    worked = true;
                    continue;
                }
                let before = if PROBED { self.probe_task(node) } else { 0 };
                let progress = self.run_task(node);
                if PROBED {
                    self.probe_task_end(before, progress == Progress::Idle);
                }
                match progress {
                    Progress::Worked => {
                        self.drain(node);
                        worked = true;
                    }
                    Progress::Idle => self.rest(node),
                    Progress::Finished => finished[at] = true,
                }
            }
            stale_turns = if worked { 0 } else { stale_turns.saturating_add(1) };
            worked |= self.fire_timers::<PROBED>() || timed;
            if !self.printed.is_empty() {
                self.print_lines();
            }
            if self.now_ns >= next_tick_ns {
                next_tick_ns = self.now_ns + TICK_NS;
                self.tick();
                self.follow_probes();
                if self.probe.is_some() != PROBED {
                    is_over = false;
                    break;
                }
            }
            if self.mailbox.has_requests() {
                self.settle_counters();
                self.answer_requests();
            }
            if worked {
                idle_turns = 0;
                slept = Duration::ZERO;
                if let (Some(since), Some(_)) = (idle_since_ns.take(), first_ns) {
                    let waited = self.activity.waited_ns.load(Ordering::Relaxed);
                    self.activity.waited_ns.store(waited + (turn_start_ns - since), Ordering::Relaxed);
                }
                let first = *first_ns.get_or_insert(turn_start_ns);
                self.activity.busy_ns.store(self.now_ns - first, Ordering::Relaxed);
            } else {
                idle_turns = idle_turns.saturating_add(1);
                idle_since_ns.get_or_insert(turn_start_ns);
            }
            if PROBED && !worked {
                self.probe_idle();
            }
            if worked && let Some(clock) = &virtual_clock {
                clock.worked(turn_start_ns);
            }
            if stale_turns == 0 {
                continue;
            }
            if self.sources_ended(&tasks, &finished) {
                let held: i64 = self.nodes.iter().map(|node| node.counters.held()).sum();
                if held < std::mem::replace(&mut last_held, held) {
                    // A timer released packets and may release more.
                    stale_turns = 1;
                    slept = Duration::ZERO;
                }
                let is_late = stale_turns > GIVE_UP_TURNS || slept > GIVE_UP_SLEPT;
                if held > 0 && is_late && self.awaits() {
                    stale_turns = 1;
                    slept = Duration::ZERO;
                }
                let nobody_comes = stale_turns > GIVE_UP_TURNS || slept > GIVE_UP_SLEPT;
                let ends = match held {
                    0 if stale_turns > 2 && self.may_make() => {
                        let since_ns = *empty_since_ns.get_or_insert(self.now_ns);
                        nobody_comes || slept > UNSEEN_SLEPT || self.now_ns - since_ns > UNSEEN_NS
                    }
                    0 => stale_turns > 2,
                    _ => nobody_comes,
                };
                if ends && !std::mem::replace(&mut self.is_done, true) {
                    self.quiescence.done.fetch_add(1, Ordering::AcqRel);
                }
                if ends && self.quiescence.is_over() {
                    break;
                }
            }
            if let Some(clock) = &virtual_clock {
                if idle_turns > 0 && !sources_wait {
                    self.pass_time(clock, epoch, idle_since_ns.unwrap_or(turn_start_ns));
                }
                continue;
            }
            match idle_turns {
                0 => {}
                1..SPIN_TURNS => std::hint::spin_loop(),
                // At the end of a run latency does not matter.
                _ if self.polls && !self.is_done => std::hint::spin_loop(),
                SPIN_TURNS..YIELD_TURNS => std::thread::yield_now(),
                _ => {
                    let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
                    let due_ns = timer_ns.min(self.wakes_at_ns);
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
            empty_since_ns,
            idle_since_ns,
            slept,
            is_over,
        }
    }

    /// Marks the worker as busy again.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.is_done) {
            self.quiescence.woken.fetch_add(1, Ordering::AcqRel);
            self.quiescence.done.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether all sources of the graph have ended.
    fn sources_ended(&self, tasks: &[usize], finished: &[bool]) -> bool {
        let mut sources = tasks.iter().zip(finished).filter(|(node, _)| self.nodes[**node].inputs.is_empty());
        // A configuration without sources waits for its scripts or a stop.
        let none = sources.clone().next().is_none();
        !(none && self.number == 0) && sources.all(|(_, finished)| *finished) && !self.holds_run()
    }

    /// Whether an element keeps packets for an event that is yet to happen.
    fn awaits(&self) -> bool {
        self.any_element(|element| element.awaits())
    }

    /// Whether packets may come from an element that nothing counts as held.
    fn may_make(&self) -> bool {
        self.any_element(|element| element.may_make())
    }

    fn any_element(&self, is: impl Fn(&BoxElement) -> bool) -> bool {
        self.nodes.iter().any(|node| node.element.as_ref().is_some_and(&is))
    }

    /// The number of packets after which an element will call a handler.
    fn packets_until_call(&self, node: usize) -> u64 {
        let this = &self.nodes[node];
        let cells = self.cells.get(this.cells.clone()).unwrap_or_default();
        this.element.as_ref().map_or(u64::MAX, |element| element.packets_until_call(cells))
    }

    /// Finds the elements that will call a handler after so many packets.
    pub(super) fn find_callers(&mut self) {
        let before = std::mem::take(&mut self.callers);
        // One that is calling just now is not there to be asked.
        let is_calling = |node: usize| {
            self.nodes[node].element.is_none() && before.iter().any(|caller| caller.node == node)
        };
        let will_call = |node: &usize| self.packets_until_call(*node) != u64::MAX || is_calling(*node);
        let callers = (0..self.nodes.len()).filter(will_call);
        self.callers = callers.map(|node| Caller { node, until: u64::MAX, unmoved: 0 }).collect();
        self.follow_callers();
    }

    /// Lets packets be processed one by one shortly before a handler is called.
    #[cold]
    fn follow_callers(&mut self) {
        let mut callers = std::mem::take(&mut self.callers);
        let mut is_close = false;
        for caller in &mut callers {
            let until = self.packets_until_call(caller.node);
            let has_moved = std::mem::replace(&mut caller.until, until) != until;
            caller.unmoved = if has_moved { 0 } else { caller.unmoved.saturating_add(1) };
            is_close |= until <= CLOSE && caller.unmoved < UNMOVED;
        }
        self.callers = callers;
        self.most_at_once = if is_close { 1 } else { usize::MAX };
    }

    /// Runs an element's task and pushes the packets that it returns.
    pub(super) fn run_task(&mut self, node: usize) -> Progress {
        let mut vector = self.vectors.pop().unwrap_or_default();
        vector.clear();
        let deferred_start = self.deferred.len();
        let mut progress = Progress::Finished;
        self.with_element(node, |element, work| {
            if let Some(task) = element.task() {
                progress = task.run_task(&mut vector, work);
            }
        });
        if self.nodes[node].steering.is_some() {
            self.hand_off(node, &mut vector);
        }
        if !vector.is_empty() {
            let (packets, list) = vector.parts();
            self.leave(node, 0, packets, list);
        }
        self.flush_deferred(node, deferred_start);
        if !self.callers.is_empty() && progress == Progress::Worked {
            self.follow_callers();
        }
        self.vectors.push(vector);
        if !self.printed.is_empty() {
            self.print_lines();
        }
        progress
    }

    fn fire_timers<const PROBED: bool>(&mut self) -> bool {
        let mut fired = false;
        while let Some(&Reverse((at_ns, node))) = self.timers.peek() {
            if at_ns > self.now_ns {
                break;
            }
            self.timers.pop();
            // An element that changed its time since then has a second timer entry.
            if self.fire_at[node] == at_ns {
                self.fire_at[node] = u64::MAX;
                let deferred_start = self.deferred.len();
                let before = if PROBED { self.probe_task(node) } else { 0 };
                self.with_element(node, |element, work| element.fire(work));
                self.flush_deferred(node, deferred_start);
                if PROBED {
                    self.probe_task_end(before, false);
                }
                fired = true;
            }
        }
        fired
    }

    /// Updates the fused regions to the values in their cells.
    pub(crate) fn follow_cells(&mut self) {
        let (is_fused, under_way) = (self.is_fused.load(Ordering::Relaxed), self.depth > 0);
        if !under_way {
            self.settle_counters();
        }
        for region in &mut self.regions {
            let linked = Arc::clone(&region.linked);
            region.update(&self.cells, (&mut self.nodes, self.now_ns), is_fused, under_way);
            if !Arc::ptr_eq(&linked, &region.linked) {
                region.find_returning(&self.nodes, &self.order);
            }
        }
        self.follow_queues();
        let ready = self.regions.iter().filter(|region| region.is_ready()).count();
        self.activity.fused.store(ready, Ordering::Relaxed);
    }

    pub(super) fn tick(&mut self) {
        self.settle_counters();
        self.follow_cells();
        self.tick_caches();
        self.end_scripts();
        self.heed_stop_requests();
        let now_ns = self.now_ns;
        for node in &mut self.nodes {
            if let Some(element) = &mut node.element {
                element.tick(now_ns);
                element.tick_cells(self.cells.get(node.cells.clone()).unwrap_or_default(), now_ns);
            }
        }
        self.answer_tables();
    }
}
