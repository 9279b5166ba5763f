//! A measurement: runs a chain in this process, warms it up, and counts its packets.

use crate::BenchError;
use crate::shape::Shape;
use crate::start::{RunOptions, failed};
use crate::trial::closed::{ClosedLoop, Window};
use port::FrameSet;
use serde::{Deserialize, Serialize};
use shm::packet_region::{PacketRegion, RegionOptions};
use shm::pool::{PacketPool, SharedPool};
use std::path::{Path, PathBuf};

/// The number of template copies whose average gives the cost of one.
const RESTORED: usize = 4_000_000;

/// How to measure a chain.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasureOptions {
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Burst size, in packets.
    pub burst: usize,
    /// The worker's core.
    pub core: usize,
    /// Packets that the chain has to receive before the measurement: every flow twice.
    pub warm_packets: u64,
    /// Packet slots.
    pub slots: u32,
    /// The execution mode of the NFs in this process.
    pub shape: Shape,
    /// Handlers that are written before the measurement, each with the contents of a file.
    pub writes: Vec<(String, PathBuf)>,
}

impl MeasureOptions {
    fn run(&self) -> RunOptions {
        let MeasureOptions { burst, core, slots, shape, .. } = *self;
        RunOptions { burst, cores: vec![core], slots, shape: Some(shape), ..RunOptions::default() }
    }
}

/// The result of a measurement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Packets received during the measurement.
    pub packets: u64,
    /// Length of the measurement, in nanoseconds.
    pub wall_ns: f64,
    /// The part of `wall_ns` for which the worker was ready but had no core.
    pub waited_ns: f64,
    /// Packets sent over the whole run.
    pub sent: u64,
    /// Packets received over the whole run.
    pub received: u64,
    /// Packets dropped over the whole run, by element and reason.
    pub dropped: Vec<(String, u64)>,
    /// The cost of copying a frame from its template, in nanoseconds per packet. It is included in the
    /// measurement.
    pub restore_ns: Option<f64>,
    /// Whether every packet was accounted for.
    pub sound: bool,
}

impl Sample {
    /// Nanoseconds per packet, of the time that the worker had its core.
    pub fn ns_per_packet(&self) -> f64 {
        self.window().ns_per_packet()
    }

    /// The share of the time in which something else had the worker's core.
    pub fn disturbed(&self) -> f64 {
        self.window().disturbed()
    }

    fn window(&self) -> Window {
        Window { packets: self.packets, wall_ns: self.wall_ns, waited_ns: self.waited_ns, stolen_ns: 0.0 }
    }
}

/// Measures the chain in a file.
///
/// # Errors
/// When the chain has errors, a port cannot be opened, a handler refuses its value, or no packets arrive.
pub fn measure_chain(path: &Path, options: &MeasureOptions) -> Result<Sample, BenchError> {
    let mut chain = ClosedLoop::start(path, &options.run())?;
    for (handler, file) in &options.writes {
        let text = std::fs::read_to_string(file).map_err(|cause| BenchError::file("read", file, cause))?;
        chain.running().write(handler, &text).map_err(failed)?;
    }
    chain.warm_up(options.warm_packets)?;
    let Window { packets, wall_ns, waited_ns, .. } = chain.watch(options.seconds)?;
    let mut sample = Sample { packets, wall_ns, waited_ns, ..Sample::default() };
    let frames = chain.frames.first().cloned();
    let outcome = chain.end();
    sample.sound = outcome.is_balanced();
    (sample.sent, sample.received) = (outcome.report.sent(), outcome.report.received());
    for node in &outcome.report.nodes {
        sample
            .dropped
            .extend(node.dropped.iter().map(|(why, count)| (format!("{} {why}", node.name), *count)));
    }
    if let Some(frames) = frames {
        sample.restore_ns = Some(restore_ns(&frames, options)?);
    }
    Ok(sample)
}

/// The cost of one template copy, in nanoseconds.
fn restore_ns(frames: &FrameSet, options: &MeasureOptions) -> Result<f64, BenchError> {
    let region = PacketRegion::create(RegionOptions::slots(options.slots)).map_err(failed)?;
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
        let stage = Stage::new(folder.path(), None).expect("folder");
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
        let stage = Stage::new(folder.path(), None).expect("folder");
        let full = workload::find("l3-full").expect("there");
        let chain = stage.lay_out(full, scene::PortKind::Memory, 100).expect("written");
        // Only the lookup matters here, so the chain uses few other elements.
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
