//! Detection and mitigation of an attack while traffic flows: figure 18 of the NetVM paper (IEEE TNSM 2015,
//! section V.G).
//!
//! Normal flows run, then many sources send SYNs to one of their servers. An orchestrator reads a counter at
//! the chain's entry (`edge/volume.count`) a hundred times a second. When the volume is above a multiple of
//! the usual one, it deploys a filter: it writes rules to a handler, or starts an NF in a process or a
//! container that packets bypassed until then. The experiment uses seconds where the paper uses minutes. The
//! paper's 28 s run from the beginning of the attack until it is filtered.

mod attack;
mod options;
mod orchestrator;

pub use options::DosOptions;

use super::lab::Lab;
use crate::figure::{Axis, Expectation, Figure, Point, Series, Skipped};
use attack::{Attack, Counts, Defence, attack};
use container::runtime::{Installed, Runtime};

/// The highest loss of normal packets, as a share.
const MAX_LOSS: f64 = 0.01;
/// The time of the paper's mitigation, in seconds: detection, provisioning and the start of the application.
const PAPER_S: f64 = 28.0;
const PAPER: &str = "NetVM, section V.G: a VM on a Xeon X5650 server, DARPA traces";

/// Measures the attack: rates over time, and the times of detection, deployment and mitigation. The filter
/// also runs in processes and containers where there is a program to run it.
pub fn dos(lab: &mut Lab, options: &DosOptions) -> Vec<Figure> {
    let (mut found, mut skipped) = (vec![], vec![]);
    for way in [
        Defence::Rules,
        Defence::Process,
        Defence::Container(Runtime::Crun),
        Defence::Container(Runtime::Runc),
    ] {
        let name = way.name();
        match attacks(way, lab, options) {
            Ok(attacks) => found.push((name, attacks)),
            Err(why) => skipped.push(Skipped { what: name, why }),
        }
    }
    let (what, why) = ("filter in a virtual machine".into(), "NFs do not run in VMs yet".into());
    skipped.push(Skipped { what, why });
    vec![over_time(&found, &skipped, options), times(&found, &skipped, options)]
}

/// Repeats the attack with one defence.
fn attacks(way: Defence, lab: &mut Lab, options: &DosOptions) -> Result<Vec<Attack>, String> {
    if way != Defence::Rules && lab.millrace.is_none() {
        return Err("there is no program to run Click configurations in processes here".into());
    }
    if let Defence::Container(runtime) = way {
        runtime.works()?;
    }
    let one = |number: usize| {
        lab.tell(&format!("dos: {}, attack {}", way.name(), number + 1));
        attack(way, lab, options).map_err(|error| error.to_string())
    };
    (0..options.repeats.max(1)).map(one).collect()
}

type Found = [(String, Vec<Attack>)];

/// Rates over time, of the first attack with each defence.
fn over_time(found: &Found, skipped: &[Skipped], options: &DosOptions) -> Figure {
    let (mut series, until_s) = (vec![], options.attack_s + options.after_s);
    if let Some(first) = found.first().and_then(|(_, attacks)| attacks.first()) {
        series.push(Series::own(
            "incoming",
            rates(&first.samples, options.bin_s, until_s, |counts| counts.came),
        ));
    }
    for (name, attacks) in found {
        let points =
            attacks.first().map(|first| rates(&first.samples, options.bin_s, until_s, |counts| counts.out));
        series.push(Series::own(format!("out, {name}"), points.unwrap_or_default()));
    }
    let expected = found.iter().flat_map(|(name, attacks)| expected(name, attacks)).collect();
    let mut figure = figure("netvm-dos", "Denial of service, mitigated", options);
    figure.x = Axis::linear("time since the attack began", "s");
    figure.y = Axis::linear("rate", "kpps");
    figure.add_note(format!(
        "Points are means over {:.0} ms. The attack begins right behind a look of the orchestrator, and ends after {} s, \
         filtered or not.",
        options.bin_s * 1e3,
        options.attack_s
    ));
    Figure { series, skipped: skipped.to_vec(), expected, ..figure }
}

/// Packets a second, in thousands, for each bin of an attack. Bins begin at multiples of their length, so
/// that all curves have the same x values.
fn rates(samples: &[Counts], bin_s: f64, until_s: f64, of: impl Fn(&Counts) -> [u64; 2]) -> Vec<Point> {
    let Some(first) = samples.first() else { return vec![] };
    let number = |at_s: f64| (at_s / bin_s).ceil() as i64;
    // The last sample up to the beginning of a bin.
    let at = |bin: i64| {
        let behind = samples.partition_point(|sample| sample.at_s <= bin as f64 * bin_s);
        samples.get(behind.checked_sub(1)?)
    };
    let point = |bin: i64| {
        let (one, other) = (at(bin)?, at(bin + 1)?);
        let seconds = other.at_s - one.at_s;
        let packets = of(other).iter().sum::<u64>().saturating_sub(of(one).iter().sum());
        let kpps = (seconds > 0.0).then(|| packets as f64 / seconds / 1e3)?;
        // Rounded to milliseconds.
        let x = ((bin as f64 + 0.5) * bin_s * 1e3).round() / 1e3;
        Some(Point::single(x, kpps))
    };
    (number(first.at_s)..number(until_s) - 1).filter_map(point).collect()
}

fn expected(name: &str, attacks: &[Attack]) -> Vec<Expectation> {
    let sum = |at: usize| attacks.iter().map(|attack| attack.late()[at]).sum::<u64>();
    let (came, out) = (sum(0), sum(1));
    let lost = attacks.iter().map(Attack::normal_lost).fold(0.0, f64::max);
    let all_s = attacks.iter().map(Attack::mitigated_s).fold(0.0, f64::max);
    vec![
        Expectation::of_counts(
            format!("{name}: of {came} packets of the attack that came once it worked, {out} got out"),
            came > 0 && out == 0,
        ),
        Expectation::of_times(
            format!(
                "{name}: {:.2} % of normal packets are lost, {} % at most",
                lost * 100.0,
                MAX_LOSS * 100.0
            ),
            lost <= MAX_LOSS,
        ),
        Expectation::of_times(
            format!(
                "{name}: the attack is filtered after {all_s:.3} s, in less than the paper's {PAPER_S} s"
            ),
            all_s > 0.0 && all_s < PAPER_S,
        ),
    ]
}

/// The times of detection, deployment and mitigation.
fn times(found: &Found, skipped: &[Skipped], options: &DosOptions) -> Figure {
    let parts: [fn(&Attack) -> f64; 3] =
        [|attack| attack.detected_s, |attack| attack.works_s - attack.detected_s, Attack::mitigated_s];
    let of = |(name, attacks): &(String, Vec<Attack>)| {
        let point =
            |(x, part): (usize, &fn(&Attack) -> f64)| Point::of(x as f64, attacks.iter().map(part), false);
        let points = parts.iter().enumerate().filter_map(point).collect();
        Series::own(name.clone(), points)
    };
    let mut series: Vec<Series> = found.iter().map(of).collect();
    series.push(Series::paper("NetVM", PAPER, [(2.0, PAPER_S)]));
    let mut figure = figure("netvm-dos-times", "Time to mitigate a denial of service", options);
    figure.x = Axis::names("part", ["detection", "deployment", "all, until the last packet"]);
    figure.y = Axis::log("time", "s");
    Figure { series, skipped: skipped.to_vec(), ..figure }
}

/// A figure with the texts that both figures share.
fn figure(name: &str, title: &str, options: &DosOptions) -> Figure {
    let DosOptions { normal_pps, attack_pps, attack_s, repeats, .. } = options;
    Figure {
        name: name.into(),
        title: title.into(),
        about: format!(
            "{normal_pps:.0} normal packets a second of 1,000 flows, and for {attack_s} s {attack_pps:.0} SYNs a second to one \
             of their servers. An orchestrator that sees more than {} times the usual volume brings a filter in.",
            options.threshold
        ),
        source: Some("NetVM (IEEE TNSM 2015), figure 18".into()),
        command: format!(
            "millrace bench dos --normal {normal_pps} --attack {attack_pps} --seconds {attack_s} --repeats {repeats}"
        ),
        settings: vec![
            ("frame size".into(), "64 bytes with FCS".into()),
            ("attack flows".into(), options.attack_flows.to_string()),
            (
                "looks of the orchestrator".into(),
                format!("every {:.0} ms, volume over five", options.look_s * 1e3),
            ),
            ("repeats".into(), repeats.to_string()),
        ],
        notes: vec![format!(
            "Scaled: the paper's attack lasts some 7 of 15 minutes, and {PAPER_S} s of it pass until a VM filters it, with \
             detection, provisioning and the start of the application. Here the filter is known and on the machine."
        )],
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use std::path::Path;

    fn attacked(options: &DosOptions) -> Vec<Figure> {
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, Path::new(""), &mut tell);
        // Not pinned to a core: other tests run at the same time.
        lab.machine.cores.clear();
        dos(&mut lab, options)
    }

    #[test]
    fn an_attack_is_noticed_and_filtered_by_rules() {
        let figures = attacked(&DosOptions::MINIATURE);
        let over_time = &figures[0];
        // A library test has no program to start, so only the defence by rules runs.
        assert_eq!(over_time.skipped.len(), 4, "{:#?}", over_time.skipped);
        assert_eq!(over_time.expected.len(), 3);
        let told =
            |what: &str| over_time.expected.iter().find(|one| one.sentence.contains(what)).expect("there");
        assert!(told("got out").holds && told("filtered after").holds, "{:#?}", over_time.expected);
        let peak = |name: &str, from: f64, to: f64| {
            let series = over_time.series(name).expect("there");
            let within = series.points.iter().filter(|point| (from..to).contains(&point.x));
            within.map(|point| point.y.median).fold(0.0, f64::max)
        };
        let (before, during) = (peak("incoming", -0.5, -0.1), peak("incoming", 0.5, 0.9));
        let filtered = peak("out, rules in place", 0.7, 0.9);
        assert!(during > 2.0 * before && filtered < during / 2.0, "{before} {during} {filtered}");
        let times = figures[1].series("rules in place").expect("there");
        let all: Vec<f64> = times.points.iter().map(|point| point.y.median).collect();
        // The first is read from a thread's clock, the last from samples a millisecond apart.
        assert!(all[0] > 0.0 && all[2] + 0.001 >= all[0] && all[2] < 1.0, "{all:?}");
        assert_eq!(figures[1].series("NetVM").and_then(|paper| paper.at(2.0)), Some(28.0));
    }

    #[test]
    fn curves_have_the_same_places() {
        let sample = |number: i64, shift_s: f64| Counts {
            at_s: number as f64 / 1e3 + shift_s,
            came: [(number + 100) as u64 * 10, 0],
            out: [0, 0],
        };
        let of = |shift_s| {
            let samples: Vec<Counts> = (-100..200).map(|number| sample(number, shift_s)).collect();
            rates(&samples, 0.02, 0.1, |counts| counts.came)
        };
        let (one, other) = (of(0.0), of(0.000_4));
        let places = |points: &[Point]| points.iter().map(|point| point.x).collect::<Vec<_>>();
        assert_eq!(places(&one)[..3], [-0.09, -0.07, -0.05]);
        assert_eq!(places(&one)[1..], places(&other)[..]);
        assert!(one.iter().chain(&other).all(|point| (point.y.median - 10.0).abs() < 0.01), "{one:?}");
    }

    #[test]
    fn an_attack_that_nobody_sees_is_told() {
        let options = DosOptions { threshold: 1e6, attack_s: 0.1, after_s: 0.1, ..DosOptions::MINIATURE };
        let figures = attacked(&options);
        assert!(figures[0].skipped[0].why.contains("unseen"), "{:#?}", figures[0].skipped);
    }
}
