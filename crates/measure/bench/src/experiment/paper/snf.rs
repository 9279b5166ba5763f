//! The experiments of SNF: routers and NAPTs in a row, and an ISP's chain, synthesized and not.

use super::curves::line_gbps;
use crate::BenchError;
use crate::experiment::acl::acl as many_rules;
use crate::experiment::growth::per_nf;
use crate::experiment::lab::{Case, Lab, trial};
use crate::figure::{Axis, Figure};
use crate::shape::Shape;
use crate::speed::scene::{PortKind, Stage};
use crate::speed::workload;
use crate::start::{RunOptions, failed};
use std::path::PathBuf;

const PLACE: &str = "SNF, Xeon E5-2667 v3 at 3.2 GHz, 8 cores, four 10 GbE ports";
/// Flows of the traffic.
const FLOWS: u64 = 1_000;

/// Writes the chain of one of the benchmark's workloads, with ports in memory.
fn laid_out(lab: &Lab, name: &str) -> Result<PathBuf, BenchError> {
    let workload = workload::find(name).ok_or_else(|| failed(format!("there is no workload `{name}`")))?;
    Stage::new(lab.folder(), None)?.lay_out(workload, PortKind::Memory, FLOWS)
}

/// Throughput of a workload at saturation, in Mpps, and whether the measurement was disturbed.
fn saturated(lab: &Lab, name: &str, shape: Shape, size: u16) -> Result<(f64, bool), BenchError> {
    let path = laid_out(lab, name)?;
    trial::saturation(lab, &path, &lab.run_options(shape, Some(size)))
}

/// NFs of one kind: their name, and that of their workloads without the number of NFs.
type Kind = (&'static str, &'static str);

const KINDS: [Kind; 2] = [("routers", "router"), ("NAPTs", "napt")];
/// The same with both ways.
const REPLY_KINDS: [Kind; 2] = [("routers", "both-ways-router"), ("NAPTs", "both-ways")];

/// Several numbers of NFs of each kind in a row, with each burst size, element by element and cached.
fn with_bursts(kinds: [Kind; 2], lengths: &'static [u32]) -> impl Iterator<Item = Case<'static>> {
    lengths.iter().flat_map(move |length| {
        let curves = kinds.into_iter().flat_map(|kind| BURST_SHAPES.map(|shape| (kind, shape)));
        let curves = curves.flat_map(|curve| BURSTS.map(|burst| (curve, burst)));
        curves.map(move |(((name, workload), shape), burst)| {
            Case::point(&burst_curve(name, shape, burst), f64::from(*length), move |lab| {
                let path = laid_out(lab, &format!("{workload}-{length}"))?;
                trial::saturation(lab, &path, &RunOptions { burst, ..lab.run_options(shape, Some(64)) })
            })
        })
    })
}

/// The burst sizes of the paper's figure 7.
const BURSTS: [usize; 2] = [32, 128];
const BURST_SHAPES: [Shape; 2] = [Shape::Modular, Shape::Cached];

fn burst_curve(kind: &str, shape: Shape, burst: usize) -> String {
    format!("{kind}, {}, bursts of {burst}", shape.name())
}

/// Several numbers of NFs of each kind in a row, in each shape.
fn in_a_row(kinds: [Kind; 2], lengths: &'static [u32]) -> impl Iterator<Item = Case<'static>> {
    lengths.iter().flat_map(move |length| {
        let curves = kinds.into_iter().flat_map(|kind| Shape::ALL.map(|shape| (kind, shape)));
        curves.map(move |((name, workload), shape)| {
            Case::point(&format!("{name}, {}", shape.name()), f64::from(*length), move |lab| {
                saturated(lab, &format!("{workload}-{length}"), shape, 64)
            })
        })
    })
}

/// Figure 7: one to ten routers and NAPTs in a row.
pub fn chain(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let lengths: &'static [u32] = if lab.effort.is_miniature() { &[1, 4] } else { &[1, 2, 4, 10] };
    let sheet = lab.sheet(
        "snf-chain",
        "Routers and NAPTs in a row",
        "Standards-compliant routers and NAPTs with 1,000 flows, 64-byte frames, one core: element by element, synthesized \
         (fused), and synthesized with a flow cache (cached).",
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, in_a_row(KINDS, lengths));
    let last = lengths.last().map_or(1.0, |length| f64::from(*length));
    for (name, _) in KINDS {
        let of = |shape: Shape, x: f64| figure.at(&format!("{name}, {}", shape.name()), x);
        let values = (of(Shape::Fused, last), of(Shape::Modular, last));
        let told = format!("{last} {name} carry more when synthesized (Mpps)");
        let kept = (of(Shape::Cached, last), of(Shape::Cached, 1.0));
        figure.expect(values, &told, |fused, modular| fused > modular);
        let told = format!("with a flow cache {last} {name} keep half of the rate of one at least (Mpps)");
        figure.expect(kept, &told, |many, one| many > one / 2.0);
    }
    figure.notes.extend(per_nf(&figure, "NF"));
    figure.add_note(format!(
        "The paper ({PLACE}): SNF holds the 31.5 Gbit/s that its NICs do with 60-byte frames (without FCS) up to ten routers, \
         and up to ten NAPTs with batches of 128; ten routers in FastClick stay below 10 Gbit/s, by a quadratic fit."
    ));
    let bursts = chain_bursts(lab, KINDS, lengths, "snf-chain-bursts", "");
    let replies = chain_replies(lab, lengths);
    let burst_replies =
        chain_bursts(lab, REPLY_KINDS, lengths, "snf-chain-replies-bursts", ", out through all and back");
    Ok(vec![figure, bursts, replies, burst_replies])
}

/// Bursts of 32 and of 128 packets, as in the paper's figure 7.
fn chain_bursts(lab: &mut Lab, kinds: [Kind; 2], lengths: &'static [u32], name: &str, way: &str) -> Figure {
    let sheet = lab.sheet(
        name,
        &format!("Routers and NAPTs in a row{way}, bursts of 32 and 128"),
        &format!(
            "Routers and NAPTs with 1,000 flows, 64-byte frames, one core{way}: element by element, and synthesized with \
             a flow cache. At most so many packets are processed at a time."
        ),
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, with_bursts(kinds, lengths));
    // The sheet has the burst size of other experiments.
    figure.settings.retain(|(setting, _)| setting != "burst");
    figure.settings.push(("burst".into(), "32 and 128".into()));
    let last = lengths.last().map_or(1.0, |length| f64::from(*length));
    for (kind, _) in kinds {
        let [few, many] = BURSTS.map(|burst| figure.at(&burst_curve(kind, Shape::Cached, burst), last));
        let told = format!("{last} {kind}{way}: bursts of 128 carry more than of 32 (Mpps)");
        figure.expect((many, few), &told, |many, few| many > few);
        let of = |x: f64| figure.at(&burst_curve(kind, Shape::Cached, 128), x);
        let told = format!("{last} {kind}{way} carry what one does, in bursts of 128, within a tenth (Mpps)");
        figure.expect((of(last), of(1.0)), &told, |many, one| many > one * 0.9);
    }
    figure.add_note(format!(
        "The paper ({PLACE}): with batches of 128 NAPTs are synthesized at the rate of the NICs whatever their number; with \
         batches of 32 they carry slightly less from the seventh on. Where one core and not a NIC is the limit, longer chains \
         carry less at any burst size."
    ));
    figure
}

/// The same with replies: out through all, a mirror, and back.
fn chain_replies(lab: &mut Lab, lengths: &'static [u32]) -> Figure {
    let kinds = REPLY_KINDS;
    let sheet = lab.sheet(
        "snf-chain-replies",
        "Routers and NAPTs in a row, out and back",
        "The same number of NFs with both ways: each frame goes out through all of them, is answered by a mirror, and its \
         answer comes back through all of them. The throughput is that of frames, each of which passes every NF twice.",
        (Axis::linear("NFs", ""), Axis::linear("throughput", "Mpps")),
    );
    let mut figure = lab.saturate(sheet, in_a_row(kinds, lengths));
    let last = lengths.last().map_or(1.0, |length| f64::from(*length));
    for (name, _) in kinds {
        let of = |shape: Shape, x: f64| figure.at(&format!("{name}, {}", shape.name()), x);
        let values = (of(Shape::Fused, last), of(Shape::Modular, last));
        let told = format!("out and back {last} {name} carry more when synthesized (Mpps)");
        figure.expect(values, &told, |fused, modular| fused > modular);
    }
    let of = |x: f64| figure.at(&format!("NAPTs, {}", Shape::Cached.name()), x);
    let told =
        format!("with a flow cache {last} NAPTs both ways keep half of the rate of one at least (Mpps)");
    figure.expect((of(last), of(1.0)), &told, |many, one| many > one / 2.0);
    figure.add_note(
        "Both ways of a router meet in its routing table. In the fused region they are ways of their own, and a packet that \
         turns back at a router leaves it.",
    );
    figure
}

/// The chains with state of figures 3, 4 and 5: name, and workload.
const STATEFUL: [(&str, &str); 3] = [
    ("two zones, 3 NAPTs (figure 3)", "zones"),
    ("2 NAPTs and a DMZ (figure 4)", "dmz"),
    ("NAPT, firewall, balancer (figure 5)", "service"),
];

/// Figures 3 to 5: chains with state.
pub fn stateful(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let places = STATEFUL.iter().enumerate().map(|(x, (_, workload))| (x as f64, *workload));
    let cases = places.flat_map(|(x, workload)| {
        Shape::ALL
            .map(move |shape| Case::point(shape.name(), x, move |lab| saturated(lab, workload, shape, 64)))
    });
    let sheet = lab.sheet(
        "snf-stateful",
        "Chains with state",
        "1,000 flows, 64-byte frames, one core. Every frame is answered by a mirror, and its answer comes back through the \
         same NFs.",
        (
            Axis::names("chain", STATEFUL.map(|(name, _)| name)),
            Axis::linear("throughput", "Mpps"),
        ),
    );
    let mut figure = lab.saturate(sheet, cases);
    for (x, (name, _)) in STATEFUL.iter().enumerate() {
        let of = |shape: Shape| figure.at(shape.name(), x as f64);
        let values = (of(Shape::Cached), of(Shape::Modular));
        let told = format!("{name}: carries more when synthesized, with a flow cache (Mpps)");
        figure.expect(values, &told, |cached, modular| cached > modular);
    }
    Ok(vec![figure])
}

/// Figure 8: ten routers or NAPTs over frame sizes.
pub fn sizes(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let length = if lab.effort.is_miniature() { 4 } else { 10 };
    let cases = lab.effort.sizes.iter().flat_map(|size| {
        let curves =
            KINDS.into_iter().flat_map(|kind| [Shape::Modular, Shape::Cached].map(|shape| (kind, shape)));
        curves.map(move |((name, workload), shape)| {
            Case::point(&format!("{name}, {}", shape.name()), f64::from(*size), move |lab| {
                let (mpps, disturbed) = saturated(lab, &format!("{workload}-{length}"), shape, *size)?;
                Ok((line_gbps(mpps, f64::from(*size)), disturbed))
            })
        })
    });
    let sheet = lab.sheet(
        "snf-sizes",
        &format!("{length} routers and {length} NAPTs over frame sizes"),
        "Bits a second on the line, with 20 bytes of preamble and gap for each frame: what one core would fill.",
        (Axis::log("frame size", "bytes"), Axis::linear("throughput", "Gbit/s")),
    );
    let mut figure = lab.saturate(sheet, cases);
    for (name, _) in KINDS {
        let of = |shape: Shape| figure.at(&format!("{name}, {}", shape.name()), 64.0);
        let values = (of(Shape::Cached), of(Shape::Modular));
        let told = format!("{name}: more of 64 bytes when synthesized (Gbit/s)");
        figure.expect(values, &told, |fused, modular| fused > modular);
    }
    let full = |from: f64| {
        let sizes = lab.effort.sizes.iter().map(|size| f64::from(*size));
        sizes.filter(move |size| *size > from).map(|size| (size, 40.0)).collect::<Vec<_>>()
    };
    figure.paper("SNF", &format!("{PLACE}: 40 Gbit/s above 128 bytes"), full(128.0));
    let place = format!("{PLACE}: line rate above 800 to 1,000 bytes");
    figure.paper("FastClick", &place, full(1_000.0));
    figure.add_note("Line rates of the paper are those of its four ports; ours have no line.");
    Ok(vec![figure])
}

/// Figure 10: an ISP's chain with 251, 713 and 8,550 rules, and with those of a user: throughput, and
/// latency.
pub fn acl(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let counts: &[usize] = if lab.effort.is_miniature() { &[251, 713] } else { &[251, 713, 8_550] };
    let mut figures = many_rules(lab, counts)?;
    for figure in &mut figures {
        figure.name = format!("snf-{}", figure.name);
        figure.add_note(match figure.name.as_str() {
            "snf-acl" | "snf-acl-sizes" => format!(
                "The paper ({PLACE}): SNF carries up to 8.5 times what FastClick does; FastClick loses a factor of 1.5 with \
                 713 rules and of 10 with 8,550. FastClick's classifiers are trees; the modular mode here has a compiled one, \
                 too."
            ),
            "snf-acl-replies" => format!(
                "The paper ({PLACE}) sends inbound, outbound and intra-ISP traffic through the chain at once, and \
                 does not say how it is mixed."
            ),
            "snf-acl-variance" => format!(
                "The paper ({PLACE}, 5 Gbit/s) states a variance 2 to 3.5 times lower than FastClick's, slightly above 1 ms \
                 in some cases; it does not say what it calls variance."
            ),
            _ => format!(
                "The paper ({PLACE}, 5 Gbit/s, with the way between two servers): below 100 µs with 251 rules, and medians \
                 below 500 µs with more."
            ),
        });
    }
    Ok(figures)
}
