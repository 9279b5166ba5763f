//! Elements that change headers.

use super::*;
use crate::testing::{Rig, differential};
use packet::anno;

/// The same packet as IP packet and behind an Ethernet header.
fn both_places(ip: &[u8]) -> [TestPacket; 2] {
    let header = i32::from(ip[0] & 15) * 4;
    [TestPacket::ip(ip), TestPacket { net: Some(14), trans: Some(14 + header), ..frame(ip) }]
}

fn ip_of(packet: &TestPacket) -> &[u8] {
    &packet.bytes[packet.net.unwrap() as usize..]
}

#[test]
fn storeipaddress_writes_at_an_offset() {
    let mut rig = Rig::new("StoreIPAddress", "16", 1, 2);
    let packet = TestPacket::ip(&udp(b""));
    let out = rig.push_one(0, &packet.clone().with_anno(anno::DST_IP, 0x0102_0304));
    assert_eq!((out.exit, &out.packet.bytes[16..20]), (Exit::Port(0), [1, 2, 3, 4].as_slice()));
    assert_eq!(out.packet.bytes[10..12], packet.bytes[10..12], "no checksum is touched");
    assert_eq!(rig.push_one(0, &packet).packet, packet, "an annotation of 0 changes nothing");
    let short = TestPacket::ip(&packet.bytes[..19]).with_anno(anno::DST_IP, 1);
    assert_eq!(rig.push_one(0, &short).exit, Exit::Port(1));
    let mut rig = Rig::new("StoreIPAddress", "0.0.0.0, 0", 1, 1);
    assert_eq!(rig.push_one(0, &packet).packet.bytes[..4], [0; 4]);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[1; 3])).exit, dropped("out-of-range"));
}

#[test]
fn storeipaddress_updates_checksums_of_the_header_it_writes_to() {
    let mut silent = udp(b"x");
    silent[26..28].fill(0);
    for (config, at) in [("9.8.7.6, src", 12), ("9.8.7.6, DST", 16), ("0.0.0.0, dst", 16)] {
        let mut rig = Rig::new("StoreIPAddress", config, 1, 1);
        for ip in [udp(b"hello"), tcp(b"hello"), ping(b"x"), with_options(&tcp(b"hi"), &[1; 12])] {
            for packet in both_places(&ip) {
                let out = rig.push_one(0, &packet);
                let address = if config.starts_with('9') { [9, 8, 7, 6] } else { [0; 4] };
                assert_eq!(ip_of(&out.packet)[at..at + 4], address);
                assert_checksums(ip_of(&out.packet));
            }
        }
        let out = rig.push_one(0, &TestPacket::ip(&silent));
        assert_eq!(out.packet.bytes[26..28], [0, 0], "no UDP checksum stays none");
        // A later fragment: what stands at the transport header is payload.
        let fragment = with_byte(udp(b"hello"), 7, 3);
        let out = rig.push_one(0, &TestPacket::ip(&fragment));
        assert_ip_checksum(&out.packet.bytes);
        assert_eq!(out.packet.bytes[20..], fragment[20..]);
    }
    let mut rig = Rig::new("StoreIPAddress", "src", 1, 1);
    let packet = TestPacket::ip(&udp(b"x"));
    assert_eq!(rig.push_one(0, &packet).packet, packet);
    let out = rig.push_one(0, &packet.clone().with_anno(anno::DST_IP, 0x0908_0706));
    assert_eq!(out.packet.bytes[12..16], [9, 8, 7, 6]);
    let bare = TestPacket { net: None, ..packet.with_anno(anno::DST_IP, 1) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("out-of-range"));
}

#[test]
fn a_udp_checksum_never_becomes_zero_by_an_update() {
    let mut rig = Rig::new("StoreIPAddress", "10.0.0.77, src", 1, 1);
    for word in 0..=u16::MAX {
        if word % 251 != 0 {
            continue;
        }
        let mut ip = udp(&word.to_be_bytes());
        // The sum that becomes 0 when the source goes from .1 to .77.
        ip[26..28].copy_from_slice(&76u16.to_be_bytes());
        let out = rig.push_one(0, &TestPacket::ip(&ip));
        assert_eq!(out.packet.bytes[26..28], [0xff, 0xff]);
    }
    for (config, count) in [("", 1), ("1.2.3, nowhere", 2), ("1.2.3.4, src, 5", 1)] {
        let mistakes = Rig::try_new("StoreIPAddress", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
    for config in ["16", "9.8.7.6, 26", "9.8.7.6, src", "9.8.7.6, dst", "dst"] {
        differential("StoreIPAddress", config, 1, 1);
        differential("StoreIPAddress", config, 1, 2);
    }
}

#[test]
fn setipchecksum_computes_whatever_stood_there() {
    for class in ["SetIPChecksum", "ResetIPChecksum"] {
        let mut rig = Rig::new(class, "", 1, 1);
        for ip in [udp(b"hello"), with_options(&tcp(b""), &[7; 40]), with_options(&ping(b""), &[1; 4])] {
            for sum in [0u16, 1, 0x1234, 0xffff] {
                let mut wrong = ip.clone();
                wrong[10..12].copy_from_slice(&sum.to_be_bytes());
                for packet in both_places(&wrong) {
                    let out = rig.push_one(0, &packet);
                    assert_eq!((out.exit, ip_of(&out.packet)), (Exit::Port(0), &ip[..]));
                }
                let bare = TestPacket { net: None, ..TestPacket::ip(&wrong) };
                let out = rig.push_one(0, &bare);
                assert_eq!((out.packet.bytes, out.packet.net), (ip.clone(), None));
            }
        }
        let good = udp(b"");
        let mut bogus = good.clone();
        bogus[0] = 0x44;
        let mut cut = good.clone();
        cut[0] = 0x4f;
        let bad = [good[..19].to_vec(), bogus, cut, vec![]];
        for bytes in &bad {
            let packet = TestPacket::ip(bytes);
            let out = rig.push_one(0, &packet);
            assert_eq!((out.exit, out.packet.bytes), (dropped("bad-ip-header"), packet.bytes.clone()));
            let bare = TestPacket { net: None, ..packet };
            assert_eq!(rig.push_one(0, &bare).exit, dropped("bad-ip-header"));
        }
        assert_eq!(rig.read("drops"), "8");
        differential(class, "", 1, 1);
    }
}

#[test]
fn setipdscp_and_setipecn_change_their_bits_only() {
    let mut rig = Rig::new("SetIPDSCP", "46", 1, 1);
    for tos in 0..=255u8 {
        let out = rig.push_one(0, &TestPacket::ip(&with_byte(udp(b"x"), 1, tos)));
        assert_eq!(out.packet.bytes[1], 46 << 2 | tos & 3);
        assert_checksums(&out.packet.bytes);
    }
    rig.write("dscp", " 0").unwrap();
    let out = rig.push_one(0, &TestPacket::ip(&with_byte(udp(b"x"), 1, 0xff)));
    assert_eq!((out.packet.bytes[1], rig.read("dscp").as_str()), (3, "0"));
    assert!(rig.write("dscp", "64").is_err());
    for (ecn, bits) in
        [("no", 0), ("-", 0), ("0", 0), ("ect1", 1), ("ECT(1)", 1), ("ect2", 2), ("2", 2), ("ce", 3)]
    {
        let mut rig = Rig::new("SetIPECN", ecn, 1, 1);
        for tos in [0, 1, 2, 3, 0xfc, 0xff] {
            let out = rig.push_one(0, &TestPacket::ip(&with_byte(udp(b"x"), 1, tos)));
            assert_eq!(out.packet.bytes[1], tos & 0xfc | bits);
            assert_checksums(&out.packet.bytes);
        }
        assert_eq!(rig.read("ecn"), ecn);
        rig.write("ecn", "CE").unwrap();
        assert_eq!(rig.push_one(0, &TestPacket::ip(&udp(b"x"))).packet.bytes[1], 3);
    }
    let bare = TestPacket { net: None, ..TestPacket::ip(&udp(b"")) };
    for (class, config, wrong) in [("SetIPDSCP", "1", "64"), ("SetIPECN", "1", "4")] {
        assert_eq!(Rig::new(class, config, 1, 1).push_one(0, &bare).exit, dropped("no-ip-header"));
        assert!(Rig::try_new(class, wrong, 1, 1).is_err());
        assert!(Rig::try_new(class, "", 1, 1).is_err());
        differential(class, config, 1, 1);
    }
}

#[test]
fn markipce_marks_packets_of_senders_that_understand() {
    let with_ecn = |ecn: u8| TestPacket::ip(&with_byte(udp(b"x"), 1, 0xb8 | ecn));
    let mut rig = Rig::new("MarkIPCE", "", 1, 1);
    let out = rig.push(0, &[with_ecn(0), with_ecn(1), with_ecn(2), with_ecn(3)]);
    assert_eq!(exits(&out), [dropped("not-ect"), Exit::Port(0), Exit::Port(0), Exit::Port(0)]);
    for out in &out[1..] {
        assert_eq!(out.packet.bytes[1], 0xbb);
        assert_checksums(&out.packet.bytes);
    }
    assert_eq!(rig.read("drops"), "1");
    let mut rig = Rig::new("MarkIPCE", "true", 1, 1);
    assert_eq!(rig.push_one(0, &with_ecn(0)).packet.bytes[1], 0xbb);
    let bare = TestPacket { net: None, ..with_ecn(1) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("no-ip-header"));
    assert!(Rig::try_new("MarkIPCE", "perhaps", 1, 1).is_err());
    differential("MarkIPCE", "", 1, 1);
    differential("MarkIPCE", "FORCE true", 1, 1);
}

#[test]
fn ipmirror_swaps_addresses_ports_and_numbers() {
    let mut rig = Rig::new("IPMirror", "", 1, 1);
    for ip in [udp(b"hello"), tcp(b"hello"), with_options(&tcp(b""), &[1; 8])] {
        for packet in both_places(&ip) {
            let out = rig.push_one(0, &packet);
            let (new, header) = (ip_of(&out.packet), usize::from(ip[0] & 15) * 4);
            assert_eq!((&new[12..16], &new[16..20]), (&DST[..], &SRC[..]));
            assert_eq!(
                (&new[header..header + 2], &new[header + 2..header + 4]),
                (&ip[header + 2..header + 4], &ip[header..header + 2])
            );
            if ip[9] == 6 {
                assert_eq!(
                    (&new[header + 4..header + 8], &new[header + 8..header + 12]),
                    (&ip[header + 8..header + 12], &ip[header + 4..header + 8])
                );
            }
            // TCP's urgent pointer and offset do not move, so only UDP and TCP sums stay right.
            assert_checksums(new);
            assert_eq!(out.packet.anno(anno::DST_IP), 0x0a00_0001);
            let back = rig.push_one(0, &out.packet);
            assert_eq!(back.packet.bytes, packet.bytes);
        }
    }
    let fragment = with_byte(udp(b"hello"), 7, 3);
    assert_eq!(rig.push_one(0, &TestPacket::ip(&fragment)).packet.bytes[20..], fragment[20..]);
    let icmp = ping(b"hello");
    assert_eq!(rig.push_one(0, &TestPacket::ip(&icmp)).packet.bytes[20..], icmp[20..]);
    let short = tcp(b"")[..30].to_vec();
    let out = rig.push_one(0, &TestPacket::ip(&short)).packet.bytes;
    assert_eq!((&out[20..22], &out[24..]), (&short[22..24], &short[24..]));
    let bare = TestPacket { net: None, ..TestPacket::ip(&icmp) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("no-ip-header"));
    let mut rig = Rig::new("IPMirror", "DST_ANNO false", 1, 1);
    assert_eq!(rig.push_one(0, &TestPacket::ip(&icmp)).packet.anno(anno::DST_IP), 0);
    differential("IPMirror", "", 1, 1);
    differential("IPMirror", "false", 1, 1);
}

#[test]
fn fixipsrc_acts_on_request_only() {
    let mut rig = Rig::new("FixIPSrc", "7.7.7.7", 1, 1);
    let packet = TestPacket::ip(&with_options(&ping(b"x"), &[1; 4]));
    assert_eq!(rig.push_one(0, &packet).packet, packet);
    let out = rig.push_one(0, &packet.clone().with_anno(anno::FIX_IP_SRC, 1));
    assert_eq!(out.packet.bytes[12..16], [7; 4]);
    assert_eq!(out.packet.anno(anno::FIX_IP_SRC), 0);
    assert_ip_checksum(&out.packet.bytes);
    let bare = TestPacket { net: None, ..packet.clone() }.with_anno(anno::FIX_IP_SRC, 1);
    assert_eq!(rig.push_one(0, &bare).packet, bare);
    let cut = TestPacket::ip(&packet.bytes[..22]).with_anno(anno::FIX_IP_SRC, 1);
    assert_eq!(rig.push_one(0, &cut).exit, dropped("bad-ip-header"));
    assert!(Rig::try_new("FixIPSrc", "", 1, 1).is_err());
    differential("FixIPSrc", "7.7.7.7", 1, 1);
}

#[test]
fn resetipchecksum_computes_the_transport_checksum_if_it_is_told() {
    let mut rig = Rig::new("ResetIPChecksum", "L4 true", 1, 1);
    for (ip, sum_at) in [(udp(b"hello"), 26), (tcp(b"hello"), 36)] {
        let wrong = with_bytes(with_bytes(ip.clone(), 10, &[1, 2]), sum_at, &[3, 4]);
        for packet in both_places(&wrong) {
            assert_eq!(ip_of(&rig.push_one(0, &packet).packet), ip);
        }
        // A fragment, and one without a transport header.
        let fragment = with_byte(wrong.clone(), 7, 3);
        assert_eq!(rig.push_one(0, &TestPacket::ip(&fragment)).packet.bytes, fragment);
        let bare = TestPacket { trans: None, ..TestPacket::ip(&wrong) };
        assert_eq!(rig.push_one(0, &bare).packet.bytes[sum_at..sum_at + 2], [3, 4]);
        let mut plain = Rig::new("ResetIPChecksum", "", 1, 1);
        assert_eq!(plain.push_one(0, &TestPacket::ip(&wrong)).packet.bytes[sum_at..sum_at + 2], [3, 4]);
    }
    let silent = with_bytes(ping(b"hello"), 10, &[0, 0]);
    assert_ip_checksum(&rig.push_one(0, &TestPacket::ip(&silent)).packet.bytes);
    differential("ResetIPChecksum", "L4 true", 1, 1);
    assert!(Rig::try_new("ResetIPChecksum", "L4 7", 1, 1).is_err());
}
