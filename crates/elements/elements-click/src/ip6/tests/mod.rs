//! Packets in, packets out: what comes back from the other protocol is what was sent, and etherparse finds it right.

use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
use element::testing::ip::{ping, tcp, udp};
use element::testing::{Out, exits};
use etherparse::{Icmpv4Type, Icmpv6Slice, Ipv6HeaderSlice, PacketBuilder, icmpv4};
use packet::Access;

mod headers;

const PREFIX: &str = "PREFIX 64:ff9b::/96";

fn there(config: &str) -> Rig {
    Rig::new("ProtocolTranslator46", &format!("{PREFIX}, {config}"), 1, 1)
}

fn back(config: &str) -> Rig {
    Rig::new("ProtocolTranslator64", &format!("{PREFIX}, {config}"), 1, 1)
}

/// An IPv6 packet whose lengths and transport checksum are right.
#[track_caller]
fn right6(out: &Out) -> Vec<u8> {
    assert_eq!(out.exit, Exit::Port(0));
    let bytes = out.packet.bytes.clone();
    let ip = Ipv6HeaderSlice::from_slice(&bytes).unwrap();
    assert_eq!(usize::from(ip.payload_length()) + 40, bytes.len());
    let (sum_at, payload) = match ip.next_header().0 {
        6 => (16, &bytes[40..]),
        17 => (6, &bytes[40..]),
        58 => {
            let icmp = Icmpv6Slice::from_slice(&bytes[40..]).unwrap();
            assert!(icmp.is_checksum_valid(ip.source(), ip.destination()), "ICMPv6 checksum");
            return bytes;
        }
        _ => return bytes,
    };
    let pseudo = packet::checksum::pseudo_ipv6(
        ip.source_addr(),
        ip.destination_addr(),
        ip.next_header().0,
        payload.len() as u32,
    );
    assert_ne!(payload.u16(sum_at), Some(0));
    assert_eq!(pseudo.add_range(payload, 0, payload.len()).unwrap().fold(), 0xffff, "transport checksum");
    bytes
}

/// The same for IPv4.
#[track_caller]
fn right4(out: &Out) -> Vec<u8> {
    assert_eq!(out.exit, Exit::Port(0));
    element::testing::ip::assert_checksums(&out.packet.bytes);
    out.packet.bytes.clone()
}

#[test]
fn a_packet_need_not_be_marked() {
    let packet = TestPacket::ip(&udp(b"question"));
    let unmarked = TestPacket { net: None, trans: None, ..packet.clone() };
    let marked = there("").push_one(0, &packet);
    assert_eq!(there("").push_one(0, &unmarked), marked);
    let six = TestPacket { net: None, trans: None, ..marked.packet.clone() };
    assert_eq!(right4(&back("").push_one(0, &six)), right4(&back("").push_one(0, &marked.packet)));
    let source = Ipv6HeaderSlice::from_slice(&six.bytes).unwrap().source_addr();
    let config = format!("1, false, {source} 2001:db8::9, false");
    let out = Rig::new("AddressTranslator", &config, 2, 2).push_one(0, &six);
    assert_eq!(Ipv6HeaderSlice::from_slice(&right6(&out)).unwrap().source_addr().to_string(), "2001:db8::9");
}

#[test]
fn packets_come_back_as_they_were_sent_with_a_lower_ttl() {
    for (sent, kind) in [(udp(b"question"), 17), (tcp(b"data"), 6), (ping(b"are you there"), 58)] {
        let packet = TestPacket::ip(&sent);
        let out = there("").push_one(0, &packet);
        let six = right6(&out);
        assert_eq!(
            (six[6], six[7], out.packet.net, out.packet.trans),
            (kind, sent[8] - 1, Some(0), Some(40))
        );
        assert_eq!(six[8..20], [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((&six[20..24], &six[36..40]), (&sent[12..16], &sent[16..20]));
        let four = right4(&back("DECREMENT_TTL false").push_one(0, &out.packet));
        assert_eq!((four[8], &four[12..20], &four[20..]), (sent[8] - 1, &sent[12..20], &sent[20..]));
    }
    let without = there("DECREMENT_TTL false").push_one(0, &TestPacket::ip(&udp(b"x")));
    assert_eq!(without.packet.bytes[7], udp(b"x")[8]);
    let mut rig = Rig::new("ProtocolTranslator46", "", 1, 1);
    let mapped = rig.push_one(
        0,
        &TestPacket { net: Some(14), ..TestPacket::frame(&[&[0; 14][..], &udp(b"x")].concat()) },
    );
    assert_eq!(right6(&mapped)[8..20], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff], "as in Click");
    assert_eq!((mapped.packet.mac, rig.read("translated")), (None, "1".into()));
}

#[test]
fn checksums_that_are_missing_are_computed_and_wrong_ones_stay_wrong() {
    let mut none = udp(b"no checksum");
    none[26..28].fill(0);
    right6(&there("").push_one(0, &TestPacket::ip(&none)));
    let mut wrong = udp(b"wrong");
    wrong[26] ^= 0x55;
    let six = there("").push_one(0, &TestPacket::ip(&wrong)).packet;
    let four = back("").push_one(0, &six).packet.bytes;
    assert_eq!(four[20..], wrong[20..]);
}

/// An ICMPv4 error about a packet.
fn error4(kind: Icmpv4Type, about: &[u8]) -> TestPacket {
    let mut bytes = vec![];
    PacketBuilder::ipv4([192, 0, 2, 254], [10, 0, 0, 5], 64).icmpv4(kind).write(&mut bytes, about).unwrap();
    TestPacket::ip(&bytes)
}

#[test]
fn errors_quote_the_packet_as_the_other_side_knows_it() {
    use icmpv4::DestUnreachableHeader::{FragmentationNeeded, Port};
    for about in [udp(b"a question that is long enough"), tcp(b"data"), ping(b"ping")] {
        for (kind, expected) in [
            (Icmpv4Type::DestinationUnreachable(Port), [1, 4, 0]),
            (Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit), [3, 0, 0]),
            (Icmpv4Type::DestinationUnreachable(FragmentationNeeded { next_hop_mtu: 1400 }), [2, 0, 1420]),
        ] {
            // What the host behind the translator sent as IPv6.
            let seen = right6(&there("DECREMENT_TTL false").push_one(0, &TestPacket::ip(&about)));
            for cut in [28, 1000] {
                let cut = cut.min(about.len());
                let out = there("").push_one(0, &error4(kind.clone(), &about[..cut]));
                let six = right6(&out);
                let rest = six[40..].u32(4).unwrap();
                assert_eq!([u32::from(six[40]), u32::from(six[41]), rest], expected);
                assert_eq!(six[48..], seen[..cut + 20]);
                let four = right4(&back("").push_one(0, &out.packet));
                assert_eq!((four[20], &four[48..]), (error4(kind.clone(), b"").bytes[20], &about[20..cut]));
                assert_eq!(four[40..48], about[12..20]);
            }
        }
    }
    let of_error = error4(
        Icmpv4Type::DestinationUnreachable(Port),
        &error4(Icmpv4Type::DestinationUnreachable(Port), b"12345678").bytes,
    );
    assert_eq!(there("").push_one(0, &of_error).exit, dropped("no-equivalent"));
}

#[test]
fn an_error_of_a_router_without_ip4_address_gets_one() {
    let about = right6(&there("").push_one(0, &TestPacket::ip(&udp(b"x"))));
    let mut bytes = vec![];
    let to: std::net::Ipv6Addr = "64:ff9b::192.0.2.1".parse().unwrap();
    let from: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
    PacketBuilder::ipv6(from.octets(), to.octets(), 64)
        .icmpv6_raw(3, 0, [0; 4])
        .write(&mut bytes, &about)
        .unwrap();
    assert_eq!(back("").push_one(0, &TestPacket::ip(&bytes)).exit, dropped("no-ip4-address"));
    let four = right4(&back("ERROR_SOURCE 192.0.0.8").push_one(0, &TestPacket::ip(&bytes)));
    assert_eq!((&four[12..16], four[20]), (&[192, 0, 0, 8][..], 11));
    bytes[40] = 128;
    assert_eq!(
        back("ERROR_SOURCE 192.0.0.8").push_one(0, &TestPacket::ip(&bytes)).exit,
        dropped("no-ip4-address")
    );
}

#[test]
fn large_packets_are_cut_unless_that_is_forbidden() {
    let sent = udp(&(0..3000).map(|n| n as u8).collect::<Vec<_>>());
    let mut may = sent.clone();
    may[4..8].copy_from_slice(&[0x12, 0x34, 0, 0]);
    let may = element::testing::ip::fix_ip_checksum(may);
    let out = there("DECREMENT_TTL false").push(0, &[TestPacket::ip(&may), TestPacket::ip(&udp(b"small"))]);
    assert_eq!(exits(&out), [Exit::Port(0), Exit::Port(0), Exit::Port(0), Exit::Port(0)]);
    let mut fragments: Vec<&TestPacket> =
        out.iter().map(|out| &out.packet).filter(|p| p.bytes[6] == 44).collect();
    assert!(fragments.iter().all(|packet| packet.bytes.len() <= 1280 && packet.trans == Some(48)));
    fragments.sort_by_key(|packet| packet.bytes.u16(42));
    assert!(fragments.iter().all(|packet| packet.bytes.u32(44) == Some(0x1234)));
    // Back in IPv4 they are the fragments of what was sent.
    let parts: Vec<Vec<u8>> =
        fragments.iter().map(|packet| back("DECREMENT_TTL false").push_one(0, packet).packet.bytes).collect();
    let mut payload = vec![];
    for part in &parts {
        element::testing::ip::assert_ip_checksum(part);
        assert_eq!(
            (usize::from(part.as_slice().u16(6).unwrap() & 0x1fff) * 8, part.as_slice().u16(4)),
            (payload.len(), Some(0x1234))
        );
        payload.extend_from_slice(&part[20..]);
    }
    assert_eq!(payload, sent[20..], "the checksum is that of the whole datagram");
    let mut must_not = may.clone();
    must_not[6] = 0x40;
    let six =
        right6(&there("").push_one(0, &TestPacket::ip(&element::testing::ip::fix_ip_checksum(must_not))));
    assert_eq!(six.len(), sent.len() + 20);
    let four = right4(&back("").push_one(0, &TestPacket::ip(&six)));
    assert_eq!(four[6], 0x40, "and it must not be on the way back");
}

#[test]
fn what_has_no_translation_is_dropped_with_the_reason_or_leaves_by_output_1() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = udp(b"payload");
        change(&mut bytes);
        TestPacket::ip(&element::testing::ip::fix_ip_checksum(bytes))
    };
    let mut source_route = element::testing::ip::with_options(&udp(b"x"), &[131, 7, 4, 10, 0, 0, 9, 0]);
    let cases = [
        (with(&|bytes| bytes[8] = 1), "ttl-expired"),
        (
            with(&|bytes| {
                bytes[6] = 0x20;
                bytes[26..28].fill(0)
            }),
            "zero-checksum",
        ),
        (
            with(&|bytes| {
                bytes[9] = 1;
                bytes[7] = 5
            }),
            "icmp-fragment",
        ),
        (
            with(&|bytes| {
                bytes[9] = 1;
                bytes[20] = 13
            }),
            "no-equivalent",
        ),
        (TestPacket::ip(&source_route), "source-route"),
        (with(&|bytes| bytes.truncate(25)), "no-ip-header"),
        (TestPacket::ip(b""), "no-ip-header"),
        (TestPacket::frame(&[0; 60]), "no-ip-header"),
        (TestPacket::ip(&[0x60; 60]), "no-ip-header"),
    ];
    for (packet, reason) in &cases {
        assert_eq!(there("").push_one(0, packet).exit, dropped(reason));
        let out = Rig::new("ProtocolTranslator46", "", 1, 2).push_one(0, packet);
        assert_eq!((out.exit, out.packet.bytes), (Exit::Port(1), packet.bytes.clone()));
    }
    source_route[22] = 8;
    assert_eq!(
        there("").push_one(0, &TestPacket::ip(&element::testing::ip::fix_ip_checksum(source_route))).exit,
        Exit::Port(0),
        "the list has come to its end"
    );
    let six = right6(&there("").push_one(0, &TestPacket::ip(&udp(b"x"))));
    let six_with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = six.clone();
        change(&mut bytes);
        TestPacket::ip(&bytes)
    };
    for (packet, reason) in [
        (six_with(&|bytes| bytes[7] = 1), "ttl-expired"),
        (six_with(&|bytes| bytes[9] = 9), "no-ip4-address"),
        (
            six_with(&|bytes| {
                bytes[6] = 58;
                bytes[40] = 135
            }),
            "no-equivalent",
        ),
        (
            six_with(&|bytes| {
                bytes[6] = 43;
                bytes[41] = 0;
                bytes[43] = 1
            }),
            "source-route",
        ),
        (six_with(&|bytes| bytes.truncate(45)), "no-ip-header"),
        (TestPacket::ip(&udp(b"x")), "no-ip-header"),
    ] {
        assert_eq!(back("").push_one(0, &packet).exit, dropped(reason));
    }
    let mut rig = there("");
    rig.starve(true);
    let mut large = udp(&[0; 3000]);
    large[6] = 0;
    let large = TestPacket::ip(&element::testing::ip::fix_ip_checksum(large));
    assert_eq!(rig.push_one(0, &large).exit, dropped("no-room"));
}

#[test]
fn prefixes_that_embed_no_addresses_are_refused() {
    for wrong in [
        "PREFIX 64:ff9b::/97",
        "PREFIX 2001:db8::1/32",
        "PREFIX 10.0.0.0/8",
        "DECREMENT_TTL 7",
        "ERROR_SOURCE 1.2.3.4",
    ] {
        assert_eq!(mistakes("ProtocolTranslator46", wrong, 1, 1).len(), 1, "{wrong}");
    }
}
