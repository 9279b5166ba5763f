//! A chain in this process at saturation: its ports always have the next packet (closed loop).

use crate::BenchError;
use crate::load::DISTURBED;
use crate::shape::Shape;
use crate::start::{Loaded, RunOptions, RunningChain, failed};
use std::path::Path;
use std::time::{Duration, Instant};

/// The shortest warm-up.
const WARM_UP: Duration = Duration::from_millis(200);
/// How long the code of a flow cache may take to be made.
const CODE: Duration = Duration::from_secs(3);
/// How long packets may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// The class of the elements that represent NFs in processes.
pub const PROCESS_NF: &str = "ProcessNF";
/// Their drop reason while the process does not run.
const DOWN: &str = "nf-down";

/// What was seen for a while.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Window {
    /// Packets received.
    pub packets: u64,
    /// Length of the window, in nanoseconds.
    pub wall_ns: f64,
    /// The part of `wall_ns` for which a worker was ready but had no core: the longest of all workers.
    pub waited_ns: f64,
    /// How long a hypervisor took a worker's core, in nanoseconds, with a precision of 10 ms: the longest of
    /// all workers.
    pub stolen_ns: f64,
}

/// The counts at one moment.
struct Look {
    /// How long each worker has waited for its core, in nanoseconds.
    waited: Vec<u64>,
    stolen: Vec<u64>,
    received: u64,
    at: Instant,
}

impl Window {
    /// Nanoseconds per packet, of the time that the worker had its core.
    pub fn ns_per_packet(&self) -> f64 {
        (self.wall_ns - self.waited_ns).max(0.0) / self.packets.max(1) as f64
    }

    /// The share of the time in which something else had the core.
    pub fn disturbed(&self) -> f64 {
        if self.wall_ns > 0.0 { (self.waited_ns + self.stolen_ns) / self.wall_ns } else { 0.0 }
    }

    /// Whether that share is too large.
    pub fn is_disturbed(&self) -> bool {
        self.disturbed() > DISTURBED
    }

    /// A count of this window as a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.wall_ns / 1e9)
    }
}

impl Look {
    fn now(chain: &RunningChain) -> Look {
        let waited = chain.threads.iter().map(|thread| thread.waited_ns().unwrap_or(0)).collect();
        let stolen = chain.threads.iter().map(|thread| thread.stolen_ns().unwrap_or(0)).collect();
        Look { waited, stolen, received: chain.running().report().received(), at: Instant::now() }
    }

    fn until_now(self, chain: &RunningChain) -> Result<Window, BenchError> {
        let mut after = Look::now(chain);
        // On a machine that has no core for the packet thread now, it takes longer.
        while after.received == self.received && self.at.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
            after = Look::now(chain);
        }
        if after.received == self.received {
            return Err(failed("no packets came while it was measured"));
        }
        let longest = |after: &[u64], before: &[u64]| {
            after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).max().unwrap_or(0)
        };
        Ok(Window {
            packets: after.received - self.received,
            wall_ns: (after.at - self.at).as_nanos() as f64,
            waited_ns: longest(&after.waited, &self.waited) as f64,
            stolen_ns: longest(&after.stolen, &self.stolen) as f64,
        })
    }
}

/// A chain whose ports always have the next packet.
pub type ClosedLoop = RunningChain;

impl ClosedLoop {
    /// Starts the chain in a file.
    ///
    /// # Errors
    /// When it has mistakes, or something cannot be opened.
    pub fn start(path: &Path, options: &RunOptions) -> Result<ClosedLoop, BenchError> {
        let mut loaded = Loaded::read(path)?;
        loaded.last();
        let mut resources = loaded.resources(options)?;
        let assembly = loaded.assemble(options, &mut resources)?;
        loaded.start(options, (assembly, resources), options.plan())
    }

    /// The same, once every flow of its generated traffic came twice.
    ///
    /// # Errors
    /// When no packets come, too.
    pub fn warmed_up(path: &Path, options: &RunOptions) -> Result<ClosedLoop, BenchError> {
        let mut chain = ClosedLoop::start(path, options)?;
        chain.warm_up(chain.warm_packets())?;
        Ok(chain)
    }

    /// The number of packets in which every flow of the generated traffic occurs twice.
    pub fn warm_packets(&self) -> u64 {
        2 * self.frames.iter().map(|frames| frames.count() as u64).sum::<u64>()
    }

    /// Waits until the chain has received `packets` and its flow cache, or what holds the records of flows without
    /// one, has entries for all flows that it accepts.
    ///
    /// # Errors
    /// When these packets do not arrive, or an NF does not run.
    pub fn warm_up(&mut self, packets: u64) -> Result<(), BenchError> {
        let start = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(10));
            let received = self.running().report().received();
            if start.elapsed() >= WARM_UP && received >= packets {
                break;
            }
            if self.running().is_over() {
                let told = "the run ended by itself: its ports are to have packets for as long as it is measured, as those with \
                            `traffic = { … }` do and captures do not";
                return Err(failed(told));
            }
            if start.elapsed() > PATIENCE {
                return Err(failed(format!("{received} packets in {PATIENCE:?}")));
            }
        }
        let down = |node: &worker::report::NodeReport| {
            node.class == PROCESS_NF
                && node.outputs.iter().sum::<u64>() == 0
                && node.dropped.iter().any(|(reason, _)| reason == DOWN)
        };
        if let Some(nf) = self.running().report().nodes.iter().find(|node| down(node)) {
            let told =
                format!("`{}` does not run, and every packet for it is dropped; try `millrace run`", nf.name);
            return Err(failed(told));
        }
        self.fill_cache();
        self.find_threads();
        Ok(())
    }

    /// Waits until the number of flows in the flow cache no longer grows: without a cache, flows of which tables have state
    /// have records in it. Before its code is made, it has templates and no flows.
    fn fill_cache(&self) {
        let start = Instant::now();
        let (mut before, mut quiet) = (self.running().cache_counts(), 0);
        while self.shape.is_some_and(Shape::has_entries)
            && quiet < 3
            && start.elapsed() < PATIENCE
            && !self.running().is_over()
        {
            std::thread::sleep(Duration::from_millis(100));
            let now = self.running().cache_counts();
            let is_being_made = now.templates > 0 && now.flows == 0 && start.elapsed() < CODE;
            quiet = if now.flows == before.flows && !is_being_made { quiet + 1 } else { 0 };
            before = now;
        }
    }

    /// Counts packets for `seconds`.
    ///
    /// # Errors
    /// When no packets arrive.
    pub fn watch(&self, seconds: f64) -> Result<Window, BenchError> {
        let before = Look::now(self);
        std::thread::sleep(Duration::from_secs_f64(seconds));
        before.until_now(self)
    }
}

/// Counts the packets of several chains during the same time.
///
/// # Errors
/// When a chain receives no packets.
pub fn watch_all(chains: &[ClosedLoop], seconds: f64) -> Result<Vec<Window>, BenchError> {
    let before: Vec<Look> = chains.iter().map(Look::now).collect();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let pairs = chains.iter().zip(before);
    pairs.map(|(chain, before)| before.until_now(chain)).collect()
}
