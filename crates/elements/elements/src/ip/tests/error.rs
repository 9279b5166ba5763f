//! `ICMPError`.

use super::*;
use crate::testing::Rig;
use etherparse::{Icmpv4Type, icmpv4};
use packet::anno;
use shm::descriptor::PacketType;

const ME: &str = "18.26.4.24";

fn answer(config: &str, packet: &TestPacket) -> Out {
    Rig::new("ICMPError", &format!("{ME}, {config}"), 1, 1).push_one(0, packet)
}

/// Header length and ICMP type of an error that is right in all respects.
#[track_caller]
fn check(out: &Out, about: &[u8], mtu: usize) -> (usize, Icmpv4Type) {
    assert_eq!(out.exit, Exit::Port(0));
    let bytes = &out.packet.bytes;
    assert_ip_checksum(bytes);
    let ip = Ipv4HeaderSlice::from_slice(bytes).unwrap();
    let header = ip.slice().len();
    assert_eq!((ip.source(), ip.destination()), ([18, 26, 4, 24], SRC));
    assert_eq!((usize::from(ip.total_len()), ip.protocol()), (bytes.len(), IpNumber::ICMP));
    assert!(!ip.more_fragments() && ip.fragments_offset().value() == 0);
    let quoted = &bytes[header + 8..];
    assert!(bytes.len() <= mtu && about.starts_with(quoted));
    assert!(quoted.len() == about.len() || bytes.len() == mtu, "as much as fits");
    let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes[header..]).ones_complement();
    assert_eq!(sum, 0, "ICMP checksum");
    assert_eq!((out.packet.net, out.packet.trans, out.packet.mac), (Some(0), Some(header as i32), None));
    assert_eq!(out.packet.anno(anno::DST_IP), 0x0a00_0001);
    (header, Icmpv4Slice::from_slice(&bytes[header..]).unwrap().icmp_type())
}

#[test]
fn errors_quote_the_packet_and_go_to_its_source() {
    let ip = udp(b"hello");
    for packet in [TestPacket::ip(&ip), TestPacket { net: Some(14), trans: Some(34), ..frame(&ip) }] {
        let marked = packet.with_anno(anno::PAINT, 3);
        let out = answer("timeexceeded", &marked);
        let (_, kind) = check(&out, &ip, 576);
        assert_eq!(kind, Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit));
        assert_eq!((out.packet.anno(anno::FIX_IP_SRC), out.packet.anno(anno::PAINT)), (1, 0));
        assert_eq!(out.packet.packet_type, PacketType::Host as u8);
    }
    let out = answer("timeexceeded, SET_FIX_ANNO false", &TestPacket::ip(&ip));
    assert_eq!(out.packet.anno(anno::FIX_IP_SRC), 0);
}

#[test]
fn errors_are_no_longer_than_the_mtu() {
    for length in [0, 500, 519, 520, 521, 1400, 4000] {
        let ip = udp(&vec![7; length]);
        check(&answer("3", &TestPacket::ip(&ip)), &ip, 576);
        check(&answer("3, MTU 1500", &TestPacket::ip(&ip)), &ip, 1500);
        check(&answer("3, MTU 4096", &TestPacket::ip(&ip)), &ip, 4096);
    }
    let out = answer("3, MTU 1", &TestPacket::ip(&udp(b"x")));
    assert_eq!(out.packet.bytes.len(), 28);
}

#[test]
fn each_type_has_its_word() {
    let packet =
        TestPacket::ip(&udp(b"x")).with_anno(anno::ICMP_PARAMPROB, 22).with_anno(anno::DST_IP, 0x0102_0304);
    for (config, start) in [
        ("unreachable, needfrag, PMTU 1400", [3, 4, 0, 0, 5, 120]),
        ("unreachable, filterprohibited", [3, 13, 0, 0, 0, 0]),
        ("unreachable, port", [3, 3, 0, 0, 0, 0]),
        ("unreachable, protocol, PMTU 1400", [3, 2, 0, 0, 0, 0]),
        ("parameterproblem, erroratptr", [12, 0, 22, 0, 0, 0]),
        ("parameterproblem, missingopt", [12, 1, 0, 0, 0, 0]),
        ("redirect, host", [5, 1, 1, 2, 3, 4]),
        ("sourcequench", [4, 0, 0, 0, 0, 0]),
        ("timeexceeded, reassembly", [11, 1, 0, 0, 0, 0]),
        ("11, 1", [11, 1, 0, 0, 0, 0]),
    ] {
        let out = answer(config, &packet);
        check(&out, &packet.bytes, 576);
        let icmp = &out.packet.bytes[20..];
        assert_eq!([icmp[0], icmp[1], icmp[4], icmp[5], icmp[6], icmp[7]], start, "{config}");
    }
}

#[test]
fn no_error_is_sent_where_none_may_be() {
    let good = udp(b"hello");
    let from = |src: [u8; 4]| {
        let mut bytes = good.clone();
        bytes[12..16].copy_from_slice(&src);
        TestPacket::ip(&fix_ip_checksum(bytes))
    };
    let to = |dst: [u8; 4]| {
        let mut bytes = good.clone();
        bytes[16..20].copy_from_slice(&dst);
        TestPacket::ip(&fix_ip_checksum(bytes))
    };
    let icmp = |kind: u8| {
        let mut bytes = ping(&[0; 28]);
        bytes[20] = kind;
        TestPacket::ip(&bytes)
    };
    let link = |kind: PacketType| TestPacket { packet_type: kind as u8, ..TestPacket::ip(&good) };
    let cases = [
        (icmp(3), "icmp-error"),
        (icmp(4), "icmp-error"),
        (icmp(5), "icmp-error"),
        (icmp(11), "icmp-error"),
        (icmp(12), "icmp-error"),
        (TestPacket::ip(&ping(b"")[..20]), "icmp-error"),
        (to([255, 255, 255, 255]), "bad-destination"),
        (to([224, 0, 0, 1]), "bad-destination"),
        (to([18, 26, 4, 255]), "bad-destination"),
        (link(PacketType::Broadcast), "link-broadcast"),
        (link(PacketType::Multicast), "link-broadcast"),
        (from([0, 0, 0, 0]), "bad-source"),
        (from([0, 1, 2, 3]), "bad-source"),
        (from([127, 0, 0, 1]), "bad-source"),
        (from([239, 1, 1, 1]), "bad-source"),
        (from([240, 0, 0, 1]), "bad-source"),
        (from([255, 255, 255, 255]), "bad-source"),
        (from([18, 26, 4, 0]), "bad-source"),
        (TestPacket::ip(&with_byte(good.clone(), 7, 1)), "later-fragment"),
        (TestPacket { net: None, ..TestPacket::ip(&good) }, "no-ip-header"),
        (TestPacket::ip(&good[..19]), "no-ip-header"),
        (TestPacket::ip(&[]), "no-ip-header"),
    ];
    for (packet, reason) in cases {
        let out = answer("timeexceeded, transit, 18.26.4.255 18.26.4.0", &packet);
        assert_eq!((out.exit, &out.packet), (dropped(reason), &packet));
    }
    for packet in
        [icmp(8), icmp(0), link(PacketType::OtherHost), TestPacket::ip(&with_byte(good.clone(), 6, 0x20))]
    {
        check(&answer("timeexceeded", &packet), &packet.bytes, 576);
    }
}

#[test]
fn errors_go_back_the_way_a_packet_was_routed() {
    // Two addresses recorded, a third one to come.
    let option = [131, 15, 12, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0];
    let ip = with_options(&udp(b"hello"), &option);
    let out = answer("timeexceeded", &TestPacket::ip(&ip));
    let (header, _) = check(&out, &ip, 576);
    assert_eq!(out.packet.bytes[20..header], [131, 11, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0]);
    let out = answer("redirect, host", &TestPacket::ip(&ip));
    assert_eq!(out.exit, dropped("source-routed"));
    // A problem with the route itself is not sent along it, others are.
    for (pointer, length) in [(20, 20), (22, 20), (34, 20), (35, 32), (19, 32)] {
        let packet = TestPacket::ip(&ip).with_anno(anno::ICMP_PARAMPROB, pointer);
        let (header, _) = check(&answer("parameterproblem", &packet), &ip, 576);
        assert_eq!(header, length, "pointer {pointer}");
    }
    // Options that are no source route, or a broken one.
    for option in [
        [7, 7, 4, 0, 0, 0, 0, 0],
        [131, 7, 3, 1, 1, 1, 1, 0],
        [131, 7, 12, 1, 1, 1, 1, 0],
        [131, 9, 4, 1, 1, 1, 1, 0],
        [0, 131, 3, 4, 0, 0, 0, 0],
    ] {
        let ip = with_options(&udp(b"x"), &option);
        let (header, _) = check(&answer("timeexceeded", &TestPacket::ip(&ip)), &ip, 576);
        assert_eq!(header, 20, "{option:?}");
    }
}

#[test]
fn handlers_change_what_errors_say() {
    let mut rig = Rig::new("ICMPError", "1.1.1.1, unreachable, needfrag", 1, 1);
    for (handler, value) in [("src", "18.26.4.24"), ("mtu", "60"), ("pmtu", "1280")] {
        rig.write(handler, value).unwrap();
        assert_eq!(rig.read(handler), value);
    }
    let ip = udp(&[1; 100]);
    let out = rig.push(0, &[TestPacket::ip(&ip), TestPacket::ip(&ip)]);
    check(&out[0], &ip, 60);
    assert_eq!(out[0].packet.bytes[26..28], 1280u16.to_be_bytes());
    assert_ne!(out[0].packet.bytes[4..6], out[1].packet.bytes[4..6], "identification");
    assert!(rig.write("pmtu", "65536").is_err() && rig.write("type", "3").is_err());
    for (config, count) in [
        ("", 2),
        ("1.1.1.1, 8", 1),
        ("1.1.1.1, unreachabel, 256, 1.1.1", 3),
        ("1.1.1.1, timeexceeded, needfrag", 1),
        ("1.1.1.1, 3, 0, MTUU 5", 1),
    ] {
        let mistakes = Rig::try_new("ICMPError", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}
