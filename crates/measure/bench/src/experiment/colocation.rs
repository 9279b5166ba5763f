//! Independent chains that run at once: their throughput together, and how much they disturb each other.

use super::lab::{Case, Lab, trial};
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure};
use crate::shape::Shape;
use crate::start::RunOptions;
use crate::trial::Sample;
use crate::trial::closed::{ClosedLoop, watch_all};
use crate::units::counted;
use std::path::PathBuf;

/// Measures one chain, two chains, and so on up to `most` at once. The chains are those of the list in turn,
/// each with packet memory and a core of its own. With `sizes` the figure is over the frame size; otherwise
/// the chains keep their own sizes and the figure is over the number of chains.
///
/// # Errors
/// When a chain has errors.
pub fn colocated(
    lab: &mut Lab,
    paths: &[PathBuf],
    most: usize,
    mode: Shape,
    sizes: Option<&[u16]>,
) -> Result<Figure, BenchError> {
    for path in paths {
        trial::check(path)?;
    }
    let cores = lab.machine.cores.len();
    let points: Vec<Option<u16>> =
        sizes.map_or(vec![None], |sizes| sizes.iter().copied().map(Some).collect());
    let cases = (1..=most.min(cores)).flat_map(|count| points.iter().map(move |size| (count, *size)));
    let cases = cases.map(|(count, size)| {
        // Over sizes there is a curve for each number of chains; otherwise the x axis is that number.
        let x = size.map_or(count as f64, f64::from);
        let all = if size.is_some() { counted(count, "chain") } else { "all together".into() };
        Case::new(format!("{}, {x}", counted(count, "chain")), move |lab| {
            let rates = together(lab, paths, mode, count, size)?;
            let disturbed = rates.iter().any(|(_, disturbed)| *disturbed);
            let of = |series: String, y: f64| Sample { series, x, y, disturbed };
            let sum: f64 = rates.iter().map(|(mpps, _)| mpps).sum();
            let mut samples = vec![of(all.clone(), sum)];
            if size.is_none() {
                let least = rates.iter().map(|(mpps, _)| *mpps).fold(f64::INFINITY, f64::min);
                samples.push(of("the slowest".into(), least));
            }
            Ok(samples)
        })
    });
    let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let about = match sizes {
        Some(_) => "L3 forwarding: what all chains carry together, each with generated traffic, packet memory and a core of its own."
            .to_string(),
        None => format!(
            "{}, in turn: what all carry together, and the slowest alone, each with packet memory and a core of its own.",
            named.join(", ")
        ),
    };
    let x = match sizes {
        Some(_) => Axis::log("frame size", "bytes"),
        None => Axis::linear("chains", ""),
    };
    let y = Axis::linear("throughput", "Mpps");
    let sheet = lab.sheet("colocation", "Independent chains side by side", &about, (x, y));
    let mut figure = lab.saturate(sheet, cases);
    for count in cores + 1..=most {
        figure.skip(
            counted(count, "chain"),
            format!("each chain has a core of its own, and there are {cores}"),
        );
    }
    expectations(&mut figure, sizes);
    Ok(figure)
}

/// Expects two chains to carry more than one, and reports their share of twice as much.
fn expectations(figure: &mut Figure, sizes: Option<&[u16]>) {
    let first = sizes.and_then(|sizes| sizes.first()).copied().map(f64::from);
    let (one, two) = match first {
        Some(size) => (figure.at("1 chain", size), figure.at("2 chains", size)),
        None => (figure.at("all together", 1.0), figure.at("all together", 2.0)),
    };
    if let (Some(one), Some(two)) = (one, two) {
        let share = two / one / 2.0 * 100.0;
        let told = format!(
            "two chains carry more than one: {two:.3} and {one:.3} Mpps, {share:.0} % of twice as much"
        );
        figure.expected.push(Expectation::of_times(told, two > one));
    }
}

/// Runs `count` chains at once; returns the throughput of each in Mpps, and whether it was disturbed.
fn together(
    lab: &Lab,
    paths: &[PathBuf],
    mode: Shape,
    count: usize,
    size: Option<u16>,
) -> Result<Vec<(f64, bool)>, BenchError> {
    let mut running = vec![];
    for (core, path) in lab.cores(count).into_iter().zip(paths.iter().cycle()) {
        let run = RunOptions { cores: vec![core], ..lab.run_options(mode, size) };
        running.push(ClosedLoop::warmed_up(path, &run)?);
    }
    let windows = watch_all(&running, lab.effort.seconds);
    running.into_iter().try_for_each(|chain| trial::ended(lab, chain))?;
    let rate = |window: &crate::trial::closed::Window| {
        (window.per_second(window.packets) / 1e6, window.is_disturbed())
    };
    Ok(windows?.iter().map(rate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::experiment::lab::{Mode, Nf};

    #[test]
    fn chains_run_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let paths = [Nf::L3, Nf::L2].map(|nf| lab.row(&[nf], Mode::MODULAR).expect("written"));
        let cores = lab.machine.cores.len();
        let figure = colocated(&mut lab, &paths, cores + 1, Shape::Modular, None).expect("a figure");
        let all = figure.series("all together").expect("measured");
        let slowest = figure.series("the slowest").expect("measured");
        assert_eq!((all.points.len(), slowest.points.len()), (cores, cores));
        assert!(all.at(1.0) == slowest.at(1.0) && all.at(1.0).is_some_and(|mpps| mpps > 0.0), "{figure:#?}");
        assert_eq!(figure.skipped.len(), 1, "{:?}", figure.skipped);
    }
}
