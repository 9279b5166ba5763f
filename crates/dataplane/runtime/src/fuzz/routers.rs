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

/// Routers in a row. Output 0 of each leads to the next one, the others elsewhere.
fn chain(choices: &mut Choices<'_>) -> String {
    let count = 2 + choices.byte() % 4;
    let (mut text, mut wires) = (String::new(), String::from("FromDevice(in) -> s0;\n"));
    let mut writes = vec![];
    for at in 0..count {
        let next = if at + 1 < count { format!("s{}", at + 1) } else { "ToDevice(out0)".into() };
        let mut routes: Vec<String> = vec![];
        for _ in 0..1 + choices.byte() % 5 {
            let route = route(choices, &[0, 0, 0, 0, 0, 1, 2]);
            let prefix = route.split(' ').next().unwrap_or_default();
            // No prefix twice.
            if !routes.iter().any(|known| known.starts_with(prefix)) {
                routes.push(route);
            }
        }
        let (into, behind) = match choices.byte() % 3 {
            0 => ("CheckIPHeader(14)", ""),
            1 => ("Strip(14) -> CheckIPHeader", " -> Unstrip(14)"),
            _ => {
                ("Strip(14) -> CheckIPHeader", " -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)")
            }
        };
        let elements: String =
            (0..choices.byte() % 4).map(|_| format!(" -> {}", choices.one_of(BEHIND))).collect();
        text += &format!("s{at} :: {{ input -> {into} -> rt{at} :: RadixIPLookup({}); ", routes.join(", "));
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
    text += &wires;
    if writes.is_empty() {
        return text;
    }
    let changes: String = writes.iter().map(|write| format!("wait {WAIT}, {write}, ")).collect();
    text + &format!("Script({changes}wait {WAIT});\n")
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
    all_do_the_same(&Setup { text, frames, burst, step_ns }).unions as u64
}
