//! Random routers in a row, whose routes a script changes: their tables are asked one by one, or as a union.

use super::{Choices, Setup, all_do_the_same, frame};

/// Prefixes that contain each other.
const PREFIXES: &[&str] = &[
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/9",
    "10.128.0.0/9",
    "10.128.0.0/15",
    "10.0.0.0/16",
    "10.0.1.0/24",
    "10.129.0.9/32",
    "10.193.0.0/23",
    "10.193.1.9/32",
    "10.255.0.0/24",
];

/// Elements behind a router's table.
const BEHIND: &[&str] = &[
    "Counter",
    "Paint(1)",
    "DropBroadcasts",
    "IPGWOptions(10.0.0.1)",
    "FixIPSrc(10.0.0.1)",
    "SetIPDSCP(10)",
    "CheckPaint(1)",
    "DecIPTTL",
];

/// The time between two changes, in seconds.
const WAIT: &str = "0.002";
/// The times between two bursts: a change is in the same tick as the next bursts, or not.
const STEPS_NS: &[u64] = &[130_000, 300_000, 3_000_000];

fn route(choices: &mut Choices<'_>, outputs: &[usize]) -> String {
    let (prefix, gateway) = (*choices.one_of(PREFIXES), choices.byte() % 4);
    let output = *choices.one_of(outputs);
    if gateway < 2 {
        format!("{prefix} 192.0.2.{} {output}", gateway + 1)
    } else {
        format!("{prefix} {output}")
    }
}

/// What packets meet in front of a router's table, and behind what follows it.
fn around(choices: &mut Choices<'_>) -> (&'static str, &'static str) {
    match choices.byte() % 3 {
        0 => ("CheckIPHeader(14)", ""),
        1 => ("Strip(14) -> CheckIPHeader", " -> Unstrip(14)"),
        _ => ("Strip(14) -> CheckIPHeader", " -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)"),
    }
}

fn routes(choices: &mut Choices<'_>, outputs: &[usize]) -> String {
    let mut routes: Vec<String> = vec![];
    for _ in 0..1 + choices.byte() % 5 {
        let route = route(choices, outputs);
        let prefix = route.split(' ').next().unwrap_or_default();
        // No prefix twice.
        if !routes.iter().any(|known| known.starts_with(prefix)) {
            routes.push(route);
        }
    }
    routes.join(", ")
}

fn behind(choices: &mut Choices<'_>) -> String {
    (0..choices.byte() % 4).map(|_| format!(" -> {}", choices.one_of(BEHIND))).collect()
}

fn chain(choices: &mut Choices<'_>) -> String {
    let count = 2 + choices.byte() % 4;
    let (text, writes) = match choices.byte() % 2 {
        0 => one_way(choices, count),
        _ => both_ways(choices, count),
    };
    if writes.is_empty() {
        return text;
    }
    let changes: String = writes.iter().map(|write| format!("wait {WAIT}, {write}, ")).collect();
    text + &format!("Script({changes}wait {WAIT});\n")
}

/// Routers in a row, each with one table for both ways, and a mirror behind the last: output 0 leads there, and output
/// 1 back. Packets may turn back at any of them, until their time to live is over.
fn both_ways(choices: &mut Choices<'_>, count: usize) -> (String, Vec<String>) {
    let (mut text, mut wires, mut writes) =
        (String::new(), String::from("FromDevice(in) -> [0]s0;\n"), vec![]);
    for at in 0..count {
        let (into, out) = around(choices);
        // The two ways meet in front of the table, or in front of what checks the header.
        let (one, two) = match choices.byte() % 2 {
            0 => (format!("Paint(1) -> {into}"), format!("Paint(2) -> {into}")),
            _ => (format!("Paint(1) -> both{at} :: {into}"), format!("Paint(2) -> both{at}")),
        };
        let two = if two.contains("both") { two } else { format!("{two} -> rt{at}") };
        let routes = routes(choices, &[0, 0, 0, 1, 1, 1, 2]);
        let (forth, back) = (behind(choices), behind(choices));
        text += &format!(
            "s{at} :: {{ input[0] -> {one} -> rt{at} :: RadixIPLookup({routes}); input[1] -> {two}; "
        );
        text += &format!("rt{at}[0]{forth} -> DecIPTTL{out} -> [0]output; ");
        text += &format!("rt{at}[1]{back} -> DecIPTTL{out} -> [1]output; rt{at}[2] -> Discard; }};\n");
        wires += &match at {
            0 => "s0[1] -> ToDevice(out0);\n".to_string(),
            _ => format!("s{}[0] -> [0]s{at}; s{at}[1] -> [1]s{};\n", at - 1, at - 1),
        };
        if choices.byte().is_multiple_of(2) {
            writes.push(format!("write s{at}/rt{at}.set {}", route(choices, &[0, 1, 1])));
        }
    }
    let last = count - 1;
    let mirror = "Strip(14) -> CheckIPHeader -> IPMirror -> Unstrip(14)";
    wires += &format!("s{last}[0] -> {mirror} -> [1]s{last};\n");
    (text + &wires, writes)
}

/// Routers in a row. Output 0 of each leads to the next one, the others elsewhere.
fn one_way(choices: &mut Choices<'_>, count: usize) -> (String, Vec<String>) {
    let (mut text, mut wires) = (String::new(), String::from("FromDevice(in) -> s0;\n"));
    let mut writes = vec![];
    for at in 0..count {
        let next = if at + 1 < count { format!("s{}", at + 1) } else { "ToDevice(out0)".into() };
        let routes = routes(choices, &[0, 0, 0, 0, 0, 1, 2]);
        let (into, behind) = around(choices);
        let elements = self::behind(choices);
        text += &format!("s{at} :: {{ input -> {into} -> rt{at} :: RadixIPLookup({routes}); ");
        text += &format!("rt{at}[0]{elements}{behind} -> [0]output; ");
        text += &format!("rt{at}[1] -> Counter{behind} -> [1]output; rt{at}[2] -> Discard; }};\n");
        let beyond = match choices.byte() % 3 {
            0 if at + 2 < count => format!("s{}", at + 2),
            1 => "Discard".into(),
            _ => format!("c{at} :: Counter -> ToDevice(out1)"),
        };
        wires += &format!("s{at}[0] -> {next};\ns{at}[1] -> {beyond};\n");
        if choices.byte().is_multiple_of(2) {
            writes.push(format!("write s{at}/rt{at}.set {}", route(choices, &[0, 0, 1])));
        }
    }
    (text + &wires, writes)
}

/// Runs the routers that the bytes encode in all ways. Returns the number of unions that were used at the end.
///
/// # Panics
/// If the results differ.
pub fn fuzz_routers(data: &[u8]) -> u64 {
    let mut choices = Choices(data);
    let text = chain(&mut choices);
    let burst = 1 + choices.byte() % 64;
    let frames = (0..4 + choices.byte() % 40).map(|_| frame(&mut choices)).collect();
    let step_ns = *choices.one_of(STEPS_NS);
    all_do_the_same(&Setup { text, frames, burst, step_ns, is_timed: false }).unions as u64
}
