//! Every rendering shows every curve and point, and accepts any name and number.

use super::words::called;
use super::*;
use crate::machine::Machine;
use crate::stats::Quantiles;
use proptest::prelude::*;

/// A value with a range.
pub fn point(x: f64, median: f64, min: f64, max: f64) -> Point {
    Point { x, y: Quantiles { median, min, max }, repeats: 5, disturbed: false }
}

/// A curve of ours, or of another system.
pub fn series(name: &str, origin: Origin, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let around = |(x, y): (f64, f64)| point(x, y, y * 0.97, y * 1.02);
    Series { name: name.into(), origin, points: points.into_iter().map(around).collect() }
}

/// A figure of some curves.
pub fn figure(name: &str, x: Axis, y: Axis, series: Vec<Series>) -> Figure {
    Figure {
        name: name.into(),
        title: format!("What is called {name}"),
        about: "L2 forwarding between two memory ports, one core.".into(),
        source: Some("NIU (2024), figure 7".into()),
        command: format!("millrace bench {name}"),
        x,
        y,
        series,
        settings: vec![("burst".into(), "64 packets".into())],
        skipped: vec![Skipped { what: "VPP".into(), why: "not installed; install vpp".into() }],
        notes: vec!["closed loop".into()],
        expected: vec![
            Expectation::of_times("fused is faster: 14.9 to 9.1 Mpps".into(), true),
            Expectation::of_times("64 bytes at line rate".into(), false),
        ],
    }
}

/// Packet rates over frame sizes, with all kinds of curves and a disturbed point.
pub fn rates() -> Figure {
    let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1500.0];
    let falling = |top: f64| sizes.map(|size| (size, top / (1.0 + size / 900.0)));
    let mut fused = series("fused", Origin::Own, falling(14.9));
    fused.points[2].disturbed = true;
    let papers = falling(16.0).into_iter().step_by(2);
    let rate = Axis::linear("packet rate", "Mpps");
    let curves = vec![
        fused,
        series("modular", Origin::Own, falling(9.1)),
        series("FastClick", Origin::Peer, falling(6.3)),
        Series::paper("BESS", "figure 7, Xeon E5-2650 at 2 GHz", papers),
    ];
    figure("niu-baseline", Axis::linear("frame size", "bytes"), rate, curves)
}

/// A report of these figures.
pub fn report(figures: Vec<Figure>) -> Report {
    Report {
        machine: Machine {
            processor: "Processor 9000".into(),
            cores: vec![0, 1],
            tsc_ghz: 2.5,
            kernel: "6.1".into(),
            free_huge_mib: 0,
            load: 0.25,
        },
        program: "millrace 0.1.0 (release)".into(),
        began: "2026-11-23 09:30 UTC".into(),
        took_s: 754.0,
        effort: "quick".into(),
        rules: None,
        figures,
    }
}

/// Any text, including those that would break HTML, XML, tables and terminals.
pub fn hostile() -> impl Strategy<Value = String> {
    let bad = [
        "</svg><script>alert(1)</script>",
        "a|b",
        "`x`",
        "\"'&<>",
        "\x1b[2J",
        "\0",
        "]]>",
        "-->",
        "../../etc",
    ];
    prop_oneof![any::<String>(), prop::sample::select(bad.to_vec()).prop_map(String::from), "[a-z]{0,200}"]
}

fn any_number() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, 5e-324, 1e-3, 1e9, 99.99999, 1.0];
    prop_oneof![prop::num::f64::ANY, 0.0..2000.0f64, prop::sample::select(special.to_vec())]
}

fn any_axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![Just(Scale::Linear), Just(Scale::Log)];
    let names = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(hostile(), 1..40)];
    (hostile(), hostile(), scale, names).prop_map(|(label, unit, scale, categories)| Axis {
        label,
        unit,
        scale,
        categories,
    })
}

fn any_series() -> impl Strategy<Value = Series> {
    let origin = prop_oneof![Just(Origin::Own), Just(Origin::Peer), hostile().prop_map(Origin::Paper)];
    let spread = (any_number(), any_number(), any_number());
    let point =
        (any_number(), spread, 0..9usize, any::<bool>()).prop_map(|(x, spread, repeats, disturbed)| {
            let (median, min, max) = spread;
            Point { x, y: Quantiles { median, min, max }, repeats, disturbed }
        });
    (hostile(), origin, prop::collection::vec(point, 0..12)).prop_map(|(name, origin, points)| Series {
        name,
        origin,
        points,
    })
}

/// Any figure at all.
pub fn any_figure() -> impl Strategy<Value = Figure> {
    let words = (hostile(), hostile(), hostile(), prop::option::of(hostile()), hostile());
    let lists = (prop::collection::vec(hostile(), 0..3), prop::collection::vec(any_series(), 0..12));
    (words, any_axis(), any_axis(), lists).prop_map(|(words, x, y, (texts, series))| {
        let (name, title, about, source, command) = words;
        let pairs = || texts.iter().cloned();
        Figure {
            settings: pairs().map(|text| (text.clone(), text)).collect(),
            skipped: pairs().map(|text| Skipped { what: text.clone(), why: text }).collect(),
            expected: pairs().map(|told| Expectation::of_times(told.clone(), told.len() > 3)).collect(),
            notes: texts,
            ..Figure { name, title, about, source, command, x, y, series, ..rates() }
        }
    })
}

fn renderings(figure: &Figure) -> [(&'static str, String); 4] {
    let report = report(vec![figure.clone()]);
    let csv = csv(figure).expect("CSV");
    [("text", text(figure)), ("markdown", markdown(&report, None)), ("html", html(&report)), ("csv", csv)]
}

/// Makes XML of one of our HTML pages: removes its `meta` elements, which have no end tag.
fn as_xml(page: &str) -> String {
    let page = page.replacen("<!DOCTYPE html>", "", 1);
    let is_meta = |piece: &&str| piece.starts_with("<meta ");
    page.split_inclusive('>').filter(|piece| !is_meta(piece)).collect()
}

#[test]
fn what_was_not_measured_has_no_plot() {
    let report = report(vec![Figure { series: vec![], ..rates() }]);
    let pages = [markdown(&report, Some("plots")), html(&report)];
    for page in pages {
        assert!(
            page.contains("Nothing was measured.") && !page.contains("![") && !page.contains("<svg"),
            "{page}"
        );
    }
}

#[test]
fn every_curve_and_value_is_shown() {
    let figure = rates();
    for (kind, shown) in renderings(&figure) {
        for series in &figure.series {
            let name = if kind == "csv" { series.name.clone() } else { called(series) };
            assert!(shown.contains(&name), "{kind}: {name}\n{shown}");
            for point in &series.points {
                let value = if kind == "csv" { point.y.median.to_string() } else { words::value(point) };
                let value = if kind == "markdown" { value.replace('*', "\\*") } else { value };
                assert!(shown.contains(&value), "{kind}: {value}\n{shown}");
            }
        }
    }
}

#[test]
fn what_a_reader_has_to_know_is_shown() {
    let figure = rates();
    let needed =
        ["closed loop", "VPP", "install vpp", "millrace bench niu-baseline", "figure 7", "DOES NOT HOLD"];
    for (kind, shown) in renderings(&figure).into_iter().filter(|(kind, _)| *kind != "csv") {
        for text in needed.iter().chain(&["64 bytes at line rate", "holds", "disturbed", "Mpps", "burst"]) {
            assert!(shown.contains(text), "{kind}: {text}\n{shown}");
        }
    }
}

#[test]
fn the_terminal_shows_a_table() {
    let mut figure = rates();
    figure.series.truncate(2);
    figure.series.iter_mut().for_each(|series| series.points.truncate(3));
    let expected = "\
== niu-baseline: What is called niu-baseline

L2 forwarding between two memory ports, one core.
after NIU (2024), figure 7

packet rate (Mpps): median (min–max)

 frame size (bytes)                 fused              modular 
 64                  13.91 (13.49–14.19)  8.496 (8.241–8.666) 
 128                 13.04 (12.65–13.31)  7.967 (7.728–8.126) 
 256                 11.60 (11.25–11.83)*  7.085 (6.872–7.226) 
* disturbed: something else had the core for more than a fiftieth of the time, or a hypervisor had moved cores apart

burst: 64 packets
SKIP: VPP: not installed; install vpp
NOTE: closed loop
holds: fused is faster: 14.9 to 9.1 Mpps
DOES NOT HOLD: 64 bytes at line rate

$ millrace bench niu-baseline
";
    let shown = text(&figure);
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        expected.split_whitespace().collect::<Vec<_>>(),
        "{shown}"
    );
}

#[test]
fn csv_is_in_long_form() {
    let mut figure = rates();
    figure.series.truncate(1);
    figure.x = Axis::names("NF", ["L2, switch", "L3"]);
    figure.series[0].points = vec![point(0.0, 2.5, 2.0, 3.0)];
    let expected = "figure,series,origin,x,x_name,x_unit,median,min,max,repeats,disturbed,y_unit\n\
                    niu-baseline,fused,own,0,\"L2, switch\",,2.5,2,3,5,false,Mpps\n";
    assert_eq!(csv(&figure).expect("CSV"), expected);
}

#[test]
fn a_report_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bad = rates();
    bad.name = "../../Etc/passwd\0".into();
    let report = report(vec![rates(), rates(), bad]);
    let files = write(&report, &folder.path().join("made")).expect("written");
    let mut names: Vec<&str> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    names.sort_unstable();
    let expected = [
        "etc-passwd.csv",
        "etc-passwd.svg",
        "niu-baseline-2.csv",
        "niu-baseline-2.svg",
        "niu-baseline.csv",
        "niu-baseline.svg",
        "report.html",
        "report.json",
        "report.md",
    ];
    assert_eq!(names, expected);
    assert!(files.iter().all(|file| file.parent() == Some(&folder.path().join("made"))), "{files:?}");
    assert_eq!(read(&folder.path().join("made/report.json")).expect("read"), report);
    let page = std::fs::read_to_string(folder.path().join("made/report.md")).expect("read");
    assert!(page.contains("](./niu-baseline-2.svg)"), "{page}");
}

#[test]
fn what_is_no_report_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("other.json");
    assert!(read(&file).expect_err("missing").to_string().contains("cannot read"));
    std::fs::write(&file, "{\"rows\": []}").expect("written");
    let error = read(&file).expect_err("no report").to_string();
    assert!(error.contains("other.json: no report: ") && error.contains("line 1"), "{error}");
}

#[test]
fn infinite_values_are_left_out_of_files_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut figure = rates();
    figure.series[1].points[0].y.max = f64::INFINITY;
    write(&report(vec![figure]), folder.path()).expect("written");
    let read = read(&folder.path().join("report.json")).expect("read");
    assert_eq!(read.figures[0].series[1].points.len(), 6);
    assert!(read.figures[0].notes[1].contains("modular: 1 of 7 points"), "{:?}", read.figures[0].notes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_figure_is_a_page(figure in any_figure()) {
        let page = html(&report(vec![figure.clone(), figure.clone()]));
        let xml = as_xml(&page);
        let tree = roxmltree::Document::parse(&xml);
        prop_assert!(tree.is_ok(), "{:?}\n{xml}", tree.err());
        let tree = tree.expect("parsed");
        let elements = |name: &str| tree.descendants().filter(|node| node.has_tag_name(name)).count();
        prop_assert_eq!(elements("article"), 2);
        prop_assert_eq!(elements("script"), 0);
    }

    #[test]
    fn any_figure_is_text_without_control(figure in any_figure()) {
        let bad = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        for (kind, shown) in renderings(&figure) {
            prop_assert!(!bad(&shown), "{}: {:?}", kind, shown);
        }
        // Every row of the table has the same number of columns. The command is empty, because tags in its
        // code span are text.
        let page = markdown(&report(vec![Figure { command: String::new(), ..figure.clone() }]), None);
        let bars = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        prop_assert!(rows.iter().all(|row| bars(row) == figure.series.len() + 2), "{page}");
        prop_assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn any_figure_has_a_line_of_csv_for_each_point(figure in any_figure()) {
        let shown = csv(&figure).expect("CSV");
        let points: usize = figure.series.iter().map(|series| series.points.len()).sum();
        prop_assert_eq!(::csv::Reader::from_reader(shown.as_bytes()).records().flatten().count(), points);
    }

    #[test]
    fn any_report_is_written_and_read(figures in prop::collection::vec(any_figure(), 0..3)) {
        let folder = tempfile::tempdir().expect("a folder");
        let report = report(figures);
        let files = write(&report, folder.path()).expect("written");
        prop_assert_eq!(files.len(), 3 + 2 * report.figures.len());
        prop_assert!(files.iter().all(|file| file.parent() == Some(folder.path())));
        let again = read(&folder.path().join("report.json")).expect("read");
        let rewritten = folder.path().join("again");
        write(&again, &rewritten).expect("written");
        prop_assert_eq!(read(&rewritten.join("report.json")).expect("read"), again);
    }
}
