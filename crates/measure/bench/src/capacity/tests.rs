use super::verify::{Compared, Verified, VerifyOptions, verify};
use super::*;
use crate::BenchError;
use crate::load::{Observed, Offer, Recorder, Stamp, UnderTest};
use crate::machine::topology::tests::{recorded, smt, sockets};
use crate::stats::Quantiles;

/// 50 ns a packet and 80 ns a turn, at 2 GHz.
fn costs(nfs: &[(&str, f64)]) -> Costs {
    let cost = |burst: usize| BurstCost { burst, ns: 50.0 + 80.0 / burst as f64 };
    let nfs = nfs.iter().map(|(name, ns)| NfCost { name: (*name).into(), ns: *ns }).collect();
    Costs::new("fused", [4, 8, 16, 32, 64, 128, 256].map(cost).to_vec(), nfs, 2.0)
}

/// One NF in a process; the whole chain is slower than the worker or the NF alone.
fn beside() -> Costs {
    let bursts = [(16, 90.0), (64, 80.0), (256, 76.0)].map(|(burst, ns)| BurstCost { burst, ns });
    let whole =
        Whole { bursts: bursts.to_vec(), latency_ns: 800.0, load: 200_000.0, slowest: Some("nat".into()) };
    let own = [(16, 55.0), (64, 51.0), (256, 50.5)].map(|(burst, ns)| BurstCost { burst, ns });
    let nat = NfCost { name: "nat".into(), ns: 76.0 };
    Costs { has_ring: true, whole: Some(whole), ..Costs::new("fused", own.to_vec(), vec![nat], 2.0) }
}

/// A chain that carries three quarters of what a full ring gives, and whose workers disturb each other.
fn at_a_set_rate() -> Costs {
    let range = |min: f64, median: f64, max: f64| Quantiles { median, min, max };
    let (carried, beside) = (range(0.7, 0.75, 0.9), vec![(2, range(1.05, 1.1, 1.2))]);
    Costs {
        has_ring: true,
        open: Some(OpenLoop { carried, beside, looks: range(0.95, 1.0, 1.1) }),
        ..costs(&[])
    }
}

fn ask(rate: &str, latency_ns: Option<f64>) -> Ask {
    let rate: Rate = rate.parse().expect("a rate");
    Ask {
        chain: "chain.toml".into(),
        rate,
        frames: rate.frames(353.8),
        size: "imix".into(),
        mean_bytes: 353.8,
        latency: latency_ns.map(Nanoseconds),
    }
}

fn machine(lines: &str) -> Topology {
    Topology::read(recorded(lines).path(), &[0, 1, 2, 3])
}

fn plan(rate: &str, latency_ns: Option<f64>, nfs: &[(&str, f64)], lines: &str) -> CapacityPlan {
    make(&ask(rate, latency_ns), &costs(nfs), &Facts::default(), &machine(lines))
}

fn places(plan: &CapacityPlan) -> Vec<(usize, &str, Option<usize>)> {
    plan.places.iter().map(|place| (place.server, place.what.as_str(), place.cpu)).collect()
}

#[test]
fn the_smallest_burst_that_is_nearly_the_best_is_taken() {
    // Bursts of 16 carry 18.2 Mpps, of which 85 % may be used; bursts of 256 carry a tenth more.
    let of = |rate: &str| {
        let plan = plan(rate, Some(2e5), &[], &smt());
        (plan.workers, plan.burst, plan.fits)
    };
    assert_eq!(of("5Mpps"), (1, 16, true));
    assert_eq!(of("13Mpps"), (1, 16, true));
    assert_eq!(of("15Mpps"), (1, 16, true));
    assert_eq!(of("16.5Mpps"), (1, 64, true));
    // This load is more than one worker carries.
    assert_eq!(of("17.1Mpps"), (2, 16, true));
}

#[test]
fn what_is_said_of_a_load_follows_from_its_cost() {
    let plan = plan("10Mpps", None, &[], &smt());
    assert!((plan.utilization - 0.55).abs() < 1e-9 && (plan.capacity - 1e9 / 55.0).abs() < 1.0);
    // A turn takes 80/(1 − 0.5) ns, and a frame one and a half turns.
    assert!((plan.latency_ns - 240.0).abs() < 1e-6 && (plan.random_ns - 25.0).abs() < 1e-6, "{plan:?}");
    assert_eq!(plan.burst_ns, 1_600.0);
    // The system keeps the first core; of the two threads of a core one is used.
    assert_eq!(places(&plan), [(0, "worker-0", Some(1))]);
    // 0.55/0.85 of 3.6 GHz, rounded up to 65 %.
    let frequency = plan.frequency.expect("it holds");
    assert!((frequency.ghz - 3.6 * 0.65).abs() < 1e-9, "{frequency:?}");
    assert_eq!(frequency.range_ghz, Some((0.8, 3.6)));
    // A very low load runs at the lowest frequency.
    let idle = self::plan("100kpps", None, &[], &smt());
    assert_eq!(idle.frequency.map(|frequency| frequency.ghz), Some(0.8));
    // Where the kernel sets no frequency, the plan uses the TSC's.
    let unset = self::plan("10Mpps", None, &[], &sockets()).frequency.expect("it holds");
    assert_eq!((unset.measured_ghz, unset.range_ghz), (2.0, None));
}

#[test]
fn a_latency_that_is_not_kept_is_told() {
    let plan = plan("5Mpps", Some(100.0), &[], &smt());
    assert!(!plan.fits && plan.short[0].contains("100 ns is not kept"), "{:?}", plan.short);
    assert!(plan.frequency.is_none());
    // Where one worker does not meet the latency limit, the plan has more.
    let (one, more) =
        (self::plan("11Mpps", None, &[], &smt()), self::plan("11Mpps", Some(220.0), &[], &smt()));
    assert!(
        one.workers == 1 && one.latency_ns > 220.0 && more.workers == 2 && more.latency_ns <= 220.0,
        "{more:?}"
    );
}

#[test]
fn nfs_in_processes_have_cores_of_the_same_socket() {
    let plan = plan("5Mpps", None, &[("nat", 100.0)], &sockets());
    // Two of the machine's four cores: the socket with the machine's first core has room, and that core is
    // used last.
    assert_eq!(places(&plan), [(0, "worker-0", Some(2)), (0, "nat", Some(0))]);
    assert!(plan.fits && plan.places.iter().all(|place| place.socket == 0));
}

#[test]
fn a_chain_that_does_not_fit_a_socket_is_split_across_servers() {
    let plan = plan("5Mpps", None, &[("nat", 100.0), ("firewall", 80.0), ("balancer", 20.0)], &sockets());
    let expected = [
        (0, "worker-0", Some(0)),
        (0, "nat", Some(2)),
        (1, "worker-0", Some(0)),
        (1, "firewall", Some(2)),
        (2, "worker-0", Some(0)),
        (2, "balancer", Some(2)),
    ];
    assert_eq!(places(&plan), expected);
    assert_eq!((plan.servers, plan.workers, plan.fits), (3, 1, false));
    assert!(
        plan.short[0]
            .contains("4 cores of one socket are needed and 2 are there (2 more are on other sockets")
    );
    assert!(
        plan.short[0].contains("2 too few; 3 such servers do, with the NFs one after the other"),
        "{:?}",
        plan.short
    );
    // No split of this chain makes a server carry it, so its flows are shared.
    let spread = self::plan("50Mpps", None, &[], &sockets());
    assert_eq!((spread.servers, spread.workers, spread.places.len()), (2, 2, 4), "{spread:?}");
    assert!(spread.short[0].contains("with a share of the flows each"), "{:?}", spread.short);
    let many = self::plan("20Mpps", None, &[("slow", 400.0)], &sockets());
    assert!(many.servers >= 6 && !many.fits, "{many:?}");
}

#[test]
fn what_one_worker_owns_is_no_faster_with_more() {
    let facts = Facts { one_worker: vec!["script".into()] };
    let plan = make(&ask("30Mpps", None), &costs(&[]), &facts, &machine(&smt()));
    assert!(!plan.fits && plan.workers == 1 && plan.utilization > 1.0, "{plan:?}");
    assert!(
        plan.short[0].contains("`script` is one worker's") && plan.short[0].contains("2 servers"),
        "{:?}",
        plan.short
    );
    assert!(plan.text().contains("without bound"), "{}", plan.text());
}

#[test]
fn what_goes_from_core_to_core_is_carried_as_the_whole_is() {
    let of = |rate: &str| make(&ask(rate, None), &beside(), &Facts::default(), &machine(&smt()));
    let plan = of("5Mpps");
    // The smallest burst size at which the whole is within a tenth of the best, not the worker's own best.
    assert_eq!((plan.workers, plan.burst, plan.capacity.round()), (1, 64, 12_500_000.0), "{plan:?}");
    // The load is 40 % of what the whole carries.
    assert!((plan.latency_ns - 800.0 * (1.0 - 0.016) / (1.0 - 0.4)).abs() < 1.0, "{plan:?}");
    // With two processes of the NF the measured whole does not apply: the costs of the worker and of the NF
    // do.
    let more = of("14Mpps");
    assert!(more.places.iter().filter(|place| place.what.starts_with("nat")).count() == 2, "{more:?}");
    assert!(more.capacity > 1e9 / 76.0 && more.latency_ns.is_finite() && !more.costs.has_ring, "{more:?}");
}

#[test]
fn a_load_at_a_set_rate_needs_more_workers_than_a_full_ring_says() {
    let of = |rate: &str, costs: &Costs| make(&ask(rate, None), costs, &Facts::default(), &machine(&smt()));
    let (full, open) = (of("13Mpps", &costs(&[])), of("13Mpps", &at_a_set_rate()));
    assert_eq!((full.workers, full.capacity_range, open.workers), (1, None, 2), "{open:?}");
    // Each of two workers: 55 ns in bursts of 16, a tenth more beside the other, of which three quarters are
    // carried.
    assert!((open.capacity - 1e9 / 55.0 / 1.1 * 0.75).abs() < 1.0, "{open:?}");
    assert!(
        (open.saturation - 1e9 / 55.0 / 1.1).abs() < 1.0 && (full.saturation - full.capacity).abs() < 1.0
    );
    let (least, most) = open.capacity_range.expect("measured");
    assert!(least < open.capacity && open.capacity < most, "{open:?}");
    assert!((open.utilization - open.load / open.capacity).abs() < 1e-9, "{open:?}");
    // What is found is held against the range, too.
    let options = VerifyOptions { loss_ratio: 0.005, trial_s: 0.01, trials: 1, workers: 2 };
    let of = |most: f64| {
        let mut fake = Fake { most, delay_ns: 250, has_stamps: false, disturbed: vec![] };
        verify(&open, &mut fake, &options).expect("a verdict")
    };
    let good = of(open.capacity * 2.0);
    assert!(good.holds && unwrapped(&good).contains("that is within the"), "{}", good.text());
    let less = of(least * 2.0 * 0.9);
    assert!(!less.holds && unwrapped(&less).contains("that is NOT within the"), "{}", less.text());
}

#[test]
fn a_plan_reads_well() {
    for (name, plan) in [
        ("one-core", plan("5Mpps", Some(2e5), &[], &smt())),
        ("servers", plan("10Gbps", None, &[("nat", 100.0), ("firewall", 80.0)], &sockets())),
        ("flows", plan("60Mpps", None, &[], &sockets())),
        ("open-loop", make(&ask("17.5Mpps", None), &at_a_set_rate(), &Facts::default(), &machine(&smt()))),
        ("process", make(&ask("5Mpps", None), &beside(), &Facts::default(), &machine(&smt()))),
    ] {
        let text = plan.text();
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/capacity/golden/{name}.txt"));
        testkit::golden::hold(&path, &text).unwrap();
    }
}

/// Carries a fixed rate, and gives each frame a fixed latency.
struct Fake {
    most: f64,
    delay_ns: u64,
    has_stamps: bool,
    disturbed: Vec<f64>,
}

impl UnderTest for Fake {
    fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        let intended = offer.frames();
        let sent = intended.min((self.most * offer.duration_s) as u64);
        let mut recorder = Recorder::new(intended, &[1]);
        for number in 0..sent.min(1_000) {
            recorder.record(Some(Stamp { source: 0, number, time_ns: 1_000 }), 1_000 + self.delay_ns);
        }
        Ok(Observed {
            intended,
            arrived: intended,
            missed: intended - sent,
            sent,
            disturbed: self.disturbed.pop().unwrap_or(0.0),
            is_far: false,
            seen: (offer.stamped && self.has_stamps).then(|| recorder.seen()),
            pacing: None,
        })
    }

    fn passed(&self) -> f64 {
        1.0
    }

    fn end(self: Box<Self>) -> Result<bool, BenchError> {
        Ok(true)
    }
}

/// The text of a result on one line.
fn unwrapped(verified: &Verified) -> String {
    verified.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plan_is_held_against_what_is_found() {
    let plan = plan("10Mpps", None, &[], &smt());
    let options = VerifyOptions { loss_ratio: 0.005, trial_s: 0.01, trials: 1, workers: 1 };
    let of = |most: f64, delay_ns: u64, has_stamps: bool| {
        let mut fake = Fake { most, delay_ns, has_stamps, disturbed: vec![0.0, 0.5] };
        verify(&plan, &mut fake, &options).expect("a verdict")
    };
    let good = of(plan.capacity, 250, true);
    assert!(good.holds && good.throughput.off().abs() < 0.03 && good.tally.repeated == 1, "{good:?}");
    let latency = good.latency.expect("stamped");
    assert!((latency.factor() - 250.0 / 240.0).abs() < 0.01 && good.p99_ns == Some(250.0), "{good:?}");
    assert!(
        good.text().contains("within 15 %") && good.text().contains("within a factor of 2"),
        "{}",
        good.text()
    );
    // The chain carries less than planned, or more.
    let less = of(plan.capacity * 0.8, 250, true);
    assert!(!less.holds && less.text().contains("NOT within 15 %"), "{}", less.text());
    assert!(
        (good.rounds.len(), less.rounds.len()) == (1, 3) && less.text().contains("medians of 3 rounds"),
        "{less:?}"
    );
    assert!(!of(plan.capacity * 1.3, 250, true).holds);
    // Frames take longer than planned, or shorter.
    assert!(!of(plan.capacity, 600, true).holds && !of(plan.capacity, 100, true).holds);
    let unknown = of(plan.capacity, 600, false);
    assert!(
        unknown.holds && unknown.latency.is_none() && unknown.text().contains("not known"),
        "{}",
        unknown.text()
    );
    // The text reports a machine that is slower than when the plan was made.
    assert!(good.paces.is_empty() && good.is_steady(), "costs of closed loops cannot be compared");
    let behind = CapacityPlan { costs: Costs { has_ring: true, ..plan.costs.clone() }, ..plan.clone() };
    let mut slow = Fake { most: plan.capacity * 0.8, delay_ns: 250, has_stamps: true, disturbed: vec![] };
    let slow = verify(&behind, &mut slow, &options).expect("a verdict");
    assert!(
        slow.paces.len() == 2
            && slow.paces.iter().all(|times| (times - 1.25).abs() < 0.01)
            && !slow.is_steady(),
        "{slow:?}"
    );
    assert!(slow.text().contains("not steady: a packet took 1.25 times"), "{}", slow.text());
    // The chain carries nothing.
    assert!(!of(0.0, 250, true).holds);
    let mut taken = good.clone();
    taken.tally.disturbed = taken.tally.trials;
    assert!(unwrapped(&taken).contains("this says nothing of the plan"), "{}", taken.text());
    assert_eq!(Compared { said: 100.0, found: 90.0 }.off(), -0.09999999999999998);
}
