use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;

/// The Internet checksum over `parts` (each of even length except the last), by the text of RFC 1071: zero
/// when a stored checksum among them is right.
fn residue(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for word in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

/// Checks every checksum of an IP frame, with or without tags, only by the function above.
fn assert_checksums(frame: &[u8], tags: usize) {
    let ip = &frame[14 + 4 * tags..];
    let (header, protocol, pseudo, end) = if ip[0] >> 4 == 4 {
        assert_eq!(residue(&[&ip[..20]]), 0, "IPv4 header checksum");
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        (20, ip[9], ip[12..20].to_vec(), total)
    } else {
        let payload = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
        (40, ip[6], ip[8..40].to_vec(), 40 + payload)
    };
    let segment = &ip[header..end];
    let trailer = [0, 0, (segment.len() >> 8) as u8, segment.len() as u8, 0, protocol];
    match protocol {
        TCP | UDP | ICMPV6 if protocol != ICMPV6 || header == 40 => {
            assert_eq!(residue(&[&pseudo, &trailer, segment]), 0, "transport checksum");
        }
        ICMP if header == 20 => assert_eq!(residue(&[segment]), 0, "ICMP checksum"),
        _ => {}
    }
}

fn spec<'a>(flow: FiveTuple, vlan: &'a [VlanTag], payload: &'a [u8], len_bytes: usize) -> FrameSpec<'a> {
    FrameSpec {
        src_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        dst_mac: MacAddress([2, 0, 0, 0, 0, 2]),
        vlan,
        flow,
        tcp: TcpSegment { sequence: 1, acknowledgement: Some(2), syn: false, fin: false, psh: true },
        sequence: 7,
        ttl: 64,
        dscp: 46,
        payload,
        len_bytes,
    }
}

fn flow_v4(protocol: u8) -> FiveTuple {
    FiveTuple {
        src: Ipv4Addr::new(198, 18, 0, 1).into(),
        dst: Ipv4Addr::new(198, 19, 0, 1).into(),
        protocol,
        src_port: 1025,
        dst_port: 80,
    }
}

#[test]
fn a_control_segment_is_padded_after_the_packet() {
    let frame = spec(flow_v4(TCP), &[], &[], 60).build().expect("builds");
    assert_eq!(frame.len(), 60);
    assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 40);
    assert_checksums(&frame, 0);
}

#[test]
fn too_short_and_too_long_are_refused() {
    let payload = vec![0; 70_000];
    assert!(spec(flow_v4(TCP), &[], &payload, 53).build().is_err());
    assert!(spec(flow_v4(UDP), &[], &payload, 14 + 65_536).build().is_err());
    assert!(spec(flow_v4(UDP), &[], &payload, 14 + 65_535).build().is_ok());
    assert!(spec(flow_v4(UDP), &[], &payload[..10], 60).build().is_err());
    let mut mixed = flow_v4(UDP);
    mixed.dst = Ipv6Addr::LOCALHOST.into();
    let mut out = vec![1, 2, 3];
    assert!(spec(mixed, &[], &payload, 100).build_into(&mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
}

proptest! {
    #[test]
    fn frames_are_exact_and_right(
        src: u128, dst: u128, ipv6: bool,
        protocol in prop_oneof![Just(TCP), Just(UDP), Just(ICMP), Just(47u8)],
        src_port: u16, dst_port: u16,
        tags in 0usize..=2,
        extra in 0usize..1600,
        fill: u8,
    ) {
        let (src, dst): (IpAddr, IpAddr) = if ipv6 {
            (Ipv6Addr::from_bits(src).into(), Ipv6Addr::from_bits(dst).into())
        } else {
            (Ipv4Addr::from_bits(src as u32).into(), Ipv4Addr::from_bits(dst as u32).into())
        };
        let protocol = if ipv6 && protocol == ICMP { ICMPV6 } else { protocol };
        let flow = FiveTuple { src, dst, protocol, src_port, dst_port };
        let vlan = [VlanTag { id: 200, priority: 0 }, VlanTag { id: 100, priority: 5 }];
        let payload = vec![fill; 2_000];
        let mut wanted = spec(flow, &vlan[..tags], &payload, 0);
        wanted.len_bytes = wanted.header_bytes() + extra;
        let frame = wanted.build().expect("builds");
        prop_assert_eq!(frame.len(), wanted.len_bytes);
        assert_checksums(&frame, tags);

        let read = SlicedPacket::from_ethernet(&frame).expect("etherparse reads it");
        match read.net {
            Some(NetSlice::Ipv4(ip)) => {
                prop_assert_eq!(IpAddr::from(ip.header().source_addr()), src);
                prop_assert_eq!(IpAddr::from(ip.header().destination_addr()), dst);
                prop_assert_eq!(ip.header().ttl(), 64);
            }
            Some(NetSlice::Ipv6(ip)) => {
                prop_assert_eq!(IpAddr::from(ip.header().source_addr()), src);
                prop_assert_eq!(IpAddr::from(ip.header().destination_addr()), dst);
            }
            other => prop_assert!(false, "no IP header in {other:?}"),
        }
        match read.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                prop_assert_eq!((protocol, tcp.source_port(), tcp.destination_port()), (TCP, src_port, dst_port));
                prop_assert_eq!(tcp.payload().len(), extra);
            }
            Some(TransportSlice::Udp(udp)) => {
                prop_assert_eq!((protocol, udp.source_port(), udp.destination_port()), (UDP, src_port, dst_port));
                prop_assert_eq!(udp.payload().len(), extra);
            }
            Some(TransportSlice::Icmpv4(_)) => prop_assert_eq!(protocol, ICMP),
            Some(TransportSlice::Icmpv6(_)) => prop_assert_eq!(protocol, ICMPV6),
            _ => prop_assert_eq!(protocol, 47),
        }
        prop_assert_eq!(read.link_exts.len(), tags);
    }
}
