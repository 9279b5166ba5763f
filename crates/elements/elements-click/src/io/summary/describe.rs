//! Formats the fields of a packet.

use super::field::{Field, TCP_FLAGS};
use super::options::{self, Which};
use crate::ip::icmp_name;
use md5::{Digest, Md5};
use packet::access::Access;
use packet::anno::{AGGREGATE, EXTRA_LENGTH, EXTRA_PACKETS, FIRST_TIMESTAMP, PAINT};
use packet::view::{icmp, protocol};
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Options of a description.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the extra length annotation adds to lengths.
    pub extra_length: bool,
    /// Whether a packet that is shorter than its IP length is bad.
    pub careful_trunc: bool,
}

/// A packet with its parsed headers.
pub struct Description<'a> {
    packet: &'a Packet,
    bytes: PacketBytes<'a>,
    /// Where the IPv4 header starts, if it is valid.
    ip: Option<usize>,
    header_bytes: usize,
    /// Bytes of the IP packet that are present.
    network_bytes: usize,
    protocol: u8,
    is_first: bool,
    /// Bytes of the packet up to the IP packet's end.
    length: usize,
    extra_bytes: u32,
    /// The first error in the packet.
    bad: Option<String>,
}

/// Appends a time in seconds with six decimals, or with nine if they are needed.
pub fn time_text(out: &mut String, time_ns: u64) {
    out.push_str(&crate::analysis::signed_time::time_text(time_ns));
}

impl<'a> Description<'a> {
    /// Parses a packet's headers.
    pub fn new(packet: &'a Packet, options: Options) -> Description<'a> {
        let bytes = PacketBytes::new(packet);
        let extra_bytes = if options.extra_length { EXTRA_LENGTH.load(&packet.anno) as u32 } else { 0 };
        let mut this = Description {
            packet,
            length: bytes.len(),
            bytes,
            ip: None,
            header_bytes: 0,
            network_bytes: 0,
            protocol: 0,
            is_first: false,
            extra_bytes,
            bad: None,
        };
        this.look(options);
        this
    }

    fn look(&mut self, options: Options) {
        let at = match (self.packet.net, self.packet.data()) {
            (NO_HEADER, _) => return,
            (net, data) if net < data => return,
            (net, data) => usize::from(net - data),
        };
        let there = self.bytes.len().saturating_sub(at);
        let (Some(first), Some(ip_len)) = (self.bytes.u8(at), self.bytes.u16(at + 2)) else {
            self.bad.get_or_insert("truncated IP header".into());
            return;
        };
        let (version, header_bytes) = (first >> 4, usize::from(first & 15) * 4);
        let ip_len = usize::from(ip_len);
        let wrong = match () {
            () if version != 4 => Some(format!("IP version {version}")),
            () if header_bytes < 20 => Some(format!("IP header length {}", header_bytes / 4)),
            () if ip_len < header_bytes => Some(format!("IP length {ip_len}")),
            () => None,
        };
        if wrong.is_some() {
            self.bad = wrong;
            return;
        }
        let known = there + self.extra_bytes as usize;
        if options.careful_trunc && known < ip_len {
            self.bad = Some(format!("truncated IP missing {}", ip_len - known));
        }
        (self.ip, self.header_bytes, self.network_bytes) = (Some(at), header_bytes, there.min(ip_len));
        self.length -= there.saturating_sub(ip_len);
        self.protocol = self.bytes.u8(at + 9).unwrap_or(0);
        self.is_first = self.bytes.u16(at + 6).is_none_or(|fragment| fragment & 0x1fff == 0);
        // An IP length of 65,535 may stand for more: the field holds no larger number.
        let full = self.network_bytes + self.extra_bytes as usize;
        self.extra_bytes = if ip_len == 0xffff { full.saturating_sub(0xffff) as u32 } else { 0 };
    }

    /// The first error in the packet that the written fields have shown.
    pub fn bad(&self) -> Option<&str> {
        self.bad.as_deref()
    }

    /// Appends a field, or `-` if the packet does not have it.
    pub fn write(&mut self, field: Field, out: &mut String) {
        if self.try_write(field, out).is_none() {
            out.push('-');
        }
    }

    /// Bytes from the transport header on that are present.
    fn transport_bytes(&self) -> usize {
        self.network_bytes.saturating_sub(self.header_bytes)
    }

    /// The `N` bytes at an offset of the IP header.
    fn ip<const N: usize>(&mut self, offset: usize) -> Option<[u8; N]> {
        match self.ip {
            Some(at) if offset + N <= self.network_bytes => self.bytes.get(at + offset),
            Some(_) => self.missing("truncated IP header capture"),
            None => self.missing("no IP header"),
        }
    }

    /// The `N` bytes at an offset of the transport header, if it has one of these protocols.
    fn transport<const N: usize>(&mut self, protocols: &[u8], name: &str, offset: usize) -> Option<[u8; N]> {
        let Some(at) = self.ip else { return self.missing("no IP header") };
        if self.network_bytes < 10 {
            return self.missing("truncated IP header capture");
        }
        // Another protocol is no error.
        if !protocols.contains(&self.protocol) {
            return None;
        }
        if !self.is_first {
            return self.missing(&format!("fragmented {name} header"));
        }
        let (there, need) = (self.transport_bytes(), offset + N);
        if there >= need {
            return self.bytes.get(at + self.header_bytes + offset);
        }
        let captured = EXTRA_LENGTH.load(&self.packet.anno) as usize + there >= need;
        self.missing(&format!("truncated {name} header{}", if captured { " capture" } else { "" }))
    }

    fn missing<T>(&mut self, what: &str) -> Option<T> {
        self.bad.get_or_insert_with(|| what.to_string());
        None
    }

    /// The `N` bytes at an offset of the Ethernet header, which must end where the network header starts.
    fn ethernet<const N: usize>(&mut self, offset: u16) -> Option<[u8; N]> {
        let Packet { mac, net, .. } = *self.packet;
        let data = self.packet.data();
        let start = if mac == NO_HEADER { data } else { mac };
        if start < data || (net != NO_HEADER && net != start.saturating_add(14)) {
            return self.missing("Ethernet header");
        }
        self.bytes.get(usize::from(start - data + offset))
    }

    /// Where the payload starts, from the packet's first byte, and its length by the headers.
    fn payload(&self) -> (usize, usize) {
        let Some(at) = self.ip else { return (0, self.length) };
        let ip_len = usize::from(self.bytes.u16(at + 2).unwrap_or(0));
        let mut offset = at + self.header_bytes;
        if self.is_first {
            offset += match self.protocol {
                protocol::TCP => {
                    let words = self.bytes.u8(offset + 12).filter(|_| self.transport_bytes() >= 13);
                    words.map(|byte| usize::from(byte >> 4) * 4).filter(|bytes| *bytes >= 20).unwrap_or(20)
                }
                protocol::UDP | protocol::UDP_LITE => 8,
                _ => 0,
            };
        }
        (offset, (at + ip_len).saturating_sub(offset))
    }

    fn try_write(&mut self, field: Field, out: &mut String) -> Option<()> {
        let packet = self.packet;
        match field {
            Field::None => return None,
            Field::Timestamp | Field::NanoTimestamp => time_text(out, packet.timestamp_ns),
            Field::Seconds => number(out, packet.timestamp_ns / 1_000_000_000),
            Field::Microseconds => number(out, packet.timestamp_ns % 1_000_000_000 / 1_000),
            Field::AllMicroseconds => number(out, packet.timestamp_ns / 1_000),
            Field::FirstTimestamp | Field::FirstNanoTimestamp => {
                time_text(out, FIRST_TIMESTAMP.load(&packet.anno))
            }
            Field::Count => number(out, 1 + EXTRA_PACKETS.load(&packet.anno)),
            Field::Link | Field::Paint => number(out, PAINT.load(&packet.anno)),
            Field::Direction => match PAINT.load(&packet.anno) {
                0 => out.push('>'),
                1 => out.push('<'),
                link => number(out, link),
            },
            Field::Aggregate => number(out, AGGREGATE.load(&packet.anno)),
            Field::WireLength => number(out, self.bytes.len() as u64),
            Field::Thread => out.push('0'),
            Field::EthSource => mac_text(out, self.ethernet(6)?),
            Field::EthDestination => mac_text(out, self.ethernet(0)?),
            Field::EthType => {
                let _ = write!(out, "{:04X}", u16::from_be_bytes(self.ethernet(12)?));
            }
            Field::Source => ip_text(out, self.ip(12)?),
            Field::Destination => ip_text(out, self.ip(16)?),
            Field::Tos => number(out, self.ip::<1>(1)?[0]),
            Field::Dscp => number(out, self.ip::<1>(1)?[0] >> 2),
            Field::Ecn => {
                let ecn = usize::from(self.ip::<1>(1)?[0] & 3);
                out.push_str(["no", "ect1", "ect2", "ce"].get(ecn)?);
            }
            Field::Ttl => number(out, self.ip::<1>(8)?[0]),
            Field::Fragment => {
                let fragment = u16::from_be_bytes(self.ip(6)?);
                out.push(match (fragment & 0x3fff, fragment & 0x1fff) {
                    (0, _) if fragment & 0x4000 != 0 => '!',
                    (0, _) => '.',
                    (_, 0) => 'F',
                    _ => 'f',
                });
            }
            Field::FragmentOffset => {
                let fragment = u16::from_be_bytes(self.ip(6)?);
                number(out, u64::from(fragment & 0x1fff) * 8);
                out.push_str(if fragment & 0x2000 != 0 { "+" } else { "" });
                out.push_str(if fragment & 0x4000 != 0 { "!" } else { "" });
            }
            Field::Id => number(out, u16::from_be_bytes(self.ip(4)?)),
            Field::Sum => number(out, u16::from_be_bytes(self.ip(10)?)),
            Field::Protocol => match self.ip::<1>(9)?[0] {
                protocol::TCP => out.push('T'),
                protocol::UDP => out.push('U'),
                protocol::ICMP => out.push('I'),
                other => number(out, other),
            },
            Field::HeaderLength => {
                self.ip::<1>(0)?;
                number(out, self.header_bytes as u64);
            }
            Field::IpOptions => {
                let Some(at) = self.ip else { return self.missing("no IP header") };
                if self.network_bytes < self.header_bytes {
                    return self.missing("truncated IP header capture");
                }
                self.options(at + 20, self.header_bytes - 20, |options| options::write_ip(options, out))?;
            }
            Field::Length => {
                let length = match self.ip {
                    Some(at) => usize::from(self.bytes.u16(at + 2)?),
                    None => self.length,
                };
                number(out, length as u64 + u64::from(self.extra_bytes));
            }
            Field::CaptureLength => {
                let there = if self.ip.is_some() { self.network_bytes } else { self.length };
                number(out, there as u64);
            }
            Field::SourcePort => number(out, self.port(0)?),
            Field::DestinationPort => number(out, self.port(2)?),
            Field::TcpSeq => number(out, u32::from_be_bytes(self.tcp(4)?)),
            Field::TcpAck => number(out, u32::from_be_bytes(self.tcp(8)?)),
            Field::TcpOffset => number(out, u64::from(self.tcp::<1>(12)?[0] >> 4) * 4),
            Field::TcpFlags => {
                let flags = u16::from_be_bytes(self.tcp(12)?) & 0x1ff;
                let names = TCP_FLAGS.chars().enumerate().filter(|(bit, _)| flags & 1 << bit != 0);
                out.extend(names.map(|(_, name)| name));
                out.push_str(if flags == 0 { "." } else { "" });
            }
            Field::TcpWindow => number(out, u16::from_be_bytes(self.tcp(14)?)),
            Field::TcpUrgent => number(out, u16::from_be_bytes(self.tcp(18)?)),
            Field::TcpOptions => self.tcp_options(Which::All, out)?,
            Field::TcpNoTimestampOptions => self.tcp_options(Which::NoTimestamps, out)?,
            Field::TcpSackOptions => self.tcp_options(Which::Sack, out)?,
            Field::UdpLength => {
                number(out, u16::from_be_bytes(self.transport(&[protocol::UDP], "UDP", 4)?));
            }
            Field::IcmpType => number(out, self.icmp::<1>(0)?[0]),
            Field::IcmpTypeName => {
                let icmp_type = self.icmp::<1>(0)?[0];
                match icmp_name::of_type(icmp_type) {
                    Some(name) => out.push_str(name),
                    None => number(out, icmp_type),
                }
            }
            Field::IcmpCode => number(out, self.icmp::<1>(1)?[0]),
            Field::IcmpFlow | Field::IcmpSeq => {
                if !icmp::has_id(self.icmp::<1>(0)?[0]) {
                    return None;
                }
                let at = if field == Field::IcmpFlow { 4 } else { 6 };
                number(out, u16::from_be_bytes(self.icmp(at)?));
            }
            Field::IcmpNextMtu => {
                if self.icmp::<2>(0)? != [3, 4] {
                    return None;
                }
                number(out, u16::from_be_bytes(self.icmp(6)?));
            }
            Field::Payload => {
                let bytes = self.payload_bytes()?;
                quote_bytes(out, &bytes);
            }
            Field::PayloadMd5 => digest_text(out, Md5::digest(self.payload_bytes()?).into()),
            Field::PayloadMd5Hex => {
                for byte in Md5::digest(self.payload_bytes()?) {
                    let _ = write!(out, "{byte:02x}");
                }
            }
            Field::PayloadLength => {
                let (_, length) = self.payload();
                number(out, length as u64 + u64::from(self.extra_bytes));
            }
        }
        Some(())
    }

    /// The bytes of the payload that are present.
    fn payload_bytes(&self) -> Option<Vec<u8>> {
        let (offset, length) = self.payload();
        let end = (offset + length).min(self.length);
        let mut bytes = vec![0; end.checked_sub(offset)?];
        self.bytes.copy_out(offset, &mut bytes).then_some(bytes)
    }

    fn port(&mut self, offset: usize) -> Option<u16> {
        let protocols = [protocol::TCP, protocol::UDP, protocol::DCCP, protocol::UDP_LITE];
        self.transport(&protocols, "TCP/UDP", offset).map(u16::from_be_bytes)
    }

    fn tcp<const N: usize>(&mut self, offset: usize) -> Option<[u8; N]> {
        self.transport(&[protocol::TCP], "TCP", offset)
    }

    /// Appends options of the TCP header.
    fn tcp_options(&mut self, which: Which, out: &mut String) -> Option<()> {
        let header_bytes = usize::from(self.tcp::<1>(12)?[0] >> 4) * 4;
        if header_bytes > 20 && self.transport_bytes() < header_bytes {
            return self.missing("truncated TCP header");
        }
        let at = self.ip? + self.header_bytes + 20;
        self.options(at, header_bytes.saturating_sub(20), |bytes| options::write_tcp(bytes, which, out))
    }

    /// Calls a function with bytes of options.
    fn options(&self, at: usize, length: usize, write: impl FnOnce(&[u8])) -> Option<()> {
        let mut copy = [0; options::MOST_BYTES];
        let copy = copy.get_mut(..length)?;
        self.bytes.copy_out(at, copy).then(|| write(copy))
    }

    fn icmp<const N: usize>(&mut self, offset: usize) -> Option<[u8; N]> {
        self.transport(&[protocol::ICMP], "ICMP", offset)
    }
}

fn number(out: &mut String, value: impl Into<u64>) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", value.into());
}

fn ip_text(out: &mut String, address: [u8; 4]) {
    let _ = write!(out, "{}", Ipv4Addr::from(address));
}

fn mac_text(out: &mut String, [a, b, c, d, e, f]: [u8; 6]) {
    let _ = write!(out, "{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{f:02X}");
}

/// Appends a digest as Click writes it: 22 digits of 6 bits, the lowest bits of each byte first.
fn digest_text(out: &mut String, digest: [u8; 16]) {
    const DIGITS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";
    let bits = u128::from_le_bytes(digest);
    out.extend((0..22).map(|at| char::from(DIGITS[(bits >> (at * 6)) as usize & 63])));
}

/// Appends bytes in double quotes, with escapes for bytes that are not printable ASCII.
fn quote_bytes(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        let _ = match byte {
            b'"' | b'\\' | b'$' => write!(out, "\\{}", char::from(byte)),
            b'\t' => out.write_str("\\t"),
            b'\n' => out.write_str("\\n"),
            b'\r' => out.write_str("\\r"),
            b' '..=b'~' => out.write_char(char::from(byte)),
            _ => write!(out, "\\{byte:03o}"),
        };
    }
    out.push('"');
}
