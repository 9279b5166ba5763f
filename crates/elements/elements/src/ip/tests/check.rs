//! `CheckIPHeader` and its like.

use super::*;
use crate::testing::{Rig, differential};
use packet::anno;

#[test]
fn a_good_packet_gets_its_annotations_and_loses_its_padding() {
    let mut rig = Rig::new("CheckIPHeader", "14", 1, 1);
    let ip = with_options(&udp(b"hello"), &[1, 1, 1, 0]);
    let mut padded = frame(&ip);
    padded.bytes.extend([0xee; 9]);
    let out = rig.push_one(0, &padded);
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!(out.packet.bytes, frame(&ip).bytes);
    assert_eq!((out.packet.net, out.packet.trans), (Some(14), Some(38)));
    assert_eq!(out.packet.anno(anno::DST_IP), 0xc0a8_0203);
    assert_eq!(rig.read("drops"), "0");
}

#[test]
fn a_packet_without_padding_stays_as_it_is() {
    let mut rig = Rig::new("CheckIPHeader", "", 1, 1);
    let packet = TestPacket { net: None, trans: None, ..TestPacket::ip(&tcp(b"x")) };
    let out = rig.push_one(0, &packet);
    assert_eq!((out.packet.bytes, out.packet.net, out.packet.trans), (packet.bytes, Some(0), Some(20)));
}

#[test]
fn each_fault_has_its_reason() {
    let good = udp(b"hello");
    let cases = [
        (good[..19].to_vec(), "tiny-packet", "tiny packet"),
        (vec![], "tiny-packet", "tiny packet"),
        (with_first(0x65), "bad-ip-version", "bad IP version"),
        (with_first(0x35), "bad-ip-version", "bad IP version"),
        (with_first(0x44), "bad-ip-header-length", "bad IP header length"),
        (with_first(0x40), "bad-ip-header-length", "bad IP header length"),
        (with_length(34), "bad-ip-length", "bad IP length"),
        (with_length(19), "bad-ip-length", "bad IP length"),
        (with_length(0), "bad-ip-length", "bad IP length"),
        // Header and length are right, but the options are not all there.
        (with_first(0x4f), "bad-ip-length", "bad IP length"),
        (flipped(&good, 11), "bad-ip-checksum", "bad IP checksum"),
        (flipped(&good, 16), "bad-ip-checksum", "bad IP checksum"),
    ];
    for (bytes, reason, text) in cases {
        let packet = TestPacket { net: None, trans: None, ..TestPacket::ip(&bytes) };
        let mut rig = Rig::new("CheckIPHeader", "DETAILS true", 1, 1);
        let out = rig.push_one(0, &packet);
        assert_eq!(out.exit, dropped(reason), "{bytes:x?}");
        assert_eq!(out.packet.bytes, packet.bytes, "a bad packet is not changed");
        assert_eq!(out.packet.anno(anno::DST_IP), 0);
        assert_eq!(rig.read("drops"), "1");
        let details = rig.read("drop_details");
        assert_eq!(details.lines().count(), 6);
        assert!(details.lines().any(|line| line == format!("1\t{text}")), "{details}");

        let mut rig = Rig::new("CheckIPHeader", "VERBOSE true", 1, 2);
        assert_eq!(rig.push_one(0, &packet).exit, Exit::Port(1), "{reason}");
        assert_eq!(rig.host().printed, [format!("e: IP header check failed: {text}")]);
        let mut rig = Rig::new("CheckIPHeader", "VERBOSE true", 1, 1);
        assert_eq!(rig.push_one(0, &packet).exit, dropped(reason));
        assert_eq!(rig.read("drops"), "1");
    }
}

fn with_first(first: u8) -> Vec<u8> {
    let mut bytes = udp(b"hello");
    bytes[0] = first;
    bytes
}

fn with_length(length: u16) -> Vec<u8> {
    let mut bytes = udp(b"hello");
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn checkipheader2_checks_everything_but_the_checksum() {
    let bad = TestPacket::ip(&flipped(&udp(b"hello"), 11));
    for (class, config, exit) in [
        ("CheckIPHeader2", "", Exit::Port(0)),
        ("CheckIPHeader2", "CHECKSUM true", dropped("bad-ip-checksum")),
        ("CheckIPHeader", "CHECKSUM false", Exit::Port(0)),
    ] {
        assert_eq!(Rig::new(class, config, 1, 1).push_one(0, &bad).exit, exit, "{class}({config})");
    }
    let short = TestPacket::ip(&udp(b"hello")[..25]);
    let mut rig = Rig::new("CheckIPHeader2", "", 1, 1);
    assert_eq!(rig.push_one(0, &short).exit, dropped("bad-ip-length"));
}

fn from_to(src: [u8; 4], dst: [u8; 4]) -> TestPacket {
    let mut bytes = udp(b"hello");
    bytes[12..16].copy_from_slice(&src);
    bytes[16..20].copy_from_slice(&dst);
    TestPacket::ip(&fix_ip_checksum(bytes))
}

#[test]
fn bad_sources_are_refused_unless_the_destination_is_good() {
    let packets = [
        from_to([18, 26, 4, 255], DST),
        from_to([18, 32, 9, 47], DST),
        from_to([0, 0, 0, 0], DST),
        from_to([255, 255, 255, 255], DST),
        from_to([18, 26, 4, 255], [18, 26, 4, 9]),
        from_to([0, 0, 0, 0], [18, 32, 9, 44]),
        from_to([18, 26, 4, 9], DST),
    ];
    let (bad, good) = (dropped("bad-source-address"), Exit::Port(0));
    let expect = |config: &str, bad_ones: &[usize]| {
        let mut rig = Rig::new("CheckIPHeader", config, 1, 1);
        let wanted: Vec<Exit> = (0..packets.len())
            .map(|at| if bad_ones.contains(&at) { bad.clone() } else { good.clone() })
            .collect();
        assert_eq!(exits(&rig.push(0, &packets)), wanted, "{config}");
    };
    expect("", &[]);
    expect("INTERFACES 18.26.4.9/24 18.32.9.44/28", &[0, 1, 2, 3]);
    expect("BADSRC 18.26.4.255 18.26.4.9", &[0, 4, 6]);
    expect("BADSRC 18.26.4.255, GOODDST 18.26.4.9", &[0]);
    // The old form: a list, then the offset.
    expect("18.26.4.255 18.32.9.47", &[0, 1, 2, 3, 4, 5]);
    expect("18.26.4.255, 0", &[0, 2, 3, 4, 5]);
}

#[test]
fn a_chain_is_cut_to_the_ip_length_too() {
    let mut ip = udp(&[7; 3000]);
    let length = ip.len();
    ip.extend([0; 5]);
    let mut rig = Rig::new("CheckIPHeader", "", 1, 1);
    let out = rig.push_one(0, &TestPacket { net: None, trans: None, ..TestPacket::ip(&ip) });
    assert_eq!((out.exit, out.packet.bytes.len()), (Exit::Port(0), length));
}

#[test]
fn mistakes_are_all_told() {
    for (config, count) in [
        ("OFFSET x, BADSRC 1.2.3, CHECKSUM maybe", 3),
        ("1, 2, 3", 1),
        ("14, 15", 1),
        ("INTERFACES 18.26.4.9/33", 1),
        ("OFFSETT 14", 1),
    ] {
        let mistakes = Rig::try_new("CheckIPHeader", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}

#[test]
fn evaluator_and_machine_code_agree_on_checkipheader() {
    for config in
        ["", "14", "14, VERBOSE true", "14, CHECKSUM false", "14, INTERFACES 10.0.1.1/30 10.0.0.0/24"]
    {
        differential("CheckIPHeader", config, 1, 1);
        differential("CheckIPHeader2", config, 1, 2);
    }
}
