//! What it takes to carry a load: cores, queues, bursts, frequency, and what latency to expect.
//!
//! [`cost`] is what packets of a chain cost on this machine, measured in a closed loop ([`measure`]), and what follows
//! for a load: how busy, how long a packet takes. [`crate::machine::topology`] is the machine. [`make`] puts both
//! together, by the advice of Niu et al. (Benchmarking NFV Software Dataplanes): NFs of a chain on one socket, several
//! servers where they do not fit there (section 4.3), and the clock no faster than the load asks (section 4.1).
//! [`verify`] offers the load, and holds what is carried and how long it takes against what was said.
//!
//! Making a plan is arithmetic: same figures and machine, same plan.

pub mod cost;
pub mod measure;
mod placement;
mod text;
pub mod verify;

pub use cost::{BurstCost, Costs, NfCost, Whole};
pub use placement::Placement;

use crate::machine::Topology;
use crate::units::{self, Nanoseconds, Rate};
use serde::Serialize;

/// How busy a core may be: the rest is for arrivals that are not even, and for what else the core has to do.
pub const MOST_BUSY: f64 = 0.85;
/// A burst is as good as the best one where a packet costs no more than so many times as much.
const NEAR: f64 = 1.1;
/// The slowest clock that is thought of, in percent of the one that was measured at.
const SLOWEST: u32 = 10;
/// Workers that are thought of, at most, over all servers.
const MOST_WORKERS: usize = 4096;

/// What is asked for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ask {
    /// The chain file.
    pub chain: String,
    /// The rate, as it was asked for.
    pub rate: Rate,
    /// The same in frames a second, at all ports together.
    pub frames: f64,
    /// The sizes of frames, in words.
    pub size: String,
    /// How long frames are on average, FCS counted, in bytes.
    pub mean_bytes: f64,
    /// How long a frame may take on average, from when it arrives until it is sent.
    pub latency: Option<Nanoseconds>,
}

/// What of a chain decides how it can be spread.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Facts {
    /// Elements whose state one worker owns: more workers make them no faster.
    pub one_worker: Vec<String>,
}

/// The lowest frequency that holds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Frequency {
    /// In GHz.
    pub ghz: f64,
    /// What it was measured at.
    pub measured_ghz: f64,
    /// Whether the kernel sets it here, between these.
    pub range_ghz: Option<(f64, f64)>,
}

/// What to do.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityPlan {
    /// What was asked for.
    pub ask: Ask,
    /// What packets cost.
    pub costs: Costs,
    /// What decides how the chain can be spread.
    pub facts: Facts,
    /// The machine, in words.
    pub machine: String,
    /// Whether this machine does it.
    pub fits: bool,
    /// Why not, and what would.
    pub short: Vec<String>,
    /// Servers like this one.
    pub servers: usize,
    /// Workers on each; each has a queue of its own at every port that receives.
    pub workers: usize,
    /// Packets to work on at a time.
    pub burst: usize,
    /// What runs where.
    pub places: Vec<Placement>,
    /// Frames a second that one worker gets.
    pub load: f64,
    /// How busy a worker is, as a share of its time.
    pub utilization: f64,
    /// Frames a second that one worker carries when it has nothing else to do, and the NFs in processes, too.
    pub capacity: f64,
    /// What a frame takes on average where they arrive evenly, in nanoseconds.
    pub latency_ns: f64,
    /// What comes on top where they arrive at random, in nanoseconds.
    pub random_ns: f64,
    /// How long it takes until a burst has arrived, in nanoseconds: more than that no frame waits for one.
    pub burst_ns: f64,
    /// The lowest frequency that holds; none where the machine does not hold at all.
    pub frequency: Option<Frequency>,
}

impl CapacityPlan {
    /// The cores of the first server's workers.
    pub fn worker_cores(&self) -> Vec<usize> {
        let of = self.places.iter().filter(|place| place.server == 0 && place.what.starts_with("worker-"));
        of.filter_map(|place| place.cpu).collect()
    }
}

/// Plans. `costs` has at least one burst.
pub fn make(ask: &Ask, costs: &Costs, facts: &Facts, topology: &Topology) -> CapacityPlan {
    let most = if facts.one_worker.is_empty() { MOST_WORKERS } else { 1 };
    let instances: Vec<usize> = costs.nfs.iter().map(|nf| instances(ask.frames, nf)).collect();
    // With more than one process of an NF the whole is another one, of which nothing is known.
    let parts = Costs { whole: None, has_ring: costs.has_ring && costs.whole.is_none(), ..costs.clone() };
    let costs = if instances.iter().all(|count| *count == 1) { costs } else { &parts };
    let ns = |burst: usize| costs.ns_beside(burst);
    let of = |workers: usize, burst: usize| {
        let load = ask.frames / workers as f64;
        let busy = load / costs.carried(burst);
        let latency = costs.latency_ns(load, burst).map(|(even, _)| even);
        let in_time = |limit: Nanoseconds| latency.is_some_and(|ns| ns <= limit.0);
        (busy <= MOST_BUSY, ask.latency.is_none_or(in_time))
    };
    let bursts = || costs.bursts.iter().map(|cost| cost.burst);
    let find = |is_enough: &dyn Fn((bool, bool)) -> bool| {
        // None waits for a burst to fill, so the smallest that costs next to no more than the best one has most to
        // spare.
        let first = |workers: usize| {
            let enough = || bursts().filter(|burst| is_enough(of(workers, *burst)));
            let least_ns = enough().map(ns).fold(f64::INFINITY, f64::min);
            let near = enough().find(|burst| ns(*burst) <= least_ns * NEAR);
            near.map(|burst| (workers, burst))
        };
        // More workers never carry less: the least is between a power of two and the next.
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
    let utilization = costs.utilization(load, burst);
    let of_nfs =
        costs.nfs.iter().zip(&instances).map(|(nf, count)| *count as f64 * 1e9 / nf.ns / workers as f64);
    let capacity = of_nfs.fold(costs.carried(burst), f64::min);
    let (latency_ns, random_ns) = costs.latency_ns(load, burst).unwrap_or((f64::INFINITY, 0.0));
    let mut short = vec![];
    if carried.is_none() {
        let names = facts.one_worker.join("`, `");
        let more = (load / costs.carried(burst) / MOST_BUSY - 1.0) * 100.0;
        short.push(match names.as_str() {
            "" => format!("{MOST_WORKERS} workers do not carry it: {more:.0} % more is asked for"),
            names => format!(
                "`{names}` is one worker's, which carries {}pps at {:.0} %: {more:.0} % more is asked for; a chain without \
                 it can have several workers, and {} servers with a share of the flows each do",
                units::scaled(costs.carried(burst) * MOST_BUSY),
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
    let frequency = fits.then(|| lowest(ask, costs, load, burst, topology));
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
        latency_ns,
        random_ns,
        burst_ns: burst as f64 / load * 1e9,
        frequency,
    }
}

/// Workers that carry so many frames a second.
fn needed(frames: f64, costs: &Costs, burst: usize) -> usize {
    ((frames / (costs.carried(burst) * MOST_BUSY)).ceil() as usize).clamp(1, MOST_WORKERS)
}

/// Processes of an NF that carry so many frames a second.
fn instances(frames: f64, nf: &NfCost) -> usize {
    ((frames * nf.ns / 1e9 / MOST_BUSY).ceil() as usize).clamp(1, MOST_WORKERS)
}

/// The lowest frequency at which the load is carried and the latency kept.
fn lowest(ask: &Ask, costs: &Costs, load: f64, burst: usize, topology: &Topology) -> Frequency {
    let ghz = |khz: u64| khz as f64 / 1e6;
    let range = topology.frequency.as_ref().map(|frequency| (ghz(frequency.min_khz), ghz(frequency.max_khz)));
    let measured_ghz = match &topology.frequency {
        Some(frequency) => ghz(frequency.now_khz.unwrap_or(frequency.max_khz)),
        None => costs.cycles_per_ns,
    };
    // By hundredths of the frequency now.
    let holds = |percent: &u32| {
        let slower = costs.slower(100.0 / f64::from(*percent));
        let latency = slower.latency_ns(load, burst);
        load / slower.carried(burst) <= MOST_BUSY
            && slower
                .nfs
                .iter()
                .all(|nf| ask.frames / instances(ask.frames, nf) as f64 * nf.ns / 1e9 <= MOST_BUSY)
            && costs
                .nfs
                .iter()
                .zip(&slower.nfs)
                .all(|(now, then)| instances(ask.frames, now) == instances(ask.frames, then))
            && ask.latency.is_none_or(|limit| latency.is_some_and(|(even, _)| even <= limit.0))
    };
    let percent = (SLOWEST..=100).find(holds).unwrap_or(100);
    let least = measured_ghz * f64::from(percent) / 100.0;
    let ghz = range.map_or(least, |(min, _)| least.max(min));
    Frequency { ghz, measured_ghz, range_ghz: range }
}

#[cfg(test)]
mod tests;
