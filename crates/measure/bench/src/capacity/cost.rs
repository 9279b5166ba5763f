//! The cost of a chain's packets, and the throughput and latency that follow for a load.
//!
//! A worker polls: in each turn it takes what has arrived, up to a burst, and processes it. A turn with `n`
//! packets takes `h + a·n`: `h` for the turn and `a` for each packet. At a load of `λ` packets a second it
//! settles where as many packets arrive in a turn as the turn processes: `n = λ·(h + a·n)`. A turn then takes
//! `C = h/(1 − λ·a)`, and at least the time of a turn with one packet. This is a queue with gated service and
//! switch-over time `h` (H. Takagi, Queueing analysis of polling models, ACM Computing Surveys 20(1), 1988).
//! A packet waits half a turn until the worker takes it, and leaves with its burst, a turn later: `1.5·C` on
//! average where arrivals are even. Where arrivals are random, the wait of an M/D/1 queue is added:
//! `λ·a²/(2·(1 − λ·a))` (Pollaczek and Khinchine).
//!
//! With bursts of up to `b` packets a worker carries `b/(h + a·b)` from a ring that is always full. Larger
//! bursts carry more and delay nothing: a worker never waits for a burst to fill.
//!
//! A load that arrives at a set rate is carried up to a lower rate: the ring has room for a thousand frames,
//! and what arrives while a worker is held up is lost. Workers beside each other take longer for a packet
//! than one alone, for caches and memory that they share. [`OpenLoop`] has both as measured, and a plan
//! counts a packet as that much more ([`Costs::times`]).

use crate::stats::Quantiles;
use serde::Serialize;

/// A worker that finds no packets for about this long sleeps ([`worker`]): after 200 turns of spinning and
/// 200 of yielding.
const SLEEPS_AFTER_NS: f64 = 100_000.0;
/// How long a packet waits for a worker that sleeps, on average: half of the shortest sleep, plus the timer
/// slack of Linux (`PR_SET_TIMERSLACK` in prctl(2)).
const SLEEP_NS: f64 = 100_000.0;
/// The same limit of an NF in a process, which sleeps sooner (after 80 polls, most of them with a yield) and
/// is woken by its host ([`nf::Link`]).
const NF_SLEEPS_AFTER_NS: f64 = 20_000.0;
/// How long it takes to put an NF in a process to sleep and to wake it.
const NF_WAKE_NS: f64 = 50_000.0;

/// The cost of a packet to a worker, at one burst size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BurstCost {
    /// Burst size, in packets.
    pub burst: usize,
    /// Nanoseconds per packet.
    pub ns: f64,
}

/// The cost of a packet to an NF in a process of its own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NfCost {
    /// The name of the NF.
    pub name: String,
    /// Nanoseconds per packet: an upper bound, the time that its process ran.
    pub ns: f64,
}

/// The cost of a whole chain with one process for each NF. It is more than the sum of its parts, because
/// packets move between cores.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Whole {
    /// Nanoseconds from packet to packet with a receive ring that is always full.
    pub bursts: Vec<BurstCost>,
    /// Latency of a frame at `load`, which is far below what the chain carries, in nanoseconds.
    pub latency_ns: f64,
    /// The load at which `latency_ns` was measured, in frames a second.
    pub load: f64,
    /// The NF that limits the whole chain: its cost is that of the whole. `None` where a worker is the limit.
    pub slowest: Option<String>,
}

impl Whole {
    /// Nanoseconds from packet to packet: as measured, or the least measured cost where the burst size was
    /// not measured.
    fn ns(&self, burst: usize) -> f64 {
        let least = |most: f64, cost: &BurstCost| most.min(cost.ns);
        let exact = self.bursts.iter().find(|cost| cost.burst == burst);
        exact.map_or_else(|| self.bursts.iter().fold(f64::INFINITY, least), |cost| cost.ns)
    }
}

/// What a load costs that arrives at a set rate, and how sure costs are. All values are multiples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OpenLoop {
    /// The rate that is carried with half a percent of loss, of that behind a ring that is always full.
    pub carried: Quantiles,
    /// For numbers of workers at once, in ascending order: the cost of a packet to each, of that to one
    /// alone.
    pub beside: Vec<(usize, Quantiles)>,
    /// The cost of a packet in single measurements, of the median that counts.
    pub looks: Quantiles,
}

impl OpenLoop {
    /// How much more a packet costs each of so many workers: as measured with as many, otherwise with the
    /// next larger number, or the largest.
    fn beside(&self, workers: usize) -> Quantiles {
        let alone = Quantiles::single(1.0);
        if workers < 2 {
            return alone;
        }
        let next = self.beside.iter().find(|(count, _)| *count >= workers);
        next.or(self.beside.last()).map_or(alone, |(_, times)| *times)
    }
}

/// The measured cost of a chain's packets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Costs {
    /// The execution mode of the NFs in this process: `modular`, `whole`, `fused` or `cached`.
    pub mode: String,
    /// Whether packets came from a receive ring, which costs about as much as a NIC's; otherwise ports
    /// generated packets as fast as the worker took them.
    pub has_ring: bool,
    /// The measured costs, in ascending order of the burst size.
    pub bursts: Vec<BurstCost>,
    /// Nanoseconds of a turn without packets (`h` above), fitted to `bursts`.
    pub turn_ns: f64,
    /// Nanoseconds of each packet (`a` above), fitted to `bursts`.
    pub packet_ns: f64,
    /// The costs of the NFs in processes of their own.
    pub nfs: Vec<NfCost>,
    /// The cost of the whole chain, where it has such NFs and was measured as a whole.
    pub whole: Option<Whole>,
    /// What a load at a set rate costs beside these costs, where it was measured.
    pub open: Option<OpenLoop>,
    /// Ticks of the time stamp counter in a nanosecond.
    pub cycles_per_ns: f64,
}

impl Costs {
    /// Fits the costs of a turn and of a packet to `bursts`, which has at least one entry.
    pub fn new(mode: &str, mut bursts: Vec<BurstCost>, nfs: Vec<NfCost>, cycles_per_ns: f64) -> Costs {
        bursts.sort_by_key(|cost| cost.burst);
        let (turn_ns, packet_ns) = fit(&bursts);
        Costs {
            mode: mode.into(),
            has_ring: false,
            bursts,
            turn_ns,
            packet_ns,
            nfs,
            whole: None,
            open: None,
            cycles_per_ns,
        }
    }

    /// Nanoseconds per packet at a burst size: as measured, otherwise from the fitted turn and packet.
    pub fn ns(&self, burst: usize) -> f64 {
        let exact = self.bursts.iter().find(|cost| cost.burst == burst);
        exact.map_or(self.packet_ns + self.turn_ns / burst.max(1) as f64, |cost| cost.ns)
    }

    /// Nanoseconds from packet to packet with one process for each NF: those of the whole chain where they
    /// are more than a worker's.
    pub fn ns_beside(&self, burst: usize) -> f64 {
        self.whole.as_ref().map_or(0.0, |whole| whole.ns(burst)).max(self.ns(burst))
    }

    /// Frames a second that the whole chain carries, limited by [`Costs::ns_beside`].
    pub fn carried(&self, burst: usize) -> f64 {
        1e9 / self.ns_beside(burst)
    }

    /// By how much more than [`Costs::ns`] a packet counts that arrives at a set rate, to each of so many
    /// workers: the median, and the range by the spread of the measurements. 1 where it was not measured.
    pub fn times(&self, workers: usize) -> Quantiles {
        let Some(open) = &self.open else { return Quantiles::single(1.0) };
        let (beside, carried, looks) = (open.beside(workers), open.carried, open.looks);
        // A ring that is always full is the most that is carried: what seems more is the spread of
        // measurements.
        let of =
            |beside: f64, looks: f64, carried: f64| beside * looks / carried.clamp(f64::MIN_POSITIVE, 1.0);
        let median = of(beside.median, 1.0, carried.median);
        let min = of(beside.min, looks.min, carried.max).min(median);
        Quantiles { median, min, max: of(beside.max, looks.max, carried.min).max(median) }
    }

    /// The part of [`Costs::times`] that is for the other workers.
    pub(super) fn beside(&self, workers: usize) -> f64 {
        self.open.as_ref().map_or(1.0, |open| open.beside(workers).median)
    }

    /// Frames a second that each of so many workers carries, limited by [`Costs::ns_beside`] and by what a
    /// load at a set rate costs.
    pub fn carried_by(&self, workers: usize, burst: usize) -> f64 {
        self.carried(burst) / self.times(workers).median
    }

    /// Frames a second that a worker carries at a burst size.
    pub fn capacity(&self, burst: usize) -> f64 {
        1e9 / self.ns(burst)
    }

    /// The share of its time that each of so many workers processes packets at a load. In the rest it polls.
    pub fn utilization(&self, workers: usize, load: f64, burst: usize) -> f64 {
        load * self.ns(burst) * self.times(workers).median / 1e9
    }

    /// Latency of a frame at a load, in nanoseconds: with even arrivals, and the additional wait with random
    /// arrivals. `None` where the chain does not carry the load.
    pub fn latency_ns(&self, load: f64, burst: usize) -> Option<(f64, f64)> {
        let per_ns = load / 1e9;
        let busy = per_ns * self.packet_ns;
        if per_ns * self.ns(burst) >= 1.0 || busy >= 1.0 {
            return None;
        }
        let asleep = if 1.0 / per_ns > SLEEPS_AFTER_NS { SLEEP_NS } else { 0.0 };
        let wake = if 1.0 / per_ns > NF_SLEEPS_AFTER_NS { NF_WAKE_NS } else { 0.0 };
        let random = per_ns * self.packet_ns.powi(2) / (2.0 * (1.0 - busy));
        if let Some(whole) = &self.whole {
            // Latency grows with the load like the turns of one worker.
            let left = |load: f64| (1.0 - load * whole.ns(burst) / 1e9).max(0.0);
            let grown = whole.latency_ns * left(whole.load) / left(load).max(f64::MIN_POSITIVE);
            // At the load of the measurement they may have slept: the measured latency then includes that.
            let gap = 1e9 / whole.load;
            let wake = if gap > NF_SLEEPS_AFTER_NS { 0.0 } else { wake * self.nfs.len() as f64 };
            let asleep = if gap > SLEEPS_AFTER_NS { 0.0 } else { asleep };
            let even = grown.max(whole.latency_ns) + wake + asleep;
            return (left(load) > 0.0).then_some((even, random));
        }
        let (packets, turn) = self.turn(per_ns);
        let even = match packets > 1.0 {
            true => 1.5 * turn,
            // The packet is taken at once; the poll before it was an empty turn.
            false => self.turn_ns / 2.0 + turn,
        };
        // Each NF in a process has turns of its own, and the worker collects its completions in one more
        // turn.
        let nfs: f64 = self.nfs.iter().map(|nf| 1.5 * (nf.ns * packets + turn) + wake).sum();
        Some((even + nfs + asleep, random))
    }

    /// Average latency of a frame at a very low load, with a worker that does not sleep, in nanoseconds.
    pub fn least_latency_ns(&self) -> f64 {
        if let Some(whole) = &self.whole {
            return whole.latency_ns;
        }
        let nfs: f64 = self.nfs.iter().map(|nf| 1.5 * (nf.ns + self.turn_ns + self.packet_ns)).sum();
        1.5 * self.turn_ns + self.packet_ns + nfs
    }

    /// The number of packets in a turn, and its length in nanoseconds.
    fn turn(&self, per_ns: f64) -> (f64, f64) {
        let packets = (per_ns * self.turn_ns / (1.0 - per_ns * self.packet_ns)).max(1.0);
        (packets, self.turn_ns + self.packet_ns * packets)
    }

    /// The costs on a core that is `times` as slow. Memory accesses do not get slower with the core, so this
    /// is an upper bound.
    #[must_use]
    pub fn slower(&self, times: f64) -> Costs {
        let burst = |cost: &BurstCost| BurstCost { ns: cost.ns * times, ..*cost };
        let nf = |nf: &NfCost| NfCost { ns: nf.ns * times, ..nf.clone() };
        Costs {
            bursts: self.bursts.iter().map(burst).collect(),
            turn_ns: self.turn_ns * times,
            packet_ns: self.packet_ns * times,
            nfs: self.nfs.iter().map(nf).collect(),
            whole: self.whole.as_ref().map(|whole| Whole {
                bursts: whole.bursts.iter().map(burst).collect(),
                latency_ns: whole.latency_ns * times,
                ..whole.clone()
            }),
            ..self.clone()
        }
    }
}

/// The costs of a turn and of a packet that fit the measured ones best, by least squares of relative errors.
fn fit(bursts: &[BurstCost]) -> (f64, f64) {
    // y = a + h·x with x = 1/burst, each weighted by 1/y².
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for cost in bursts.iter().filter(|cost| cost.ns > 0.0) {
        let (x, y) = (1.0 / cost.burst.max(1) as f64, cost.ns);
        let weight = 1.0 / (y * y);
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let spread = w * wxx - wx * wx;
    let turn = if spread > f64::EPSILON * w * wxx { (w * wxy - wx * wy) / spread } else { 0.0 };
    // With noise the fitted cost of a turn may be 0; that of a packet stays above 0.
    let turn = turn.clamp(0.0, wy / wx.max(f64::MIN_POSITIVE));
    let packet = (wy - turn * wx) / w.max(f64::MIN_POSITIVE);
    (turn, packet.max(1e-3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(turn: f64, packet: f64) -> Costs {
        let cost = |burst: usize| BurstCost { burst, ns: packet + turn / burst as f64 };
        Costs::new("modular", [64, 1, 8, 256].map(cost).to_vec(), vec![], 2.0)
    }

    /// Simulates the turns of a worker; returns the average latency of frames that arrive evenly, in
    /// nanoseconds.
    fn simulate(costs: &Costs, load: f64, burst: usize) -> f64 {
        let (gap, mut now, mut next, mut sum, mut count) = (1e9 / load, 0.0, 0u64, 0.0, 0.0);
        while count < 50_000.0 {
            let waiting = ((now / gap) as u64 + 1).saturating_sub(next).min(burst as u64);
            let end = now + costs.turn_ns + costs.packet_ns * waiting as f64;
            for frame in next..next + waiting {
                sum += end - frame as f64 * gap;
                count += 1.0;
            }
            (next, now) = (next + waiting, end);
        }
        sum / count
    }

    #[test]
    fn turns_and_packets_are_told_apart() {
        let costs = exact(80.0, 50.0);
        assert!((costs.turn_ns - 80.0).abs() < 1e-6 && (costs.packet_ns - 50.0).abs() < 1e-6, "{costs:?}");
        assert_eq!((costs.ns(8), costs.ns(256)), (60.0, 50.3125));
        assert!((costs.ns(16) - 55.0).abs() < 1e-6);
        assert!((costs.capacity(8) - 1e9 / 60.0).abs() < 1e-3);
        let one = Costs::new("fused", vec![BurstCost { burst: 64, ns: 40.0 }], vec![], 2.0);
        assert_eq!((one.turn_ns, one.packet_ns), (0.0, 40.0));
    }

    #[test]
    fn latency_is_that_of_turns_one_after_the_other() {
        let costs = exact(400.0, 50.0);
        for load in [1e6, 4e6, 8e6, 12e6, 15e6, 17e6] {
            let (even, _) = costs.latency_ns(load, 256).expect("carried");
            let found = simulate(&costs, load, 256);
            assert!((even / found - 1.0).abs() < 0.35, "{load}: {even} against {found}");
        }
        assert_eq!(costs.latency_ns(21e6, 256), None);
        assert_eq!(costs.latency_ns(17e6, 8), None, "bursts of 8 do not carry it");
        assert!(costs.latency_ns(1e3, 8).expect("carried").0 > SLEEP_NS, "it sleeps in between");
        // The wait in an M/D/1 queue at half load is half of the service time.
        let (_, random) = costs.latency_ns(10e6, 256).expect("carried");
        assert!((random - 25.0).abs() < 1e-9);
    }

    #[test]
    fn nfs_in_processes_take_time() {
        let alone = exact(400.0, 50.0);
        let nf = NfCost { name: "nf".into(), ns: 100.0 };
        let beside = Costs { nfs: vec![nf], ..alone.clone() };
        assert!(beside.latency_ns(1e6, 32) > alone.latency_ns(1e6, 32));
        assert_eq!(beside.slower(2.0).nfs[0].ns, 200.0);
        let (rare, often) = (beside.latency_ns(2e4, 32), beside.latency_ns(1e5, 32));
        let ns = |latency: Option<(f64, f64)>| latency.expect("carried").0;
        assert!(ns(rare) > ns(often) + 0.9 * NF_WAKE_NS, "{rare:?} and {often:?}: it sleeps, and is woken");
        assert!(beside.least_latency_ns() > alone.least_latency_ns());
    }

    #[test]
    fn a_load_at_a_set_rate_costs_more_than_a_full_ring() {
        let full = exact(80.0, 50.0);
        assert_eq!(full.times(2), Quantiles::single(1.0));
        let range = |min: f64, median: f64, max: f64| Quantiles { median, min, max };
        let open = OpenLoop {
            carried: range(0.5, 0.8, 1.1),
            beside: vec![(2, range(1.1, 1.25, 1.5)), (4, Quantiles::single(2.0))],
            looks: range(0.9, 1.0, 1.2),
        };
        let costs = Costs { open: Some(open), ..full.clone() };
        let near = |found: Quantiles, median: f64, min: f64, max: f64| {
            let pairs = [(found.median, median), (found.min, min), (found.max, max)];
            assert!(pairs.iter().all(|(one, other)| (one - other).abs() < 1e-9), "{found:?}");
        };
        near(costs.times(1), 1.25, 0.9, 2.4);
        near(costs.times(2), 1.25 / 0.8, 1.1 * 0.9, 1.5 * 1.2 / 0.5);
        // With three workers as with four, and with more than were measured as with the most.
        near(costs.times(3), 2.5, 1.8, 4.8);
        assert_eq!(costs.times(9), costs.times(4));
        assert!((costs.carried_by(1, 8) - full.carried(8) * 0.8).abs() < 1e-3);
        assert!((costs.utilization(1, 1e6, 8) - full.utilization(1, 1e6, 8) * 1.25).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn any_figures_make_sense(figures in proptest::collection::vec((1usize..=256, 0.1..1e6f64), 1..8), load in 1.0..1e9f64) {
            let bursts = figures.into_iter().map(|(burst, ns)| BurstCost { burst, ns }).collect();
            let costs = Costs::new("cached", bursts, vec![], 2.0);
            prop_assert!(costs.turn_ns >= 0.0 && costs.packet_ns > 0.0, "{:?}", costs);
            if let Some((even, random)) = costs.latency_ns(load, 64) {
                prop_assert!(even.is_finite() && even > 0.0 && random >= 0.0);
            }
        }
    }
}
