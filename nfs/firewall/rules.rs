//! The rules: read from the configuration, and applied in their order.
//!
//! For IPv4 the classifier of the crate `table` finds the rule, and thousands of rules hardly slow it down.
//! Its keys have no room for IPv6 addresses; for IPv6, the rules are checked one by one.

use millrace_nfs::configuration::{Keys, as_a, choose, interface, ports, read};
use millrace_nfs::{Prefix, check_across};
use packet::FlowKey;
use packet::view::{ethernet, protocol};
use std::net::IpAddr;
use table::acl::{Classifier, Interval, Limits, MAX_DIMS, MISS, Rule, Schema};

/// The decision about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Action {
    Allow,
    #[default]
    Deny,
}

const ACTIONS: [(&str, Action); 2] = [("allow", Action::Allow), ("deny", Action::Deny)];

/// The values of the configuration.
#[derive(Default)]
pub struct Rules {
    default: Action,
    rules: Vec<Line>,
    classifier: Option<Classifier>,
    /// Packets that each rule decided.
    hits: Vec<u64>,
    reports: bool,
    pub stateful: bool,
    pub most_flows: u32,
    pub passes_fragments: bool,
    /// The EtherTypes other than IP that are allowed.
    pub passes_ethertypes: Vec<u16>,
}

/// A rule of the configuration. A field that it does not name matches everything.
#[derive(Clone, Default)]
struct Line {
    name: String,
    action: Action,
    from: Option<Prefix>,
    to: Option<Prefix>,
    protocol: Option<u8>,
    from_port: Option<(u16, u16)>,
    to_port: Option<(u16, u16)>,
    interface: Option<usize>,
}

impl Rules {
    /// Reads the configuration of an NF with these interfaces.
    pub fn read(config: &[u8], interfaces: &[String]) -> Result<Rules, String> {
        let mut rules = read(config, |keys| {
            check_across(keys, interfaces);
            Rules {
                default: keys.choice("default", &ACTIONS, Action::Deny),
                stateful: keys.truth("stateful", true),
                most_flows: keys.integer("flows", 1..=1 << 24, 65_536) as u32,
                passes_fragments: keys.truth("pass-fragments", false),
                passes_ethertypes: if keys.has("pass-ethertypes") {
                    keys.list("pass-ethertypes", ethertype)
                } else {
                    vec![ethernet::ARP]
                },
                reports: keys.truth("report", false),
                rules: keys.tables("rule", |keys| Line::read(keys, interfaces)),
                ..Rules::default()
            }
        })?;
        rules.hits = vec![0; rules.rules.len()];
        let schema = schema().map_err(|error| error.to_string())?;
        let lines: Vec<Rule> = rules.rules.iter().map(|line| line.rule(&schema)).collect();
        let built = Classifier::build(&schema, &lines, Limits::default());
        rules.classifier = Some(built.map_err(|error| format!("these rules cannot be used: {error}"))?);
        Ok(rules)
    }

    /// The decision about a packet, and whether a rule made it.
    pub fn decide(&mut self, key: &FlowKey, interface: usize) -> (Action, bool) {
        let found = match (key.src, key.dst, &self.classifier) {
            (IpAddr::V4(src), IpAddr::V4(dst), Some(classifier)) => {
                let (sport, dport) = (u32::from(key.src_port), u32::from(key.dst_port));
                let interface = interface.min(255) as u32;
                let key = [src.to_bits(), dst.to_bits(), sport, dport, u32::from(key.protocol), interface];
                let rule = classifier.classify(&key);
                (rule != MISS).then_some(rule as usize)
            }
            _ => self.rules.iter().position(|rule| rule.matches(key, interface)),
        };
        match found.and_then(|rule| Some((self.rules.get(rule)?, self.hits.get_mut(rule)?))) {
            Some((rule, hits)) => {
                *hits += 1;
                (rule.action, true)
            }
            None => (self.default, false),
        }
    }

    /// Packets that each rule decided, a line each: the rule's number, its name, the count.
    pub fn hits(&self) -> String {
        let hits = self.rules.iter().zip(&self.hits).enumerate();
        hits.map(|(at, (rule, hits))| format!("{} {} {hits}\n", at + 1, rule.name)).collect()
    }

    /// Prints the packets that each rule decided, if configured.
    pub fn report(&self, nf: &str) {
        if self.reports {
            for (rule, hits) in self.rules.iter().zip(&self.hits) {
                println!("{nf}: rule `{}` decided {hits} packets", rule.name);
            }
        }
    }
}

/// Source, destination, their ports, protocol, interface.
fn schema() -> Result<Schema, table::acl::AclError> {
    Schema::new(&[32, 32, 16, 16, 8, 8])
}

impl Line {
    fn read(keys: &mut Keys<'_>, interfaces: &[String]) -> Option<Line> {
        let line = Line {
            action: keys.required("action", choose(&ACTIONS))?,
            name: keys.value("name", |text| Ok::<_, String>(text.to_string())).unwrap_or_default(),
            from: keys.value("from", str::parse),
            to: keys.value("to", str::parse),
            protocol: keys.value("protocol", protocol_number),
            from_port: keys.value("from-port", ports),
            to_port: keys.value("to-port", ports),
            interface: keys.value("interface", interface(interfaces)),
        };
        let families = [line.from, line.to].map(|prefix| prefix.map(|prefix| prefix.address().is_ipv4()));
        if let [Some(from), Some(to)] = families
            && from != to
        {
            keys.mistake("`from` and `to` are of different families: no packet has both");
        }
        if (line.from_port.is_some() || line.to_port.is_some())
            && !line.protocol.is_some_and(protocol::has_ports)
        {
            keys.mistake("a rule with ports says which: add `protocol = \"tcp\"` or `\"udp\"`");
        }
        Some(line)
    }

    /// The rule in the classifier's form. Rules about IPv6 match nothing there.
    fn rule(&self, schema: &Schema) -> Rule {
        let never = Interval { lo: u32::MAX, hi: u32::MAX };
        let mut rule = Rule::any(schema);
        let mut set = |dim: usize, lo: u32, hi: u32| {
            if dim < MAX_DIMS {
                rule.ranges[dim] = Interval { lo, hi };
            }
        };
        for (dim, prefix) in [self.from, self.to].into_iter().enumerate() {
            let Some(prefix) = prefix else { continue };
            match prefix.address() {
                IpAddr::V4(first) => {
                    let free = u32::MAX.checked_shr(prefix.len().into()).unwrap_or(0);
                    set(dim, first.to_bits(), first.to_bits() | free);
                }
                // 255.255.255.255 never sends to itself.
                IpAddr::V6(_) => {
                    set(0, never.lo, never.hi);
                    set(1, never.lo, never.hi);
                }
            }
        }
        for (dim, range) in [(2, self.from_port), (3, self.to_port)] {
            if let Some((low, high)) = range {
                set(dim, low.into(), high.into());
            }
        }
        if let Some(number) = self.protocol {
            set(4, number.into(), number.into());
        }
        if let Some(interface) = self.interface {
            set(5, interface as u32, interface as u32);
        }
        rule
    }

    /// Whether it matches a packet.
    fn matches(&self, key: &FlowKey, interface: usize) -> bool {
        let within =
            |range: Option<(u16, u16)>, port| range.is_none_or(|(low, high)| (low..=high).contains(&port));
        self.from.is_none_or(|prefix| prefix.contains(key.src))
            && self.to.is_none_or(|prefix| prefix.contains(key.dst))
            && self.protocol.is_none_or(|number| number == key.protocol)
            && within(self.from_port, key.src_port)
            && within(self.to_port, key.dst_port)
            && self.interface.is_none_or(|number| number == interface)
    }
}

fn protocol_number(text: &str) -> Result<u8, String> {
    match text {
        "tcp" => Ok(protocol::TCP),
        "udp" => Ok(protocol::UDP),
        "icmp" => Ok(protocol::ICMP),
        "icmp6" => Ok(protocol::ICMP6),
        "sctp" => Ok(protocol::SCTP),
        _ => as_a("tcp, udp, icmp, icmp6, sctp or a number up to 255")(text),
    }
}

fn ethertype(text: &str) -> Result<u16, String> {
    let hex = text.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
    hex.or_else(|| text.parse().ok()).ok_or_else(|| format!("`{text}` is no EtherType: write `0x0806`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(src: &str, dst: &str, protocol: u8, src_port: u16, dst_port: u16) -> FlowKey {
        let ip = |text: &str| text.parse().expect("an address");
        FlowKey { src: ip(src), dst: ip(dst), protocol, src_port, dst_port }
    }

    #[test]
    fn the_classifier_and_the_list_say_the_same() {
        let text = "
            [[rule]]
            action = \"deny\"
            from = \"fd00::/8\"
            [[rule]]
            action = \"allow\"
            to = \"10.1.0.0/16\"
            protocol = \"tcp\"
            to-port = \"80-89\"
            [[rule]]
            action = \"allow\"
            protocol = \"udp\"
            from-port = 53
            interface = \"wan\"
            [[rule]]
            action = \"allow\"
            from = \"0.0.0.0/0\"
            protocol = 47";
        let mut rules = Rules::read(text.as_bytes(), &["lan".into(), "wan".into()]).expect("rules");
        let mut expected = 0;
        for (src, dst) in
            [("10.1.2.3", "10.1.9.9"), ("10.2.0.1", "192.0.2.1"), ("255.255.255.255", "255.255.255.255")]
        {
            for protocol in [6, 17, 47] {
                for (src_port, dst_port) in [(53, 80), (53, 90), (1, 89), (1, 1)] {
                    for interface in [0, 1] {
                        let key = key(src, dst, protocol, src_port, dst_port);
                        let by_list = rules.rules.iter().find(|rule| rule.matches(&key, interface));
                        let by_list = by_list.map(|rule| rule.action);
                        let (action, by_rule) = rules.decide(&key, interface);
                        // A rule about IPv6 becomes the one pair of addresses that no packet has.
                        if src != dst {
                            assert_eq!(by_rule.then_some(action), by_list, "{key:?} {interface}");
                            expected += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(expected, 48);
        assert_eq!(rules.decide(&key("fd00::1", "::1", 6, 1, 1), 0), (Action::Deny, true));
    }
}
