//! Measures the cost of a chain's packets at several burst sizes.
//!
//! The chain is offered more than it takes, through the same receive rings as when a plan is verified: the
//! costs include their clock reads and counts, as those of a NIC's driver would be. A chain without a port
//! that discards has no point where its output is counted; it runs in a closed loop, without rings. A chain
//! with NFs in processes is measured twice: stage by stage with probes in a closed loop, and as a whole
//! behind rings, which shows what the cores lose by passing packets to each other.

use super::Facts;
use super::cost::{BurstCost, Costs, NfCost, OpenLoop, Whole};
use crate::BenchError;
use crate::experiment::breakdown::{self, BreakdownOptions, Kind};
use crate::load::{Batching, ChainOptions, ChainUnderTest, DISTURBED, Observed, Offer, UnderTest};
use crate::machine::{Machine, Topology};
use crate::search::{Goal, Limits, search_one};
use crate::start::{Loaded, RunOptions, failed};
use crate::stats::{Quantiles, median};
use crate::trial::closed::{ClosedLoop, Window};
use crate::trial::{REPEATS, Trials, again};
use chain::{PortKind, Sink};
use element::StateScope;
use std::path::Path;
use traffic::FCS_BYTES;

/// Burst sizes that are measured and that a plan may choose.
pub const BURSTS: [usize; 5] = [4, 8, 16, 64, 256];
/// The burst sizes for chains with NFs in processes: fewer, because these measurements take longer.
const PROCESS_BURSTS: [usize; 3] = [16, 64, 256];
/// Capacity of a port's receive ring, in frames.
pub const RING: u64 = 1024;
/// A load in frames a second: more than any core takes.
const TOO_MANY: f64 = 500e6;
/// A load in frames a second: any chain carries it, and it is high enough that no worker or NF sleeps.
const FEW: f64 = 200_000.0;
/// The share of its throughput at which the latency of a slower chain is measured.
const LITTLE: f64 = 0.3;
/// Measurements of each point; the median counts.
const LOOKS: usize = 3;
/// The burst size at which it is measured what a load at a set rate costs.
const OPEN_BURST: usize = 64;
/// Width of the searches for the carried rate, as a share, and the trials that decide a load.
const OPEN_WIDTH: f64 = 0.03;
const OPEN_TRIALS: u32 = 3;
/// The lowest rate of such a search, as a share of that behind a full ring.
const LEAST_CARRIED: f64 = 0.02;
/// The most workers that are measured beside each other.
const MOST_BESIDE: usize = 8;
/// A search gives up after trials of this many seconds.
const PATIENCE_S: f64 = 120.0;

/// The results of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The costs of the chain's packets.
    pub costs: Costs,
    /// The facts that limit how the chain's flows can be spread over workers.
    pub facts: Facts,
    /// Average length of frames with FCS, in bytes.
    pub mean_bytes: f64,
    /// The share of the time in which something else had the core.
    pub disturbed: f64,
    /// Whether cores that share packets were far apart in a part of it.
    pub far: bool,
}

/// Measures the chain in a file at every burst size: three times each, for `seconds` each.
///
/// # Errors
/// When the chain has errors or no generated traffic, or no packets arrive.
pub fn measure(path: &Path, run: &RunOptions, seconds: f64) -> Result<Measured, BenchError> {
    let Some(cycles_per_ns) = worker::clock::cycles_per_ns() else {
        return Err(failed("this machine has no time stamp counter"));
    };
    let mut first = ClosedLoop::start(path, run)?;
    let Some(mean_bytes) = mean_bytes(&first) else {
        let told = "rates are planned for generated traffic: give a port `traffic = { … }`, as in \
                    examples/throughput/chain.toml";
        return Err(failed(told));
    };
    first.warm_up(first.warm_packets())?;
    let (facts, has_processes) = (facts(&first), first.processes > 0);
    drop(first);
    if has_processes {
        return beside_processes(path, run, seconds, (facts, mean_bytes));
    }
    let has_ring = discards(path)?;
    let (mut bursts, mut disturbed, mut spread) = (vec![], vec![], Quantiles::single(1.0));
    for burst in BURSTS {
        let run = RunOptions { burst, ..run.clone() };
        let looks = match has_ring {
            true => behind_ring(path, run, seconds)?.1,
            false => closed(path, &run, seconds)?,
        };
        disturbed.extend(looks.iter().map(|look| look.disturbed));
        spread = wider(spread, &looks);
        bursts.extend(median(looks.iter().map(|look| look.ns)).map(|ns| BurstCost { burst, ns }));
    }
    let open = match has_ring {
        true => open_loop(path, run, seconds, (spread, facts.one_worker.is_empty()))?,
        false => None,
    };
    let mode = run.shape.unwrap_or_default().name();
    let costs = Costs { has_ring, open, ..Costs::new(mode, bursts, vec![], cycles_per_ns) };
    let disturbed = median(disturbed).unwrap_or(0.0);
    Ok(Measured { costs, facts, mean_bytes, disturbed, far: false })
}

/// One measurement of a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Look {
    /// Nanoseconds per packet, of the time that the worker had its core.
    pub ns: f64,
    /// The share of the time in which something else had the worker's core.
    pub disturbed: f64,
    /// Whether the cores that share packets were far apart.
    pub is_far: bool,
}

/// Offers more than the chain takes, for `seconds`, and measures the cost of a packet.
pub(super) fn flood(under_test: &mut dyn UnderTest, seconds: f64) -> Result<Look, BenchError> {
    let offer = Offer::even(TOO_MANY, seconds);
    let (observed, _) = again(REPEATS, || under_test.offer(&offer), |observed| observed.is_far)?;
    let taken = observed.arrived.saturating_sub(observed.missed);
    if taken == 0 {
        return Err(failed("no packets came while it was measured"));
    }
    // Steal time is counted in ticks of 10 ms, so the reported share can exceed the real one.
    let disturbed = observed.disturbed.clamp(0.0, 0.5);
    let ns = seconds * 1e9 * (1.0 - disturbed) / taken as f64;
    Ok(Look { ns, disturbed, is_far: observed.is_far })
}

/// Looks at a chain behind rings that are always full; the chain runs on.
fn behind_ring(
    path: &Path,
    run: RunOptions,
    seconds: f64,
) -> Result<(ChainUnderTest, Vec<Look>), BenchError> {
    let options = ChainOptions { run, ring: RING, batching: Batching::Adaptive, parts: false };
    let mut under_test = ChainUnderTest::start(path, &options)?;
    let looks: Result<Vec<Look>, _> = (0..LOOKS).map(|_| flood(&mut under_test, seconds)).collect();
    Ok((under_test, looks?))
}

/// A spread of costs that has these looks in it, too, as multiples of their median.
fn wider(spread: Quantiles, looks: &[Look]) -> Quantiles {
    let own = Quantiles::of(looks.iter().map(|look| look.ns)).filter(|own| own.median > 0.0);
    own.map_or(spread, |own| Quantiles {
        median: 1.0,
        min: spread.min.min(own.min / own.median),
        max: spread.max.max(own.max / own.median),
    })
}

/// Measures what a load at a set rate costs: the rate that a search finds, of that behind a full ring just
/// before it, and, where flows can be spread, the cost of packets to several workers at once. `None` where something
/// else had the core in most trials of each search: what is lost then is not the chain's to carry.
fn open_loop(
    path: &Path,
    run: &RunOptions,
    seconds: f64,
    (looks, is_spread): (Quantiles, bool),
) -> Result<Option<OpenLoop>, BenchError> {
    let run = RunOptions { burst: OPEN_BURST, ..run.clone() };
    let (mut under_test, alone) = behind_ring(path, run.clone(), seconds)?;
    let goal = Goal { width: OPEN_WIDTH, ..Goal::PDR.quick(seconds, OPEN_TRIALS) };
    let mut shares = vec![];
    for _ in 0..LOOKS {
        let full = 1e9 / flood(&mut under_test, seconds)?.ns.max(1e-3);
        let limits = Limits { least: full * LEAST_CARRIED, most: full * 1.2, patience_s: PATIENCE_S };
        let mut trials = Trials::new(&mut under_test).once();
        let found = search_one(goal, &limits, &mut trials)?;
        if 2 * trials.tally.disturbed <= trials.tally.trials {
            shares.push((found.carried() / full).max(LEAST_CARRIED));
        }
    }
    drop(under_test);
    let Some(carried) = Quantiles::of(shares) else { return Ok(None) };
    let alone = median(alone.iter().map(|look| look.ns)).unwrap_or(1.0).max(1e-3);
    let mut beside = vec![];
    if is_spread {
        let cores = cores_beside(run.cores.first().copied());
        let mut counts = vec![2, cores.len().min(MOST_BESIDE)];
        counts.dedup();
        for count in counts.into_iter().filter(|count| (2..=cores.len()).contains(count)) {
            let cores: Vec<usize> = cores.iter().copied().take(count).collect();
            let slots = run.slots.saturating_add(count as u32 * RING as u32);
            let (_, looks) = behind_ring(path, RunOptions { cores, slots, ..run.clone() }, seconds)?;
            // All workers together take a packet in this time.
            let looks = looks.iter().filter(|look| look.disturbed <= DISTURBED && !look.is_far);
            let each = looks.map(|look| (look.ns * count as f64 / alone).max(1.0));
            beside.extend(Quantiles::of(each).map(|times| (count, times)));
        }
    }
    Ok(Some(OpenLoop { carried, beside, looks }))
}

/// The cores that workers take beside a first one: a thread of each physical core of its socket.
fn cores_beside(first: Option<usize>) -> Vec<usize> {
    let topology = Topology::look(&Machine::look().cores);
    let own = |cpu: usize| topology.cores.iter().find(|core| core.threads.contains(&cpu));
    let socket = first.and_then(own).or(topology.cores.first()).map(|core| core.socket);
    let others = topology.cores.iter().filter(|core| Some(core.socket) == socket);
    let others = others.filter(|core| first.is_none_or(|cpu| !core.threads.contains(&cpu)));
    first.into_iter().chain(others.filter_map(|core| core.threads.first().copied())).collect()
}

/// Measures a chain with NFs in processes as a whole, at several burst sizes. Also returns the largest share
/// of the time in which something else had a core, and whether cores were far apart.
fn as_whole(path: &Path, run: &RunOptions, seconds: f64) -> Result<(Whole, (f64, bool)), BenchError> {
    let (mut bursts, mut latencies, mut disturbed, mut far) = (vec![], vec![], 0.0f64, false);
    let mut load = FEW;
    for burst in PROCESS_BURSTS {
        let run = RunOptions { burst, ..run.clone() };
        let (mut under_test, looks) = behind_ring(path, run, seconds)?;
        let ns = median(looks.iter().map(|look| look.ns)).unwrap_or(0.0);
        load = load.min(1e9 / ns.max(1.0) * LITTLE);
        let mut trials = Trials::new(&mut under_test);
        let seen = (0..LOOKS).map(|_| trials.offer(&Offer::sampled(load, seconds)));
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        far |= looks.iter().any(|look| look.is_far) || seen.iter().any(|observed| observed.is_far);
        disturbed = looks.iter().map(|look| look.disturbed).fold(disturbed, f64::max);
        bursts.push(BurstCost { burst, ns });
        let timed = seen.iter().filter_map(Observed::latency);
        latencies.extend(timed.map(|latency| latency.value_at_quantile(0.5) as f64));
    }
    // At a low load the burst size makes no difference, so one median covers all of them.
    let latency_ns = median(latencies).ok_or_else(|| failed("no frame that went through has a stamp"))?;
    Ok((Whole { bursts, latency_ns, load, slowest: None }, (disturbed, far)))
}

/// Measures a chain in a closed loop: its ports always have packets.
fn closed(path: &Path, run: &RunOptions, seconds: f64) -> Result<Vec<Look>, BenchError> {
    let chain = ClosedLoop::warmed_up(path, run)?;
    let look = |look: Window| Look { ns: look.ns_per_packet(), disturbed: look.disturbed(), is_far: false };
    (0..LOOKS).map(|_| chain.watch(seconds).map(look)).collect()
}

/// Whether a port of the chain discards the packets that it is sent.
fn discards(path: &Path) -> Result<bool, BenchError> {
    let chain = Loaded::read(path)?.chain;
    Ok(chain.ports.iter().any(|port| matches!(&port.kind, PortKind::Local(_, Sink::Discard))))
}

/// Measures a chain with NFs in processes: the cost to the worker, and the time that each process ran per
/// packet.
fn beside_processes(
    path: &Path,
    run: &RunOptions,
    seconds: f64,
    (facts, mean_bytes): (Facts, f64),
) -> Result<Measured, BenchError> {
    let (mut bursts, mut nfs, mut cycles_per_ns) = (vec![], Vec::<NfCost>::new(), 1.0);
    let (mut disturbed, mut far) = (0.0f64, false);
    for burst in PROCESS_BURSTS {
        let run = RunOptions { burst, ..run.clone() };
        let found = breakdown::measure(path, &BreakdownOptions { run, seconds, rounds: LOOKS })?;
        (cycles_per_ns, disturbed) = (found.cycles_per_ns, disturbed.max(found.disturbed));
        far |= found.far > 0;
        let busy = (found.sum.median - found.cycles(Kind::Waiting)).max(1.0);
        bursts.push(BurstCost { burst, ns: busy / found.cycles_per_ns });
        for stage in found.stages.iter().filter(|stage| stage.kind == Kind::InNf) {
            match nfs.iter_mut().find(|nf| nf.name == stage.name) {
                // The least time counts: the rest was polling for packets.
                Some(nf) => nf.ns = nf.ns.min(stage.ns),
                None => nfs.push(NfCost { name: stage.name.clone(), ns: stage.ns }),
            }
        }
    }
    let mut costs = Costs::new(run.shape.unwrap_or_default().name(), bursts, nfs, cycles_per_ns);
    if discards(path)? {
        let (mut whole, (had, was_far)) = as_whole(path, run, seconds)?;
        (disturbed, far) = (disturbed.max(had), far || was_far);
        settle(&mut costs, &mut whole);
        (costs.has_ring, costs.whole) = (true, Some(whole));
        // Workers of chains with processes share those: what several carry is not measured.
        costs.open = open_loop(path, run, seconds, (Quantiles::single(1.0), false))?;
    }
    Ok(Measured { costs, facts, mean_bytes, disturbed, far })
}

/// Gives the slowest part of the chain the cost of the whole: the NF whose process ran longest per packet,
/// unless the worker takes longer.
fn settle(costs: &mut Costs, whole: &mut Whole) {
    let least = |bursts: &[BurstCost]| bursts.iter().map(|cost| cost.ns).fold(f64::INFINITY, f64::min);
    let (of_whole, of_worker) = (least(&whole.bursts), least(&costs.bursts));
    let slowest = costs.nfs.iter_mut().max_by(|one, other| one.ns.total_cmp(&other.ns));
    if let Some(slowest) = slowest.filter(|nf| nf.ns > of_worker) {
        slowest.ns = of_whole;
        whole.slowest = Some(slowest.name.clone());
    }
}

/// Average length of the generated frames with FCS, in bytes; `None` where the chain generates none.
fn mean_bytes(chain: &ClosedLoop) -> Option<f64> {
    let frames = || chain.frames.iter().flat_map(|frames| frames.iter());
    let count = frames().count();
    let bytes: usize = frames().map(<[u8]>::len).sum();
    (count > 0).then(|| bytes as f64 / count as f64 + f64::from(FCS_BYTES))
}

/// Finds the facts that limit how a chain's flows can be spread over workers.
fn facts(chain: &ClosedLoop) -> Facts {
    let report = chain.running().report();
    let is_one = |class: &str| {
        runtime::registry::find(class).is_some_and(|class| class.state == StateScope::OneWorker)
    };
    // An element that receives less than 1 % of the packets does not limit the chain.
    let most = report.received() / 100;
    let nodes =
        report.nodes.into_iter().filter(|node| is_one(&node.class) && node.input.max(node.received) > most);
    Facts { one_worker: nodes.map(|node| node.name).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;
    use runtime::traffic::Change;

    fn chain(ports: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chain.toml");
        let text = format!(
            "links = [\"in -> [0]nf[1] -> out\"]\n[ports]\n{ports}\nout = {{ discard = true }}\n[nf.nf]\n\
             inline = \"FromDevice(0) -> Counter -> ToDevice(1);\"\n"
        );
        std::fs::write(&path, text).expect("written");
        (folder, path)
    }

    fn run(size: Option<&str>) -> RunOptions {
        let change =
            Change { size: size.map(|size| size.parse().expect("a size")), flows: None, ..Change::default() };
        RunOptions {
            burst: 32,
            cores: vec![0],
            slots: 8192,
            shape: Some(Shape::Modular),
            change,
            ..RunOptions::default()
        }
    }

    #[test]
    fn every_burst_has_its_cost_and_larger_ones_no_more() {
        let (_folder, path) = chain("in = { traffic = { flows = 50, size = \"64\" } }");
        let found = measure(&path, &run(Some("imix")), 0.02).expect("figures");
        let bursts: Vec<usize> = found.costs.bursts.iter().map(|cost| cost.burst).collect();
        assert_eq!((bursts.as_slice(), found.costs.has_ring), (&BURSTS[..], true));
        assert!(found.costs.packet_ns > 0.0 && found.facts.one_worker.is_empty(), "{found:?}");
        // IMIX has 7 frames of 64, 4 of 594 and 1 of 1518 bytes: 361.8 on average; the sizes are drawn at
        // random.
        assert!((found.mean_bytes - 361.8).abs() < 40.0, "{}", found.mean_bytes);
        // Where something else has the core all the time, it is not known what a load at a set rate costs.
        if let Some(open) = &found.costs.open {
            assert!(open.carried.min >= LEAST_CARRIED && open.carried.max <= 1.2 * 1.01, "{open:?}");
            assert!(open.beside.iter().all(|(count, times)| *count > 1 && times.min >= 1.0), "{open:?}");
            assert!(open.looks.min <= 1.0 && open.looks.max >= 1.0, "{open:?}");
        }
    }

    #[test]
    fn a_chain_that_discards_nothing_is_measured_in_a_closed_loop() {
        let (folder, path) = chain("in = { traffic = { flows = 50, size = \"64\" } }");
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(&path, text.replace("{ discard = true }", "{ write = \"out.pcap\" }"))
            .expect("written");
        let found = measure(&path, &run(None), 0.02).expect("figures");
        assert!(!found.costs.has_ring && found.costs.packet_ns > 0.0, "{found:?}");
        drop(folder);
    }

    #[test]
    fn a_chain_without_made_up_traffic_is_refused() {
        let (folder, path) = chain("in = { capture = \"in.pcap\" }");
        let frames: [(u64, &[u8]); 1] = [(0, &[0; 60])];
        let mut file = std::fs::File::create(folder.path().join("in.pcap")).expect("created");
        // Magic number, version 2.4, Ethernet; one record.
        let head = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1];
        use std::io::Write;
        head.iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("written"));
        for (_, frame) in frames {
            [0, 0, 60, 60u32].iter().for_each(|word| file.write_all(&word.to_le_bytes()).expect("written"));
            file.write_all(frame).expect("written");
        }
        let error = measure(&path, &run(None), 0.02).expect_err("refused").to_string();
        assert!(error.contains("generated traffic"), "{error}");
    }
}
