//! `IPInputCombo` and `IPOutputCombo`.

use super::*;
use crate::testing::{Rig, differential, mistakes};
use packet::anno;
use shm::descriptor::PacketType;

/// What the single elements make of packets, one after the other; each has output 1 for its bad packets.
fn through(elements: &[(&str, &str)], packet: &TestPacket) -> Out {
    let mut last = Out { exit: Exit::Port(0), packet: packet.clone() };
    for (class, config) in elements {
        if last.exit != Exit::Port(0) {
            break;
        }
        last = Rig::new(class, config, 1, 1).push_one(0, &last.packet);
    }
    last
}

#[test]
fn the_input_does_what_its_elements_do() {
    let elements = [("Paint", "3"), ("Strip", "14"), ("CheckIPHeader", "INTERFACES 10.0.0.7/24")];
    let mut rig = Rig::new("IPInputCombo", "3, INTERFACES 10.0.0.7/24", 1, 1);
    let good = udp(b"hello");
    let padded = [&good[..], &[0; 9]].concat();
    let bad_source = with_bytes(good.clone(), 12, &[10, 0, 0, 255]);
    let to_me = with_bytes(bad_source.clone(), 16, &[10, 0, 0, 7]);
    let long = udp(&[7; 4000]);
    let ips = [good.clone(), padded, fix_ip_checksum(bad_source), fix_ip_checksum(to_me), long];
    let broken = [with_bytes(good.clone(), 10, &[0, 0]), good[..19].to_vec(), with_bytes(good, 0, &[0x65])];
    let mut bad = 0;
    for ip in ips.iter().chain(&broken) {
        let (out, wanted) = (rig.push_one(0, &frame(ip)), through(&elements, &frame(ip)));
        assert_eq!((&out.exit, &out.packet.bytes), (&wanted.exit, &wanted.packet.bytes));
        if out.exit == Exit::Port(0) {
            assert_eq!(out.packet, wanted.packet);
        } else {
            bad += 1;
        }
    }
    assert_eq!((bad, rig.read("drops")), (4, "4".into()));
    for config in ["1", "2, 10.0.0.255 10.0.0.1", "2, BADSRC 10.0.0.1, GOODDST 192.168.2.3"] {
        differential("IPInputCombo", config, 1, 1);
    }
    let mut rig = Rig::new("IPInputCombo", "0, 10.0.0.1", 1, 1);
    assert_eq!(rig.push_one(0, &frame(&ips[0])).exit, dropped("bad-source-address"));
    assert_eq!(mistakes("IPInputCombo", "", 1, 1).len(), 1);
    assert_eq!(mistakes("IPInputCombo", "256, nowhere, GOODDST 1.2", 1, 1).len(), 3);
}

const CONFIG: &str = "3, 18.26.4.9, 1500";

#[test]
fn the_output_does_what_its_elements_do() {
    let elements =
        [("DropBroadcasts", ""), ("IPGWOptions", "18.26.4.9"), ("FixIPSrc", "18.26.4.9"), ("DecIPTTL", "")];
    let mut rig = Rig::new("IPOutputCombo", CONFIG, 1, 5);
    let route = [7, 7, 4, 0, 0, 0, 0, 0];
    let packets = [
        TestPacket::ip(&udp(b"hello")),
        TestPacket::ip(&udp(b"hello")).with_anno(anno::FIX_IP_SRC, 1),
        TestPacket::ip(&with_options(&tcp(b"hello"), &route)),
        TestPacket::ip(&with_options(&tcp(b"hello"), &route)).with_anno(anno::FIX_IP_SRC, 1),
    ];
    for packet in &packets {
        let (out, wanted) = (rig.push_one(0, packet), through(&elements, packet));
        assert_eq!(out, wanted);
        assert_ip_checksum(&out.packet.bytes);
        // With a copy.
        let painted = packet.clone().with_anno(anno::PAINT, 3);
        let out = rig.push(0, std::slice::from_ref(&painted));
        assert_eq!((&out[0].exit, &out[0].packet.bytes), (&Exit::Port(0), &wanted.packet.bytes));
        assert_eq!((&out[1].exit, &out[1].packet), (&Exit::Port(1), &painted));
    }
    differential("IPOutputCombo", CONFIG, 1, 5);
}

#[test]
fn the_output_sorts_out_what_cannot_be_sent() {
    let mut rig = Rig::new("IPOutputCombo", CONFIG, 1, 5);
    let bad_option = with_options(&udp(b""), &[7, 7, 9, 0, 0, 0, 0, 0]);
    let expired = with_byte(udp(b""), 8, 1);
    let long = udp(&[0; 1473]);
    for (ip, port) in [(&bad_option, 2), (&expired, 3), (&long, 4)] {
        let packet = TestPacket::ip(ip);
        let out = rig.push_one(0, &packet);
        assert_eq!(out.exit, Exit::Port(port));
        assert_eq!(out.packet.bytes == *ip, port != 4, "a long packet is forwarded already");
        // The same in Rust, on the way of painted packets.
        let painted = rig.push(0, &[packet.with_anno(anno::PAINT, 3)]);
        assert_eq!((&painted[0].exit, &painted[0].packet.bytes), (&out.exit, &out.packet.bytes));
    }
    assert_eq!(rig.push_one(0, &TestPacket::ip(&bad_option)).packet.anno(anno::ICMP_PARAMPROB), 22);
    let kind = PacketType::Broadcast as u8;
    let broadcast = TestPacket { packet_type: kind, ..TestPacket::ip(&udp(b"")) };
    assert_eq!(rig.push_one(0, &broadcast).exit, dropped("link-broadcast"));
    let bare = TestPacket { net: None, ..TestPacket::ip(&udp(b"")) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("no-ip-header"));
    assert_eq!(rig.read("copy_failures"), "0");
    assert_eq!(mistakes("IPOutputCombo", "", 1, 5).len(), 3);
}
