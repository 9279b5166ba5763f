//! Elements that set annotations or take packets apart by them.

use super::*;
use crate::testing::{Rig, differential};
use packet::anno;

fn unmarked(bytes: &[u8]) -> TestPacket {
    TestPacket { mac: None, ..TestPacket::frame(bytes) }
}

#[test]
fn markipheader_marks_without_checking() {
    let mut rig = Rig::new("MarkIPHeader", "2", 1, 1);
    let out = rig.push_one(0, &unmarked(&[9, 9, 0x47, 0, 0]));
    assert_eq!((out.exit, out.packet.net, out.packet.trans), (Exit::Port(0), Some(2), Some(30)));
    let earlier = TestPacket { trans: Some(1), ..unmarked(&[9, 9]) };
    let out = rig.push_one(0, &earlier);
    assert_eq!((out.packet.net, out.packet.trans), (Some(2), None));
    let mut rig = Rig::new("MarkIPHeader", "", 1, 1);
    assert_eq!(rig.push_one(0, &unmarked(&udp(b""))).packet.trans, Some(20));
    assert!(Rig::try_new("MarkIPHeader", "3000", 1, 1).is_err());
    assert!(Rig::try_new("MarkIPHeader", "1, 2", 1, 1).is_err());
    differential("MarkIPHeader", "14", 1, 1);
}

#[test]
fn stripipheader_takes_off_all_before_the_transport_header() {
    let mut rig = Rig::new("StripIPHeader", "", 1, 1);
    let ip = with_options(&udp(b"hello"), &[1; 8]);
    let packet = TestPacket { net: Some(14), trans: Some(42), ..frame(&ip) };
    let out = rig.push_one(0, &packet);
    assert_eq!((out.exit, &out.packet.bytes[..]), (Exit::Port(0), &ip[28..]));
    assert_eq!((out.packet.net, out.packet.trans), (Some(-28), Some(0)));
    for trans in [None, Some(-3), Some(100)] {
        let out = rig.push_one(0, &TestPacket { trans, ..frame(&ip) });
        assert_eq!(out.exit, dropped("no-ip-header"), "{trans:?}");
    }
    let out = rig.push_one(0, &TestPacket { trans: Some(3), ..unmarked(&[1, 2, 3]) });
    assert_eq!((out.exit, out.packet.bytes), (Exit::Port(0), vec![]));
    differential("StripIPHeader", "", 1, 1);
}

#[test]
fn getipaddress_copies_four_bytes_to_the_annotation() {
    let ip = TestPacket::ip(&udp(b""));
    for (config, anno, address) in [
        ("16", anno::DST_IP, 0xc0a8_0203),
        ("OFFSET 12", anno::DST_IP, 0x0a00_0001),
        ("IP src", anno::DST_IP, 0x0a00_0001),
        ("IP dst", anno::DST_IP, 0xc0a8_0203),
        ("16, MISC_IP", anno::MISC_IP, 0xc0a8_0203),
        ("IP src, ANNO 20", anno::MISC_IP, 0x0a00_0001),
    ] {
        let mut rig = Rig::new("GetIPAddress", config, 1, 1);
        assert_eq!(rig.push_one(0, &ip).packet.anno(anno), address, "{config}");
        differential("GetIPAddress", config, 1, 1);
    }
    let mut rig = Rig::new("GetIPAddress", "16", 1, 1);
    assert_eq!(rig.push_one(0, &unmarked(&[1; 19])).exit, dropped("short-packet"));
    assert_eq!(rig.push_one(0, &unmarked(&[1; 20])).packet.anno(anno::DST_IP), 0x0101_0101);
    let mut rig = Rig::new("GetIPAddress", "IP dst", 1, 1);
    assert_eq!(rig.push_one(0, &unmarked(&[1; 60])).exit, dropped("short-packet"));
    for (config, count) in [("", 1), ("16, IP src", 1), ("IP source", 1), ("16, PAINT", 1), ("16, 45", 1)] {
        let mistakes = Rig::try_new("GetIPAddress", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}

#[test]
fn setipaddress_sets_the_annotation() {
    let mut rig = Rig::new("SetIPAddress", "1.2.3.4", 1, 1);
    let packet = unmarked(&[]);
    assert_eq!(rig.push_one(0, &packet).packet.anno(anno::DST_IP), 0x0102_0304);
    assert_eq!(rig.read("addr"), "1.2.3.4");
    rig.write("addr", "5.6.7.8").unwrap();
    assert_eq!(rig.push_one(0, &packet).packet.anno(anno::DST_IP), 0x0506_0708);
    assert!(rig.write("addr", "5.6.7").is_err());
    let mut rig = Rig::new("SetIPAddress", "1.2.3.4, ANNO 24", 1, 1);
    assert_eq!(rig.push_one(0, &packet).packet.anno(anno::EXTRA_PACKETS), 0x0102_0304);
    assert!(Rig::try_new("SetIPAddress", "", 1, 1).is_err());
    differential("SetIPAddress", "1.2.3.4", 1, 1);
}

#[test]
fn setannobyte_sets_one_byte() {
    let mut rig = Rig::new("SetAnnoByte", "PAINT, 7", 1, 1);
    assert_eq!(rig.push_one(0, &unmarked(&[])).packet.anno(anno::PAINT), 7);
    assert_eq!((rig.read("anno").as_str(), rig.read("value").as_str()), ("16", "7"));
    rig.write("value", "255").unwrap();
    assert_eq!(rig.push_one(0, &unmarked(&[])).packet.anno(anno::PAINT), 255);
    assert!(rig.write("value", "256").is_err());
    let mut rig = Rig::new("SetAnnoByte", "47, 1", 1, 1);
    assert_eq!(rig.push_one(0, &unmarked(&[])).packet.anno[47], 1);
    assert_eq!(Rig::try_new("SetAnnoByte", "48, 256", 1, 1).err().unwrap().matches("error").count(), 2);
    differential("SetAnnoByte", "3, 4", 1, 1);
}

#[test]
fn checklength_sorts_out_long_packets() {
    let packets = [unmarked(&[0; 10]), unmarked(&[0; 11])];
    let mut rig = Rig::new("CheckLength", "10", 1, 2);
    assert_eq!(exits(&rig.push(0, &packets)), [Exit::Port(0), Exit::Port(1)]);
    assert_eq!(rig.read("length"), "10");
    rig.write("length", "11").unwrap();
    assert_eq!(exits(&rig.push(0, &packets)), [Exit::Port(0), Exit::Port(0)]);
    let mut rig = Rig::new("CheckLength", "10", 1, 1);
    assert_eq!(rig.push_one(0, &packets[1]).exit, dropped("too-long"));
    let extra = packets[0].clone().with_anno(anno::EXTRA_LENGTH, 1);
    assert_eq!(rig.push_one(0, &extra).exit, Exit::Port(0));
    let mut rig = Rig::new("CheckLength", "10, EXTRA_LENGTH true", 1, 1);
    assert_eq!(rig.push_one(0, &extra).exit, dropped("too-long"));
    assert!(Rig::try_new("CheckLength", "", 1, 1).is_err());
    differential("CheckLength", "60, EXTRA_LENGTH true", 1, 2);
}

#[test]
fn unstrip_restores_the_ip_header() {
    let mut rig = Rig::new("UnstripIPHeader", "", 1, 1);
    let whole = with_options(&udp(b"hello"), &[1; 8]);
    let mut stripped = Rig::new("StripIPHeader", "", 1, 1).push_one(0, &TestPacket::ip(&whole)).packet;
    assert_eq!(stripped.net, Some(-28));
    // The test's packets have nothing in front of them: only their place is right.
    stripped.bytes = whole[28..].to_vec();
    let out = rig.push_one(0, &stripped).packet;
    assert_eq!((out.bytes.len(), out.net, out.trans), (whole.len(), Some(0), Some(28)));
    let framed = TestPacket { net: Some(14), ..frame(&whole) };
    assert_eq!(rig.push_one(0, &framed).packet, framed, "what begins before the header stays");
    let bare = TestPacket { net: None, ..TestPacket::ip(&whole) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("no-ip-header"));
    differential("UnstripIPHeader", "", 1, 1);
}
