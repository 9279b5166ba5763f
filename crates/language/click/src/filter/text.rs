//! The canonical text of an expression.
//!
//! [`Expr`]'s `Display` writes every qualifier, so that no test inherits any and parsing the text results in the same
//! tree.

use super::ast::{Compare, Direction, Expr, PortProtocol, Relation, Six, Test, Values};
use super::words;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Src => "src",
            Direction::Dst => "dst",
            Direction::Either => "src or dst",
            Direction::Both => "src and dst",
        })
    }
}

/// The signs of relations.
pub(super) const RELATIONS: &[(&str, Relation)] = &[
    ("=", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<", Relation::Less),
    ("<=", Relation::LessEqual),
    (">", Relation::Greater),
    (">=", Relation::GreaterEqual),
];

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(words::name_of(RELATIONS, *self).unwrap_or_default())
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mask) = self.mask {
            write!(f, "& {mask:#x} ")?;
        }
        if self.relation != Relation::Equal || self.mask.is_some() {
            write!(f, "{} ", self.relation)?;
        }
        match self.values {
            Values::One(value) => write!(f, "{value}"),
            Values::Range(first, last) => write!(f, "{first}-{last}"),
        }
    }
}

/// An Ethernet address in its notation.
struct EtherText(u64);

impl fmt::Display for EtherText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, _, a, b, c, d, e, g] = self.0.to_be_bytes();
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for Six {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Six::Any => f.write_str("ip6"),
            Six::Host { direction, address, bits, negated } => {
                let (text, differs) = (Ipv6Addr::from(address), if negated { "!= " } else { "" });
                match bits {
                    128 => write!(f, "{direction} ip6 host {differs}{text}"),
                    _ => write!(f, "{direction} ip6 net {differs}{text}/{bits}"),
                }
            }
            Six::Proto(compare) => write!(f, "ip6 proto {compare}"),
            Six::Port { direction, protocol: PortProtocol::TcpUdp, compare } => {
                write!(f, "{direction} ip6 port {compare}")
            }
            Six::Port { direction, protocol: PortProtocol::One(protocol), compare } => {
                write!(f, "{direction} ip6 {} port {compare}", words::protocol_name(protocol))
            }
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differ = |negated: bool| if negated { "!= " } else { "" };
        match *self {
            Test::Host { direction, address, mask, negated } => {
                let (text, differs) = (Ipv4Addr::from(address), differ(negated));
                let ones = mask.leading_ones();
                if mask == u32::MAX {
                    write!(f, "{direction} host {differs}{text}")
                } else if ones + mask.trailing_zeros() >= 32 {
                    write!(f, "{direction} net {differs}{text}/{ones}")
                } else {
                    let relation = if negated { "!=" } else { "=" };
                    write!(f, "{direction} host & {} {relation} {text}", Ipv4Addr::from(mask))
                }
            }
            Test::Ether { direction, address, mask, negated } => {
                write!(f, "{direction} ether host ")?;
                if mask != words::ETHER_MASK {
                    write!(f, "& {} {} ", EtherText(mask), if negated { "!=" } else { "=" })?;
                } else {
                    f.write_str(differ(negated))?;
                }
                write!(f, "{}", EtherText(address))
            }
            Test::Proto(compare) => write!(f, "ip proto {compare}"),
            Test::Layer(layer, None) => f.write_str(&words::kind_name(words::Kind::Layer(layer))),
            Test::Layer(layer, Some(compare)) => {
                write!(f, "{} {compare}", words::kind_name(words::Kind::Layer(layer)))
            }
            Test::Six(six) => write!(f, "{six}"),
            Test::TcpUdp => f.write_str("tcpudp"),
            Test::Fragment(true) => f.write_str("ip frag"),
            Test::Fragment(false) => f.write_str("ip unfrag"),
            Test::Port { direction, protocol: PortProtocol::TcpUdp, compare } => {
                write!(f, "{direction} port {compare}")
            }
            Test::Port { direction, protocol: PortProtocol::One(protocol), compare } => {
                write!(f, "{direction} {} port {compare}", words::protocol_name(protocol))
            }
            Test::TcpFlags(flags) => match words::flag_name(flags) {
                Some(name) => write!(f, "tcp opt {name}"),
                None => write!(f, "tcp opt {flags}"),
            },
            Test::Field(field, compare) => match words::field_name(field) {
                Some(name) => write!(f, "{name} {compare}"),
                None => {
                    write!(f, "{}[{}:{}] {compare}", field.carrier.name(), field.bit / 8, field.width / 8)
                }
            },
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Expr], word: &str| {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    f.write_str(word)?;
                }
                operand(f, part)?;
            }
            Ok(())
        };
        match self {
            Expr::True => f.write_str("true"),
            Expr::False => f.write_str("false"),
            Expr::Test(test) => write!(f, "{test}"),
            Expr::Not(inner) => {
                f.write_str("not ")?;
                operand(f, inner)
            }
            Expr::All(parts) => list(f, parts, " and "),
            Expr::Any(parts) => list(f, parts, " or "),
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                operand(f, condition)?;
                f.write_str(" ? ")?;
                operand(f, yes)?;
                f.write_str(" : ")?;
                operand(f, no)
            }
        }
    }
}

/// Writes a part of a larger expression, in parentheses if it has several parts.
fn operand(f: &mut fmt::Formatter<'_>, part: &Expr) -> fmt::Result {
    match part {
        Expr::All(_) | Expr::Any(_) | Expr::If(_) => write!(f, "({part})"),
        _ => write!(f, "{part}"),
    }
}
