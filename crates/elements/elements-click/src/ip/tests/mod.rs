use crate::testing::{Exit, Rig, TestPacket, differential, dropped};
use element::testing::ip::*;
use etherparse::PacketBuilder;
use packet::anno;

mod force;

#[test]
fn icmppingresponder_answers_pings() {
    let mut rig = Rig::new("ICMPPingResponder", "", 1, 2);
    for ip in
        [ping(b"hello"), ping(&[0; 56]), with_options(&ping(b"x"), &[1; 8]), with_byte(ping(b"x"), 6, 0x40)]
    {
        for packet in places(&ip) {
            let out = rig.push_one(0, &packet.clone().with_anno(anno::PAINT, 9));
            let reply = &out.packet.bytes[out.packet.net.unwrap() as usize..];
            assert_eq!(out.exit, Exit::Port(0));
            assert_checksums(reply);
            assert_eq!((&reply[12..16], &reply[16..20]), (&DST[..], &SRC[..]));
            assert_eq!((reply[8], &reply[6..8]), (255, [0, 0].as_slice()));
            let header = usize::from(ip[0] & 15) * 4;
            assert_eq!((reply[header], &reply[header + 4..]), (0, &ip[header + 4..]));
            assert_eq!((out.packet.anno(anno::DST_IP), out.packet.anno(anno::PAINT)), (0x0a00_0001, 0));
        }
    }
    // The reply is a message of zeros.
    let mut zeros = vec![];
    PacketBuilder::ipv4(SRC, DST, 64).icmpv4_echo_request(0, 0).write(&mut zeros, &[0; 4]).unwrap();
    let out = rig.push_one(0, &TestPacket::ip(&zeros));
    assert_eq!(out.packet.bytes[20..], [0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_checksums(&out.packet.bytes);

    let reply = with_bytes(ping(b"x"), 20, &[0]);
    for other in [TestPacket::ip(&udp(b"")), TestPacket::ip(&reply), TestPacket::ip(&ping(b"")[..27])] {
        let out = rig.push_one(0, &other);
        assert_eq!((out.exit, &out.packet), (Exit::Port(1), &other));
        let mut rig = Rig::new("ICMPPingResponder", "", 1, 1);
        assert_eq!(rig.push_one(0, &other).exit, dropped("not-echo-request"));
    }
    assert!(Rig::try_new("ICMPPingResponder", "1", 1, 1).is_err());
    differential("ICMPPingResponder", "", 1, 2);
}

const FLOWS: &str = "0, -1, 100, 0:0:0:0:0:1, 10.0.0.1, 0:0:0:0:0:2, 10.0.0.2, 3, 4";

#[test]
fn fast_udp_flows_makes_whole_packets_of_so_many_flows() {
    let mut rig = Rig::new("FastUDPFlows", FLOWS, 0, 1);
    let mut packets = vec![];
    for _ in 0..10 {
        packets.extend(rig.task().1.into_iter().map(|out| out.packet));
    }
    let mut flows = std::collections::HashMap::new();
    for packet in &packets {
        assert_eq!((packet.bytes.len(), packet.net, packet.trans), (100, Some(14), Some(34)));
        assert_eq!(packet.bytes[..14], [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 8, 0]);
        assert_checksums(&packet.bytes[14..]);
        assert_eq!(packet.anno(anno::DST_IP), 0x0a00_0002);
        *flows.entry(packet.bytes[34..38].to_vec()).or_insert(0) += 1;
    }
    assert_eq!(packets.len(), 320);
    assert!(flows.len() >= 80 && flows.values().filter(|count| **count == 4).count() >= 77, "{flows:?}");
    assert_eq!(rig.read("count"), "320");

    let mut rig = Rig::new("FastUDPFlows", &FLOWS.replacen("0, -1, 100", "1000, 7, 1", 1), 0, 1);
    assert_eq!(rig.task().1[0].packet.bytes.len(), 60);
    assert_eq!(rig.read("rate"), "0");
    for _ in 0..20 {
        rig.advance(1_000_000);
        rig.task();
    }
    assert_eq!((rig.read("count"), rig.read("rate")), ("7".into(), "1166".into()));
    rig.write("active", "true").unwrap();
    rig.write("rate", "5").unwrap();
    rig.write("limit", "-1").unwrap();
    assert_eq!(rig.read("count"), "0");
    let silent = format!("{FLOWS}, false, false");
    let mut rig = Rig::new("FastUDPFlows", &silent, 0, 1);
    assert!(rig.task().1.is_empty());
    rig.write("active", "true").unwrap();
    assert_eq!(rig.task().1[0].packet.bytes[40..42], [0, 0]);
    let mistakes = |config: &str| Rig::try_new("FastUDPFlows", config, 0, 1).err().unwrap().lines().count();
    assert_eq!((mistakes(""), mistakes(&FLOWS.replacen("3, 4", "0, 0", 1))), (9, 2));
}

const MS: u64 = 1_000_000;

#[test]
fn icmp_ping_source_sends_requests_and_measures_replies() {
    let config = "10.0.0.1, 10.0.0.2, INTERVAL 0.1, IDENTIFIER 7, DATA hello, LIMIT 3";
    let mut rig = Rig::new("ICMPPingSource", config, 1, 1);
    assert!(rig.task().1.is_empty());
    let mut requests = vec![];
    for _ in 0..50 {
        rig.advance(10 * MS);
        requests.extend(rig.task().1.into_iter().map(|out| out.packet));
    }
    assert_eq!((requests.len(), rig.read("count")), (3, "3".into()));
    for (number, request) in requests.iter().enumerate() {
        assert_checksums(&request.bytes);
        let number = number as u16 + 1;
        assert_eq!((request.bytes[20], &request.bytes[28..]), (8, &b"hello"[..]));
        assert_eq!(request.bytes[24..28], [7u16, number].map(u16::to_ne_bytes).concat());
        assert_eq!(
            (request.net, request.trans, request.anno(anno::DST_IP)),
            (Some(0), Some(20), 0x0a00_0002)
        );
    }
    let mut responder = Rig::new("ICMPPingResponder", "", 1, 1);
    let reply = |rig: &mut Rig, request: &TestPacket, late_ms: u64| {
        let reply = rig.push_one(0, request).packet;
        TestPacket { timestamp_ns: request.timestamp_ns + late_ms * MS, ..reply }
    };
    let replies = [(0, 2), (1, 4), (1, 6)].map(|(at, ms)| reply(&mut responder, &requests[at], ms));
    assert!(rig.push(0, &replies).iter().all(|out| out.exit == dropped("reply")));
    assert_eq!(rig.host().printed[0], "e: 5 bytes from 10.0.0.2: icmp_seq=1 ttl=255 time=2.000 ms");
    let summary = "3 packets transmitted, 2 received, +1 duplicates, 33% packet loss\n\
                   rtt min/avg/max/mdev = 2.000/4.000/6.000/1.632";
    assert_eq!(rig.read("summary"), summary);
    assert_eq!(
        ["rtt_min", "rtt_avg", "rtt_max"].map(|name| rig.read(name)),
        ["0.002000", "0.004000", "0.006000"]
    );
    let other = with_bytes(replies[0].bytes.clone(), 24, &[9, 9]);
    for packet in [TestPacket::ip(&other), TestPacket::ip(&udp(b"")), TestPacket::frame(&[0; 60])] {
        assert_eq!(rig.push_one(0, &packet).exit, dropped("no-reply"));
    }
    rig.write("reset_counts", "").unwrap();
    rig.write("dst", "1.2.3.4").unwrap();
    rig.write("interval", "1").unwrap();
    rig.write("limit", "1").unwrap();
    assert_eq!(rig.task().1[0].packet.bytes[16..20], [1, 2, 3, 4]);
    assert!(rig.push_one(0, &replies[1]).exit == dropped("no-reply"), "it was forgotten");

    let pulled = Rig::beside_queue("ICMPPingSource", config, 1, false, &std::sync::Arc::new(()));
    assert_eq!(pulled.unwrap().pull(0, 8).len(), 3);
    let mut alone = Rig::new("ICMPPingSource", "10.0.0.1, 10.0.0.2, ACTIVE false", 0, 1);
    alone.advance(2000 * MS);
    assert!(alone.task().1.is_empty());
    assert!(alone.write("active", "maybe").is_err());
    let mistakes = Rig::try_new("ICMPPingSource", "10.0.0, 1.2, IDENTIFIER 70000", 0, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
}
