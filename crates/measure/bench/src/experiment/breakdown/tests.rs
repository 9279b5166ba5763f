use super::*;
use crate::shape::Shape;
use crate::start::testing::chain;
use runtime::traffic::Change;

fn options(shape: Shape, size: Option<&str>) -> BreakdownOptions {
    let change =
        Change { size: size.map(|size| size.parse().expect("a size")), flows: None, ..Change::default() };
    let run = RunOptions {
        burst: 32,
        cores: vec![0],
        slots: 8192,
        shape: Some(shape),
        change,
        ..RunOptions::default()
    };
    BreakdownOptions { run, seconds: 0.05, rounds: 2 }
}

fn at(stage: Stage, cycles: u64, readings: u64) -> StageCycles {
    StageCycles { stage, cycles, readings }
}

fn named(stage: Stage) -> StageCost {
    let (kind, name) = match stage {
        Stage::Turn => (Kind::Loop, ""),
        Stage::Waiting => (Kind::Waiting, ""),
        Stage::Element(0) => (Kind::ToNf, "nf"),
        Stage::Task(0) => (Kind::FromNf, "nf"),
        Stage::Task(_) => (Kind::Receive, "in"),
        _ => (Kind::Send, "out"),
    };
    StageCost { name: name.into(), class: "X".into(), ..StageCost::of(kind) }
}

/// Known costs: 100 packets, readings of 40 cycles.
fn known() -> Breakdown {
    let window = |wall_ns: f64| Window { packets: 100, wall_ns, waited_ns: 1_000.0, stolen_ns: 0.0 };
    let round = |plain_ns: f64| Round {
        plain: window(plain_ns),
        ran: vec![9_000],
        probed: window(20_000.0),
        stages: vec![
            at(Stage::Turn, 2_000, 10),
            at(Stage::Waiting, 0, 0),
            at(Stage::Element(0), 5_400, 10),
            at(Stage::Task(0), 3_400, 10),
            at(Stage::Task(1), 10_800, 20),
            at(Stage::Element(1), 390, 10),
        ],
        cost: 40.0,
        interrupted: 0,
        is_far: false,
    };
    let nf = NfProcess { name: "nf".into(), pid: 1 };
    let mut found = evaluate(&[round(11_000.0), round(10_000.0), round(12_000.0)], 2.0, &named, &[nf]);
    (found.chain, found.mode, found.burst, found.seconds) = ("chain.toml".into(), "modular", 32, 0.5);
    found
}

#[test]
fn what_probes_cost_is_subtracted_by_readings() {
    let found = known();
    let stages: Vec<(String, f64)> =
        found.stages.iter().map(|stage| (stage.title(), stage.cycles.median)).collect();
    let expected = [
        ("receive in", 100.0),
        ("host to NF nf", 50.0),
        ("in the NF nf", 180.0),
        ("NF to host nf", 30.0),
        // A stage that took less than its readings cost counts as 0.
        ("send out", 0.0),
        ("loop", 16.0),
    ];
    assert_eq!(stages, expected.map(|(name, cycles)| (name.to_string(), cycles)));
    assert_eq!(found.unprobed, Quantiles { median: 200.0, min: 180.0, max: 220.0 });
    assert!((found.sum.median - 195.9).abs() < 1e-9, "{:?}", found.sum);
    assert!((found.probes.median - 24.0).abs() < 1e-9);
    assert!((found.difference() + 0.0205).abs() < 1e-9);
    assert_eq!(found.stages[0].ns, 50.0);
    assert_eq!(found.cycles(Kind::Receive), 100.0);
}

#[test]
fn the_figure_has_a_bar_for_each_stage() {
    let figure = known().figure("millrace bench breakdown chain.toml");
    assert_eq!(figure.x.categories.len(), 6);
    let own = figure.series("packet thread").expect("there");
    assert_eq!((own.points.len(), own.at(0.0), own.at(2.0)), (5, Some(100.0), None));
    assert_eq!(figure.series("the NFs' processes").and_then(|series| series.at(2.0)), Some(180.0));
    assert!(figure.holds() && figure.skipped.len() == 1);
    let told = "probes cost 24.0 cycles a packet (40 a reading), subtracted; the sum is within 2.0 % of the unprobed figure";
    assert_eq!(figure.notes, [told]);
}

#[test]
fn the_table_says_it_all() {
    let expected = "\
chain.toml (modular), one core, bursts of 32, frame size as in the chain file

stage                   cycles        ns   share
receive in               100.0     50.00  51.0 %  X
host to NF nf             50.0     25.00  25.5 %  X
in the NF nf             180.0     90.00          time of its process, at most: on a core of its own
NF to host nf             30.0     15.00  15.3 %  X
send out                   0.0      0.00   0.0 %  X
loop                      16.0      8.00   8.2 %  X
sum                      195.9     97.95          195.9 to 195.9
without probes           200.0    100.00          180.0 to 220.0

Cycles of the time stamp counter (2.000 GHz) for each packet received.
Probes cost 24.0 cycles a packet (40 a reading), subtracted; the sum is within 2.0 % of the unprobed figure.
Of an NF in a process, the time that the process ran is known from outside, its looking for packets included: no more \
than that is spent on packets.
WARNING: something else had the core for 3.2 % of the time, which is subtracted
";
    let text = known().text();
    assert_eq!(text, expected, "{text}");
}

#[test]
fn a_chain_is_taken_apart() {
    let (_folder, path) =
        chain("FromDevice(0) -> c :: Counter -> Strip(14) -> p :: Paint(1) -> ToDevice(1);");
    let found = measure(&path, &options(Shape::Modular, None)).expect("figures");
    let kinds: Vec<Kind> = found.stages.iter().map(|stage| stage.kind).collect();
    assert_eq!((kinds.first(), found.sound), (Some(&Kind::Receive), true), "{found:#?}");
    let classes = |kind: Kind| {
        let of = found.stages.iter().filter(|stage| stage.kind == kind);
        of.map(|stage| stage.class.as_str()).filter(|class| *class != "Null").collect::<Vec<_>>()
    };
    assert_eq!(classes(Kind::Element), ["Counter", "Strip", "Paint"]);
    assert_eq!(classes(Kind::Send), ["ToDevice"]);
    assert!(found.sum.median > 0.0 && found.unprobed.median > 0.0 && found.reading > 1.0);
    // A fused program is one stage, and lists its elements.
    let fused = measure(&path, &options(Shape::Fused, None)).expect("figures");
    let program = fused.stages.iter().find(|stage| stage.kind == Kind::Program).expect("a program");
    assert!(program.elements.iter().any(|name| name.ends_with('c')), "{program:?}");
    assert!(fused.text().contains("cannot be told apart"), "{}", fused.text());
}

/// The table charges a known delay to its element and not to the neighbours.
#[test]
fn the_expensive_element_is_found() {
    let (_folder, path) = chain(
        "FromDevice(0) -> a :: Counter -> MarkIPHeader(14) -> w :: SetUDPChecksum -> b :: Counter -> ToDevice(1);",
    );
    let found = measure(&path, &options(Shape::Modular, Some("1500"))).expect("figures");
    let of = |name: &str| {
        let stage = found.stages.iter().find(|stage| stage.name.ends_with(name));
        stage.unwrap_or_else(|| panic!("{name} in {found:#?}")).cycles.median
    };
    let (cheap, dear) = (of("/a").max(of("/b")), of("/w"));
    assert!(dear > 0.0 && dear >= cheap, "{dear} against {cheap}");
}
