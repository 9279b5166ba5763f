//! The specification of generated traffic: all settings of a command line or a chain file.

use crate::TrafficError;
use crate::acl::AclTraffic;
use crate::link::{MacAddress, VlanTags};
use crate::payload::PayloadFill;
use crate::protocol::{FlowOrder, ProtocolMix, TcpFlags};
use crate::range::{self, AddressRange, PortSet};
use crate::size::{FcsCounting, SizeMix};
use serde::{Deserialize, Serialize};

/// The spacing of frames in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// The same gap between all frames.
    #[default]
    Even,
    /// Exponentially distributed gaps: independent arrivals.
    Poisson,
}

/// The specification of generated traffic. The defaults are RFC 2544's: 64-byte UDP frames between
/// 198.18.0.0/16 and 198.19.0.0/16 (its appendix C.2.2; IPv6 from RFC 5180's 2001:2::/48).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficSpec {
    /// The same seed generates the same bytes.
    pub seed: u64,
    /// Frame sizes.
    pub size: SizeMix,
    /// Whether sizes count the FCS; they do by default.
    pub fcs: FcsCounting,
    /// Number of flows, each with a 5-tuple of its own. A TCP flow uses 8 bytes of memory.
    pub flows: u64,
    /// The order in which frames select their flows.
    pub order: FlowOrder,
    /// Protocols of the flows.
    pub protocols: ProtocolMix,
    /// The percentage of IPv6 flows.
    pub ipv6_percent: u8,
    /// VLAN tags. A frame's size includes them.
    pub vlan: VlanTags,
    /// Source MAC address.
    pub src_mac: MacAddress,
    /// Destination MAC address.
    pub dst_mac: MacAddress,
    /// IPv4 source addresses.
    pub src: AddressRange,
    /// IPv4 destination addresses.
    pub dst: AddressRange,
    /// IPv6 source addresses.
    pub src6: AddressRange,
    /// IPv6 destination addresses.
    pub dst6: AddressRange,
    /// Source ports.
    pub src_port: PortSet,
    /// Destination ports.
    pub dst_port: PortSet,
    /// The frames of TCP flows.
    pub tcp: TcpFlags,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// The content of payloads.
    pub payload: PayloadFill,
    /// Frames per second, for the timestamps.
    pub rate_pps: u64,
    /// Gaps between frames.
    pub spacing: Spacing,
    /// Timestamp of the first frame, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Headers that match a rule set, instead of the address and port ranges.
    pub acl: AclTraffic,
}

impl Default for TrafficSpec {
    fn default() -> Self {
        Self {
            seed: 1,
            size: SizeMix::fixed(64),
            fcs: FcsCounting::Counted,
            flows: 1_000,
            order: FlowOrder::RoundRobin,
            protocols: ProtocolMix::UDP_ONLY,
            ipv6_percent: 0,
            vlan: VlanTags::default(),
            src_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            dst_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            src: range::preset("198.18.0.0/16"),
            dst: range::preset("198.19.0.0/16"),
            src6: range::preset("2001:2:0:1::/64"),
            dst6: range::preset("2001:2:0:2::/64"),
            src_port: range::preset("49152-65535"),
            dst_port: range::preset("80,443"),
            tcp: TcpFlags::Ack,
            ttl: 64,
            dscp: 0,
            payload: PayloadFill::Counting,
            rate_pps: 1_000_000,
            spacing: Spacing::Even,
            start_ns: 0,
            acl: AclTraffic::default(),
        }
    }
}

impl TrafficSpec {
    /// Settings that are out of range, each with its key in a chain file.
    pub fn mistakes(&self) -> Vec<(&'static str, TrafficError)> {
        let mut mistakes: Vec<(&'static str, TrafficError)> = vec![];
        mistakes.extend(self.size.check().err().map(|error| ("size", error)));
        let mut refuse = |key, wrong: bool, reason: &str| {
            mistakes.extend(wrong.then(|| (key, TrafficError::Contradiction(reason.to_owned()))));
        };
        refuse("flows", self.flows == 0 || self.flows > MAX_FLOWS, "the number of flows is 1 to 100,000,000");
        refuse("ipv6-percent", self.ipv6_percent > 100, "a share in per cent is 0 to 100");
        refuse("acl", self.acl.miss_percent > 100, "a share in per cent is 0 to 100");
        refuse("rate-pps", self.rate_pps == 0, "the rate is at least one frame a second");
        refuse("dscp", self.dscp > 63, "a DSCP is 0 to 63");
        refuse("protocols", self.protocols.total() == 0, "all protocol weights are zero");
        let families = [
            (&self.src, false, "src"),
            (&self.dst, false, "dst"),
            (&self.src6, true, "src6"),
            (&self.dst6, true, "dst6"),
        ];
        for (range, ipv6, name) in families {
            if range.is_ipv6() != ipv6 {
                let family = if ipv6 { "IPv6" } else { "IPv4" };
                refuse(name, true, &format!("{name} takes {family} addresses, and {range} is none"));
            }
        }
        mistakes
    }

    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        self.mistakes().into_iter().next().map_or(Ok(()), |(_, mistake)| Err(mistake))
    }
}

const MAX_FLOWS: u64 = 100_000_000;
