//! The words of the language and their meanings.
//!
//! A type word takes precedence over a name. A name with several meanings (`echo`: a port, an ICMP type)
//! needs a qualifier.

use super::ast::{Carrier, HeaderField, Layer};
use crate::config::{Names, PROTOCOLS};

/// All bits of an Ethernet address.
pub const ETHER_MASK: u64 = 0xffff_ffff_ffff;
/// Protocol numbers (IANA).
pub const ICMP: u8 = 1;
/// TCP.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// DCCP: its ports are at the same offsets as those of TCP and UDP (RFC 4340).
pub const DCCP: u8 = 33;

/// The type of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Host,
    Net,
    Ether,
    Proto,
    Port,
    TcpFlags,
    Fragment,
    Unfragmented,
    Ect,
    Ce,
    Field(HeaderField),
    Layer(Layer),
}

const fn ip(bit: u16, width: u8) -> HeaderField {
    HeaderField { carrier: Carrier::Ip, bit, width }
}

/// `ip tos`, which `ip ect` and `ip ce` test.
pub const TOS: HeaderField = ip(8, 8);
/// `icmp type`.
pub const ICMP_TYPE: HeaderField = HeaderField { carrier: Carrier::Protocol(ICMP), bit: 0, width: 8 };
const TCP_WIN: HeaderField = HeaderField { carrier: Carrier::Protocol(TCP), bit: 14 * 8, width: 16 };

const KINDS: &[(&str, Kind)] = &[
    ("arp", Kind::Layer(Layer::Arp)),
    ("ce", Kind::Ce),
    ("dscp", Kind::Field(ip(8, 6))),
    ("ect", Kind::Ect),
    ("ethertype", Kind::Layer(Layer::EtherType)),
    ("frag", Kind::Fragment),
    ("geneve", Kind::Layer(Layer::Geneve)),
    ("hl", Kind::Field(ip(4, 4))),
    ("host", Kind::Host),
    ("id", Kind::Field(ip(32, 16))),
    ("len", Kind::Field(ip(16, 16))),
    ("mpls", Kind::Layer(Layer::Mpls)),
    ("net", Kind::Net),
    ("opt", Kind::TcpFlags),
    ("port", Kind::Port),
    ("proto", Kind::Proto),
    ("qinq", Kind::Layer(Layer::Qinq)),
    ("tos", Kind::Field(TOS)),
    ("ttl", Kind::Field(ip(64, 8))),
    ("type", Kind::Field(ICMP_TYPE)),
    ("unfrag", Kind::Unfragmented),
    ("vers", Kind::Field(ip(0, 4))),
    ("vlan", Kind::Layer(Layer::Vlan)),
    ("vxlan", Kind::Layer(Layer::Vxlan)),
    ("win", Kind::Field(TCP_WIN)),
];

/// Words that are neither types nor names.
const SYNTAX: &[&str] =
    &["src", "dst", "dest", "ip", "ip6", "ether", "and", "or", "not", "true", "false", "mask", "any", "all"];

const FLAGS: &[(&str, u8)] =
    &[("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

/// Names of ICMP types.
pub const ICMP_TYPES: &[(&str, u8)] = &[
    ("echo", 8),
    ("echo-reply", 0),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
    ("parameterproblem", 12),
    ("redirect", 5),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("sourcequench", 4),
    ("timeexceeded", 11),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("unreachable", 3),
];

/// Ports that Click's manual page lists and that `PortInfo` does not define.
const MORE_PORTS: &[(&str, u8, u16)] = &[("imap3", TCP, 220), ("route", UDP, 520)];

impl Carrier {
    /// Its name in a test.
    pub(super) fn name(self) -> &'static str {
        match self {
            Carrier::Ip => "ip",
            Carrier::Transport => "transp",
            Carrier::TcpUdp => "tcpudp",
            Carrier::Protocol(protocol) => protocol_name(protocol),
        }
    }
}

/// The meaning of a word in its context.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// A type.
    Kind(Kind),
    /// A protocol.
    Protocol(Carrier),
    /// A port.
    Port(u16),
    /// A TCP flag.
    Flag(u8),
    /// An ICMP type.
    IcmpType(u8),
    /// A name without a meaning here, or with several; and what to write instead.
    Unclear { ambiguous: bool, instead: Vec<String> },
    /// Not a word of the language.
    Unknown,
}

/// The name of a protocol, for the canonical text.
pub fn protocol_name(protocol: u8) -> &'static str {
    name_of(PROTOCOLS, protocol).unwrap_or("transp")
}

/// The name of a set of TCP flags that contains one flag.
pub fn flag_name(flags: u8) -> Option<&'static str> {
    name_of(FLAGS, flags)
}

/// The notation of a field with a name, such as `ip ttl`.
pub fn field_name(field: HeaderField) -> Option<String> {
    Some(format!("{} {}", field.carrier.name(), name_of(KINDS, Kind::Field(field))?))
}

/// The name of a type, for messages.
pub fn kind_name(kind: Kind) -> String {
    match kind {
        Kind::Ether => "ether host".to_string(),
        Kind::TcpFlags => "tcp opt".to_string(),
        Kind::Field(field) => field_name(field).unwrap_or_else(|| "[...]".to_string()),
        _ => name_of(KINDS, kind).unwrap_or_default().to_string(),
    }
}

pub(super) fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> Option<&'static str> {
    table.iter().find(|(_, known)| *known == value).map(|(name, _)| *name)
}

pub(super) fn find<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
}

fn port(protocol: u8, word: &str, names: &dyn Names) -> Option<u16> {
    let more = || MORE_PORTS.iter().find(|(name, of, _)| *name == word && *of == protocol).map(|row| row.2);
    names.port(protocol, word).or_else(more)
}

fn transport(word: &str, names: &dyn Names) -> Option<Carrier> {
    match word {
        "tcp" => Some(Carrier::Protocol(TCP)),
        "udp" => Some(Carrier::Protocol(UDP)),
        "tcpudp" => Some(Carrier::TcpUdp),
        "transp" => Some(Carrier::Transport),
        _ => names.protocol(word).map(Carrier::Protocol),
    }
}

/// The meaning of a word after the given type and transport protocol.
pub fn meaning(word: &str, kind: Option<Kind>, proto: Option<Carrier>, names: &dyn Names) -> Meaning {
    let letters = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if !letters || SYNTAX.contains(&word) {
        return Meaning::Unknown;
    }
    if kind.is_none()
        && let Some(found) = find(KINDS, word)
    {
        return Meaning::Kind(found);
    }
    let protocol = transport(word, names);
    let (tcp, udp) = (port(TCP, word, names), port(UDP, word, names));
    let (flag, icmp) = (find(FLAGS, word), find(ICMP_TYPES, word));
    let of = |wanted: Kind| kind.is_none_or(|kind| kind == wanted);
    let carried_by = |numbers: &[u8]| match proto {
        None => true,
        Some(Carrier::Protocol(number)) => numbers.contains(&number),
        Some(Carrier::TcpUdp) => numbers.contains(&TCP) || numbers.contains(&UDP),
        Some(Carrier::Transport | Carrier::Ip) => false,
    };
    // Each meaning of the name, whether it fits here, and the qualifiers that require it.
    let meanings = [
        (protocol.map(Meaning::Protocol), of(Kind::Proto), "ip proto"),
        (tcp.map(Meaning::Port), of(Kind::Port) && carried_by(&[TCP]), "tcp port"),
        (udp.map(Meaning::Port), of(Kind::Port) && carried_by(&[UDP]), "udp port"),
        (flag.map(Meaning::Flag), of(Kind::TcpFlags) && carried_by(&[TCP]), "tcp opt"),
        (icmp.map(Meaning::IcmpType), of(Kind::Field(ICMP_TYPE)) && carried_by(&[ICMP]), "icmp type"),
    ];
    let fitting = meanings.iter().filter(|(_, fits, _)| *fits);
    let mut found: Vec<Meaning> = fitting.filter_map(|(meaning, ..)| meaning.clone()).collect();
    // One port of TCP and UDP is one meaning.
    found.dedup();
    if found.len() == 1 {
        return found.remove(0);
    }
    let known = meanings.iter().filter(|(meaning, ..)| meaning.is_some());
    let instead: Vec<String> = known.map(|(.., text)| format!("`{text} {word}`")).collect();
    if instead.is_empty() {
        return Meaning::Unknown;
    }
    Meaning::Unclear { ambiguous: !found.is_empty(), instead }
}

/// Every word of the language, for suggestions.
pub fn vocabulary() -> impl Iterator<Item = &'static str> {
    let kinds = KINDS.iter().map(|(name, _)| *name);
    let flags = FLAGS.iter().map(|(name, _)| *name);
    let types = ICMP_TYPES.iter().map(|(name, _)| *name);
    // Of several names of a protocol, the one in the canonical text.
    let canonical = |(name, number): &&(&str, u8)| protocol_name(*number) == *name;
    let protocols = PROTOCOLS.iter().filter(canonical).map(|(name, _)| *name);
    let more = ["tcpudp", "transp", "http", "https", "www", "ssh", "dns", "domain", "ftp", "smtp", "telnet"];
    kinds.chain(SYNTAX.iter().copied()).chain(flags).chain(types).chain(protocols).chain(more)
}
