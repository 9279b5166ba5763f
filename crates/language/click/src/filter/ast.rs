//! What an expression says.

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
