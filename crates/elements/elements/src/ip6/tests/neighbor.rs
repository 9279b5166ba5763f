//! `IP6NDAdvertiser` and `IP6NDSolicitor`.

use super::*;
use crate::testing::Rig;
use element::work::NodeCounter;
use packet::MacAddr;
use packet::checksum::{ICMP_CHECK, icmp6, pseudo_ipv6};
use packet::view::nd::Neighbor;

const TARGET: &str = "2001:db8::5";
const OWN_ADDRESS: [u8; 6] = [0, 0, 0xc0, 0xae, 0x67, 0xef];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A frame with a neighbour message, from PEER.
fn message(src: &str, dst: &str, neighbor: Neighbor) -> TestPacket {
    let mut bytes = vec![0; 14 + 40 + neighbor.message_bytes()];
    bytes[6..12].copy_from_slice(&PEER);
    bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    bytes[14] = 0x60;
    bytes[18..20].copy_from_slice(&(neighbor.message_bytes() as u16).to_be_bytes());
    (bytes[20], bytes[21]) = (58, 255);
    bytes[22..38].copy_from_slice(&address(src).octets());
    bytes[38..54].copy_from_slice(&address(dst).octets());
    assert!(neighbor.write(&mut bytes, 54, address(src), address(dst)));
    TestPacket::frame(&bytes)
}

fn solicitation(src: &str, dst: &str, target: &str) -> TestPacket {
    let link_addr = (src != "::").then_some(MacAddr(PEER));
    message(src, dst, Neighbor { is_advertisement: false, flags: 0, target: address(target), link_addr })
}

fn advertisement(flags: u8, target: &str) -> TestPacket {
    let link_addr = Some(MacAddr(PEER));
    message(target, SRC, Neighbor { is_advertisement: true, flags, target: address(target), link_addr })
}

#[test]
fn solicitations_are_answered() {
    let mut rig =
        Rig::new("IP6NDAdvertiser", "2001:db8::5 00:00:C0:AE:67:EF, 2001:db8:5::/48 2:0:0:0:0:9", 1, 1);
    for (target, station) in [(TARGET, OWN_ADDRESS), ("2001:db8:5::77", [2, 0, 0, 0, 0, 9])] {
        for dst in [target, "ff02::1:ff00:5"] {
            let out = rig.push_one(0, &solicitation(SRC, dst, target));
            assert_eq!(out.exit, Exit::Port(0));
            let bytes = &out.packet.bytes;
            assert_eq!(
                (&bytes[..6], &bytes[6..12], &bytes[12..14]),
                (&PEER[..], &station[..], &[0x86, 0xdd][..])
            );
            let (src, dst, icmp) = right_icmp6(&bytes[14..]);
            assert_eq!((src, dst, bytes[21]), (address(target), address(SRC), 255));
            assert_eq!((icmp.len(), icmp[0], icmp[1], icmp[4]), (32, 136, 0, 0xc0));
            assert_eq!(icmp[8..24], address(target).octets());
            assert_eq!((&icmp[24..26], &icmp[26..]), (&[2, 1][..], &station[..]));
        }
    }
    // Somebody who tries out an address.
    let out = rig.push_one(0, &solicitation("::", "ff02::1:ff00:5", TARGET));
    let (_, dst, icmp) = right_icmp6(&out.packet.bytes[14..]);
    assert_eq!((dst, icmp[4], icmp.len()), (address("ff02::1"), 0x80, 32));
    assert_eq!(out.packet.bytes[..6], [0x33, 0x33, 0, 0, 0, 1]);
}

#[test]
fn wrong_solicitations_are_not_answered() {
    let mut rig = Rig::new("IP6NDAdvertiser", "2001:db8::5 00:00:C0:AE:67:EF", 1, 1);
    let good = solicitation(SRC, TARGET, TARGET);
    let changed = |at: usize, value: u8| {
        let mut packet = good.clone();
        packet.bytes[at] = value;
        packet
    };
    let bad = dropped("bad-solicitation");
    for packet in [
        changed(12, 8),
        changed(14, 0x45),
        changed(20, 17),
        changed(21, 254),
        changed(57, good.bytes[57] ^ 1),
        TestPacket::frame(&good.bytes[..60]),
        TestPacket::frame(&[]),
        advertisement(0x60, TARGET),
        solicitation("::", TARGET, TARGET),
        solicitation(SRC, "ff02::1", "ff02::1"),
    ] {
        let out = rig.push_one(0, &packet);
        assert_eq!((out.exit, &out.packet), (bad.clone(), &packet));
    }
    assert_eq!(rig.push_one(0, &solicitation(SRC, SRC, "2001:db8::6")).exit, dropped("not-mine"));
    for (config, count) in [
        ("2001:db8::5", 1),
        ("00:00:C0:AE:67:EF", 1),
        ("::1 2:0:0:0:0:1 2:0:0:0:0:2", 1),
        ("x 2:0:0:0:0:1", 2),
    ] {
        let mistakes = Rig::try_new("IP6NDAdvertiser", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
}

fn packet_to(target: &str) -> TestPacket {
    with_annotation(TestPacket::ip(&udp6(SRC, DST, target.as_bytes())), target)
}

fn solicitor(outputs: usize) -> Rig {
    Rig::new("IP6NDSolicitor", &format!("{SRC}, 00:00:C0:AE:67:EF"), 2, outputs)
}

#[track_caller]
fn assert_sent(out: &Out, packet: &TestPacket, to: [u8; 6]) {
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!((&out.packet.bytes[..6], &out.packet.bytes[6..12]), (&to[..], &OWN_ADDRESS[..]));
    assert_eq!(out.packet.bytes[12..14], [0x86, 0xdd]);
    assert_eq!(out.packet.bytes[14..], packet.bytes);
    assert_eq!((out.packet.mac, out.packet.net), (Some(0), Some(14)));
}

#[test]
fn an_unknown_neighbor_is_asked_and_his_packet_kept() {
    for outputs in [1, 2] {
        let mut rig = solicitor(outputs);
        let first = packet_to(TARGET);
        let out = rig.push(0, std::slice::from_ref(&first));
        assert_eq!((out.len(), &out[0].exit), (1, &Exit::Port(outputs - 1)));
        let query = &out[0].packet.bytes;
        assert_eq!((&query[..6], &query[6..12]), (&[0x33, 0x33, 0xff, 0, 0, 5][..], &OWN_ADDRESS[..]));
        let (src, dst, icmp) = right_icmp6(&query[14..]);
        assert_eq!((src, dst, query[21]), (address(SRC), address("ff02::1:ff00:5"), 255));
        assert_eq!(
            (icmp[0], &icmp[8..24], &icmp[24..26], &icmp[26..]),
            (135, &address(TARGET).octets()[..], &[1, 1][..], &OWN_ADDRESS[..])
        );
        assert_eq!(rig.read("table"), "2001:db8::5 0 00-00-00-00-00-00");

        let out = rig.push(1, &[advertisement(0x60, TARGET)]);
        assert_eq!(out.len(), 2);
        assert_eq!(out[0].exit, dropped("advertisement"));
        assert_sent(&out[1], &first, PEER);
        let second = packet_to(TARGET);
        assert_sent(&rig.push(0, std::slice::from_ref(&second))[0], &second, PEER);
        assert_eq!(rig.read("table"), "2001:db8::5 1 02-00-00-00-00-02");
        assert_eq!(rig.read("stats"), "0 packets killed\n1 ND Solicitation Message sent");
        let counters = rig.host().node_counters;
        assert_eq!((counters[NodeCounter::Held as usize], counters[NodeCounter::Released as usize]), (1, 1));
    }
}

#[test]
fn the_newest_packet_waits_and_questions_are_limited() {
    let mut rig = solicitor(2);
    rig.push(0, &[packet_to(TARGET)]);
    let newer = with_annotation(TestPacket::ip(&udp6(SRC, DST, b"newer")), TARGET);
    let out = rig.push(0, std::slice::from_ref(&newer));
    assert_eq!(exits(&out), [dropped("replaced")], "no second question within a second");
    rig.advance(1_000_000_000);
    let newest = with_annotation(TestPacket::ip(&udp6(SRC, DST, b"newest")), TARGET);
    let out = rig.push(0, std::slice::from_ref(&newest));
    assert_eq!(exits(&out), [Exit::Port(1), dropped("replaced")]);
    assert_eq!(rig.read("stats"), "2 packets killed\n2 ND Solicitation Message sent");
    let out = rig.push(1, &[advertisement(0, TARGET)]);
    assert_sent(&out[1], &newest, PEER);
}

#[test]
fn wrong_advertisements_change_nothing() {
    let mut rig = solicitor(1);
    rig.push(0, &[packet_to(TARGET)]);
    let mut corrupt = advertisement(0x60, TARGET);
    corrupt.bytes[80] ^= 1;
    let link_addr = None;
    let silent = message(
        TARGET,
        SRC,
        Neighbor { is_advertisement: true, flags: 0x60, target: address(TARGET), link_addr },
    );
    let link_addr = Some(MacAddr(PEER));
    let to_all = message(
        TARGET,
        "ff02::1",
        Neighbor { is_advertisement: true, flags: 0x40, target: address(TARGET), link_addr },
    );
    let bad = dropped("bad-advertisement");
    for packet in [corrupt, silent, to_all, solicitation(SRC, TARGET, TARGET), TestPacket::frame(&[0; 60])] {
        assert_eq!(exits(&rig.push(1, &[packet])), std::slice::from_ref(&bad));
    }
    assert_eq!(exits(&rig.push(1, &[advertisement(0x60, "2001:db8::77")])), [dropped("advertisement")]);
    assert_eq!(rig.read("table"), "2001:db8::5 0 00-00-00-00-00-00");
}

#[test]
fn neighbors_are_asked_again_and_forgotten() {
    let second = 1_000_000_000;
    let mut rig = solicitor(2);
    rig.push(0, &[packet_to(TARGET), packet_to("2001:db8::6")]);
    rig.push(1, &[advertisement(0x60, TARGET)]);
    let out = rig.advance(30 * second);
    assert_eq!(exits(&out), [dropped("no-answer")]);
    assert_eq!(rig.read("table").lines().count(), 1);
    rig.advance(31 * second);
    let out = rig.push(0, &[packet_to(TARGET)]);
    assert_eq!(exits(&out), [Exit::Port(0), Exit::Port(1)], "sent, and asked for again");
    rig.advance(60 * second);
    assert_eq!(rig.read("table"), "");
}

#[test]
fn multicast_needs_no_question() {
    let mut rig = solicitor(1);
    let packet = packet_to("ff02::1:2");
    assert_sent(&rig.push(0, std::slice::from_ref(&packet))[0], &packet, [0x33, 0x33, 0, 1, 0, 2]);
    for (config, count) in [("", 2), ("1.2.3.4, nobody", 2), ("::1, 2:0:0:0:0:1, x", 1)] {
        let mistakes = Rig::try_new("IP6NDSolicitor", config, 2, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
    let mut wrong = advertisement(0, TARGET);
    let pseudo = pseudo_ipv6(address(TARGET), address(SRC), 58, 32);
    wrong.bytes[58] = 0xff;
    let sum = icmp6(&wrong.bytes, 54, 32, pseudo).unwrap();
    wrong.bytes[54 + ICMP_CHECK..56 + ICMP_CHECK].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(exits(&rig.push(1, &[wrong])), [dropped("advertisement")], "reserved bits are ignored");
}
