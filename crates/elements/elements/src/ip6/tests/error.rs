//! `ICMP6Error`.

use super::*;
use crate::testing::Rig;
use packet::anno;
use shm::descriptor::PacketType;

const ME: &str = "2001:db8::ff";

fn answer(config: &str, packet: &TestPacket) -> Out {
    Rig::new("ICMP6Error", &format!("{ME}, {config}"), 1, 1).push_one(0, packet)
}

/// The message of an error that is right in all respects.
#[track_caller]
fn check(out: &Out) -> Vec<u8> {
    assert_eq!(out.exit, Exit::Port(0));
    let (src, dst, message) = right_icmp6(&out.packet.bytes);
    assert_eq!((src, dst, out.packet.bytes[7]), (address(ME), address(SRC), 255));
    assert!(out.packet.bytes.len() <= 1280);
    assert_eq!((out.packet.mac, out.packet.net, out.packet.trans), (None, Some(0), Some(40)));
    assert_eq!((annotation(&out.packet), out.packet.anno(anno::FIX_IP_SRC)), (address(SRC), 1));
    message.to_vec()
}

#[test]
fn errors_quote_as_much_as_fits() {
    for length in [0, 100, 1183, 1184, 1185, 3000] {
        let ip = udp6(SRC, DST, &vec![7; length]);
        for packet in [TestPacket::ip(&ip), TestPacket { net: Some(14), trans: Some(54), ..frame6(&ip) }] {
            let message = check(&answer("3, 0", &packet));
            assert_eq!(message[..2], [3, 0]);
            assert_eq!(message[4..8], [0; 4]);
            assert_eq!(message[8..], ip[..ip.len().min(1232)]);
        }
    }
}

#[test]
fn each_type_has_its_word() {
    let ip = udp6(SRC, DST, b"hello");
    let packet = with_annotation(TestPacket::ip(&ip), "fe80::9").with_anno(anno::ICMP_PARAMPROB, 42);
    assert_eq!(check(&answer("1, 4", &packet))[..8][4..], [0; 4]);
    assert_eq!(check(&answer("2, 0", &packet))[4..8], [0, 0, 5, 0]);
    assert_eq!(check(&answer("4, 1", &packet))[4..8], [0, 0, 0, 42]);
    let redirect = check(&answer("137, 0", &packet));
    assert_eq!(redirect[4..8], [0; 4]);
    assert_eq!(
        (&redirect[8..24], &redirect[24..40]),
        (&address("fe80::9").octets()[..], &address(DST).octets()[..])
    );
    // The redirected header option: whole units of 8 bytes.
    let quoted = ip.len() / 8 * 8;
    assert_eq!(redirect[40..48], [4, (quoted / 8 + 1) as u8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(redirect[48..], ip[..quoted]);
    check(&answer("137, 0", &with_annotation(TestPacket::ip(&udp6(SRC, DST, &[1; 2000])), "fe80::9")));
}

/// The packet with a header of 8 bytes between IPv6 header and the rest.
fn extended(ip: &[u8], kind: u8, header: [u8; 7]) -> TestPacket {
    let mut bytes = ip[..40].to_vec();
    bytes.push(ip[6]);
    bytes.extend(header);
    bytes.extend_from_slice(&ip[40..]);
    bytes[6] = kind;
    let payload = (bytes.len() - 40) as u16;
    bytes[4..6].copy_from_slice(&payload.to_be_bytes());
    TestPacket::ip(&bytes)
}

#[test]
fn no_error_is_sent_where_none_may_be() {
    let good = udp6(SRC, DST, b"hello");
    let icmp = |kind: u8| icmp6(SRC, DST, kind, &[0; 40]);
    let link = |kind: PacketType| TestPacket { packet_type: kind as u8, ..TestPacket::ip(&good) };
    let cases = [
        (TestPacket::ip(&icmp(1)), "icmp-error"),
        (TestPacket::ip(&icmp(4)), "icmp-error"),
        (TestPacket::ip(&icmp(127)), "icmp-error"),
        (TestPacket::ip(&icmp(137)), "icmp-error"),
        (TestPacket::ip(&icmp(128)[..40]), "icmp-error"),
        (extended(&icmp(3), 60, [0; 7]), "icmp-error"),
        (extended(&icmp(3), 44, [0, 0, 1, 0, 0, 0, 1]), "icmp-error"),
        (TestPacket::ip(&udp6(SRC, "ff02::1", b"")), "bad-destination"),
        (link(PacketType::Broadcast), "link-broadcast"),
        (link(PacketType::Multicast), "link-broadcast"),
        (TestPacket::ip(&udp6("::", DST, b"")), "bad-source"),
        (TestPacket::ip(&udp6("::1", DST, b"")), "bad-source"),
        (TestPacket::ip(&udp6("ff02::1", DST, b"")), "bad-source"),
        (extended(&good, 44, [0, 0, 8, 0, 0, 0, 1]), "later-fragment"),
        (TestPacket { net: None, ..TestPacket::ip(&good) }, "no-ip6-header"),
        (TestPacket::ip(&good[..39]), "no-ip6-header"),
    ];
    for (packet, reason) in cases {
        let out = answer("3, 0", &packet);
        assert_eq!((out.exit, &out.packet), (dropped(reason), &packet), "{reason}");
    }
    for packet in [
        TestPacket::ip(&icmp(128)),
        extended(&good, 0, [0; 7]),
        extended(&good, 44, [0, 0, 1, 0, 0, 0, 1]),
        link(PacketType::OtherHost),
    ] {
        check(&answer("3, 0", &packet));
    }
    // What multicast packets do get (RFC 4443 section 2.4 e.3).
    for config in ["2, 0", "4, 2"] {
        check(&answer(config, &TestPacket::ip(&udp6(SRC, "ff02::1", b""))));
        check(&answer(config, &link(PacketType::Multicast)));
    }
    assert_eq!(answer("4, 1", &TestPacket::ip(&udp6(SRC, "ff02::1", b""))).exit, dropped("bad-destination"));
    for (config, count) in
        [("", 3), ("1.2.3.4, 5, 256", 3), ("::1, 3, 0, 0", 1), ("::, 3, 0", 1), ("ff02::1, 3, 0", 1)]
    {
        let mistakes = Rig::try_new("ICMP6Error", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}
