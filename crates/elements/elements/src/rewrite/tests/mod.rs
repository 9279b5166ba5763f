//! Tests of the rewriters: packets in, packets out, with etherparse as the independent reader of what
//! came out.

mod address;
mod ageing;
mod cache_validity;
mod chain;
mod choice;
mod endpoint;
mod ftp;
mod handlers;
mod icmp;
mod napt;
mod ping;
mod property;
mod refusals;

use crate::testing::{Exit, Out, TestPacket, mistakes};
use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Type, Ipv4Header, PacketBuilder, TcpHeader, UdpHeader, ip_number,
};
use std::net::Ipv4Addr;

pub const SECOND_NS: u64 = 1_000_000_000;

/// One end of a conversation.
pub type End = (&'static str, u16);

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

fn octets(address: &str) -> [u8; 4] {
    address.parse::<Ipv4Addr>().expect("an address").octets()
}

/// A UDP packet.
pub fn udp(from: End, to: End, payload: &[u8]) -> TestPacket {
    let builder = PacketBuilder::ipv4(octets(from.0), octets(to.0), 64).udp(from.1, to.1);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).expect("fits");
    TestPacket::ip(&bytes)
}

/// A TCP packet with these flags.
pub fn tcp(from: End, to: End, flags: u8, payload: &[u8]) -> TestPacket {
    let mut header = TcpHeader::new(from.1, to.1, 1000, 512);
    (header.fin, header.syn) = (flags & FIN != 0, flags & SYN != 0);
    (header.rst, header.ack) = (flags & RST != 0, flags & ACK != 0);
    let builder = PacketBuilder::ipv4(octets(from.0), octets(to.0), 64).tcp_header(header);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).expect("fits");
    TestPacket::ip(&bytes)
}

/// An echo request or reply.
pub fn echo(from: &str, to: &str, id: u16, is_reply: bool, payload: &[u8]) -> TestPacket {
    let builder = PacketBuilder::ipv4(octets(from), octets(to), 64);
    let mut bytes = vec![];
    let builder =
        if is_reply { builder.icmpv4_echo_reply(id, 1) } else { builder.icmpv4_echo_request(id, 1) };
    builder.write(&mut bytes, payload).expect("fits");
    TestPacket::ip(&bytes)
}

/// Addresses and ports (or echo identifier as both ports) of an IPv4 packet, whose checksums etherparse
/// finds right.
pub fn seen(bytes: &[u8]) -> (String, u16, String, u16) {
    let (ip, rest) = Ipv4Header::from_slice(bytes).expect("an IPv4 header");
    assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "IP checksum");
    let ports = match ip.protocol {
        ip_number::UDP => {
            let (udp, payload) = UdpHeader::from_slice(rest).expect("a UDP header");
            if udp.checksum != 0 {
                let right = udp.calc_checksum_ipv4(&ip, payload).expect("fits");
                assert_eq!(udp.checksum, right, "UDP checksum");
            }
            (udp.source_port, udp.destination_port)
        }
        ip_number::TCP => {
            let (tcp, payload) = TcpHeader::from_slice(rest).expect("a TCP header");
            let right = tcp.calc_checksum_ipv4(&ip, payload).expect("fits");
            assert_eq!(tcp.checksum, right, "TCP checksum");
            (tcp.source_port, tcp.destination_port)
        }
        ip_number::ICMP => {
            let (icmp, payload) = Icmpv4Header::from_slice(rest).expect("an ICMP header");
            let right = icmp.icmp_type.calc_checksum(payload);
            assert_eq!(icmp.checksum, right, "ICMP checksum");
            match icmp.icmp_type {
                Icmpv4Type::EchoRequest(IcmpEchoHeader { id, .. })
                | Icmpv4Type::EchoReply(IcmpEchoHeader { id, .. }) => (id, id),
                _ => (0, 0),
            }
        }
        _ => (0, 0),
    };
    let address = |octets: [u8; 4]| Ipv4Addr::from(octets).to_string();
    (address(ip.source), ports.0, address(ip.destination), ports.1)
}

/// Asserts how a packet left.
#[track_caller]
pub fn expect(out: &Out, port: usize, from: (&str, u16), to: (&str, u16)) {
    assert_eq!(out.exit, Exit::Port(port));
    let (src, sport, dst, dport) = seen(&out.packet.bytes);
    assert_eq!(((src.as_str(), sport), (dst.as_str(), dport)), (from, to));
}

/// Asserts why a packet was dropped.
#[track_caller]
pub fn expect_drop(out: &Out, reason: &str) {
    assert_eq!(out.exit, Exit::Dropped(reason.into()));
}

/// The mistakes of a configuration.
pub const INSIDE: End = ("10.0.0.5", 4000);
pub const OTHER: End = ("10.0.0.6", 4000);
pub const REMOTE: End = ("198.51.100.7", 53);
pub const EXTERNAL: &str = "203.0.113.1";
