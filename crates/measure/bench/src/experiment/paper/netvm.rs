//! The experiments of NetVM: forwarding, frame sizes, chains, latency, breakdown, steering, deployment, an
//! attack.

use super::curves::{Row, crowded, line_gbps, line_mpps, over_sizes, saturated};
use crate::BenchError;
use crate::experiment::breakdown::{self as stages, BreakdownOptions, Kind};
use crate::experiment::deploy::deploy as deployed;
use crate::experiment::dos::{DosOptions, dos as attacked};
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::experiment::steering::{by_class as steered_by_class, steering as steered};
use crate::figure::{Axis, Expectation, Figure, Point, Series};
use crate::load::{Batching, Observed, Offer};

const PLACE: &str = "NetVM, section V: KVM on a Xeon X5650 at 2.67 GHz, one 10 GbE port";
/// The rate of 64-byte frames on 10 GbE, in Mpps.
const LINE: f64 = 14.880_952;

/// L3 forwarding in a process, as elements and as one program. The first two rows are NetVM's two ways to
/// write an NF.
fn rows() -> Vec<Row> {
    vec![
        Row::new("program in a process", &[Nf::PROGRAM], Mode::PROCESS),
        Row::new("Click in a process", &[Nf::L3], Mode::PROCESS),
        Row::new("Click, modular", &[Nf::L3], Mode::MODULAR),
        Row::new("Click, fused", &[Nf::L3], Mode::CACHED),
    ]
}

/// Loads in Mpps: shares of the rate of 10 GbE, rounded to thousandths.
fn loads(lab: &Lab) -> Vec<f64> {
    let tenths: &[f64] =
        if lab.effort.is_miniature() { &[0.01, 0.1] } else { &[0.1, 0.2, 0.4, 0.6, 0.8, 1.0] };
    tenths.iter().map(|share| (share * LINE * 1e3).round() / 1e3).collect()
}

/// Cases that offer each load to each row of NFs; `y` is computed from what was observed, where that is
/// known.
fn over_loads<'r>(
    rows: &'r [Row],
    loads: &'r [f64],
    offer: impl Fn(&Lab, f64) -> Offer + Copy + 'r,
    y: impl Fn(&Observed) -> Option<f64> + Copy + 'r,
) -> impl Iterator<Item = Case<'r>> {
    rows.iter().map(move |row| {
        Case::new(row.name.clone(), move |lab| {
            let path = lab.row(&row.nfs, row.mode)?;
            let chain = trial::open(&path, &lab.run_options(row.mode, Some(64)), Batching::Adaptive)?;
            let offers = loads.iter().map(|load| (*load, offer(lab, load * 1e6)));
            trial::offered(lab, chain, offers, |observed| y(observed).map(|y| (row.name.clone(), y)))
        })
    })
}

/// Figure 11: the forwarded over the offered load.
pub fn forward(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let (rows, loads) = (rows(), loads(lab));
    let trial_s = lab.effort.trial_s.max(0.1);
    let offer = |_: &Lab, load: f64| Offer::even(load, trial_s);
    let cases = over_loads(&rows, &loads, offer, |observed| Some(observed.sent as f64 / trial_s / 1e6));
    let sheet = lab.sheet(
        "netvm-forward",
        "What is forwarded of what is offered",
        "64-byte frames, open loop. The program exchanges addresses; Click forwards by ten routes.",
        (Axis::linear("offered", "Mpps"), Axis::linear("forwarded", "Mpps")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.add_note(trial::open_loop(trial_s));
    let least = loads.first().copied().unwrap_or_default();
    for row in &rows {
        let values = (figure.at(&row.name, least), Some(least));
        let told = format!("{}: the lowest load comes through (Mpps)", row.name);
        figure.expect(values, &told, |own, offered| own > offered * 0.9);
    }
    let line = loads.iter().map(|load| (*load, *load));
    figure.paper("NetVM, simple L3", PLACE, line);
    for (name, gbps) in [("NetVM, Click", 6.0), ("SR-IOV", 5.0), ("Linux, Click", 0.327)] {
        let most = line_mpps(gbps, 64.0);
        let points = loads.iter().map(|load| (*load, load.min(most)));
        figure.paper(name, PLACE, points);
    }
    figure.add_note(
        "Papers' lines follow from the most that section V.B states for each; below that all is forwarded.",
    );
    crowded(lab, &mut figure, 1);
    Ok(vec![figure])
}

/// Figure 12: frame sizes.
pub fn sizes(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let rows = rows();
    let sizes = lab.effort.sizes;
    let sheet = lab.sheet(
        "netvm-sizes",
        "L3 forwarding over frame sizes",
        "Bits a second on the line, with 20 bytes of preamble and gap for each frame.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Gbit/s")),
    );
    let mut figure = lab.saturate(sheet, over_sizes(&rows, sizes));
    for point in figure.series.iter_mut().flat_map(|series| &mut series.points) {
        point.y = point.y.map(|mpps| line_gbps(mpps, point.x));
    }
    let most = sizes.iter().copied().max().map_or(64.0, f64::from);
    for row in &rows {
        let values = (figure.at(&row.name, 64.0), figure.at(&row.name, most));
        let told = format!("{}: large frames fill more (Gbit/s)", row.name);
        figure.expect(values, &told, |small, large| large > small);
    }
    // The paper states values for 64 bytes, and for 128 bytes and more.
    let all = |smallest: f64| {
        let stated = sizes.iter().filter(|size| **size == 64 || **size >= 128);
        stated.map(move |size| (f64::from(*size), if *size < 128 { smallest } else { 10.0 }))
    };
    figure.paper("NetVM, simple L3", PLACE, all(10.0));
    figure.paper("NetVM, Click", PLACE, all(6.8));
    Ok(vec![figure])
}

/// Figure 14: NFs in processes, in a row.
pub fn chain(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let most = lab.effort.most;
    let curves = [("L2FWD, firewall, L3FWD in processes", Mode::PROCESS), ("the same, fused", Mode::CACHED)];
    // A switch, a firewall, then L3 forwarders: the paper's chain.
    let nfs = |count: usize| -> Vec<Nf> {
        [Nf::L2, Nf::FIREWALL].into_iter().chain(std::iter::repeat(Nf::L3)).take(count).collect()
    };
    let cases = (1..=most).flat_map(|count| curves.map(|curve| (count, curve)));
    let cases = cases.map(|(count, (name, mode))| {
        let nfs = nfs(count);
        Case::point(name, count as f64, move |lab| saturated(lab, &nfs, mode, 64))
    });
    let sheet = lab.sheet(
        "netvm-chain",
        "Different NFs in a row",
        "An L2 switch, a firewall and L3 forwarders, each in a process of its own over shared memory; 64-byte frames.",
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    let last = most as f64;
    let values = (figure.at(curves[0].0, 1.0), figure.at(curves[0].0, last));
    let told = format!("{most} NFs in processes carry less than one (Mpps)");
    figure.expect(values, &told, |one, many| many < one);
    let values = (figure.at(curves[1].0, last), figure.at(curves[0].0, last));
    let told = format!("{most} NFs carry more as one function (Mpps)");
    figure.expect(values, &told, |fused, processes| fused > processes);
    let line = (1..=most.min(3)).map(|count| (count as f64, LINE));
    figure.paper("NetVM", &format!("{PLACE}: nearly line rate up to three VMs"), line);
    crowded(lab, &mut figure, most);
    Ok(vec![figure, chain_behind_switch(lab)])
}

/// The least NFs of the chain behind a switch: the switch, a firewall, an L3 forwarder.
const LEAST_BEHIND: usize = 3;

/// Section V.B: two fifths of the traffic leave by the first NF, and the rest goes on through a firewall and
/// L3 forwarders.
fn chain_behind_switch(lab: &mut Lab) -> Figure {
    let most = lab.effort.most.max(LEAST_BEHIND);
    let curves =
        [("in processes", Mode::PROCESS), ("one process, modular", Mode::MODULAR), ("fused", Mode::CACHED)];
    let cases = (LEAST_BEHIND..=most).flat_map(|count| curves.map(|curve| (count, curve)));
    let cases = cases.map(|(count, (name, mode))| {
        Case::point(name, count as f64, move |lab| {
            let behind: Vec<Nf> = [Nf::FIREWALL].into_iter().chain(vec![Nf::L3; count - 2]).collect();
            let path = lab.row_behind_switch(&behind, mode)?;
            trial::saturation(lab, &path, &lab.run_options(mode, Some(64)))
        })
    });
    let sheet = lab.sheet(
        "netvm-chain-split",
        "A chain that two fifths of the traffic leave early",
        "An L2 switch sends two fifths of the flows out; the others go through a firewall and then through L3 forwarders. \
         64-byte frames.",
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    let (first, last) = (LEAST_BEHIND as f64, most as f64);
    if most > LEAST_BEHIND {
        for (name, _) in curves {
            let told =
                format!("{name}: {most} NFs carry little less than {LEAST_BEHIND}, within a fifth (Mpps)");
            let values = (figure.at(name, first), figure.at(name, last));
            figure.expect(values, &told, |few, many| many > few * 0.8);
        }
    }
    let values = (figure.at("fused", last), figure.at("in processes", last));
    let told = format!("{most} NFs carry more as one function (Mpps)");
    figure.expect(values, &told, |fused, processes| fused > processes);
    figure.paper("NetVM", &format!("{PLACE}: line rate with three VMs"), [(first, LINE)]);
    figure.add_note(
        "The paper states a small decrease where L3 switches are added at the end; it gives no numbers.",
    );
    crowded(lab, &mut figure, most);
    figure
}

/// Figure 15: latency over the offered load.
pub fn latency(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let (rows, loads) = (rows(), loads(lab));
    let offer = |lab: &Lab, load: f64| Offer::sampled(load, trial::latency_s(lab, load));
    let mean = |observed: &Observed| Some(observed.latency()?.mean() / 1e3);
    let cases = over_loads(&rows, &loads, offer, mean);
    let sheet = lab.sheet(
        "netvm-latency",
        "Average latency over the offered load",
        "64-byte frames, open loop: from when a frame was due until the chain sent it.",
        (Axis::linear("offered", "Mpps"), Axis::log("average latency", "µs")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.add_note(trial::open_loop(lab.effort.latency_s));
    let least = loads.first().copied().unwrap_or_default();
    let values = (figure.at("Click, fused", least), figure.at("Click in a process", least));
    let told = "in this process a frame takes less than through another (µs)";
    figure.expect(values, told, |fused, process| fused < process);
    figure.add_note(
        "The paper's figures have the way to the traffic generator and back in them; it states none. Past what a mode \
         carries latency is that of a full ring of 1,024 frames.",
    );
    crowded(lab, &mut figure, 1);
    Ok(vec![figure])
}

/// Table I: the time of each stage of a packet.
pub fn breakdown(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let tasks = ["NIC → host", "host → NF", "in the NF", "NF → host", "host → NIC", "total"];
    let mut figure = lab.sheet(
        "netvm-breakdown",
        "Where the time of a packet goes",
        "L3 forwarding in a process: the packet thread's stages by its cycle counter, without what reading it costs, and the \
         time that the NF's process ran for each packet. Ports are in memory here, where the paper has a NIC.",
        (Axis::names("task", tasks), Axis::linear("time for each packet", "ns")),
    );
    for row in rows().iter().filter(|row| row.mode == Mode::PROCESS) {
        lab.tell(&format!("netvm-breakdown: {}", row.name));
        let options = BreakdownOptions {
            run: lab.run_options(row.mode, Some(64)),
            seconds: lab.effort.seconds,
            rounds: lab.effort.rounds,
        };
        let found = lab.row(&row.nfs, row.mode).and_then(|path| stages::measure(&path, &options));
        let found = match found {
            Ok(found) => found,
            Err(why) => {
                figure.skip(&row.name, why);
                continue;
            }
        };
        let sentence = format!("{}: every element accounts for all of its packets", row.name);
        figure.expected.push(Expectation::of_counts(sentence, found.sound));
        let parts = [Kind::Receive, Kind::ToNf, Kind::InNf, Kind::FromNf, Kind::Send]
            .map(|kind| found.cycles(kind) / found.cycles_per_ns);
        let total: f64 = parts.iter().sum();
        let points = parts.into_iter().chain([total]).enumerate().map(|(x, ns)| Point {
            repeats: lab.effort.rounds,
            disturbed: found.is_disturbed(),
            ..Point::single(x as f64, ns)
        });
        figure.series.push(Series::own(row.name.clone(), points.collect()));
    }
    if figure.series.is_empty() {
        figure.add_note("Nothing could be measured: see what was skipped.");
    }
    let place = format!("{PLACE}, table I");
    let table = |figures: [f64; 6]| figures.into_iter().enumerate().map(|(x, ns)| (x as f64, ns));
    // The stages VM → APP, APP and APP → VM together are the NF's; the totals are those that the paper
    // states.
    let simple = table([27.8, 16.7, 1.8 + 37.7 + 1.8, 1.8, 0.6, 88.3]);
    let click = table([27.8, 16.7, 29.4 + 41.5 + 129.0, 1.8, 0.6, 246.8]);
    figure.paper("NetVM, simple L3", &place, simple);
    figure.paper("NetVM, Click", &place, click);
    figure.add_note(
        "Time in the NF is that for which its process ran, which counts its looking for packets; the packet thread and the NF \
         work at the same time, so the total is work and not a rate.",
    );
    Ok(vec![figure])
}

/// Figure 16: instances of an NF.
pub fn steering(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let most = lab.effort.most.min(4);
    let mut figures = steered(lab, most, None)?;
    figures.extend(steered_by_class(lab, most)?);
    Ok(figures)
}

/// Figure 17: how long it takes to start an NF.
pub fn deploy(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    // Verdicts are about medians, also in miniature.
    let rounds = lab.effort.rounds;
    lab.effort.rounds = rounds.max(2);
    let figure = deployed(lab, None, None);
    lab.effort.rounds = rounds;
    Ok(vec![figure?])
}

/// Figure 18: an attack.
pub fn dos(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let options = match lab.effort.name {
        "full" => DosOptions::FULL,
        "quick" => DosOptions::QUICK,
        _ => DosOptions::MINIATURE,
    };
    Ok(attacked(lab, &options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::trial::closed::ClosedLoop;

    /// What the first NF sends out itself, and what it hands on, are counted by its own elements.
    #[test]
    fn two_fifths_leave_behind_the_switch() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        for mode in [Mode::MODULAR, Mode::CACHED] {
            let path = lab.row_behind_switch(&[Nf::FIREWALL, Nf::L3], mode).expect("written");
            let chain = ClosedLoop::warmed_up(&path, &lab.run_options(mode, Some(64))).expect("it runs");
            let report = chain.end().report;
            let split = report.nodes.iter().find(|node| node.name == "nf1/split").expect("the switch");
            let [out, rest] = split.outputs.as_slice() else { panic!("{:?}", split.outputs) };
            let share = *out as f64 / (out + rest) as f64;
            assert!((share - 0.4).abs() < 0.03, "{}: {share}", mode.name);
            let checked = report.nodes.iter().filter(|node| node.class == "IPFilter").map(|node| node.input);
            assert_eq!(checked.sum::<u64>(), *rest, "{}: the rest passes the firewall", mode.name);
        }
    }
}
