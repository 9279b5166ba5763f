//! Selects the flow of a frame, and computes that flow's 5-tuple.
//!
//! Flows are numbered from 0. The 5-tuple of a generated flow is computed from its number (by a keyed
//! permutation of all 5-tuples in the ranges), so that a million flows use no memory and no two are equal.
//! Flows from a rule set or a trace are a list.

use rand_distr::{Distribution, Zipf};

use crate::TrafficError;
use crate::frame::FiveTuple;
use crate::protocol::{FlowOrder, ICMP, ICMPV6, ProtocolMix, TCP, UDP};
use crate::random::{Permutation, Random, mix};
use crate::range::{AddressRange, PortSet};

// Two multipliers whose multiples are evenly distributed over the unit square (Roberts' R2 sequence: 1/p and
// 1/p^2 for the plastic number p, as fractions of 2^64). The shares of protocols and families are thus exact
// to about one flow even for few flows, and are independent of each other.
const SPREAD_PROTOCOL: u64 = 0xC13F_A9A9_02A6_328F;
const SPREAD_FAMILY: u64 = 0x91E1_0DA5_C79E_7B1D;

/// The ranges that flows are made from.
#[derive(Debug, Clone)]
pub(crate) struct FlowRanges {
    pub(crate) src: AddressRange,
    pub(crate) dst: AddressRange,
    pub(crate) src_port: PortSet,
    pub(crate) dst_port: PortSet,
}

/// All 5-tuples in the ranges, in a keyed order.
#[derive(Debug, Clone)]
pub(crate) struct FlowSpace {
    v4: FlowRanges,
    v6: FlowRanges,
    protocols: ProtocolMix,
    ipv6_percent: u8,
    seed: u64,
}

impl FlowSpace {
    /// Checks that `flows` distinct 5-tuples exist.
    pub(crate) fn new(
        v4: FlowRanges,
        v6: FlowRanges,
        protocols: ProtocolMix,
        ipv6_percent: u8,
        seed: u64,
        flows: u64,
    ) -> Result<Self, TrafficError> {
        let families = [
            (&v4, ipv6_percent < 100, ["IPv4 TCP", "IPv4 UDP", "IPv4 ICMP"]),
            (&v6, ipv6_percent > 0, ["IPv6 TCP", "IPv6 UDP", "ICMPv6"]),
        ];
        for (ranges, used, classes) in families {
            let kinds = [(protocols.tcp, TCP), (protocols.udp, UDP), (protocols.icmp, ICMP)];
            for ((weight, protocol), class) in kinds.into_iter().zip(classes) {
                let available = ranges.tuples(protocol);
                if used && weight > 0 && available < u128::from(flows) {
                    return Err(TrafficError::TooFewTuples { wanted: flows, available, class });
                }
            }
        }
        Ok(Self { v4, v6, protocols, ipv6_percent, seed })
    }

    /// The 5-tuple of flow `index`.
    pub(crate) fn tuple(&self, index: u64) -> FiveTuple {
        let of_2_32 = |spread: u64| (index.wrapping_mul(spread) >> 32) as u32;
        let percent = (u64::from(of_2_32(SPREAD_FAMILY)) * 100) >> 32;
        let ipv6 = percent < u64::from(self.ipv6_percent);
        let protocol = self.protocols.at(of_2_32(SPREAD_PROTOCOL));
        let ranges = if ipv6 { &self.v6 } else { &self.v4 };
        // A permutation for each protocol and family. Flow numbers are distinct, so tuples of the same
        // protocol and family are; other tuples differ in protocol or family.
        let key = mix(self.seed ^ (u64::from(protocol) << 1 | u64::from(ipv6)));
        let permutation = Permutation::new(ranges.tuples(protocol), key);
        let mut place = permutation.apply(u128::from(index));
        let mut digit = |base: u64| {
            let base = u128::from(base.max(1));
            let digit = (place % base) as u64;
            place /= base;
            digit
        };
        let (src_port, dst_port) = if protocol == ICMP {
            (digit(1 << 16) as u16, 0)
        } else {
            (
                ranges.src_port.nth(digit(ranges.src_port.count())),
                ranges.dst_port.nth(digit(ranges.dst_port.count())),
            )
        };
        FiveTuple {
            src: ranges.src.nth(digit(ranges.src.count())),
            dst: ranges.dst.nth(digit(ranges.dst.count())),
            protocol: if ipv6 && protocol == ICMP { ICMPV6 } else { protocol },
            src_port,
            dst_port,
        }
    }
}

impl FlowRanges {
    fn tuples(&self, protocol: u8) -> u128 {
        let addresses = u128::from(self.src.count()) * u128::from(self.dst.count());
        let ports = if protocol == ICMP {
            1 << 16
        } else {
            u128::from(self.src_port.count()) * u128::from(self.dst_port.count())
        };
        addresses * ports
    }
}

/// The source of 5-tuples.
#[derive(Debug, Clone)]
pub(crate) enum FlowSource {
    /// Computed from the flow number.
    Space(Box<FlowSpace>),
    /// Headers that match a rule set, or those of a trace.
    List(Vec<FiveTuple>),
}

impl FlowSource {
    pub(crate) fn tuple(&self, index: u64) -> Option<FiveTuple> {
        match self {
            Self::Space(space) => Some(space.tuple(index)),
            Self::List(list) => list.get(usize::try_from(index).ok()?).copied(),
        }
    }
}

/// Selects the flow of each frame.
#[derive(Debug, Clone)]
pub(crate) enum FlowPick {
    RoundRobin { flows: u64 },
    Uniform { flows: u64 },
    Zipf(Zipf<f64>),
}

impl FlowPick {
    pub(crate) fn new(order: FlowOrder, flows: u64) -> Result<Self, TrafficError> {
        Ok(match order {
            FlowOrder::RoundRobin => Self::RoundRobin { flows },
            FlowOrder::Uniform => Self::Uniform { flows },
            FlowOrder::Zipf(exponent) => Self::Zipf(Zipf::new(flows as f64, exponent).map_err(|error| {
                TrafficError::setting("flow order", &order.to_string(), error.to_string())
            })?),
        })
    }

    pub(crate) fn pick(&self, frame: u64, random: &mut Random) -> u64 {
        match self {
            Self::RoundRobin { flows } => frame % flows.max(&1),
            Self::Uniform { flows } => random.below(*flows),
            // Ranks start at 1.
            Self::Zipf(zipf) => (zipf.sample(&mut random.0) as u64).saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::random::Purpose;
    use proptest::prelude::*;

    fn ranges(src: &str, dst: &str, src_port: &str, dst_port: &str) -> FlowRanges {
        FlowRanges {
            src: src.parse().expect("valid range"),
            dst: dst.parse().expect("valid range"),
            src_port: src_port.parse().expect("valid ports"),
            dst_port: dst_port.parse().expect("valid ports"),
        }
    }

    fn space(protocols: &str, ipv6_percent: u8, flows: u64) -> Result<FlowSpace, TrafficError> {
        FlowSpace::new(
            ranges("10.0.0.0/28", "10.1.0.1", "1000-1099", "80,443"),
            ranges("2001:db8::/124", "2001:db8:1::1", "1000-1099", "80,443"),
            protocols.parse().expect("valid protocols"),
            ipv6_percent,
            3,
            flows,
        )
    }

    #[test]
    fn every_tuple_of_the_ranges_is_used_once() {
        // 14 hosts x 100 source ports x 2 destination ports.
        let space = space("udp", 0, 2_800).expect("just fits");
        let seen: HashSet<_> = (0..2_800).map(|index| space.tuple(index)).collect();
        assert_eq!(seen.len(), 2_800);
        assert!(seen.iter().all(|t| t.dst_port == 80 || t.dst_port == 443));
    }

    #[test]
    fn one_flow_too_many_is_refused_with_the_figure() {
        let error = space("udp", 0, 2_801).expect_err("does not fit");
        assert!(error.to_string().contains("2800 distinct IPv4 UDP"), "{error}");
    }

    #[test]
    fn shares_hold_for_few_flows() {
        let space = space("tcp:80,udp:15,icmp:5", 25, 200).expect("fits");
        let tuples: Vec<_> = (0..200).map(|index| space.tuple(index)).collect();
        let share = |test: fn(&FiveTuple) -> bool| tuples.iter().filter(|t| test(t)).count();
        assert!(share(|t| t.protocol == TCP).abs_diff(160) <= 2);
        assert!(share(|t| t.protocol == UDP).abs_diff(30) <= 2);
        assert!(share(|t| t.protocol == ICMP || t.protocol == ICMPV6).abs_diff(10) <= 2);
        assert!(share(|t| t.src.is_ipv6()).abs_diff(50) <= 2);
        assert_eq!(share(|t| t.src.is_ipv6() != t.dst.is_ipv6()), 0);
        assert_eq!(share(|t| t.protocol == ICMP && t.src.is_ipv6()), 0);
    }

    #[test]
    fn zipf_favours_the_first_flows() {
        let pick = FlowPick::new(FlowOrder::Zipf(1.0), 1_000).expect("valid");
        let mut random = Random::new(1, Purpose::Flows);
        let mut counts = vec![0u32; 1_000];
        for frame in 0..100_000 {
            counts[pick.pick(frame, &mut random) as usize] += 1;
        }
        // The first of 1,000 ranks has 1/H(1000) = 13.4 per cent.
        assert!((f64::from(counts[0]) / 1_000.0 - 13.4).abs() < 0.5, "{}", counts[0]);
        assert!(counts[0] > counts[9] * 7 && counts[9] > counts[99] * 7);
    }

    proptest! {
        #[test]
        fn tuples_stay_distinct_and_inside(flows in 1u64..2_000, seed: u64) {
            let mut space = space("tcp:3,udp:2,icmp:1", 40, flows).expect("fits");
            space.seed = seed;
            let seen: HashSet<_> = (0..flows).map(|index| space.tuple(index)).collect();
            prop_assert_eq!(seen.len() as u64, flows);
        }
    }
}
