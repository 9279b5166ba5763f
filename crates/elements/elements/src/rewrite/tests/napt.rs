//! Conversations through `IPRewriter`, `TCPRewriter` and `UDPRewriter`.

use super::{
    ACK, EXTERNAL, End, INSIDE, OTHER, REMOTE, SECOND_NS, SYN, echo, expect, expect_drop, mistakes, tcp, udp,
};
use crate::testing::{Exit, Rig, TestPacket, differential};
use packet::anno;

const NAPT: &str = "pattern 203.0.113.1 1024-65535# - - 0 1, drop, SEED 1";

#[test]
fn a_udp_conversation_is_translated_both_ways() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    for turn in 0..3 {
        let out = rig.push_one(0, &udp(INSIDE, REMOTE, b"question"));
        expect(&out, 0, (EXTERNAL, 1024), REMOTE);
        let address = u64::from(u32::from_be_bytes([198, 51, 100, 7]));
        assert_eq!(out.packet.anno(anno::DST_IP), address, "turn {turn}");
        let out = rig.push_one(1, &udp(REMOTE, (EXTERNAL, 1024), b"answer!"));
        expect(&out, 1, REMOTE, INSIDE);
        assert_eq!(out.packet.anno(anno::DST_IP), u64::from(u32::from_be_bytes([10, 0, 0, 5])));
    }
    assert_eq!(rig.read("nmappings"), "1");
}

#[test]
fn a_tcp_conversation_is_translated_both_ways_and_by_any_input() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    expect(&rig.push_one(0, &tcp(INSIDE, REMOTE, SYN, b"")), 0, (EXTERNAL, 1024), REMOTE);
    let external = (EXTERNAL, 1024);
    expect(&rig.push_one(0, &tcp(REMOTE, external, SYN | ACK, b"")), 1, REMOTE, INSIDE);
    expect(&rig.push_one(1, &tcp(INSIDE, REMOTE, ACK, b"odd")), 0, external, REMOTE);
    expect(&rig.push_one(1, &tcp(REMOTE, external, ACK, b"even")), 1, REMOTE, INSIDE);
}

#[test]
fn flows_of_one_burst_get_one_mapping_each() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    let packets: Vec<TestPacket> =
        [INSIDE, OTHER, INSIDE, OTHER].iter().map(|from| udp(*from, REMOTE, b"x")).collect();
    let out = rig.push(0, &packets);
    for (out, port) in out.iter().zip([1024, 1025, 1024, 1025]) {
        expect(out, 0, (EXTERNAL, port), REMOTE);
    }
    // TCP and UDP do not share mappings, but they share the order of ports.
    expect(&rig.push_one(0, &tcp(INSIDE, REMOTE, SYN, b"")), 0, (EXTERNAL, 1026), REMOTE);
}

#[test]
fn an_external_port_serves_several_remote_ends() {
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 4000-4000 - - 0 0, SEED 1", 1, 1);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 4000), REMOTE);
    let other = ("198.51.100.8", 53);
    expect(&rig.push_one(0, &udp(OTHER, other, b"")), 0, (EXTERNAL, 4000), other);
    expect(&rig.push_one(0, &udp(other, (EXTERNAL, 4000), b"")), 0, other, OTHER);
    expect(&rig.push_one(0, &udp(REMOTE, (EXTERNAL, 4000), b"")), 0, REMOTE, INSIDE);
}

#[test]
fn every_part_of_a_pattern_is_replaced_and_put_back() {
    let config = "pattern 1.2.3.4 5 6.7.8.9 10 1 0";
    let mut rig = Rig::new("IPRewriter", config, 1, 2);
    for make in [udp as fn(_, _, &[u8]) -> TestPacket, |from, to, payload| tcp(from, to, ACK, payload)] {
        expect(&rig.push_one(0, &make(INSIDE, REMOTE, b"payload")), 1, ("1.2.3.4", 5), ("6.7.8.9", 10));
        expect(&rig.push_one(0, &make(("6.7.8.9", 10), ("1.2.3.4", 5), b"back")), 0, REMOTE, INSIDE);
    }
}

#[test]
fn keep_changes_nothing_and_knows_replies() {
    let mut rig = Rig::new("IPRewriter", "keep 1 2, drop", 2, 3);
    let packet = udp(INSIDE, REMOTE, b"q");
    let out = rig.push_one(0, &packet);
    assert_eq!((out.exit, &out.packet.bytes), (Exit::Port(1), &packet.bytes));
    let reply = tcp(REMOTE, INSIDE, ACK, b"");
    expect_drop(&rig.push_one(1, &reply), "no-mapping");
    let reply = udp(REMOTE, INSIDE, b"a");
    let out = rig.push_one(1, &reply);
    assert_eq!((out.exit, out.packet.bytes), (Exit::Port(2), reply.bytes));
}

#[test]
fn pass_lets_everything_through_and_uses_mappings_that_there_are() {
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, pass 2", 2, 3);
    let stranger = udp(REMOTE, (EXTERNAL, 1024), b"");
    let out = rig.push_one(1, &stranger);
    assert_eq!((out.exit, out.packet), (Exit::Port(2), stranger));
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    expect(&rig.push_one(1, &udp(REMOTE, (EXTERNAL, 1024), b"")), 1, REMOTE, INSIDE);
    let ping = echo("1.1.1.1", "2.2.2.2", 7, false, b"");
    assert_eq!(rig.push_one(1, &ping).exit, Exit::Port(2));
    let mut fragment = udp(REMOTE, INSIDE, b"12345678");
    fragment.bytes[7] = 9;
    assert_eq!(rig.push_one(1, &fragment).exit, Exit::Port(2));
    assert_eq!(rig.push_one(1, &TestPacket::frame(&[0; 60])).exit, Exit::Port(2));
}

#[test]
fn what_cannot_be_translated_is_dropped_for_a_reason() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    expect_drop(&rig.push_one(1, &udp(REMOTE, (EXTERNAL, 1024), b"")), "no-mapping");
    expect_drop(&rig.push_one(0, &echo("1.1.1.1", "2.2.2.2", 7, false, b"")), "not-tcp-or-udp");
    expect_drop(&rig.push_one(0, &TestPacket::frame(&[0; 60])), "no-ip-header");
    expect_drop(&rig.push_one(0, &TestPacket::ip(&[0x45; 19])), "no-ip-header");
    let mut six = udp(INSIDE, REMOTE, b"");
    six.bytes[0] = 0x65;
    expect_drop(&rig.push_one(0, &six), "no-ip-header");
    let mut later = udp(INSIDE, REMOTE, b"");
    later.bytes[7] = 1;
    expect_drop(&rig.push_one(0, &later), "fragment");
    let mut short = udp(INSIDE, REMOTE, b"");
    short.bytes.truncate(27);
    expect_drop(&rig.push_one(0, &short), "short-transport");
    let mut unset = udp(INSIDE, REMOTE, b"");
    unset.trans = None;
    expect_drop(&rig.push_one(0, &unset), "short-transport");
    let mut rig = Rig::new("TCPRewriter", "keep 0 0", 1, 1);
    expect_drop(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), "not-tcp");
}

#[test]
fn a_first_fragment_is_translated() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    let mut first = udp(INSIDE, REMOTE, b"the first part");
    first.bytes[6] = 0x20;
    let out = rig.push_one(0, &first);
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!(&out.packet.bytes[12..16], &[203, 0, 113, 1]);
}

#[test]
fn a_udp_packet_without_checksum_stays_without() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    let mut packet = udp(INSIDE, REMOTE, b"x");
    packet.bytes[26..28].fill(0);
    let out = rig.push_one(0, &packet);
    assert_eq!(out.packet.bytes[26..28], [0, 0]);
    expect(&out, 0, (EXTERNAL, 1024), REMOTE);
}

#[test]
fn a_udp_checksum_that_becomes_zero_is_sent_as_ones() {
    // Two payload bytes choose the sum: among all of them one makes the translated checksum zero.
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    let packets: Vec<TestPacket> =
        (0..=u16::MAX).map(|word| udp(INSIDE, REMOTE, &word.to_be_bytes())).collect();
    let out = rig.push(0, &packets);
    assert!(out.iter().all(|out| out.packet.bytes[26..28] != [0, 0]));
    let ones: Vec<_> = out.iter().filter(|out| out.packet.bytes[26..28] == [0xff; 2]).collect();
    assert!((1..=2).contains(&ones.len()), "{} sums are zero", ones.len());
    expect(ones[0], 0, (EXTERNAL, 1024), REMOTE);
}

#[test]
fn a_tcp_header_cut_off_before_its_checksum_is_still_sent_on() {
    let mut rig = Rig::new("IPRewriter", NAPT, 2, 2);
    let mut packet = tcp(INSIDE, REMOTE, ACK, b"");
    packet.bytes.truncate(20 + 12);
    let out = rig.push_one(0, &packet);
    assert_eq!(out.exit, Exit::Port(0));
    assert_eq!(out.packet.bytes[20..22], 1024u16.to_be_bytes());
}

#[test]
fn annotations_follow_the_arguments() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 1, DST_ANNO false, REPLY_ANNO PAINT";
    let mut rig = Rig::new("IPRewriter", config, 1, 2);
    let packet = udp(INSIDE, REMOTE, b"").with_anno(anno::PAINT, 9).with_anno(anno::DST_IP, 77);
    let out = rig.push_one(0, &packet);
    assert_eq!((out.packet.anno(anno::PAINT), out.packet.anno(anno::DST_IP)), (9, 77));
    let packet = udp(INSIDE, REMOTE, b"").with_anno(anno::PAINT, 4);
    assert_eq!(rig.push_one(0, &packet).packet.anno(anno::PAINT), 4);
    let reply = udp(REMOTE, (EXTERNAL, 1024), b"").with_anno(anno::PAINT, 1);
    assert_eq!(rig.push_one(0, &reply).packet.anno(anno::PAINT), 9);
}

#[test]
fn udp_rewriter_translates_tcp_and_dccp_too() {
    let mut rig = Rig::new("UDPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 0", 1, 1);
    expect(&rig.push_one(0, &tcp(INSIDE, REMOTE, SYN, b"")), 0, (EXTERNAL, 1024), REMOTE);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 1025), REMOTE);
    // A UDP packet with another protocol number has no right UDP checksum, but the same change.
    let mut dccp = udp(OTHER, REMOTE, b"12345678");
    dccp.bytes[9] = 33;
    let before = u16::from_be_bytes([dccp.bytes[26], dccp.bytes[27]]);
    let out = rig.push_one(0, &dccp);
    let after = u16::from_be_bytes([out.packet.bytes[26], out.packet.bytes[27]]);
    let change = packet::checksum::Delta::NONE
        .change32(u32::from_be_bytes([10, 0, 0, 6]), u32::from_be_bytes([203, 0, 113, 1]))
        .change16(4000, 1026);
    assert_eq!(after, change.apply(before));
    let mut packet = udp(OTHER, REMOTE, b"");
    packet.bytes[9] = 47;
    expect_drop(&rig.push_one(0, &packet), "not-tcp-or-udp");
}

/// The way back may be wired to nothing: no output for replies, and no input.
#[test]
fn replies_without_a_way_back_are_dropped() {
    let mut rig = Rig::new("IPRewriter", NAPT, 1, 1);
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 1024), REMOTE);
    expect_drop(&rig.push_one(0, &udp(REMOTE, (EXTERNAL, 1024), b"")), "no-such-output");
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, (EXTERNAL, 1024), REMOTE);
    assert_eq!(rig.read("nmappings"), "1");
}

#[test]
fn mistakes_are_named_and_all_of_them() {
    let napt = |config| mistakes("IPRewriter", config, 1, 2);
    assert!(napt("")[0].contains("needs 1 arguments, one for each input, not 0"));
    for (config, what) in [
        ("keep 0 3", "output port 3 is out of range"),
        ("keep 2 0", "output port 2 is out of range"),
        ("keep 0", "expected a forward and a reply output port"),
        ("pass 7", "output port 7 is out of range"),
        ("drop 1", "syntax error, expected `drop`"),
        ("pattern 1.0.0.1 5 - - 0", "bad forward port"),
        ("pattern 1.0.0.1 5 - - - 0 0", "a pattern is `SADDR SPORT DADDR DPORT`"),
        ("pattern 1.0.0.1 70000 - - 0 1", "bad source port"),
        ("pattern 1.0.0.1 9-5 - - 0 1", "bad source port"),
        ("pattern 1.0.0.300 5 - - 0 1", "bad source address"),
        ("pattern - - nonsense - 0 1", "bad destination address"),
        ("pattern - - - 0 0 1", "bad destination port"),
        ("nonsense", "unknown specification `nonsense`"),
        ("keep 0 1, MAPPING_CAPACITY nobody", "bad MAPPING_CAPACITY"),
        ("keep 0 1, FILTERING ENDPOINT_INDEPENDENT", "needs MAPPING ENDPOINT_INDEPENDENT"),
        ("keep 0 1, UDP_TIMEOUT soon", "UDP_TIMEOUT"),
    ] {
        let found = napt(config);
        assert_eq!(found.len(), 1, "{config}: {found:?}");
        assert!(found[0].contains(what), "{config}: {found:?}");
    }
    assert_eq!(mistakes("IPRewriter", "keep 0 9, drop 1, bad", 3, 2).len(), 3);
}

#[test]
fn old_and_new_keywords_are_accepted() {
    let config = "keep 0 0, TCP_TIMEOUT 1h, TCP_DONE_TIMEOUT 20, TCP_NODATA_TIMEOUT 30, TCP_GUARANTEE 1, \
                  UDP_TIMEOUT 60, UDP_STREAMING_TIMEOUT 70, UDP_GUARANTEE 2, REAP_INTERVAL 5, REAP_TIME 6, \
                  REAP_TCP 10, REAP_TCP_DONE 20, REAP_UDP 10, MAPPING_CAPACITY 10, CAPACITY 9, \
                  TCP_DONE_GC_INCR true, TIMEOUT 1, GUARANTEE 1, DST_ANNO true";
    let mut rig = Rig::new("IPRewriter", config, 1, 1);
    assert_eq!(rig.read("capacity"), "10");
    rig.advance(SECOND_NS);
}

#[test]
fn evaluator_and_machine_code_agree() {
    for (class, config, inputs, outputs) in [
        ("IPRewriter", "pattern 203.0.113.1 1024-65535 - - 0 1, drop, SEED 3", 2, 2),
        ("IPRewriter", "pattern 203.0.113.1 1024-1040? - - 0 1, pass 2, SEED 3", 2, 3),
        ("IPRewriter", "keep 0 1, pattern - - 10.0.0.1 80 1 0, drop, DST_ANNO false", 3, 2),
        ("IPRewriter", "pattern 203.0.113.1 1024-1030# - - 0 0, REPLY_ANNO 20, MAPPING_CAPACITY 5", 1, 1),
        (
            "IPRewriter",
            "pattern 203.0.113.1 1-65535 - - 0 0, MAPPING ENDPOINT_INDEPENDENT, FILTERING ENDPOINT_INDEPENDENT, SEED 4",
            1,
            1,
        ),
        ("TCPRewriter", "pattern 203.0.113.1 1024-65535? - - 0 1, SEED 5", 1, 2),
        ("UDPRewriter", "pattern 203.0.113.1 1024-65535 - - 0 1, pass 1, SEED 6", 2, 2),
        ("IPAddrRewriter", "pattern 203.0.113.0/24 - 0 1, drop, SEED 7", 2, 2),
        ("IPAddrRewriter", "keep 0 0, pass", 2, 1),
        (
            "IPAddrPairRewriter",
            "pattern 203.0.113.1-203.0.113.9 - 0 1, pass 1, SEED 8, REPLY_ANNO PAINT2",
            2,
            2,
        ),
        ("ICMPPingRewriter", "pattern 203.0.113.1 1-65535 - - 0 1, drop, SEED 9", 2, 2),
    ] {
        differential(class, config, inputs, outputs);
    }
}

#[test]
fn mappings_are_numbered_for_the_aggregate_annotation() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 1, drop, SET_AGGREGATE true";
    for (class, make) in [("IPRewriter", udp as fn(End, End, &[u8]) -> TestPacket), ("TCPRewriter", ack)] {
        let mut rig = Rig::new(class, config, 2, 2);
        let flows = [4000, 4000, 4001, 4000, 4002].map(|port| make(("10.0.0.5", port), REMOTE, b"x"));
        let out = rig.push(0, &flows);
        let numbers: Vec<u64> = out.iter().map(|out| out.packet.anno(packet::anno::AGGREGATE)).collect();
        assert_eq!(numbers, [0, 0, 1, 0, 2]);
        expect(&out[2], 0, (EXTERNAL, 1025), REMOTE);
        let back = rig.push_one(1, &make(REMOTE, (EXTERNAL, 1026), b"y"));
        expect(&back, 1, REMOTE, ("10.0.0.5", 4002));
        assert_eq!(back.packet.anno(packet::anno::AGGREGATE), 2);
    }
    assert_eq!(mistakes("IPAddrRewriter", "drop, SET_AGGREGATE true", 1, 1).len(), 1);
}

fn ack(from: End, to: End, payload: &[u8]) -> TestPacket {
    tcp(from, to, ACK, payload)
}
