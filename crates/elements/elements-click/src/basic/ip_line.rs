//! An IPv4 packet as a line in the format of tcpdump, as Click's `IPPrint` writes it.

use crate::ip::icmp_name;
use packet::view::protocol::{ICMP, TCP, UDP};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The fields of the IP header that are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sight {
    pub(super) id: bool,
    pub(super) ttl: bool,
    pub(super) tos: bool,
    pub(super) length: bool,
    /// Whether numbers of ICMP echoes are in network order.
    pub(super) swap: bool,
}

/// Bytes that read as 0 past their end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.u8(at), self.u8(at + 1)])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) << 16 | u32::from(self.u16(at + 2))
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        Ipv4Addr::from(self.u32(at))
    }

    fn header_bytes(&self) -> usize {
        usize::from(self.u8(0) & 15) * 4
    }
}

/// A packet that is being formatted.
struct Packet<'a> {
    ip: Bytes<'a>,
    trans: Bytes<'a>,
    /// Bytes of the transport segment that are there.
    there: usize,
    /// Bytes of the packet from its front.
    length: usize,
    is_first: bool,
}

/// Appends the line of the packet whose IP header starts `bytes`. `trans` is the offset of its transport
/// header, and `front` the offset of the packet's first byte. Returns the offset of the payload; `None` if
/// the IP header is truncated.
pub(super) fn describe(
    bytes: &[u8],
    trans: usize,
    front: usize,
    sight: &Sight,
    line: &mut String,
) -> Option<usize> {
    if bytes.len() < 20 {
        line.push_str("truncated-ip");
        return None;
    }
    let ip = Bytes(bytes);
    let payload_bytes = usize::from(ip.u16(2)).saturating_sub(ip.header_bytes());
    let segment = bytes.get(trans..).unwrap_or_default();
    let fragment = ip.u16(6) & 0x3fff;
    let packet = Packet {
        there: segment.len().min(payload_bytes),
        trans: Bytes(segment),
        length: bytes.len().saturating_sub(front),
        is_first: fragment & 0x1fff == 0,
        ip,
    };
    let ip = &packet.ip;
    for (shown, name, value) in [
        (sight.id, "id", ip.u16(4)),
        (sight.ttl, "ttl", ip.u8(8).into()),
        (sight.tos, "tos", ip.u8(1).into()),
        (sight.length, "length", ip.u16(2)),
    ] {
        if shown {
            // Writing to a string cannot fail, here and below.
            let _ = write!(line, "{name} {value} ");
        }
    }
    let protocol = ip.u8(9);
    match protocol {
        TCP => packet.tcp(line),
        UDP => packet.udp(line),
        ICMP => packet.icmp(sight, line),
        _ => {
            packet.addresses(line);
            let _ = write!(line, ": ip-proto-{protocol}");
        }
    }
    if fragment != 0 {
        let more = if fragment & 0x2000 != 0 { "+" } else { "" };
        let at = (fragment & 0x1fff) << 3;
        let _ = write!(line, " (frag {}:{payload_bytes}@{at}{more})", ip.u16(4));
    }
    let header_bytes = match protocol {
        TCP if packet.is_first => usize::from(packet.trans.u8(12) >> 4) * 4,
        UDP if packet.is_first => 8,
        _ => 0,
    };
    Some(trans + header_bytes)
}

impl Packet<'_> {
    fn addresses(&self, line: &mut String) {
        let _ = write!(line, "{} > {}", self.ip.address(12), self.ip.address(16));
    }

    /// Appends addresses and ports. If there are no ports, ends the line and returns false.
    fn endpoints(&self, protocol: &str, line: &mut String) -> bool {
        if self.there < 4 || !self.is_first {
            self.addresses(line);
            let _ = write!(line, ": {}{protocol}", if self.is_first { "truncated-" } else { "" });
            return false;
        }
        let (source, destination) = (self.ip.address(12), self.ip.address(16));
        let _ = write!(line, "{source}.{} > {destination}.{}: ", self.trans.u16(0), self.trans.u16(2));
        true
    }

    fn tcp(&self, line: &mut String) {
        if !self.endpoints("tcp", line) {
            return;
        }
        if self.there < 14 {
            return line.push_str("truncated-tcp");
        }
        let (flags, ip_bytes) = (self.trans.u8(13), self.ip.u16(2));
        let headers = self.ip.header_bytes() + usize::from(self.trans.u8(12) >> 4) * 4;
        // Contradictory lengths give a negative number, as in Click.
        let mut sequence_bytes = i32::from(ip_bytes) - headers as i32;
        for (bit, letter, counts) in [(2, 'S', 1), (1, 'F', 1), (4, 'R', 0), (8, 'P', 0)] {
            if flags & bit != 0 {
                line.push(letter);
                sequence_bytes += counts;
            }
        }
        if flags & 0b1111 == 0 {
            line.push('.');
        }
        let sequence = self.trans.u32(4);
        let after = sequence.wrapping_add_signed(sequence_bytes);
        let _ = write!(line, " {sequence}:{after}({sequence_bytes},{},{ip_bytes})", self.length);
        if flags & 0x10 != 0 {
            let _ = write!(line, " ack {}", self.trans.u32(8));
        }
        if self.there < 16 {
            return line.push_str("truncated-tcp");
        }
        let _ = write!(line, " win {}", self.trans.u16(14));
    }

    fn udp(&self, line: &mut String) {
        if !self.endpoints("udp", line) {
            return;
        }
        if self.there < 8 {
            return line.push_str("truncated-udp");
        }
        let _ = write!(line, "udp {}", self.trans.u16(4));
    }

    fn icmp(&self, sight: &Sight, line: &mut String) {
        self.addresses(line);
        line.push_str(": ");
        if !self.is_first {
            return line.push_str("icmp");
        }
        if self.there < 2 {
            return line.push_str("truncated-icmp");
        }
        let (kind, code) = (self.trans.u8(0), self.trans.u8(1));
        match kind {
            0 | 8 => {
                line.push_str(if kind == 0 { "icmp echo-reply " } else { "icmp echo " });
                if self.there < 8 {
                    return line.push_str("truncated-icmp");
                }
                let number =
                    |at| if sight.swap { self.trans.u16(at) } else { self.trans.u16(at).swap_bytes() };
                let _ = write!(line, "({}, {})", number(4), number(6));
            }
            3 => self.unreachable(code, line),
            _ => {
                line.push_str("icmp ");
                let _ = match icmp_name::of_type(kind) {
                    Some(name) => write!(line, "{name}"),
                    None => write!(line, "type {kind}"),
                };
                let _ = match icmp_name::of_code(kind, code) {
                    Some(name) => write!(line, " {name}"),
                    None if code != 0 => write!(line, " code {code}"),
                    None => Ok(()),
                };
            }
        }
    }

    /// Appends an unreachable destination, with the fields of the packet in the ICMP error.
    fn unreachable(&self, code: u8, line: &mut String) {
        let code_text = icmp_name::of_code(3, code).map_or_else(|| format!("code {code}"), str::to_string);
        let inner_bytes = self.there.saturating_sub(8);
        if inner_bytes < 20 {
            let _ = write!(line, "icmp unreachable {code_text} truncated-icmp");
            return;
        }
        let inner = Bytes(self.trans.0.get(8..).unwrap_or_default());
        let _ = write!(line, "icmp {} unreachable {code_text}", inner.address(16));
        let protocol = inner.u8(9);
        let known =
            [(ICMP, "icmp"), (TCP, "tcp"), (UDP, "udp")].into_iter().find(|(number, _)| *number == protocol);
        let _ = match (code, known) {
            (2 | 3, Some((_, name))) => write!(line, " {name}"),
            (2, None) => write!(line, " {protocol}"),
            (3, None) => write!(line, " protocol {protocol}"),
            (4, _) if self.trans.u16(6) != 0 => write!(line, " (mtu {})", self.trans.u16(6)),
            _ => Ok(()),
        };
        if code == 3 {
            let ports_at = inner.header_bytes();
            if inner_bytes < ports_at + 4 {
                return line.push_str("truncated-icmp");
            }
            let _ = write!(line, "/{}", inner.u16(ports_at + 2));
        }
    }
}
