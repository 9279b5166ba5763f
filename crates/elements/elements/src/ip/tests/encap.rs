//! `IPEncap` and `UDPIPEncap`.

use super::*;
use crate::testing::{Rig, differential};
use packet::anno;

fn header(out: &Out) -> etherparse::Ipv4Header {
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!((out.packet.net, out.packet.trans), (Some(0), Some(20)));
    assert_ip_checksum(&out.packet.bytes);
    Ipv4HeaderSlice::from_slice(&out.packet.bytes).unwrap().to_header()
}

#[test]
fn ipencap_puts_a_header_in_front() {
    let inner = TestPacket::ip(&udp(b"hello"));
    let mut rig = Rig::new("IPEncap", "4, 18.26.4.24, 140.247.60.147", 1, 1);
    let out = rig.push(0, &[inner.clone(), inner.clone()]);
    let first = header(&out[0]);
    assert_eq!((first.source, first.destination), ([18, 26, 4, 24], [140, 247, 60, 147]));
    assert_eq!((first.protocol.0, first.time_to_live), (4, 250));
    assert_eq!((usize::from(first.total_len), first.dont_fragment), (20 + inner.bytes.len(), false));
    assert_eq!((first.dscp.value(), first.ecn.value()), (0, 0));
    assert_eq!(out[0].packet.bytes[20..], inner.bytes);
    assert_eq!(out[0].packet.anno(anno::DST_IP), 0x8cf7_3c93);
    assert_eq!(header(&out[1]).identification, first.identification + 1);
}

#[test]
fn ipencap_takes_all_keywords() {
    let inner = TestPacket::frame(b"data");
    for (keywords, tos, ttl, df) in [
        ("TTL 3, DSCP 46, ECT true, DF true", 46 << 2 | 1, 3, true),
        ("ECT 2", 2, 250, false),
        ("CE true, DSCP 1", 7, 250, false),
        ("TOS 255", 255, 250, false),
        ("ECT false, CE false, TOS 16", 16, 250, false),
    ] {
        let mut rig = Rig::new("IPEncap", &format!("ipip, 1.0.0.1, 2.0.0.2, {keywords}"), 1, 1);
        let out = rig.push_one(0, &inner);
        let header = header(&out);
        assert_eq!(
            (out.packet.bytes[1], header.time_to_live, header.dont_fragment),
            (tos, ttl, df),
            "{keywords}"
        );
        assert_eq!(header.protocol.0, 4);
    }
    for (config, count) in [
        ("", 3),
        ("tcpp, 1.0.0, 2", 3),
        ("4, 1.0.0.1, 2.0.0.2, TOS 1, DSCP 1", 1),
        ("4, 1.0.0.1, 2.0.0.2, TOS 1, CE true", 1),
        ("4, 1.0.0.1, 2.0.0.2, ECT 2, CE true", 1),
        ("4, 1.0.0.1, 2.0.0.2, TOS 256, DSCP 63, ECT 3, TTL 256", 4),
    ] {
        let mistakes = Rig::try_new("IPEncap", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}

#[test]
fn the_destination_may_come_from_the_annotation() {
    let inner = TestPacket::frame(b"data").with_anno(anno::DST_IP, 0x0908_0706);
    let mut rig = Rig::new("IPEncap", "4, 1.0.0.1, DST_ANNO", 1, 1);
    let out = rig.push_one(0, &inner);
    assert_eq!(header(&out).destination, [9, 8, 7, 6]);
    assert_eq!(out.packet.anno(anno::DST_IP), 0x0908_0706);
    assert_eq!((rig.read("src").as_str(), rig.read("dst").as_str()), ("1.0.0.1", "DST_ANNO"));
    rig.write("dst", "3.3.3.3").unwrap();
    rig.write("src", "4.4.4.4").unwrap();
    let changed = header(&rig.push_one(0, &inner));
    assert_eq!((changed.source, changed.destination), ([4; 4], [3; 4]));
    assert_eq!((rig.read("src").as_str(), rig.read("dst").as_str()), ("4.4.4.4", "3.3.3.3"));
    rig.write("dst", "DST_ANNO").unwrap();
    assert_eq!(header(&rig.push_one(0, &inner)).destination, [9, 8, 7, 6]);
    assert!(rig.write("dst", "nobody").is_err() && rig.write("sport", "1").is_err());
}

#[test]
fn udpipencap_puts_both_headers_in_front() {
    let mut rig = Rig::new("UDPIPEncap", "1.0.0.1, 1234, 2.0.0.2, 5678", 1, 1);
    for payload in [&b""[..], b"x", b"hello", &[7; 5000]] {
        let out = rig.push_one(0, &TestPacket::frame(payload));
        let ip = header(&out);
        assert_eq!((ip.protocol, ip.time_to_live), (IpNumber::UDP, 250));
        let udp = UdpHeaderSlice::from_slice(&out.packet.bytes[20..]).unwrap();
        assert_eq!((udp.source_port(), udp.destination_port()), (1234, 5678));
        assert_eq!(usize::from(udp.length()), 8 + payload.len());
        assert_eq!(&out.packet.bytes[28..], payload);
        assert_checksums(&out.packet.bytes);
        assert_eq!(out.packet.anno(anno::DST_IP), 0x0200_0002);
    }
    for (handler, value) in [("src", "3.0.0.3"), ("sport", "1"), ("dst", "4.0.0.4"), ("dport", "65535")] {
        rig.write(handler, value).unwrap();
        assert_eq!(rig.read(handler), value);
    }
    let out = rig.push_one(0, &TestPacket::frame(b"hello"));
    assert_checksums(&out.packet.bytes);
    assert_eq!(out.packet.bytes[12..24], [3, 0, 0, 3, 4, 0, 0, 4, 0, 1, 255, 255]);
    assert!(rig.write("sport", "65536").is_err());
    let mut rig = Rig::new("UDPIPEncap", "1.0.0.1, 1234, DST_ANNO, 5678, false", 1, 1);
    let out = rig.push_one(0, &TestPacket::frame(b"hello").with_anno(anno::DST_IP, 0x0908_0706));
    assert_eq!((header(&out).destination, &out.packet.bytes[26..28]), ([9, 8, 7, 6], [0, 0].as_slice()));
    assert_eq!(rig.read("dst"), "0.0.0.0");
    assert!(Rig::try_new("UDPIPEncap", "1.0.0.1, 65536, 2.0.0.2", 1, 1).is_err());
}

#[test]
fn packets_that_would_be_too_long_are_dropped() {
    for (class, config, headers) in
        [("IPEncap", "4, 1.0.0.1, 2.0.0.2", 20), ("UDPIPEncap", "1.0.0.1, 1, 2.0.0.2, 2", 28)]
    {
        let mut rig = Rig::new(class, config, 1, 1);
        let out = rig.push_one(0, &TestPacket::frame(&vec![1; 65_535 - headers]));
        assert_eq!((out.exit, out.packet.bytes.len()), (Exit::Port(0), 65_535));
        assert_ip_checksum(&out.packet.bytes);
        let out = rig.push_one(0, &TestPacket::frame(&vec![1; 65_536 - headers]));
        assert_eq!(out.exit, dropped("too-long"));
        differential(class, config, 1, 1);
    }
}

#[test]
fn icmpipencap_puts_both_headers_in_front() {
    let mut rig = Rig::new("ICMPIPEncap", "1.0.0.1, 2.0.0.2, echo, IDENTIFIER 3", 1, 1);
    let out = rig.push(0, &[TestPacket::frame(b"data"), TestPacket::frame(b"")]);
    for (at, out) in out.iter().enumerate() {
        let ip = header(out);
        assert_eq!((ip.source, ip.destination, ip.protocol.0), ([1, 0, 0, 1], [2, 0, 0, 2], 1));
        assert_eq!((ip.time_to_live, ip.identification), (255, at as u16 + 1));
        assert_checksums(&out.packet.bytes);
        assert_eq!(out.packet.bytes[20..22], [8, 0]);
        let numbers = [3u16, at as u16 + 1].map(u16::to_ne_bytes);
        assert_eq!(out.packet.bytes[24..28], numbers.concat());
        assert_eq!(out.packet.anno(anno::DST_IP), 0x0200_0002);
    }
    assert_eq!(out[0].packet.bytes[28..], *b"data");
    let mut ping = Rig::new("ICMPPingEncap", "1.0.0.1, 2.0.0.2, IDENTIFIER 3", 1, 1);
    assert_eq!(ping.push_one(0, &TestPacket::frame(b"data")).packet.bytes, out[0].packet.bytes);

    for (kind, len) in [("timestamp", 20), ("17", 12), ("unreachable, net", 8)] {
        let mut rig = Rig::new("ICMPIPEncap", &format!("1.0.0.1, 2.0.0.2, {kind}"), 1, 1);
        let out = rig.push_one(0, &TestPacket::frame(b""));
        assert_eq!((out.packet.bytes.len(), header(&out).source), (20 + len, [1, 0, 0, 1]));
        assert_checksums(&out.packet.bytes);
        rig.write("src", "9.9.9.9").unwrap();
        rig.write("dst", "8.8.8.8").unwrap();
        assert_eq!((rig.read("src"), rig.read("dst")), ("9.9.9.9".into(), "8.8.8.8".into()));
        let ip = header(&rig.push_one(0, &TestPacket::frame(b"")));
        assert_eq!((ip.source, ip.destination), ([9; 4], [8; 4]));
    }
    let long = TestPacket::frame(&[0; 65_508]);
    assert_eq!(rig.push_one(0, &long).exit, dropped("too-long"));
    for (config, count) in [("", 3), ("1.2.3.4, 1.2.3, ekko", 2), ("1.2.3.4, 1.2.3.4, 3, nett", 1)] {
        let mistakes = Rig::try_new("ICMPIPEncap", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}
