//! One measurement: a chain runs in this process, is warmed up, and its packets are counted for a while.

use super::core_time::Thread;
use super::shape::Shape;
use crate::BenchError;
use crate::start::{Loaded, RunOptions, failed};
use crate::traffic::Change;
use host::running::Running;
use port::FrameSet;
use serde::{Deserialize, Serialize};
use shm::pool::{PacketPool, SharedPool};
use shm::region::{Region, RegionOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shortest warming up.
const WARM_UP: Duration = Duration::from_millis(200);
/// How long packets may take to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Template copies that tell what one costs.
const RESTORED: usize = 4_000_000;

/// How to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasureOptions {
    /// For how long, in seconds.
    pub seconds: f64,
    /// Packets to work on at a time.
    pub burst: usize,
    /// The packet thread's core.
    pub core: usize,
    /// Packets that have to be through before the measurement: every flow twice.
    pub warm_packets: u64,
    /// Packet slots.
    pub slots: u32,
    /// How NFs run that run in this process.
    pub shape: Shape,
    /// Handlers that are written before the measurement, each with what stands in a file.
    pub writes: Vec<(String, PathBuf)>,
}

impl MeasureOptions {
    fn run(&self) -> RunOptions {
        let MeasureOptions { burst, core, slots, shape, .. } = *self;
        RunOptions { burst, cores: vec![core], slots, shape, change: Change::default() }
    }
}

/// What a measurement found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Packets received while it was measured.
    pub packets: u64,
    /// How long that took, in nanoseconds.
    pub wall_ns: f64,
    /// Of that, how long the packet thread was ready but had no core.
    pub waited_ns: f64,
    /// Packets sent over the whole run, of how many received.
    pub sent: u64,
    /// Packets received over the whole run.
    pub received: u64,
    /// Packets dropped over the whole run, by element and reason.
    pub dropped: Vec<(String, u64)>,
    /// What restoring a frame from its template costs, in nanoseconds; it is part of the figure.
    pub restore_ns: Option<f64>,
    /// Whether every packet was accounted for.
    pub sound: bool,
}

impl Sample {
    /// Nanoseconds per packet, by the time that the packet thread had its core.
    pub fn ns_per_packet(&self) -> f64 {
        (self.wall_ns - self.waited_ns).max(0.0) / self.packets.max(1) as f64
    }

    /// The share of the time in which something else had the core.
    pub fn disturbed(&self) -> f64 {
        if self.wall_ns > 0.0 { self.waited_ns / self.wall_ns } else { 0.0 }
    }
}

/// Measures the chain in a file.
///
/// # Errors
/// When the chain has mistakes, a port cannot be opened, or no packets come.
pub fn measure_chain(path: &Path, options: &MeasureOptions) -> Result<Sample, BenchError> {
    let run = options.run();
    let mut loaded = Loaded::read(path)?;
    let mut ports = loaded.ports(&run)?;
    let assembly = loaded.assemble(&run, &mut ports)?;
    let running = run.start(assembly, &ports)?;
    for (handler, file) in &options.writes {
        let text = std::fs::read_to_string(file).map_err(|cause| BenchError::File {
            action: "read",
            path: file.clone(),
            cause,
        })?;
        running.write(handler, &text).map_err(failed)?;
    }
    let mut sample = watch(&running, options)?;
    running.stop();
    let outcome = running.wait();
    // Slots that did not come back tell nothing here: net_pcap keeps those of the frames that it replays.
    sample.sound = outcome.report.imbalance() == 0 && outcome.report.unbalanced().next().is_none();
    (sample.sent, sample.received) = (outcome.report.sent(), outcome.report.received());
    for node in &outcome.report.nodes {
        sample
            .dropped
            .extend(node.dropped.iter().map(|(why, count)| (format!("{} {why}", node.name), *count)));
    }
    if let Some(frames) = loaded.frames().first() {
        sample.restore_ns = Some(restore_ns(frames, options)?);
    }
    Ok(sample)
}

/// Waits until the flows that a flow cache takes have their entries.
fn fill_cache(running: &Running, options: &MeasureOptions) {
    let start = Instant::now();
    let (mut before, mut quiet) = (running.cache_counts(), 0);
    while options.shape == Shape::Cached && quiet < 3 && start.elapsed() < PATIENCE && !running.is_over() {
        std::thread::sleep(Duration::from_millis(100));
        let now = running.cache_counts();
        quiet = if now.flows == before.flows { quiet + 1 } else { 0 };
        before = now;
    }
}

/// Lets a running chain warm up, then counts.
fn watch(running: &Running, options: &MeasureOptions) -> Result<Sample, BenchError> {
    let start = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(10));
        if start.elapsed() >= WARM_UP && running.report().received() >= options.warm_packets {
            break;
        }
        if running.is_over() {
            return Err(failed("the run ended by itself"));
        }
        if start.elapsed() > PATIENCE {
            return Err(failed(format!("{} packets in {PATIENCE:?}", running.report().received())));
        }
    }
    fill_cache(running, options);
    let thread = Thread::find("self", |name| name == "worker-0");
    let waited = || thread.as_ref().and_then(Thread::waited_ns).unwrap_or(0);
    let (waited_before, before, start) = (waited(), running.report().received(), Instant::now());
    std::thread::sleep(Duration::from_secs_f64(options.seconds));
    // On a machine that has no core for the packet thread now, it takes longer.
    while running.report().received() == before && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (after, wall_ns, waited_after) = (running.report().received(), start.elapsed(), waited());
    if after == before {
        return Err(failed("no packets came while it was measured"));
    }
    Ok(Sample {
        packets: after - before,
        wall_ns: wall_ns.as_nanos() as f64,
        waited_ns: waited_after.saturating_sub(waited_before) as f64,
        ..Sample::default()
    })
}

/// What one template copy costs, in nanoseconds.
fn restore_ns(frames: &FrameSet, options: &MeasureOptions) -> Result<f64, BenchError> {
    let region = Region::create(RegionOptions::slots(options.slots)).map_err(failed)?;
    let mut pool = PacketPool::Native(SharedPool::new(region).worker());
    let rounds = RESTORED.div_ceil(frames.count());
    let took = port::memory::restore_cost(frames, &mut pool, options.burst, rounds as u32).map_err(failed)?;
    Ok(took.as_nanos() as f64 / (rounds * frames.count()) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::scene::{self, Stage};
    use crate::speed::workload;

    fn options() -> MeasureOptions {
        MeasureOptions {
            seconds: 0.02,
            burst: 32,
            core: 0,
            warm_packets: 200,
            slots: 4096,
            shape: Shape::Modular,
            writes: vec![],
        }
    }

    #[test]
    fn time_without_a_core_does_not_count() {
        let sample = Sample { packets: 10, wall_ns: 1000.0, waited_ns: 250.0, ..Sample::default() };
        assert_eq!((sample.ns_per_packet(), sample.disturbed()), (75.0, 0.25));
        assert_eq!(Sample::default().disturbed(), 0.0);
    }

    #[test]
    fn the_floor_is_measured_in_memory() {
        let folder = tempfile::tempdir().expect("folder");
        let stage = Stage::new(folder.path()).expect("folder");
        let floor = workload::find("floor").expect("there");
        let chain = stage.lay_out(floor, scene::PortKind::Memory, 100).expect("written");
        let sample = measure_chain(&chain, &options()).expect("runs");
        assert!(sample.packets > 0 && sample.wall_ns >= 2e7 && sample.sound, "{sample:?}");
        assert!(sample.restore_ns.is_some_and(|ns| ns > 0.0));
        assert!(sample.received >= sample.packets + 200);
    }

    #[test]
    fn handlers_are_written_first() {
        let folder = tempfile::tempdir().expect("folder");
        let stage = Stage::new(folder.path()).expect("folder");
        let full = workload::find("l3-full").expect("there");
        let chain = stage.lay_out(full, scene::PortKind::Memory, 100).expect("written");
        // The lookup is what this is about; less of the library has to work then.
        let text = "FromDevice(in) -> CheckIPHeader(OFFSET 14) -> routes :: RadixIPLookup(0.0.0.0/0 0) -> ToDevice(out);";
        std::fs::write(chain.with_file_name("nf.click"), text).expect("written");
        let write = |commands: &str| {
            let routes = stage.routes(commands).expect("written");
            let writes = vec![(workload::FULL_TABLE_HANDLER.to_string(), routes)];
            measure_chain(&chain, &MeasureOptions { writes, ..options() })
        };
        let sample = write("set 1.0.0.0/24 192.0.2.1 0\n").expect("runs");
        assert!(sample.packets > 0 && sample.dropped.is_empty(), "{sample:?}");
        let error = write("set 1.0.0.0/99 192.0.2.1 0\n").expect_err("refused").to_string();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_chain_with_mistakes_is_told() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("wrong.click");
        std::fs::write(&path, "FromDevice(in) -> NoSuchElement -> Discard;").expect("written");
        let error = measure_chain(&path, &options()).expect_err("refused").to_string();
        assert!(error.contains("NoSuchElement"), "{error}");
    }
}
