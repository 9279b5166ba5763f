//! `IPFragmenter` and `IPReassembler`.

use super::*;
use crate::testing::{Rig, differential};
use element::work::NodeCounter;
use etherparse::defrag::IpDefragPool;
use packet::anno;
use proptest::prelude::*;

/// A packet that may be fragmented.
fn udp(payload: &[u8]) -> Vec<u8> {
    with_byte(super::udp(payload), 6, 0)
}

fn header(bytes: &[u8]) -> etherparse::Ipv4Header {
    assert_ip_checksum(bytes);
    Ipv4HeaderSlice::from_slice(bytes).unwrap().to_header()
}

/// The fragments of a packet, all checked.
fn fragments(config: &str, ip: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let mut rig = Rig::new("IPFragmenter", config, 1, 2);
    let out = rig.push(0, &[TestPacket::ip(ip).with_anno(anno::PAINT, 5)]);
    let mut next = 0;
    for (at, out) in out.iter().enumerate() {
        let header = header(&out.packet.bytes);
        let head = usize::from(header.ihl()) * 4;
        assert_eq!(out.exit, Exit::Port(0));
        assert_eq!(usize::from(header.total_len), out.packet.bytes.len());
        assert!(out.packet.bytes.len() <= mtu);
        assert_eq!(usize::from(header.fragment_offset.value()) * 8, next);
        assert_eq!(header.more_fragments, at + 1 < fragment_count(ip, mtu));
        assert_eq!((out.packet.net, out.packet.trans), (Some(0), Some(head as i32)));
        assert_eq!(out.packet.anno(anno::PAINT), 5);
        next += out.packet.bytes.len() - head;
    }
    assert_eq!(rig.read("fragments"), if out.len() > 1 { out.len().to_string() } else { "0".into() });
    out.into_iter().map(|out| out.packet.bytes).collect()
}

/// How many fragments a packet without options needs.
fn fragment_count(ip: &[u8], mtu: usize) -> usize {
    if ip.len() <= mtu { 1 } else { (ip.len() - 20).div_ceil((mtu - 20) & !7) }
}

/// What another implementation makes of fragments.
fn defragmented(fragments: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut pool: IpDefragPool<(), ()> = IpDefragPool::new();
    let mut whole = None;
    for bytes in fragments {
        let slice = etherparse::SlicedPacket::from_ip(bytes).unwrap();
        whole = pool.process_sliced_packet(&slice, (), ()).unwrap().or(whole);
    }
    whole.map(|whole| whole.payload)
}

#[test]
fn long_packets_are_cut_and_short_ones_pass() {
    for (length, mtu) in
        [(0, 576), (548, 576), (549, 576), (1472, 576), (4000, 1500), (100, 28), (60_000, 1500)]
    {
        let ip = udp(&(0..length).map(|at| at as u8).collect::<Vec<u8>>());
        let parts = fragments(&mtu.to_string(), &ip, mtu);
        assert_eq!(parts.len(), fragment_count(&ip, mtu));
        if parts.len() > 1 {
            assert_eq!(defragmented(&parts).unwrap(), ip[20..]);
        } else {
            assert_eq!(parts[0], ip);
        }
    }
}

#[test]
fn options_are_copied_where_they_must_be() {
    // Record route stays with the first fragment, the router alert (copied) goes with all.
    let options = [1, 7, 7, 4, 0, 0, 0, 0, 148, 4, 0, 0];
    let ip = with_options(&udp(&[3; 300]), &options);
    let mut rig = Rig::new("IPFragmenter", "128", 1, 1);
    let out = rig.push(0, &[TestPacket::ip(&ip)]);
    assert_eq!(out[0].packet.bytes[20..32], options);
    assert_eq!(out[0].packet.bytes.len(), 128);
    for out in &out[1..] {
        assert_eq!((out.packet.bytes[0], &out.packet.bytes[20..24]), (0x46, [148, 4, 0, 0].as_slice()));
        assert!(out.packet.bytes.len() <= 128);
    }
    let parts: Vec<Vec<u8>> = out.into_iter().map(|out| out.packet.bytes).collect();
    assert_eq!(defragmented(&parts).unwrap(), ip[32..]);
    // Broken options end the copying.
    for options in [[148, 9, 0, 0], [148, 0, 0, 0], [148, 1, 1, 148]] {
        let ip = with_options(&udp(&[3; 300]), &options);
        let parts = fragments_of(&ip, "128");
        assert_eq!(defragmented(&parts).unwrap(), ip[24..]);
    }
}

fn fragments_of(ip: &[u8], config: &str) -> Vec<Vec<u8>> {
    let out = Rig::new("IPFragmenter", config, 1, 1).push(0, &[TestPacket::ip(ip)]);
    out.into_iter().map(|out| out.packet.bytes).collect()
}

#[test]
fn fragments_are_cut_again_and_keep_their_place() {
    let ip = udp(&(0..200).collect::<Vec<u8>>());
    let first: Vec<Vec<u8>> = fragments_of(&ip, "120");
    let second: Vec<Vec<u8>> = first.iter().flat_map(|part| fragments_of(part, "60")).collect();
    assert!(second.len() > first.len());
    assert_eq!(defragmented(&second).unwrap(), ip[20..]);
    second.iter().for_each(|part| assert_ip_checksum(part));
}

#[test]
fn packets_that_must_not_be_fragmented_leave_unchanged() {
    let df = with_byte(udp(&[1; 1000]), 6, 0x40);
    let packet = TestPacket::ip(&df);
    let mut rig = Rig::new("IPFragmenter", "576", 1, 2);
    let out = rig.push_one(0, &packet);
    assert_eq!((out.exit, &out.packet), (Exit::Port(1), &packet));
    assert_eq!((rig.read("drops").as_str(), rig.read("fragments").as_str()), ("1", "0"));
    let mut rig = Rig::new("IPFragmenter", "576, VERBOSE true", 1, 1);
    assert_eq!(rig.push_one(0, &packet).exit, dropped("must-not-fragment"));
    assert_eq!(rig.host().printed, ["IPFragmenter(576) DF 10.0.0.1 192.168.2.3 len=1028"]);
    // Without room for 8 bytes, nobody may.
    let packet = TestPacket::ip(&udp(&[1; 1000]));
    assert_eq!(Rig::new("IPFragmenter", "27", 1, 1).push_one(0, &packet).exit, dropped("must-not-fragment"));
    assert_eq!(Rig::new("IPFragmenter", "8", 1, 1).push_one(0, &packet).exit, dropped("must-not-fragment"));
    // Told not to care, it clears the bit.
    let parts = fragments_of(&df, "576, false");
    assert_eq!(parts.len(), 2);
    for part in &parts {
        assert!(!header(part).dont_fragment);
        assert_eq!(part[4..6], parts[0][4..6], "one identification for all");
    }
    assert_eq!(defragmented(&parts).unwrap(), df[20..]);
}

#[test]
fn padding_and_mac_headers_and_broken_packets() {
    let ip = udp(&[1; 100]);
    let mut rig = Rig::new("IPFragmenter", "128", 1, 1);
    let padded = TestPacket::ip(&[&ip[..], &[0; 20]].concat());
    assert_eq!(rig.push_one(0, &padded).packet.bytes, ip);
    let framed = TestPacket { net: Some(14), trans: Some(34), ..frame(&udp(&[1; 200])) };
    let out = rig.push(0, &[framed]);
    assert_eq!((out[0].packet.net, out[0].packet.bytes.len()), (Some(14), 14 + 124));
    assert_eq!((out[1].packet.net, out[1].packet.mac), (Some(0), None));
    for (packet, reason) in [
        (TestPacket { net: None, ..TestPacket::ip(&ip) }, "no-ip-header"),
        (TestPacket::ip(&ip[..19]), "no-ip-header"),
        (TestPacket::ip(&[&[0x44], &[0; 200][..]].concat()), "no-ip-header"),
        (TestPacket::ip(&udp(&[1; 300])[..200]), "no-ip-header"),
    ] {
        assert_eq!(rig.push_one(0, &packet).exit, dropped(reason));
    }
    for (config, count) in [("", 1), ("7", 1), ("100, perhaps, 2, 3", 3), ("100, HEADROOM x", 1)] {
        let mistakes = Rig::try_new("IPFragmenter", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
    differential("IPFragmenter", "48", 1, 1);
    differential("IPFragmenter", "48, false", 1, 2);
}

#[test]
fn nothing_is_sent_when_the_pool_is_empty() {
    let mut rig = Rig::new("IPFragmenter", "28", 1, 1);
    let out = rig.push(0, &[TestPacket::ip(&udp(&[1; 60_000]))]);
    assert!(out.len() > 1 && out.iter().all(|out| out.exit == dropped("no-buffer")));
    assert_eq!(rig.read("fragments"), "0");
}

fn whole(out: &[Out]) -> Vec<&Out> {
    out.iter().filter(|out| out.exit == Exit::Port(0)).collect()
}

#[test]
fn fragments_in_any_order_make_the_packet() {
    let ip = with_options(&udp(&(0..=255).cycle().take(3000).collect::<Vec<u8>>()), &[148, 4, 0, 0]);
    let parts = fragments_of(&ip, "576");
    let orders: [Vec<usize>; 4] = [
        (0..6).collect(),
        (0..6).rev().collect(),
        vec![3, 0, 5, 1, 4, 2],
        vec![3, 3, 0, 0, 5, 5, 1, 4, 1, 2],
    ];
    for order in orders {
        let mut rig = Rig::new("IPReassembler", "MAX_MTU_ANNO 46", 1, 2);
        let packets: Vec<TestPacket> = order
            .iter()
            .map(|at| TestPacket { net: Some(14), trans: Some(38), ..frame(&parts[*at]) })
            .map(|packet| packet.clone().with_anno(anno::PAINT, u64::from(packet.bytes[20]) | 8))
            .collect();
        let out = rig.push(0, &packets);
        assert_eq!((out.len(), whole(&out).len()), (1, 1), "{order:?}");
        let packet = &out[0].packet;
        assert_eq!(packet.bytes[14..], ip);
        assert_eq!((packet.net, packet.trans, packet.mac), (Some(14), Some(38), Some(0)));
        assert_checksums(&packet.bytes[14..]);
        assert_eq!(u16::from_le_bytes([packet.anno[46], packet.anno[47]]), 576);
        let counters = rig.host().node_counters;
        let count = |counter: NodeCounter| counters[counter as usize];
        assert_eq!((count(NodeCounter::Held), count(NodeCounter::Released)), (1, 1));
        assert_eq!(count(NodeCounter::Merged), order.len() - 1);
        assert!(rig.read("dump").contains("good reassemblies:   1\n"));
    }
}

#[test]
fn other_packets_pass_and_flows_are_kept_apart() {
    let mut rig = Rig::new("IPReassembler", "", 1, 1);
    let plain = TestPacket::ip(&with_byte(udp(b"hello"), 6, 0x40));
    let out = rig.push_one(0, &plain);
    assert_eq!((out.exit, &out.packet), (Exit::Port(0), &plain));
    let ip = udp(&[1; 300]);
    let parts = fragments_of(&ip, "200");
    // The same but for one part of the key.
    for (at, value) in [(5, 9), (9, 6), (15, 77), (19, 77)] {
        let other = with_byte(parts[1].clone(), at, value);
        let out = rig.push(0, &[TestPacket::ip(&parts[0]), TestPacket::ip(&other)]);
        assert!(whole(&out).is_empty());
    }
    let out = rig.push(0, &[TestPacket::ip(&parts[1])]);
    assert_eq!(out[0].packet.bytes, ip);
}

#[test]
fn fragments_that_contradict_are_dropped() {
    let parts = fragments_of(&udp(&[1; 300]), "200");
    let with_off = |part: &[u8], off: u16| {
        let mut bytes = part.to_vec();
        bytes[6..8].copy_from_slice(&off.to_be_bytes());
        TestPacket::ip(&fix_ip_checksum(bytes))
    };
    let mut odd = parts[0].clone();
    odd[2..4].copy_from_slice(&191u16.to_be_bytes());
    let mut empty = parts[1].clone();
    empty[2..4].copy_from_slice(&20u16.to_be_bytes());
    let bad = dropped("bad-fragment");
    let mut rig = Rig::new("IPReassembler", "", 1, 1);
    for packet in [
        TestPacket::ip(&odd),
        TestPacket::ip(&empty),
        TestPacket::ip(&parts[0][..100]),
        // Beyond the longest packet.
        with_off(&parts[1], 0x1fff),
    ] {
        assert_eq!(rig.push_one(0, &packet).exit, bad);
    }
    assert!(rig.read("dump").contains("bad fragments seen:  4"));
    // Once the end is known: something behind it, another end, a smaller end.
    rig.push(0, &[TestPacket::ip(&parts[1])]);
    let behind = with_off(&parts[0], 0x2000 | 40);
    let end = with_off(&parts[0], 10);
    assert_eq!(exits(&rig.push(0, &[behind, end])), [bad.clone(), bad.clone()]);
    let mut rig = Rig::new("IPReassembler", "", 1, 1);
    rig.push(0, &[with_off(&parts[0], 0x2000 | 40)]);
    assert_eq!(rig.push_one(0, &TestPacket::ip(&parts[1])).exit, bad);
    let bare = TestPacket { net: None, ..TestPacket::ip(&parts[0]) };
    assert_eq!(rig.push_one(0, &bare).exit, dropped("no-ip-header"));
}

#[test]
fn incomplete_packets_are_given_up_after_thirty_seconds() {
    let second = 1_000_000_000;
    let ip = udp(&[1; 500]);
    let parts = fragments_of(&ip, "200");
    for outputs in [1, 2] {
        let mut rig = Rig::new("IPReassembler", "", 1, outputs);
        assert!(rig.push(0, &[TestPacket::ip(&parts[0])]).is_empty());
        assert!(rig.advance(20 * second).is_empty());
        assert!(rig.push(0, &[TestPacket::ip(&parts[2])]).is_empty());
        assert!(rig.advance(20 * second).is_empty());
        assert!(rig.read("dump").ends_with(" (10.0.0.1, 0, 192.168.2.3, 0) 0 (0,176) (352,508)"));
        let out = rig.advance(20 * second);
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].exit, if outputs == 2 { Exit::Port(1) } else { dropped("incomplete") });
        let packet = &out[0].packet;
        assert_ip_checksum(&packet.bytes);
        assert_eq!((packet.bytes.len(), packet.net, packet.trans), (ip.len(), Some(0), Some(20)));
        assert_eq!((&packet.bytes[20..196], &packet.bytes[372..]), (&ip[20..196], &ip[372..]));
        assert!(packet.bytes[196..372].iter().all(|byte| *byte == 0));
        assert!(rig.read("dump").contains("failed reassemblies: 1"));
        assert!(rig.advance(100 * second).is_empty());
    }
}

#[test]
fn memory_is_bounded() {
    let mut rig = Rig::new("IPReassembler", "HIMEM 4000", 1, 1);
    let parts = fragments_of(&udp(&[1; 300]), "200");
    let mut given_up = 0;
    for id in 1..=100 {
        let out = rig.push(0, &[TestPacket::ip(&with_byte(parts[0].clone(), 5, id))]);
        assert!(out.iter().all(|out| out.exit == dropped("incomplete")));
        // The oldest go.
        for out in &out {
            given_up += 1;
            assert_eq!(out.packet.bytes[5], given_up);
        }
        rig.advance(1_000_000);
    }
    assert!((75..=90).contains(&given_up), "{given_up}");
    for (config, count) in [("HIMEM x, MAX_MTU_ANNO PAINT", 2), ("1", 1)] {
        let mistakes = Rig::try_new("IPReassembler", config, 1, 1).err().unwrap();
        assert_eq!(mistakes.lines().count(), count, "{config}: {mistakes}");
    }
    differential("IPReassembler", "", 1, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// What is cut, shuffled, doubled and put together is what it was.
    #[test]
    fn what_is_cut_is_put_together_again(
        payload in prop::collection::vec(any::<u8>(), 0..3000),
        mtu in 68usize..1500,
        shuffle in any::<u64>(),
    ) {
        let ip = udp(&payload);
        let mut parts = fragments_of(&ip, &mtu.to_string());
        let mut state = shuffle | 1;
        for at in (1..parts.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            parts.swap(at, state as usize % (at + 1));
        }
        let packets: Vec<TestPacket> = parts.iter().map(|part| TestPacket::ip(part)).collect();
        let out = Rig::new("IPReassembler", "HIMEM 1000000", 1, 1).push(0, &packets);
        prop_assert_eq!(out.len(), 1);
        prop_assert_eq!(&out[0].packet.bytes, &ip);
    }
}
