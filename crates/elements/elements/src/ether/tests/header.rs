//! Elements that write and read Ethernet headers.

use super::*;
use crate::testing::differential;
use packet::anno;

#[test]
fn ether_encap_puts_a_header_before_packets() {
    let config = format!("0x0800, {A_TEXT}, {B_TEXT}");
    let mut rig = Rig::new("EtherEncap", &config, 1, 1);
    let out = rig.push_one(0, &udp_packet()).packet;
    assert_eq!(out.bytes, udp_frame(A, B));
    assert_eq!((out.mac, out.net, out.trans), (Some(0), Some(14), Some(34)));
    rig.write("src", C_TEXT).unwrap();
    rig.write("dst", "2:0:0:0:0:aa").unwrap();
    rig.write("etht", "0x86dd").unwrap();
    assert_eq!(ethernet(&rig.push_one(0, &udp_packet()).packet.bytes), (C, A, 0x86dd));
    assert_eq!([rig.read("src"), rig.read("dst"), rig.read("ethertype")], [C_TEXT, A_TEXT, "34525"]);
    assert!(rig.write("dst", "1:2:3").is_err() && rig.write("length", "1").is_err());
    assert_eq!(mistakes("EtherEncap", "0x10000, 1:2, 3", 1, 1).len(), 3);
    assert_eq!(mistakes("EtherEncap", "", 1, 1).len(), 3);
    differential("EtherEncap", &config, 1, 1);
}

#[test]
fn encap_moves_packets_that_have_no_headroom() {
    // Ten headers of 14 bytes are more than the 128 bytes of headroom that a port leaves.
    let mut packet = udp_packet();
    let mut rig = Rig::new("EtherEncap", &format!("0x0800, {A_TEXT}, {B_TEXT}"), 1, 1);
    for _ in 0..3 {
        packet = rig.push_one(0, &packet).packet;
    }
    assert_eq!(packet.bytes.len(), udp_packet().bytes.len() + 42);
    assert_eq!(&packet.bytes[42..], udp_packet().bytes);
}

#[test]
fn ether_mirror_swaps_addresses() {
    let mut rig = Rig::new("EtherMirror", "", 1, 1);
    let out = rig.push_one(0, &TestPacket::frame(&udp_frame(A, B)));
    assert_eq!(out.packet.bytes, udp_frame(B, A));
    let twelve = [[1; 6], [2; 6]].concat();
    assert_eq!(rig.push_one(0, &TestPacket::frame(&twelve)).packet.bytes, [[2; 6], [1; 6]].concat());
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 11])).exit, dropped("short-frame"));
    differential("EtherMirror", "", 1, 1);
}

#[test]
fn ether_rewrite_sets_addresses_and_leaves_the_rest() {
    let config = format!("{B_TEXT}, {C_TEXT}");
    let mut rig = Rig::new("EtherRewrite", &config, 1, 1);
    let frame = TestPacket::frame(&udp_frame(A, A));
    assert_eq!(rig.push_one(0, &frame).packet.bytes, udp_frame(B, C));
    // Without MAC header annotation the front counts; with one, that.
    assert_eq!(rig.push_one(0, &TestPacket { mac: None, ..frame.clone() }).packet.bytes, udp_frame(B, C));
    let shifted = TestPacket { mac: Some(4), ..TestPacket::frame(&[vec![9; 4], udp_frame(A, A)].concat()) };
    assert_eq!(rig.push_one(0, &shifted).packet.bytes, [vec![9; 4], udp_frame(B, C)].concat());
    rig.write("src", A_TEXT).unwrap();
    rig.write("dst", B_TEXT).unwrap();
    assert_eq!(rig.push_one(0, &frame).packet.bytes, udp_frame(A, B));
    assert_eq!([rig.read("src"), rig.read("dst")], [A_TEXT, B_TEXT]);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 11])).exit, dropped("short-frame"));
    assert_eq!(mistakes("EtherRewrite", "1, 2, 3", 1, 1).len(), 3);
    differential("EtherRewrite", &config, 1, 1);
}

#[test]
fn store_ether_address_writes_where_it_is_told() {
    for (config, at) in [("src", 6), ("DST", 0), ("20", 20)] {
        let mut rig = Rig::new("StoreEtherAddress", &format!("{A_TEXT}, {config}"), 1, 1);
        let out = rig.push_one(0, &TestPacket::frame(&[0; 26])).packet.bytes;
        assert_eq!(
            (&out[at..at + 6], out.iter().filter(|byte| **byte != 0).count()),
            (&A[..], 2),
            "{config}"
        );
        rig.write("addr", C_TEXT).unwrap();
        assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 26])).packet.bytes[at..at + 6], C);
        assert_eq!(rig.read("addr"), C_TEXT);
        assert_eq!(rig.push_one(0, &TestPacket::frame(&vec![0; at + 5])).exit, dropped("short-frame"));
        differential("StoreEtherAddress", &format!("{A_TEXT}, {config}"), 1, 2);
    }
    let mut rig = Rig::new("StoreEtherAddress", &format!("{A_TEXT}, 0"), 1, 2);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 5])).exit, Exit::Port(1));
    let mut rig = Rig::new("StoreEtherAddress", "dst, ANNO 2", 1, 1);
    let mut packet = TestPacket::frame(&[0; 14]);
    packet.anno[2..8].copy_from_slice(&B);
    assert_eq!(rig.push_one(0, &packet).packet.bytes[..6], B);
    assert_eq!(mistakes("StoreEtherAddress", "left", 1, 1).len(), 2);
    assert_eq!(mistakes("StoreEtherAddress", "dst, ANNO 43", 1, 1).len(), 1);
}

#[test]
fn host_ether_filter_sets_the_packet_type() {
    let group = [1, 0, 0x5e, 0, 0, 1];
    let everybody = [0xff; 6];
    let push = |config: &str, outputs: usize, src, dst| {
        let mut rig = Rig::new("HostEtherFilter", &format!("{A_TEXT}{config}"), 1, outputs);
        let out = rig.push_one(0, &TestPacket::frame(&udp_frame(src, dst)));
        (out.exit, out.packet.packet_type)
    };
    assert_eq!(push("", 1, B, A), (Exit::Port(0), 0));
    assert_eq!(push("", 1, B, everybody), (Exit::Port(0), 1));
    assert_eq!(push("", 1, B, group), (Exit::Port(0), 2));
    assert_eq!(push("", 1, B, C), (dropped("other-host"), 3));
    assert_eq!(push("", 2, B, C), (Exit::Port(1), 3));
    assert_eq!(push(", DROP_OTHER false", 1, B, C), (Exit::Port(0), 3));
    assert_eq!(push(", true", 1, A, A), (dropped("own-frame"), 0));
    assert_eq!(push(", true", 1, B, A), (Exit::Port(0), 0));
    assert_eq!(push("", 1, A, A), (Exit::Port(0), 0));

    let mut rig = Rig::new("HostEtherFilter", &format!("{A_TEXT}, OFFSET 3"), 1, 1);
    let shifted = [vec![0; 3], udp_frame(B, C)].concat();
    assert_eq!(rig.push_one(0, &TestPacket::frame(&shifted)).exit, dropped("other-host"));
    rig.write("ether", C_TEXT).unwrap();
    assert_eq!(rig.push_one(0, &TestPacket::frame(&shifted)).exit, Exit::Port(0));
    assert_eq!(rig.read("ether"), C_TEXT);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[0; 14])).exit, dropped("short-frame"));
    assert_eq!(mistakes("HostEtherFilter", "1, 2, 3, 4", 1, 1).len(), 4);
    differential("HostEtherFilter", "02:00:00:00:00:00, true", 1, 2);
}

#[test]
fn drop_broadcasts_drops_by_packet_type() {
    let mut rig = Rig::new("DropBroadcasts", "", 1, 1);
    let packet = |packet_type| TestPacket { packet_type, ..TestPacket::frame(&[0; 60]) };
    let exits: Vec<Exit> = (0..5).map(|kind| rig.push_one(0, &packet(kind)).exit).collect();
    let gone = dropped("link-broadcast");
    assert_eq!(exits, [Exit::Port(0), gone.clone(), gone, Exit::Port(0), Exit::Port(0)]);
    assert_eq!(rig.read("drops"), "2");
    differential("DropBroadcasts", "", 1, 1);
}

#[test]
fn mark_mac_header_says_where_the_header_is() {
    for (config, at) in [("", 0), ("OFFSET 4", 4)] {
        let mut rig = Rig::new("MarkMACHeader", config, 1, 1);
        assert_eq!(rig.push_one(0, &udp_packet()).packet.mac, Some(at));
        differential("MarkMACHeader", config, 1, 1);
    }
}

#[test]
fn ensure_ether_adds_a_header_only_where_there_is_none() {
    let mut rig = Rig::new("EnsureEther", &format!("0x0800, {B_TEXT}, {C_TEXT}"), 1, 1);
    let frame = udp_frame(A, B);
    // A header that is there.
    let with = TestPacket { net: Some(14), trans: Some(34), ..TestPacket::frame(&frame) };
    assert_eq!(rig.push_one(0, &with).packet, with);
    // None: not even a stripped one. (The bytes before the packet are those of an earlier packet.)
    let with_wrong_type = TestPacket {
        net: Some(14),
        trans: Some(34),
        ..TestPacket::frame(&[&[7; 14], &frame[14..]].concat())
    };
    assert_eq!(rig.push_one(0, &with_wrong_type).packet.bytes, udp_frame(B, C));
    let behind_a_tag = TestPacket { net: Some(4), ..TestPacket::frame(&[&[7; 4], &frame[14..]].concat()) };
    let out = rig.push_one(0, &behind_a_tag).packet;
    assert_eq!((out.bytes, out.net), (udp_frame(B, C), Some(14)));
    // No network header.
    let unknown = TestPacket::frame(&frame);
    assert_eq!(rig.push_one(0, &unknown).packet, unknown);
    assert_eq!(mistakes("EnsureEther", "0x10000, 1, 2", 1, 1).len(), 3);
    differential("EnsureEther", "", 1, 1);
}

#[test]
fn ensure_ether_takes_a_stripped_header_back() {
    let frame = udp_frame(A, B);
    let stripped = TestPacket { mac: Some(-14), ..TestPacket::ip(&frame[14..]) };
    let mut encap = Rig::new("EnsureEther", "", 1, 1);
    let out = encap.push_one(0, &stripped).packet;
    // What stands before the packet is not the frame's header here, so a new one is made.
    assert_eq!(ethernet(&out.bytes), ([1; 6], [2; 6], 0x0800));
    assert_eq!(out.net, Some(14));
    assert_eq!(out.anno(anno::PAINT), 0);
}
