//! Ranges of ports as numbers in the metadata: OpenFlow 1.3 matches single ports only.
//!
//! The ports are divided where a range begins or ends, and the pieces are numbered in order. A range is an
//! interval of these numbers, which is a few prefixes. The ranges of one rule do not multiply the matches of
//! another.

use super::super::conditions::prefixes;
use super::matches::Match;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Protocols whose ports a switch sees.
pub const WITH_PORTS: [(u8, &str); 3] = [(6, "tcp"), (17, "udp"), (132, "sctp")];

/// The pieces into which the ports are divided.
pub struct PortTables {
    sides: [Side; 2],
}

/// The pieces of source or destination ports.
#[derive(Default)]
struct Side {
    /// The first port of each piece, in order.
    pieces: Vec<u32>,
    /// The protocols of rules with ranges.
    protocols: BTreeSet<u8>,
}

impl Side {
    /// The number of the piece that a port is in.
    fn number(&self, port: u16) -> u64 {
        self.pieces.partition_point(|first| *first <= u32::from(port)) as u64 - 1
    }
}

fn is_whole(range: (u16, u16)) -> bool {
    range == (0, u16::MAX)
}

impl PortTables {
    /// The pieces for the ranges of these matches.
    pub fn of<'a>(whats: impl Iterator<Item = &'a Match>) -> PortTables {
        let mut sides: [Side; 2] = Default::default();
        for what in whats {
            for (side, range) in sides.iter_mut().zip([what.sport, what.dport]) {
                // A single port is matched directly.
                if let Some(range) = range.filter(|range| !is_whole(*range) && range.0 < range.1) {
                    side.pieces.extend([u32::from(range.0), u32::from(range.1) + 1]);
                    side.protocols.extend(what.proto);
                }
            }
        }
        for side in &mut sides {
            side.pieces.push(0);
            side.pieces.retain(|first| *first <= u32::from(u16::MAX));
            side.pieces.sort_unstable();
            side.pieces.dedup();
        }
        PortTables { sides }
    }

    /// The rules of the two tables that write the numbers into the metadata.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (at, (side, name)) in self.sides.iter().zip(["src", "dst"]).enumerate() {
            let (table, shift) = (at + 1, at * 16);
            // The metadata is 0 at first, which is the number of piece 0.
            for (number, first) in side.pieces.iter().enumerate().skip(1) {
                let last = side.pieces.get(number + 1).map_or(u32::from(u16::MAX), |next| next - 1);
                for (value, len) in prefixes((*first).into(), last.into(), 16) {
                    let mask = (u16::MAX as u32) << (16 - u32::from(len)) & 0xffff;
                    for (_, protocol) in WITH_PORTS.iter().filter(|known| side.protocols.contains(&known.0)) {
                        // Writing to a string cannot fail.
                        let _ = writeln!(
                            out,
                            "table={table},priority=100,{protocol},{protocol}_{name}={value:#x}/{mask:#x},\
                             actions=write_metadata:{:#x}/{:#x},goto_table:{}",
                            number << shift,
                            0xffffu64 << shift,
                            table + 1
                        );
                    }
                }
            }
            let _ = writeln!(out, "table={table},priority=1,actions=goto_table:{}", table + 1);
        }
        out
    }

    /// A match in Open vSwitch's format, with a leading comma. There are several if a range of ports needs
    /// several prefixes.
    pub fn text_of(&self, what: &Match) -> Vec<String> {
        let mut text = String::new();
        if let Some(ethertype) = what.ethertype {
            text += &format!(",dl_type={ethertype:#06x}");
        }
        match what.proto {
            Some(proto) => text += &format!(",ip,nw_proto={proto}"),
            None if what.ip => text += ",ip",
            None => {}
        }
        for (name, (address, len)) in [("nw_src", what.src), ("nw_dst", what.dst)] {
            if len > 0 {
                text += &format!(",{name}={}/{len}", Ipv4Addr::from(address));
            }
        }
        if let Some(dscp) = what.dscp {
            text += &format!(",ip_dscp={dscp}");
        }
        self.matches(what).into_iter().map(|ports| format!("{text}{ports}")).collect()
    }

    /// The matches of port ranges as text, with a leading comma.
    fn matches(&self, what: &Match) -> Vec<String> {
        let protocol = WITH_PORTS.iter().find(|known| Some(known.0) == what.proto);
        let protocol = protocol.map_or("tcp", |known| known.1);
        let mut exact = String::new();
        // The numbers of both sides with their masks: source in the low 16 bits, destination above.
        let mut numbers = vec![(0u32, 0u32)];
        for (at, (range, name)) in [(what.sport, "src"), (what.dport, "dst")].into_iter().enumerate() {
            let Some(range) = range.filter(|range| !is_whole(*range)) else { continue };
            if range.0 == range.1 {
                exact += &format!(",{protocol}_{name}={}", range.0);
                continue;
            }
            let side = &self.sides[at];
            let prefixes: Vec<(u64, u8)> = prefixes(side.number(range.0), side.number(range.1), 16).collect();
            numbers = numbers
                .iter()
                .flat_map(|(value, mask)| {
                    prefixes.iter().map(move |(first, len)| {
                        let own = (u16::MAX as u32) << (16 - u32::from(*len)) & 0xffff;
                        (value | (*first as u32) << (16 * at), mask | own << (16 * at))
                    })
                })
                .collect();
        }
        let text = |(value, mask): (u32, u32)| match mask {
            0 => exact.clone(),
            mask => format!("{exact},metadata={value:#x}/{mask:#x}"),
        };
        numbers.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_numbers_of_its_pieces() {
        let what = |dport| Match { proto: Some(6), dport: Some(dport), ..Match::default() };
        let ranges = [(0, 1023), (1024, 65_535), (500, 2000), (80, 80)];
        let tables = PortTables::of(ranges.map(what).iter());
        let text = |range| tables.matches(&what(range));
        // Pieces: 0, 500, 1024, 2001.
        assert_eq!(text((0, 1023)), [",metadata=0x0/0xfffe0000"]);
        assert_eq!(text((500, 2000)), [",metadata=0x10000/0xffff0000", ",metadata=0x20000/0xffff0000"]);
        assert_eq!(text((80, 80)), [",tcp_dst=80"]);
        assert_eq!(text((0, 65_535)), [""]);
        let rules = tables.text();
        assert!(
            !rules.contains("udp") && rules.contains("tcp_dst=0x400/0xfe00,actions=write_metadata:0x20000"),
            "{rules}"
        );
    }
}
