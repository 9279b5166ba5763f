//! Tables of invented results, in which every cell is known.

use super::*;

fn sample(ns: f64) -> Sample {
    let (packets, wall_ns) = (1_000_000, ns * 1e6);
    Sample { packets, wall_ns, sent: 1000, received: 1000, sound: true, ..Sample::default() }
}

fn row(name: &str, port: PortKind, flows: u64, ns: &[f64]) -> Row {
    let samples = ns.iter().map(|ns| sample(*ns)).collect();
    Row { samples, ..Row::new(name.into(), port, Some(flows)) }
}

fn report(rows: Vec<Row>) -> Report {
    let machine = Machine {
        processor: "Some CPU".into(),
        cores: vec![0, 1],
        tsc_ghz: 2.0,
        kernel: "6.1".into(),
        free_huge_mib: 0,
        load: 0.1,
    };
    Report { machine, core: 1, burst: 32, rounds: 3, seconds: 0.5, rows }
}

/// Of the floor of its rounds L2 reaches 0.769, 0.76 and 0.917, whose median is below FastClick's 0.86. Of
/// I/O it reaches 0.846, 0.88 and 0.917, whose median is above. L3 reaches 0.667 and 0.733, below FastClick's
/// 0.75.
fn usual() -> Report {
    let mut l2 = row("l2", PortKind::Pcap, 1000, &[26.0, 25.0, 24.0]);
    (l2.gated, l2.fastclick_share) = (true, Some(0.86));
    let mut l3 = row("l3-10", PortKind::Pcap, 1000, &[30.0, 30.0, 30.0]);
    (l3.gated, l3.fastclick_share) = (true, Some(0.75));
    let floor = row("floor", PortKind::Pcap, 1000, &[20.0, 19.0, 22.0]);
    let forward = row("forward", PortKind::Pcap, 1000, &[22.0, 22.0, 22.0]);
    report(vec![floor, forward, l2, l3])
}

/// The cells of the line that starts with `name`.
fn cells(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.trim_start_matches(['|', ' ']).starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).map(String::from).collect()
}

#[test]
fn a_row_has_cycles_rates_and_shares() {
    let text = usual().markdown();
    assert_eq!(
        cells(&text, "l2"),
        ["l2", "1000", "50.0", "48.0 to 52.0", "40.00", "10.0", "0.769", "0.880", "0.860", "1.02"]
    );
    assert_eq!(cells(&text, "floor")[5..], ["0.0", "1.000", "-", "-", "-"]);
    assert_eq!(cells(&text, "forward")[6..], ["0.909", "1.000", "-", "-"]);
}

#[test]
fn the_gate_is_told_for_every_gated_row() {
    let report = usual();
    let text = report.text();
    let l2 = "- l2, 1000 flows: holds (1.02 times; 0.89 times of the floor)";
    let l3 = "- l3-10, 1000 flows: DOES NOT HOLD (0.98 times; 0.89 times of the floor)";
    assert!(text.contains(l2) && text.contains(l3), "{text}");
    assert!(!report.holds());
    let mut report = report;
    report.rows.remove(3);
    assert!(report.holds());
    report.rows[2].samples.clear();
    assert!(!report.holds(), "a gate without a figure is open");
    assert!(report.text().contains("open (not measured)"));
}

#[test]
fn shares_are_of_the_floor_with_the_same_flows() {
    let mut report = usual();
    report.rows.push(row("floor", PortKind::Pcap, 65_536, &[40.0]));
    report.rows.push(row("l2", PortKind::Pcap, 65_536, &[50.0]));
    let l2 = report.rows.last().expect("there");
    assert_eq!(report.share(l2), Some(0.8));
    assert_eq!(report.cells(l2)[5], "20.0");
    // If a round is missing in one row, the share is that of the medians.
    let sample = report.rows[4].samples[0].clone();
    report.rows[4].samples.push(sample);
    assert_eq!(report.share(&report.rows[5]), Some(0.8));
}

#[test]
fn what_spoils_a_figure_is_noted() {
    let mut report = usual();
    let sample = &mut report.rows[2].samples[2];
    (sample.waited_ns, sample.sound) = (sample.wall_ns / 4.0, false);
    sample.dropped = vec![("nat no-port".into(), 30), ("ttl expired".into(), 20)];
    let text = report.text();
    for note in ["core taken away 25 %", "NOT EVERY PACKET WAS ACCOUNTED FOR", "DROPS 5.0 % (nat no-port)"] {
        assert!(text.contains(note), "{note} is missing in\n{text}");
    }
}

#[test]
fn a_busy_machine_and_skipped_rows_are_told() {
    let mut report = usual();
    assert!(!report.text().contains("WARNING"));
    report.machine.load = 3.0;
    report.rows[2].skipped = Some("no such element".into());
    let text = report.text();
    assert!(text.contains("WARNING: the load average was 3.00"), "{text}");
    assert!(text.contains("SKIP: l2: no such element"), "{text}");
}

#[test]
fn memory_tells_the_template_copy_and_what_bess_takes() {
    let mut floor = row("floor", PortKind::Memory, 1000, &[5.0]);
    floor.bess_cycles = Some(7.2);
    floor.samples[0].restore_ns = Some(1.5);
    let text = report(vec![floor]).markdown();
    assert!(text.contains("with 1000 flows, restoring the frame from its template is 3.0 cycles"), "{text}");
    assert_eq!(cells(&text, "floor").last().map(String::as_str), Some("7.2"));
    assert!(!text.contains("Gate"));
}

#[test]
fn json_has_every_sample() {
    let json: serde_json::Value = serde_json::from_str(&usual().json().expect("json")).expect("json");
    assert_eq!(json["rows"][2]["samples"].as_array().map(Vec::len), Some(3));
    assert_eq!(json["machine"]["tsc_ghz"], 2.0);
}
