//! IPv4 packets. `etherparse` builds them and judges checksums: it shares no code with the elements.

use super::trip::TestPacket;
use etherparse::{Icmpv4Slice, IpNumber, Ipv4HeaderSlice, PacketBuilder, TcpHeaderSlice, UdpHeaderSlice};

/// Where the packets come from.
pub const SRC: [u8; 4] = [10, 0, 0, 1];
/// Where they go.
pub const DST: [u8; 4] = [192, 168, 2, 3];

/// An IPv4 packet with UDP.
pub fn udp(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(SRC, DST, 64).udp(4000, 53);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// An IPv4 packet with TCP.
pub fn tcp(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(SRC, DST, 64).tcp(4000, 80, 0x0102_0304, 1024).ack(0x0a0b_0c0d);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// An IPv4 packet with an ICMP echo request.
pub fn ping(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(SRC, DST, 64).icmpv4_echo_request(7, 9);
    let mut bytes = vec![];
    builder.write(&mut bytes, payload).unwrap();
    bytes
}

/// The same packet with options (whole words) behind its header.
pub fn with_options(packet: &[u8], options: &[u8]) -> Vec<u8> {
    let mut bytes = packet[..20].to_vec();
    bytes.extend_from_slice(options);
    bytes.extend_from_slice(&packet[20..]);
    bytes[0] = 0x40 | (5 + options.len() / 4) as u8;
    let len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    fix_ip_checksum(bytes)
}

/// The packet with a right header checksum.
pub fn fix_ip_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = Ipv4HeaderSlice::from_slice(&bytes).unwrap().to_header().calc_header_checksum();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The packet with a byte changed and the header checksum right again.
pub fn with_byte(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    fix_ip_checksum(bytes)
}

/// Panics unless the header checksum is right.
pub fn assert_ip_checksum(bytes: &[u8]) {
    let header = Ipv4HeaderSlice::from_slice(bytes).unwrap();
    assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum(), "IP checksum");
}

/// Panics unless header and transport checksum are right.
pub fn assert_checksums(bytes: &[u8]) {
    assert_ip_checksum(bytes);
    let ip = Ipv4HeaderSlice::from_slice(bytes).unwrap();
    let header = ip.to_header();
    let segment = &bytes[ip.slice().len()..usize::from(ip.total_len())];
    match ip.protocol() {
        IpNumber::UDP => {
            let udp = UdpHeaderSlice::from_slice(segment).unwrap().to_header();
            let right = udp.calc_checksum_ipv4(&header, &segment[8..]).unwrap();
            assert_eq!(udp.checksum, right, "UDP checksum");
        }
        IpNumber::TCP => {
            let tcp = TcpHeaderSlice::from_slice(segment).unwrap();
            let payload = &segment[tcp.slice().len()..];
            let right = tcp.calc_checksum_ipv4(&ip, payload).unwrap();
            assert_eq!(tcp.checksum(), right, "TCP checksum");
        }
        IpNumber::ICMP => {
            let icmp = Icmpv4Slice::from_slice(segment).unwrap();
            let right = icmp.icmp_type().calc_checksum(icmp.payload());
            assert_eq!(icmp.checksum(), right, "ICMP checksum");
        }
        other => panic!("protocol {other:?}"),
    }
}

/// The packet behind an Ethernet header.
pub fn frame(ip: &[u8]) -> TestPacket {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    bytes.extend_from_slice(ip);
    TestPacket::frame(&bytes)
}

/// The packet with other bytes at `at`.
pub fn with_bytes(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// The packet alone and behind an Ethernet header.
pub fn places(ip: &[u8]) -> [TestPacket; 2] {
    let header = i32::from(ip[0] & 15) * 4;
    [TestPacket::ip(ip), TestPacket { net: Some(14), trans: Some(14 + header), ..frame(ip) }]
}
