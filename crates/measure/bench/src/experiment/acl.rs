//! Throughput and latency of an ISP's chain (SNF paper, figure 9) over its number of rules.

use super::lab::{Case, Lab, trial};
use crate::BenchError;
use crate::figure::{Axis, Figure};
use crate::load::Batching;
use crate::shape::Shape;
use crate::speed::scene::{PortKind, Stage};
use crate::speed::{isp, workload};
use crate::start::failed;
use std::path::PathBuf;

/// The least and the most flows of the traffic.
const FLOWS: u64 = 1_000;
const MOST_FLOWS: u64 = 30_000;
/// Load of the latency measurement, in frames a second.
const LATENCY_RATE: f64 = 1e5;
/// Frame size of the latency measurement, in bytes with FCS: a TCP frame of 64 bytes has no room for a stamp.
const LATENCY_SIZE: u16 = 128;

/// A chain with this many rules.
type Chain = (usize, PathBuf);

/// Writes the files of the chain, one way and with replies, with this many generated rules.
fn laid_out(lab: &Lab, rules: usize) -> Result<[Chain; 2], BenchError> {
    let folder = lab.folder().join(format!("rules-{rules}"));
    let stage = Stage::new(&folder, Some(isp::generated(rules)))?;
    let lay_out = |name: &str| {
        let workload =
            workload::find(name).ok_or_else(|| failed(format!("there is no workload `{name}`")))?;
        // A flow for each rule, as far as the NAPT has ports.
        stage.lay_out(workload, PortKind::Memory, FLOWS.max(rules as u64).min(MOST_FLOWS))
    };
    Ok([(rules, lay_out("isp-file")?), (rules, lay_out("isp-file-replies")?)])
}

/// Each chain in these execution modes.
fn in_shapes<const N: usize>(chains: &[Chain], shapes: [Shape; N]) -> impl Iterator<Item = (&Chain, Shape)> {
    chains.iter().flat_map(move |chain| shapes.map(|shape| (chain, shape)))
}

/// The rates that chains carry.
fn saturated(chains: &[Chain]) -> impl Iterator<Item = Case<'_>> {
    in_shapes(chains, Shape::KNOWN).map(|((count, path), shape)| {
        Case::point(shape.name(), *count as f64, move |lab| {
            trial::saturation(lab, path, &lab.run_options(shape, Some(64)))
        })
    })
}

/// Measures firewall, router and NAPT with each number of rules: throughput in every execution mode, one way
/// and out and back, and latency at a low rate.
///
/// # Errors
/// When the files of the chains cannot be written.
pub fn acl(lab: &mut Lab, counts: &[usize]) -> Result<Vec<Figure>, BenchError> {
    let (mut chains, mut with_replies) = (vec![], vec![]);
    for count in counts {
        let [one_way, both_ways] = laid_out(lab, *count)?;
        chains.push(one_way);
        with_replies.push(both_ways);
    }
    let about = "Firewall, router and NAPT of an ISP (SNF, figure 9). The rules are made up in the manner of ClassBench's acl1, \
                 and the traffic has 1,000 flows at least, and one for each rule up to 30,000.";
    let axes = (Axis::log("rules", ""), Axis::linear("throughput", "Mpps"));
    let sheet = lab.sheet("acl", "An ISP's chain over the number of rules", about, axes);
    let mut rates = lab.saturate(sheet, saturated(&chains));
    let ends = (counts.iter().min().copied(), counts.iter().max().copied());
    if let (Some(few), Some(many)) = ends
        && few < many
    {
        let at = |shape: Shape, count: usize| rates.at(shape.name(), count as f64);
        let kept = (at(Shape::Whole, many), at(Shape::Whole, few));
        let fused = (at(Shape::Cached, many), at(Shape::Modular, many));
        let told = format!(
            "{many} rules keep half of the rate of {few} at least, every packet through the whole program (Mpps)"
        );
        rates.expect(kept, &told, |most, least| most > least / 2.0);
        let told = format!("{many} rules carry more when synthesized (Mpps)");
        rates.expect(fused, &told, |cached, modular| cached > modular);
    }

    let sheet = lab.sheet(
        "acl-replies",
        "An ISP's chain out and back over the number of rules",
        &format!(
            "{about} The Internet and the ISP's own servers answer every packet; a packet and its answer count \
             once."
        ),
        (Axis::log("rules", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut replies = lab.saturate(sheet, saturated(&with_replies));
    if let Some(many) = ends.1 {
        let at = |shape: Shape| replies.at(shape.name(), many as f64);
        let told = format!("{many} rules with replies carry more when synthesized (Mpps)");
        replies.expect((at(Shape::Cached), at(Shape::Modular)), &told, |cached, modular| cached > modular);
    }

    let cases = in_shapes(&chains, [Shape::Modular, Shape::Cached]).map(|((count, path), shape)| {
        Case::new(format!("{}, {count}", shape.name()), move |lab| {
            let run = lab.run_options(shape, Some(LATENCY_SIZE));
            let loads = [(*count as f64, LATENCY_RATE)];
            let samples = trial::latencies(lab, path, (&run, Batching::Adaptive), shape.name(), &loads)?;
            if samples.is_empty() { Err(failed("no frame came out with its stamp")) } else { Ok(samples) }
        })
    });
    let sheet = lab.sheet(
        "acl-latency",
        "Latency of an ISP's chain over the number of rules",
        &format!("{about} {LATENCY_SIZE}-byte frames at {LATENCY_RATE} a second, open loop."),
        (Axis::log("rules", ""), Axis::log("latency", "µs")),
    );
    let mut latencies = lab.sweep(sheet, cases);
    latencies.add_note(trial::open_loop(trial::latency_s(lab, LATENCY_RATE)));
    Ok(vec![rates, replies, latencies])
}
