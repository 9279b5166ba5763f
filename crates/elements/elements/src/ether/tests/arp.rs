//! ARP elements.

use super::*;
use crate::testing::{Out, random_packets};
use element::testing::arp::{arp, read};
use element::work::NodeCounter;
use etherparse::ArpOperation;
use packet::anno;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const ME: [u8; 4] = [10, 0, 0, 1];
const CONFIG: &str = "10.0.0.1/24, 02:00:00:00:00:aa";

fn reply(from: ([u8; 6], [u8; 4])) -> TestPacket {
    TestPacket::frame(&arp(ArpOperation::REPLY, from, (A, ME)))
}

/// An IP packet with a number, to an address.
fn to(ip: [u8; 4], number: u8) -> TestPacket {
    let mut packet = udp_packet().with_anno(anno::DST_IP, u64::from(u32::from_be_bytes(ip)));
    *packet.bytes.last_mut().unwrap() = number;
    packet.with_anno(anno::VLAN_TCI, 77)
}

fn number(out: &Out) -> u8 {
    *out.packet.bytes.last().unwrap()
}

fn at(out: &[Out], exit: Exit) -> Vec<u8> {
    out.iter().filter(|out| out.exit == exit && out.packet.bytes[12..14] == [8, 0]).map(number).collect()
}

fn accounts_balance(rig: &mut Rig) {
    let counters = rig.host().node_counters;
    let waiting: usize = rig.read("length").parse().unwrap();
    assert_eq!(counters[NodeCounter::Held as usize] - counters[NodeCounter::Released as usize], waiting);
}

#[test]
fn packets_wait_for_the_answer_and_then_take_the_fast_path() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    rig.advance(0);
    let out = rig.push(0, &[to([10, 0, 0, 2], 1), to([10, 0, 0, 2], 2), to([10, 0, 0, 3], 3)]);
    assert_eq!(out.len(), 2, "two queries");
    for (query, ip) in out.iter().zip([[10, 0, 0, 2], [10, 0, 0, 3]]) {
        assert_eq!(query.exit, Exit::Port(1));
        let wanted = ([0xff; 6], 1, (A.to_vec(), ME.to_vec()), (vec![0; 6], ip.to_vec()));
        assert_eq!(read(&query.packet.bytes), wanted);
        assert_eq!(query.packet.anno(anno::VLAN_TCI), 77);
    }
    assert_eq!([rig.read("length"), rig.read("count"), rig.read("queries")], ["3", "2", "2"]);
    accounts_balance(&mut rig);

    let out = rig.push(1, &[reply((B, [10, 0, 0, 2]))]);
    assert_eq!(out[0].exit, dropped("arp-reply-read"));
    assert_eq!(at(&out, Exit::Port(0)), [1, 2]);
    for sent in &out[1..] {
        assert_eq!(ethernet(&sent.packet.bytes), (A, B, 0x0800));
        assert_eq!((sent.packet.mac, sent.packet.net), (Some(0), Some(14)));
    }
    assert_eq!([rig.read("length"), rig.read("responses"), rig.read("drops")], ["1", "1", "0"]);
    // Known now: nothing is held or asked.
    let held = rig.host().node_counters[NodeCounter::Held as usize];
    let sent = rig.push_one(0, &to([10, 0, 0, 2], 4));
    assert_eq!((sent.exit, ethernet(&sent.packet.bytes)), (Exit::Port(0), (A, B, 0x0800)));
    assert_eq!((&sent.packet.bytes[14..], sent.packet.net), (&to([10, 0, 0, 2], 4).bytes[..], Some(14)));
    assert_eq!(rig.host().node_counters[NodeCounter::Held as usize], held);
    accounts_balance(&mut rig);
}

#[test]
fn a_querier_with_one_output_sends_queries_there() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 1);
    let out = rig.push(0, &[to([10, 0, 0, 2], 1)]);
    assert_eq!((out.len(), out[0].exit.clone()), (1, Exit::Port(0)));
}

#[test]
fn a_new_address_replaces_the_old_one() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    rig.push(1, &[reply((B, [10, 0, 0, 2]))]);
    assert_eq!(ethernet(&rig.push_one(0, &to([10, 0, 0, 2], 1)).packet.bytes).1, B);
    rig.push(1, &[reply((C, [10, 0, 0, 2]))]);
    assert_eq!(ethernet(&rig.push_one(0, &to([10, 0, 0, 2], 1)).packet.bytes).1, C);
    rig.write("insert", "10.0.0.2 2:0:0:0:0:bb").unwrap();
    assert_eq!(ethernet(&rig.push_one(0, &to([10, 0, 0, 2], 1)).packet.bytes).1, B);
    rig.write("delete", "10.0.0.2").unwrap();
    assert_eq!(rig.push(0, &[to([10, 0, 0, 2], 1)])[0].exit, Exit::Port(1));
    assert!(rig.write("insert", "10.0.0.2").is_err());
    assert!(rig.write("insert", "10.0.0.2 nobody").is_err());
    assert!(rig.write("delete", "me").is_err() && rig.write("forget", "").is_err());
}

#[test]
fn special_addresses_are_not_asked_for() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    let to_mac = |rig: &mut Rig, ip| ethernet(&rig.push_one(0, &to(ip, 1)).packet.bytes).1;
    assert_eq!(to_mac(&mut rig, [255; 4]), [0xff; 6]);
    assert_eq!(to_mac(&mut rig, [10, 0, 0, 255]), [0xff; 6]);
    assert_eq!(to_mac(&mut rig, [224, 129, 2, 3]), [1, 0, 0x5e, 1, 2, 3]);
    assert_eq!(rig.push_one(0, &to([0; 4], 1)).exit, dropped("no-destination"));
    assert_eq!(
        [rig.read("broadcast"), rig.read("ipaddr"), rig.read("drops")],
        ["10.0.0.255", "10.0.0.1", "1"]
    );
    rig.write("broadcast", "10.0.0.7").unwrap();
    assert_eq!(to_mac(&mut rig, [10, 0, 0, 7]), [0xff; 6]);
    rig.write("ipaddr", "0.0.0.0").unwrap();
    assert_eq!(rig.push_one(0, &to([10, 0, 0, 9], 1)).exit, dropped("not-configured"));
    // Without prefix, the one address for everybody.
    let mut rig = Rig::new("ARPQuerier", "10.0.0.1, 02:00:00:00:00:aa", 2, 2);
    assert_eq!(rig.read("broadcast"), "255.255.255.255");
    let mut rig = Rig::new("ARPQuerier", &format!("{CONFIG}, BROADCAST 10.9.9.9"), 2, 2);
    assert_eq!(rig.read("broadcast"), "10.9.9.9");
}

#[test]
fn what_is_no_reply_is_dropped() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    let request = TestPacket::frame(&arp(ArpOperation::REQUEST, (B, [10, 0, 0, 2]), ([0; 6], ME)));
    let from_a_group = reply(([1, 0, 0, 0, 0, 1], [10, 0, 0, 3]));
    let mut other_protocol = reply((B, [10, 0, 0, 4]));
    other_protocol.bytes[16] = 0x86;
    let short = TestPacket::frame(&reply((B, [10, 0, 0, 5])).bytes[..41]);
    let padded = TestPacket::frame(&[reply((B, [10, 0, 0, 6])).bytes, vec![0; 18]].concat());
    let frames = [request, from_a_group, other_protocol, short, padded];
    let exits: Vec<Exit> = rig.push(1, &frames).into_iter().map(|out| out.exit).collect();
    let bad = dropped("not-arp-reply");
    assert_eq!(exits, [bad.clone(), bad.clone(), bad.clone(), bad, dropped("arp-reply-read")]);
    assert_eq!([rig.read("responses"), rig.read("count")], ["4", "1"]);
    rig.push(1, &random_packets(3, 200));
}

#[test]
fn questions_are_not_repeated_too_often() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    let mut queries = vec![];
    for step in 0..60 {
        let out = rig.push(0, &[to([10, 0, 0, 2], 1)]);
        queries.extend((!out.is_empty()).then_some(step));
        rig.advance(50 * MS);
    }
    // Every 100 ms; after ten, every two seconds.
    assert_eq!(queries, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    assert_eq!(rig.read("stats"), "0 packets killed\n11 ARP queries sent");
}

#[test]
fn entries_in_use_are_polled_and_expire_without_answer() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    rig.push(1, &[reply((B, [10, 0, 0, 2]))]);
    rig.advance(59 * SECOND);
    assert_eq!(rig.push(0, &[to([10, 0, 0, 2], 1)]).len(), 1);
    rig.advance(SECOND);
    let out = rig.push(0, &[to([10, 0, 0, 2], 1), to([10, 0, 0, 2], 2)]);
    assert_eq!(at(&out, Exit::Port(0)), [1, 2]);
    let polls: Vec<&Out> = out.iter().filter(|out| out.exit == Exit::Port(1)).collect();
    assert_eq!((polls.len(), read(&polls[0].packet.bytes).0), (1, B));
    // No answer: after five minutes the address is not known any more.
    rig.advance(241 * SECOND);
    let out = rig.push(0, &[to([10, 0, 0, 2], 3)]);
    assert_eq!((out.len(), out[0].exit.clone(), read(&out[0].packet.bytes).0), (1, Exit::Port(1), [0xff; 6]));
    assert_eq!(rig.read("length"), "1");

    let mut rig = Rig::new("ARPQuerier", &format!("{CONFIG}, POLL_TIMEOUT 1, BROADCAST_POLL true"), 2, 2);
    rig.push(1, &[reply((B, [10, 0, 0, 2]))]);
    rig.advance(SECOND);
    let out = rig.push(0, &[to([10, 0, 0, 2], 1)]);
    assert_eq!(read(&out[1].packet.bytes).0, [0xff; 6]);
}

#[test]
fn too_many_waiting_packets_make_room() {
    let mut rig = Rig::new("ARPQuerier", &format!("{CONFIG}, CAPACITY 4"), 2, 2);
    let mut lost = vec![];
    for number in 0..6 {
        let out = rig.push(0, &[to([10, 0, 0, 2 + number % 2], number)]);
        lost.extend(out.iter().filter(|out| out.exit == dropped("arp-queue-full")).map(number_of));
    }
    // The fifth makes room: of four and itself, two may stay.
    assert_eq!((lost, rig.read("length")), (vec![0, 1, 2], "3".to_string()));
    assert_eq!(rig.read("drops"), "3");
    accounts_balance(&mut rig);
    assert_eq!(at(&rig.push(1, &[reply((B, [10, 0, 0, 3]))]), Exit::Port(0)), [3, 5]);
    assert_eq!(at(&rig.push(1, &[reply((B, [10, 0, 0, 2]))]), Exit::Port(0)), [4]);

    let mut rig = Rig::new("ARPQuerier", &format!("{CONFIG}, ENTRY_PACKET_CAPACITY 1"), 2, 2);
    let out = rig.push(0, &[to([10, 0, 0, 2], 0), to([10, 0, 0, 2], 1), to([10, 0, 0, 3], 2)]);
    let lost: Vec<u8> =
        out.iter().filter(|out| out.exit == dropped("arp-queue-full")).map(number_of).collect();
    assert_eq!((lost, rig.read("length").as_str()), (vec![1], "2"));
}

fn number_of(out: &Out) -> u8 {
    number(out)
}

#[test]
fn what_waits_is_dropped_when_nobody_answers_or_the_table_is_cleared() {
    let mut rig = Rig::new("ARPQuerier", &format!("{CONFIG}, TIMEOUT 2"), 2, 2);
    rig.push(0, &[to([10, 0, 0, 2], 1)]);
    assert!(rig.advance(1_900 * MS).is_empty());
    rig.push(0, &[to([10, 0, 0, 2], 2)]);
    let out = rig.advance(200 * MS);
    assert_eq!((out.len(), out[0].exit.clone(), number(&out[0])), (1, dropped("arp-no-answer"), 1));
    rig.write("clear", "").unwrap();
    assert_eq!([rig.read("count"), rig.read("queries"), rig.read("table")], ["0", "0", ""]);
    let out = rig.advance(2 * MS);
    assert_eq!((out.len(), out[0].exit.clone()), (1, dropped("arp-cleared")));
    accounts_balance(&mut rig);
}

#[test]
fn an_answer_that_another_worker_got_is_seen() {
    // The handler changes the table as another worker's reply does: without packets.
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    rig.push(0, &[to([10, 0, 0, 2], 1)]);
    rig.write("insert", "10.0.0.2 2:0:0:0:0:bb").unwrap();
    let out = rig.advance(MS);
    assert_eq!(at(&out, Exit::Port(0)), [1]);
    assert_eq!(rig.read("length"), "0");
}

#[test]
fn the_table_is_shown_as_click_shows_it() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    rig.push(1, &[reply((B, [10, 0, 0, 2]))]);
    rig.advance(1_500 * MS);
    rig.push(0, &[to([10, 0, 0, 3], 1)]);
    rig.advance(0);
    let table = "10.0.0.2 1 02-00-00-00-00-BB 1.500000\n10.0.0.3 0 FF-FF-FF-FF-FF-FF 0.000000";
    assert_eq!(rig.read("table"), table);
}

#[test]
fn querier_configurations_are_checked() {
    assert_eq!(mistakes("ARPQuerier", "10.0.0.1", 2, 2).len(), 1);
    assert_eq!(mistakes("ARPQuerier", "10.0.0.300, 1:2, CAPACITY x, CAPACITY_SLIM_FACTOR 0", 2, 2).len(), 4);
    assert!(mistakes("ARPQuerier", &format!("{CONFIG}, TABLE t"), 2, 2)[0].contains("`t` is no ARPTable"));
    assert_eq!(mistakes("ARPTable", "CAPACITY -1, TIMEOUT soon, 5", 0, 0).len(), 3);
}

#[test]
fn querier_programs_agree_on_random_packets() {
    let mut rig = Rig::new("ARPQuerier", CONFIG, 2, 2);
    for ip in 0..12u32 {
        let ip = [10, 0, (ip / 4) as u8, (ip % 4) as u8];
        rig.push(1, &[reply((B, ip))]);
    }
    for seed in 1..=4 {
        let mut packets = random_packets(seed, 128);
        for (at, packet) in packets.iter_mut().enumerate() {
            let ip = [10, 0, (at % 4) as u8, (at / 4 % 6) as u8];
            *packet = packet.clone().with_anno(anno::DST_IP, u64::from(u32::from_be_bytes(ip)));
        }
        rig.push(0, &packets);
        rig.push(1, &packets);
        rig.advance(40 * SECOND);
    }
}

#[test]
fn an_arp_table_has_the_handlers_of_a_querier() {
    let mut rig = Rig::new("ARPTable", "TIMEOUT 10, CAPACITY 5", 0, 0);
    rig.advance(SECOND);
    rig.write("insert", "10.0.0.2 2:0:0:0:0:bb").unwrap();
    rig.advance(SECOND);
    assert_eq!(rig.read("table"), "10.0.0.2 1 02-00-00-00-00-BB 1.000000");
    assert_eq!([rig.read("count"), rig.read("length"), rig.read("drops")], ["1", "0", "0"]);
    rig.advance(20 * SECOND);
    assert_eq!(rig.read("count"), "0");
    rig.write("insert", "10.0.0.2 2:0:0:0:0:bb").unwrap();
    rig.write("clear", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    assert!(rig.write("color", "1").is_err());
}

fn request(wanted: [u8; 4]) -> TestPacket {
    TestPacket::frame(&arp(ArpOperation::REQUEST, (B, [10, 0, 0, 2]), ([0; 6], wanted)))
}

#[test]
fn responder_answers_for_its_prefixes() {
    let config = format!("10.0.0.1 10.1.0.0/16 {A_TEXT}, 10.1.2.0/24 {C_TEXT}");
    let mut rig = Rig::new("ARPResponder", &config, 1, 2);
    let answers = |rig: &mut Rig, wanted: [u8; 4], mac: [u8; 6]| {
        let out = rig.push_one(0, &request(wanted).with_anno(anno::VLAN_TCI, 9).with_anno(anno::PAINT, 1));
        let told = (B, 2, (mac.to_vec(), wanted.to_vec()), (B.to_vec(), vec![10, 0, 0, 2]));
        assert_eq!((out.exit, read(&out.packet.bytes)), (Exit::Port(0), told));
        assert_eq!((out.packet.anno(anno::VLAN_TCI), out.packet.anno(anno::PAINT)), (9, 0));
    };
    answers(&mut rig, ME, A);
    answers(&mut rig, [10, 1, 3, 4], A);
    answers(&mut rig, [10, 1, 2, 4], C);
    assert_eq!(rig.push_one(0, &request([10, 0, 0, 9])).exit, Exit::Port(1));
    let lines =
        ["10.0.0.1/32 02-00-00-00-00-AA", "10.1.2.0/24 02-00-00-00-00-CC", "10.1.0.0/16 02-00-00-00-00-AA"];
    assert_eq!(rig.read("table"), lines.join("\n"));
    let asked = ["10.0.0.1", "10.1.2.3", "10.1.9.9", "10.0.0.9"].map(|ip| rig.read(&format!("lookup {ip}")));
    assert_eq!(asked, ["02-00-00-00-00-AA", "02-00-00-00-00-CC", "02-00-00-00-00-AA", ""]);
    rig.write("add", &format!("10.0.0.9 {C_TEXT}")).unwrap();
    answers(&mut rig, [10, 0, 0, 9], C);
    rig.write("add", &format!("10.0.0.9/32 {A_TEXT}")).unwrap();
    answers(&mut rig, [10, 0, 0, 9], A);
    rig.write("remove", "10.0.0.9").unwrap();
    assert_eq!(rig.push_one(0, &request([10, 0, 0, 9])).exit, Exit::Port(1));
    assert!(rig.write("remove", "10.0.0.9").unwrap_err().contains("not found"));
    assert!(rig.write("add", "10.0.0.9").is_err() && rig.write("drop", "").is_err());
}

#[test]
fn responder_leaves_alone_what_is_no_request() {
    let mut rig = Rig::new("ARPResponder", &format!("0.0.0.0/0 {A_TEXT}"), 1, 1);
    let padded = TestPacket::frame(&[request(ME).bytes, vec![7; 18]].concat());
    assert_eq!(rig.push_one(0, &padded).packet.bytes.len(), 42);
    let mut changed: Vec<TestPacket> = [12, 14, 16, 20]
        .iter()
        .map(|at| {
            let mut packet = request(ME);
            packet.bytes[*at] ^= 0x40;
            packet
        })
        .collect();
    changed.extend([reply((B, ME)), TestPacket::frame(&request(ME).bytes[..41]), udp_packet()]);
    for packet in &changed {
        let out = rig.push_one(0, packet);
        assert_eq!((out.exit, &out.packet.bytes), (dropped("not-for-us"), &packet.bytes));
    }
    rig.push(0, &random_packets(1, 300));
}

#[test]
fn responder_configurations_are_checked() {
    let complaints =
        mistakes("ARPResponder", &format!("10.0.0.1, {A_TEXT}, 10.0.0.1 {A_TEXT} {B_TEXT}, x"), 1, 1);
    assert_eq!(complaints.len(), 4, "{complaints:?}");
    assert!(complaints[0].contains("Ethernet address is missing"));
    assert!(complaints[1].contains("prefix is missing"));
    assert!(complaints[2].contains("more than one"));
}

#[test]
fn keywords_of_a_querier_may_stand_in_front_of_its_addresses() {
    let (ip, eth) = CONFIG.split_once(", ").unwrap();
    for config in [
        format!("TIMEOUT 60, {CONFIG}"),
        format!("{ip}, CAPACITY 3, {eth}"),
        format!("CAPACITY 3, {ip}, BROADCAST 10.0.0.255, {eth}, POLL_TIMEOUT 0"),
    ] {
        Rig::new("ARPQuerier", &config, 2, 2);
    }
    assert_eq!(mistakes("ARPQuerier", &format!("TIMEOUT 60, {CONFIG}, 3, COLOR 1"), 2, 2).len(), 2);
    let named = element::testing::Rig::<crate::testing::Library>::with_named(
        "ARPQuerier",
        &format!("TABLE t, {CONFIG}"),
        (2, 2),
        ("t", "ARPTable"),
        &std::sync::Arc::new(()),
    );
    drop(named);
}
