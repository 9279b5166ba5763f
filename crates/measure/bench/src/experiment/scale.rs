//! A chain's throughput over flows, frame sizes, bursts and cores.

use super::growth;
use super::lab::{Case, Lab, Mode, trial};
use crate::BenchError;
use crate::figure::{Axis, Figure};
use crate::start::RunOptions;
use runtime::traffic::Change;
use std::path::Path;

const MODES: [Mode; 3] = [Mode::MODULAR, Mode::FUSED, Mode::CACHED];
const FLOWS: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
const BURSTS: [usize; 7] = [1, 4, 8, 16, 32, 64, 256];

/// Where a point is, and how the chain runs there, in whatever mode.
type Varied = Vec<(f64, RunOptions)>;

/// Measures the chain in a file; returns a figure for each of flows, frame sizes, bursts and cores. NFs in
/// processes run as the file says.
///
/// # Errors
/// When the chain cannot run.
pub fn scale(lab: &mut Lab, path: &Path) -> Result<Vec<Figure>, BenchError> {
    let small = lab.effort.is_miniature();
    // A chain with mistakes is reported once, and not for each point.
    trial::check(path)?;
    let run = lab.run_options(Mode::MODULAR, None);
    let flows = FLOWS.into_iter().filter(|flows| !small || [1, 1_000].contains(flows));
    let with_flows = |flows| Change { flows: Some(flows), ..Change::default() };
    let flows = flows.map(|flows| (flows as f64, RunOptions { change: with_flows(flows), ..run.clone() }));
    let sizes = lab.effort.sizes.iter().copied();
    let sizes: Varied = sizes.map(|size| (size.into(), lab.run_options(Mode::MODULAR, Some(size)))).collect();
    let bursts = BURSTS.into_iter().filter(|burst| !small || [1, 64].contains(burst));
    let bursts = bursts.map(|burst| (burst as f64, RunOptions { burst, ..run.clone() }));
    let cores = (1..=lab.machine.cores.len()).map(|count| (count as f64, lab.cores(count)));
    let cores: Varied = cores.map(|(x, cores)| (x, RunOptions { cores, ..run.clone() })).collect();
    let of = |lab: &mut Lab, name: &str, over: &str, x: Axis, varied: Varied| {
        one(lab, path, name, over, x, &varied)
    };
    Ok(vec![
        of(lab, "scale-flows", "flows", Axis::log("flows", ""), flows.collect()),
        of(lab, "scale-sizes", "frame sizes", Axis::log("frame size", "bytes"), sizes),
        of(lab, "scale-bursts", "bursts", Axis::log("packets at a time", ""), bursts.collect()),
        of(lab, "scale-cores", "cores", Axis::linear("cores", ""), cores),
    ])
}

fn one(lab: &mut Lab, path: &Path, name: &str, over: &str, x: Axis, varied: &[(f64, RunOptions)]) -> Figure {
    let cases = varied.iter().flat_map(|varied| MODES.map(|mode| (varied, mode)));
    let cases = cases.map(|((x, run), mode)| {
        let run = RunOptions { shape: Some(mode.into()), ..run.clone() };
        Case::point(mode.name, *x, move |lab| trial::saturation(lab, path, &run))
    });
    let sheet = lab.sheet(
        name,
        &format!("Throughput over {over}"),
        &path.display().to_string(),
        (x, Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, cases);
    for series in &figure.series {
        let points: Vec<(f64, f64)> = series.points.iter().map(|point| (point.x, point.y.median)).collect();
        figure.notes.extend(growth::power(&points).map(|power| {
            format!(
                "{}: throughput grows with the {power:+.2}th power of {over} (least squares of logarithms)",
                series.name
            )
        }));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn every_way_to_scale_gives_a_curve() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let path = lab.row(&[crate::experiment::lab::Nf::L3], Mode::MODULAR).expect("written");
        let figures = scale(&mut lab, &path).expect("figures");
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["scale-flows", "scale-sizes", "scale-bursts", "scale-cores"]);
        for figure in &figures {
            assert!(figure.skipped.is_empty() && figure.series.len() == 3, "{figure:#?}");
        }
        let bursts = figures[2].series("modular").expect("measured");
        assert!(bursts.at(64.0) > Some(0.0) && bursts.at(1.0) > Some(0.0), "{bursts:?}");
        let bytes = figures[1].series("fused").expect("measured");
        assert!(bytes.at(1518.0) > Some(0.0) && bytes.at(64.0) > Some(0.0), "{bytes:?}");
        // Every point is a chain, which ran as its curve says.
        let points: usize =
            figures.iter().flat_map(|figure| &figure.series).map(|series| series.points.len()).sum();
        let expected = lab.take_accounting().expected();
        assert!(expected.iter().all(|one| one.counted && one.holds), "{expected:#?}");
        let of = |what: &str| expected.iter().find(|one| one.sentence.contains(what)).expect("counted");
        assert!(of("account for all").sentence.contains(&format!("{points} of {points} chains")), "{points}");
        assert!(
            of("fused chains").sentence.contains(&format!("{0} of {0} fused", points / 3 * 2)),
            "{points}"
        );
        assert!(
            of("modular chains").sentence.contains(&format!("{0} of {0} modular", points / 3)),
            "{points}"
        );
        assert!(scale(&mut lab, &folder.path().join("missing.toml")).is_err());
    }
}
