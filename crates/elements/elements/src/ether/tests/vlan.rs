//! VLAN tags.

use super::*;
use crate::testing::differential;
use packet::anno;

/// Priority and identifier of a tagged frame and the EtherType behind, by an independent reader.
fn tag(frame: &[u8]) -> (u8, u16, u16) {
    let sliced = etherparse::SlicedPacket::from_ethernet(frame).unwrap();
    let vlan = sliced.vlan().unwrap();
    let etherparse::VlanSlice::SingleVlan(vlan) = vlan else { panic!("two tags") };
    (vlan.priority_code_point().value(), vlan.vlan_identifier().value(), vlan.ether_type().0)
}

#[test]
fn encap_and_decap_are_each_others_inverse() {
    let frame = udp_frame(A, B);
    let mut encap = Rig::new("VLANEncap", "VLAN_ID 100, VLAN_PCP 5", 1, 1);
    let out = encap.push_one(0, &TestPacket::frame(&frame)).packet;
    assert_eq!(tag(&out.bytes), (5, 100, 0x0800));
    assert_eq!((out.mac, out.net, out.bytes.len()), (Some(0), Some(18), frame.len() + 4));
    let mut decap = Rig::new("VLANDecap", "", 1, 1);
    let back = decap.push_one(0, &out).packet;
    assert_eq!((&back.bytes, back.anno(anno::VLAN_TCI)), (&frame, 5 << 13 | 100));
    assert_eq!((back.mac, back.net), (Some(0), Some(14)));
    let again = decap.push_one(0, &back).packet;
    assert_eq!((&again.bytes, again.anno(anno::VLAN_TCI)), (&frame, 0));
}

#[test]
fn the_native_vlan_gets_no_tag() {
    let frame = TestPacket::frame(&udp_frame(A, B));
    let mut rig = Rig::new("VLANEncap", "", 1, 1);
    assert_eq!(rig.push_one(0, &frame).packet.bytes, frame.bytes);
    let mut rig = Rig::new("VLANEncap", "NATIVE_VLAN -1", 1, 1);
    assert_eq!(tag(&rig.push_one(0, &frame).packet.bytes), (0, 0, 0x0800));
    let mut rig = Rig::new("VLANEncap", "ANNO, NATIVE_VLAN 7", 1, 1);
    let annotated = |tci| frame.clone().with_anno(anno::VLAN_TCI, tci);
    assert_eq!(rig.push_one(0, &annotated(7)).packet.bytes, frame.bytes);
    assert_eq!(tag(&rig.push_one(0, &annotated(0x2008)).packet.bytes), (1, 8, 0x0800));
}

#[test]
fn the_tag_is_settable() {
    let frame = TestPacket::frame(&udp_frame(A, B));
    let mut rig = Rig::new("VLANEncap", "0x2005, ETHERTYPE 0x88a8", 1, 1);
    assert_eq!(tag(&rig.push_one(0, &frame).packet.bytes), (1, 5, 0x0800));
    assert_eq!(rig.push_one(0, &frame).packet.bytes[12..14], [0x88, 0xa8]);
    for (handler, value) in
        [("vlan_id", "9"), ("vlan_pcp", "2"), ("ethertype", "33024"), ("native_vlan", "4")]
    {
        rig.write(handler, value).unwrap();
        assert_eq!(rig.read(handler), value);
    }
    assert_eq!(tag(&rig.push_one(0, &frame).packet.bytes), (2, 9, 0x0800));
    assert_eq!(rig.read("vlan_tci"), (2 << 13 | 9).to_string());
    rig.write("vlan_tci", "4").unwrap();
    assert_eq!(rig.push_one(0, &frame).packet.bytes, frame.bytes);
    assert!(rig.write("vlan_id", "4096").is_err() && rig.write("color", "1").is_err());
    let mut rig = Rig::new("VLANEncap", "ANNO", 1, 1);
    assert!(rig.write("vlan_id", "4").is_err());
    assert_eq!(rig.read("vlan_tci"), "ANNO");
}

#[test]
fn short_frames_are_dropped_or_stay_untagged() {
    let mut rig = Rig::new("VLANEncap", "5", 1, 1);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 11])).exit, dropped("short-frame"));
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 12])).packet.bytes.len(), 16);
    let mut rig = Rig::new("VLANDecap", "", 1, 1);
    for len in [0, 13, 17] {
        let mut bytes = vec![0x81; len];
        bytes.iter_mut().skip(13).step_by(2).for_each(|byte| *byte = 0);
        let out = rig.push_one(0, &TestPacket::frame(&bytes));
        assert_eq!((out.exit, out.packet.bytes), (Exit::Port(0), bytes));
    }
}

#[test]
fn decap_looks_for_the_type_that_it_is_told_and_may_leave_the_annotation() {
    let mut encap = Rig::new("VLANEncap", "5, ETHERTYPE 0x88a8", 1, 1);
    let tagged = encap.push_one(0, &TestPacket::frame(&udp_frame(A, B))).packet.with_anno(anno::VLAN_TCI, 77);
    let mut rig = Rig::new("VLANDecap", "", 1, 1);
    let out = rig.push_one(0, &tagged).packet;
    assert_eq!((&out.bytes, out.anno(anno::VLAN_TCI)), (&tagged.bytes, 0));
    let mut rig = Rig::new("VLANDecap", "false, ETHERTYPE 0x88a8", 1, 1);
    let out = rig.push_one(0, &tagged).packet;
    assert_eq!((&out.bytes, out.anno(anno::VLAN_TCI)), (&udp_frame(A, B), 77));
}

#[test]
fn set_vlan_anno_sets_the_annotation() {
    for (config, tci) in [("", 0), ("VLAN_ID 9, VLAN_PCP 7", 7 << 13 | 9), ("0x2003", 0x2003)] {
        let mut rig = Rig::new("SetVLANAnno", config, 1, 1);
        assert_eq!(rig.push_one(0, &udp_packet()).packet.anno(anno::VLAN_TCI), tci);
        rig.write("vlan_id", "1").unwrap();
        rig.write("vlan_pcp", "1").unwrap();
        assert_eq!(rig.push_one(0, &udp_packet()).packet.anno(anno::VLAN_TCI), 0x2001);
        rig.write("vlan_tci", "65535").unwrap();
        assert_eq!([rig.read("vlan_tci"), rig.read("vlan_id"), rig.read("vlan_pcp")], ["65535", "4095", "7"]);
        assert!(rig.write("vlan_tci", "65536").is_err() && rig.write("vlan", "6").is_err());
        differential("SetVLANAnno", config, 1, 1);
    }
    for class in ["SetVLANAnno", "VLANEncap"] {
        assert_eq!(mistakes(class, "70000, 8, VLAN_ID 4096, COLOR 1", 1, 1).len(), 4);
    }
}

#[test]
fn programs_agree_on_random_packets() {
    for config in ["5", "ANNO", "NATIVE_VLAN -1, VLAN_PCP 3", "VLAN_ID 6, NATIVE_VLAN 6"] {
        differential("VLANEncap", config, 1, 1);
    }
    for config in ["", "false", "ETHERTYPE 0x0800"] {
        differential("VLANDecap", config, 1, 1);
    }
}

#[test]
fn an_ethernet_header_with_a_tag_is_added_and_removed() {
    let data = TestPacket::frame(&[0xaa, 0xab, 0xac, 0xad]);
    let header = [2u8, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1];
    let config = |rest: &str| format!("0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2, {rest}");
    let added = |rest: &str, tci: u64| {
        let mut rig = Rig::new("EtherVLANEncap", &config(rest), 1, 1);
        rig.push_one(0, &data.clone().with_anno(anno::VLAN_TCI, tci)).packet
    };
    let mut strip = Rig::new("StripEtherVLANHeader", "", 1, 1);
    for (rest, tci, tag) in [
        ("1", 0, Some(1)),
        ("ANNO", 1, Some(1)),
        ("ANNO, NATIVE_VLAN 1", 1, None),
        ("ANNO, NATIVE_VLAN 1", 0x2002, Some(0x2002)),
        ("VLAN_ID 7, VLAN_PCP 1", 0, Some(0x2007)),
        ("0x1000", 0, None),
        ("0, NATIVE_VLAN -1", 0, Some(0)),
    ] {
        let out = added(rest, tci);
        let mut wanted = header.to_vec();
        wanted.extend(tag.into_iter().flat_map(|tci: u16| [0x81, 0, (tci >> 8) as u8, tci as u8]));
        wanted.extend([8, 0]);
        assert_eq!((out.mac, out.net), (Some(0), Some(wanted.len() as i32)), "{rest}");
        wanted.extend(&data.bytes);
        assert_eq!(out.bytes, wanted, "{rest}");
        let back = strip.push_one(0, &out).packet;
        assert_eq!((&back.bytes, back.anno(anno::VLAN_TCI)), (&data.bytes, tag.unwrap_or(0).into()));
    }
    let mut strip = Rig::new("StripEtherVLANHeader", "NATIVE_VLAN -1", 1, 1);
    assert_eq!(strip.push_one(0, &added("0", 0)).exit, dropped("no-vlan-tag"));
    assert_eq!(strip.push_one(0, &TestPacket::frame(&[0; 13])).exit, dropped("short-frame"));

    let mut rig = Rig::new("EtherVLANEncap", &config("5"), 1, 1);
    for (handler, value) in [
        ("src", "00-00-C0-AE-67-EF"),
        ("dst", "00-00-C0-4F-71-EF"),
        ("ethertype", "34525"),
        ("vlan_id", "9"),
        ("vlan_pcp", "2"),
        ("native_vlan", "4"),
    ] {
        rig.write(handler, value).unwrap();
        assert_eq!(rig.read(handler), value);
    }
    let out = rig.push_one(0, &data).packet.bytes;
    assert_eq!(out[..12], [0, 0, 0xc0, 0x4f, 0x71, 0xef, 0, 0, 0xc0, 0xae, 0x67, 0xef]);
    assert_eq!(out[12..18], [0x81, 0, 0x40, 9, 0x86, 0xdd]);
    rig.write("vlan_tci", "4").unwrap();
    assert_eq!(rig.push_one(0, &data).packet.bytes.len(), 18);
    assert_eq!(mistakes("EtherVLANEncap", "1, 2", 1, 1).len(), 2);
    for rest in ["5", "ANNO, NATIVE_VLAN 3"] {
        differential("EtherVLANEncap", &config(rest), 1, 1);
    }
    differential("StripEtherVLANHeader", "", 1, 1);
}
