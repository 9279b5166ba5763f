//! Firewalls with rule sets, against a reader of the rules that looks at them one by one.

use crate::captures::frames;
use crate::packets::Ipv4;
use crate::program::Folder;
use std::net::Ipv4Addr;
use std::path::Path;

/// A rule in ClassBench's format, without flags.
struct Rule {
    source: (u32, u32),
    destination: (u32, u32),
    source_ports: (u16, u16),
    destination_ports: (u16, u16),
    protocol: Option<u8>,
}

fn prefix(text: &str) -> (u32, u32) {
    let (address, len) = text.split_once('/').expect("a prefix");
    let len: u32 = len.parse().expect("a length");
    let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
    (u32::from(address.parse::<Ipv4Addr>().expect("an address")) & mask, mask)
}

fn range(text: &str) -> (u16, u16) {
    let (low, high) = text.split_once(':').expect("a range");
    (low.trim().parse().expect("a port"), high.trim().parse().expect("a port"))
}

fn read(path: &Path) -> Vec<Rule> {
    let text = std::fs::read_to_string(path).expect("rules");
    let rule = |line: &str| {
        let mut fields = line.trim_start_matches('@').split('\t').map(str::trim);
        let mut next = || fields.next().expect("a field");
        let (source, destination) = (prefix(next()), prefix(next()));
        let (source_ports, destination_ports) = (range(next()), range(next()));
        let (protocol, mask) = next().split_once('/').expect("a mask");
        let byte = |text: &str| u8::from_str_radix(&text[2..], 16).expect("a byte");
        let protocol = (byte(mask) == 0xff).then(|| byte(protocol));
        Rule { source, destination, source_ports, destination_ports, protocol }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(rule).collect()
}

/// A set of ClassBench's rules, each as an `allow` of an IPFilter.
pub fn allowing(name: &str) -> String {
    let folder = Folder::new();
    folder.write("acl.rules", &testkit::data::text(&format!("acl/{name}.rules")));
    read(&folder.path("acl.rules")).iter().map(|rule| format!("allow {},\n", rule.text())).collect()
}

impl Rule {
    fn matches(&self, packet: &Ipv4) -> bool {
        let within = |address: Ipv4Addr, (net, mask): (u32, u32)| u32::from(address) & mask == net;
        let between = |port: u16, (low, high): (u16, u16)| (low..=high).contains(&port);
        let any = |ports: (u16, u16)| ports == (0, u16::MAX);
        let ports = match packet.ports {
            Some((source, destination)) => {
                between(source, self.source_ports) && between(destination, self.destination_ports)
            }
            None => any(self.source_ports) && any(self.destination_ports),
        };
        within(packet.source, self.source)
            && within(packet.destination, self.destination)
            && self.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && ports
    }

    /// As an IPFilter says it.
    fn text(&self) -> String {
        let mut parts = vec![];
        for (side, (net, mask)) in [("src", self.source), ("dst", self.destination)] {
            parts.push(format!("{side} net {}/{}", Ipv4Addr::from(net), mask.count_ones()));
        }
        parts.extend(self.protocol.map(|protocol| format!("ip proto {protocol}")));
        for (side, ports) in [("src", self.source_ports), ("dst", self.destination_ports)] {
            if ports != (0, u16::MAX) {
                parts.push(format!("{side} port {}-{}", ports.0, ports.1));
            }
        }
        parts.join(" && ")
    }
}

/// Packets that pass, with the first rule that matches; `allowed` says which rules let pass.
fn passing(packets: &[Vec<u8>], rules: &[Rule], allowed: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let passes = |frame: &&Vec<u8>| {
        let packet = Ipv4::read(frame).expect("IPv4");
        rules.iter().position(|rule| rule.matches(&packet)).is_some_and(&allowed)
    };
    packets.iter().filter(passes).cloned().collect()
}

#[test]
fn the_firewall_of_the_examples_does_what_its_rules_say() {
    let folder = Folder::with_examples(&["firewall-acl"]);
    let rules = "firewall-acl/acl.rules";
    let options = ["--acl-miss", "20", "--flows", "1000", "-n", "5000", "--quiet"];
    folder.millrace(&[&["gen", "firewall-acl/hits.pcap", "--acl", rules], &options[..]].concat()).sound();
    let accounts = folder.millrace(&["run", "firewall-acl/chain.toml", "--json"]).sound().accounts();
    accounts.assert_balanced();
    let sent = frames(&folder.path("firewall-acl/hits.pcap"));
    let expected = passing(&sent, &read(&folder.path(rules)), |rule| ![5, 6, 9].contains(&rule));
    assert!(expected.len() > 1_000 && expected.len() < 4_000, "{}", expected.len());
    assert!(frames(&folder.path("firewall-acl/passed.pcap")) == expected, "other packets pass");
}

/// Every second rule of a large set allows; traffic hits all of them.
fn large_set(name: &str, engine: &str) {
    let folder = Folder::new();
    folder.write("acl.rules", &testkit::data::text(&format!("acl/{name}.rules")));
    folder
        .millrace(&[
            "gen",
            "in.pcap",
            "--acl",
            "acl.rules",
            "--acl-miss",
            "10",
            "-n",
            "20000",
            "--flows",
            "20000",
            "-q",
        ])
        .sound();
    let set = read(&folder.path("acl.rules"));
    let verdict = |at: usize| if at.is_multiple_of(2) { "allow" } else { "deny" };
    let list: Vec<String> =
        set.iter().enumerate().map(|(at, rule)| format!("{} {}", verdict(at), rule.text())).collect();
    folder.write(
        "large.click",
        &format!(
            "FromDevice(in.pcap) -> CheckIPHeader(14) -> IPFilter({}, deny all) -> ToDevice(out.pcap);",
            list.join(",\n")
        ),
    );
    let run = folder.millrace(&["run", "large.click", "--json", "--engine", engine]).sound();
    run.accounts().assert_balanced();
    let expected = passing(&frames(&folder.path("in.pcap")), &set, |rule| rule.is_multiple_of(2));
    assert!(expected.len() > 5_000, "{}", expected.len());
    assert!(frames(&folder.path("out.pcap")) == expected, "other packets pass");
}

#[test]
fn large_rule_sets_do_what_they_say() {
    for name in ["acl1_251", "acl1_713"] {
        large_set(name, "native");
    }
    large_set("acl1_251", "evaluator");
}

/// More rules than fit are refused before any is read, with how many there are and the first that does not fit.
#[test]
fn more_rules_than_fit_are_refused_early() {
    const MOST: usize = 1_000_000;
    let folder = Folder::new();
    let rules = |count: usize| format!("# a list\n\n{}", "allow tcp\n".repeat(count));
    folder.write("long.rules", &rules(MOST + 7));
    let chain = |before: &str| {
        format!(
            "FromDevice(in.pcap) -> CheckIPHeader(14) -> f :: IPFilter({before}\n  file long.rules) -> Discard;"
        )
    };
    for (before, line, behind) in
        [("", MOST + 3, ""), ("deny udp, allow icmp,", MOST + 1, " behind 2 others")]
    {
        folder.write("long.click", &chain(before));
        let run = folder.millrace(&["check", "--short", "long.click"]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let told = format!(
            "long.rules has 1000007 rules{behind}, and 1000000 fit into an IPFilter: line {line} is the"
        );
        assert!(run.stderr.contains(&told) && run.stderr.contains("long.click:2:8"), "{}", run.stderr);
        // The only other error: that there is no capture.
        assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    }
}
