//! A chain's classification as OpenFlow 1.3 rules (SNF paper, hardware-accelerated section): a switch in
//! front of the server drops what the chain is sure to drop, and lets everything else through unchanged.
//!
//! The rules are derived from the traffic classes, and from the rule list that they look up first, if there
//! is one. The server gets the packets of every class that depends on state or on a condition that a switch
//! does not have. It also gets fragments and tagged frames, of which a switch sees other fields than the
//! chain does, and packets from port 0, because a switch shows port 0 if it found no ports. The chain behind
//! the switch does to each packet that it gets what it does without the switch. The switch's counters count
//! the packets that the switch dropped; the chain's do not.
//!
//! Ranges of ports become numbers in the metadata: two tables divide the ports where ranges begin and end,
//! and a range is a few prefixes of these numbers. The order of a list becomes priorities; adjacent rules
//! with the same action share one.

mod class;
mod matches;
mod ports;
mod rule;

use super::RegionShown;
use super::classes::{ClassShown, is_fed_by_port};
use chain::{Chain, device_name};
use class::{Said, Switch};
use matches::{Match, crossed};
use ports::PortTables;
use rule::{OF_CLASS, OF_LIST, Rule};
use runtime::Assembly;
use std::fmt::Write;
use table::acl::{FiveTuple, RuleList};
use worker::graph::Node;

/// The switch's port to the server has the number of the port to the network plus this, or plus a multiple of
/// it if there are more ports.
const SERVER: usize = 100;
/// The flow table that drops or forwards.
const DECIDES: usize = 3;
/// The rules for one port of the switch and the entry behind it.
struct Part {
    /// The switch's port to the network, from 1.
    port: usize,
    /// The entry, as text.
    enters: String,
    rules: Vec<Rule>,
    /// The packets that are left to the server, with the reason.
    left: Vec<String>,
}

/// The rules in the format of `ovs-ofctl -O OpenFlow13 add-flows`.
pub fn rules(name: &str, chain: &Chain, assembly: &Assembly, shown: &[RegionShown]) -> String {
    let nodes = &assembly.graphs[0];
    let mut numbers: Vec<String> = chain.ports.iter().map(|port| port.name.clone()).collect();
    let (mut parts, mut others) = (vec![], vec![]);
    for (region, shown) in assembly.regions[0].iter().zip(shown) {
        for (entry, end) in region.entries().enumerate() {
            let enters = format!("[{}]{}", end.1, nodes[end.0].name);
            if !is_fed_by_port(nodes, end) {
                others.push(format!("What enters at {enters} comes from other elements."));
                continue;
            }
            let classes: Vec<&ClassShown> =
                shown.classes.iter().filter(|class| class.entry == entry).collect();
            for source in sources(chain, nodes, end) {
                let at = numbers.iter().position(|known| *known == source).unwrap_or_else(|| {
                    numbers.push(source);
                    numbers.len() - 1
                });
                parts.push(part(at + 1, &enters, &classes, nodes, shown.not_covered.is_empty()));
            }
        }
    }
    text(name, &numbers, &parts, &others)
}

/// The names of the ports that feed a node's input.
fn sources(chain: &Chain, nodes: &[Node], entry: (usize, usize)) -> Vec<String> {
    let feeds = |node: &Node| node.outputs.iter().flatten().any(|end| (end.node, end.port) == entry);
    let elements = chain.graph.elements.iter().zip(nodes).filter(|(_, node)| feeds(node));
    elements
        .map(|(element, node)| {
            device_name(&element.config).map_or_else(|| node.name.clone(), |name| name.text)
        })
        .collect()
}

/// The rules for packets from a port of the switch.
fn part(port: usize, enters: &str, classes: &[&ClassShown], nodes: &[Node], is_whole: bool) -> Part {
    let mut part = Part { port, enters: enters.into(), rules: vec![], left: vec![] };
    if !is_whole {
        part.left.push("not all of its classes are known: raise --max-classes".into());
        return part;
    }
    let switch = Switch::of(classes);
    if let Some(why) = &switch.nothing {
        part.left.push(why.clone());
        return part;
    }
    let list = switch.list.as_ref().and_then(|name| {
        let node = nodes.iter().find(|node| node.name == *name)?;
        node.element.as_ref()?.first_match().map(|list| (name, list))
    });
    // The classes that the switch cannot match: for each reason, their numbers.
    let mut unseen: Vec<(String, Vec<usize>)> = vec![];
    // The switch may apply the list only if it can separate the packets that the chain does not look up in
    // it; else why it cannot.
    let mut not_list = None;
    for (class, said) in classes.iter().zip(&switch.said) {
        let why = match said {
            Said::Frames(Ok(frames)) => {
                part.rules.extend(frames.rules(class.number));
                continue;
            }
            Said::Packets(seen) => {
                let drop = class.ends == "drop";
                // Without a list, packets that match no rule go to the server anyway.
                if drop || list.is_some() {
                    let rule =
                        |what: &Match| Rule { priority: OF_CLASS, class: class.number, what: *what, drop };
                    part.rules.extend(seen.all.iter().map(rule));
                }
                let Some(but) = &seen.but else { continue };
                not_list.get_or_insert(format!("class {} does not ask it, and in it {but}", class.number));
                but
            }
            Said::AsksList | Said::Unseen => continue,
            Said::Frames(Err(why)) => why,
            Said::Not(why) => {
                not_list.get_or_insert(format!("class {} does not ask it, and of it {why}", class.number));
                why
            }
        };
        if class.ends != "drop" {
            continue;
        }
        match unseen.iter_mut().find(|known| known.0 == *why) {
            Some((_, of)) => of.push(class.number),
            None => unseen.push((why.clone(), vec![class.number])),
        }
    }
    part.left.extend(unseen.iter().map(|(why, of)| {
        let numbers = of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("class{} {numbers}: {why}", if of.len() == 1 { "" } else { "es" })
    }));
    match (list, not_list) {
        (None, _) => {}
        (Some((name, list)), None) => match listed(&list) {
            Ok(rules) => part.rules.extend(rules),
            Err(at) => part.left.push(format!(
                "the rules of {name}: from number {} of {} on there are no priorities left",
                at + 1,
                list.boxes.len()
            )),
        },
        (Some((name, _)), Some(why)) => part.left.push(format!("the rules of {name}: {why}")),
    }
    part
}

/// A list of boxes as rules, in order; the error is the index of the first box for which no priority is left.
fn listed(list: &RuleList) -> Result<Vec<Rule>, usize> {
    let (mut priority, mut last) = (OF_LIST.0, None);
    let mut rules = vec![];
    let mut left = [false; 256];
    for (at, (five, drop)) in list.boxes.iter().enumerate() {
        let whats = boxed(five).into_iter().map(|what| (what, *drop));
        for (what, drop) in whats.chain(unseen(five, &mut left)) {
            if last.is_some_and(|last| last != drop) {
                priority -= 1;
            }
            if priority <= OF_LIST.1 {
                return Err(at);
            }
            last = Some(drop);
            rules.push(Rule { priority, class: 0, what, drop });
        }
    }
    if list.others_dropped == Some(true) {
        rules.push(Rule {
            priority: OF_LIST.1,
            class: 0,
            what: Match { ip: true, ..Match::default() },
            drop: true,
        });
    }
    Ok(rules)
}

fn asks_ports(five: &FiveTuple) -> bool {
    five.sport.0 > 0 || five.sport.1 < 0x1_0000 || five.dport != (0, 0xffff)
}

fn has_ports(proto: u32) -> bool {
    ports::WITH_PORTS.iter().any(|(number, _)| u32::from(*number) == proto)
}

/// The matches of a box; empty if a switch cannot match its packets.
fn boxed(five: &FiveTuple) -> Vec<Match> {
    // A box of packets without ports: the list's keys represent these by a port above 0xffff.
    if five.sport.0 > 0xffff {
        return vec![];
    }
    let mut found = vec![Match { ip: true, ..Match::default() }];
    found = crossed(&found, &Match::of_addresses(five.src, true));
    found = crossed(&found, &Match::of_addresses(five.dst, false));
    if !asks_ports(five) {
        let proto = (u64::from(five.proto.0), u64::from(five.proto.1));
        return crossed(&found, &Match::of_protocols(&[proto]));
    }
    let protocols: Vec<(u64, u64)> = (five.proto.0..=five.proto.1)
        .filter(|proto| has_ports(*proto))
        .map(|proto| (u64::from(proto), u64::from(proto)))
        .collect();
    found = crossed(&found, &Match::of_protocols(&protocols));
    let port = |range: (u32, u32)| (range.0.min(0xffff) as u16, range.1.min(0xffff) as u16);
    for what in &mut found {
        (what.sport, what.dport) = (Some(port(five.sport)), Some(port(five.dport)));
    }
    found
}

/// Matches for the protocols of a box with port ranges whose ports a switch does not see. From this box on,
/// packets of these protocols are left to the server, whatever the list decides; `left` has the protocols so
/// far.
fn unseen(five: &FiveTuple, left: &mut [bool; 256]) -> Vec<(Match, bool)> {
    if !asks_ports(five) {
        return vec![];
    }
    let mut found = vec![];
    for proto in (five.proto.0..=five.proto.1).filter(|proto| !has_ports(*proto)) {
        if left.get(proto as usize) == Some(&false) {
            left[proto as usize] = true;
            found.push((Match { ip: true, proto: Some(proto as u8), ..Match::default() }, false));
        }
    }
    found
}

fn text(name: &str, numbers: &[String], parts: &[Part], others: &[String]) -> String {
    let whats = || parts.iter().flat_map(|part| part.rules.iter().map(|rule| &rule.what));
    let tables = PortTables::of(whats());
    let to_server = numbers.len().next_multiple_of(SERVER).max(SERVER);
    let mut out = format!(
        "# What {name} is sure to drop, for a switch in front of its server.\n\
         # ovs-ofctl -O OpenFlow13 add-flows BRIDGE FILE; ports are numbered:\n"
    );
    // Writing to a string cannot fail.
    for (at, port) in numbers.iter().enumerate() {
        let _ = writeln!(
            out,
            "#   {}: the network of `{port}`; {}: the server's `{port}`",
            at + 1,
            at + 1 + to_server
        );
    }
    out += "# Cookies are numbers of classes (`millrace synth --classes`), 0 is of lists and what is left.\n\
            # Masks of ports (tables 1, 2) are Open vSwitch's, and OpenFlow 1.5's. The switch has to end packets where\n\
            # their IP length does, as Open vSwitch's own datapath: not to read ports from the padding behind.\n";
    for line in others {
        let _ = writeln!(out, "# {line}");
    }
    for part in parts {
        let drops = part.rules.iter().filter(|rule| rule.drop).count();
        let _ = writeln!(
            out,
            "# In front of {}: {} rules, {drops} of them drop; left to the server:{}",
            part.enters,
            part.rules.len(),
            if part.left.is_empty() { " what they let through" } else { " what they let through, and" },
        );
        part.left.iter().for_each(|left| out += &format!("#   {left}\n"));
    }
    out += "\n# What the server sends, and what a switch sees otherwise than the chain does.\n";
    for at in 1..=numbers.len() {
        let server = at + to_server;
        let _ = writeln!(out, "table=0,priority=400,in_port={server},actions=output:{at}");
        for what in ["vlan_tci=0x1000/0x1000", "ip,nw_frag=yes"] {
            let _ = writeln!(out, "table=0,priority=300,in_port={at},{what},actions=output:{server}");
        }
        for (_, protocol) in ports::WITH_PORTS {
            let _ = writeln!(
                out,
                "table=0,priority=200,in_port={at},{protocol},{protocol}_src=0,actions=output:{server}"
            );
        }
    }
    out += "table=0,priority=100,actions=goto_table:1\n";
    out += "\n# Ranges of ports, as numbers.\n";
    out += &tables.text();
    out += "\n# What is dropped.\n";
    for part in parts {
        for rule in &part.rules {
            let action = if rule.drop { "drop".into() } else { format!("output:{}", part.port + to_server) };
            for what in tables.text_of(&rule.what) {
                let _ = writeln!(
                    out,
                    "table={DECIDES},priority={},cookie={},in_port={}{what},actions={action}",
                    rule.priority, rule.class, part.port
                );
            }
        }
    }
    for at in 1..=numbers.len() {
        let _ = writeln!(out, "table={DECIDES},priority=1,in_port={at},actions=output:{}", at + to_server);
    }
    out
}
