//! A chain as an equivalent Click configuration: its traffic classes as classifiers, with the chain's elements behind
//! them for all other packets.
//!
//! Behind each port is a dispatcher: a test of the Ethernet type, a header check and one IPClassifier with an output
//! for each class that can be translated, followed by elements for the class's writes. A class that looks up in a
//! table, or has a condition that patterns do not have, is left to the chain's own elements: packets that match no
//! pattern enter them as without the dispatcher. The configuration does to each packet what the chain does, but the
//! counters of bypassed elements do not count the packets of translated classes.
//!
//! Conditions are taken from the classes as data ([`Asked`]). A class with an unknown condition is not translated.

use super::classes::ClassShown;
use super::conditions::{
    Kind, Known, complement, is_checked, kind, learn, prefixes, table_asked, unchecked, whole_field,
};
use chain::Chain;
use runtime::Assembly;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use synth::classes::show::Asked;
use worker::graph::Node;

/// The most patterns of one dispatcher.
const MOST_PATTERNS: usize = 500;
/// The most prefixes of one condition on an address.
const MOST_PREFIXES: usize = 40;
/// A pattern that every packet with ports matches, and no packet without.
const HAS_PORTS: &str = "src port 0-65535";
/// A pattern that every packet with four bytes behind the IP header matches, whatever its protocol.
const HAS_BYTES: &str = "transp[0:4] >= 0";

/// A class as Click's pattern and elements.
struct Said {
    pattern: String,
    steps: Vec<String>,
    /// The destination, as node and input; `None` if the packets are dropped.
    to: Option<(usize, usize)>,
}

/// The text of the configuration.
///
/// # Errors
/// When the chain has an NF in a process.
pub fn configuration(
    name: &str,
    chain: &Chain,
    assembly: &Assembly,
    shown: &[super::RegionShown],
) -> anyhow::Result<String> {
    if let Some(nf) = chain.processes.first() {
        crate::exit::refuse!("`{}` runs in a process of its own, and cannot be said in Click", nf.name);
    }
    let (graph, nodes) = (&chain.graph, &assembly.graphs[0]);
    let mut fronts = String::new();
    // For each input behind a port, the dispatcher that takes its place.
    let mut instead: BTreeMap<(usize, usize), String> = BTreeMap::new();
    let mut leads_to: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (region, shown) in assembly.regions[0].iter().zip(shown) {
        for (entry, end) in region.entries().enumerate() {
            if !super::classes::is_fed_by_port(nodes, end) {
                let name = &nodes[end.0].name;
                fronts += &format!(
                    "\n// What enters at {name} is left to the elements: it comes from others of them.\n"
                );
                continue;
            }
            let classes: Vec<&ClassShown> =
                shown.classes.iter().filter(|class| class.entry == entry).collect();
            let number = instead.len() + 1;
            match entry_elements(number, &classes, end, nodes, shown.not_covered.is_empty()) {
                Ok(front) => {
                    fronts += &front.text;
                    leads_to.extend(front.leads_to);
                    instead.insert(end, format!("front{number}"));
                }
                Err(why) => {
                    fronts += &format!(
                        "\n// What enters at {} is left to the elements: {why}.\n",
                        nodes[end.0].name
                    );
                }
            }
        }
    }
    let mut out = format!(
        "// What {name} does, as one Click configuration made from its traffic classes.\n\
         // Classes that can be said in Click are sorted out in front; all others go through the chain's elements.\n\
         // Counters of elements that packets do not pass any more stay behind.\n"
    );
    if !graph.packages.is_empty() {
        let packages: Vec<&str> = graph.packages.iter().map(|package| package.as_str()).collect();
        out += &format!("require({});\n", packages.join(", "));
    }
    out += "\n";
    let live = live(graph, &instead, &leads_to);
    for (element, _) in graph.elements.iter().zip(&live).filter(|(_, live)| **live) {
        out += &match element.config.as_str().trim() {
            "" => format!("{} :: {};\n", element.name, element.class),
            config => format!("{} :: {}({config});\n", element.name, element.class),
        };
    }
    out += &fronts;
    out += "\n";
    for wire in graph.connections.iter().filter(|wire| live[wire.from.0]) {
        let end = (wire.to.0, wire.to_port as usize);
        let to = match instead.get(&end) {
            Some(front) => format!("[0]{front}"),
            None => format!("[{}]{}", wire.to_port, nodes[wire.to.0].name),
        };
        out += &format!("{}[{}] -> {to};\n", nodes[wire.from.0].name, wire.from_port);
    }
    for (node, port) in instead.keys().filter(|end| live[end.0] && !leads_to.contains(*end)) {
        out += &format!("Idle -> [{port}]{};\n", nodes[*node].name);
    }
    Ok(out)
}

/// For each element, whether it is part of the configuration: packets can still reach it, or it has no inputs. All
/// elements are, if the configuration of one of these names another one, or if an input would have no wire.
fn live(
    graph: &::click::Graph,
    instead: &BTreeMap<(usize, usize), String>,
    leads_to: &BTreeSet<(usize, usize)>,
) -> Vec<bool> {
    let goes = |wire: &&::click::Connection| !instead.contains_key(&(wire.to.0, wire.to_port as usize));
    let mut live: Vec<bool> = vec![false; graph.elements.len()];
    let starts = (0..live.len()).filter(|at| graph.connections.iter().all(|wire| wire.to.0 != *at));
    let mut open: Vec<usize> = starts.chain(leads_to.iter().map(|to| to.0)).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut live[at], true) {
            open.extend(graph.connections.iter().filter(goes).filter(|w| w.from.0 == at).map(|w| w.to.0));
        }
    }
    let is_wired = |wire: &::click::Connection| {
        let same = |other: &&::click::Connection| (other.to, other.to_port) == (wire.to, wire.to_port);
        let by_front = leads_to.contains(&(wire.to.0, wire.to_port as usize));
        by_front || graph.connections.iter().filter(same).any(|other| live[other.from.0])
    };
    let loses_wire = graph.connections.iter().any(|wire| live[wire.to.0] && !is_wired(wire));
    let words: BTreeSet<&str> = (graph.elements.iter().zip(&live).filter(|(_, live)| **live))
        .flat_map(|(element, _)| {
            element.config.text.split(|c: char| !(c.is_alphanumeric() || "_@-".contains(c)))
        })
        .collect();
    let dead = graph.elements.iter().zip(&live).filter(|(_, live)| !**live);
    let mut short = dead.map(|(element, _)| element.name.rsplit('/').next().unwrap_or_default());
    let named = short.any(|name| words.contains(name));
    if loses_wire || named { vec![true; live.len()] } else { live }
}

/// A dispatcher as text, with the inputs to which it emits.
struct Dispatcher {
    text: String,
    leads_to: Vec<(usize, usize)>,
}

/// The dispatcher between a port and an entry of a fused region, else why there is none.
fn entry_elements(
    number: usize,
    classes: &[&ClassShown],
    end: (usize, usize),
    nodes: &[Node],
    is_whole: bool,
) -> Result<Dispatcher, String> {
    if !is_whole {
        return Err("not all of its classes are known".into());
    }
    let behind = format!("[{}]{}", end.1, nodes[end.0].name);
    let (mut not_ip, mut bad, mut ip): (Vec<&ClassShown>, Vec<&ClassShown>, Vec<&ClassShown>) =
        Default::default();
    for class in classes {
        match kind(class) {
            Some(Kind::NotIp) => not_ip.push(class),
            Some(Kind::BadHeader) => bad.push(class),
            Some(Kind::Ip) => ip.push(class),
            // Packets of several segments: the dispatcher's header check joins the segments, as the element's slow path
            // does.
            None if class.filter.contains("other segments > 0") => {}
            None => {
                return Err(format!("class {} is asked for before its IP header is checked", class.number));
            }
        }
    }
    let trims = |class: &&&ClassShown| class.ends != "out" || class.writes.iter().any(is_trim);
    if let Some(class) = ip.iter().find(|class| !trims(class)) {
        return Err(format!("packets of class {} keep what lies behind the IP packet", class.number));
    }
    let (mut said, mut unsaid) = (vec![], vec![]);
    for class in ip {
        match say(class, nodes) {
            Ok(one) if said.len() < MOST_PATTERNS => said.push((class, one)),
            Ok(_) => unsaid.push((class, "there are too many".to_string())),
            Err(why) => unsaid.push((class, why)),
        }
    }
    if said.is_empty() {
        return Err(unsaid.first().map_or("no packet of it is IPv4".into(), |(class, why)| {
            format!("none of its classes can be said, class {} because {why}", class.number)
        }));
    }
    let mut out = format!(
        "\n// In front of {behind}: {} of {} IP classes are said in Click.\n",
        said.len(),
        said.len() + unsaid.len()
    );
    for (class, why) in &unsaid {
        out += &format!("// Class {} is not: {why}.\n", class.number);
    }
    out += &format!("front{number} :: Classifier(12/0800, -) -> check{number} :: CheckIPHeader(14);\n");
    out += &format!("front{number}[1] -> {};\n", together(&not_ip, &behind, nodes));
    out += &format!("check{number}[1] -> {};\n", together(&bad, &behind, nodes));
    let mut patterns: Vec<&str> = said.iter().map(|(_, one)| one.pattern.as_str()).collect();
    // If every class is translated, every packet matches a pattern.
    if !unsaid.is_empty() {
        patterns.push("-");
    }
    out += &format!(
        "sort{number} :: IPClassifier({});\ncheck{number}[0] -> sort{number};\n",
        patterns.join(",\n    ")
    );
    for (at, (class, one)) in said.iter().enumerate() {
        let steps: String = one.steps.iter().map(|step| format!(" -> {step}")).collect();
        out += &format!(
            "sort{number}[{at}]{steps} -> {}; // class {}: {}\n",
            target(one.to, nodes),
            class.number,
            class.exit
        );
    }
    if !unsaid.is_empty() {
        out += &format!("sort{number}[{}] -> {behind};\n", said.len());
    }
    let mut leads_to: Vec<(usize, usize)> = said.iter().filter_map(|(_, one)| one.to).collect();
    if out.contains(&format!("-> {behind};")) {
        leads_to.push(end);
    }
    Ok(Dispatcher { text: out, leads_to })
}

fn target(to: Option<(usize, usize)>, nodes: &[Node]) -> String {
    to.map_or("Discard".into(), |(node, port)| format!("[{port}]{}", nodes[node].name))
}

/// The destination of packets that the dispatcher does not classify further: dropped if all these classes drop, else
/// the chain's elements.
fn together(classes: &[&ClassShown], behind: &str, nodes: &[Node]) -> String {
    let all_dropped = classes.iter().all(|class| class.ends == "drop");
    match all_dropped && !classes.is_empty() {
        true => target(None, nodes),
        false => behind.to_string(),
    }
}

fn is_trim(write: &(String, String)) -> bool {
    write.0 == "end" && write.1 == "headroom + ip.len + 14"
}

/// A class as Click's pattern and elements, else why it cannot be translated.
fn say(class: &ClassShown, nodes: &[Node]) -> Result<Said, String> {
    if class.ends == "slow" {
        return Err(format!("it goes on by the {}", class.exit));
    }
    if let Some(asked) = table_asked(&class.conditions) {
        return Err(format!("it asks a table: `{asked}`"));
    }
    let pattern = patterns(&class.conditions, &Known::default())?;
    let pattern = if pattern.is_empty() { "true".into() } else { pattern.join(" && ") };
    if class.ends == "drop" {
        return Ok(Said { pattern, steps: vec![], to: None });
    }
    let to = class.to.ok_or("its way out is not wired")?;
    let sink = nodes[to.0].class.name;
    if !["ToDevice", "ToDPDKDevice", "ToDump", "Discard"].contains(&sink) {
        return Err(format!("it goes on to {}", nodes[to.0].name));
    }
    Ok(Said { pattern, steps: steps(class)?, to: Some(to) })
}

/// The writes of a class as elements.
fn steps(class: &ClassShown) -> Result<Vec<String>, String> {
    let (mut ttl, mut sum, mut addresses) = (0, false, [None, None]);
    for write in &class.writes {
        let (name, value) = write;
        match name.as_str() {
            // Annotations and header positions have no effect behind the last element; the header check trims the
            // packet.
            "net header" | "trans header" | "mac header" => {}
            _ if is_trim(write)
                || !name.contains('.') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {}
            "eth.type" if value == "ip" => {}
            "ip.sum" => sum = true,
            "ip.ttl" => {
                let by = value.strip_prefix("ip.ttl - ").and_then(|by| by.parse::<usize>().ok());
                ttl = by.ok_or_else(|| format!("it sets ip.ttl to {value}"))?;
            }
            "eth.src" | "eth.dst" => {
                if value.split(':').count() != 6 {
                    return Err(format!("it sets {name} to {value}"));
                }
                addresses[usize::from(name == "eth.dst")] = Some(value.as_str());
            }
            _ => return Err(format!("it sets {name}")),
        }
    }
    if sum != (ttl > 0) {
        return Err("it sets ip.sum".into());
    }
    let mut steps = vec!["DecIPTTL".to_string(); ttl];
    match addresses {
        [None, None] => {}
        [Some(src), Some(dst)] => steps.push(format!("EtherRewrite({src}, {dst})")),
        _ => return Err("it sets one Ethernet address only".into()),
    }
    Ok(steps)
}

/// Conditions as patterns, all of which must match.
fn patterns(conditions: &[Asked], known: &Known) -> Result<Vec<String>, String> {
    let mut known = *known;
    learn(&mut known, conditions);
    let mut all = vec![];
    for asked in conditions {
        match asked {
            Asked::Any { any } => {
                let lists = any.iter().map(|list| {
                    let list = patterns(list, &known)?;
                    Ok(if list.is_empty() { "true".to_string() } else { format!("({})", list.join(" && ")) })
                });
                let lists = lists.collect::<Result<Vec<_>, String>>()?;
                all.push(format!("({})", lists.join(" || ")));
            }
            Asked::Is { of, intervals, text } => all.extend(pattern(of, intervals, text, &known)?),
        }
    }
    Ok(all)
}

/// A condition as a pattern; `None` if the dispatcher's header check tests it.
fn pattern(of: &str, intervals: &[(u64, u64)], text: &str, known: &Known) -> Result<Option<String>, String> {
    let have_ports = known.ports == (true, true);
    let no = || format!("a pattern cannot ask `{text}`");
    if is_checked(of, intervals, text) {
        return Ok(None);
    }
    // The number of bytes behind the IP header; a condition on both of its ends is one text.
    match unchecked(text).as_slice() {
        ["4*ip.hl + 4 <= ip.len"] if have_ports => return Ok(Some(HAS_PORTS.into())),
        ["4*ip.hl + 3 >= ip.len"] if have_ports => return Ok(Some(format!("!({HAS_PORTS})"))),
        // Protocols without ports.
        ["4*ip.hl + 4 <= ip.len"] if known.ports.1 => return Ok(Some(HAS_BYTES.into())),
        ["4*ip.hl + 3 >= ip.len"] if known.ports.1 => return Ok(Some(format!("!({HAS_BYTES})"))),
        _ => {}
    }
    let (field, intervals) = whole_field(of, intervals);
    let ranges = |sign: &str, name: &str, list: &[(u64, u64)]| {
        let ranges = list.iter().map(|(first, last)| match first == last {
            true => format!("{name} {first}"),
            false => format!("{name} {first}-{last}"),
        });
        Ok(Some(format!("{sign}({})", ranges.collect::<Vec<_>>().join(" || "))))
    };
    let ports = |name: &str| ranges("", name, &intervals);
    let one = |name: &str, max: u64| {
        let others = complement(&intervals, max);
        if others.len() < intervals.len() { ranges("!", name, &others) } else { ranges("", name, &intervals) }
    };
    match field {
        "ip.src" | "ip.dst" => {
            let side = field.trim_start_matches("ip.");
            let nets = |intervals: &[(u64, u64)]| -> Vec<String> {
                let nets = intervals.iter().flat_map(|(first, last)| prefixes(*first, *last, 32));
                let nets = nets
                    .map(|(first, len)| format!("{side} net {}/{len}", Ipv4Addr::from_bits(first as u32)));
                nets.take(MOST_PREFIXES + 1).collect()
            };
            let (these, others) = (nets(&intervals), nets(&complement(&intervals, u32::MAX.into())));
            let (sign, nets) = if others.len() < these.len() { ("!", others) } else { ("", these) };
            if nets.len() > MOST_PREFIXES || nets.is_empty() {
                return Err(no());
            }
            Ok(Some(format!("{sign}({})", nets.join(" || "))))
        }
        "ip.proto" => one("ip proto", 255),
        "ip.ttl" => one("ip ttl", 255),
        "ip.tos" => one("ip tos", 255),
        "ip.dscp" => one("ip dscp", 63),
        "ip.id" => one("ip id", 65535),
        "ip.len" => one("ip len", 65535),
        "ip.hl" => one("ip hl", 15),
        "ip.frag" if intervals == [(0, 0)] => Ok(Some("ip[6:2] & 0x1fff = 0".into())),
        "ip.frag" if intervals == [(1, 0x1fff)] => Ok(Some("!(ip[6:2] & 0x1fff = 0)".into())),
        "l4.sport" | "tcp.sport" | "udp.sport" if have_ports => ports("src port"),
        "l4.dport" | "tcp.dport" | "udp.dport" if have_ports => ports("dst port"),
        "icmp.type" if known.icmp => ports("icmp type"),
        _ => Err(no()),
    }
}
