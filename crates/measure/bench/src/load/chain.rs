//! A chain in this process to which loads are offered.

use super::offer::{Observed, Offer, UnderTest};
use super::pace::{Batching, Counts, Pace};
use super::ports::Rings;
use crate::BenchError;
use crate::machine::core_time::Thread;
use crate::start::{Loaded, RunOptions, RunningChain, failed};
use chain::{Chain, PortKind, PortSource, Sink};
use element::steering::worker_of;
use port::FrameSet;
use runtime::running::Running;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long all trials together may wait for cores that are far apart.
const NEAR_IN_ALL: Duration = Duration::from_secs(15);
/// Length of a warm-up, in seconds.
const WARM_UP_S: f64 = 0.5;
/// How long the chain may take to process waiting frames after a trial.
const DRAIN: Duration = Duration::from_secs(5);
/// A trial ends when nothing has come out for this long, if all expected frames have come out. It is longer
/// than an NF that sleeps takes to wake.
const QUIET: Duration = Duration::from_millis(15);
/// The same limit while frames are missing: they may wait in an element.
const PATIENT: Duration = Duration::from_millis(200);
/// The least frames of a warm-up, which measures how many frames come out where nothing is lost: few enough
/// for any chain.
const LEAST_FRAMES: f64 = 500.0;

/// How to run the chain, and the receive rings in front of it.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainOptions {
    /// How the chain runs.
    pub run: RunOptions,
    /// Capacity of the receive ring of each port and worker, in frames.
    pub ring: u64,
    /// When rings hand out frames.
    pub batching: Batching,
    /// Whether the parts of latencies are recorded.
    pub parts: bool,
}

/// A running chain under test.
pub struct ChainUnderTest {
    chain: RunningChain,
    pace: Arc<Pace>,
    /// For each ring, the number of frames after which its flows repeat.
    flows: Vec<u64>,
    /// How long it may still be waited for cores that are far apart.
    patience: Duration,
    /// Frames that come out for each one that goes in, where nothing is lost.
    passed: f64,
}

/// The names of the ports that generated traffic comes from, and of those that discard what they are sent.
fn ends(chain: &Chain) -> (Vec<String>, Vec<String>) {
    let named = |is_one: fn(&PortKind) -> bool| {
        let ports = chain.ports.iter().filter(|port| is_one(&port.kind));
        ports.map(|port| port.name.clone()).collect()
    };
    let sources = named(|kind| matches!(kind, PortKind::Local(PortSource::Traffic(_), _)));
    (sources, named(|kind| matches!(kind, PortKind::Local(_, Sink::Discard))))
}

impl ChainUnderTest {
    /// Starts the chain in a file, warms it up, and measures the share of frames that come out when nothing
    /// is lost.
    ///
    /// # Errors
    /// When the chain has errors, has no generated traffic or no port that discards, or lets nothing through.
    pub fn start(path: &Path, options: &ChainOptions) -> Result<ChainUnderTest, BenchError> {
        let mut loaded = Loaded::read(path)?;
        loaded.last();
        let (sources, sinks) = ends(&loaded.chain);
        if sources.is_empty() || sinks.is_empty() {
            let told = "a load is offered to ports with `traffic = { … }`, and what comes out is counted at ports with \
                        `discard = true`: the chain needs one of each";
            return Err(failed(told));
        }
        let pace = Arc::new(Pace::default());
        let paced = |names: &[String]| names.iter().map(|name| (name.clone(), Arc::clone(&pace))).collect();
        let rings = Rings {
            sources: paced(&sources),
            sinks: paced(&sinks),
            room: options.ring,
            batching: options.batching,
            timed: options.parts.then(|| Arc::clone(&pace)),
        };
        if options.parts {
            pace.time_parts();
        }
        let (chain, rings) = rings.start(&mut loaded, &options.run, options.run.plan())?;
        let workers = options.run.cores.len();
        let flows = rings.iter().map(|(name, worker)| {
            let at = sources.iter().position(|source| source == name);
            at.and_then(|at| chain.frames.get(at)).map_or(1, |frames| share(frames, *worker, workers))
        });
        let flows = flows.collect();
        let mut under_test = ChainUnderTest { chain, pace, flows, patience: NEAR_IN_ALL, passed: 1.0 };
        under_test.warm_up()?;
        under_test.chain.find_threads();
        Ok(under_test)
    }

    /// Offers every flow twice at a low rate, then again, and measures the share that comes out.
    fn warm_up(&mut self) -> Result<(), BenchError> {
        let each = self.flows.iter().copied().max().unwrap_or(1) as f64;
        let frames = (2.0 * each).max(LEAST_FRAMES) * self.flows.len() as f64;
        let offer = Offer::even(frames / WARM_UP_S, WARM_UP_S);
        self.offer(&offer)?;
        let counts = self.offer(&offer)?;
        let taken = counts.arrived.saturating_sub(counts.missed);
        if taken == 0 || counts.sent == 0 {
            let told =
                format!("of {} frames {} came out: there is nothing to measure", counts.arrived, counts.sent);
            return Err(failed(told));
        }
        self.passed = counts.sent as f64 / taken as f64;
        Ok(())
    }

    /// Waits until the chain has processed its frames; returns the counts.
    fn drain(&self) -> Counts {
        let start = Instant::now();
        let (mut counts, mut since) = (self.pace.counts(), Instant::now());
        let is_out = |counts: Counts| {
            let due = counts.arrived.saturating_sub(counts.missed) as f64 * self.passed;
            counts.sent as f64 >= due * (1.0 - 1e-4)
        };
        while since.elapsed() < (if is_out(counts) { QUIET } else { PATIENT }) && start.elapsed() < DRAIN {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.pace.counts();
            if now != counts {
                (counts, since) = (now, Instant::now());
            }
        }
        counts
    }

    /// For each worker, how long it waited for its core, including the time that a hypervisor took.
    fn waited_ns(&self) -> Vec<u64> {
        let of = |thread: &Thread| thread.waited_ns().unwrap_or(0) + thread.stolen_ns().unwrap_or(0);
        self.chain.threads.iter().map(of).collect()
    }

    /// The chain, to be ended.
    pub fn into_chain(self) -> RunningChain {
        self.chain
    }

    /// The running chain, for its packet accounting and handlers.
    pub fn running(&self) -> &Running {
        self.chain.running()
    }
}

/// The number of frames after which the flows of a worker repeat.
fn share(frames: &FrameSet, worker: usize, workers: usize) -> u64 {
    frames.iter().filter(|frame| workers < 2 || worker_of(frame, workers) == worker).count() as u64
}

impl UnderTest for ChainUnderTest {
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        let asked = Instant::now();
        let was_far = !self.chain.apart.await_near(self.patience);
        self.patience = self.patience.saturating_sub(asked.elapsed());
        let before = self.waited_ns();
        self.pace.start(offer, &self.flows);
        std::thread::sleep(Duration::from_secs_f64(offer.duration_s));
        let waited =
            self.waited_ns().iter().zip(before).map(|(now, before)| now.saturating_sub(before)).max();
        let Counts { arrived, missed, sent } = self.drain();
        if self.running().is_over() {
            return Err(failed("the run ended by itself"));
        }
        Ok(Observed {
            intended: offer.frames(),
            arrived,
            missed,
            sent,
            disturbed: waited.unwrap_or(0) as f64 / (offer.duration_s * 1e9),
            is_far: was_far || self.chain.apart.is_far(),
            seen: self.pace.take_notes(),
            pacing: None,
        })
    }

    fn passed(&self) -> f64 {
        self.passed
    }

    fn end(self: Box<Self>) -> Result<bool, BenchError> {
        Ok(self.chain.end().is_balanced())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Arrival, FlowRecord};
    use crate::search::{Goal, GoalResult, Limits, search};
    use crate::shape::Shape;
    use crate::start::testing::chain;
    use crate::trial::Trials;

    fn options() -> ChainOptions {
        let run = RunOptions {
            burst: 32,
            polls: false,
            cores: vec![0],
            slots: 8192,
            shape: Some(Shape::Modular),
            ..RunOptions::default()
        };
        ChainOptions { run, ring: 1024, batching: Batching::Adaptive, parts: false }
    }

    fn start(nf: &str) -> Box<ChainUnderTest> {
        let (_folder, path) = chain(nf);
        Box::new(ChainUnderTest::start(&path, &options()).expect("it runs"))
    }

    fn seen(nf: &str, offer: &Offer) -> (Observed, FlowRecord) {
        let mut under_test = start(nf);
        let observed = under_test.offer(offer).expect("a trial");
        assert!(under_test.end().expect("it ends"), "all is accounted for");
        let seen = observed.seen.clone().expect("frames have stamps");
        (observed, seen)
    }

    /// The search finds the rate of a chain that lets a fixed rate through.
    #[test]
    fn a_known_limit_is_found() {
        let mut under_test =
            start("FromDevice(0) -> Queue(64) -> RatedUnqueue(20000, BURST_SIZE 16) -> ToDevice(1);");
        let goal = Goal { width: 0.05, loss_ratio: 0.02, ..Goal::PDR.quick(0.2, 1) };
        let limits = Limits { least: 1_000.0, most: 1e6, patience_s: 60.0 };
        let results = search(&[goal], &limits, &mut Trials::new(under_test.as_mut())).expect("a search");
        let GoalResult::Regular { lower, upper, .. } = results[0] else { panic!("{results:?}") };
        assert!(under_test.end().expect("it ends"), "all is accounted for");
        // On a busy machine the chain carries less, and never more.
        assert!(lower >= limits.least && lower < 22_000.0 && upper < 24_000.0, "{lower} to {upper}");
    }

    #[test]
    fn what_is_denied_is_not_lost() {
        let mut under_test =
            start("FromDevice(0) -> c :: RoundRobinSwitch; c[0] -> ToDevice(1); c[1] -> Discard;");
        assert!((under_test.passed() - 0.5).abs() < 0.01, "{}", under_test.passed());
        let observed = under_test.offer(&Offer::even(20_000.0, 0.1)).expect("a trial");
        assert!(observed.loss_ratio(under_test.passed()) < 0.01, "{observed:?}");
        under_test.end().expect("it ends");
    }

    /// Every frame waits for a fixed time. A busy machine only adds to it.
    #[test]
    fn a_known_delay_is_found() {
        let nf = "FromDevice(0) -> CheckIPHeader(14) -> CheckUDPHeader -> SetTimestamp -> Queue(10000) -> \
                  DelayUnqueue(20ms) -> ToDevice(1);";
        let (observed, seen) = seen(nf, &Offer::stamped(10_000.0, 0.2));
        assert_eq!((observed.intended, observed.arrived, observed.missed), (2_000, 2_000, 0));
        // A stamp keeps checksums valid: no frame was dropped.
        assert_eq!((seen.frames, seen.duplicates, seen.reordered, seen.strangers), (2_000, 0, 0, 0));
        // A packet's timestamp is that of the turn which fetched it. The machine may be busy: a turn that waits for
        // its core before it fetches takes a little from a few frames, and nothing adds to all of them.
        let few = seen.latency.value_at_quantile(0.25);
        assert!(few >= 19_000_000, "{few}");
        assert!(seen.latency.min() < 60_000_000, "{}", seen.latency.min());
    }

    #[test]
    fn frames_that_come_twice_or_late_are_counted() {
        let twice = "FromDevice(0) -> t :: Tee; t[0] -> ToDevice(1); t[1] -> ToDevice(1);";
        let (observed, seen) = seen(twice, &Offer::stamped(10_000.0, 0.1));
        assert_eq!((observed.sent, seen.frames, seen.duplicates), (2_000, 1_000, 1_000));
        // Every third packet waits, and the next packets of its flow overtake it.
        let late = "FromDevice(0) -> s :: RoundRobinSwitch; s[0] -> ToDevice(1); s[1] -> ToDevice(1); \
                    s[2] -> SetTimestamp -> Queue(2000) -> DelayUnqueue(50ms) -> ToDevice(1);";
        let (_, seen) = self::seen(late, &Offer::stamped(10_000.0, 0.1));
        assert_eq!((seen.frames, seen.duplicates), (1_000, 0));
        assert!(seen.reordered > 100 && seen.reordered <= 334, "{}", seen.reordered);
    }

    #[test]
    fn bursts_that_a_ring_cannot_hold_are_lost() {
        let mut under_test = start("FromDevice(0) -> ToDevice(1);");
        let offer = |frames| Offer { arrival: Arrival::Bursts(frames), ..Offer::even(20_000.0, 0.2) };
        let fits = under_test.offer(&offer(1_000)).expect("a trial");
        assert_eq!((fits.arrived, fits.missed, fits.sent), (4_000, 0, 4_000));
        let too_many = under_test.offer(&offer(2_000)).expect("a trial");
        assert_eq!((too_many.arrived, too_many.missed), (4_000, 2 * (2_000 - 1_024)));
        under_test.end().expect("it ends");
    }

    /// Core time is measured for every worker.
    #[test]
    fn every_worker_is_watched() {
        let (_folder, path) = chain("FromDevice(0) -> ToDevice(1);");
        let run = RunOptions { cores: vec![0, 0], ..options().run };
        let under_test =
            Box::new(ChainUnderTest::start(&path, &ChainOptions { run, ..options() }).expect("it runs"));
        assert_eq!(under_test.chain.threads.len(), 2);
        assert!(under_test.end().expect("it ends"));
    }

    /// The number of times that the worker yielded its core by itself, in a while without packets.
    fn pauses(polls: bool) -> u64 {
        let (_folder, path) = chain("FromDevice(0) -> ToDevice(1);");
        let run = RunOptions { polls, ..options().run };
        let chain = ChainUnderTest::start(&path, &ChainOptions { run, ..options() }).expect("it runs");
        let count = || -> u64 {
            let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
            let status = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
            let of = |status: String| {
                let field =
                    |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let is_it = field("Name:") == Some("worker-0");
                is_it.then(|| field("voluntary_ctxt_switches:")?.parse::<u64>().ok()).flatten()
            };
            status.filter_map(of).max().expect("the packet thread")
        };
        let before = count();
        std::thread::sleep(Duration::from_millis(200));
        let pauses = count() - before;
        Box::new(chain).end().expect("it ends");
        pauses
    }

    #[test]
    fn a_worker_that_polls_never_sleeps() {
        let (polling, sleeping) = (pauses(true), pauses(false));
        assert!(polling < 5 && sleeping > 10, "{polling} and {sleeping}");
    }

    #[test]
    fn two_workers_share_a_load() {
        let (_folder, path) = chain("FromDevice(0) -> ToDevice(1);");
        let two = RunOptions { cores: vec![0, 0], ..options().run };
        let mut under_test =
            Box::new(ChainUnderTest::start(&path, &ChainOptions { run: two, ..options() }).expect("it runs"));
        let observed = under_test.offer(&Offer::stamped(10_000.0, 0.1)).expect("a trial");
        let seen = observed.seen.expect("frames have stamps");
        assert_eq!((observed.arrived, observed.sent, seen.frames, seen.reordered), (1_000, 1_000, 1_000, 0));
        assert!(under_test.end().expect("it ends"));
    }

    #[test]
    fn a_chain_without_ends_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.click");
        std::fs::write(&path, "InfiniteSource -> Discard;").expect("written");
        let error = ChainUnderTest::start(&path, &options()).err().expect("refused").to_string();
        assert!(error.contains("the chain needs one of each"), "{error}");
    }
}
