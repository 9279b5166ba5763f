//! Throughput as Niu et al. measure it: one NF, more queues, chains, sockets, colocation.

use super::curves::{Row, crowded, line_mpps, over_sizes, saturated, stated};
use crate::BenchError;
use crate::experiment::breakdown::switch;
use crate::experiment::colocation::colocated;
use crate::experiment::lab::clock::Clock;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::figure::{Axis, Figure, Series};
use crate::load::{Batching, Offer, UnderTest};
use crate::start::{RunOptions, failed};
use crate::trial::Sample;
use crate::units::counted;
use std::time::Duration;
use worker::profile::Stage;

/// Chains at once, at most: the papers'.
const BUNDLES: usize = 3;

/// The papers' machine, and the frame sizes from which its line is full.
const PLACE: &str = "Niu et al., section 4.1: Xeon E5-2650 v2 at 2.6 GHz, 10 GbE; line rate from 128 (BESS) and 256 bytes (ClickOS) on";

/// The papers' 1-NF, 2-NF and 3-NF chains.
const ROWS: [&[Nf]; 3] = [&[Nf::L3], &[Nf::FIREWALL, Nf::L3], &[Nf::FIREWALL, Nf::L3, Nf::L2]];

/// How long a worker and the load need to settle after probes were switched.
const SETTLED: Duration = Duration::from_millis(50);

/// Figure 2 and table 1: L3 forwarding and a firewall over frame sizes and the clock.
pub fn baseline(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let sizes = lab.effort.sizes;
    let modes = [Mode::CACHED, Mode::MODULAR, Mode::PROCESS];
    let rows = [Nf::L3, Nf::FIREWALL]
        .into_iter()
        .flat_map(|nf| modes.map(|mode| Row::new(format!("{}, {}", nf.name, mode.name), &[nf], mode)));
    let rows: Vec<Row> = rows.collect();
    let sheet = lab.sheet(
        "niu-baseline",
        "One NF over frame sizes",
        "L3 forwarding by ten routes and a firewall of ten rules, 1,000 flows.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, over_sizes(&rows, sizes));
    let first = figure.at("L3FWD, fused, flow cache", 64.0);
    let told = "one core forwards 64-byte frames at the rate of 10 GbE and more (Mpps)";
    figure.expect((first, Some(line_mpps(10.0, 64.0))), told, |own, line| own > line);
    figure.series.push(stated("BESS, L3FWD", PLACE, 9.34, 128, sizes));
    figure.series.push(stated("ClickOS, L3FWD", PLACE, 5.34, 256, sizes));
    let clock = over_clock(lab)?;
    Ok(vec![figure, clock])
}

/// Throughput over the clock frequency, where it can be set, beside table 1.
fn over_clock(lab: &mut Lab) -> Result<Figure, BenchError> {
    let mut figure = lab.sheet(
        "niu-baseline-clock",
        "One NF over the CPU's clock, 64-byte frames",
        "L3 forwarding and a firewall on one core, at each frequency that the kernel sets here.",
        (Axis::linear("clock", "GHz"), Axis::linear("throughput", "Mpps")),
    );
    let core = lab.cores(1).first().copied().unwrap_or(0);
    let nfs = [Nf::L3, Nf::FIREWALL];
    let clock = Clock::of(core);
    let steps: Vec<(f64, Option<u64>)> = match &clock {
        Ok(clock) => clock.steps(5).into_iter().map(|khz| (khz as f64 / 1e6, Some(khz))).collect(),
        Err(why) => {
            figure.skip("other frequencies", why);
            figure.add_note("The clock shown is that of the time stamp counter.");
            vec![((lab.machine.tsc_ghz * 100.0).round() / 100.0, None)]
        }
    };
    let cases = steps.into_iter().flat_map(|step| nfs.map(|nf| (step, nf))).map(|((ghz, khz), nf)| {
        let clock = clock.as_ref().ok().zip(khz);
        Case::point(&format!("{}, fused", nf.name), ghz, move |lab| {
            let _held = clock.map(|(clock, khz)| clock.hold(khz)).transpose().map_err(failed)?;
            saturated(lab, &[nf], Mode::FUSED, 64)
        })
    });
    let mut figure = lab.saturate(figure, cases);
    let table = |name: &str, rates: [f64; 5]| {
        let points = [1.2, 1.6, 2.0, 2.4, 2.6].into_iter().zip(rates);
        Series::paper(name, "Niu et al., table 1: Xeon E5-2650 v2, 10 GbE", points)
    };
    figure.series.push(table("BESS, L3FWD", [4.31, 5.73, 7.19, 8.60, 9.34]));
    figure.series.push(table("BESS, firewall", [4.45, 5.92, 7.38, 8.87, 9.59]));
    figure.series.push(table("ClickOS, L3FWD", [2.10, 2.82, 3.44, 4.26, 5.34]));
    figure.series.push(table("ClickOS, firewall", [1.98, 2.75, 3.27, 4.24, 5.03]));
    Ok(figure)
}

/// Figures 3 and 4: more queues and cores for one NF. Table 2: the utilization of the core at 10 GbE.
pub fn bottleneck(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let sizes: &[u16] = if lab.effort.is_miniature() { &[64] } else { &[64, 96, 128] };
    let most = lab.machine.cores.len().min(4);
    let mut cases = vec![];
    for size in sizes {
        for (workers, mode) in
            (1..=most).flat_map(|workers| [(workers, Mode::MODULAR), (workers, Mode::FUSED)])
        {
            let name = format!("{}, {}", mode.name, counted(workers, "queue"));
            cases.push(Case::point(&name, f64::from(*size), move |lab| {
                let path = lab.row(&[Nf::L3], mode)?;
                let run = RunOptions { cores: lab.cores(workers), ..lab.run_options(mode, Some(*size)) };
                trial::saturation(lab, &path, &run)
            }));
        }
    }
    let sheet = lab.sheet(
        "niu-bottleneck",
        "One NF with more queues and cores",
        "L3 forwarding of small frames. Each packet thread has a queue of its own at the port, where the papers' vNICs have \
         one.",
        (Axis::linear("frame size", "bytes"), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    if most < 2 {
        figure.skip("several queues", "there is one core");
    } else {
        let one = figure.at("modular, 1 queue", 64.0);
        let two = figure.at("modular, 2 queues", 64.0);
        figure
            .expect((one, two), "a second queue and core carry more (Mpps, 64 bytes)", |one, two| two > one);
    }
    figure.paper(
        "BESS, one vNIC for each side",
        "Niu et al., section 4.2 and table 1, at 2.6 GHz on 10 GbE; more vCPUs and memory change little",
        [(64.0, 9.34), (128.0, line_mpps(10.0, 128.0))],
    );
    let line = sizes.iter().map(|size| (f64::from(*size), line_mpps(10.0, f64::from(*size))));
    figure.paper(
        "BESS, two vNICs for each side",
        "Niu et al., figure 3: line rate of 10 GbE at all sizes",
        line,
    );
    let busy = utilization(lab)?;
    Ok(vec![figure, busy])
}

/// Table 2: the share of its time that the worker processes packets, with 10 GbE offered.
fn utilization(lab: &mut Lab) -> Result<Figure, BenchError> {
    let sizes = lab.effort.sizes;
    let modes = [Mode::MODULAR, Mode::CACHED];
    let cases = sizes.iter().flat_map(|size| modes.map(|mode| (*size, mode))).map(|(size, mode)| {
        Case::new(format!("{}, {size}", mode.name), move |lab| {
            let (busy, disturbed) = busy(lab, mode, size)?;
            let sample = |(name, share): (&str, f64)| Sample {
                series: format!("L3FWD, {}, {name}", mode.name),
                x: f64::from(size),
                y: share * 100.0,
                disturbed,
            };
            Ok([(OF_CARRIED, busy.of_carried), (WITH_PACKETS, busy.with_packets)].map(sample).to_vec())
        })
    });
    let sheet = lab.sheet(
        "niu-bottleneck-cpu",
        "How busy the core is at the rate of 10 GbE",
        "L3 forwarding, open loop at what 10 GbE carries of each size. A packet thread polls, and the fewer packets it finds \
         in a turn, the more each costs: the time in which it found packets (cycles of all stages but waiting) is more than \
         the rate's share of what it takes from a ring that is always full.",
        (Axis::log("frame size", "bytes"), Axis::linear("busy", "%")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.add_note(trial::open_loop(lab.effort.trial_s.max(0.1)));
    for mode in modes {
        let of = |name: &str| figure.at(&format!("L3FWD, {}, {name}", mode.name), 64.0);
        let told = format!("{}: one core carries 64-byte frames at 10 GbE, and has time left (%)", mode.name);
        let (carried, with_packets) = (of(OF_CARRIED), of(WITH_PACKETS));
        figure.expect((carried, Some(100.0)), &told, |carried, all| carried < all);
        let told = format!(
            "{}: its time with packets is no less than the rate's share of what it carries (%)",
            mode.name
        );
        figure.expect((with_packets, carried), &told, |with_packets, carried| with_packets >= carried * 0.9);
    }
    let table = [100.0, 100.0, 70.1, 63.0, 53.6, 53.8];
    let points = [64.0, 128.0, 256.0, 512.0, 1024.0, 1500.0].into_iter().zip(table);
    let place = "Niu et al., table 2: L3FWD at 2.6 GHz on 10 GbE";
    figure.paper("ClickOS", place, points);
    Ok(figure)
}

/// How busy a worker is at a load, as shares.
struct Busy {
    /// The load, of what it takes from a ring that is always full.
    of_carried: f64,
    /// The time in which it found packets, of all of it.
    with_packets: f64,
}

/// The names of both.
const OF_CARRIED: &str = "of what it carries";
const WITH_PACKETS: &str = "time with packets";
/// More than any core takes, in frames a second.
const TOO_MANY: f64 = 500e6;

/// How busy the worker is at the rate of 10 GbE, and whether a trial was disturbed.
fn busy(lab: &Lab, mode: Mode, size: u16) -> Result<(Busy, bool), BenchError> {
    let cycles_per_ns =
        worker::clock::cycles_per_ns().ok_or_else(|| failed("this machine has no time stamp counter"))?;
    let path = lab.row(&[Nf::L3], mode)?;
    let mut chain = trial::open(&path, &lab.run_options(mode, Some(size)), Batching::Adaptive)?;
    let probes = chain.running().probes().first().ok_or_else(|| failed("no packet thread"))?.clone();
    switch(chain.running(), &probes, true)?;
    std::thread::sleep(SETTLED);
    let worked = || -> u64 {
        let stages = probes.stages().into_iter().filter(|stage| stage.stage != Stage::Waiting);
        stages.map(|stage| stage.cycles.saturating_sub((stage.readings as f64 * probes.cost()) as u64)).sum()
    };
    let offer = Offer::even(line_mpps(10.0, f64::from(size)) * 1e6, lab.effort.trial_s.max(0.1));
    let before = worked();
    // Only one trial: `sweep` repeats the whole case where it is disturbed, with new counts.
    let observed = chain.offer(&offer);
    let share = (worked() - before) as f64 / (offer.duration_s * 1e9 * cycles_per_ns);
    // Without probes, which cost some of it.
    switch(chain.running(), &probes, false)?;
    std::thread::sleep(SETTLED);
    let most = chain.offer(&Offer { load: TOO_MANY, ..offer });
    trial::ended(lab, chain.into_chain())?;
    let (observed, most) = (observed?, most?);
    let taken = most.arrived.saturating_sub(most.missed).max(1) as f64 / offer.duration_s;
    let busy = Busy { of_carried: (offer.load / taken).min(1.0), with_packets: share.min(1.0) };
    Ok((busy, observed.is_disturbed() || most.is_disturbed()))
}

/// Figure 5: one to three NFs in a row.
pub fn chain(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let modes = [Mode::CACHED, Mode::MODULAR, Mode::PROCESS];
    let rows: Vec<Row> = modes
        .into_iter()
        .flat_map(|mode| ROWS.map(|nfs| Row::new(format!("{} NF, {}", nfs.len(), mode.name), nfs, mode)))
        .collect();
    let sizes = lab.effort.sizes;
    let sheet = lab.sheet(
        "niu-chain",
        "One to three NFs in a row",
        "The papers' chains: L3 forwarding; a firewall before it; L2 forwarding behind both.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, over_sizes(&rows, sizes));
    for mode in [Mode::MODULAR, Mode::PROCESS] {
        let of = |count: usize| figure.at(&format!("{count} NF, {}", mode.name), 64.0);
        let (values, told) = ((of(1), of(3)), format!("{}: three NFs carry less than one (Mpps)", mode.name));
        figure.expect(values, &told, |one, three| three < one);
    }
    let of = |mode: Mode| figure.at(&format!("3 NF, {}", mode.name), 64.0);
    let values = (of(Mode::CACHED), of(Mode::MODULAR));
    let told = "three NFs as one function carry more than as elements (Mpps)";
    figure.expect(values, told, |fused, modular| fused > modular);
    figure.series.push(stated("BESS, 1 NF", PLACE, 9.34, 128, sizes));
    figure.add_note(
        "The papers state that BESS loses mildly at 64 to 128 bytes with two and three NFs, and that three NFs in ClickOS \
         do not fill 10 GbE with 512 bytes; they give no numbers for those.",
    );
    crowded(lab, &mut figure, 3);
    Ok(vec![figure])
}

/// Figure 7: the NFs of a chain on another socket.
pub fn numa(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let mut figure = lab.sheet(
        "niu-numa",
        "A chain across sockets",
        "Firewall and L3 forwarding in processes, on cores of the packet thread's socket and of another one.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Mpps")),
    );
    let own = lab.cores(1).first().copied().unwrap_or(0);
    let sockets = lab.topology.sockets();
    let has = |cores: &[&crate::machine::topology::Core], cpu: usize| {
        cores.iter().any(|core| core.threads.contains(&cpu))
    };
    let cpus = |cores: &[&crate::machine::topology::Core]| -> Vec<usize> {
        let all = cores.iter().filter_map(|core| core.threads.first().copied());
        all.filter(|cpu| *cpu != own).collect()
    };
    let here = sockets.iter().find(|(_, cores)| has(cores, own)).map(|(_, cores)| cpus(cores));
    let there = sockets.iter().find(|(_, cores)| !has(cores, own)).map(|(_, cores)| cpus(cores));
    let (here, there) = (here.filter(|cores| cores.len() > 1), there.filter(|cores| cores.len() > 1));
    let (Some(here), Some(there)) = (here, there) else {
        let why = format!("{}: two sockets with three cores or more are needed", lab.topology.sentence());
        figure.skip("a chain across sockets", why);
        figure.add_note(
            "The paper states that two NFs on different sockets lose nearly half of what they carry on one, at 64 bytes, and \
             that joining servers by their NICs avoids it; `millrace plan` follows that.",
        );
        return Ok(vec![figure]);
    };
    let placed = [("one socket", here), ("two sockets", there)];
    let cases = lab.effort.sizes.iter().flat_map(|size| placed.iter().map(move |placed| (*size, placed)));
    let cases = cases.map(|(size, (name, cores))| {
        Case::point(name, f64::from(size), move |lab| {
            let path = lab.row_on(&[Nf::FIREWALL, Nf::L3], Mode::PROCESS, cores, &name.replace(' ', "-"))?;
            trial::saturation(lab, &path, &lab.run_options(Mode::PROCESS, Some(size)))
        })
    });
    let mut figure = lab.saturate(figure, cases);
    let values = (figure.at("one socket", 64.0), figure.at("two sockets", 64.0));
    figure.expect(values, "a chain on one socket carries more (Mpps, 64 bytes)", |one, two| one > two);
    Ok(vec![figure])
}

/// Figure 8: independent chains at once, each with traffic and a core of its own.
pub fn colocation(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let mut figures = vec![];
    for mode in [Mode::CACHED, Mode::MODULAR] {
        let path = lab.row(&[Nf::L3], mode)?;
        let sizes = lab.effort.sizes.to_vec();
        let mut figure = colocated(lab, &[path], BUNDLES, mode.into(), Some(&sizes))?;
        figure.name =
            if mode == Mode::CACHED { "niu-colocation".into() } else { "niu-colocation-modular".into() };
        figure.title = format!("Independent chains side by side, {}", mode.name);
        figure.add_note("The paper states that throughput scales linearly in almost all cases.");
        figures.push(figure);
    }
    Ok(figures)
}
