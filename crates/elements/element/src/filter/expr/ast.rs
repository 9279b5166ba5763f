//! What an expression says, and its canonical text.
//!
//! [`Expr`]'s `Display` writes every qualifier out, so that nothing is inherited and the text parses
//! to the same tree again.

use super::words;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// Matches every packet.
    True,
    /// Matches none.
    False,
    /// One test.
    Test(Test),
    /// The opposite.
    Not(Box<Expr>),
    /// All of them; two or more.
    All(Vec<Expr>),
    /// One of them at least; two or more.
    Any(Vec<Expr>),
    /// The second where the first matches, else the third.
    If(Box<[Expr; 3]>),
}

/// Which of two addresses or ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The source.
    Src,
    /// The destination.
    Dst,
    /// One of the two.
    Either,
    /// Both.
    Both,
}

/// How a number is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// `=`, `==` or nothing.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
}

/// What a number is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Values {
    /// One number.
    One(u64),
    /// All from the first to the second; only with [`Relation::Equal`] and [`Relation::NotEqual`].
    Range(u64, u64),
}

/// A comparison of a number that a header holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compare {
    /// The bits that count, where not all do.
    pub mask: Option<u64>,
    /// How.
    pub relation: Relation,
    /// With what.
    pub values: Values,
}

impl Compare {
    /// Equal to a number.
    pub fn equal(value: u64) -> Compare {
        Compare { mask: None, relation: Relation::Equal, values: Values::One(value) }
    }

    /// The comparison without a `not`, and whether there was one: `!=`, `<` and `<=` are the
    /// opposites of `=`, `>=` and `>`. Where one of two numbers has to pass, Click takes the opposite
    /// last: `port != 80` means that neither port is 80.
    pub fn split(self) -> (Compare, bool) {
        let (relation, negated) = match self.relation {
            Relation::NotEqual => (Relation::Equal, true),
            Relation::Less => (Relation::GreaterEqual, true),
            Relation::LessEqual => (Relation::Greater, true),
            other => (other, false),
        };
        (Compare { relation, ..self }, negated)
    }

    /// Whether a number passes. Bits of an equal value outside the mask do not count, as in Click.
    pub fn holds(&self, number: u64) -> bool {
        let mask = self.mask.unwrap_or(u64::MAX);
        let number = number & mask;
        match (self.relation, self.values) {
            (Relation::Equal, Values::One(value)) => number == value & mask,
            (Relation::NotEqual, Values::One(value)) => number != value & mask,
            (Relation::Less, Values::One(value)) => number < value,
            (Relation::LessEqual, Values::One(value)) => number <= value,
            (Relation::Greater, Values::One(value)) => number > value,
            (Relation::GreaterEqual, Values::One(value)) => number >= value,
            (Relation::NotEqual, Values::Range(first, last)) => !(first..=last).contains(&number),
            (_, Values::Range(first, last)) => (first..=last).contains(&number),
        }
    }
}

/// The protocols whose ports a test looks at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortProtocol {
    /// TCP and UDP.
    TcpUdp,
    /// The one with that number.
    One(u8),
}

/// The header that a field lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// The IP header.
    Ip,
    /// The transport header, whatever the protocol.
    Transport,
    /// The transport header of TCP and UDP.
    TcpUdp,
    /// The transport header of one protocol.
    Protocol(u8),
}

/// A header field of 1 to 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HeaderField {
    /// The header.
    pub carrier: Carrier,
    /// Offset of its most significant bit from the header's start.
    pub bit: u16,
    /// Its width in bits.
    pub width: u8,
}

impl HeaderField {
    /// Its largest value.
    pub fn max_value(self) -> u64 {
        (1 << self.width) - 1
    }
}

/// What stands around or inside an IP packet and is no field of its header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layer {
    /// A VLAN tag: the outermost one.
    Vlan,
    /// Two VLAN tags: the inner one.
    Qinq,
    /// MPLS, behind up to two tags: the outermost label.
    Mpls,
    /// ARP, behind up to two tags.
    Arp,
    /// The type of what stands behind up to two tags; has a number always.
    EtherType,
    /// VXLAN over IPv4 and UDP.
    Vxlan,
    /// Geneve over IPv4 and UDP.
    Geneve,
}

impl Layer {
    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Vlan => "vlan",
            Layer::Qinq => "qinq",
            Layer::Mpls => "mpls",
            Layer::Arp => "arp",
            Layer::EtherType => "ethertype",
            Layer::Vxlan => "vxlan",
            Layer::Geneve => "geneve",
        }
    }

    /// The largest number that it can be compared with, and what that is.
    pub fn number(self) -> Option<(u64, &'static str)> {
        match self {
            Layer::Vlan | Layer::Qinq => Some((0xfff, "a VLAN identifier")),
            Layer::Mpls => Some((0xf_ffff, "a label")),
            Layer::Vxlan | Layer::Geneve => Some((0xff_ffff, "a network identifier (VNI)")),
            Layer::EtherType => Some((0xffff, "a type")),
            Layer::Arp => None,
        }
    }

    /// The UDP port that it is sent to.
    pub fn udp_port(self) -> Option<u16> {
        match self {
            Layer::Vxlan => Some(4789),
            Layer::Geneve => Some(6081),
            _ => None,
        }
    }
}

/// A test of an IPv6 packet, behind up to two VLAN tags. Extension headers are not followed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Six {
    /// It is one.
    Any,
    /// Addresses.
    Host {
        /// Which.
        direction: Direction,
        /// The value; 0 behind the prefix.
        address: u128,
        /// Bits of the prefix.
        bits: u8,
        /// Whether the packet's must differ.
        negated: bool,
    },
    /// The next header of the IPv6 header.
    Proto(Compare),
    /// Ports of TCP or UDP right behind the IPv6 header.
    Port {
        /// Which.
        direction: Direction,
        /// Of which protocols.
        protocol: PortProtocol,
        /// The comparison.
        compare: Compare,
    },
}

/// One test. A test of something that the packet does not have fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Test {
    /// IP addresses.
    Host {
        /// Which.
        direction: Direction,
        /// The value under the mask.
        address: u32,
        /// The bits that count.
        mask: u32,
        /// Whether the packet's must differ.
        negated: bool,
    },
    /// Ethernet addresses, as numbers of 48 bits.
    Ether {
        /// Which.
        direction: Direction,
        /// The value under the mask.
        address: u64,
        /// The bits that count.
        mask: u64,
        /// Whether the packet's must differ.
        negated: bool,
    },
    /// The IP protocol.
    Proto(Compare),
    /// TCP or UDP.
    TcpUdp,
    /// A fragment, or (false) not one.
    Fragment(bool),
    /// TCP or UDP ports, in first fragments.
    Port {
        /// Which.
        direction: Direction,
        /// Of which protocols.
        protocol: PortProtocol,
        /// The comparison.
        compare: Compare,
    },
    /// TCP flags that are all set, in first fragments.
    TcpFlags(u8),
    /// A header field; one of a transport header in first fragments.
    Field(HeaderField, Compare),
    /// A layer, and its number.
    Layer(Layer, Option<Compare>),
    /// IPv6.
    Six(Six),
}

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

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Relation::Equal => "=",
            Relation::NotEqual => "!=",
            Relation::Less => "<",
            Relation::LessEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterEqual => ">=",
        })
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

/// A six-byte address as it is written.
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
            Test::Layer(layer, None) => f.write_str(layer.name()),
            Test::Layer(layer, Some(compare)) => write!(f, "{} {compare}", layer.name()),
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
                    match field.carrier {
                        Carrier::Ip => f.write_str("ip")?,
                        Carrier::Transport => f.write_str("transp")?,
                        Carrier::TcpUdp => f.write_str("tcpudp")?,
                        Carrier::Protocol(protocol) => f.write_str(words::protocol_name(protocol))?,
                    }
                    write!(f, "[{}:{}] {compare}", field.bit / 8, field.width / 8)
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

/// Writes a part of a larger expression, in parentheses where it has parts itself.
fn operand(f: &mut fmt::Formatter<'_>, part: &Expr) -> fmt::Result {
    match part {
        Expr::All(_) | Expr::Any(_) | Expr::If(_) => write!(f, "({part})"),
        _ => write!(f, "{part}"),
    }
}
