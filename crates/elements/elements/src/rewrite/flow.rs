//! Flow identities, their keys, and the record of a mapping.
//!
//! A mapping is one record of two 64-byte lines. The key of the flow that made it leads to the first, the key
//! of its reply flow to the second. Each line holds the whole rewrite of its direction, so that the packet
//! path reads and writes one line and does not need the direction. The state of the whole mapping, such as
//! its age, is computed from both lines on demand.
//!
//! Keys are two words: source and destination address; ports, a mark and the protocol. The mark distinguishes
//! replies if ports do not: echo replies, and the replies of [`Kind::Address`].

use element::steering::Whose;
use ir::program::RecordDelta;
use packet::FlowKey;
use packet::checksum::Delta;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// A key of the flow table.
pub type Key = [u64; 2];

/// Which packets are of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Addresses, ports and protocol.
    Ports,
    /// Addresses and ICMP echo identifier.
    Ping,
    /// Both addresses.
    Pair,
    /// The source address; of replies, the destination address.
    Address,
}

/// The addresses and ports of a flow; ports are 0 if the kind has none. An echo request has its identifier as
/// source port, its reply as destination port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct FlowId {
    /// Source address.
    pub src: u32,
    /// Source port.
    pub sport: u16,
    /// Destination address.
    pub dst: u32,
    /// Destination port.
    pub dport: u16,
}

/// Marks keys of replies, if ports do not distinguish them.
const REPLY: u64 = 1 << 8;
/// Marks the primary key of a flow that is its own reply.
const OWN_REPLY: u64 = 1 << 9;

impl FlowId {
    /// The flow of the replies.
    pub fn reversed(self) -> FlowId {
        FlowId { src: self.dst, sport: self.dport, dst: self.src, dport: self.sport }
    }

    /// Both addresses, as in the header.
    pub fn pair(self) -> u64 {
        u64::from(self.src) << 32 | u64::from(self.dst)
    }

    /// Both ports, as in the header.
    pub fn ports(self) -> u32 {
        u32::from(self.sport) << 16 | u32::from(self.dport)
    }

    /// The flow with these addresses and ports.
    pub fn new(pair: u64, ports: u32) -> FlowId {
        FlowId {
            src: (pair >> 32) as u32,
            sport: (ports >> 16) as u16,
            dst: pair as u32,
            dport: ports as u16,
        }
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst) = (Ipv4Addr::from(self.src), Ipv4Addr::from(self.dst));
        write!(f, "({src}, {}, {dst}, {})", self.sport, self.dport)
    }
}

impl Kind {
    /// The key of a flow.
    pub fn key(self, flow: FlowId, protocol: u8, reply: bool) -> Key {
        let mark = if reply { REPLY } else { 0 };
        match self {
            Kind::Ports => [flow.pair(), u64::from(flow.ports()) << 16 | u64::from(protocol)],
            Kind::Ping => [flow.pair(), u64::from(flow.ports()) << 16 | mark | u64::from(protocol)],
            Kind::Pair => [flow.pair(), 0],
            Kind::Address => [flow.pair(), mark],
        }
    }

    /// The key of replies to a flow that was rewritten to `to`; `None` if ports and identifiers do not
    /// matter.
    pub fn reply_key(self, to: FlowId, protocol: u8) -> Option<FlowKey> {
        let (src_port, dst_port) = match self {
            Kind::Ports => (to.dport, to.sport),
            Kind::Ping => (to.sport, to.sport),
            Kind::Pair | Kind::Address => return None,
        };
        let address = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits));
        Some(FlowKey { src: address(to.dst), dst: address(to.src), protocol, src_port, dst_port })
    }

    /// What identifies these replies for flow steering.
    pub fn replies_to(self, to: FlowId, protocol: u8) -> Whose {
        let address = Ipv4Addr::from_bits;
        match self.reply_key(to, protocol) {
            Some(flow) => Whose::Flow(flow),
            None if self == Kind::Pair => Whose::Pair(address(to.dst), address(to.src)),
            None => Whose::Address(address(to.src)),
        }
    }

    /// What identifies the packets that share the mapping of `flow`, if more than one flow does.
    pub fn shared_by(self, flow: FlowId) -> Option<Whose> {
        let address = Ipv4Addr::from_bits;
        match self {
            Kind::Ports | Kind::Ping => None,
            Kind::Pair => Some(Whose::Pair(address(flow.src), address(flow.dst))),
            Kind::Address => Some(Whose::Source(address(flow.src))),
        }
    }

    /// The primary key of a mapping. If its replies have the same key, no packet has this one: they all find the line
    /// of the replies, as in Click, and only the packet that makes the mapping leaves by the other.
    pub fn primary_key(self, key: Key, reply_key: Key) -> Key {
        [key[0], key[1] | if key == reply_key { OWN_REPLY } else { 0 }]
    }

    /// The flow, protocol and mark of a key.
    pub fn read(self, key: Key) -> (FlowId, u8, bool) {
        (FlowId::new(key[0], (key[1] >> 16) as u32), key[1] as u8, key[1] & REPLY != 0)
    }
}

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;
/// Bytes of a mapping's record.
pub const RECORD_BYTES: usize = 2 * LINE_BYTES;

/// Offsets in a line. Numbers are little-endian, as programs read them.
pub mod at {
    /// Addresses that the packet gets (8 bytes).
    pub const PAIR: u16 = 0;
    /// Ports that the packet gets (4 bytes), or its echo identifier in the low half.
    pub const PORTS: u16 = 8;
    /// Change of the IP header's checksum (2 bytes), see `packet::checksum::Delta`.
    pub const IP_DELTA: u16 = 12;
    /// Change of the transport checksum (2 bytes).
    pub const L4_DELTA: u16 = 14;
    /// Output port (1 byte).
    pub const OUTPUT: u16 = 16;
    /// 1 in the line of the replies (1 byte).
    pub const IS_REPLY: u16 = 17;
    /// Protocol, 0 where mappings know none (1 byte).
    pub const PROTOCOL: u16 = 18;
    /// TCP: bits of what was seen. Others: packets seen, up to 3 (1 byte).
    pub const SEEN: u16 = 19;
    /// Value for the reply annotation (1 byte).
    pub const REPLY_ANNO: u16 = 20;
    /// Input whose specification made the mapping (1 byte).
    pub const INPUT: u16 = 21;
    /// Pattern that it was made with, plus one; 0 for none (2 bytes).
    pub const PATTERN: u16 = 22;
    /// Time of the last packet, nanoseconds (8 bytes).
    pub const LAST_NS: u16 = 24;
    /// TCP: when a SYN or payload last passed without FIN and RST (8 bytes).
    pub const OPEN_NS: u16 = 32;
    /// Which bits of the packet's addresses stay (8 bytes); instead of `OPEN_NS` where only one
    /// address is replaced.
    pub const KEEP_MASK: u16 = 32;
    /// TCP: when a FIN last passed (8 bytes).
    pub const FIN_NS: u16 = 40;
    /// TCP: when a RST last passed (8 bytes).
    pub const RST_NS: u16 = 48;
    /// First line: address of the endpoint's record, 0 for none (8 bytes).
    pub const ENDPOINT: u16 = 56;
    /// Second line: 1 when the mapping goes at the next tick (1 byte).
    pub const CONDEMNED: u16 = 56;
    /// Second line: bits of the lines that several entries of a flow cache use (1 byte).
    pub const HELD: u16 = 57;
    /// Second line: the flow-cache entries that use the first and the second line (3 bytes each).
    pub const HOLDERS: u16 = 58;
}

/// `IP_DELTA` follows from the first word of a key and the line that it leads to, except for
/// [`Kind::Address`], in whose keys one of the two addresses may be that of any packet.
pub const ADDRESSES: RecordDelta = RecordDelta { at: at::IP_DELTA, key: 0, to: at::PAIR };

/// The checksum changes from one flow to another: of the IP header, and of the transport header with its
/// pseudo header. 0 means no change, so that packets keep every bit.
pub fn deltas(kind: Kind, from: FlowId, to: FlowId) -> (u16, u16) {
    let addresses = Delta::NONE.change32(from.src, to.src).change32(from.dst, to.dst);
    let same_addresses = from.pair() == to.pair();
    let ip = if same_addresses { 0 } else { addresses.to_word() };
    let l4 = match kind {
        Kind::Pair | Kind::Address => ip,
        Kind::Ports if from == to => 0,
        Kind::Ports => addresses.change32(from.ports(), to.ports()).to_word(),
        // Addresses are not under the ICMP checksum, and one of the ports is always 0.
        Kind::Ping if from.ports() == to.ports() => 0,
        Kind::Ping => Delta::NONE.change32(from.ports(), to.ports()).to_word(),
    };
    (ip, l4)
}
