//! `Resolver`: packets in, packets out.

use crate::testing::{Exit, Out, Rig, TestPacket, differential, dropped};
use element::element::Progress;
use packet::MacAddr;
use packet::view::nd::{self, Neighbor, OVERRIDE, SOLICITED};
use std::net::Ipv6Addr;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 3];
const NOBODY: [u8; 6] = [0; 6];
const CONFIG: &str = "lan, 10.0.0.1/24, 2001:db8::1/64, fe80::1/64, MAC 02:00:00:00:00:01";
const REQUEST: u16 = 1;
const REPLY: u16 = 2;

fn rig() -> Rig {
    Rig::new("Resolver", CONFIG, 1, 2)
}

/// An ARP frame, by an independent writer.
fn arp(operation: u16, from: ([u8; 6], [u8; 4]), to: ([u8; 6], [u8; 4])) -> TestPacket {
    let message = etherparse::ArpPacket::new(
        etherparse::ArpHardwareId::ETHERNET,
        etherparse::EtherType::IPV4,
        etherparse::ArpOperation(operation),
        &from.0,
        &from.1,
        &to.0,
        &to.1,
    );
    let at = if to.0 == NOBODY { [0xff; 6] } else { to.0 };
    let mut frame = vec![];
    etherparse::PacketBuilder::ethernet2(from.0, at).arp(message.unwrap()).write(&mut frame).unwrap();
    TestPacket::frame(&frame)
}

/// Destination, operation, sender and target of an ARP message, the latter with hardware and IP address.
type Arp = ([u8; 6], u16, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

/// An ARP message as it left.
fn read_arp(out: &Out) -> Arp {
    let frame = &out.packet.bytes;
    let message = etherparse::ArpPacketSlice::from_slice(&frame[14..]).unwrap();
    assert_eq!(frame[6..14], [&OWN[..], &[8, 6]].concat(), "from us");
    let addresses = [
        message.sender_hw_addr().to_vec(),
        message.sender_protocol_addr().to_vec(),
        message.target_hw_addr().to_vec(),
        message.target_protocol_addr().to_vec(),
    ];
    let [a, b, c, d] = addresses;
    (frame[..6].try_into().unwrap(), message.operation().0, a, b, c, d)
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A frame of neighbour discovery from `mac`.
fn nd_frame(mac: [u8; 6], src: &str, dst: &str, neighbor: Neighbor) -> TestPacket {
    let (src, dst) = (v6(src), v6(dst));
    let mut bytes = vec![0; 54 + neighbor.message_bytes()];
    bytes[..6].copy_from_slice(&if dst.is_multicast() { nd::multicast_mac(dst).0 } else { OWN });
    bytes[6..12].copy_from_slice(&mac);
    bytes[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    bytes[18..20].copy_from_slice(&(neighbor.message_bytes() as u16).to_be_bytes());
    (bytes[20], bytes[21]) = (58, 255);
    bytes[22..38].copy_from_slice(&src.octets());
    bytes[38..54].copy_from_slice(&dst.octets());
    assert!(neighbor.write(&mut bytes, 54, src, dst));
    TestPacket::frame(&bytes)
}

fn solicitation(mac: [u8; 6], src: &str, dst: &str, target: &str) -> TestPacket {
    let link_addr = (src != "::").then_some(MacAddr(mac));
    let message = Neighbor { is_advertisement: false, flags: 0, target: v6(target), link_addr };
    nd_frame(mac, src, dst, message)
}

fn advertisement(mac: [u8; 6], flags: u8, dst: &str, target: &str) -> TestPacket {
    let message =
        Neighbor { is_advertisement: true, flags, target: v6(target), link_addr: Some(MacAddr(mac)) };
    nd_frame(mac, target, dst, message)
}

/// A message as it left, read and checked by an independent reader: Ethernet destination, source,
/// destination, type, flags, target, link-layer address.
fn read_nd(out: &Out) -> ([u8; 6], Ipv6Addr, Ipv6Addr, u8, u8, Ipv6Addr, [u8; 6]) {
    let frame = &out.packet.bytes;
    assert_eq!(frame[6..14], [&OWN[..], &[0x86, 0xdd]].concat(), "from us");
    let (ip, _) = etherparse::Ipv6Header::from_slice(&frame[14..]).unwrap();
    assert_eq!(ip.hop_limit, 255);
    let icmp = etherparse::Icmpv6Slice::from_slice(&frame[54..]).unwrap();
    assert!(icmp.is_checksum_valid(ip.source, ip.destination));
    let (body, option) = (&frame[58..], &frame[78..]);
    assert_eq!((frame.len(), option[1]), (86, 1));
    (
        frame[..6].try_into().unwrap(),
        ip.source.into(),
        ip.destination.into(),
        frame[54],
        body[0],
        Ipv6Addr::from(<[u8; 16]>::try_from(&body[4..20]).unwrap()),
        option[2..8].try_into().unwrap(),
    )
}

/// Lets time pass, and sends what is to be sent then.
fn pass(rig: &mut Rig, by_ns: u64) -> Vec<Out> {
    let mut out = rig.advance(by_ns);
    out.extend(rig.task().1);
    assert!(out.iter().all(|out| out.exit == Exit::Port(1)));
    out
}

/// A line of the table without the time.
fn line(rig: &mut Rig, ip: &str) -> String {
    let table = rig.read("table");
    let line = table.lines().find(|line| line.split(' ').next() == Some(ip)).unwrap_or("nothing");
    line.split(' ').skip(1).take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn questions_for_its_addresses_are_answered() {
    let mut rig = rig();
    let question = arp(REQUEST, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 1]));
    let out = rig.push_one(0, &question.with_anno(packet::anno::VLAN_TCI, 7));
    assert_eq!((out.exit.clone(), out.packet.anno(packet::anno::VLAN_TCI)), (Exit::Port(1), 7));
    let expected = (PEER, REPLY, OWN.to_vec(), vec![10, 0, 0, 1], PEER.to_vec(), vec![10, 0, 0, 2]);
    assert_eq!(read_arp(&out), expected);
    // Who tries an address out has none yet (RFC 5227).
    let out = rig.push_one(0, &arp(REQUEST, (PEER, [0; 4]), (NOBODY, [10, 0, 0, 1])));
    assert_eq!((out.exit.clone(), read_arp(&out).1), (Exit::Port(1), REPLY));

    for (target, dst) in [("2001:db8::1", "ff02::1:ff00:1"), ("fe80::1", "fe80::1")] {
        let out = rig.push_one(0, &solicitation(PEER, "fe80::2", dst, target));
        assert_eq!(out.exit, Exit::Port(1));
        let all = SOLICITED | OVERRIDE | nd::ROUTER;
        assert_eq!(read_nd(&out), (PEER, v6(target), v6("fe80::2"), 136, all, v6(target), OWN));
    }
    let out = rig.push_one(0, &solicitation(PEER, "::", "ff02::1:ff00:1", "fe80::1"));
    let (mac, _, dst, kind, flags, ..) = read_nd(&out);
    assert_eq!((mac, dst, kind, flags & SOLICITED), ([0x33, 0x33, 0, 0, 0, 1], v6("ff02::1"), 136, 0));
    assert_eq!([rig.read("answers"), rig.read("count")], ["5", "0"], "nobody here asked for anybody");
}

#[test]
fn what_is_for_others_goes_on() {
    let mut rig = rig();
    let mut tagged = arp(REQUEST, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 1]));
    tagged.bytes.splice(12..12, [0x81, 0, 0, 5]);
    let mut long = arp(REQUEST, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 1]));
    long.bytes[18] = 8;
    for packet in [
        arp(REQUEST, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 3])),
        arp(REPLY, (PEER, [10, 0, 0, 2]), (OTHER, [10, 0, 0, 3])),
        arp(REQUEST, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 2])),
        arp(3, (PEER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 1])),
        tagged,
        long,
        solicitation(PEER, "fe80::2", "ff02::1:ff00:3", "fe80::3"),
        advertisement(PEER, SOLICITED, "fe80::3", "fe80::2"),
        advertisement(PEER, OVERRIDE, "ff02::1", "fe80::2"),
        TestPacket::frame(&[0; 13]),
        TestPacket::frame(&[]),
    ] {
        let out = rig.push_one(0, &packet);
        assert_eq!((out.exit, &out.packet.bytes), (Exit::Port(0), &packet.bytes));
    }
    // Somebody else has an address of ours.
    rig.push(0, &[arp(REQUEST, (PEER, [10, 0, 0, 1]), (NOBODY, [10, 0, 0, 1]))]);
    rig.push(0, &[advertisement(PEER, OVERRIDE, "ff02::1", "fe80::1")]);
    assert!(rig.read("stats").contains("conflicts 2\n"), "{}", rig.read("stats"));
    differential("Resolver", CONFIG, 1, 2);
}

#[test]
fn messages_for_us_that_are_not_right_are_dropped() {
    let mut rig = rig();
    rig.write("resolve", "10.0.0.2").unwrap();
    rig.write("resolve", "fe80::2").unwrap();
    let group = [3, 0, 0, 0, 0, 2];
    let good = solicitation(PEER, "fe80::2", "fe80::1", "fe80::1");
    let answer = advertisement(PEER, SOLICITED | OVERRIDE, "fe80::1", "fe80::2");
    let changed = |packet: &TestPacket, at: usize, value: u8| {
        let mut packet = packet.clone();
        packet.bytes[at] = value;
        packet
    };
    let cut = |packet: &TestPacket, len: usize| {
        let mut packet = packet.clone();
        packet.bytes.truncate(len);
        packet
    };
    for packet in [
        arp(REQUEST, (group, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 1])),
        arp(REPLY, (group, [10, 0, 0, 2]), (OWN, [10, 0, 0, 1])),
        arp(REPLY, (NOBODY, [10, 0, 0, 2]), (OWN, [10, 0, 0, 1])),
        // Hop limit, checksum, code, length of an option, a length that is not there, a group's address.
        changed(&good, 21, 254),
        changed(&good, 56, good.bytes[56] ^ 1),
        changed(&good, 55, 1),
        changed(&good, 79, 0),
        changed(&good, 79, 9),
        changed(&good, 19, 40),
        changed(&answer, 21, 64),
        changed(&answer, 57, answer.bytes[57] ^ 1),
        changed(&answer, 79, 2),
        cut(&answer, 80),
        solicitation(group, "fe80::2", "fe80::1", "fe80::1"),
        advertisement(group, SOLICITED | OVERRIDE, "fe80::1", "fe80::2"),
        // Nobody asks for itself at another address than the group's.
        solicitation(PEER, "::", "fe80::1", "fe80::1"),
        // An advertisement of our own address to ourselves.
        advertisement(PEER, SOLICITED, "fe80::1", "fe80::1"),
    ] {
        let out = rig.push_one(0, &packet);
        assert_eq!(out.exit, dropped("neighbour-malformed"), "{:02x?}", packet.bytes);
    }
    pass(&mut rig, MS);
    assert_eq!([line(&mut rig, "10.0.0.2"), line(&mut rig, "fe80::2")], ["incomplete -"; 2]);
}

#[test]
fn a_neighbour_is_asked_for_and_learnt() {
    let mut rig = rig();
    for ip in ["10.0.0.2", "2001:db8::2"] {
        rig.write("resolve", ip).unwrap();
    }
    let out = pass(&mut rig, MS);
    assert_eq!(out.len(), 2);
    let wanted = ([0xff; 6], REQUEST, OWN.to_vec(), vec![10, 0, 0, 1], NOBODY.to_vec(), vec![10, 0, 0, 2]);
    assert_eq!(read_arp(&out[0]), wanted);
    let group = ([0x33, 0x33, 0xff, 0, 0, 2], v6("2001:db8::1"), v6("ff02::1:ff00:2"));
    assert_eq!(read_nd(&out[1]), (group.0, group.1, group.2, 135, 0, v6("2001:db8::2"), OWN));
    assert_eq!(pass(&mut rig, SECOND / 2).len(), 0, "one a second");

    let reply = arp(REPLY, (PEER, [10, 0, 0, 2]), (OWN, [10, 0, 0, 1]));
    assert_eq!(rig.push_one(0, &reply).exit, dropped("neighbour-read"));
    let answer = advertisement(PEER, SOLICITED | OVERRIDE, "2001:db8::1", "2001:db8::2");
    assert_eq!(rig.push_one(0, &answer).exit, dropped("neighbour-read"));
    assert_eq!(pass(&mut rig, SECOND).len(), 0);
    let known = "reachable 02:00:00:00:00:02";
    assert_eq!([line(&mut rig, "10.0.0.2"), line(&mut rig, "2001:db8::2")], [known; 2]);
    assert_eq!([rig.read("queries"), rig.read("responses"), rig.read("count")], ["2", "2", "2"]);

    // Answers hold for 45 s at most; then it is asked where it is.
    let mut out = pass(&mut rig, 46 * SECOND);
    out.sort_by_key(|out| out.packet.bytes.len());
    assert_eq!(out.len(), 2);
    assert_eq!(
        (read_arp(&out[0]).0, read_nd(&out[1]).0, read_nd(&out[1]).2),
        (PEER, PEER, v6("2001:db8::2"))
    );
    // It has another card: everybody hears of it.
    rig.push(0, &[arp(REQUEST, (OTHER, [10, 0, 0, 2]), (NOBODY, [10, 0, 0, 9]))]);
    rig.push(0, &[advertisement(OTHER, OVERRIDE, "ff02::1", "2001:db8::2")]);
    pass(&mut rig, MS);
    let stale = "stale 02:00:00:00:00:03";
    assert_eq!([line(&mut rig, "10.0.0.2"), line(&mut rig, "2001:db8::2")], [stale; 2]);
    // What it says is found out soon; and that nobody answers.
    assert_eq!(pass(&mut rig, 5 * SECOND).len(), 2);
    let more: usize = (0..4).map(|_| pass(&mut rig, SECOND).len()).sum();
    assert_eq!(more, 4, "three tries each");
    assert_eq!([line(&mut rig, "10.0.0.2"), line(&mut rig, "2001:db8::2")], ["unreachable -"; 2]);
    assert!(rig.read("stats").ends_with("failures 2\nevicted 0"), "{}", rig.read("stats"));
    // It is asked again, and answers.
    assert_eq!(pass(&mut rig, 10 * SECOND).len(), 2);
    rig.push(0, std::slice::from_ref(&reply));
    pass(&mut rig, MS);
    assert_eq!(line(&mut rig, "10.0.0.2"), known);
}

#[test]
fn advertisements_that_override_nothing_change_nothing() {
    let mut rig = rig();
    rig.write("resolve", "fe80::2").unwrap();
    pass(&mut rig, MS);
    // Nothing was known that it could override.
    rig.push(0, &[advertisement(PEER, 0, "fe80::1", "fe80::2")]);
    pass(&mut rig, MS);
    assert_eq!(line(&mut rig, "fe80::2"), "stale 02:00:00:00:00:02");
    rig.push(0, &[advertisement(PEER, SOLICITED, "fe80::1", "fe80::2")]);
    pass(&mut rig, MS);
    assert_eq!(line(&mut rig, "fe80::2"), "reachable 02:00:00:00:00:02");
    rig.push(0, &[advertisement(OTHER, SOLICITED, "fe80::1", "fe80::2")]);
    let out = pass(&mut rig, MS);
    assert_eq!((out.len(), read_nd(&out[0]).0), (1, PEER), "whom we know is asked");
    assert_eq!(line(&mut rig, "fe80::2"), "probe 02:00:00:00:00:02");
}

#[test]
fn operators_write_the_table() {
    let mut rig = rig();
    rig.write("insert", "10.0.0.7 02-00-00-00-00-07").unwrap();
    assert_eq!(pass(&mut rig, 100 * SECOND).len(), 0);
    rig.push(0, &[arp(REPLY, (PEER, [10, 0, 0, 7]), (OWN, [10, 0, 0, 1]))]);
    pass(&mut rig, MS);
    assert_eq!(line(&mut rig, "10.0.0.7"), "permanent 02:00:00:00:00:07");
    for (handler, value, why) in [
        ("resolve", "10.0.0.1", "the interface's own address"),
        ("resolve", "10.0.1.1", "no neighbour"),
        ("resolve", "10.0.0.255", "no neighbour"),
        ("resolve", "fd00::1", "no neighbour"),
        ("resolve", "lan", "no IP address"),
        ("insert", "10.0.0.9", "expected"),
        ("insert", "10.0.0.9 01:00:00:00:00:00", "no single station"),
        ("delete", "10.0.0.9", "not in the table"),
    ] {
        let told = rig.write(handler, value).expect_err(why);
        assert!(told.contains(why), "{handler} {value}: {told}");
    }
    rig.write("delete", "10.0.0.7").unwrap();
    rig.write("resolve", "10.0.0.8").unwrap();
    rig.write("clear", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    let own = "10.0.0.1/24 02:00:00:00:00:01\n2001:db8::1/64 02:00:00:00:00:01\nfe80::1/64 02:00:00:00:00:01";
    assert_eq!(rig.read("addresses"), own);
    assert_eq!(rig.read("stations"), own, "the old name");
    assert_eq!(rig.task().0, Progress::Idle);
}

#[test]
fn wrong_stations_are_refused() {
    let told = |config: &str| Rig::try_new("Resolver", config, 1, 2).err().unwrap_or_default();
    for (config, why) in [
        ("lan, 10.0.0.1/24", "no Ethernet address"),
        ("lan, 10.0.0.1/24, PORT eth0", "no hardware address"),
        ("lan, 10.0.0.1/24, MAC 01:00:00:00:00:00", "no single station"),
        ("lan, MAC 02:00:00:00:00:01", "an interface has an address"),
        ("lan, 10.0.0.1, MAC 02:00:00:00:00:01", "how long its network's prefix is"),
        ("lan, 10.0.0.0/24, MAC 02:00:00:00:00:01", "not a host"),
        ("lan, 10.0.0.1/33, MAC 02:00:00:00:00:01", "no length from 1 to 32"),
        ("lan, ff02::1/64, MAC 02:00:00:00:00:01", "cannot be the address of a station"),
        ("lan, ten/24, MAC 02:00:00:00:00:01", "no IP address"),
    ] {
        assert!(told(config).contains(why), "{config}: {}", told(config));
    }
}
