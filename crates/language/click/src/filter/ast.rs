//! The syntax tree of an expression.

/// An expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// Matches every packet.
    True,
    /// Matches no packet.
    False,
    /// One test.
    Test(Test),
    /// The negation.
    Not(Box<Expr>),
    /// All of these; two or more.
    All(Vec<Expr>),
    /// At least one of these; two or more.
    Any(Vec<Expr>),
    /// If the first matches, the second, else the third.
    If(Box<[Expr; 3]>),
}

/// Which of the source and destination address or port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// The source.
    Src,
    /// The destination.
    Dst,
    /// At least one of the two.
    Either,
    /// Both.
    Both,
}

/// The relation of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// `=`, `==` or no operator.
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

/// The values of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Values {
    /// One number.
    One(u64),
    /// All numbers from the first to the second; only with [`Relation::Equal`] and [`Relation::NotEqual`].
    Range(u64, u64),
}

/// A comparison of a number in a header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Compare {
    /// The bits that are compared, if not all.
    pub mask: Option<u64>,
    /// The relation.
    pub relation: Relation,
    /// The values.
    pub values: Values,
}

impl Compare {
    /// A comparison for equality with a number.
    pub fn equal(value: u64) -> Compare {
        Compare { mask: None, relation: Relation::Equal, values: Values::One(value) }
    }

    /// The comparison without its negation, and whether it had one: `!=`, `<` and `<=` are the negations of
    /// `=`, `>=` and `>`. Where one of two numbers has to match, Click applies the negation last: `port !=
    /// 80` means that neither port is 80.
    pub fn split(self) -> (Compare, bool) {
        let (relation, negated) = match self.relation {
            Relation::NotEqual => (Relation::Equal, true),
            Relation::Less => (Relation::GreaterEqual, true),
            Relation::LessEqual => (Relation::Greater, true),
            other => (other, false),
        };
        (Compare { relation, ..self }, negated)
    }

    /// Whether a number matches. Bits of an equal value outside the mask are ignored, as in Click.
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

/// The protocols of a port test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortProtocol {
    /// TCP and UDP.
    TcpUdp,
    /// The protocol with that number.
    One(u8),
}

/// The header that contains a field.
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

/// A layer around or inside an IP packet that is not a field of its header.
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
    /// The EtherType behind up to two tags; always compared with a number.
    EtherType,
    /// VXLAN over IPv4 and UDP.
    Vxlan,
    /// Geneve over IPv4 and UDP.
    Geneve,
}

impl Layer {
    /// The largest number that it can be compared with, and the name of that number.
    pub fn number(self) -> Option<(u64, &'static str)> {
        match self {
            Layer::Vlan | Layer::Qinq => Some((0xfff, "a VLAN identifier")),
            Layer::Mpls => Some((0xf_ffff, "a label")),
            Layer::Vxlan | Layer::Geneve => Some((0xff_ffff, "a network identifier (VNI)")),
            Layer::EtherType => Some((0xffff, "a type")),
            Layer::Arp => None,
        }
    }

    /// The UDP destination port of the layer.
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
    /// Any IPv6 packet.
    Any,
    /// Addresses.
    Host {
        /// Which address.
        direction: Direction,
        /// The value; its bits outside the prefix are 0.
        address: u128,
        /// The length of the prefix.
        bits: u8,
        /// Whether the packet's address must differ.
        negated: bool,
    },
    /// The next header of the IPv6 header.
    Proto(Compare),
    /// Ports of TCP or UDP directly behind the IPv6 header.
    Port {
        /// Which port.
        direction: Direction,
        /// The protocols.
        protocol: PortProtocol,
        /// The comparison.
        compare: Compare,
    },
}

/// One test. A test of a field that the packet does not contain fails.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Test {
    /// IP addresses.
    Host {
        /// Which address.
        direction: Direction,
        /// The value under the mask.
        address: u32,
        /// The bits that are compared.
        mask: u32,
        /// Whether the packet's address must differ.
        negated: bool,
    },
    /// Ethernet addresses, as numbers of 48 bits.
    Ether {
        /// Which address.
        direction: Direction,
        /// The value under the mask.
        address: u64,
        /// The bits that are compared.
        mask: u64,
        /// Whether the packet's address must differ.
        negated: bool,
    },
    /// The IP protocol.
    Proto(Compare),
    /// TCP or UDP.
    TcpUdp,
    /// A fragment, or (if false) an unfragmented packet.
    Fragment(bool),
    /// TCP or UDP ports; fails on later fragments.
    Port {
        /// Which port.
        direction: Direction,
        /// The protocols.
        protocol: PortProtocol,
        /// The comparison.
        compare: Compare,
    },
    /// TCP flags that are all set; fails on later fragments.
    TcpFlags(u8),
    /// A header field. A test of a transport header fails on later fragments.
    Field(HeaderField, Compare),
    /// A layer, and a comparison of its number.
    Layer(Layer, Option<Compare>),
    /// IPv6.
    Six(Six),
}

impl Test {
    /// Whether it tests an IP header or bytes behind one.
    pub fn is_of_ip(self) -> bool {
        match self {
            Test::Ether { .. } | Test::Six(_) => false,
            Test::Layer(layer, _) => layer.udp_port().is_some(),
            _ => true,
        }
    }
}

impl Expr {
    /// The value of the expression, from the values of its tests.
    pub fn holds(&self, test: &dyn Fn(Test) -> bool) -> bool {
        match self {
            Expr::True => true,
            Expr::False => false,
            Expr::Test(of) => test(*of),
            Expr::Not(inner) => !inner.holds(test),
            Expr::All(parts) => parts.iter().all(|part| part.holds(test)),
            Expr::Any(parts) => parts.iter().any(|part| part.holds(test)),
            Expr::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if condition.holds(test) { yes.holds(test) } else { no.holds(test) }
            }
        }
    }
}
