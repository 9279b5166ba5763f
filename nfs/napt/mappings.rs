//! Mappings: an inside address and port, and the outside port that represents them.
//!
//! A mapping does not depend on the outside peer (RFC 4787, REQ-1), and accepts packets of every outside host
//! that knows it: a firewall in front can filter them.

use millrace_nfs::{Flows, SECOND_NS};
use packet::FlowKey;
use packet::view::{protocol, tcp};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use table::portpool::{PortOrder, PortPool, Preserve};

/// The lifetime of mappings without packets: for UDP as RFC 4787 REQ-5 recommends, for TCP the minimum of RFC
/// 5382 REQ-5, for ICMP as in RFC 5508 REQ-2.
const UDP_NS: u64 = 300 * SECOND_NS;
const TCP_OPEN_NS: u64 = 7_440 * SECOND_NS;
const TCP_BRIEF_NS: u64 = 240 * SECOND_NS;
const ICMP_NS: u64 = 60 * SECOND_NS;

/// The lifetime of a mapping after a packet.
pub fn stays_ns(number: u8, flags: u8) -> u64 {
    match number {
        protocol::TCP if flags & (tcp::SYN | tcp::FIN | tcp::RST) != 0 => TCP_BRIEF_NS,
        protocol::TCP => TCP_OPEN_NS,
        protocol::UDP => UDP_NS,
        _ => ICMP_NS,
    }
}

/// The resource that is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    Ports,
    Table,
}

struct Mapping {
    protocol: u8,
    inside: (Ipv4Addr, u16),
    outside: u16,
}

/// All mappings.
pub struct Mappings {
    external: Ipv4Addr,
    flows: Flows<Mapping>,
    /// The ports of TCP, of UDP, and the identifiers of ICMP.
    pools: [PortPool; 3],
}

fn pool(number: u8) -> usize {
    match number {
        protocol::TCP => 0,
        protocol::UDP => 1,
        _ => 2,
    }
}

/// The key of one end.
fn key(number: u8, (address, port): (Ipv4Addr, u16)) -> FlowKey {
    let dst = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    FlowKey { src: address.into(), dst, protocol: number, src_port: port, dst_port: 0 }
}

impl Mappings {
    /// No mappings, for an outside address and its ports.
    pub fn new(external: Ipv4Addr, (low, high): (u16, u16), most: u32) -> Result<Mappings, String> {
        // Ports in an order that outside hosts cannot guess (RFC 6056).
        let pool = || {
            let seed = RandomState::new().build_hasher().finish();
            PortPool::new(low, high, PortOrder::Random { seed }).map_err(|error| error.to_string())
        };
        Ok(Mappings { external, flows: Flows::new(most)?, pools: [pool()?, pool()?, pool()?] })
    }

    pub fn external(&self) -> Ipv4Addr {
        self.external
    }

    /// All mappings, a line each: protocol, inside and outside.
    pub fn list(&self) -> String {
        let name = |number| match number {
            protocol::TCP => "tcp",
            protocol::UDP => "udp",
            _ => "icmp",
        };
        let line = |mapping: &Mapping| {
            let (name, (address, port), external) = (name(mapping.protocol), mapping.inside, self.external);
            format!("{name} {address}:{port} {external}:{}\n", mapping.outside)
        };
        let mut lines: Vec<String> = self.flows.iter().map(line).collect();
        lines.sort_unstable();
        lines.concat()
    }

    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// The outside port of an inside end, and whether it is new.
    pub fn outward(&mut self, number: u8, inside: (Ipv4Addr, u16), due_ns: u64) -> Result<(u16, bool), Full> {
        let own = key(number, inside);
        if let Some(flow) = self.flows.find(&own) {
            self.flows.keep_until(flow, due_ns);
            return self.flows.get(flow).map(|mapping| (mapping.outside, false)).ok_or(Full::Table);
        }
        // RFC 4787 REQ-4: an even port maps to an even one.
        let pool = &mut self.pools[pool(number)];
        let outside = pool.allocate(inside.1, Preserve::Parity).map_err(|_| Full::Ports)?;
        let mapping = Mapping { protocol: number, inside, outside };
        let flow = self.flows.insert(&own, mapping, due_ns);
        let aliased = flow.is_some_and(|flow| self.flows.alias(flow, &key(number, (self.external, outside))));
        if !aliased {
            flow.map(|flow| self.flows.remove(flow));
            pool.free(outside);
            return Err(Full::Table);
        }
        Ok((outside, true))
    }

    /// The inside end of an outside port; with a time, the mapping's expiry is set to it.
    pub fn inward(&mut self, number: u8, outside: u16, due_ns: Option<u64>) -> Option<(Ipv4Addr, u16)> {
        let flow = self.flows.find(&key(number, (self.external, outside)))?;
        if let Some(due_ns) = due_ns {
            self.flows.keep_until(flow, due_ns);
        }
        self.flows.get(flow).map(|mapping| mapping.inside)
    }

    /// The outside port of an inside end, if it has a mapping.
    pub fn known(&mut self, number: u8, inside: (Ipv4Addr, u16)) -> Option<u16> {
        let flow = self.flows.find(&key(number, inside))?;
        self.flows.get(flow).map(|mapping| mapping.outside)
    }

    /// Removes expired mappings and frees their ports; returns how many.
    pub fn expire(&mut self, now_ns: u64) -> u64 {
        let (pools, mut expired) = (&mut self.pools, 0);
        self.flows.expire(now_ns, 64, |mapping| {
            pools[pool(mapping.protocol)].free(mapping.outside);
            expired += 1;
        });
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_out_once_and_come_back() {
        let (external, inside) = (Ipv4Addr::new(198, 51, 100, 7), Ipv4Addr::new(10, 0, 0, 1));
        let mut mappings = Mappings::new(external, (1000, 1003), 16).expect("memory");
        let mut given: Vec<u16> = (0..4)
            .map(|port| mappings.outward(protocol::UDP, (inside, port), 10).expect("a port").0)
            .collect();
        assert_eq!(mappings.outward(protocol::UDP, (inside, 9), 10), Err(Full::Ports));
        assert_eq!(mappings.outward(protocol::UDP, (inside, 0), 20), Ok((given[0], false)));
        assert!(mappings.outward(protocol::TCP, (inside, 0), 20).is_ok_and(|(_, made)| made));
        assert_eq!(mappings.inward(protocol::UDP, given[2], None), Some((inside, 2)));
        assert_eq!(mappings.known(protocol::UDP, (inside, 3)), Some(given[3]));
        given.sort_unstable();
        assert_eq!(given, [1000, 1001, 1002, 1003]);
        assert_eq!((mappings.expire(10), mappings.len()), (3, 2));
        assert!(mappings.outward(protocol::UDP, (inside, 9), 10).is_ok());
    }

    #[test]
    fn a_full_table_gives_its_port_back() {
        let mut mappings = Mappings::new(Ipv4Addr::LOCALHOST, (1, 9), 1).expect("memory");
        let inside = |port| (Ipv4Addr::new(10, 0, 0, 1), port);
        assert!(mappings.outward(protocol::TCP, inside(1), 10).is_ok());
        for _ in 0..20 {
            assert_eq!(mappings.outward(protocol::TCP, inside(2), 10), Err(Full::Table));
        }
    }
}
