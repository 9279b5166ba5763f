//! Packets that are made of any bytes.

use super::*;
use packet::Access;
use packet::checksum::{Validity, verify_icmp, verify_ipv4_header};

#[test]
fn forceip_makes_packets_of_any_bytes() {
    let mut rig = Rig::new("ForceIP", "", 1, 1);
    let bytes = [[0xff; 60], [0; 60]].concat();
    for turn in 0..16 {
        let out = rig.push_one(0, &TestPacket::frame(&bytes));
        let made = &out.packet.bytes;
        assert_eq!((out.exit, made[0], &made[2..4]), (Exit::Port(0), 0x4f, &[0, 120][..]));
        assert_eq!(made.u16(6), Some(if turn % 8 == 1 { 0xffff } else { 0 }), "{turn}");
        assert_eq!((out.packet.net, out.packet.trans), (Some(0), Some(60)));
        assert_eq!(verify_ipv4_header(&made[..], 0, 60), Validity::Good);
    }
    // A header length that is too small, or greater than the packet.
    for first in [0x04, 0x4f] {
        let out = rig.push_one(0, &TestPacket::frame(&[first; 40]));
        assert_eq!((out.packet.bytes[0], out.packet.trans), (0x45, Some(20)));
        assert_eq!(verify_ipv4_header(&out.packet.bytes[..], 0, 20), Validity::Good);
    }
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[1; 19])).exit, dropped("too-short"));
    assert_eq!(rig.push_one(0, &TestPacket::frame(&vec![1; 65_536])).exit, dropped("too-long"));
}

#[test]
fn transport_headers_are_forced() {
    let wrong = |mut bytes: Vec<u8>, sum_at: usize| {
        bytes[20 + sum_at] ^= 0x55;
        TestPacket::ip(&bytes)
    };
    let mut rig = Rig::new("ForceTCP", "", 1, 1);
    let segment = tcp(b"data");
    assert_eq!(rig.push_one(0, &wrong(segment.clone(), 16)).packet.bytes, segment);
    // A data offset beyond the segment, or too small.
    for offset in [0xf0, 0x40] {
        let out = rig.push_one(0, &TestPacket::ip(&with_byte(segment.clone(), 32, offset)));
        assert_eq!(out.packet.bytes, segment);
    }
    let out = Rig::new("ForceTCP", "443, true, 0x12", 1, 1).push_one(0, &TestPacket::ip(&segment));
    assert_eq!((out.packet.bytes.u16(22), out.packet.bytes[33]), (Some(443), 0x12));
    assert_checksums(&out.packet.bytes);
    let mut rig = Rig::new("ForceTCP", "0, true", 1, 1);
    let out = rig.push(0, &vec![TestPacket::ip(&segment); 8]);
    let ports: Vec<u16> = out.iter().map(|out| out.packet.bytes.u16(22).unwrap()).collect();
    let own = segment.u16(22).unwrap();
    assert_eq!(ports[..3], [80, 80, own]);
    assert!(ports[3] < 1024 && ports[4..] == [own; 4], "{ports:?}");

    let datagram = udp(b"odd");
    let port = datagram.u16(22).unwrap();
    let mut rig = Rig::new("ForceUDP", &port.to_string(), 1, 1);
    let packet = TestPacket::ip(&with_byte(datagram.clone(), 24, 7));
    assert_eq!(rig.push_one(0, &packet).packet.bytes, datagram);
    for config in ["", "-1"] {
        let mut rig = Rig::new("ForceUDP", config, 1, 1);
        let out = rig.push(0, &vec![packet.clone(); 9]);
        let mut ports: Vec<u16> = out.iter().map(|out| out.packet.bytes.u16(22).unwrap()).collect();
        out.iter().for_each(|out| assert_checksums(&out.packet.bytes));
        ports.dedup();
        assert!(ports.len() > 4 && ports.iter().all(|port| *port < 1024), "{ports:?}");
    }

    let request = ping(b"hello");
    let mut rig = Rig::new("ForceICMP", "unreachable, host", 1, 1);
    let out = rig.push_one(0, &wrong(request.clone(), 2));
    let message = &out.packet.bytes[20..];
    assert_eq!((&message[..2], &message[4..]), (&[3, 1][..], &request[24..]));
    assert_eq!(verify_icmp(message, 0, message.len()), Validity::Good);
}

#[test]
fn what_cannot_be_forced_is_dropped() {
    for (class, config, good) in
        [("ForceTCP", "", tcp(b"")), ("ForceUDP", "", udp(b"")), ("ForceICMP", "echo, 0", ping(b""))]
    {
        let mut rig = Rig::new(class, config, 1, 1);
        let header = |first: u8| {
            let mut bytes = good.clone();
            bytes[0] = first;
            TestPacket::ip(&bytes)
        };
        let short = good.len() as u8 - 1;
        let beyond = good.len() as u8 + 1;
        for packet in [
            TestPacket { net: None, ..TestPacket::ip(&good) },
            TestPacket::ip(&good[..19]),
            TestPacket::ip(&with_byte(good.clone(), 3, short)),
            TestPacket::ip(&with_byte(good.clone(), 3, beyond)),
            header(0x44),
            header(0x4f),
        ] {
            assert_eq!(rig.push_one(0, &packet).exit, dropped("bad-lengths"), "{class}");
        }
    }
    for (class, config) in [
        ("ForceIP", "1"),
        ("ForceTCP", "65536"),
        ("ForceTCP", "0, 2"),
        ("ForceTCP", "0, true, 256"),
        ("ForceUDP", "-2"),
        ("ForceICMP", "3"),
        ("ForceICMP", "nothing, 0"),
    ] {
        assert!(Rig::try_new(class, config, 1, 1).is_err(), "{class}({config})");
    }
}
