//! Flows that hit the rules of a rule set.
//!
//! From a trace, the headers are used unchanged. From rules alone, flow `i` is a random header of rule `i mod
//! n` that no earlier rule matches, so that every rule that can decide a packet does. A rule that earlier
//! ones cover gets a header all the same: its traffic would look like this.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::TrafficError;
use crate::classbench::{self, HeaderBox};
use crate::flow::FlowSpace;
use crate::frame::FiveTuple;
use crate::protocol::ProtocolMix;
use crate::random::Random;

/// The source of headers that match rules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AclTraffic {
    /// A ClassBench rule file, plain or gzipped.
    pub rules: Option<PathBuf>,
    /// A ClassBench trace file, plain or gzipped. Its headers are used in their order, and the
    /// number of flows is the number of its lines.
    pub trace: Option<PathBuf>,
    /// The percentage of flows that are made from the address and port ranges instead, to miss the rules.
    pub miss_percent: u8,
}

/// The number of attempts to draw a header that no earlier rule matches. For a rule that is half covered, all
/// attempts fail once in 4 billion flows.
const DRAWS: u32 = 32;

impl AclTraffic {
    /// Whether rules or a trace are used.
    pub fn is_used(&self) -> bool {
        self.rules.is_some() || self.trace.is_some()
    }

    /// Loads the flows. `flows` is the number to make from rules.
    pub(crate) fn load(
        &self,
        flows: u64,
        protocols: ProtocolMix,
        space: &FlowSpace,
        random: &mut Random,
    ) -> Result<Vec<FiveTuple>, TrafficError> {
        let mut list = match (&self.rules, &self.trace) {
            (_, Some(trace)) => classbench::read_trace(trace)?,
            (Some(rules), None) => {
                let rules = classbench::read_rules(rules)?;
                headers_for(&rules, flows, protocols, random)
            }
            (None, None) => Vec::new(),
        };
        if list.is_empty() {
            let path = self.trace.as_ref().or(self.rules.as_ref());
            return Err(TrafficError::Contradiction(format!(
                "{} holds no line; give a file with rules or headers",
                path.map(|path| path.display().to_string()).unwrap_or_default(),
            )));
        }
        let misses = u64::from(self.miss_percent);
        for (index, flow) in (0u64..).zip(&mut list) {
            // Evenly distributed: of any hundred consecutive flows, `misses` are replaced.
            if (index + 1) * misses / 100 > index * misses / 100 {
                *flow = space.tuple(index);
            }
        }
        Ok(list)
    }
}

fn headers_for(
    rules: &[HeaderBox],
    flows: u64,
    protocols: ProtocolMix,
    random: &mut Random,
) -> Vec<FiveTuple> {
    let mut earlier: Vec<Option<Vec<u32>>> = vec![None; rules.len()];
    let mut list = Vec::new();
    let flows = usize::try_from(flows).unwrap_or(usize::MAX);
    for (place, rule) in rules.iter().enumerate().cycle().take(flows) {
        let Some(covering) = earlier.get_mut(place) else { break };
        // Computed once for each rule: only earlier rules that overlap it can match its headers.
        let covering = covering.get_or_insert_with(|| overlapping(rules, place));
        let mut header = draw(rule, protocols, random);
        for _ in 1..DRAWS {
            let taken = |other: &u32| rules.get(*other as usize).is_some_and(|r| r.holds(header));
            if !covering.iter().any(taken) {
                break;
            }
            header = draw(rule, protocols, random);
        }
        list.push(classbench::five_tuple(header));
    }
    list
}

fn overlapping(rules: &[HeaderBox], place: usize) -> Vec<u32> {
    let Some(rule) = rules.get(place) else { return Vec::new() };
    let meets = |other: &HeaderBox| rule.0.iter().zip(&other.0).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
    let earlier = (0u32..).zip(rules).take(place);
    earlier.filter(|(_, other)| meets(other)).map(|(index, _)| index).collect()
}

fn draw(rule: &HeaderBox, protocols: ProtocolMix, random: &mut Random) -> [u32; 5] {
    let HeaderBox([src, dst, src_port, dst_port, protocol]) = rule;
    let mut inside = |(low, high): &(u32, u32)| random.between((*low).into(), (*high).into()) as u32;
    let [src, dst, src_port, dst_port] = [src, dst, src_port, dst_port].map(&mut inside);
    let protocol = match protocol {
        // A rule for every protocol gets the protocols of the mix, and not number 143.
        (0, 255) => protocols.at(random.next_u64() as u32).into(),
        (only, _) => *only,
    };
    [src, dst, src_port, dst_port, protocol]
}

impl HeaderBox {
    fn holds(&self, header: [u32; 5]) -> bool {
        self.0.iter().zip(header).all(|((low, high), value)| (*low..=*high).contains(&value))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::protocol::{TCP, UDP};
    use crate::random::Purpose;
    use proptest::prelude::*;

    const ANY: (u32, u32) = (0, u32::MAX);
    const PORTS: (u32, u32) = (0, 65_535);

    fn first_match(rules: &[HeaderBox], flow: &FiveTuple) -> Option<usize> {
        let bits = |address| match address {
            IpAddr::V4(address) => Ipv4Addr::to_bits(address),
            IpAddr::V6(_) => unreachable!("rules are IPv4"),
        };
        let header = [
            bits(flow.src),
            bits(flow.dst),
            flow.src_port.into(),
            flow.dst_port.into(),
            flow.protocol.into(),
        ];
        rules.iter().position(|rule| rule.holds(header))
    }

    #[test]
    fn every_rule_decides_something() {
        // The second rule matches all of TCP, the first a part of it; the third matches the rest.
        let rules = [
            HeaderBox([ANY, ANY, PORTS, (80, 80), (6, 6)]),
            HeaderBox([ANY, ANY, PORTS, (0, 160), (6, 6)]),
            HeaderBox([ANY, ANY, PORTS, PORTS, (0, 255)]),
        ];
        let mix = ProtocolMix { tcp: 1, udp: 1, icmp: 0 };
        let mut random = Random::new(1, Purpose::Rules);
        let list = headers_for(&rules, 300, mix, &mut random);
        for (index, flow) in list.iter().enumerate() {
            assert_eq!(first_match(&rules, flow), Some(index % 3), "flow {index}");
            assert!(flow.protocol == TCP || flow.protocol == UDP);
        }
    }

    proptest! {
        #[test]
        fn headers_lie_in_their_rules(
            bounds in proptest::collection::vec(
                (any::<(u32, u32)>(), any::<(u16, u16)>(), any::<u8>()), 1..20),
            seed: u64,
        ) {
            let rules: Vec<_> = bounds
                .iter()
                .map(|(a, p, protocol)| HeaderBox([
                    (a.0.min(a.1), a.0.max(a.1)),
                    ANY,
                    (u32::from(p.0.min(p.1)), u32::from(p.0.max(p.1))),
                    PORTS,
                    (u32::from(*protocol), u32::from(*protocol)),
                ]))
                .collect();
            let mut random = Random::new(seed, Purpose::Rules);
            let list = headers_for(&rules, 50, ProtocolMix::UDP_ONLY, &mut random);
            prop_assert_eq!(list.len(), 50);
            for (index, flow) in list.iter().enumerate() {
                let found = first_match(&rules, flow).expect("some rule matches");
                prop_assert!(found <= index % rules.len());
            }
        }
    }
}
