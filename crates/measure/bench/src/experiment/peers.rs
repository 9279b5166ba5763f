//! Compares Millrace with other systems: the same frames, ports and cores in one run, by turns.
//!
//! Each turn creates two veth cables, starts a system between them, warms it up, searches for the rate that
//! it carries with up to half a percent of loss (RFC 9971's PDR, with short trials), and measures latency at
//! a low rate. The tester has one core and the system another. The kernel also processes what the system's
//! devices receive on the system's core. First the tester's own limit is measured, on a cable without a
//! system: no higher rate can be observed.

use super::lab::{Effort, sentence_of};
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure, Origin, Point, Series, Skipped};
use crate::load::{Offer, UnderTest};
use crate::peer::{Bench, BenchOptions, Missing, Peer};
use crate::search::{Goal, GoalResult, Limits, Measurer, Trial, search_one};
use crate::start::failed;
use crate::stats::{Quantiles, histogram, median};
use crate::trial::{Order, Trials, by_turns};
use crate::units::counted;
use crate::wire::devices::Means;
use crate::wire::{Devices, Wire, WireOptions};
use hdrhistogram::Histogram;
use port::FrameSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traffic::{SizeMix, TrafficSpec};

/// Trials that decide whether a load is carried; up to half of them may be worse.
const TRIALS: u32 = 3;
/// The relative width of a search's result.
const WIDTH: f64 = 0.04;
/// The lowest load, in frames a second.
const LEAST: f64 = 2_000.0;
/// A turn's search gives up after trials of this many seconds.
const PATIENCE_S: f64 = 60.0;
/// The load at which the tester's own limit is measured, in frames a second: more than it can send.
const TOO_MANY: f64 = 20e6;
/// The highest load, as a share of the tester's own limit.
const HEADROOM: f64 = 0.97;
/// A trial in which the tester sent less than this share of the due frames shows the tester's limit, not the
/// system's.
const OFFERED: f64 = 0.995;

/// A tester that has its core to itself sends nearly all frames within this time after they are due.
const LATE_NS: u64 = 500_000;

/// How to compare systems.
#[derive(Clone, PartialEq, Debug)]
pub struct PeersOptions {
    /// The systems.
    pub peers: Vec<Peer>,
    /// Turns of each system.
    pub rounds: usize,
    /// Length of a full trial, in seconds.
    pub trial_s: f64,
    /// Frame size in bytes, with FCS.
    pub size: u16,
    /// Number of flows.
    pub flows: u64,
    /// The load of the latency measurement in frames a second, and its length in seconds.
    pub latency: (f64, f64),
    /// The tester's core.
    pub tester_core: usize,
    /// The system's core.
    pub core: usize,
    /// How the tester reaches its devices.
    pub means: Means,
    /// This program, for adapters that run it.
    pub millrace: PathBuf,
    /// The command that repeats the measurement.
    pub command: String,
}

impl PeersOptions {
    /// How often is measured and for how long. Trials that are shorter than those of [`Effort::FULL`] are quick.
    fn sentence(&self) -> String {
        let PeersOptions { trial_s, latency: (_, latency_s), .. } = self;
        let rounds = counted(self.rounds, "round");
        let measured =
            format!("{rounds} with trials of {trial_s} s for the rate and {latency_s} s for latency");
        sentence_of(*trial_s < Effort::FULL.trial_s, &measured)
    }
}

/// Measures the rate that each system carries, in Mpps, and its latency at a low rate, in microseconds.
///
/// # Errors
/// When the frames cannot be generated. The figures list what this machine cannot measure.
pub fn peers_and_latency(
    options: &PeersOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<(Figure, Figure), BenchError> {
    let frames = Arc::new(frames(options)?);
    let mut run = Run { options, frames, devices: None, alone: None, systems: vec![] };
    let skipped = run.prepare(progress).err().map(|Missing(why)| why);
    let system = |peer| System { peer, turns: vec![], skipped: skipped.clone() };
    let mut systems: Vec<System> = options.peers.iter().map(system).collect();
    let is_skipped = |system: &System| system.skipped.is_some();
    let Ok(()) = by_turns(options.rounds, Order::BackAndForth, &mut systems, is_skipped, |system, round| {
        progress(&format!("{}, round {round} of {}", system.peer.name, options.rounds));
        match run.measure(system.peer) {
            Ok(turn) => system.turns.push(turn),
            Err(Missing(why)) => system.skipped = Some(format!("round {round}: {why}")),
        }
        Ok::<(), Infallible>(())
    });
    run.systems = systems;
    Ok((run.rates(), run.latencies()))
}

/// Frames that every built-in system routes and lets pass.
fn frames(options: &PeersOptions) -> Result<FrameSet, BenchError> {
    let spec = TrafficSpec {
        size: SizeMix::fixed(options.size),
        flows: options.flows,
        src_mac: Bench::SOURCE.parse()?,
        dst_mac: Bench::DESTINATION.parse()?,
        src: "10.0.0.0/16".parse()?,
        dst: "198.18.1.0-198.19.254.255".parse()?,
        src_port: "1024-65535".parse()?,
        dst_port: "1234".parse()?,
        ..TrafficSpec::default()
    };
    Ok(spec.prepare(usize::try_from(options.flows).unwrap_or(usize::MAX))?)
}

/// The results of one turn.
struct Turn {
    /// The carried rate, in frames a second.
    rate: f64,
    /// Whether the tester's limit ended the search.
    tester_is_limit: bool,
    latency: Histogram<u64>,
    /// At the low rate: the tester's pacing error, and the time between its polls.
    pacing: Histogram<u64>,
    turns: Histogram<u64>,
    disturbed: bool,
    /// Frames for which the tester's receive ring was full.
    missed: u64,
    version: Option<String>,
}

struct Run<'a> {
    options: &'a PeersOptions,
    frames: Arc<FrameSet>,
    devices: Option<Devices>,
    /// The tester's own limit, in frames a second.
    alone: Option<Quantiles>,
    systems: Vec<System<'a>>,
}

/// A system, its turns, and the reason why it was skipped, if it was.
struct System<'a> {
    peer: &'a Peer,
    turns: Vec<Turn>,
    skipped: Option<String>,
}

impl Run<'_> {
    fn bench_options(&self) -> BenchOptions {
        let payload = u32::from(self.options.size).saturating_sub(18);
        BenchOptions {
            core: self.options.core,
            mtu: payload.max(1_500),
            millrace: self.options.millrace.clone(),
        }
    }

    fn wire(&mut self, bench: &Bench) -> Result<Wire, BenchError> {
        let devices = self.devices.as_mut().ok_or_else(|| failed("no DPDK"))?;
        let within = bench.network()?;
        let ends = devices.open(Bench::SEND, Bench::RECEIVE, self.options.means, Some(&within))?;
        let options = WireOptions { core: Some(self.options.tester_core), ..WireOptions::default() };
        Wire::new(ends, Arc::clone(&self.frames), options)
    }

    /// Measures the tester's own limit.
    fn prepare(&mut self, progress: &mut dyn FnMut(&str)) -> Result<(), Missing> {
        progress("the tester by itself");
        // Namespaces come first: without them nothing else works.
        let bench = Bench::cable(&self.bench_options())?;
        self.devices = Some(Devices::start(&[])?);
        let mut wire = self.wire(&bench)?;
        let offer = Offer::stamped(TOO_MANY, self.options.trial_s);
        let mut rate = || -> Result<f64, BenchError> {
            let observed = wire.offer(&offer)?;
            Ok(observed.sent as f64 / offer.duration_s)
        };
        rate()?;
        let rates: Result<Vec<f64>, BenchError> = (0..3).map(|_| rate()).collect();
        self.alone = Quantiles::of(rates?).filter(|rate| rate.median > LEAST * 2.0);
        match self.alone {
            Some(_) => Ok(()),
            None => Err(Missing("no frames come through a veth cable without a system".into())),
        }
    }

    fn measure(&mut self, peer: &Peer) -> Result<Turn, Missing> {
        let mut bench = Bench::start(peer, &self.bench_options())?;
        let version = bench.version();
        let found = self.wire(&bench).and_then(|mut wire| self.find(&mut wire, peer, version));
        found.map_err(|error| {
            let ended = bench.ended().map_or(String::new(), |why| format!("; {why}"));
            Missing(format!("{error}{ended}"))
        })
    }

    fn find(&self, wire: &mut Wire, peer: &Peer, version: Option<String>) -> Result<Turn, BenchError> {
        wait_for_frames(wire, peer.adapter.ready_seconds)?;
        wire.warm_up()?;
        let alone = self.alone.map_or(LEAST * 2.0, |rate| rate.median);
        let limits = Limits { least: LEAST, most: alone * HEADROOM, patience_s: PATIENCE_S };
        let goal = Goal { width: WIDTH, ..Goal::PDR.quick(self.options.trial_s, TRIALS) };
        let mut searched = Searched { trials: Trials::new(wire), loads: vec![], missed: 0 };
        let (rate, tester_is_limit) = match search_one(goal, &limits, &mut searched)? {
            GoalResult::Regular { upper, throughput, .. } => (throughput, searched.is_limit(upper)),
            GoalResult::AllCarried { throughput, .. } => (throughput, true),
            GoalResult::NoneCarried { lowest } => {
                return Err(failed(format!(
                    "not even {lowest:.0} frames a second are carried with half a percent of loss"
                )));
            }
        };
        let Searched { mut trials, missed, .. } = searched;
        let disturbed = trials.tally.disturbed * 2 > trials.tally.trials;
        let (load, seconds) = self.options.latency;
        let observed = trials.offer(&Offer::stamped(load, seconds))?;
        let latency = observed.latency().cloned().ok_or_else(|| {
            failed(format!("of {load} frames a second none came out, after a search that went well"))
        })?;
        Ok(Turn {
            rate,
            tester_is_limit,
            latency,
            pacing: observed.pacing.unwrap_or_else(histogram),
            turns: trials.under_test.counts().turns.clone(),
            disturbed,
            missed,
            version,
        })
    }

    /// The systems that were measured, as they stand on the x axis.
    fn measured(&self) -> impl Iterator<Item = &System<'_>> {
        self.systems.iter().filter(|system| !system.turns.is_empty())
    }

    /// A series of the peers and one of Millrace, where they have points.
    fn series(&self, named: &str, of: impl Fn(&Turn) -> f64) -> Vec<Series> {
        let point = |(at, System { turns, .. }): (usize, &System)| {
            Point::of(at as f64, turns.iter().map(&of), turns.iter().all(|turn| turn.disturbed))
        };
        let sides = [("other systems", Origin::Peer, false), ("Millrace", Origin::Own, true)];
        let series = sides.into_iter().map(|(name, origin, is_own)| {
            let systems = self.measured().enumerate().filter(|(_, system)| system.peer.is_own() == is_own);
            Series { name: format!("{name}{named}"), origin, points: systems.filter_map(point).collect() }
        });
        series.filter(|series| !series.points.is_empty()).collect()
    }

    fn settings(&self) -> Vec<(String, String)> {
        let options = self.options;
        let alone = self.alone.map_or("not measured".into(), |rate| {
            format!("{:.3} Mpps ({:.3} to {:.3})", rate.median / 1e6, rate.min / 1e6, rate.max / 1e6)
        });
        let cores = match options.tester_core == options.core {
            true => format!("tester and system share core {}", options.core),
            false => format!("tester {}, system {}", options.tester_core, options.core),
        };
        let mut settings = vec![
            (
                "frames".to_string(),
                format!("{} bytes with FCS, {} UDP flows in turn", options.size, options.flows),
            ),
            ("ports".into(), format!("veth, the tester by {}", options.means.name())),
            ("cores".into(), cores),
            ("tester alone, on a cable".into(), alone),
            ("trials".into(), format!("{TRIALS} of {} s, width {} %", options.trial_s, WIDTH * 100.0)),
            ("rounds".into(), options.rounds.to_string()),
        ];
        let pacing = self.summed(|turn| &turn.pacing);
        if !pacing.is_empty() {
            let told = |what: &Histogram<u64>| {
                let at = |quantile: f64| what.value_at_quantile(quantile) as f64 / 1e3;
                format!("{:.1} µs median, {:.1} µs at 99 %, {:.1} µs at most", at(0.5), at(0.99), at(1.0))
            };
            settings.push(("frames sent late, at the low rate".into(), told(&pacing)));
            settings
                .push(("between looks at the receiving port".into(), told(&self.summed(|turn| &turn.turns))));
        }
        let versions = self.measured().filter_map(|System { peer, turns, .. }| {
            Some((peer.name.clone(), turns.iter().find_map(|turn| turn.version.clone())?))
        });
        settings.extend(versions);
        settings
    }

    /// The 99th percentile of the pacing error at the low rate, in nanoseconds.
    fn late_ns(&self) -> u64 {
        let pacing = self.summed(|turn| &turn.pacing);
        if pacing.is_empty() { 0 } else { pacing.value_at_quantile(0.99) }
    }

    fn summed(&self, of: impl Fn(&Turn) -> &Histogram<u64>) -> Histogram<u64> {
        let mut sum = histogram();
        self.systems.iter().flat_map(|system| &system.turns).for_each(|turn| sum += of(turn));
        sum
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "The kernel works on the system's core on what its devices receive (receive packet steering), and on \
             handing frames to the tester: that is part of every system's figure."
                .to_string(),
            "Systems in user space reach the cables by packet sockets: a copy and a share of a system call for each \
             frame, which no system has on a real NIC with its own driver."
                .into(),
            "Offloads play no part: frames are complete when they are sent.".into(),
        ];
        if self.late_ns() > LATE_NS {
            notes.push(format!(
                "WARNING: something else had the tester's core: one frame in a hundred left {:.1} ms late or more. The \
                 systems' core is likely no better, and these figures say little.",
                self.late_ns() as f64 / 1e6
            ));
        }
        if self.options.tester_core == self.options.core {
            notes.push("There is one core only: the tester takes its share of it from every system.".into());
        }
        for System { peer, turns, .. } in self.measured() {
            if turns.iter().any(|turn| turn.tester_is_limit) {
                notes.push(format!(
                    "{}: the tester could offer no more, the system may carry more.",
                    peer.name
                ));
            }
            let missed: u64 = turns.iter().map(|turn| turn.missed).sum();
            if missed > 0 {
                notes.push(format!(
                    "{}: {missed} frames came out and found the tester's own ring full; they count as carried.",
                    peer.name
                ));
            }
        }
        notes.extend(self.devices.iter().flat_map(Devices::notes));
        notes
    }

    /// What Millrace carries beside each other system that does the same on the same ports.
    fn expected(&self) -> Vec<Expectation> {
        let rate = |system: &System| median(system.turns.iter().map(|turn| turn.rate / 1e6));
        let systems: Vec<Rated> = self
            .measured()
            .filter_map(|system| Some(Rated { peer: system.peer, mpps: rate(system)? }))
            .collect();
        beside(&systems)
    }

    fn rates(&self) -> Figure {
        let names = self
            .measured()
            .map(|System { peer, .. }| format!("{} ({})", peer.name, peer.adapter.does.name()));
        let skipped =
            |system: &System| Some(Skipped { what: system.peer.name.clone(), why: system.skipped.clone()? });
        Figure {
            name: "peers".into(),
            title: "Millrace beside other systems on veth ports".into(),
            about: format!(
                "{} The rate that each system carries with up to half a percent of loss, between two veth cables. The \
                 systems take turns, each in namespaces of its own.",
                self.options.sentence()
            ),
            source: None,
            command: self.options.command.clone(),
            x: Axis::names("system", names),
            y: Axis::linear("rate carried (PDR)", "Mpps"),
            series: self.series("", |turn| turn.rate / 1e6),
            settings: self.settings(),
            skipped: self.systems.iter().filter_map(skipped).collect(),
            notes: self.notes(),
            expected: self.expected(),
        }
    }

    fn latencies(&self) -> Figure {
        let at = |quantile: f64| move |turn: &Turn| turn.latency.value_at_quantile(quantile) as f64 / 1e3;
        let series = [(", median", 0.5), (", 99 %", 0.99)].into_iter();
        let (load, seconds) = self.options.latency;
        Figure {
            name: "peers-latency".into(),
            title: format!("Latency at {load} frames a second on veth ports"),
            about: format!(
                "{} From when a frame was due until the tester had it back, at {load} frames a second for {seconds} s: far \
                 below what any of the systems carries.",
                self.options.sentence()
            ),
            y: Axis::log("latency", "µs"),
            series: series.flat_map(|(named, quantile)| self.series(named, at(quantile))).collect(),
            expected: vec![],
            ..self.rates()
        }
    }
}

/// A system and the rate that it carries.
struct Rated<'a> {
    peer: &'a Peer,
    mpps: f64,
}

/// For each other system: that Millrace carries more, in the best of its forms that do the same.
fn beside(systems: &[Rated]) -> Vec<Expectation> {
    let others = systems.iter().filter(|system| !system.peer.is_own());
    let expected = |other: &Rated| {
        let does = other.peer.adapter.does;
        let same = systems.iter().filter(|own| own.peer.is_own() && own.peer.adapter.does == does);
        let own = same.max_by(|one, other| one.mpps.total_cmp(&other.mpps))?;
        let told = format!(
            "{} carries more than {}, both: {} (Mpps): {:.3} and {:.3}",
            own.peer.name,
            other.peer.name,
            does.name(),
            own.mpps,
            other.mpps
        );
        Some(Expectation::of_times(told, own.mpps > other.mpps))
    };
    others.filter_map(expected).collect()
}

/// Waits until the system forwards a frame.
fn wait_for_frames(wire: &mut Wire, seconds: f64) -> Result<(), BenchError> {
    let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 600.0));
    loop {
        let observed = wire.offer(&Offer::stamped(1_000.0, 0.02))?;
        // Late frames of an earlier attempt show as well that the system forwards.
        if observed.sent > 0 || wire.counts().stale > 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(failed(format!("no frame came through the system within {seconds} s")));
        }
    }
}

/// The trials of one search.
struct Searched<'a> {
    trials: Trials<'a, Wire>,
    /// For each trial: the load, the share of it that the tester sent, and the share of that which the system
    /// lost.
    loads: Vec<(f64, f64, f64)>,
    missed: u64,
}

impl Searched<'_> {
    /// Whether the tester, and not the system, failed to reach that load.
    fn is_limit(&self, load: f64) -> bool {
        let at = || self.loads.iter().filter(|(at, ..)| (at - load).abs() <= load * 1e-9);
        let of_tester = at().filter(|(_, offered, lost)| *offered < OFFERED && *lost <= Goal::PDR.loss_ratio);
        2 * of_tester.count() > at().count()
    }
}

impl Measurer for Searched<'_> {
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
        let observed = self.trials.offer(&Offer::stamped(load, duration_s))?;
        self.missed += self.trials.under_test.counts().missed;
        let passed = self.trials.under_test.passed();
        let arrived = observed.arrived.max(1) as f64;
        let lost = (1.0 - observed.sent as f64 / passed / arrived).clamp(0.0, 1.0);
        self.loads.push((load, arrived / observed.intended.max(1) as f64, lost));
        Ok(Trial { load, duration_s, loss_ratio: observed.loss_ratio(passed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::{built_in, peers_of};

    #[test]
    fn each_other_system_is_held_against_what_does_the_same() {
        let all: Vec<Peer> = built_in().expect("sound").iter().flat_map(peers_of).collect();
        let rated = |(name, mpps): (&str, f64)| {
            let peer = all.iter().find(|peer| peer.name == name);
            Rated { peer: peer.unwrap_or_else(|| panic!("no {name}")), mpps }
        };
        let systems = [
            ("linux-forward", 0.8),
            ("millrace-modular", 0.7),
            ("millrace-af-xdp-fused", 0.9),
            ("nftables", 0.6),
            ("millrace-firewall-af-xdp-fused", 0.5),
            ("openvswitch", 0.5),
        ];
        let found = beside(&systems.map(rated));
        let told: Vec<(&str, bool)> = found.iter().map(|one| (one.sentence.as_str(), one.holds)).collect();
        let routes =
            "millrace-af-xdp-fused carries more than linux-forward, both: route (Mpps): 0.900 and 0.800";
        let filters = "millrace-firewall-af-xdp-fused carries more than nftables, both: firewall (Mpps): 0.500 and 0.600";
        assert!(told.contains(&(routes, true)) && told.contains(&(filters, false)), "{told:#?}");
        assert!(beside(&[rated(("millrace-modular", 1.0))]).is_empty(), "nothing stands beside it");
    }
}
