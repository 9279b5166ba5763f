//! An ISP's chain (SNF paper, figure 9) over the number of its rules: throughput, and latency.

use super::lab::BURST;
use super::lab::{Case, Lab, SLOTS, trial};
use crate::BenchError;
use crate::figure::{Axis, Expectation, Figure, Scale};
use crate::load::{Batching, Offer};
use crate::shape::Shape;
use crate::speed::scene::{PortKind, Stage};
use crate::speed::{isp, workload};
use crate::start::{RunOptions, failed};
use crate::trial::Sample;
use runtime::traffic::Change;
use std::path::PathBuf;
use traffic::SizeMix;

/// Flows of the traffic, at least and at most.
const FLOWS: u64 = 1_000;
const MOST_FLOWS: u64 = 30_000;
/// Frames a second at which latency is measured.
const LATENCY_RATE: f64 = 1e5;
/// Frames of the latency measurement: TCP with a stamp does not fit into 64 bytes.
const LATENCY_SIZE: u16 = 128;

/// Lays out the chain with so many generated rules.
fn laid_out(lab: &Lab, rules: usize) -> Result<PathBuf, BenchError> {
    let workload = workload::find("isp-file").ok_or_else(|| failed("there is no workload `isp-file`"))?;
    let folder = lab.folder().join(format!("rules-{rules}"));
    let stage = Stage::new(&folder)?.with_rules(Some(isp::generated(rules)));
    // A flow for each rule, as far as the NAPT has ports.
    stage.lay_out(workload, PortKind::Memory, FLOWS.max(rules as u64).min(MOST_FLOWS))
}

fn run_options(lab: &Lab, shape: Shape, size: u16) -> RunOptions {
    let change = Change { size: Some(SizeMix::fixed(size)), flows: None, ..Change::default() };
    RunOptions { burst: BURST, polls: false, cores: lab.cores(1), slots: SLOTS, shape, change }
}

/// Measures firewall, router and NAPT with so many rules: throughput in every form, and latency at a low rate.
///
/// # Errors
/// When the chains cannot be laid out.
pub fn acl(lab: &mut Lab, counts: &[usize]) -> Result<Vec<Figure>, BenchError> {
    let mut chains = vec![];
    for count in counts {
        chains.push((*count, laid_out(lab, *count)?));
    }
    let shapes = || chains.iter().flat_map(|chain| Shape::ALL.map(|shape| (chain, shape)));
    let cases = shapes().map(|((count, path), shape)| {
        Case::point(shape.name(), *count as f64, move |lab| {
            let (pps, disturbed) = trial::saturation(lab, path, &run_options(lab, shape, 64))?;
            Ok((pps / 1e6, disturbed))
        })
    });
    let cases = cases.collect();
    let swept = lab.sweep("acl", cases);
    let about = "Firewall, router and NAPT of an ISP (SNF, figure 9). The rules are made up in the manner of ClassBench's acl1, \
                 and the traffic has 1,000 flows at least, and one for each rule up to 30,000.";
    let (x, y) = (Axis::log("rules", ""), Axis::linear("throughput", "Mpps"));
    let mut rates = lab.sheet("acl", "An ISP's chain over the number of rules", about, "", x, y);
    (rates.series, rates.skipped) = (swept.series, swept.skipped);
    trial::tell_closed_loop(lab, &mut rates);
    let ends = (counts.iter().min().copied(), counts.iter().max().copied());
    if let (Some(few), Some(many)) = ends
        && few < many
    {
        rates.expected = expectations(&rates, few, many);
    }

    let cases = shapes().filter(|(_, shape)| *shape != Shape::Fused).map(|((count, path), shape)| {
        Case::new(format!("{}, {count}", shape.name()), move |lab| {
            let chain = trial::open(path, &run_options(lab, shape, LATENCY_SIZE), Batching::Adaptive)?;
            let offer = Offer::sampled(LATENCY_RATE, trial::latency_s(lab, LATENCY_RATE));
            let observed = trial::offered(chain, &[offer])?;
            let seen = observed.first().and_then(|one| Some((one.is_disturbed(), one.seen.as_ref()?)));
            let (disturbed, seen) = seen.ok_or_else(|| failed("no frame came out with its stamp"))?;
            let sample = |(told, quantile): (&str, f64)| Sample {
                series: format!("{}, {told}", shape.name()),
                x: *count as f64,
                y: seen.latency.value_at_quantile(quantile) as f64 / 1e3,
                disturbed,
            };
            Ok([("median", 0.5), ("99 %", 0.99)].map(sample).into())
        })
    });
    let cases = cases.collect();
    let swept = lab.sweep("acl-latency", cases);
    let mut latencies = lab.sheet(
        "acl-latency",
        "Latency of an ISP's chain over the number of rules",
        &format!("{about} {LATENCY_SIZE}-byte frames at {LATENCY_RATE} a second, open loop."),
        "",
        Axis::log("rules", ""),
        Axis { scale: Scale::Log, ..Axis::linear("latency", "µs") },
    );
    (latencies.series, latencies.skipped) = (swept.series, swept.skipped);
    latencies.notes.push(trial::open_loop(trial::latency_s(lab, LATENCY_RATE)));
    Ok(vec![rates, latencies])
}

fn expectations(rates: &Figure, few: usize, many: usize) -> Vec<Expectation> {
    let at = |shape: Shape, count: usize| rates.series(shape.name())?.at(count as f64);
    let mut expected = vec![];
    if let (Some(most), Some(least)) = (at(Shape::Fused, many), at(Shape::Fused, few)) {
        let told = format!(
            "{many} rules keep half of the rate of {few} at least, fused (Mpps): {most:.3} and {least:.3}"
        );
        expected.push(Expectation::of_times(told, most > least / 2.0));
    }
    if let (Some(cached), Some(modular)) = (at(Shape::Cached, many), at(Shape::Modular, many)) {
        let told = format!("{many} rules carry more when synthesized (Mpps): {cached:.3} and {modular:.3}");
        expected.push(Expectation::of_times(told, cached > modular));
    }
    expected
}
