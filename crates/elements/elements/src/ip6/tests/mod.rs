//! Packets in, packets out. `etherparse` builds packets and judges checksums.

use crate::testing::{Exit, Out, TestPacket, dropped, exits, random_packets};
use etherparse::{Icmpv6Slice, Ipv6HeaderSlice, PacketBuilder};
use std::net::Ipv6Addr;

mod change;
mod error;
mod header;
mod neighbor;
mod route;

pub(super) const SRC: &str = "2001:db8::1";
pub(super) const DST: &str = "2001:db8:1::2";

pub(super) fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// An IPv6 packet with UDP.
pub(super) fn udp6(src: &str, dst: &str, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv6(address(src).octets(), address(dst).octets(), 64).udp(4000, 53);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// A packet with an ICMPv6 message of that type.
pub(super) fn icmp6(src: &str, dst: &str, kind: u8, payload: &[u8]) -> Vec<u8> {
    let builder =
        PacketBuilder::ipv6(address(src).octets(), address(dst).octets(), 255).icmpv6_raw(kind, 0, [0; 4]);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// Source, destination and ICMPv6 message of a packet whose lengths and checksum are right.
#[track_caller]
pub(super) fn right_icmp6(bytes: &[u8]) -> (Ipv6Addr, Ipv6Addr, &[u8]) {
    let ip = Ipv6HeaderSlice::from_slice(bytes).unwrap();
    assert_eq!(ip.next_header().0, 58);
    assert_eq!(usize::from(ip.payload_length()) + 40, bytes.len());
    let icmp = Icmpv6Slice::from_slice(&bytes[40..]).unwrap();
    assert!(icmp.is_checksum_valid(ip.source(), ip.destination()), "ICMPv6 checksum");
    (ip.source_addr(), ip.destination_addr(), &bytes[40..])
}

/// The packet behind an Ethernet header.
pub(super) fn frame6(ip: &[u8]) -> TestPacket {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    bytes.extend_from_slice(ip);
    TestPacket::frame(&bytes)
}

/// The destination annotation: its halves are integers of the machine.
pub(super) fn annotation(packet: &TestPacket) -> Ipv6Addr {
    let half = |at: usize| u64::from_ne_bytes(packet.anno[at..at + 8].try_into().unwrap());
    Ipv6Addr::from(u128::from(half(0)) << 64 | u128::from(half(8)))
}

pub(super) fn with_annotation(mut packet: TestPacket, to: &str) -> TestPacket {
    let bits = u128::from(address(to));
    packet.anno[..8].copy_from_slice(&((bits >> 64) as u64).to_ne_bytes());
    packet.anno[8..16].copy_from_slice(&(bits as u64).to_ne_bytes());
    packet
}

/// IPv6 packets of all kinds for differential runs: what `testing` makes has few of them.
pub(super) fn odd_packets() -> Vec<TestPacket> {
    let mut packets = random_packets(11, 90);
    for (at, packet) in random_packets(12, 160).into_iter().enumerate() {
        let mut ip = udp6(SRC, DST, &packet.bytes[..packet.bytes.len().min(60)]);
        let byte = packet.bytes.get(at % 60).copied().unwrap_or(7);
        match at % 5 {
            0 => ip[at % 40] ^= byte,
            1 => ip.truncate(usize::from(byte)),
            2 => ip.extend_from_slice(&packet.bytes),
            _ => {}
        }
        let place = if at % 2 == 0 { TestPacket::ip(&ip) } else { frame6(&ip) };
        packets.push(with_annotation(place, if at % 3 == 0 { DST } else { "2001:db8:7::7" }));
    }
    packets
}
