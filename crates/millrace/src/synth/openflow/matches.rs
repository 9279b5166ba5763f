//! The match of a rule.

use super::super::conditions::prefixes;

/// The most matches of one class or box.
pub const MOST: usize = 4_000;

/// Frames of an Ethernet type, or IPv4 packets. All fields must match; by default every frame does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Match {
    /// The Ethernet type, if it is not IPv4; `None` matches every type.
    pub ethertype: Option<u16>,
    /// Whether only IPv4 packets match.
    pub ip: bool,
    /// The prefix of the source address: address and length.
    pub src: (u32, u8),
    /// The prefix of the destination address.
    pub dst: (u32, u8),
    /// The IPv4 protocol.
    pub proto: Option<u8>,
    /// First and last source port; only with a protocol that has ports.
    pub sport: Option<(u16, u16)>,
    /// First and last destination port.
    pub dport: Option<(u16, u16)>,
    /// The six bits of the DSCP.
    pub dscp: Option<u8>,
}

impl Match {
    /// Packets with a source (`src`) or destination address in an interval.
    pub fn of_addresses(interval: (u32, u32), src: bool) -> Vec<Match> {
        let with = |prefix| match src {
            true => Match { src: prefix, ..Match::default() },
            false => Match { dst: prefix, ..Match::default() },
        };
        prefixes(interval.0.into(), interval.1.into(), 32)
            .map(|(first, len)| with((first as u32, len)))
            .take(MOST + 1)
            .collect()
    }

    /// Packets of these protocols.
    pub fn of_protocols(intervals: &[(u64, u64)]) -> Vec<Match> {
        if intervals == [(0, 255)] {
            return vec![Match::default()];
        }
        let all = intervals.iter().flat_map(|(first, last)| *first..=*last);
        all.map(|proto| Match { proto: Some(proto as u8), ..Match::default() }).collect()
    }

    /// The packets that match both; `None` if there are none.
    pub fn and(&self, other: &Match) -> Option<Match> {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
            match (one, other) {
                (Some(one), Some(other)) if one != other => None,
                (one, other) => Some(one.or(other)),
            }
        }
        let narrower = |one: (u32, u8), other: (u32, u8)| {
            let (wide, narrow) = if one.1 < other.1 { (one, other) } else { (other, one) };
            let mask = u32::MAX.checked_shl(32 - u32::from(wide.1)).unwrap_or(0);
            (narrow.0 & mask == wide.0 & mask).then_some(narrow)
        };
        let range = |one: Option<(u16, u16)>, other: Option<(u16, u16)>| match (one, other) {
            (Some(one), Some(other)) => {
                let both = (one.0.max(other.0), one.1.min(other.1));
                (both.0 <= both.1).then_some(Some(both))
            }
            (one, other) => Some(one.or(other)),
        };
        Some(Match {
            ethertype: same(self.ethertype, other.ethertype)?,
            ip: self.ip || other.ip,
            src: narrower(self.src, other.src)?,
            dst: narrower(self.dst, other.dst)?,
            proto: same(self.proto, other.proto)?,
            sport: range(self.sport, other.sport)?,
            dport: range(self.dport, other.dport)?,
            dscp: same(self.dscp, other.dscp)?,
        })
    }
}

/// The intersections of every match of one list with every match of the other, without empty ones.
pub fn crossed(some: &[Match], others: &[Match]) -> Vec<Match> {
    some.iter().flat_map(|one| others.iter().filter_map(move |other| one.and(other))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_matches_have_in_common() {
        let net = |src: u32, len| Match { ip: true, src: (src, len), ..Match::default() };
        let (wide, narrow) = (net(0x0a00_0000, 8), net(0x0a01_0000, 16));
        assert_eq!(wide.and(&narrow), Some(narrow));
        assert_eq!(narrow.and(&net(0x0b00_0000, 8)), None);
        let ports = |first, last| Match { dport: Some((first, last)), ..Match::default() };
        assert_eq!(ports(1, 10).and(&ports(5, 20)).and_then(|both| both.dport), Some((5, 10)));
        assert_eq!(ports(1, 4).and(&ports(5, 20)), None);
    }
}
