//! Throughput and latency of an ISP's chain (SNF paper, figure 9) over its number of rules and the frame
//! size.

use super::lab::{Case, Lab, trial};
use crate::BenchError;
use crate::figure::{Axis, Figure, Series};
use crate::load::{Batching, Observed, Offer};
use crate::shape::Shape;
use crate::speed::scene::{PortKind, Stage};
use crate::speed::{isp, workload};
use crate::start::failed;
use crate::trial::Sample;
use crate::units::wire_bits;
use std::path::PathBuf;
use table::acl::classbench::Filter;

/// The least and the most flows of the traffic.
const FLOWS: u64 = 1_000;
const MOST_FLOWS: u64 = 30_000;
/// Load of the latency measurement, in frames a second.
const LATENCY_RATE: f64 = 1e5;
/// Frame size of the latency measurement, in bytes with FCS: a TCP frame of 64 bytes has no room for a stamp.
const LATENCY_SIZE: u16 = 128;
/// Frame sizes of the paper's figure 10, in bytes with FCS. The smallest has no latency, for want of room.
const SIZES: &[u16] = &[64, 128, 256, 1_500];
const FEW_SIZES: &[u16] = &[64, 1_500];
/// The quantiles of the paper's figure 10: their names here, and what they are.
const QUANTILES: [(&str, f64); 5] =
    [("1 %", 0.01), ("25 %", 0.25), ("median", 0.5), ("75 %", 0.75), ("99 %", 0.99)];
/// By how much the paper's chains vary more in latency than when synthesized, at least.
const STEADIER: f64 = 2.0;
/// The modes whose sizes and latencies are measured.
const COMPARED: [Shape; 2] = [Shape::Modular, Shape::Cached];

/// A chain with this many rules.
type Chain = (usize, PathBuf);

/// Writes the files of the chain, one way and with replies, with these rules.
fn laid_out(lab: &Lab, name: &str, rules: Vec<Filter>) -> Result<[Chain; 2], BenchError> {
    let count = rules.len();
    let folder = lab.folder().join(format!("rules-{name}"));
    let stage = Stage::new(&folder, Some(rules))?;
    let lay_out = |name: &str| {
        let workload =
            workload::find(name).ok_or_else(|| failed(format!("there is no workload `{name}`")))?;
        // A flow for each rule, as far as the NAPT has ports.
        stage.lay_out(workload, PortKind::Memory, FLOWS.max(count as u64).min(MOST_FLOWS))
    };
    Ok([(count, lay_out("isp-file")?), (count, lay_out("isp-file-replies")?)])
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

/// The curve of a mode and a number of rules, over frame sizes.
fn size_curve(shape: Shape, count: usize) -> String {
    format!("{}, {count} rules", shape.name())
}

/// Measures firewall, router and NAPT with each number of rules, and with the user's rules where the lab has
/// some: throughput in every execution mode, one way and out and back, throughput over frame sizes, and
/// latency at a low rate with its quantiles and its variance.
///
/// # Errors
/// When the files of the chains cannot be written, or the user's rules cannot be read.
pub fn acl(lab: &mut Lab, counts: &[usize]) -> Result<Vec<Figure>, BenchError> {
    let mut sets: Vec<(String, Vec<Filter>)> =
        counts.iter().map(|count| (count.to_string(), isp::generated(*count))).collect();
    let mut about = "Firewall, router and NAPT of an ISP (SNF, figure 9). The rules are made up in the manner of ClassBench's acl1, \
                     and the traffic has 1,000 flows at least, and one for each rule up to 30,000."
        .to_string();
    if let Some(file) = &lab.acl {
        let rules = isp::read(file)?;
        about += &format!(" The {} rules of {} are measured, too.", rules.len(), file.display());
        // A set of as many rules as one of the others takes its place on the axis.
        sets.retain(|(_, own)| own.len() != rules.len());
        sets.push(("of-file".into(), rules));
    }
    sets.sort_by_key(|(_, rules)| rules.len());
    let (mut chains, mut with_replies) = (vec![], vec![]);
    for (name, rules) in sets {
        let [one_way, both_ways] = laid_out(lab, &name, rules)?;
        chains.push(one_way);
        with_replies.push(both_ways);
    }
    let axes = (Axis::log("rules", ""), Axis::linear("throughput", "Mpps"));
    let sheet = lab.sheet("acl", "An ISP's chain over the number of rules", &about, axes);
    let mut rates = lab.saturate(sheet, saturated(&chains));
    let ends = (chains.first().map(|(count, _)| *count), chains.last().map(|(count, _)| *count));
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
    let [latencies, variance] = latency(lab, &chains, &about);
    Ok(vec![
        rates,
        replies,
        latencies,
        sizes(lab, &chains, &about),
        variance,
        latency_sizes(lab, &chains, &about),
    ])
}

/// The frame sizes that are measured, in bytes with FCS.
fn frame_sizes(lab: &Lab) -> impl Iterator<Item = u16> + use<> {
    let sizes = if lab.effort.is_miniature() { FEW_SIZES } else { SIZES };
    sizes.iter().copied()
}

/// Throughput over frame sizes, in bits a second on the line.
fn sizes(lab: &mut Lab, chains: &[Chain], about: &str) -> Figure {
    let cases = frame_sizes(lab).flat_map(|size| in_shapes(chains, COMPARED).map(move |one| (size, one)));
    let cases = cases.map(|(size, ((count, path), shape))| {
        Case::point(&size_curve(shape, *count), f64::from(size), move |lab| {
            let run = lab.run_options(shape, Some(size));
            let (mpps, disturbed) = trial::saturation(lab, path, &run)?;
            Ok((wire_bits(mpps * 1e6, f64::from(size)) / 1e9, disturbed))
        })
    });
    let sheet = lab.sheet(
        "acl-sizes",
        "An ISP's chain over frame sizes",
        &format!("{about} Bits a second on the line, with 20 bytes of preamble and gap for each frame."),
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Gbit/s")),
    );
    let mut figure = lab.saturate(sheet, cases);
    for (count, _) in chains {
        let of = |shape: Shape| figure.at(&size_curve(shape, *count), 64.0);
        let told = format!("{count} rules: more of 64 bytes when synthesized (Gbit/s)");
        figure.expect((of(Shape::Cached), of(Shape::Modular)), &told, |cached, modular| cached > modular);
    }
    figure
}

/// Offers frames of a size at the rate of the latency measurement to a chain; `values` are those of the
/// figure.
fn offered(
    lab: &Lab,
    (path, shape): (&PathBuf, Shape),
    (x, size): (f64, u16),
    values: impl Fn(&Observed) -> Vec<(String, f64)>,
) -> Result<Vec<Sample>, BenchError> {
    let chain = trial::open(path, &lab.run_options(shape, Some(size)), Batching::Adaptive)?;
    let offer = Offer::sampled(LATENCY_RATE, trial::latency_s(lab, LATENCY_RATE));
    let samples = trial::offered(lab, chain, [(x, offer)], values)?;
    if samples.is_empty() { Err(failed("no frame came out with its stamp")) } else { Ok(samples) }
}

/// Quantiles of latency over the number of rules, and its variance, from the same trials.
fn latency(lab: &mut Lab, chains: &[Chain], about: &str) -> [Figure; 2] {
    const VARIANCE: &str = ", variance";
    let cases = in_shapes(chains, COMPARED).map(|((count, path), shape)| {
        Case::new(format!("{}, {count}", shape.name()), move |lab| {
            offered(lab, (path, shape), (*count as f64, LATENCY_SIZE), |seen| {
                let Some(latency) = seen.latency() else { return vec![] };
                let us = |ns: f64| ns / 1e3;
                let quantile = |(name, quantile): (&str, f64)| {
                    (format!("{}, {name}", shape.name()), us(latency.value_at_quantile(quantile) as f64))
                };
                let variance = (format!("{}{VARIANCE}", shape.name()), us(latency.stdev()).powi(2));
                QUANTILES.map(quantile).into_iter().chain([variance]).collect()
            })
        })
    });
    let about = format!("{about} {LATENCY_SIZE}-byte frames at {LATENCY_RATE} a second, open loop.");
    let sheet = lab.sheet(
        "acl-latency",
        "Latency of an ISP's chain over the number of rules",
        &about,
        (Axis::log("rules", ""), Axis::log("latency", "µs")),
    );
    let mut quantiles = lab.sweep(sheet, cases);
    let mut variance = lab.sheet(
        "acl-variance",
        "Variance of an ISP's chain's latency over the number of rules",
        &format!("{about} The square of the standard deviation of the frames' latencies."),
        (Axis::log("rules", ""), Axis::log("variance", "µs²")),
    );
    let (of_variance, others): (Vec<Series>, Vec<Series>) =
        quantiles.series.into_iter().partition(|series| series.name.ends_with(VARIANCE));
    quantiles.series = others;
    variance.series = of_variance
        .into_iter()
        .map(|series| Series { name: series.name.trim_end_matches(VARIANCE).into(), ..series })
        .collect();
    variance.skipped.clone_from(&quantiles.skipped);
    for (count, _) in chains {
        let of = |shape: Shape| variance.at(shape.name(), *count as f64);
        let told = format!(
            "{count} rules: synthesized, latency varies by a factor of {STEADIER} less at least (µs²)"
        );
        variance.expect((of(Shape::Cached), of(Shape::Modular)), &told, |cached, modular| {
            cached * STEADIER <= modular
        });
    }
    for figure in [&mut quantiles, &mut variance] {
        figure.add_note(trial::open_loop(trial::latency_s(lab, LATENCY_RATE)));
    }
    [quantiles, variance]
}

/// Medians of latency over frame sizes.
fn latency_sizes(lab: &mut Lab, chains: &[Chain], about: &str) -> Figure {
    let sizes = frame_sizes(lab).filter(|size| *size >= LATENCY_SIZE);
    let cases = sizes.flat_map(|size| in_shapes(chains, COMPARED).map(move |one| (size, one)));
    let cases = cases.map(|(size, ((count, path), shape))| {
        let name = size_curve(shape, *count);
        Case::new(format!("{name}, {size}"), move |lab| {
            offered(lab, (path, shape), (f64::from(size), size), |seen| {
                let median = |seen: &Observed| Some(seen.latency()?.value_at_quantile(0.5) as f64 / 1e3);
                median(seen).map(|us| (name.clone(), us)).into_iter().collect()
            })
        })
    });
    let sheet = lab.sheet(
        "acl-latency-sizes",
        "Median latency of an ISP's chain over frame sizes",
        &format!("{about} {LATENCY_RATE} frames a second, open loop."),
        (Axis::log("frame size", "bytes"), Axis::log("latency", "µs")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.add_note("Of 64 bytes there is no latency: a TCP frame of that size has no room for a stamp.");
    figure.add_note(trial::open_loop(trial::latency_s(lab, LATENCY_RATE)));
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;

    #[test]
    fn rules_of_a_user_are_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("own.rules");
        let rules = "@10.0.0.0/8 198.18.0.0/16 0 : 65535 80 : 80 0x06/0xFF\n\
                     @10.0.0.0/8 198.19.0.0/16 0 : 65535 53 : 53 0x11/0xFF\n";
        std::fs::write(&file, rules).expect("written");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        lab.acl = Some(file.clone());
        let figures = acl(&mut lab, &[]).expect("figures");
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        let all = ["acl", "acl-replies", "acl-latency", "acl-sizes", "acl-variance", "acl-latency-sizes"];
        assert_eq!(names, all);
        let [rates, _, latency, sizes, variance, latency_sizes] = figures.as_slice() else { panic!() };
        assert!(rates.about.contains("The 2 rules of"), "{}", rates.about);
        assert!(figures.iter().all(|figure| figure.skipped.is_empty()), "{figures:#?}");
        assert!(rates.at("cached", 2.0).is_some_and(|mpps| mpps > 0.0));
        for shape in ["modular", "cached"] {
            let of = |name: &str| latency.at(&format!("{shape}, {name}"), 2.0);
            let quantiles = QUANTILES.map(|(name, _)| of(name).expect("measured"));
            assert!(quantiles.is_sorted(), "{quantiles:?}");
            assert!(variance.at(shape, 2.0).is_some_and(|variance| variance >= 0.0));
            let curve = format!("{shape}, 2 rules");
            assert!(FEW_SIZES.iter().all(|size| sizes.at(&curve, f64::from(*size)).is_some()));
            assert!(latency_sizes.at(&curve, 64.0).is_none() && latency_sizes.at(&curve, 1_500.0).is_some());
        }
        std::fs::write(&file, "no rule\n").expect("written");
        let refused = acl(&mut lab, &[20]).expect_err("refused").to_string();
        assert!(refused.contains("own.rules") && refused.contains("line 1"), "{refused}");
    }
}
