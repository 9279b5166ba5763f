//! ICMP errors, for IPv4 (RFC 792, RFC 1812) and IPv6 (RFC 4443).

use crate::routes::Routes;
use nf::Packet;
use packet::view::ethernet::EthernetFacts;
use packet::view::{Ethernet, Icmp, Ipv4, Ipv6, ethernet, icmp, icmp6, ipv4, ipv6, protocol};
use packet::{Access, checksum, parse};

/// The reason why a packet is not forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Its TTL or hop limit has expired.
    Expired,
    /// There is no route.
    NoRoute,
    /// The next hop does not answer.
    Unreachable,
}

/// Bytes of the packet that an error contains: as RFC 1812 section 4.3.2.3 allows for IPv4 (576 bytes in all), and RFC
/// 4443 for IPv6 (1,280).
const MOST_BYTES4: usize = 576 - ipv4::HEADER_BYTES - icmp::HEADER_BYTES;
const MOST_BYTES6: usize = 1280 - ipv6::HEADER_BYTES - icmp::HEADER_BYTES;
const TTL: u8 = 64;
/// Code of an ICMPv6 "unreachable" (RFC 4443, section 3.1).
const ADDRESS_UNREACHABLE: u8 = 3;

/// The error about a packet, as a frame to its sender; `None` when none may be sent: about errors, later fragments, and
/// packets without a unicast source, or when the interface has no address.
pub fn error(packet: &Packet, why: Why, routes: &Routes, interface: usize) -> Option<Vec<u8>> {
    let layers = parse::frame(packet, 0);
    let (net, end) = (layers.net?, layers.end);
    if layers.is_fragment && !layers.is_first_fragment {
        return None;
    }
    let about = About { packet, why, routes, range: (net, end), interface };
    if layers.is_ipv4() { about.error4() } else { about.error6() }
}

fn head(packet: &Packet, routes: &Routes, interface: usize, ethertype: u16) -> Option<Vec<u8>> {
    let came = Ethernet::at(0).check(packet).ok()?;
    let mut frame = vec![0; ethernet::HEADER_BYTES];
    let facts = EthernetFacts { dst: came.src, src: routes.mac(interface), ethertype };
    Ethernet::at(0).write(&mut frame, facts).then_some(frame)
}

/// The quoted part of the packet, after an ICMP header.
fn repeat(packet: &Packet, (net, end): (usize, usize), most: usize) -> Option<Vec<u8>> {
    let bytes = end.saturating_sub(net).min(most);
    let mut message = vec![0; icmp::HEADER_BYTES + bytes];
    packet.copy_out(net, message.get_mut(icmp::HEADER_BYTES..)?).then_some(message)
}

/// A packet that is not forwarded, and its input interface.
struct About<'a> {
    packet: &'a Packet,
    why: Why,
    routes: &'a Routes,
    /// The offsets of its network header and of its end.
    range: (usize, usize),
    interface: usize,
}

impl About<'_> {
    fn error4(self) -> Option<Vec<u8>> {
        let About { packet, why, routes, range, interface } = self;
        let from = routes.own(interface).ipv4?;
        let ip = Ipv4::at(range.0).check(packet).ok()?;
        if ip.protocol == protocol::ICMP {
            let about = Icmp::at(ip.payload).check(packet, ip.end).ok()?;
            if icmp::is_error(about.kind) {
                return None;
            }
        }
        if ip.src.is_unspecified() || ip.src.is_multicast() || ip.src.is_broadcast() || ip.src.is_loopback() {
            return None;
        }
        let mut message = repeat(packet, range, MOST_BYTES4)?;
        let (kind, code) = match why {
            Why::Expired => (icmp::TIME_EXCEEDED, 0),
            Why::NoRoute => (icmp::UNREACHABLE, icmp::NET_UNREACHABLE),
            Why::Unreachable => (icmp::UNREACHABLE, icmp::HOST_UNREACHABLE),
        };
        message[..2].copy_from_slice(&[kind, code]);
        let check = checksum::icmp(&message, 0, message.len())?;
        message[2..4].copy_from_slice(&check.to_be_bytes());
        let mut frame = head(packet, routes, interface, ethernet::IPV4)?;
        let length = (ipv4::HEADER_BYTES + message.len()) as u16;
        let at = frame.len();
        // Precedence 6, internetwork control (RFC 1812, section 4.3.2.5).
        frame.extend([0x45, 0xc0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0, 0, TTL, protocol::ICMP, 0, 0]);
        frame.extend(from.octets());
        frame.extend(ip.src.octets());
        let _ = checksum::set_ipv4_header(&mut frame, at, ipv4::HEADER_BYTES);
        frame.extend(message);
        Some(frame)
    }

    fn error6(self) -> Option<Vec<u8>> {
        let About { packet, why, routes, range, interface } = self;
        let from = routes.own(interface).ipv6?;
        let ip = Ipv6::at(range.0).check(packet).ok()?;
        let layers = parse::frame(packet, 0);
        if layers.ip_proto == Some(protocol::ICMP6) {
            // A truncated packet might be an ICMP error.
            let kind = packet.u8(layers.trans?)?;
            if icmp6::is_error(kind) {
                return None;
            }
        }
        if ip.src.is_unspecified() || ip.src.is_multicast() {
            return None;
        }
        let mut message = repeat(packet, range, MOST_BYTES6)?;
        let (kind, code) = match why {
            Why::Expired => (icmp6::TIME_EXCEEDED, 0),
            Why::NoRoute => (icmp6::UNREACHABLE, 0),
            Why::Unreachable => (icmp6::UNREACHABLE, ADDRESS_UNREACHABLE),
        };
        message[..2].copy_from_slice(&[kind, code]);
        let pseudo = checksum::pseudo_ipv6(from, ip.src, protocol::ICMP6, message.len() as u32);
        let check = checksum::icmp6(&message, 0, message.len(), pseudo)?;
        message[2..4].copy_from_slice(&check.to_be_bytes());
        let mut frame = head(packet, routes, interface, ethernet::IPV6)?;
        frame.extend([0x60, 0, 0, 0]);
        frame.extend((message.len() as u16).to_be_bytes());
        frame.extend([protocol::ICMP6, TTL]);
        frame.extend(from.octets());
        frame.extend(ip.src.octets());
        frame.extend(message);
        Some(frame)
    }
}
