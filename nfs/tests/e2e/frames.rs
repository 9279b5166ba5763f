//! Frames built and parsed by etherparse, which shares no code with the NFs.

use crate::run::Frame;
use etherparse::{Icmpv4Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const THERE: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn ip4(text: &str) -> [u8; 4] {
    text.parse::<Ipv4Addr>().expect("an address").octets()
}

fn ip6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().expect("an address").octets()
}

/// `ADDRESS:PORT`, of either family (`[::1]:80`).
fn split(text: &str) -> (IpAddr, u16) {
    let address: std::net::SocketAddr =
        text.parse().unwrap_or_else(|_| panic!("{text} is no address and port"));
    (address.ip(), address.port())
}

macro_rules! between {
    ($from:expr, $to:expr) => {{
        let builder = PacketBuilder::ethernet2(HERE, THERE);
        match ($from, $to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => builder.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => builder.ipv6(from.octets(), to.octets(), 64),
            _ => panic!("two families"),
        }
    }};
}

/// A UDP packet.
pub fn udp(from: &str, to: &str, payload: &[u8]) -> Frame {
    let ((from, from_port), (to, to_port)) = (split(from), split(to));
    let mut frame = vec![];
    between!(from, to).udp(from_port, to_port).write(&mut frame, payload).expect("written");
    frame
}

/// A TCP packet, with flags as tcpdump writes them: `S`, `S.`, `.`, `P.`, `F.`, `R`.
pub fn tcp(from: &str, to: &str, flags: &str, payload: &[u8]) -> Frame {
    let ((from, from_port), (to, to_port)) = (split(from), split(to));
    let mut builder = between!(from, to).tcp(from_port, to_port, 1000, 65_535);
    for flag in flags.chars() {
        builder = match flag {
            'S' => builder.syn(),
            '.' => builder.ack(2000),
            'P' => builder.psh(),
            'F' => builder.fin(),
            'R' => builder.rst(),
            other => panic!("no flag {other}"),
        };
    }
    let mut frame = vec![];
    builder.write(&mut frame, payload).expect("written");
    frame
}

/// The same frame with other Ethernet addresses.
pub fn stations(mut frame: Frame, from: [u8; 6], to: [u8; 6]) -> Frame {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame
}

/// The same frame with another TTL or hop limit.
pub fn with_ttl(mut frame: Frame, ttl: u8) -> Frame {
    if frame[14] >> 4 == 4 {
        frame[22] = ttl;
        let header = etherparse::Ipv4Header::from_slice(&frame[14..]).expect("a header").0;
        frame[24..26].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    } else {
        frame[21] = ttl;
    }
    frame
}

/// An echo request.
pub fn ping(from: &str, to: &str, id: u16) -> Frame {
    let mut frame = vec![];
    let builder = PacketBuilder::ethernet2(HERE, THERE).ipv4(ip4(from), ip4(to), 64);
    builder.icmpv4_echo_request(id, 1).write(&mut frame, b"ping").expect("written");
    frame
}

/// An ICMP error about a frame, as a router on the path would send it.
pub fn icmp_error(from: &str, to: &str, about: &[u8]) -> Frame {
    let mut frame = vec![];
    let builder = PacketBuilder::ethernet2(HERE, THERE).ipv4(ip4(from), ip4(to), 64);
    let kind = Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port);
    // The IP header and 8 bytes, as in RFC 792.
    builder.icmpv4(kind).write(&mut frame, &about[14..42]).expect("written");
    frame
}

/// An ARP request.
pub fn arp(sender: &str, target: &str) -> Frame {
    let mut frame = [[0xff; 6], HERE].concat();
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([&HERE[..], &ip4(sender), &[0; 6], &ip4(target)].concat());
    frame
}

/// A neighbour solicitation.
pub fn solicitation(sender: &str, target: &str) -> Frame {
    let (from, target) = (ip6(sender), ip6(target));
    let mut group = ip6("ff02::1:ff00:0");
    group[13..].copy_from_slice(&target[13..]);
    let mut body = target.to_vec();
    body.extend([1, 1, 2, 0, 0, 0, 0, 1]);
    let mut frame = vec![];
    let builder = PacketBuilder::ethernet2(HERE, THERE).ipv6(from, group, 255);
    builder.icmpv6_raw(135, 0, [0; 4]).write(&mut frame, &body).expect("written");
    frame
}

/// An IPv4 fragment that is not the first.
pub fn later_fragment(from: &str, to: &str) -> Frame {
    let mut frame = udp(&format!("{from}:1"), &format!("{to}:2"), b"a piece of a datagram");
    frame[20] = 0;
    frame[21] = 100;
    let sum = etherparse::Ipv4Header::from_slice(&frame[14..]).expect("a header").0.calc_header_checksum();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The fields of a frame whose checksums are right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub to_mac: [u8; 6],
    pub from_mac: [u8; 6],
    pub src: IpAddr,
    pub dst: IpAddr,
    pub ttl: u8,
    pub ports: Option<(u16, u16)>,
    pub icmp: Option<Icmpv4Type>,
    pub payload: Vec<u8>,
}

impl Seen {
    /// Source and destination: `10.0.0.1:1 > 10.0.0.2:2`.
    pub fn ends(&self) -> String {
        match self.ports {
            Some((from, to)) => {
                format!(
                    "{} > {}",
                    std::net::SocketAddr::new(self.src, from),
                    std::net::SocketAddr::new(self.dst, to)
                )
            }
            None => format!("{} > {}", self.src, self.dst),
        }
    }
}

/// Parses a frame. Panics at a wrong checksum.
#[track_caller]
pub fn see(frame: &[u8]) -> Seen {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap_or_else(|error| panic!("{error}: {frame:02x?}"));
    let (src, dst, ttl): (IpAddr, IpAddr, u8) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let own = ip.header().to_header();
            assert_eq!(own.header_checksum, own.calc_header_checksum(), "IP checksum of {own:?}");
            (own.source.into(), own.destination.into(), own.time_to_live)
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), header.hop_limit())
        }
        _ => panic!("no IP: {frame:02x?}"),
    };
    let (mut ports, mut icmp, mut payload) = (None, None, vec![]);
    match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let sum = match (src, dst) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => tcp.calc_checksum_ipv4(src.octets(), dst.octets()),
                (IpAddr::V6(src), IpAddr::V6(dst)) => tcp.calc_checksum_ipv6(src.octets(), dst.octets()),
                _ => unreachable!("one packet, one family"),
            };
            assert_eq!(Ok(tcp.checksum()), sum, "TCP checksum");
            (ports, payload) = (Some((tcp.source_port(), tcp.destination_port())), tcp.payload().to_vec());
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let sum = match (src, dst) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => {
                    header.calc_checksum_ipv4_raw(src.octets(), dst.octets(), udp.payload())
                }
                (IpAddr::V6(src), IpAddr::V6(dst)) => {
                    header.calc_checksum_ipv6_raw(src.octets(), dst.octets(), udp.payload())
                }
                _ => unreachable!("one packet, one family"),
            };
            // Zero means that the sender computed none.
            assert!(udp.checksum() == 0 || Ok(udp.checksum()) == sum, "UDP checksum");
            (ports, payload) = (Some((udp.source_port(), udp.destination_port())), udp.payload().to_vec());
        }
        Some(TransportSlice::Icmpv4(message)) => {
            let sum = message.icmp_type().calc_checksum(message.payload());
            assert_eq!(message.checksum(), sum, "ICMP checksum");
            (icmp, payload) = (Some(message.icmp_type()), message.payload().to_vec());
        }
        Some(TransportSlice::Icmpv6(message)) => {
            if let (IpAddr::V6(src), IpAddr::V6(dst)) = (src, dst) {
                assert!(message.is_checksum_valid(src.octets(), dst.octets()), "ICMPv6 checksum");
            }
            payload = message.slice().to_vec();
        }
        _ => {}
    }
    let mac = |at: usize| frame[at..at + 6].try_into().expect("six bytes");
    Seen { to_mac: mac(0), from_mac: mac(6), src, dst, ttl, ports, icmp, payload }
}

/// Source and destination of each frame, in their order.
#[track_caller]
pub fn ends(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(|frame| see(frame).ends()).collect()
}
