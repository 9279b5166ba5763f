//! `IPPrint`.

use super::mistakes;
use crate::testing::{Exit, Rig, TestPacket, random_packets};
use etherparse::PacketBuilder;
use packet::anno;

fn printed(config: &str, packet: &TestPacket) -> Vec<String> {
    let mut rig = Rig::new("IPPrint", config, 1, 1);
    let out = rig.push_one(0, packet);
    assert_eq!((out.exit, &out.packet), (Exit::Port(0), packet));
    rig.host().printed.clone()
}

/// Without its time.
fn line(packet: &TestPacket) -> String {
    printed("TIMESTAMP false", packet).remove(0)
}

fn ipv4() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
}

fn udp() -> TestPacket {
    let mut bytes = vec![];
    ipv4().udp(7, 9).write(&mut bytes, b"payload").unwrap();
    TestPacket::ip(&bytes)
}

fn icmp(kind: u8, code: u8, rest: [u8; 4], payload: &[u8]) -> TestPacket {
    let mut bytes = vec![];
    ipv4().icmpv4_raw(kind, code, rest).write(&mut bytes, payload).unwrap();
    TestPacket::ip(&bytes)
}

#[test]
fn udp_and_tcp_lines_look_like_clicks() {
    assert_eq!(line(&udp()), "10.0.0.1.7 > 10.0.0.2.9: udp 15");
    let mut bytes = vec![];
    ipv4().tcp(80, 1024, 100, 5000).syn().ack(77).write(&mut bytes, &[]).unwrap();
    let syn = TestPacket::ip(&bytes);
    assert_eq!(line(&syn), "10.0.0.1.80 > 10.0.0.2.1024: S 100:101(1,40,40) ack 77 win 5000");
    let mut bytes = vec![];
    ipv4().tcp(80, 1024, 100, 5000).write(&mut bytes, b"data").unwrap();
    assert_eq!(line(&TestPacket::ip(&bytes)), "10.0.0.1.80 > 10.0.0.2.1024: . 100:104(4,44,44) win 5000");
    let cut = |len: usize| TestPacket { bytes: syn.bytes[..len].to_vec(), ..syn.clone() };
    assert_eq!(line(&cut(22)), "10.0.0.1 > 10.0.0.2: truncated-tcp");
    assert_eq!(line(&cut(30)), "10.0.0.1.80 > 10.0.0.2.1024: truncated-tcp");
    assert!(line(&cut(35)).ends_with("ack 77truncated-tcp"));
    assert_eq!(line(&cut(19)), "truncated-ip");
}

#[test]
fn icmp_lines_look_like_clicks() {
    assert_eq!(line(&icmp(8, 0, [0, 5, 0, 9], &[])), "10.0.0.1 > 10.0.0.2: icmp echo (5, 9)");
    let swapped = printed("TIMESTAMP false, SWAP false", &icmp(0, 0, [0, 5, 0, 9], &[]));
    assert_eq!(swapped, ["10.0.0.1 > 10.0.0.2: icmp echo-reply (1280, 2304)"]);
    let start = "10.0.0.1 > 10.0.0.2: icmp ";
    assert_eq!(line(&icmp(3, 3, [0; 4], &udp().bytes)), format!("{start}10.0.0.2 unreachable port udp/9"));
    assert_eq!(
        line(&icmp(3, 4, [0, 0, 5, 0], &udp().bytes)),
        format!("{start}10.0.0.2 unreachable needfrag (mtu 1280)")
    );
    assert_eq!(line(&icmp(3, 1, [0; 4], &[0; 4])), format!("{start}unreachable host truncated-icmp"));
    assert_eq!(line(&icmp(11, 0, [0; 4], &[])), format!("{start}timeexceeded transit"));
    assert_eq!(line(&icmp(99, 7, [0; 4], &[])), format!("{start}type 99 code 7"));
}

#[test]
fn fragments_and_other_protocols_are_told() {
    let mut packet = udp();
    packet.bytes[4..6].copy_from_slice(&[0x30, 0x39]);
    packet.bytes[6] = 0x20;
    assert_eq!(line(&packet), "10.0.0.1.7 > 10.0.0.2.9: udp 15 (frag 12345:15@0+)");
    packet.bytes[6..8].copy_from_slice(&[0, 2]);
    assert_eq!(line(&packet), "10.0.0.1 > 10.0.0.2: udp (frag 12345:15@16)");
    packet.bytes[6..10].copy_from_slice(&[0, 0, 64, 47]);
    assert_eq!(line(&packet), "10.0.0.1 > 10.0.0.2: ip-proto-47");
}

#[test]
fn what_is_told_can_be_chosen() {
    let mut packet = udp().with_anno(anno::PAINT, 3).with_anno(anno::AGGREGATE, 12);
    packet.timestamp_ns = 7_000_001_000;
    let end = "10.0.0.1.7 > 10.0.0.2.9: udp 15";
    assert_eq!(printed("in", &packet), [format!("in: 7.000001: {end}")]);
    let config = "TIMESTAMP false, ID true, TTL true, TOS true, LENGTH true, PAINT true, AGGREGATE true";
    assert_eq!(printed(config, &packet), [format!("#12.3: id 0 ttl 64 tos 0 length 35 {end}")]);
    assert_eq!(printed("TIMESTAMP false, PAINT true", &packet), [format!("paint 3: {end}")]);
    let bytes = "\n  45000023 00004000 4011".to_string();
    let contents = &printed("TIMESTAMP false, CONTENTS hex, MAXLENGTH 10", &packet)[0];
    assert!(contents.starts_with(end) && contents[end.len()..].starts_with(&bytes[..20]), "{contents}");
    assert_eq!(printed("TIMESTAMP false, PAYLOAD ascii", &packet), [format!("{end}\n  payload")]);
    assert_eq!(printed("TIMESTAMP false, PAYLOAD hex", &packet), [format!("{end}\n  7061796c 6f6164")]);
    // Behind an Ethernet header, stripped or not.
    let mut frame = vec![];
    let builder = PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(7, 9);
    builder.write(&mut frame, b"payload").unwrap();
    let framed = TestPacket { net: Some(14), trans: Some(34), ..TestPacket::frame(&frame) };
    let ether = format!("02-02-02-02-02-02 > 03-03-03-03-03-03: {end}");
    assert_eq!(printed("TIMESTAMP false, ETHER true", &framed), [ether]);
    assert_eq!(line(&framed), end);
    assert!(printed("", &TestPacket { net: None, ..packet.clone() }).is_empty());
    assert!(printed("ACTIVE false", &packet).is_empty());
}

#[test]
fn lines_go_to_a_file_if_there_is_one() {
    let folder = std::env::temp_dir().join(format!("millrace-ip-print-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("out.txt");
    let config = format!("TIMESTAMP false, OUTFILE \"{}\"", file.display());
    assert!(printed(&config, &udp()).is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "10.0.0.1.7 > 10.0.0.2.9: udp 15\n");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(mistakes("IPPrint", "OUTFILE /nowhere/at/all", 1, 1).len(), 1);
}

#[test]
fn odd_packets_and_configurations_do_no_harm() {
    for config in ["", "ETHER true, CONTENTS ascii", "PAYLOAD hex, MAXLENGTH -1"] {
        let mut rig = Rig::new("IPPrint", config, 1, 1);
        for seed in 1..=3 {
            rig.push(0, &random_packets(seed, 300));
        }
    }
    let mut rig = Rig::new("IPPrint", "", 1, 1);
    rig.write("active", "false").unwrap();
    assert_eq!(rig.read("active"), "false");
    assert!(rig.write("active", "x").is_err());
    assert_eq!(mistakes("IPPrint", "CONTENTS octal, PAYLOAD octal, TTL x", 1, 1).len(), 3);
    assert!(mistakes("IPPrint", "CONTENTS hex, PAYLOAD hex", 1, 1)[0].contains("at most one"));
}
