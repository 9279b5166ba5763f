//! Plans the resources for a load: cores, queues, burst size and frequency, and the latency to expect.
//!
//! [`measure`] measures the cost of a chain's packets on this machine, and [`cost`] derives throughput and latency for
//! a load from it. [`crate::machine::topology`] describes the machine. [`make`] combines both, by the advice
//! of Niu et al. (Benchmarking NFV Software Dataplanes): the NFs of a chain run on one socket, or on several
//! servers where one socket is too small (section 4.3), and the clock is no faster than the load requires
//! (section 4.1). [`verify`] offers the load and compares throughput and latency with the plan.
//!
//! A plan is pure arithmetic: the same costs and the same machine give the same plan.

pub mod cost;
pub mod measure;
mod placement;
mod text;
pub mod verify;

pub use cost::{BurstCost, Costs, NfCost, OpenLoop, Whole};
pub use placement::Placement;

use crate::machine::Topology;
use crate::units::{self, Nanoseconds, Rate};
use serde::Serialize;

/// The highest utilization of a core in a plan: the rest is for uneven arrivals and for other work of the
/// core.
pub const MOST_BUSY: f64 = 0.85;
/// How far the measured throughput may be from the plan, as a share of the planned one.
pub const THROUGHPUT_BORNE: f64 = 0.15;
/// A burst size is as good as the best one where its packets cost up to this many times as much.
const NEAR: f64 = 1.1;
/// The lowest clock that a plan considers, in percent of the clock of the measurement.
const SLOWEST: u32 = 10;
/// The most workers that a plan considers, over all servers.
const MOST_WORKERS: usize = 4096;

/// The request for a plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ask {
    /// The chain file.
    pub chain: String,
    /// The rate as the user gave it.
    pub rate: Rate,
    /// The rate in frames a second, over all ports.
    pub frames: f64,
    /// The frame sizes, as text.
    pub size: String,
    /// Average length of frames with FCS, in bytes.
    pub mean_bytes: f64,
    /// The limit of the average latency, from a frame's arrival until the chain sends it.
    pub latency: Option<Nanoseconds>,
}

/// The facts about a chain that limit how its flows can be spread over workers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Facts {
    /// Elements whose state belongs to one worker: more workers make them no faster.
    pub one_worker: Vec<String>,
}

/// The lowest frequency at which a plan still carries its load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Frequency {
    /// The frequency, in GHz.
    pub ghz: f64,
    /// The frequency during the measurement, in GHz.
    pub measured_ghz: f64,
    /// The range that the kernel can set here, in GHz; `None` where it sets no frequency.
    pub range_ghz: Option<(f64, f64)>,
}

/// A plan: the resources for a load, and the expected throughput and latency.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityPlan {
    /// The request.
    pub ask: Ask,
    /// The measured costs.
    pub costs: Costs,
    /// The facts that limit how the chain's flows can be spread.
    pub facts: Facts,
    /// The machine, as text.
    pub machine: String,
    /// Whether this machine carries the load.
    pub fits: bool,
    /// Why it does not, and what would.
    pub short: Vec<String>,
    /// The number of servers like this one.
    pub servers: usize,
    /// Workers on each server; each worker has a queue of its own at every port that receives.
    pub workers: usize,
    /// Burst size, in packets.
    pub burst: usize,
    /// The core of each worker and NF.
    pub places: Vec<Placement>,
    /// Frames a second that one worker receives.
    pub load: f64,
    /// The share of its time that a worker processes packets.
    pub utilization: f64,
    /// Frames a second that one worker carries at most, limited also by the NFs in processes.
    pub capacity: f64,
    /// The least and the most that this is by the spread of the measurements; `None` where that was not
    /// measured.
    pub capacity_range: Option<(f64, f64)>,
    /// Frames a second that one worker takes from a ring that is always full.
    pub saturation: f64,
    /// Average latency of a frame with even arrivals, in nanoseconds.
    pub latency_ns: f64,
    /// The additional average wait with random arrivals, in nanoseconds.
    pub random_ns: f64,
    /// The time in which a burst of frames arrives, in nanoseconds. No frame waits longer than that for a
    /// burst to fill.
    pub burst_ns: f64,
    /// The lowest frequency that carries the load; `None` where the machine does not carry it at all.
    pub frequency: Option<Frequency>,
}

impl CapacityPlan {
    /// The cores of the first server's workers.
    pub fn worker_cores(&self) -> Vec<usize> {
        let of = self.places.iter().filter(|place| place.server == 0 && place.what.starts_with("worker-"));
        of.filter_map(|place| place.cpu).collect()
    }
}

/// Makes a plan. `costs` has at least one burst size.
pub fn make(ask: &Ask, costs: &Costs, facts: &Facts, topology: &Topology) -> CapacityPlan {
    let most = if facts.one_worker.is_empty() { MOST_WORKERS } else { 1 };
    let instances: Vec<usize> = costs.nfs.iter().map(|nf| instances(ask.frames, nf)).collect();
    // With more than one process of an NF the measured whole does not apply.
    let parts = Costs { whole: None, has_ring: costs.has_ring && costs.whole.is_none(), ..costs.clone() };
    let costs = if instances.iter().all(|count| *count == 1) { costs } else { &parts };
    let ns = |burst: usize| costs.ns_beside(burst);
    let of = |workers: usize, burst: usize| {
        let load = ask.frames / workers as f64;
        let busy = load / costs.carried_by(workers, burst);
        let latency = costs.latency_ns(load, burst).map(|(even, _)| even);
        let in_time = |limit: Nanoseconds| latency.is_some_and(|ns| ns <= limit.0);
        (busy <= MOST_BUSY, ask.latency.is_none_or(in_time))
    };
    let bursts = || costs.bursts.iter().map(|cost| cost.burst);
    let find = |is_enough: &dyn Fn((bool, bool)) -> bool| {
        // The smallest burst size whose packets cost little more than those of the best one: a larger one
        // gains less than a tenth.
        let first = |workers: usize| {
            let enough = || bursts().filter(|burst| is_enough(of(workers, *burst)));
            let least_ns = enough().map(ns).fold(f64::INFINITY, f64::min);
            let near = enough().find(|burst| ns(*burst) <= least_ns * NEAR);
            near.map(|burst| (workers, burst))
        };
        // More workers never carry less, so the least number is between two powers of two.
        let upper = std::iter::successors(Some(1), |workers| Some(workers * 2))
            .take_while(|workers| *workers <= most)
            .find(|workers| first(*workers).is_some())?;
        (upper / 2 + 1..=upper).find_map(first)
    };
    let both = find(&|(carried, in_time)| carried && in_time);
    let carried = both.or_else(|| find(&|(carried, _)| carried));
    let largest = bursts().max().unwrap_or(1);
    let (workers, burst) = carried.unwrap_or((most.min(needed(ask.frames, costs, largest)), largest));
    let layout = placement::lay_out(workers, &costs.nfs, &instances, topology);
    let load = ask.frames / workers as f64;
    let utilization = costs.utilization(workers, load, burst);
    let times = costs.times(workers);
    let of_nfs =
        costs.nfs.iter().zip(&instances).map(|(nf, count)| *count as f64 * 1e9 / nf.ns / workers as f64);
    // What NFs in processes carry is measured as a whole, or from their own time: the load's costs are the
    // worker's.
    let of_nfs = of_nfs.fold(f64::INFINITY, f64::min);
    let at = |times: f64| (costs.carried(burst) / times).min(of_nfs);
    let (capacity, saturation) = (at(times.median), at(costs.beside(workers)));
    let capacity_range = costs.open.as_ref().map(|_| (at(times.max), at(times.min)));
    let (latency_ns, random_ns) = costs.latency_ns(load, burst).unwrap_or((f64::INFINITY, 0.0));
    let mut short = vec![];
    if carried.is_none() {
        let names = facts.one_worker.join("`, `");
        let more = (load / costs.carried_by(workers, burst) / MOST_BUSY - 1.0) * 100.0;
        short.push(match names.as_str() {
            "" => format!("{MOST_WORKERS} workers do not carry it: {more:.0} % more is asked for"),
            names => format!(
                "`{names}` is one worker's, which carries {}pps at {:.0} %: {more:.0} % more is asked for; a chain without \
                 it can have several workers, and {} servers with a share of the flows each do",
                units::scaled(costs.carried_by(workers, burst) * MOST_BUSY),
                MOST_BUSY * 100.0,
                needed(ask.frames, costs, largest)
            ),
        });
    }
    if let (Some(limit), None, true) = (ask.latency, both, carried.is_some()) {
        let least = costs.least_latency_ns();
        short.push(format!(
            "{limit} is not kept: a frame takes {} here, and {} at the least with more workers; a faster core, or a chain with less \
             to do, would",
            Nanoseconds(latency_ns),
            Nanoseconds(least)
        ));
    }
    short.extend(layout.short.clone());
    let fits = short.is_empty();
    let frequency = fits.then(|| lowest(ask, costs, (workers, load), burst, topology));
    CapacityPlan {
        ask: ask.clone(),
        costs: costs.clone(),
        facts: facts.clone(),
        machine: topology.sentence(),
        fits,
        short,
        servers: layout.servers,
        workers: workers.div_ceil(if layout.is_cut { 1 } else { layout.servers }),
        burst,
        places: layout.places,
        load,
        utilization,
        capacity,
        capacity_range,
        saturation,
        latency_ns,
        random_ns,
        burst_ns: burst as f64 / load * 1e9,
        frequency,
    }
}

/// The number of workers that carry this many frames a second.
fn needed(frames: f64, costs: &Costs, burst: usize) -> usize {
    let carried = costs.carried_by(MOST_WORKERS, burst);
    ((frames / (carried * MOST_BUSY)).ceil() as usize).clamp(1, MOST_WORKERS)
}

/// The number of processes of an NF that carry this many frames a second.
fn instances(frames: f64, nf: &NfCost) -> usize {
    ((frames * nf.ns / 1e9 / MOST_BUSY).ceil() as usize).clamp(1, MOST_WORKERS)
}

/// The lowest frequency at which the plan carries the load and meets the latency limit.
fn lowest(
    ask: &Ask,
    costs: &Costs,
    (workers, load): (usize, f64),
    burst: usize,
    topology: &Topology,
) -> Frequency {
    let ghz = |khz: u64| khz as f64 / 1e6;
    let range = topology.frequency.as_ref().map(|frequency| (ghz(frequency.min_khz), ghz(frequency.max_khz)));
    let measured_ghz = match &topology.frequency {
        Some(frequency) => ghz(frequency.now_khz.unwrap_or(frequency.max_khz)),
        None => costs.cycles_per_ns,
    };
    // In steps of 1 % of the current frequency.
    let holds = |percent: &u32| {
        let slower = costs.slower(100.0 / f64::from(*percent));
        let latency = slower.latency_ns(load, burst);
        let is_enough = |(now, then): (&NfCost, &NfCost)| {
            let count = instances(ask.frames, then);
            instances(ask.frames, now) == count && ask.frames / count as f64 * then.ns / 1e9 <= MOST_BUSY
        };
        load / slower.carried_by(workers, burst) <= MOST_BUSY
            && costs.nfs.iter().zip(&slower.nfs).all(is_enough)
            && ask.latency.is_none_or(|limit| latency.is_some_and(|(even, _)| even <= limit.0))
    };
    let percent = (SLOWEST..=100).find(holds).unwrap_or(100);
    let least = measured_ghz * f64::from(percent) / 100.0;
    let ghz = range.map_or(least, |(min, _)| least.max(min));
    Frequency { ghz, measured_ghz, range_ghz: range }
}

#[cfg(test)]
mod tests;
