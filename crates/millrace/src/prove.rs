//! `millrace synth --prove`: checks that the fused program does to each packet what its elements do.

use crate::exit::ExitStatus;
use crate::text;
use anyhow::Context;
use ir::Verified;
use packet::field::{self, Base};
use prove::{Counterexample, Leaves, Limits, Observed, Part, Proof};
use runtime::Assembly;
use serde::Serialize;
use shm::descriptor::{BUF_BYTES, NO_HEADER, Packet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use synth::classes::packets::CreatedPacket;
use worker::fusion::{CompiledRegion, FusedRegion, Leads};
use worker::graph::Node;

/// The result for a fused region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RegionResult {
    /// The fused program and the elements are equal for every packet and state.
    Equal,
    /// No packet was found for which they differ, but not all packets are covered.
    NotRefuted,
    /// They differ for some packet.
    Differs,
}

/// The result for a fused region, with the numbers of the proof.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(rename = "verdict")]
    result: RegionResult,
    elements: Vec<String>,
    /// Number of traffic classes: of the elements, and of the fused program.
    classes: [usize; 2],
    /// Paths beyond the limits of classes and of time: of the elements, and of the fused program.
    left_out: [usize; 2],
    pairs: usize,
    same_expressions: usize,
    never_met: usize,
    equal_by_solver: usize,
    not_decided: Vec<String>,
    questions: usize,
    clauses: usize,
    packets: usize,
    classes_with_packets: usize,
    classes_without_packets: usize,
    /// Next packets of flows that ran by their flow's entry, and the templates of these entries.
    packets_by_entry: [usize; 2],
    seconds: f64,
    /// The classes of the elements that took longest.
    hardest: Vec<Hard>,
    limit_seconds: u64,
    limit_classes: usize,
    /// A packet for which they differ.
    counterexample: Option<String>,
    /// The same for the program with a fast path, where there is one. The verdict is for both.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_path: Option<Box<Shown>>,
}

/// The least time that a proof takes as a rule, so that there are some packets however many regions a chain has.
const LEAST_USUAL: Duration = Duration::from_secs(2);

/// Proves every fused region of a chain and prints the results; what is known by then once `stop` is set.
///
/// # Errors
/// When a program cannot be compiled or breaks an invariant, or standard output cannot be written.
pub fn run(
    assembly: &Assembly,
    chain: &str,
    limits: &Limits,
    stop: &Arc<AtomicBool>,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    let (nodes, regions) = (&assembly.graphs[0], &assembly.regions[0]);
    let start = Instant::now();
    let mut all = vec![];
    for (at, region) in regions.iter().enumerate() {
        // What is left of the time is for all the regions that are left.
        let share = |whole: Duration| whole.saturating_sub(start.elapsed()) / (regions.len() - at) as u32;
        let usual = share(limits.usual).max(LEAST_USUAL);
        let time = share(limits.time);
        all.push(prove(region, nodes, (&Limits { usual, ..*limits }, time), stop)?);
    }
    let differs = all.iter().any(|shown| shown.result == RegionResult::Differs);
    let found = Proofs { regions: &all };
    text::print_found(json, &found, || listed(chain, &all)).context("standard output")?;
    Ok(ExitStatus::of(!differs))
}

/// The results of all regions as JSON.
#[derive(Serialize)]
struct Proofs<'a> {
    regions: &'a [Shown],
}

fn prove(
    region: &FusedRegion,
    nodes: &[Node],
    (limits, time): (&Limits, Duration),
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Shown> {
    // The program that the host compiles before the first packet.
    let start = Instant::now();
    let made = CompiledRegion::of(&region.linked, &cells(region, nodes));
    let until = start + time;
    let usual = limits.usual / if made.fast.is_some() { 2 } else { 1 };
    let shown = |program: &Verified, time: Duration| {
        held(region, nodes, program, |of| {
            Ok(shown(of, &prove::prove(of, &Limits { time, usual, ..*limits }, stop)?, limits))
        })
    };
    let left = until.saturating_duration_since(Instant::now());
    let Some(fast) = &made.fast else { return shown(&made.program, left) };
    let mut whole = shown(&made.program, left / 2)?;
    let fast = shown(fast, until.saturating_duration_since(Instant::now()))?;
    whole.result = whole.result.max(fast.result);
    whole.fast_path = Some(Box::new(fast));
    Ok(whole)
}

/// The initial values of a fused region's cells: those of its elements, then zeros for the cells that count
/// wires.
fn cells(region: &FusedRegion, nodes: &[Node]) -> Vec<u64> {
    let own = region.nodes().flat_map(|node| nodes[node].first_cells.iter().copied());
    own.chain(region.linked.flow.counted.iter().map(|_| 0)).collect()
}

/// Calls `with` with a fused region's elements and the program that is compared with them.
fn held<T>(
    region: &FusedRegion,
    nodes: &[Node],
    made: &Verified,
    with: impl FnOnce(&prove::FusedSubgraph<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let parts = region.parts.iter().enumerate().filter_map(|(at, &node)| {
        let program = &nodes[node].lowered.as_ref()?.program;
        // The wires are the graph's; the region says only which of them are inside.
        let next = nodes[node].outputs.iter().zip(&region.layout.parts[at].leads).map(|(end, leads)| {
            let &Leads::Inside(part) = leads else { return None };
            end.filter(|end| region.parts[part] == end.node).map(|end| (part, end.port))
        });
        let first = region.parts.partition_point(|part| *part < node);
        let shares = (first != at).then_some(first);
        Some(Part { name: &nodes[node].name, program, shares, next: next.collect() })
    });
    let entry = |part: &usize| (*part, region.layout.parts[*part].input);
    let entries: Vec<(usize, usize)> = region.layout.entries.iter().map(entry).collect();
    let flow = &region.linked.flow;
    let counted: Vec<(usize, usize)> = flow.counted.iter().map(|wire| flow.wires[*wire].from).collect();
    let of = prove::FusedSubgraph {
        parts: parts.collect(),
        entries: &entries,
        from_ports: &region.layout.from_ports,
        linked: &region.linked,
        fused: made,
        cells: &cells(region, nodes),
        counted,
    };
    with(&of)
}

fn shown(of: &prove::FusedSubgraph<'_>, proof: &Proof, limits: &Limits) -> Shown {
    let verdict = match &proof.differs {
        Some(_) => RegionResult::Differs,
        None if proof.is_equal() => RegionResult::Equal,
        None => RegionResult::NotRefuted,
    };
    let mut not_decided = vec![];
    let sides = ["the elements", "the fused program"];
    for ((left, is_late), side) in proof.left.iter().zip(proof.late).zip(sides) {
        let limit = match is_late {
            true => "time (--limit), or by a signal".into(),
            false => format!("{} classes (--max-classes)", limits.classes),
        };
        if *left > 0 {
            let ways = text::plural(*left, "way");
            not_decided.push(format!("{ways} through {side} beyond the limit of {limit}"));
        }
    }
    not_decided.extend(proof.comparison.open.iter().cloned());
    let pairs = proof.comparison.pairs;
    Shown {
        result: verdict,
        elements: of.elements().map(|part| part.name.to_string()).collect(),
        classes: proof.classes,
        left_out: proof.left,
        pairs: pairs.all,
        same_expressions: pairs.same,
        never_met: pairs.apart,
        equal_by_solver: pairs.equal,
        not_decided,
        questions: proof.questions,
        clauses: proof.clauses,
        packets: proof.tried.packets,
        classes_with_packets: proof.tried.classes,
        classes_without_packets: proof.tried.missed,
        packets_by_entry: proof.tried.by_entry,
        seconds: proof.time.as_secs_f64(),
        hardest: hardest(of, proof),
        limit_seconds: limits.time.as_secs(),
        limit_classes: limits.classes,
        counterexample: proof.differs.as_ref().map(|found| counterexample(of, found)),
        fast_path: None,
    }
}

/// A class, and the time that it took.
#[derive(Debug, Serialize)]
struct Hard {
    class: usize,
    enters: String,
    seconds_compared: f64,
    seconds_run: f64,
}

/// The most classes that are shown with their times, and the least time of one.
const MOST_HARD: usize = 3;
const HARD: Duration = Duration::from_millis(100);

fn hardest(of: &prove::FusedSubgraph<'_>, proof: &Proof) -> Vec<Hard> {
    let hard = proof.costs.iter().filter(|cost| cost.compared + cost.run >= HARD);
    let shown = hard.take(MOST_HARD).map(|cost| {
        let (part, input) = of.entries[cost.entry];
        Hard {
            class: cost.class + 1,
            enters: format!("[{input}]{}", of.parts[part].name),
            seconds_compared: cost.compared.as_secs_f64(),
            seconds_run: cost.run.as_secs_f64(),
        }
    });
    shown.collect()
}

/// The most lines about undecided pairs.
const MOST_LINES: usize = 12;

fn listed(chain: &str, all: &[Shown]) -> String {
    let mut out = format!("{chain}: {}\n", text::plural(all.len(), "fused region"));
    for (number, shown) in all.iter().enumerate() {
        let of_both = [("", Some(shown)), (" with its fast path", shown.fast_path.as_deref())];
        for (what, shown) in of_both.into_iter().filter_map(|(what, shown)| Some((what, shown?))) {
            out += &listed_one(&format!("fused region {}{what}", number + 1), shown);
        }
    }
    out
}

fn listed_one(title: &str, shown: &Shown) -> String {
    let mut out = String::new();
    let verdict = match shown.result {
        RegionResult::Equal => "equal",
        RegionResult::NotRefuted => "not refuted",
        RegionResult::Differs => "differs",
    };
    let [mine, theirs] = shown.classes;
    let _ = write!(
        out,
        "\n{title}: {verdict}\n\
         \x20 classes   {mine} of {} elements, {theirs} of the fused program\n\
         \x20 compared  {} pairs: {} do the same by the same expressions, {} share no packet, {} are equal by the solver\n\
         \x20 solver    {}, {} questions in {} clauses\n\
         \x20 packets   {}, from {} of {} classes and their borders, by elements, by program and by machine code\n\
         \x20 entries   {} next packets of their flows, by the flow's entry and by elements; {}\n\
         \x20 time      {:.1} s (limits: {} s, {} classes)\n",
        shown.elements.len(),
        shown.pairs,
        shown.same_expressions,
        shown.never_met,
        shown.equal_by_solver,
        prove::SOLVER,
        shown.questions,
        shown.clauses,
        shown.packets,
        shown.classes_with_packets,
        shown.classes_with_packets + shown.classes_without_packets,
        shown.packets_by_entry[0],
        text::plural(shown.packets_by_entry[1], "template"),
        shown.seconds,
        shown.limit_seconds,
        shown.limit_classes,
    );
    let hard = shown.hardest.iter().map(|hard| {
        let Hard { class, enters, seconds_compared, seconds_run } = hard;
        format!(
            "class {class} from {enters}: {seconds_compared:.1} s to compare, {seconds_run:.1} s for packets"
        )
    });
    out += &text::titled("  hardest", 11, &hard.collect::<Vec<_>>());
    if let Some(found) = &shown.counterexample {
        return out + found;
    }
    let first = shown.not_decided.get(..MOST_LINES).unwrap_or(&shown.not_decided);
    out += &text::titled("  open", 11, first);
    if shown.not_decided.len() > MOST_LINES {
        let _ = writeln!(out, "            and {} more", shown.not_decided.len() - MOST_LINES);
    }
    out
}

/// Bytes in a line of hex.
const HEX_BYTES: usize = 32;

/// A packet, and the result of each side: the elements, the fused program and its machine code.
fn counterexample(of: &prove::FusedSubgraph<'_>, found: &Counterexample) -> String {
    let (part, input) = of.entries[found.entry];
    let three = &found.three;
    let (made, what) = match &three.by_entry {
        Some(next) => (&next.packet, "next pkt"),
        None => (&found.compiled, "packet"),
    };
    let packet = &made.packet;
    let mut out = format!(
        "  {what:<9} {} bytes into [{input}]{}, headers at {}\n",
        packet.len(),
        of.parts[part].name,
        places([packet.data(), packet.mac, packet.net, packet.trans]),
    );
    let data = usize::from(packet.data());
    let bytes = &made.buffer[data..(data + packet.len() as usize).min(BUF_BYTES)];
    for line in bytes.chunks(HEX_BYTES) {
        let _ = writeln!(out, "            {}", text::hex(line, " "));
    }
    let _ = writeln!(out, "  fields    {}", fields(packet, &made.buffer).join(", "));
    let whole = |seen: &Observed| Observed { calls: None, ..seen.clone() };
    let sides = match &three.by_entry {
        Some(next) => vec![("elements", &next.elements), ("entry", &next.entry)],
        None => vec![("elements", &three.elements), ("program", &three.program), ("code", &three.code)],
    };
    for (name, seen) in sides {
        // Machine code with the same result as its program is not shown. It calls tables differently, so
        // calls are not compared.
        if name == "code" && whole(seen) == whole(&three.program) {
            continue;
        }
        let _ = writeln!(out, "  {name:<9} {}", leaves(of, seen.leaves));
        for line in changes(made, seen) {
            let _ = writeln!(out, "            {line}");
        }
    }
    out
}

fn places(places: [u16; 4]) -> String {
    let [data, headers @ ..] = places;
    let named = ["mac", "net", "trans"].into_iter().zip(headers).map(|(name, at)| match at {
        NO_HEADER => format!("{name} not set"),
        at => format!("{name} {}", i32::from(at) - i32::from(data)),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// The fields that are shown of a packet, those of a transport header only for its IPv4 protocol.
const SHOWN: &[(field::Field, Option<u64>, &str)] = &[
    (field::ETH_DST, None, "eth.dst"),
    (field::ETH_SRC, None, "eth.src"),
    (field::ETH_TYPE, None, "eth.type"),
    (field::IP_HL, None, "ip.hl"),
    (field::IP_TOS, None, "ip.tos"),
    (field::IP_LEN, None, "ip.len"),
    (field::IP_ID, None, "ip.id"),
    (field::IP_OFF, None, "ip.off"),
    (field::IP_TTL, None, "ip.ttl"),
    (field::IP_PROTO, None, "ip.proto"),
    (field::IP_SUM, None, "ip.sum"),
    (field::IP_SRC, None, "ip.src"),
    (field::IP_DST, None, "ip.dst"),
    (field::L4_SPORT, Some(6), "tcp.sport"),
    (field::L4_DPORT, Some(6), "tcp.dport"),
    (field::TCP_FLAGS, Some(6), "tcp.flags"),
    (field::TCP_SUM, Some(6), "tcp.sum"),
    (field::L4_SPORT, Some(17), "udp.sport"),
    (field::L4_DPORT, Some(17), "udp.dport"),
    (field::UDP_LEN, Some(17), "udp.len"),
    (field::UDP_SUM, Some(17), "udp.sum"),
    (field::ICMP_TYPE, Some(1), "icmp.type"),
    (field::ICMP_CODE, Some(1), "icmp.code"),
];

/// The fields of [`SHOWN`] that are completely inside the packet. A header that is not set is assumed where
/// it is in an Ethernet frame: the network header 14 bytes behind the MAC header, the transport header behind
/// the IP header.
fn fields(packet: &Packet, buffer: &[u8]) -> Vec<String> {
    let data = usize::from(packet.data());
    let set = |at: u16, other: usize| if at == NO_HEADER { other } else { usize::from(at) };
    let mac = set(packet.mac, data);
    let net = set(packet.net, mac + 14);
    let length = buffer.get(net).map_or(20, |first| usize::from(first & 15) * 4);
    let trans = set(packet.trans, net + length);
    let end = (data + packet.len() as usize).min(buffer.len());
    let value = |of: &field::Field| {
        let base = [data, mac, net, trans][of.base as usize];
        of.read(buffer.get(base..end)?)
    };
    let protocol = value(&field::IP_PROTO);
    let one = |(of, wanted, name): &(field::Field, Option<u64>, &str)| {
        if wanted.is_some() && *wanted != protocol {
            return None;
        }
        let value = value(of)?;
        let bytes = &value.to_be_bytes()[8 - usize::from(of.width.div_ceil(8))..];
        Some(match (of.base, of.width) {
            (Base::Mac, 48) => {
                format!("{name} {}", text::hex(bytes, ":"))
            }
            (Base::Net, 32) => {
                let dotted: Vec<String> = bytes.iter().map(u8::to_string).collect();
                format!("{name} {}", dotted.join("."))
            }
            _ if name.ends_with("type") && of.width == 16
                || name.ends_with("sum")
                || *of == field::IP_OFF =>
            {
                format!("{name} {value:#06x}")
            }
            _ => format!("{name} {value}"),
        })
    };
    SHOWN.iter().filter_map(one).collect()
}

fn leaves(of: &prove::FusedSubgraph<'_>, leaves: Leaves) -> String {
    let (Leaves::Port(part, at) | Leaves::Drop(part, at) | Leaves::Slow(part, at)) = leaves;
    let Part { name, program, .. } = &of.parts[part];
    let text = |texts: &[String]| texts.get(at).map_or("?".to_string(), String::clone);
    match leaves {
        Leaves::Port(..) => format!("leaves by {name}[{at}]"),
        Leaves::Drop(..) => format!("dropped by {name}: {}", text(&program.reasons)),
        Leaves::Slow(..) => format!("slow path of {name}: {}", text(&program.slow)),
    }
}

/// The values that differ, each with its place, which counts from `first`; `None` when none does.
fn differences<T: PartialEq>(
    title: &str,
    old: &[T],
    new: &[T],
    first: i64,
    shown: impl Fn(&T) -> String,
) -> Option<String> {
    let all = (first..).zip(old.iter().zip(new)).filter(|(_, (old, new))| old != new);
    let all: Vec<String> =
        all.map(|(at, (old, new))| format!("{at}: {} -> {}", shown(old), shown(new))).collect();
    (!all.is_empty()).then(|| format!("{title} {}", all.join(", ")))
}

/// What a side has written.
fn changes(made: &CreatedPacket, seen: &Observed) -> Vec<String> {
    let mut lines = vec![];
    let hex = |byte: &u8| format!("{byte:02x}");
    if let Some(left) = &seen.left {
        let before = &made.packet;
        let first = -i64::from(before.data());
        lines.extend(differences("bytes", &made.buffer, &left.buffer, first, hex));
        lines.extend(differences("annotations", &before.anno, &left.anno, 0, hex));
        if left.places != [before.data(), before.mac, before.net, before.trans] {
            lines.push(format!(
                "first byte moved by {}, headers at {}",
                i32::from(left.places[0]) - i32::from(before.data()),
                places(left.places)
            ));
        }
        if left.lengths != [before.len(), before.total()] {
            lines.push(format!("{} bytes", left.lengths[1]));
        }
        if left.packet_type != before.packet_type {
            lines.push(format!("packet type {}", left.packet_type));
        }
    }
    lines.extend(differences("cells", &made.cells, &seen.cells, 0, u64::to_string));
    for (table, calls) in seen.calls.iter().flatten().enumerate() {
        for call in calls {
            lines.push(format!("table {table}: {call:?}"));
        }
    }
    for (table, records) in seen.records.iter().enumerate() {
        for (key, bytes) in records {
            lines.push(format!("table {table} holds {key:?}: {}", text::hex(bytes, " ")));
        }
    }
    lines
}

#[cfg(test)]
mod tests;
