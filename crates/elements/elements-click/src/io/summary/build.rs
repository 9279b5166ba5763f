//! Builds a packet from the fields of a line.

use super::field::{Field, TCP_FLAGS};
use super::options::{read_ip, read_tcp};
use crate::ip::icmp_name;
use click::config::parse::{self, plain};
use click::config::unquote_bytes;
use diag::{Span, Spanned};
use packet::checksum;
use packet::view::{icmp, protocol};
use std::net::Ipv4Addr;

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const DEFAULT_TTL: u8 = 100;
/// The most bytes of options in an IPv4 or TCP header.
const MOST_OPTION_BYTES: usize = 40;

/// Values for fields that a line does not give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defaults {
    /// IP protocol.
    pub protocol: u8,
    /// Addresses and ports, from a `!flowid` line.
    pub flow: Option<Flow>,
    /// From an `!aggregate` line.
    pub aggregate: Option<u32>,
    /// Whether fragment offsets count units of 8 bytes, as in the first version of the format.
    pub old_offsets: bool,
}

/// Addresses and ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Source and destination address.
    pub addresses: [Ipv4Addr; 2],
    /// Source and destination port.
    pub ports: [u16; 2],
}

/// A packet that a line describes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Built {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the IP header and its payload start; `None` for other packets.
    pub ip: Option<(usize, usize)>,
    /// Whether it starts with an Ethernet header.
    pub has_ethernet: bool,
    /// Timestamp.
    pub timestamp_ns: u64,
    /// Annotations.
    pub first_timestamp_ns: u64,
    /// The number of packets that the line describes.
    pub count: u32,
    /// Paint annotation.
    pub paint: u8,
    /// Aggregate annotation.
    pub aggregate: u32,
    /// Bytes of the packet that the line does not describe.
    pub extra_bytes: u32,
}

/// The fields of a line.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The packet, with the values that do not depend on other fields.
    built: Built,
    aggregate: Option<u32>,
    ethernet: Option<[u8; ETHERNET_BYTES]>,
    addresses: [Option<Ipv4Addr>; 2],
    /// The IP header with TOS, identification, TTL and checksum; the rest of it is set at the end.
    ip: [u8; IPV4_BYTES],
    fragment: Option<u16>,
    protocol: Option<u8>,
    ip_header_bytes: Option<usize>,
    ip_options: Vec<u8>,
    ip_len: Option<u32>,
    wire_len: Option<u32>,
    ports: [Option<u16>; 2],
    tcp: [u8; TCP_BYTES],
    tcp_header_bytes: Option<usize>,
    tcp_options: Vec<u8>,
    udp_len: Option<u16>,
    icmp: [u8; 8],
    icmp_type_known: bool,
    has_icmp_words: bool,
    payload: Option<Vec<u8>>,
    payload_len: Option<u32>,
}

fn at_most(text: &str, most: u64) -> Option<u64> {
    plain(text, parse::u64).filter(|value| *value <= most)
}

/// Overwrites bytes, if they are there.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// The number of an IP protocol: `T`, `U`, `I`, a number or a name.
pub fn protocol_number(text: &str) -> Option<u8> {
    match text {
        "T" => Some(protocol::TCP),
        "U" => Some(protocol::UDP),
        "I" => Some(protocol::ICMP),
        _ => plain(text, parse::protocol),
    }
}

/// Parses `F`, `f`, `.`, `!`, or an offset followed by `+` and `!`.
fn fragment(text: &str, old_offsets: bool) -> Option<u16> {
    match text {
        "." => return Some(0),
        "!" => return Some(0x4000),
        "F" => return Some(0x2000),
        // Some offset other than 0.
        "f" => return Some(100),
        _ => {}
    }
    let digits = text.trim_end_matches(['+', '!']);
    let offset = plain(digits, parse::u64)?;
    let units = if old_offsets { offset } else { offset >> 3 };
    let flags = text
        .get(digits.len()..)?
        .bytes()
        .fold(0, |flags, flag| flags | if flag == b'+' { 0x2000 } else { 0x4000 });
    u16::try_from(units).ok().filter(|units| *units <= 0x1fff).map(|units| units | flags)
}

fn tcp_flags(text: &str) -> Option<u16> {
    if text == "." {
        return Some(0);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return at_most(text, 0xfff).map(|flags| flags as u16);
    }
    text.chars().try_fold(0, |flags, c| {
        // Older versions have other names for the last two bits.
        let c = match c {
            'X' => 'E',
            'Y' | 'W' => 'C',
            other => other,
        };
        TCP_FLAGS.chars().position(|known| known == c).map(|bit| flags | 1 << bit)
    })
}

impl Draft {
    /// No fields yet.
    pub fn new() -> Draft {
        let mut draft = Draft { built: Built { count: 1, ..Built::default() }, ..Draft::default() };
        draft.ip[8] = DEFAULT_TTL;
        draft
    }

    /// Sets a field; `None` if its text is invalid.
    pub fn set(&mut self, field: Field, text: &str, defaults: &Defaults) -> Option<()> {
        let byte = |text| at_most(text, 0xff).map(|value| value as u8);
        let word = |text| at_most(text, 0xffff).map(|value| value as u16);
        let long = |text| at_most(text, 0xffff_ffff).map(|value| value as u32);
        let time_ns = |text| plain(text, parse::seconds_ns);
        let built = &mut self.built;
        match field {
            Field::None | Field::Thread | Field::CaptureLength | Field::PayloadMd5 | Field::PayloadMd5Hex => {
            }
            Field::Timestamp | Field::NanoTimestamp => built.timestamp_ns = time_ns(text)?,
            Field::Seconds => {
                built.timestamp_ns =
                    u64::from(long(text)?) * 1_000_000_000 + built.timestamp_ns % 1_000_000_000;
            }
            Field::Microseconds => {
                let fraction_ns = at_most(text, 999_999)? * 1_000;
                built.timestamp_ns = built.timestamp_ns / 1_000_000_000 * 1_000_000_000 + fraction_ns;
            }
            Field::AllMicroseconds => built.timestamp_ns = plain(text, parse::u64)?.checked_mul(1_000)?,
            Field::FirstTimestamp | Field::FirstNanoTimestamp => built.first_timestamp_ns = time_ns(text)?,
            Field::Count => built.count = long(text)?.max(1),
            Field::Link | Field::Paint | Field::Direction => {
                built.paint = match text {
                    ">" | "L" => 0,
                    "<" | "R" | "X" => 1,
                    other => byte(other)?,
                };
            }
            Field::Aggregate => self.aggregate = Some(long(text)?),
            Field::WireLength => self.wire_len = Some(long(text)?),
            Field::EthSource | Field::EthDestination => {
                let address = plain(text, parse::ether)?;
                put(self.ethernet(), if field == Field::EthSource { 6 } else { 0 }, &address);
            }
            Field::EthType => {
                let ethertype = u16::from_str_radix(text, 16).ok()?;
                put(self.ethernet(), 12, &ethertype.to_be_bytes());
            }
            Field::Source => self.addresses[0] = Some(text.parse().ok()?),
            Field::Destination => self.addresses[1] = Some(text.parse().ok()?),
            Field::Tos => self.ip[1] = byte(text)?,
            Field::Dscp => self.ip[1] = self.ip[1] & 3 | (at_most(text, 63)? as u8) << 2,
            Field::Ecn => {
                let ecn = match text {
                    "no" | "0" => 0,
                    "ect1" | "ECT(1)" | "1" => 1,
                    "ect2" | "ECT(0)" | "2" => 2,
                    "ce" | "CE" | "3" => 3,
                    _ => return None,
                };
                self.ip[1] = self.ip[1] & !3 | ecn;
            }
            Field::Ttl => self.ip[8] = byte(text)?,
            Field::Fragment => {
                // An offset has precedence: it has more information.
                let fragment = fragment(text, defaults.old_offsets)?;
                self.fragment.get_or_insert(fragment);
            }
            Field::FragmentOffset => self.fragment = Some(fragment(text, defaults.old_offsets)?),
            Field::Id => put(&mut self.ip, 4, &word(text)?.to_be_bytes()),
            Field::Sum => put(&mut self.ip, 10, &word(text)?.to_be_bytes()),
            Field::Protocol => self.protocol = Some(protocol_number(text)?),
            Field::HeaderLength => self.ip_header_bytes = Some(at_most(text, 60)? as usize),
            Field::IpOptions => self.ip_options = read_ip(text)?,
            Field::Length => self.ip_len = Some(long(text)?),
            Field::SourcePort => self.ports[0] = Some(word(text)?),
            Field::DestinationPort => self.ports[1] = Some(word(text)?),
            Field::TcpSeq => put(&mut self.tcp, 4, &long(text)?.to_be_bytes()),
            Field::TcpAck => put(&mut self.tcp, 8, &long(text)?.to_be_bytes()),
            Field::TcpOffset => self.tcp_header_bytes = Some(at_most(text, 60)? as usize),
            Field::TcpFlags => put(&mut self.tcp, 12, &tcp_flags(text)?.to_be_bytes()),
            Field::TcpWindow => put(&mut self.tcp, 14, &word(text)?.to_be_bytes()),
            Field::TcpUrgent => put(&mut self.tcp, 18, &word(text)?.to_be_bytes()),
            Field::TcpOptions => self.tcp_options = read_tcp(text)?,
            Field::TcpNoTimestampOptions | Field::TcpSackOptions if self.tcp_options.is_empty() => {
                self.tcp_options = read_tcp(text)?;
            }
            // `tcp_opt` has them already.
            Field::TcpNoTimestampOptions | Field::TcpSackOptions => {}
            Field::UdpLength => self.udp_len = Some(word(text)?),
            Field::IcmpType | Field::IcmpTypeName => {
                self.icmp[0] = icmp_name::number(text).or_else(|| byte(text))?;
                self.icmp_type_known = true;
            }
            Field::IcmpCode => self.icmp[1] = byte(text)?,
            Field::IcmpFlow => self.icmp_word(4, word(text)?),
            Field::IcmpSeq | Field::IcmpNextMtu => self.icmp_word(6, word(text)?),
            Field::Payload => self.payload = Some(unquote_bytes(&Spanned::derived(text, Span::NONE))),
            Field::PayloadLength => self.payload_len = Some(long(text)?),
        }
        Some(())
    }

    fn ethernet(&mut self) -> &mut [u8; ETHERNET_BYTES] {
        self.ethernet.get_or_insert([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0])
    }

    fn icmp_word(&mut self, at: usize, value: u16) {
        self.has_icmp_words = true;
        put(&mut self.icmp, at, &value.to_be_bytes());
    }

    /// Builds the packet. With `checksum`, it has all its bytes and correct checksums.
    pub fn build(&self, defaults: &Defaults, checksum: bool) -> Built {
        let mut built = Built {
            has_ethernet: self.ethernet.is_some(),
            aggregate: self.aggregate.or(defaults.aggregate).unwrap_or(0),
            ..self.built.clone()
        };
        built.bytes.extend(self.ethernet.iter().flatten());
        let net = built.bytes.len();
        let mut want = self.wire_len.map_or(0, |len| len as usize);
        if let Some(ip_len) = self.ip_len {
            want = net + ip_len as usize;
        }
        if self.ethernet.is_none_or(|header| header[12..] == [8, 0]) {
            want = self.add_ip(&mut built, net, want, defaults, checksum);
        } else if let Some(payload) = &self.payload {
            built.bytes.extend_from_slice(payload);
            want = want.max(built.bytes.len());
        }
        built.extra_bytes = want.saturating_sub(built.bytes.len()).try_into().unwrap_or(u32::MAX);
        built
    }

    /// Adds the IP packet. Returns the length that the whole packet should have.
    fn add_ip(
        &self,
        built: &mut Built,
        net: usize,
        want: usize,
        defaults: &Defaults,
        checksum: bool,
    ) -> usize {
        let proto = self.protocol.unwrap_or(defaults.protocol);
        let fragment = self.fragment.unwrap_or(0);
        let least_bytes = IPV4_BYTES + self.ip_options.len().next_multiple_of(4);
        let mut ip_bytes =
            self.ip_header_bytes.map_or(IPV4_BYTES, |bytes| bytes.next_multiple_of(4)).max(least_bytes);
        let mut transport = if fragment & 0x1fff == 0 { self.transport(proto, defaults) } else { vec![] };
        let mut payload_len = self.payload_len.map(|len| len as usize);
        if let Some(payload) = &self.payload {
            payload_len = Some(payload_len.unwrap_or(0).max(payload.len()));
        }
        let mut want = want;
        match payload_len {
            Some(len) if want == 0 => want = net + ip_bytes + transport.len() + len,
            Some(len) => {
                // The line gives the lengths of the packet and of its payload: the difference is options.
                let mut left = want.saturating_sub(net + ip_bytes + transport.len() + len);
                if transport.len() == TCP_BYTES && proto == protocol::TCP && self.tcp_header_bytes.is_none() {
                    let options = (left & !3).min(MOST_OPTION_BYTES);
                    transport.resize(TCP_BYTES + options, 0);
                    transport[12] = transport[12] & 15 | (((TCP_BYTES + options) / 4) << 4) as u8;
                    left -= options;
                }
                if ip_bytes == IPV4_BYTES && self.ip_header_bytes.is_none() {
                    ip_bytes += (left & !3).min(MOST_OPTION_BYTES);
                }
            }
            None if want > net + ip_bytes => transport.truncate(want - net - ip_bytes),
            None if want > 0 => transport.clear(),
            None => {}
        }
        let payload = self.payload.as_deref().unwrap_or_default();
        let there = ip_bytes + transport.len() + payload.len();
        let ip_len = if want > net { (want - net).min(0xffff) } else { there.min(0xffff) };
        let flow = defaults.flow.map(|flow| flow.addresses);
        let [source, destination] = [0, 1]
            .map(|at| self.addresses[at].or(flow.map(|flow| flow[at])).unwrap_or(Ipv4Addr::UNSPECIFIED));
        let mut ip = self.ip.to_vec();
        ip.resize(ip_bytes, 0);
        (ip[0], ip[9]) = (0x40 | (ip_bytes / 4) as u8, proto);
        put(&mut ip, IPV4_BYTES, &self.ip_options);
        put(&mut ip, 2, &(ip_len as u16).to_be_bytes());
        put(&mut ip, 6, &fragment.to_be_bytes());
        put(&mut ip, 12, &source.octets());
        put(&mut ip, 16, &destination.octets());
        if proto == protocol::UDP {
            let len = self.udp_len.unwrap_or((ip_len - ip_bytes.min(ip_len)) as u16);
            put(&mut transport, 4, &len.to_be_bytes());
        }
        built.bytes.extend_from_slice(&ip);
        built.bytes.extend_from_slice(&transport);
        built.bytes.extend_from_slice(payload);
        built.ip = Some((net, net + ip_bytes));
        if checksum {
            let end = (net + ip_len).max(built.bytes.len());
            built.bytes.resize(end, 0);
            set_checksums(&mut built.bytes, net, ip_len);
        }
        want
    }

    /// The transport header.
    fn transport(&self, proto: u8, defaults: &Defaults) -> Vec<u8> {
        let mut header = match proto {
            protocol::TCP => {
                let least_bytes = TCP_BYTES + self.tcp_options.len().next_multiple_of(4);
                let bytes = self.tcp_header_bytes.unwrap_or(TCP_BYTES).next_multiple_of(4).max(least_bytes);
                let mut header = self.tcp.to_vec();
                header.resize(bytes, 0);
                put(&mut header, TCP_BYTES, &self.tcp_options);
                header[12] = header[12] & 15 | ((bytes / 4) << 4) as u8;
                header
            }
            protocol::UDP | protocol::UDP_LITE => vec![0; 8],
            protocol::DCCP => vec![0; 12],
            protocol::ICMP => {
                let mut header = self.icmp.to_vec();
                let words = !self.icmp_type_known || icmp::has_id(header[0]) || header[0] == 3;
                if self.has_icmp_words && !words {
                    header[4..].fill(0);
                }
                return header;
            }
            _ => return vec![],
        };
        let flow = defaults.flow.map(|flow| flow.ports);
        for (at, place) in header.chunks_exact_mut(2).take(2).enumerate() {
            let port = self.ports[at].or(flow.map(|ports| ports[at])).unwrap_or(0);
            place.copy_from_slice(&port.to_be_bytes());
        }
        header
    }
}

/// Sets the checksums of a whole IPv4 packet.
pub fn set_checksums(bytes: &mut [u8], net: usize, ip_len: usize) {
    let header_bytes = usize::from(bytes[net] & 15) * 4;
    let _ = checksum::set_ipv4_header(bytes, net, header_bytes);
    let fragment = u16::from_be_bytes([bytes[net + 6], bytes[net + 7]]);
    let (trans, len) = (net + header_bytes, ip_len.saturating_sub(header_bytes));
    if fragment & 0x3fff != 0 {
        return;
    }
    let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let proto = bytes[net + 9];
    let pseudo = checksum::pseudo_ipv4(address(net + 12), address(net + 16), proto, len as u16);
    let (field, sum) = match proto {
        protocol::TCP => (checksum::TCP_CHECK, checksum::tcp(bytes, trans, len, pseudo)),
        protocol::UDP => (checksum::UDP_CHECK, checksum::udp(bytes, trans, len, pseudo)),
        protocol::ICMP => (checksum::ICMP_CHECK, checksum::icmp(bytes, trans, len)),
        _ => return,
    };
    // A truncated header may have no checksum field.
    if let Some(sum) = sum {
        put(bytes, trans + field, &sum.to_be_bytes());
    }
}
