//! The protocols of flows, and the order in which frames select their flows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::TrafficError;

/// IP protocol number of ICMP.
pub const ICMP: u8 = 1;
/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// IP protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// The share of flows of each protocol, by weight: `udp`, `tcp:80,udp:15,icmp:5`.
///
/// The shares apply to flows. They apply to frames as far as flows are selected evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProtocolMix {
    /// Weight of TCP.
    pub tcp: u32,
    /// Weight of UDP.
    pub udp: u32,
    /// Weight of ICMP echo requests (ICMPv6 over IPv6).
    pub icmp: u32,
}

impl ProtocolMix {
    /// UDP only, as in the tests of RFC 2544 (appendix C).
    pub const UDP_ONLY: Self = Self { tcp: 0, udp: 1, icmp: 0 };

    pub(crate) fn total(&self) -> u64 {
        u64::from(self.tcp) + u64::from(self.udp) + u64::from(self.icmp)
    }

    /// The protocol at `fraction` (a fraction of 2^32) of the concatenated weights.
    pub(crate) fn at(&self, fraction: u32) -> u8 {
        let ticket = ((u128::from(fraction) * u128::from(self.total())) >> 32) as u64;
        if ticket < u64::from(self.tcp) {
            TCP
        } else if ticket < u64::from(self.tcp) + u64::from(self.udp) {
            UDP
        } else {
            ICMP
        }
    }
}

impl FromStr for ProtocolMix {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let refuse = |reason: &str| TrafficError::setting("protocols", text, reason);
        let mut mix = Self { tcp: 0, udp: 0, icmp: 0 };
        for part in text.split(',') {
            let (name, weight) = part.split_once(':').unwrap_or((part, "1"));
            let weight = weight
                .trim()
                .parse::<u32>()
                .map_err(|_| refuse("a weight is a whole number, as in tcp:80,udp:20"))?;
            let slot = match name.trim() {
                "tcp" => &mut mix.tcp,
                "udp" => &mut mix.udp,
                "icmp" => &mut mix.icmp,
                _ => return Err(refuse("the protocols are tcp, udp and icmp")),
            };
            if *slot != 0 {
                return Err(refuse("a protocol is named twice"));
            }
            *slot = weight;
        }
        if mix.total() == 0 {
            return Err(refuse("all weights are zero"));
        }
        Ok(mix)
    }
}

impl fmt::Display for ProtocolMix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = [("tcp", self.tcp), ("udp", self.udp), ("icmp", self.icmp)]
            .iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(name, weight)| format!("{name}:{weight}"))
            .collect();
        out.write_str(&words.join(","))
    }
}

/// The order in which frames select their flows.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FlowOrder {
    /// One flow after the other, repeatedly: the worst case for caches, and the order of a trace file.
    #[default]
    RoundRobin,
    /// Each flow with the same probability.
    Uniform,
    /// Flow number `k` (from 1) with a probability proportional to `1 / k^s`: a few heavy flows and a long
    /// tail.
    Zipf(f64),
}

impl FromStr for FlowOrder {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        match text.trim() {
            "round-robin" => Ok(Self::RoundRobin),
            "uniform" => Ok(Self::Uniform),
            "zipf" => Ok(Self::Zipf(1.0)),
            other => other
                .strip_prefix("zipf:")
                .and_then(|exponent| exponent.trim().parse::<f64>().ok())
                .filter(|exponent| exponent.is_finite() && (0.0..=100.0).contains(exponent))
                .map(Self::Zipf)
                .ok_or_else(|| {
                    TrafficError::setting(
                        "flow order",
                        text,
                        "write round-robin, uniform, zipf or zipf:S with S from 0 to 100",
                    )
                }),
        }
    }
}

impl fmt::Display for FlowOrder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundRobin => out.write_str("round-robin"),
            Self::Uniform => out.write_str("uniform"),
            Self::Zipf(exponent) => write!(out, "zipf:{exponent}"),
        }
    }
}

/// The frames of TCP flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TcpFlags {
    /// Established connections: every frame is data with PSH and ACK.
    #[default]
    Ack,
    /// Every frame is a SYN: connection attempts only.
    Syn,
    /// The client's half of connections: SYN, ACK, data frames, and after `data_frames` of them a FIN. The
    /// next frame of the flow opens the connection again. With zero it is never closed. SYN, ACK and FIN have
    /// no payload and are the shortest frames, whatever the size mix.
    Session {
        /// Data frames before the FIN; 0 for a connection that stays open.
        data_frames: u32,
    },
}

impl FromStr for TcpFlags {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        match text.trim() {
            "ack" => Ok(Self::Ack),
            "syn" => Ok(Self::Syn),
            "session" => Ok(Self::Session { data_frames: 0 }),
            other => other
                .strip_prefix("session:")
                .and_then(|frames| frames.trim().parse::<u32>().ok())
                .map(|data_frames| Self::Session { data_frames })
                .ok_or_else(|| {
                    TrafficError::setting(
                        "TCP flags",
                        text,
                        "write ack, syn, session or session:N (a FIN after N data frames)",
                    )
                }),
        }
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ack => out.write_str("ack"),
            Self::Syn => out.write_str("syn"),
            Self::Session { data_frames: 0 } => out.write_str("session"),
            Self::Session { data_frames } => write!(out, "session:{data_frames}"),
        }
    }
}

crate::text::text_serde!(ProtocolMix);
crate::text::text_serde!(FlowOrder);
crate::text::text_serde!(TcpFlags);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_split_the_line() {
        let mix: ProtocolMix = "tcp:2,udp:1,icmp:1".parse().expect("valid mix");
        let quarter = 1u32 << 30;
        assert_eq!(mix.at(0), TCP);
        assert_eq!(mix.at(quarter * 2 - 1), TCP);
        assert_eq!(mix.at(quarter * 2), UDP);
        assert_eq!(mix.at(quarter * 3), ICMP);
        assert_eq!(mix.at(u32::MAX), ICMP);
        assert_eq!(ProtocolMix::UDP_ONLY.at(u32::MAX), UDP);
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", "sctp", "tcp:0", "tcp,tcp", "tcp:-1", "tcp:"] {
            assert!(text.parse::<ProtocolMix>().is_err(), "{text} was accepted");
        }
        for text in ["", "zipf:-1", "zipf:nan", "zipf:inf", "random"] {
            assert!(text.parse::<FlowOrder>().is_err(), "{text} was accepted");
        }
        for text in ["", "fin", "session:-1", "session:x"] {
            assert!(text.parse::<TcpFlags>().is_err(), "{text} was accepted");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(tcp|udp|icmp|zipf|session|uniform)?[:0-9a-z.,-]{0,12}") {
            if let Ok(mix) = text.parse::<ProtocolMix>() {
                prop_assert_eq!(mix.to_string().parse::<ProtocolMix>().expect("prints back"), mix);
            }
            if let Ok(order) = text.parse::<FlowOrder>() {
                prop_assert_eq!(order.to_string().parse::<FlowOrder>().expect("prints back"), order);
            }
            if let Ok(flags) = text.parse::<TcpFlags>() {
                prop_assert_eq!(flags.to_string().parse::<TcpFlags>().expect("prints back"), flags);
            }
        }
    }
}
