//! Made-up traffic: what is sent, how long, in which flows, how fast.
//!
//! A [`TrafficSpec`] says it all and is the same whether it comes from a command line or a TOML
//! file. [`TrafficSpec::frames`] makes the frames one by one, [`TrafficSpec::prepare`] lays a
//! number of them side by side for a generator port. Same specification, same bytes, everywhere;
//! a test pins a digest of them.
//!
//! What is deliberately not here: replies (every flow goes one way), fragments, and malformed
//! frames. Captures of real traffic and the fuzz targets have those.

mod acl;
mod classbench;
mod flow;
mod frame;
mod frame_set;
mod generator;
mod link;
mod made;
mod payload;
mod protocol;
mod random;
mod range;
pub mod replay;
mod size;
mod summary;

use serde::{Deserialize, Serialize};

pub use acl::AclTraffic;
pub use frame::{FiveTuple, FrameSpec, SHORTEST_WIRE_FRAME_BYTES, TcpSegment};
pub use frame_set::FrameSet;
pub use generator::{FrameMeta, Frames};
pub use link::{MacAddress, VlanTag, VlanTags};
pub use made::{Change, made};
pub use payload::PayloadFill;
pub use protocol::{FlowOrder, ICMP, ICMPV6, ProtocolMix, TCP, TcpFlags, UDP};
pub use range::{AddressRange, PortSet};
pub use size::{DATA_CENTRE, FCS_BYTES, FcsCounting, LONGEST_FRAME_BYTES, SizeMix};
pub use summary::Summary;

use crate::BenchError;

/// Makes the text form of a type its serde form.
macro_rules! text_serde {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = $crate::BenchError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}
use text_serde;

/// How frames follow each other in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// The same gap between all frames.
    #[default]
    Even,
    /// Exponentially distributed gaps: arrivals that know nothing of each other.
    Poisson,
}

/// Everything about made-up traffic. The defaults are RFC 2544's: 64-byte UDP frames between
/// 198.18.0.0/16 and 198.19.0.0/16 (its appendix C.2.2; IPv6 from RFC 5180's 2001:2::/48).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrafficSpec {
    /// Same seed, same bytes.
    pub seed: u64,
    /// Frame sizes.
    pub size: SizeMix,
    /// Whether sizes count the FCS. They do by default.
    pub fcs: FcsCounting,
    /// Number of flows, each with a 5-tuple of its own. TCP keeps 8 bytes for each.
    pub flows: u64,
    /// Order in which frames pick their flows.
    pub order: FlowOrder,
    /// Protocols of the flows.
    pub protocols: ProtocolMix,
    /// How many in a hundred flows are IPv6.
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
    /// What TCP flows look like.
    pub tcp: TcpFlags,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// What payloads hold.
    pub payload: PayloadFill,
    /// Frames a second, for the timestamps.
    pub rate_pps: u64,
    /// Gaps between frames.
    pub spacing: Spacing,
    /// Timestamp of the first frame, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Headers for a rule set, instead of the address and port ranges.
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
            src_port: range::preset_ports("49152-65535"),
            dst_port: range::preset_ports("80,443"),
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
    /// The frames, without end: (timestamp in nanoseconds, bytes without FCS).
    ///
    /// # Errors
    ///
    /// Settings that contradict each other, or a rule or trace file that cannot be read.
    pub fn frames(&self) -> Result<Frames, BenchError> {
        Frames::new(self)
    }

    /// The first `count` frames, side by side.
    ///
    /// # Errors
    ///
    /// As [`Self::frames`].
    pub fn prepare(&self, count: usize) -> Result<FrameSet, BenchError> {
        let mut frames = self.frames()?;
        let mut set = FrameSet::default();
        for _ in 0..count {
            set.push_with(|bytes| frames.append_next(bytes))?;
        }
        Ok(set)
    }

    /// Settings that are out of range, each with the key that it has in a chain file.
    pub fn mistakes(&self) -> Vec<(&'static str, BenchError)> {
        let mut mistakes: Vec<(&'static str, BenchError)> = vec![];
        mistakes.extend(self.size.check().err().map(|error| ("size", error)));
        let mut refuse = |key, wrong: bool, reason: &str| {
            mistakes.extend(wrong.then(|| (key, BenchError::Contradiction(reason.to_owned()))));
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

    fn check(&self) -> Result<(), BenchError> {
        self.mistakes().into_iter().next().map_or(Ok(()), |(_, mistake)| Err(mistake))
    }
}

const MAX_FLOWS: u64 = 100_000_000;

#[cfg(test)]
mod tests;
