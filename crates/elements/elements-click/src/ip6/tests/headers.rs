//! Headers that are added, and checksums that are computed: etherparse finds them right.

use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
use etherparse::{IpNumber, Ipv6HeaderSlice, PacketBuilder, UdpHeaderSlice};
use packet::Access;
use packet::anno::Anno;
use std::net::Ipv6Addr;

const SRC: &str = "2001:db8::1";
const DST: &str = "2001:db8:1::2";

fn address(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn halves(packet: &TestPacket) -> Ipv6Addr {
    let half = |offset| u128::from(packet.anno(Anno { offset, len: 8 }));
    Ipv6Addr::from(half(0) << 64 | half(8))
}

fn annotated(packet: TestPacket, to: &str) -> TestPacket {
    let bits = u128::from(address(to));
    let high = Anno { offset: 0, len: 8 };
    packet.with_anno(high, (bits >> 64) as u64).with_anno(Anno { offset: 8, len: 8 }, bits as u64)
}

#[test]
fn ip6encap_puts_a_header_in_front() {
    let inner = TestPacket::frame(b"four bytes and more");
    let mut rig = Rig::new("IP6Encap", &format!("ipip, {SRC}, {DST}, HLIM 20, CLASS 0xb8"), 1, 1);
    let out = rig.push_one(0, &inner);
    let ip = Ipv6HeaderSlice::from_slice(&out.packet.bytes).unwrap();
    assert_eq!(
        (out.exit, ip.source_addr(), ip.destination_addr()),
        (Exit::Port(0), address(SRC), address(DST))
    );
    assert_eq!((ip.next_header(), ip.hop_limit(), ip.traffic_class()), (IpNumber(4), 20, 0xb8));
    assert_eq!((usize::from(ip.payload_length()), ip.flow_label().value()), (inner.bytes.len(), 0));
    assert_eq!(out.packet.bytes[40..], inner.bytes);
    assert_eq!((out.packet.net, out.packet.trans, halves(&out.packet)), (Some(0), Some(40), address(DST)));
    assert_eq!((rig.read("src").as_str(), rig.read("dst").as_str()), (SRC, DST));
    rig.write("dst", "DST_ANNO").unwrap();
    rig.write("src", "::7").unwrap();
    let out = rig.push_one(0, &annotated(inner.clone(), "2001:db8::99"));
    let ip = Ipv6HeaderSlice::from_slice(&out.packet.bytes).unwrap();
    assert_eq!((ip.source_addr(), ip.destination_addr()), (address("::7"), address("2001:db8::99")));
    assert_eq!((rig.read("dst").as_str(), halves(&out.packet)), ("DST_ANNO", address("2001:db8::99")));
    let out = Rig::new("IP6Encap", &format!("4, {SRC}, DST_ANNO"), 1, 1).push_one(0, &inner);
    assert_eq!((out.packet.bytes.u8(7), &out.packet.bytes[24..40]), (Some(250), &[0; 16][..]));
    for (config, count) in [("", 3), ("4, 1.2.3.4, nobody", 2), ("4, ::1, ::2, HLIM 256, CLASS 256", 2)] {
        assert_eq!(mistakes("IP6Encap", config, 1, 1).len(), count, "{config}");
    }
    assert!(rig.write("dst", "nobody").is_err() && rig.write("sport", "1").is_err());
}

#[test]
fn udpip6encap_puts_both_headers_in_front() {
    let mut rig = Rig::new("UDPIP6Encap", &format!("{SRC}, 1234, {DST}, 5678"), 1, 1);
    for payload in [&b""[..], b"x", b"hello", &[7; 5000]] {
        let out = rig.push_one(0, &TestPacket::frame(payload));
        let mut expected = vec![];
        let builder = PacketBuilder::ipv6(address(SRC).octets(), address(DST).octets(), 255);
        builder.udp(1234, 5678).write(&mut expected, payload).unwrap();
        assert_eq!((out.exit, &out.packet.bytes), (Exit::Port(0), &expected));
        assert_eq!(
            (out.packet.net, out.packet.trans, halves(&out.packet)),
            (Some(0), Some(40), address(DST))
        );
    }
    for (handler, value) in [("src", "::3"), ("sport", "1"), ("dst", "::4"), ("dport", "65535")] {
        rig.write(handler, value).unwrap();
        assert_eq!(rig.read(handler), value);
    }
    let out = rig.push_one(0, &TestPacket::frame(b"hello"));
    let udp = UdpHeaderSlice::from_slice(&out.packet.bytes[40..]).unwrap();
    assert_eq!((udp.source_port(), udp.destination_port()), (1, 65535));
    assert_eq!((out.packet.bytes.u8(23), out.packet.bytes.u8(39)), (Some(3), Some(4)));
    assert!(rig.write("sport", "65536").is_err());
    let mut rig = Rig::new("UDPIP6Encap", &format!("{SRC}, 1, DST_ANNO, 2"), 1, 1);
    assert_eq!(
        rig.push_one(0, &annotated(TestPacket::frame(b""), DST)).packet.bytes[24..40],
        address(DST).octets()
    );
    assert_eq!(rig.read("dst"), "::");
    assert!(Rig::try_new("UDPIP6Encap", "::1, 65536, ::2", 1, 1).is_err());
}

#[test]
fn what_would_be_too_long_is_dropped() {
    for (class, config, most) in
        [("IP6Encap", "4, ::1, ::2", 65_535), ("UDPIP6Encap", "::1, 1, ::2, 2", 65_535 - 8)]
    {
        let mut rig = Rig::new(class, config, 1, 1);
        assert_eq!(rig.push_one(0, &TestPacket::frame(&vec![1; most])).exit, Exit::Port(0));
        assert_eq!(rig.push_one(0, &TestPacket::frame(&vec![1; most + 1])).exit, dropped("too-long"));
    }
}

/// IPv6 packets with TCP, UDP and ICMPv6 whose checksums are right, and where these are.
fn right_ones() -> [(Vec<u8>, usize); 3] {
    let ip = || PacketBuilder::ipv6(address(SRC).octets(), address(DST).octets(), 64);
    let (mut tcp, mut udp, mut icmp) = (vec![], vec![], vec![]);
    ip().tcp(1, 2, 3, 4).write(&mut tcp, b"data").unwrap();
    ip().udp(1, 2).write(&mut udp, b"odd").unwrap();
    ip().icmpv6_raw(128, 0, [0, 1, 0, 2]).write(&mut icmp, b"ping").unwrap();
    [(tcp, 16), (udp, 6), (icmp, 2)]
}

#[test]
fn transport_checksums_are_set() {
    let classes = ["SetTCPChecksumIP6", "SetUDPChecksumIP6", "SetICMPChecksumIP6"];
    for ((right, at), class) in right_ones().into_iter().zip(classes) {
        let mut wrong = right.clone();
        wrong[40 + at] ^= 0x55;
        let mut rig = Rig::new("SetTransportChecksumIP6", "", 1, 1);
        for packet in [&right, &wrong] {
            assert_eq!(rig.push_one(0, &TestPacket::ip(packet)).packet.bytes, right);
            let unmarked = TestPacket { net: None, trans: None, ..TestPacket::ip(packet) };
            assert_eq!(Rig::new(class, "", 1, 1).push_one(0, &unmarked).packet.bytes, right);
        }
        // Behind destination options; the payload length grows, the checksum does not change.
        let extended = |bytes: &[u8], header: [u8; 8], kind: u8| {
            let mut extended = bytes[..40].to_vec();
            extended.extend([&header[..], &bytes[40..]].concat());
            (extended[6], extended[40]) = (kind, bytes[6]);
            extended[5] += 8;
            extended
        };
        let options = [0, 0, 1, 4, 0, 0, 0, 0];
        let out = rig.push_one(0, &TestPacket::ip(&extended(&wrong, options, 60)));
        assert_eq!(out.packet.bytes, extended(&right, options, 60));
        let part = [0, 0, 0, 1, 0, 0, 0, 7];
        let out = rig.push_one(0, &TestPacket::ip(&extended(&wrong, part, 44)));
        assert_eq!(out.exit, dropped("fragment"));
        let mut cut = wrong[..43].to_vec();
        cut[5] = 3;
        assert_eq!(rig.push_one(0, &TestPacket::ip(&cut)).exit, dropped("bad-lengths"));
        assert_eq!(rig.push_one(0, &TestPacket::ip(&wrong[..43])).exit, dropped("no-ip6-header"));
        let mut other = wrong.clone();
        other[6] = 89;
        assert_eq!(rig.push_one(0, &TestPacket::ip(&other)).packet.bytes, other);
    }
    let mut rig = Rig::new("SetTransportChecksumIP6", "", 1, 1);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 60])).exit, dropped("no-ip6-header"));
    assert!(Rig::try_new("SetTransportChecksumIP6", "1", 1, 1).is_err());
}
