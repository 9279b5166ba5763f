//! Plots are valid XML, contain every name and point, and accept any numbers.

use super::svg;
use crate::figure::tests::{any_figure, figure, point, rates, series};
use crate::figure::{Axis, Figure, Origin, Series};
use proptest::prelude::*;
use std::path::PathBuf;

/// The texts of a picture.
fn texts(picture: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(picture).expect("XML");
    let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).map(|text| text.trim().to_string()).collect()
}

fn count(picture: &str, tag: &str) -> usize {
    let tree = roxmltree::Document::parse(picture).expect("XML");
    tree.descendants().filter(|node| node.has_tag_name(tag)).count()
}

/// Figures of all kinds, regular and degenerate.
fn kinds() -> Vec<Figure> {
    let flows = [1.0, 16.0, 256.0, 4096.0, 65_536.0, 1_048_576.0];
    let frames = || Axis::linear("frame size", "bytes");
    let rate = || Axis::linear("packet rate", "Mpps");
    let latency = ["modular", "fused", "cached"].iter().enumerate().map(|(at, name)| {
        let y = |flows: f64| (at as f64 + 1.0) * 0.4 * flows.powf(0.4);
        series(name, Origin::Own, flows.map(|flows| (flows, y(flows))))
    });
    let mut loss =
        series("fused", Origin::Own, [(1.0, 0.0), (2.0, 0.0), (4.0, 1e-4), (8.0, 0.02), (16.0, 0.4)]);
    loss.points.push(point(12.0, f64::NAN, 0.0, 1.0));
    let functions = ["L2 switch", "L3 forwarding", "firewall", "NAPT", "load balancer"];
    let bars = |name: &str, origin, times: f64| {
        series(
            name,
            origin,
            [24.0, 31.0, 45.0, 80.0, 62.0].iter().enumerate().map(|(x, y)| (x as f64, y * times)),
        )
    };
    let mut own = bars("fused", Origin::Own, 1.0);
    own.points[3].disturbed = true;
    let mut paper = bars("BESS", Origin::Paper("table 2, Xeon".into()), 1.6);
    paper.points.iter_mut().for_each(|point| (point.y.min, point.y.max) = (point.y.median, point.y.median));
    paper.points.pop();
    let groups = vec![own, bars("modular", Origin::Own, 1.5), bars("FastClick", Origin::Peer, 2.2), paper];
    let many = |origin: fn(usize) -> Origin| {
        let curve = move |at: usize| {
            let name = format!("system {at} with a rather long name, as papers give them to their variants");
            series(
                &name,
                origin(at),
                (1..=8).map(move |x| (f64::from(x), f64::from(x) * (at as f64 + 1.0) / 2.0)),
            )
        };
        (0..10).map(curve).collect::<Vec<Series>>()
    };
    let cycles = || Axis::linear("cost", "cycles per packet");
    let mut kinds = vec![
        rates(),
        figure(
            "flows",
            Axis::log("flows", ""),
            Axis::log("latency, 99th percentile", "µs"),
            latency.collect(),
        ),
        figure("loss", Axis::linear("load", "Mpps"), Axis::log("loss ratio", ""), vec![loss]),
        figure("groups", Axis::names("network function", functions), cycles(), groups),
        figure(
            "one-group",
            Axis::names("", ["NAPT"]),
            cycles(),
            vec![series("fused", Origin::Own, [(0.0, 80.0)])],
        ),
        figure(
            "many",
            Axis::linear("chain length", "NFs"),
            rate(),
            many(|at| match at {
                0..6 => Origin::Own,
                6..8 => Origin::Peer,
                _ => Origin::Paper("figure 3".into()),
            }),
        ),
        figure(
            "many-bars",
            Axis::names("chain", (1..=8).map(|n| format!("{n} network functions"))),
            rate(),
            {
                let mut many = many(|_| Origin::Own);
                many.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.x -= 1.0);
                many
            },
        ),
        figure("one-point", frames(), rate(), vec![series("fused", Origin::Own, [(64.0, 14.88)])]),
        figure("zeros", frames(), rate(), vec![series("fused", Origin::Own, [(64.0, 0.0), (128.0, 0.0)])]),
        figure("empty", frames(), rate(), vec![series("fused", Origin::Own, [])]),
        figure("wide", frames(), rate(), vec![series("fused", Origin::Own, [(64.0, 1e-3), (128.0, 1e9)])]),
    ];
    let decades = [(0.0, 10.0), (1.0, 1e3), (2.0, 0.0), (3.0, 1e5)];
    let systems = ["a system with a long name on VirtualMachinesWithPassthrough", "b", "c", "d"];
    let latency = Axis::log("latency", "ns");
    kinds.extend([
        figure("nothing", frames(), rate(), vec![]),
        figure(
            "log-bars",
            Axis::names("system", systems),
            latency,
            vec![series("p50", Origin::Own, decades)],
        ),
        figure(
            "many-names",
            Axis::names("workload", (0..30).map(|n| format!("workload-number-{n}"))),
            rate(),
            vec![series("fused", Origin::Own, (0..30).map(|x| (f64::from(x), f64::from(x))))],
        ),
        figure(
            "one-flow",
            Axis::log("flows", ""),
            rate(),
            vec![series("fused", Origin::Own, [(1000.0, 10.0)])],
        ),
        figure("trace", Axis::linear("time", "s"), Axis::linear("rate", "packets/s"), {
            let wave = |at: u32| (f64::from(at) / 10.0, 2e6 + 1e6 * (f64::from(at) / 9.0).sin());
            vec![series("fused", Origin::Own, (0..100).map(wave))]
        }),
    ]);
    kinds
}

/// With `PLOTS=FOLDER` in the environment, the plots are written there for inspection.
#[test]
fn figures_of_all_kinds_are_plots() {
    for figure in kinds() {
        let picture = svg(&figure);
        let shown = texts(&picture).join(" ");
        for series in &figure.series {
            // Long names are wrapped at a space.
            assert!(shown.contains(&series.name), "{}: {}\n{shown}", figure.name, series.name);
        }
        if let Some(folder) = std::env::var_os("PLOTS").map(PathBuf::from) {
            std::fs::write(folder.join(&figure.name).with_extension("svg"), picture).expect("written");
        }
    }
    if let Some(folder) = std::env::var_os("PLOTS").map(PathBuf::from) {
        crate::figure::write(&crate::figure::tests::report(kinds()), &folder.join("report"))
            .expect("written");
    }
}

#[test]
fn every_point_has_a_marker() {
    let circles = |figure: &Figure| count(&svg(figure), "circle");
    let mut figure = rates();
    figure.series.truncate(1);
    // Seven points, and the marker in the legend.
    assert_eq!(circles(&figure), 8);
    figure.series[0].points[3].y.median = f64::NAN;
    assert_eq!(circles(&figure), 7);
    assert!(texts(&svg(&figure)).join(" ").contains("without a place here: 1 of 7 points"));
}

#[test]
fn every_category_has_a_bar() {
    let bars = Figure { x: Axis::names("NF", ["L2", "L3"]), ..rates() };
    let of = |xs: &[f64]| {
        let curve = series("fused", Origin::Own, xs.iter().map(|x| (*x, 3.0)));
        count(&svg(&Figure { series: vec![curve], ..bars.clone() }), "rect")
    };
    // The background, and the sample in the legend.
    assert_eq!(of(&[]), 2);
    assert_eq!(of(&[0.0, 1.0]), 4);
    assert_eq!(of(&[0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY]), 4);
}

#[test]
fn larger_values_are_higher_up() {
    let figure =
        Figure { series: vec![series("fused", Origin::Own, [(64.0, 3.0), (128.0, 9.0)])], ..rates() };
    let picture = svg(&figure);
    let tree = roxmltree::Document::parse(&picture).expect("XML");
    let circles = tree.descendants().filter(|node| node.has_tag_name("circle"));
    let places = circles.filter_map(|node| Some((node.attribute("cx")?, node.attribute("cy")?)));
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let mut places: Vec<(f64, f64)> = places.map(|(x, y)| (number(x), number(y))).collect();
    places.dedup();
    let [(left, low), (right, high), ..] = places[..] else { panic!("{places:?}") };
    assert!(left < right && low > high, "{places:?}");
}

#[test]
fn hostile_names_stay_names() {
    let mut figure = rates();
    figure.title = "</title><script>&".into();
    figure.series[0].name = "\"'</text><b>".into();
    let picture = svg(&figure);
    assert_eq!(count(&picture, "script") + count(&picture, "b"), 0);
    assert!(texts(&picture).contains(&figure.series[0].name));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_is_a_plot(figure in any_figure()) {
        let picture = svg(&figure);
        let tree = roxmltree::Document::parse(&picture);
        prop_assert!(tree.is_ok(), "{:?}\n{picture}", tree.err());
        let known = ["svg", "title", "text", "rect", "circle", "polygon", "polyline", "line"];
        let tree = tree.expect("parsed");
        for node in tree.descendants().filter(|node| node.is_element()) {
            prop_assert!(known.contains(&node.tag_name().name()), "{}", node.tag_name().name());
            for attribute in node.attributes() {
                prop_assert!(!attribute.value().contains("NaN") && !attribute.value().contains("inf"));
            }
        }
    }
}
