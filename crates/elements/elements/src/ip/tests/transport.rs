//! Transport checksums, set and checked.

use super::*;
use crate::testing::{Rig, differential};

/// A UDP datagram that ends before its IP packet does.
fn short_datagram() -> Vec<u8> {
    let mut ip = udp(b"hello");
    ip.extend([0xaa; 3]);
    let length = ip.len() as u16;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    fix_ip_checksum(ip)
}

#[test]
fn settcpchecksum_computes_whatever_stood_there() {
    let mut rig = Rig::new("SetTCPChecksum", "", 1, 1);
    for payload in [&b""[..], b"x", b"hello world", &[0xff; 900], &[7; 4000]] {
        for ip in [tcp(payload), with_options(&tcp(payload), &[1; 8])] {
            let at = usize::from(ip[0] & 15) * 4 + 16;
            for packet in places(&with_bytes(ip.clone(), at, &[0xab, 0xcd])) {
                let out = rig.push_one(0, &packet);
                assert_eq!(out.exit, Exit::Port(0));
                assert!(out.packet.bytes.ends_with(&ip), "{} bytes", ip.len());
            }
        }
    }
    let good = tcp(b"hello");
    let (bare, cut) = (TestPacket { trans: None, ..TestPacket::ip(&good) }, TestPacket::ip(&good[..44]));
    let small = TestPacket::ip(&with_bytes(good.clone(), 2, &[0, 39]));
    let bad = dropped("bad-lengths");
    assert_eq!(exits(&rig.push(0, &[bare, cut, small])), [bad.clone(), bad.clone(), bad]);
}

#[test]
fn settcpchecksum_mends_the_data_offset() {
    let mut rig = Rig::new("SetTCPChecksum", "true", 1, 1);
    for (before, after, fragment) in
        [(0x40, 0x50, 0), (0x00, 0x50, 0), (0xf0, 0x60, 0), (0x60, 0x60, 0), (0xf0, 0xf0, 0x20)]
    {
        let ip = with_byte(with_bytes(tcp(b"hello"), 32, &[before]), 6, fragment);
        let out = rig.push_one(0, &TestPacket::ip(&ip));
        assert_eq!(out.packet.bytes[32], after, "{before:x}");
    }
    assert!(Rig::try_new("SetTCPChecksum", "2", 1, 1).is_err());
    differential("SetTCPChecksum", "", 1, 1);
    differential("SetTCPChecksum", "true", 1, 1);
}

#[test]
fn setudpchecksum_computes_whatever_stood_there() {
    let mut rig = Rig::new("SetUDPChecksum", "", 1, 1);
    for ip in [udp(b""), udp(b"x"), with_options(&udp(b"hello"), &[1; 4]), short_datagram(), udp(&[3; 3000])]
    {
        let at = usize::from(ip[0] & 15) * 4 + 6;
        for old in [[0, 0], [0xab, 0xcd]] {
            for packet in places(&with_bytes(ip.clone(), at, &old)) {
                let out = rig.push_one(0, &packet);
                assert_eq!(out.exit, Exit::Port(0));
                assert!(out.packet.bytes.ends_with(&ip), "{} bytes", ip.len());
            }
        }
    }
}

#[test]
fn setudpchecksum_never_writes_zero() {
    // The word that makes the sum 0xffff, found by trying.
    let sum_of = |word: u16| {
        let ip = udp(&word.to_be_bytes());
        u16::from_be_bytes([ip[26], ip[27]])
    };
    let word = (0..=u16::MAX).find(|word| sum_of(*word) == 0xffff).unwrap();
    let mut rig = Rig::new("SetUDPChecksum", "", 1, 1);
    let out = rig.push_one(0, &TestPacket::ip(&with_bytes(udp(&word.to_be_bytes()), 26, &[1, 2])));
    assert_eq!(out.packet.bytes[26..28], [0xff, 0xff]);
}

#[test]
fn setudpchecksum_refuses_fragments_and_short_packets() {
    let good = udp(b"hello");
    let bad = [
        TestPacket::ip(&with_byte(good.clone(), 6, 0x20)),
        TestPacket::ip(&with_byte(good.clone(), 7, 1)),
        TestPacket::ip(&good[..27]),
        TestPacket::ip(&good[..32]),
        TestPacket { trans: None, ..TestPacket::ip(&good) },
        TestPacket { net: None, ..TestPacket::ip(&good) },
    ];
    let out = Rig::new("SetUDPChecksum", "", 1, 1).push(0, &bad);
    assert!(out.iter().all(|out| out.exit == dropped("fragment-or-short")), "{:?}", exits(&out));
    let out = Rig::new("SetUDPChecksum", "", 1, 2).push(0, &bad);
    assert!(out.iter().all(|out| out.exit == Exit::Port(1)));
    assert!(out.iter().zip(&bad).all(|(out, bad)| out.packet == *bad));
    assert!(Rig::try_new("SetUDPChecksum", "1", 1, 1).is_err());
    differential("SetUDPChecksum", "", 1, 1);
    differential("SetUDPChecksum", "", 1, 2);
}

/// Pushes each packet and expects the reason, in all modes.
fn expect_faults(class: &str, what: &str, cases: &[(TestPacket, &str, &str)]) {
    for (packet, reason, text) in cases {
        let mut rig = Rig::new(class, "DETAILS true", 1, 1);
        let out = rig.push_one(0, packet);
        assert_eq!((out.exit, &out.packet), (dropped(reason), packet), "{class}: {text}");
        assert_eq!(rig.read("drops"), "1");
        let details = rig.read("drop_details");
        assert!(details.lines().any(|line| line == format!("1\t{text}")), "{details}");
        assert_eq!(details.lines().filter(|line| line.starts_with("0\t")).count(), 2);
        let mut rig = Rig::new(class, "VERBOSE true", 1, 2);
        assert_eq!(rig.push_one(0, packet).exit, Exit::Port(1));
        assert_eq!(rig.host().printed, [format!("e: {what} header check failed: {text}")]);
        assert_eq!(rig.read("drops"), "1");
    }
    assert!(Rig::try_new(class, "1", 1, 1).is_err());
    assert!(Rig::try_new(class, "DETAILS perhaps", 1, 1).is_err());
}

#[test]
fn checktcpheader_tells_good_from_bad() {
    let mut rig = Rig::new("CheckTCPHeader", "", 1, 1);
    let padded = TestPacket {
        trans: Some(20),
        net: Some(0),
        ..TestPacket::frame(&[tcp(b"hello"), vec![9; 4]].concat())
    };
    for ip in [tcp(b""), tcp(b"hello"), with_options(&tcp(&[5; 3000]), &[1; 40])] {
        for packet in places(&ip) {
            let out = rig.push_one(0, &packet);
            assert_eq!((out.exit, out.packet), (Exit::Port(0), packet));
        }
    }
    assert_eq!(rig.push_one(0, &padded).exit, Exit::Port(0));
    let good = tcp(b"hello");
    let bad_length = |bytes: Vec<u8>| (TestPacket::ip(&bytes), "bad-packet-length", "bad packet length");
    let bad_sum = |at: usize| {
        let flipped = good[at] ^ 0x10;
        (TestPacket::ip(&with_bytes(good.clone(), at, &[flipped])), "bad-tcp-checksum", "bad TCP checksum")
    };
    expect_faults(
        "CheckTCPHeader",
        "TCP",
        &[
            (TestPacket::ip(&udp(b"")), "not-tcp", "not TCP"),
            (TestPacket { net: None, ..TestPacket::ip(&good) }, "not-tcp", "not TCP"),
            bad_length(with_bytes(good.clone(), 32, &[0x40])),
            bad_length(with_bytes(good.clone(), 32, &[0x70])),
            bad_length(good[..44].to_vec()),
            bad_length(good[..39].to_vec()),
            bad_length(with_bytes(good.clone(), 2, &[0, 39])),
            bad_length(with_bytes(good.clone(), 2, &[0, 10])),
            bad_sum(36),
            bad_sum(44),
            bad_sum(12),
        ],
    );
    for config in ["", "VERBOSE true"] {
        differential("CheckTCPHeader", config, 1, 1);
    }
}

#[test]
fn checkudpheader_tells_good_from_bad() {
    let mut rig = Rig::new("CheckUDPHeader", "", 1, 1);
    let good = udp(b"hello");
    for ip in [
        udp(b""),
        good.clone(),
        with_options(&good, &[1; 8]),
        short_datagram(),
        with_bytes(good.clone(), 26, &[0, 0]),
    ] {
        for packet in places(&ip) {
            let out = rig.push_one(0, &packet);
            assert_eq!((out.exit, out.packet), (Exit::Port(0), packet));
        }
    }
    let bad_length = |bytes: Vec<u8>| (TestPacket::ip(&bytes), "bad-packet-length", "bad packet length");
    let bad_sum = |bytes: Vec<u8>| (TestPacket::ip(&bytes), "bad-udp-checksum", "bad UDP checksum");
    let mut short = short_datagram();
    short[30] ^= 1;
    expect_faults(
        "CheckUDPHeader",
        "UDP",
        &[
            (TestPacket::ip(&tcp(b"")), "not-udp", "not UDP"),
            bad_length(good[..27].to_vec()),
            bad_length(good[..32].to_vec()),
            bad_length(with_bytes(good.clone(), 24, &[0, 7])),
            bad_length(with_bytes(good.clone(), 24, &[0, 14])),
            bad_sum(with_bytes(good.clone(), 26, &[1, 1])),
            bad_sum(with_bytes(good.clone(), 32, b"!")),
            bad_sum(short),
            // The length is part of what is summed up, even if less is there to be summed.
            bad_sum(with_bytes(good.clone(), 24, &[0, 12])),
        ],
    );
    for config in ["", "VERBOSE true"] {
        differential("CheckUDPHeader", config, 1, 1);
    }
}

#[test]
fn checkicmpheader_tells_good_from_bad() {
    let icmp = |message: &[u8]| {
        let mut bytes = ping(b"")[..20].to_vec();
        bytes.extend_from_slice(message);
        let length = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = etherparse::checksum::Sum16BitWords::new().add_slice(message).ones_complement();
        bytes[22..24].copy_from_slice(&sum.to_ne_bytes());
        TestPacket::ip(&fix_ip_checksum(bytes))
    };
    let message = |kind: u8, len: usize| icmp(&[vec![kind, 0, 0, 0], vec![9; len - 4]].concat());
    let mut rig = Rig::new("CheckICMPHeader", "", 1, 1);
    for (kind, len) in [
        (8, 8),
        (0, 100),
        (3, 36),
        (5, 60),
        (11, 36),
        (12, 36),
        (4, 36),
        (13, 20),
        (14, 20),
        (15, 8),
        (16, 8),
        (9, 8),
        (200, 9),
    ] {
        let out = rig.push_one(0, &message(kind, len));
        assert_eq!((out.exit, out.packet), (Exit::Port(0), message(kind, len)), "type {kind}");
    }
    let mut cases = vec![
        (TestPacket::ip(&udp(b"")), "not-icmp", "not ICMP"),
        (TestPacket { net: None, ..message(8, 8) }, "not-icmp", "not ICMP"),
        (TestPacket { trans: None, ..message(8, 8) }, "bad-packet-length", "bad packet length"),
        (icmp(&[8, 0, 0, 0, 0, 0, 0]), "bad-packet-length", "bad packet length"),
    ];
    for (kind, len) in [(3, 35), (5, 35), (11, 8), (12, 20), (4, 8), (13, 19), (14, 21), (15, 9), (16, 12)] {
        cases.push((message(kind, len), "bad-packet-length", "bad packet length"));
    }
    let mut wrong = message(8, 12);
    wrong.bytes[30] ^= 4;
    cases.push((wrong, "bad-icmp-checksum", "bad ICMP checksum"));
    // A message of zeros has the checksum 0xffff.
    let mut zeros = icmp(&[0; 8]);
    assert_eq!(rig.push_one(0, &zeros).exit, Exit::Port(0));
    zeros.bytes[22..24].fill(0);
    cases.push((zeros, "bad-icmp-checksum", "bad ICMP checksum"));
    expect_faults("CheckICMPHeader", "ICMP", &cases);
}
