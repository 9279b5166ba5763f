//! ICMP errors, for IPv4 (RFC 792, RFC 1812) and IPv6 (RFC 4443).

use crate::routes::Routes;
use nf::Packet;
use packet::view::ethernet::EthernetFacts;
use packet::view::{Ethernet, Icmp, Ipv4, Ipv6, ethernet, icmp, icmp6, ipv4, ipv6, protocol};
use packet::{Access, Layers, checksum, parse};
use std::net::{Ipv4Addr, Ipv6Addr};

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

/// Bytes of the packet that an error contains: as RFC 1812 section 4.3.2.3 allows for IPv4 (576 bytes in
/// all), and RFC 4443 for IPv6 (1,280).
const MOST_BYTES4: usize = 576 - ipv4::HEADER_BYTES - icmp::HEADER_BYTES;
const MOST_BYTES6: usize = 1280 - ipv6::HEADER_BYTES - icmp::HEADER_BYTES;
const TTL: u8 = 64;
/// Code of an ICMPv6 "unreachable" (RFC 4443, section 3.1).
const ADDRESS_UNREACHABLE: u8 = 3;

/// The error about a packet, as a frame to its sender; `None` when none may be sent: about errors, later
/// fragments, and packets without a unicast source, or when the interface has no address.
pub fn error(packet: &Packet, why: Why, routes: &Routes, interface: usize) -> Option<Vec<u8>> {
    let layers = parse::frame(packet, 0);
    if layers.is_fragment && !layers.is_first_fragment {
        return None;
    }
    let own = routes.own(interface);
    let (ethertype, error) = if layers.is_ipv4() {
        (ethernet::IPV4, error4(packet, &layers, why, own.ipv4?)?)
    } else {
        (ethernet::IPV6, error6(packet, &layers, why, own.ipv6?)?)
    };
    let came = Ethernet::at(0).check(packet).ok()?;
    let mut frame = vec![0; ethernet::HEADER_BYTES];
    let facts = EthernetFacts { dst: came.src, src: own.mac, ethertype };
    let written = Ethernet::at(0).write(&mut frame, facts);
    frame.extend(error);
    written.then_some(frame)
}

/// The ICMP message with the first `most` bytes of the packet, without its checksum.
fn message(packet: &Packet, layers: &Layers, most: usize, (kind, code): (u8, u8)) -> Option<Vec<u8>> {
    let net = layers.net?;
    let bytes = layers.end.saturating_sub(net).min(most);
    let mut message = vec![0; icmp::HEADER_BYTES + bytes];
    message[..2].copy_from_slice(&[kind, code]);
    packet.copy_out(net, message.get_mut(icmp::HEADER_BYTES..)?).then_some(message)
}

fn error4(packet: &Packet, layers: &Layers, why: Why, from: Ipv4Addr) -> Option<Vec<u8>> {
    let ip = Ipv4::at(layers.net?).check(packet).ok()?;
    if ip.protocol == protocol::ICMP {
        let about = Icmp::at(ip.payload).check(packet, ip.end).ok()?;
        if icmp::is_error(about.kind) {
            return None;
        }
    }
    if ip.src.is_unspecified() || ip.src.is_multicast() || ip.src.is_broadcast() || ip.src.is_loopback() {
        return None;
    }
    let kind = match why {
        Why::Expired => (icmp::TIME_EXCEEDED, 0),
        Why::NoRoute => (icmp::UNREACHABLE, icmp::NET_UNREACHABLE),
        Why::Unreachable => (icmp::UNREACHABLE, icmp::HOST_UNREACHABLE),
    };
    let mut message = message(packet, layers, MOST_BYTES4, kind)?;
    let check = checksum::icmp(&message, 0, message.len())?;
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let length = (ipv4::HEADER_BYTES + message.len()) as u16;
    // Precedence 6, internetwork control (RFC 1812, section 4.3.2.5).
    let mut error = vec![0x45, 0xc0];
    error.extend(length.to_be_bytes());
    error.extend([0, 0, 0, 0, TTL, protocol::ICMP, 0, 0]);
    error.extend(from.octets());
    error.extend(ip.src.octets());
    let _ = checksum::set_ipv4_header(&mut error, 0, ipv4::HEADER_BYTES);
    error.extend(message);
    Some(error)
}

fn error6(packet: &Packet, layers: &Layers, why: Why, from: Ipv6Addr) -> Option<Vec<u8>> {
    let ip = Ipv6::at(layers.net?).check(packet).ok()?;
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
    let kind = match why {
        Why::Expired => (icmp6::TIME_EXCEEDED, 0),
        Why::NoRoute => (icmp6::UNREACHABLE, 0),
        Why::Unreachable => (icmp6::UNREACHABLE, ADDRESS_UNREACHABLE),
    };
    let mut message = message(packet, layers, MOST_BYTES6, kind)?;
    let pseudo = checksum::pseudo_ipv6(from, ip.src, protocol::ICMP6, message.len() as u32);
    let check = checksum::icmp6(&message, 0, message.len(), pseudo)?;
    message[2..4].copy_from_slice(&check.to_be_bytes());
    let mut error = vec![0x60, 0, 0, 0];
    error.extend((message.len() as u16).to_be_bytes());
    error.extend([protocol::ICMP6, TTL]);
    error.extend(from.octets());
    error.extend(ip.src.octets());
    error.extend(message);
    Some(error)
}
