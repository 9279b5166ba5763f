//! What an expression means, on the bytes of a packet: the oracle of the lowering.
//!
//! Written to be read. A test that looks at bytes that are not there fails (so that its negation by
//! `not` holds), and every test fails on a packet whose IP header is not there as a whole.

use super::ast::{Carrier, Direction, Expr, PortProtocol, Test};
use super::words::{TCP, UDP};

/// Bytes of an IP header without options.
pub const IP_HEADER_BYTES: usize = 20;

/// A packet's headers: each slice reaches to the packet's end and is empty where the header is not
/// known.
#[derive(Clone, Copy, Default, Debug)]
pub struct Headers<'a> {
    /// From the Ethernet header on.
    pub mac: &'a [u8],
    /// From the IP header on.
    pub net: &'a [u8],
    /// From the transport header on.
    pub trans: &'a [u8],
}

/// A big-endian number of up to 8 bytes; `None` where a byte is missing.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().fold(0, |acc, byte| acc << 8 | u64::from(*byte)))
}

impl Direction {
    /// Applies a test to source and destination.
    fn holds(self, src: bool, dst: bool) -> bool {
        match self {
            Direction::Src => src,
            Direction::Dst => dst,
            Direction::Either => src || dst,
            Direction::Both => src && dst,
        }
    }
}

impl Headers<'_> {
    fn proto(&self) -> Option<u8> {
        self.net.get(9).copied()
    }

    /// Whether this is not a fragment, or the first one.
    fn first_fragment(&self) -> bool {
        number(self.net, 6, 2).is_some_and(|offset| offset & 0x1fff == 0)
    }

    fn test(&self, test: Test) -> Option<bool> {
        // Whether two numbers pass; `!=` turns the pair's result around, as in Click.
        let pair = |direction: Direction, src: u64, dst: u64, equal: &dyn Fn(u64) -> bool, negated: bool| {
            direction.holds(equal(src), equal(dst)) != negated
        };
        Some(match test {
            Test::Host { direction, address, mask, negated } => {
                let equal = |value: u64| value & u64::from(mask) == u64::from(address & mask);
                pair(direction, number(self.net, 12, 4)?, number(self.net, 16, 4)?, &equal, negated)
            }
            Test::Ether { direction, address, mask, negated } => {
                let equal = |value: u64| value & mask == address & mask;
                pair(direction, number(self.mac, 6, 6)?, number(self.mac, 0, 6)?, &equal, negated)
            }
            Test::Proto(compare) => compare.holds(self.proto()?.into()),
            Test::TcpUdp => matches!(self.proto()?, TCP | UDP),
            Test::Fragment(wanted) => (number(self.net, 6, 2)? & 0x3fff != 0) == wanted,
            Test::Port { direction, protocol, compare } => {
                let right = match protocol {
                    PortProtocol::TcpUdp => matches!(self.proto()?, TCP | UDP),
                    PortProtocol::One(protocol) => self.proto()? == protocol,
                };
                let (positive, negated) = compare.split();
                let (src, dst) = (number(self.trans, 0, 2)?, number(self.trans, 2, 2)?);
                let holds = |value: u64| positive.holds(value);
                right && self.first_fragment() && pair(direction, src, dst, &holds, negated)
            }
            Test::TcpFlags(flags) => {
                let set = number(self.trans, 13, 1)? & u64::from(flags) == u64::from(flags);
                self.proto()? == TCP && self.first_fragment() && set
            }
            Test::Field(field, compare) => {
                let carried = match field.carrier {
                    Carrier::Ip => true,
                    Carrier::Transport => self.first_fragment(),
                    Carrier::TcpUdp => matches!(self.proto()?, TCP | UDP) && self.first_fragment(),
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
    /// Whether a packet matches.
    pub fn matches(&self, headers: &Headers<'_>) -> bool {
        match self {
            Expr::True => true,
            Expr::False => false,
            Expr::Test(test) => headers.net.len() >= IP_HEADER_BYTES && headers.test(*test).unwrap_or(false),
            Expr::Not(inner) => !inner.matches(headers),
            Expr::All(parts) => parts.iter().all(|part| part.matches(headers)),
            Expr::Any(parts) => parts.iter().any(|part| part.matches(headers)),
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.matches(headers) { yes.matches(headers) } else { no.matches(headers) }
            }
        }
    }
}
