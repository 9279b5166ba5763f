//! The parts of a frame's latency, which Niu et al. list: the wait at the port, the dataplane's own time, the
//! rings to the NF and back, the NF, and sending.

use super::curves::crowded;
use crate::BenchError;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::figure::{Axis, Expectation, Figure};
use crate::load::{Offer, Parts};
use crate::trial::Sample;

/// Frames of 128 bytes, as in the paper.
const SIZE: u16 = 128;
/// Loads, in frames a second: that of the paper's chains, and lower ones.
const RATES: [f64; 3] = [1e5, 1e6, 2e6];
/// The parts, and their sum.
const NAMES: [&str; 6] = ["port's ring", "worker", "NF's rings", "NF", "sending", "total"];
/// Where the NF and the total stand among them.
const NF: f64 = 3.0;

const MODES: [(&str, Nf, Mode); 2] =
    [("in a process", Nf::TIMED_PROGRAM, Mode::PROCESS), ("modular", Nf::L2, Mode::MODULAR)];

/// The mean of each part and of all of it, in microseconds, by the number of the part.
fn means(parts: &Parts, total_ns: f64) -> Vec<(f64, f64)> {
    let of = parts.all().into_iter().map(|part| (!part.is_empty()).then(|| part.mean()));
    let all = (0u32..).map(f64::from).zip(of.chain([Some(total_ns)]));
    all.filter_map(|(x, ns)| Some((x, ns? / 1e3))).collect()
}

fn curve(name: &str, rate: f64) -> String {
    format!("{name}, {} Mpps", rate / 1e6)
}

/// Section 5: where the time of a frame goes.
pub fn parts(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let rates: &[f64] = if lab.effort.is_miniature() { &[1e4] } else { &RATES };
    let cases = MODES.into_iter().flat_map(|mode| rates.iter().map(move |rate| (mode, *rate)));
    let cases = cases.map(|((name, nf, mode), rate)| {
        let name = curve(name, rate);
        Case::new(name.clone(), move |lab| {
            let path = lab.row(&[nf], mode)?;
            let chain = trial::open_timed(&path, &lab.run_options(mode, Some(SIZE)))?;
            let offer = Offer::sampled(rate, trial::latency_s(lab, rate));
            // One trial has all points: each is a value of its own curve until it is known where it stands.
            let samples = trial::offered(lab, chain, [(0.0, offer)], |observed| {
                let seen = observed.seen.as_ref().zip(observed.latency());
                let parts =
                    seen.and_then(|(seen, latency)| Some(means(seen.parts.as_ref()?, latency.mean())));
                parts.unwrap_or_default().into_iter().map(|(x, us)| (format!("{x}"), us)).collect::<Vec<_>>()
            })?;
            let part = |sample: Sample| {
                let x = sample.series.parse().unwrap_or_default();
                Sample { series: name.clone(), x, ..sample }
            };
            Ok(samples.into_iter().map(part).collect())
        })
    });
    let sheet = lab.sheet(
        "niu-latency-parts",
        "Where the time of a frame goes",
        "L2 forwarding of 128-byte frames in a process and in this one, open loop: the means of all frames' times. From when a \
         frame is due it waits in the port's ring; the worker receives it and enqueues it to the NF; its rings are the time \
         between the worker and the NF that was not the NF's own, both ways, and its waking.",
        (Axis::names("part", NAMES), Axis::linear("time", "µs")),
    );
    let mut figure = lab.sweep(sheet, cases);
    let total = (NAMES.len() - 1) as f64;
    for series in &figure.series {
        let parts: f64 = (0..NAMES.len() - 1).filter_map(|part| series.at(part as f64)).sum();
        let Some(all) = series.at(total) else { continue };
        // Medians of several rounds need not add up, but the means of one do, to the precision of histograms.
        let told = format!("{}: the parts add up to the latency (µs): {parts:.3} and {all:.3}", series.name);
        let holds = (parts / all - 1.0).abs() < if lab.effort.rounds > 1 { 0.25 } else { 0.01 };
        figure.expected.push(Expectation::of_times(told, holds));
        let Some(nf) = series.at(NF) else { continue };
        let most = (0..NAMES.len() - 1).filter_map(|part| series.at(part as f64)).fold(0.0, f64::max);
        let told = format!(
            "{}: the NF takes most of the time (µs): {nf:.3}, and the longest {most:.3}",
            series.name
        );
        figure.expected.push(Expectation::of_times(told, nf >= most));
    }
    figure.add_note(trial::open_loop(lab.effort.latency_s));
    figure.add_note(
        "The papers state that of all parts the processing of NFs takes the most time; they give no numbers of the parts. The \
         NF here exchanges two addresses, the least that an NF does.",
    );
    figure.add_note(
        "In this process there are no rings and no way back from an NF: the worker's time ends with sending.",
    );
    crowded(lab, &mut figure, 1);
    Ok(vec![figure])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn parts_add_up_in_a_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let figures = parts(&mut lab).expect("a figure");
        let [figure] = figures.as_slice() else { panic!("{figures:#?}") };
        // Without the program nothing runs in a process.
        assert_eq!(figure.skipped.len(), 1, "{:#?}", figure.skipped);
        let modular = figure.series("modular, 0.01 Mpps").expect("measured");
        let at = |x: f64| modular.at(x).expect("measured");
        assert_eq!(modular.points.len(), 3, "the ring, the worker and the total: {modular:?}");
        assert!(at(0.0) > 0.0 && at(1.0) > 0.0 && (at(0.0) + at(1.0)) / at(5.0) > 0.99, "{modular:?}");
        assert!(figure.expected.iter().all(|one| one.holds), "{:#?}", figure.expected);
    }
}
