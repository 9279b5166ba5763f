//! Compares Millrace with `dpdk-testpmd` on DPDK's net_pcap: the same frames, device and core, by turns. This
//! is a few rows of [`crate::speed`].

use super::lab::Lab;
use crate::BenchError;
use crate::figure::{Axis, Figure, Origin, Point, Series};
use crate::load::DISTURBED;
use crate::shape::Shape;
use crate::speed::report::Row;
use crate::speed::scene::PortKind;
use crate::speed::{self, Options, workload};
use crate::start::failed;
use std::path::PathBuf;

/// The workloads, starting with those that touch a frame least.
const WORKLOADS: [&str; 9] = [
    "floor",
    "forward",
    "l2",
    "l3-10",
    "firewall-10",
    "napt-1",
    "nat-firewall-balancer",
    "router-10",
    "isp-8550",
];
/// Flows of the traffic.
const FLOWS: u64 = 1_000;
/// testpmd's mode that does the same as `l2`.
const SAME: (&str, &str) = ("testpmd-macswap", "l2");

/// Measures the workloads. `program` is this program with the arguments that make it measure one chain:
/// `bench`.
///
/// # Errors
/// When the files cannot be written, or nothing can be started.
pub fn workloads(lab: &mut Lab, program: (PathBuf, Vec<String>)) -> Result<Figure, BenchError> {
    let known =
        WORKLOADS.map(|name| workload::find(name).ok_or_else(|| failed(format!("no workload `{name}`"))));
    let options = Options {
        workloads: known.into_iter().collect::<Result<_, _>>()?,
        ports: vec![PortKind::Pcap],
        flows: vec![FLOWS],
        rounds: lab.effort.rounds,
        seconds: lab.effort.seconds,
        shapes: Shape::KNOWN.to_vec(),
        burst: super::lab::BURST,
        core: lab.cores(1).first().copied(),
        testpmd: true,
        table: None,
        acl: None,
        folder: lab.folder().join("workloads"),
        program,
    };
    let report = speed::run(&options, lab.progress())?;
    let mut figure = lab.sheet(
        "workloads",
        "Millrace beside dpdk-testpmd on net_pcap",
        "64-byte frames of a capture that DPDK's net_pcap replays from memory and, when they are sent, drops. dpdk-testpmd \
         gets the same device, core and burst; in modes rxonly and io it does not look at frames.",
        (Axis::names("what is done", names(&report.rows)), Axis::linear("throughput", "Mpps")),
    );
    figure.command = format!(
        "scripts/bench {} --ports pcap --flows {FLOWS} --as {}",
        WORKLOADS.join(" "),
        Shape::KNOWN.map(Shape::name).join(",")
    );
    let names = names(&report.rows);
    let mut curves: Vec<Series> = vec![];
    for row in &report.rows {
        if let Some(why) = &row.skipped {
            figure.skip(row.title(), why);
        }
        let (what, series, origin) = place(row);
        let (Some(x), Some(ns)) = (names.iter().position(|name| *name == what), row.ns()) else { continue };
        let point = Point {
            x: x as f64,
            y: ns.map(|ns| 1e3 / ns),
            repeats: row.samples.len(),
            disturbed: row.samples.iter().all(|sample| sample.disturbed() > DISTURBED),
        };
        match curves.iter_mut().find(|curve| curve.name == series) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Series { name: series.into(), origin, points: vec![point] }),
        }
    }
    figure.series = curves;
    let of = |name: &str| report.rows.iter().find(|row| row.name == name)?.ns().map(|ns| 1e3 / ns.median);
    let told = "exchanging addresses, Millrace keeps up with testpmd's loop within a quarter (Mpps)";
    figure.expect((of(SAME.1), of(SAME.0)), told, |own, peer| own > peer * 0.75);
    figure.add_note(
        "Rates are by the time that the packet thread had its core. testpmd-macswap does what l2 does, and nothing that the \
         rows below it do. Without a flow cache, flows of which a table has state have an entry, the chain's record; \
         without entries, every packet runs through the whole program.",
    );
    Ok(figure)
}

/// The workload or mode of a row, and its curve with its origin.
fn place(row: &Row) -> (&str, &'static str, Origin) {
    if row.name.starts_with("testpmd-") {
        return (&row.name, "dpdk-testpmd", Origin::Peer);
    }
    match row.name.split_once(' ') {
        Some((name, "whole")) => (name, "fused, no entries", Origin::Own),
        Some((name, "fused")) => (name, "fused", Origin::Own),
        Some((name, _)) => (name, "fused, flow cache", Origin::Own),
        None => (&row.name, "modular", Origin::Own),
    }
}

/// The workloads and modes in the order of measuring, each once.
fn names(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = vec![];
    for row in rows.iter().filter(|row| row.ns().is_some()) {
        let (what, ..) = place(row);
        if names.iter().all(|name| name != what) {
            names.push(what.to_string());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_their_places() {
        let row = |name: &str| Row::new(name.into(), PortKind::Pcap, Some(1));
        let placed = |name: &str| {
            let row = row(name);
            let (what, series, origin) = place(&row);
            (what.to_string(), series, origin)
        };
        assert_eq!(placed("testpmd-io"), ("testpmd-io".into(), "dpdk-testpmd", Origin::Peer));
        assert_eq!(placed("l2"), ("l2".into(), "modular", Origin::Own));
        assert_eq!(placed("l2 whole"), ("l2".into(), "fused, no entries", Origin::Own));
        assert_eq!(placed("l2 fused"), ("l2".into(), "fused", Origin::Own));
        assert_eq!(placed("l2 cached"), ("l2".into(), "fused, flow cache", Origin::Own));
        assert!(WORKLOADS.iter().all(|name| workload::find(name).is_some()));
        // Rows without measurements have no names.
        assert!(names(&[row("l2")]).is_empty());
    }
}
