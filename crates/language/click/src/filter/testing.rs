//! Evaluates an expression on the bytes of a packet: the reference for the compiled expression, for tests and
//! fuzzing.
//!
//! It is written for readability. A test of bytes that the packet does not contain fails (so that its
//! negation by `not` matches), and every test fails on a packet without a complete IP header.

use super::ast::{Carrier, Compare, Direction, Expr, Layer, PortProtocol, Six, Test};
use super::words::{TCP, UDP};
use crate::config::Ip6Prefix;

/// The size of an IP header without options.
pub const IP_HEADER_BYTES: usize = 20;

/// A packet's headers: each slice extends to the packet's end, and is empty where the header is unknown.
#[derive(Clone, Copy, Default, Debug)]
pub struct Headers<'a> {
    /// The packet from the Ethernet header on.
    pub mac: &'a [u8],
    /// The packet from the IP header on.
    pub net: &'a [u8],
    /// The packet from the transport header on.
    pub trans: &'a [u8],
}

/// A big-endian number of up to 8 bytes; `None` where a byte is missing.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte)))
}

impl Direction {
    /// Combines the results of a test of source and destination.
    fn holds(self, src: bool, dst: bool) -> bool {
        match self {
            Direction::Src => src,
            Direction::Dst => dst,
            Direction::Either => src || dst,
            Direction::Both => src && dst,
        }
    }

    /// The result of a test of the ports at the start of a transport header. `!=` negates the result of the
    /// pair, as in Click.
    fn holds_of_ports(self, compare: Compare, transport: &[u8]) -> Option<bool> {
        let (positive, negated) = compare.split();
        let (src, dst) = (number(transport, 0, 2)?, number(transport, 2, 2)?);
        Some(self.holds(positive.holds(src), positive.holds(dst)) != negated)
    }
}

impl PortProtocol {
    fn holds(self, protocol: u8) -> bool {
        match self {
            PortProtocol::TcpUdp => matches!(protocol, TCP | UDP),
            PortProtocol::One(one) => protocol == one,
        }
    }
}

impl Headers<'_> {
    fn proto(&self) -> Option<u8> {
        self.net.get(9).copied()
    }

    /// Whether the packet is unfragmented, or the first fragment.
    fn first_fragment(&self) -> bool {
        number(self.net, 6, 2).is_some_and(|offset| offset & 0x1fff == 0)
    }

    /// The VLAN tags, and the EtherType behind up to two of them; `None` where the frame is too short.
    fn link(&self) -> (Vec<u64>, Option<u64>) {
        let mut tags = vec![];
        loop {
            let at = 12 + 4 * tags.len();
            let kind = number(self.mac, at, 2);
            if tags.len() == 2 || !matches!(kind, Some(0x8100 | 0x88a8 | 0x9100)) {
                return (tags, kind);
            }
            match number(self.mac, at + 2, 4) {
                Some(tag) => tags.push(tag >> 16 & 0xfff),
                None => return (tags, None),
            }
        }
    }

    fn layer(&self, layer: Layer, compare: Option<Compare>) -> Option<bool> {
        let holds = |number: u64| compare.is_none_or(|compare| compare.holds(number));
        let (tags, kind) = self.link();
        Some(match layer {
            Layer::Vlan => holds(*tags.first()?),
            Layer::Qinq => holds(*tags.get(1)?),
            Layer::Arp => kind? == 0x0806,
            Layer::EtherType => holds(kind?),
            Layer::Mpls if !matches!(kind?, 0x8847 | 0x8848) => false,
            Layer::Mpls if compare.is_none() => true,
            Layer::Mpls => holds(number(self.mac, 14 + 4 * tags.len(), 4)? >> 12),
            Layer::Vxlan | Layer::Geneve => {
                let port = Compare::equal(layer.udp_port()?.into());
                let protocol = PortProtocol::One(UDP);
                let is_sent = self.test(Test::Port { direction: Direction::Dst, protocol, compare: port })?;
                let is_valid = || match layer {
                    Layer::Vxlan => number(self.trans, 8, 1).is_some_and(|flags| flags & 8 != 0),
                    _ => true,
                };
                is_sent && (compare.is_none() || (is_valid() && holds(number(self.trans, 12, 4)? >> 8)))
            }
        })
    }

    fn six(&self, test: Six) -> Option<bool> {
        let (tags, kind) = self.link();
        let ip = self.mac.get(14 + 4 * tags.len()..)?;
        let version = number(ip.get(..40)?, 0, 1)? >> 4;
        if kind? != 0x86dd || version != 6 {
            return None;
        }
        let next = ip.get(6).copied()?;
        let half = |at: usize| number(ip, at, 8).map(u128::from);
        let address = |at: usize| Some(half(at)? << 64 | half(at + 8)?);
        Some(match test {
            Six::Any => true,
            Six::Host { direction, address: wanted, bits, negated } => {
                let equal = |value: u128| (value ^ wanted) & Ip6Prefix::mask(bits) == 0;
                direction.holds(equal(address(8)?), equal(address(24)?)) != negated
            }
            Six::Proto(compare) => compare.holds(next.into()),
            Six::Port { direction, protocol, compare } => {
                protocol.holds(next) && direction.holds_of_ports(compare, ip.get(40..)?)?
            }
        })
    }

    fn test(&self, test: Test) -> Option<bool> {
        Some(match test {
            Test::Host { direction, address, mask, negated } => {
                let equal = |value: u64| value & u64::from(mask) == u64::from(address & mask);
                direction.holds(equal(number(self.net, 12, 4)?), equal(number(self.net, 16, 4)?)) != negated
            }
            Test::Ether { direction, address, mask, negated } => {
                let equal = |value: u64| value & mask == address & mask;
                direction.holds(equal(number(self.mac, 6, 6)?), equal(number(self.mac, 0, 6)?)) != negated
            }
            Test::Proto(compare) => compare.holds(self.proto()?.into()),
            Test::TcpUdp => PortProtocol::TcpUdp.holds(self.proto()?),
            Test::Fragment(wanted) => (number(self.net, 6, 2)? & 0x3fff != 0) == wanted,
            Test::Port { direction, protocol, compare } => {
                let ports = direction.holds_of_ports(compare, self.trans)?;
                protocol.holds(self.proto()?) && self.first_fragment() && ports
            }
            Test::TcpFlags(flags) => {
                let set = number(self.trans, 13, 1)? & u64::from(flags) == u64::from(flags);
                self.proto()? == TCP && self.first_fragment() && set
            }
            Test::Layer(layer, compare) => self.layer(layer, compare)?,
            Test::Six(six) => self.six(six)?,
            Test::Field(field, compare) => {
                let carried = match field.carrier {
                    Carrier::Ip => true,
                    Carrier::Transport => self.first_fragment(),
                    Carrier::TcpUdp => PortProtocol::TcpUdp.holds(self.proto()?) && self.first_fragment(),
                    Carrier::Protocol(protocol) => self.proto()? == protocol && self.first_fragment(),
                };
                let header = if field.carrier == Carrier::Ip { self.net } else { self.trans };
                let (first, last) = (field.bit / 8, (field.bit + u16::from(field.width) - 1) / 8);
                let raw = number(header, usize::from(first), usize::from(last - first) + 1)?;
                let below = (last + 1) * 8 - field.bit - u16::from(field.width);
                carried && compare.holds(raw >> below & field.max_value())
            }
        })
    }
}

impl Expr {
    /// Whether a packet matches. All tests fail on a packet without an IP header.
    pub fn matches(&self, headers: &Headers<'_>) -> bool {
        self.holds(&|test| headers.net.len() >= IP_HEADER_BYTES && headers.test(test).unwrap_or(false))
    }

    /// Whether a frame matches. Tests of IP fail on a frame without an IP header.
    pub fn matches_frame(&self, headers: &Headers<'_>) -> bool {
        let there = |test: Test| !test.is_of_ip() || headers.net.len() >= IP_HEADER_BYTES;
        self.holds(&|test| there(test) && headers.test(test).unwrap_or(false))
    }
}
