//! `DecIPTTL`.

use super::*;
use crate::testing::{Rig, differential};

fn with_ttl(ttl: u8) -> TestPacket {
    TestPacket::ip(&with_byte(udp(b"hello"), 8, ttl))
}

#[test]
fn the_time_to_live_falls_and_the_checksum_follows() {
    let mut rig = Rig::new("DecIPTTL", "", 1, 1);
    let packets: Vec<TestPacket> = (2..=255).map(with_ttl).collect();
    for (before, after) in packets.iter().zip(rig.push(0, &packets)) {
        assert_eq!(after.exit, Exit::Port(0));
        assert_eq!(after.packet.bytes[8], before.bytes[8] - 1);
        assert_checksums(&after.packet.bytes);
    }
}

#[test]
fn every_checksum_value_is_updated_right() {
    let mut rig = Rig::new("DecIPTTL", "", 1, 1);
    let packets: Vec<TestPacket> = (0..=u16::MAX)
        .step_by(7)
        .chain([0xfe00, 0xfeff, 0xff00])
        .map(|id| {
            let mut bytes = udp(b"");
            bytes[4..6].copy_from_slice(&id.to_be_bytes());
            TestPacket::ip(&fix_ip_checksum(bytes))
        })
        .collect();
    rig.push(0, &packets).iter().for_each(|out| assert_ip_checksum(&out.packet.bytes));
}

#[test]
fn expired_packets_are_dropped_or_leave_by_the_second_output_unchanged() {
    let packets = [with_ttl(0), with_ttl(1), with_ttl(2)];
    let mut rig = Rig::new("DecIPTTL", "", 1, 1);
    let expired = dropped("ttl-expired");
    assert_eq!(exits(&rig.push(0, &packets)), [expired.clone(), expired, Exit::Port(0)]);
    let mut rig = Rig::new("DecIPTTL", "", 1, 2);
    let out = rig.push(0, &packets);
    assert_eq!(exits(&out), [Exit::Port(1), Exit::Port(1), Exit::Port(0)]);
    assert_eq!(out[1].packet, packets[1]);
    assert_eq!(rig.read("drops"), "2");
}

#[test]
fn multicast_and_inactive_elements_let_packets_pass() {
    let group = TestPacket::ip(&with_byte(with_ttl(1).bytes, 16, 239));
    for (config, multicast, unicast) in [
        ("MULTICAST false", Exit::Port(0), dropped("ttl-expired")),
        ("MULTICAST true", dropped("ttl-expired"), dropped("ttl-expired")),
        ("ACTIVE false", Exit::Port(0), Exit::Port(0)),
    ] {
        let mut rig = Rig::new("DecIPTTL", config, 1, 1);
        let out = rig.push(0, &[group.clone(), with_ttl(1)]);
        assert_eq!(exits(&out), [multicast, unicast], "{config}");
        if out[0].exit == Exit::Port(0) {
            assert_eq!(out[0].packet, group);
        }
    }
}

#[test]
fn the_active_handler_switches() {
    let mut rig = Rig::new("DecIPTTL", "", 1, 1);
    assert_eq!(rig.read("active"), "true");
    rig.write("active", "false").unwrap();
    assert_eq!(rig.push_one(0, &with_ttl(1)).exit, Exit::Port(0));
    assert_eq!(rig.read("active"), "false");
    assert!(rig.write("active", "perhaps").is_err());
    assert!(rig.write("drops", "0").is_err());
}

#[test]
fn packets_without_a_network_header_are_dropped() {
    let mut rig = Rig::new("DecIPTTL", "", 1, 2);
    let bare = TestPacket { net: None, ..with_ttl(64) };
    let short = TestPacket::ip(&with_ttl(64).bytes[..19]);
    let headless = dropped("no-ip-header");
    assert_eq!(exits(&rig.push(0, &[bare, short])), [headless.clone(), headless]);
}

#[test]
fn evaluator_and_machine_code_agree_on_decipttl() {
    for config in ["", "MULTICAST false", "ACTIVE false"] {
        differential("DecIPTTL", config, 1, 1);
        differential("DecIPTTL", config, 1, 2);
    }
}
