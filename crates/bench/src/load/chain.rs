//! A chain that runs in this process, to which loads are offered.

use super::pace::Pace;
use super::ports::Paced;
use crate::BenchError;
use crate::search::{Measurer, Trial};
use crate::speed::Shape;
use crate::speed::core_time::Thread;
use crate::speed::measure::{failed, made_frames, starter_of};
use diag::{Diagnostics, SourceMap};
use host::chain::{PortKind, Sink, Source, TrafficDecl};
use host::ports::Ports;
use host::running::{Plan, Running};
use shm::region::RegionOptions;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long warming up takes.
const WARM_UP_S: f64 = 0.5;
/// How long the chain may take to work off what waits when a trial is over.
const DRAIN: Duration = Duration::from_secs(5);
/// For how long nothing comes out before that counts as done: longer than a NF that sleeps takes to wake.
const QUIET: Duration = Duration::from_millis(15);
/// The share of a trial for which its packet thread may be without a core before the trial is repeated.
const DISTURBED: f64 = 0.02;
/// How often a trial is repeated for that.
const REPEATS: usize = 3;
/// Frames of which it is seen how many come out where nothing is lost, at least: few enough in their time for whatever
/// deserves to be measured.
const LEAST_FRAMES: f64 = 500.0;

/// How to run it.
#[derive(Clone, PartialEq, Debug)]
pub struct ChainOptions {
    /// Packets to work on at a time.
    pub burst: usize,
    /// The packet thread's core.
    pub core: usize,
    /// Packet slots.
    pub slots: u32,
    /// How NFs run that run in this process.
    pub shape: Shape,
    /// Frames that wait for the chain at each port, at most.
    pub ring: u64,
}

/// The chain, running, with one worker.
pub struct ChainUnderTest {
    running: Option<Running>,
    // The ports' devices and NFs end with them.
    _ports: Ports,
    pace: Arc<Pace>,
    sources: usize,
    thread: Option<Thread>,
    /// Frames that come out for each that goes in, where nothing is lost.
    pub passed: f64,
    /// Trials that were made, and how often one was repeated because something else had the core.
    pub trials: usize,
    /// See there.
    pub repeated: usize,
    /// Trials that something else disturbed to the end.
    pub disturbed: usize,
}

impl ChainUnderTest {
    /// Starts the chain in a file, warms it up, and finds out how much of what goes in comes out when nothing is lost.
    ///
    /// # Errors
    /// When the chain has mistakes, has no made-up traffic or nowhere to send it, or lets nothing through.
    pub fn start(path: &Path, options: &ChainOptions) -> Result<ChainUnderTest, BenchError> {
        let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
        let chain = host::chain::load(path, &[], &mut map, &mut diags);
        let refused =
            |map: &SourceMap, diags: &Diagnostics| BenchError::BadChain { told: diags.render_short(map) };
        let Some(mut chain) = chain else { return Err(refused(&map, &diags)) };
        let (mut sources, mut sinks) = (vec![], vec![]);
        for port in &mut chain.ports {
            let PortKind::Local(source, sink) = &mut port.kind else { continue };
            if let Source::Traffic(traffic) = source {
                // Trials end it.
                traffic.count = None;
                sources.push(port.name.clone());
            }
            if matches!(sink, Sink::Discard) {
                sinks.push(port.name.clone());
            }
        }
        if sources.is_empty() || sinks.is_empty() {
            let told = "a load is offered to ports with `traffic = { … }`, and what comes out is counted at ports with \
                        `discard = true`: the chain needs one of each";
            return Err(BenchError::Measurement(told.into()));
        }
        let frames = match made_frames(&chain) {
            Some(Ok(frames)) => frames,
            Some(Err(mistakes)) => {
                diags.extend(mistakes);
                return Err(refused(&map, &diags));
            }
            None => return Err(BenchError::Measurement("the chain has no made-up traffic".into())),
        };
        let cycle = frames.count();
        let made = move |_: &TrafficDecl, _: &mut Diagnostics| Some(Arc::clone(&frames));
        let mut ports = Ports::new(&chain, 1, RegionOptions::slots(options.slots), Box::new(made))
            .start_by(Box::new(starter_of(options.burst)), Arc::default());
        let wanted = host::Options {
            folder: chain.folder.clone(),
            fused: chain.fused(Some(options.shape.form())),
            cache: options.shape.cache(),
            ..host::Options::default()
        };
        let pace = Arc::new(Pace::default());
        let mut paced = Paced {
            ports: &mut ports,
            sources: sources.iter().cloned().collect(),
            sinks: sinks.into_iter().collect(),
            pace: Arc::clone(&pace),
            room: options.ring,
        };
        let assembly = host::assemble(&chain.graph, &wanted, &mut paced, &mut diags).map_err(failed)?;
        let Some(assembly) = assembly else { return Err(refused(&map, &diags)) };
        let pools = ports.pools().map_err(failed)?;
        let plan = Plan { burst: options.burst, cores: vec![options.core], ..Plan::default() };
        let running = Running::start(assembly, &plan, pools).map_err(failed)?;
        let thread = Thread::find("self", |name| name == "worker-0");
        let mut chain = ChainUnderTest {
            running: Some(running),
            _ports: ports,
            pace,
            sources: sources.len(),
            thread,
            passed: 1.0,
            trials: 0,
            repeated: 0,
            disturbed: 0,
        };
        chain.warm_up(cycle)?;
        Ok(chain)
    }

    /// Every flow twice, and then at leisure.
    fn warm_up(&mut self, cycle: usize) -> Result<(), BenchError> {
        let frames = (2.0 * cycle as f64).max(LEAST_FRAMES) * self.sources as f64;
        self.offer(frames / WARM_UP_S, WARM_UP_S)?;
        let counts = self.offer(frames / WARM_UP_S, WARM_UP_S)?;
        let taken = counts.arrived.saturating_sub(counts.missed);
        if taken == 0 || counts.sent == 0 {
            let told =
                format!("of {} frames {} came out: there is nothing to measure", counts.arrived, counts.sent);
            return Err(BenchError::Measurement(told));
        }
        self.passed = counts.sent as f64 / taken as f64;
        Ok(())
    }

    /// Offers a load, and waits until the chain has worked it off.
    fn offer(&mut self, load: f64, duration_s: f64) -> Result<super::pace::Counts, BenchError> {
        self.pace.start(load, duration_s, self.sources);
        std::thread::sleep(Duration::from_secs_f64(duration_s));
        let start = Instant::now();
        let (mut counts, mut since) = (self.pace.counts(), Instant::now());
        while since.elapsed() < QUIET && start.elapsed() < DRAIN {
            std::thread::sleep(Duration::from_millis(1));
            let now = self.pace.counts();
            if now != counts {
                (counts, since) = (now, Instant::now());
            }
        }
        if self.running.as_ref().is_none_or(Running::is_over) {
            return Err(BenchError::Measurement("the run ended by itself".into()));
        }
        Ok(counts)
    }

    /// Ends it; whether every packet was accounted for.
    pub fn stop(mut self) -> bool {
        let Some(running) = self.running.take() else { return false };
        running.stop();
        let outcome = running.wait();
        outcome.report.imbalance() == 0 && outcome.report.unbalanced().next().is_none()
    }
}

impl Measurer for ChainUnderTest {
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
        self.trials += 1;
        let mut repeats = 0;
        loop {
            let waited = || self.thread.as_ref().and_then(Thread::waited_ns).unwrap_or(0);
            let before = waited();
            let counts = self.offer(load, duration_s)?;
            let waited = || self.thread.as_ref().and_then(Thread::waited_ns).unwrap_or(0);
            let without_core = waited().saturating_sub(before) as f64 / (duration_s * 1e9);
            if without_core > DISTURBED && repeats < REPEATS {
                repeats += 1;
                self.repeated += 1;
                continue;
            }
            self.disturbed += usize::from(without_core > DISTURBED);
            // What should have been offered counts, also where it could not be.
            let intended = (load * duration_s).floor().max(1.0).max(counts.arrived as f64);
            let through = counts.sent as f64 / self.passed;
            // One frame in ten thousand more or less comes out where not all flows are let through.
            let doubt = if self.passed < 1.0 { intended * 1e-4 } else { 1.0 };
            let lost = intended - through;
            let loss_ratio =
                if lost <= doubt && counts.missed == 0 { 0.0 } else { (lost / intended).clamp(0.0, 1.0) };
            return Ok(Trial { load, duration_s, loss_ratio });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Goal, GoalResult, Limits, search};

    fn chain(nf: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chain.toml");
        let text = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\nin = {{ traffic = {{ flows = 50, size = \"64\" }} }}\n\
             out = {{ discard = true }}\n[nf.nf]\ninline = \"{nf}\"\n"
        );
        std::fs::write(&path, text).expect("written");
        (folder, path)
    }

    fn options() -> ChainOptions {
        ChainOptions { burst: 32, core: 0, slots: 8192, shape: Shape::Modular, ring: 1024 }
    }

    /// A chain that lets so many packets through a second: the search has to find that.
    #[test]
    fn a_known_limit_is_found() {
        let (_folder, path) =
            chain("FromDevice(0) -> Queue(64) -> RatedUnqueue(20000, BURST_SIZE 16) -> ToDevice(1);");
        let mut under_test = ChainUnderTest::start(&path, &options()).expect("it runs");
        let goal = Goal { width: 0.05, loss_ratio: 0.02, ..Goal::PDR.quick(0.2, 1) };
        let limits = Limits { least: 1_000.0, most: 1e6, patience_s: 60.0 };
        let results = search(&[goal], &limits, &mut under_test).expect("a search");
        let GoalResult::Regular { lower, upper, .. } = results[0] else { panic!("{results:?}") };
        assert!(under_test.stop(), "all is accounted for");
        // The machine may be busy: what is carried is a little less then, and never more.
        assert!(lower > 2_000.0 && lower < 22_000.0 && upper < 24_000.0, "{lower} to {upper}");
    }

    #[test]
    fn what_is_denied_is_not_lost() {
        let (_folder, path) =
            chain("FromDevice(0) -> c :: RoundRobinSwitch; c[0] -> ToDevice(1); c[1] -> Discard;");
        let mut under_test = ChainUnderTest::start(&path, &options()).expect("it runs");
        assert!((under_test.passed - 0.5).abs() < 0.01, "{}", under_test.passed);
        let trial = under_test.measure(20_000.0, 0.1).expect("a trial");
        assert!(trial.loss_ratio < 0.01, "{trial:?}");
        under_test.stop();
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
