//! Who gets which frame.

use super::*;
use crate::filter::expr::{self, Headers};
use crate::testing::random_frames;
use click::config::NoNames;
use diag::{Diagnostics, Span, Spanned};
use proptest::prelude::*;

/// A frame behind VLAN tags and whatever else stands between the addresses and the IP header.
fn behind(between: &[u8], ip: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], between, ip].concat()
}

fn ip() -> Vec<u8> {
    udp([10, 0, 0, 1], [192, 168, 5, 6], (1000, 4789), &[8, 0, 0, 0, 0, 0, 42, 0, 1, 2])[14..].to_vec()
}

/// The outputs that each frame leaves by, by number; none where it is dropped.
fn takers(config: &str, outputs: usize, frames: &[Vec<u8>]) -> Vec<Vec<usize>> {
    let mut rig = Rig::new("Dispatch", config, 1, outputs);
    let one = |frame: &Vec<u8>| {
        let mut ports = vec![];
        for out in rig.push(0, &[TestPacket::frame(frame)]) {
            assert_eq!(&out.packet.bytes, frame);
            match out.exit {
                Exit::Port(port) => ports.push(port),
                other => assert_eq!(other, dropped("unwanted")),
            }
        }
        ports.sort_unstable();
        ports
    };
    frames.iter().map(one).collect()
}

#[test]
fn a_frame_goes_to_everybody_who_wants_it() {
    let frames = [
        udp([10, 0, 0, 1], [192, 168, 5, 6], (1, 80), &[]),
        udp([10, 0, 0, 1], [172, 16, 0, 1], (1, 80), &[]),
        udp([10, 0, 0, 1], [192, 168, 5, 6], (1, 53), &[]),
        behind(&[8, 6], &[0; 28]),
    ];
    let both = takers("net 192.168.0.0/16, udp port 80", 2, &frames);
    assert_eq!(both, [vec![0, 1], vec![1], vec![0], vec![]]);
    let apart = takers("dst net 192.168.0.0/16, dst net 172.16/12, arp", 3, &frames);
    assert_eq!(apart, [vec![0], vec![1], vec![0], vec![2]]);
    assert_eq!(takers("all, all", 2, &frames[..1]), [vec![0, 1]]);
    assert_eq!(takers("not ip vers 4", 1, &frames), [vec![], vec![], vec![], vec![0]]);
}

#[test]
fn tags_labels_and_tunnels_are_told_apart() {
    let frames = [
        behind(&[8, 0], &ip()),
        behind(&[0x81, 0, 0x20, 1, 8, 0], &ip()),
        behind(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 7, 8, 0], &ip()),
        behind(&[0x88, 0x47, 0, 0, 0x51, 64], &ip()),
        behind(&[0x81, 0, 0, 2, 0x88, 0x47, 0, 0, 0x51, 64], &ip()),
    ];
    let found = |pattern: &str| -> Vec<usize> {
        let taken = takers(pattern, 1, &frames);
        (0..frames.len()).filter(|at| !taken[*at].is_empty()).collect()
    };
    assert_eq!(found("vlan"), [1, 2, 4]);
    assert_eq!(found("vlan 1"), [1, 2]);
    assert_eq!(found("vlan 1 or 2"), [1, 2, 4]);
    assert_eq!(found("vlan != 1"), [4]);
    assert_eq!(found("not vlan"), [0, 3]);
    assert_eq!(found("qinq"), [2]);
    assert_eq!(found("qinq 7 and vlan 1"), [2]);
    assert_eq!(found("qinq 1"), [] as [usize; 0]);
    assert_eq!(found("mpls"), [3, 4]);
    assert_eq!(found("mpls 5"), [3, 4]);
    assert_eq!(found("mpls > 5"), [] as [usize; 0]);
    assert_eq!(found("ethertype 0x8847"), [3, 4]);
    // The addresses inside an MPLS packet are nobody's business here.
    assert_eq!(found("dst host 192.168.5.6"), [0, 1, 2]);
    assert_eq!(found("vxlan"), [0, 1, 2]);
    assert_eq!(found("vxlan 42 and vlan"), [1, 2]);
    assert_eq!(found("vxlan 41 or geneve"), [] as [usize; 0]);
    assert_eq!(found("ether host 02:00:00:00:00:01 and mpls"), [3, 4]);
}

#[test]
fn ipv6_is_told_apart_behind_tags() {
    let ip6 = |next: u8, from: u8, ports: &[u8]| {
        let mut bytes = vec![0x60, 0, 0, 0, 0, ports.len() as u8, next, 64];
        bytes.extend([&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[from]].concat());
        bytes.extend([&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 1][..], &[0; 7], &[9]].concat());
        bytes.extend(ports);
        bytes
    };
    let web = [0x13, 0x88, 0, 80, 1, 1];
    let frames = [
        behind(&[0x86, 0xdd], &ip6(6, 1, &web)),
        behind(&[0x81, 0, 0, 5, 0x86, 0xdd], &ip6(17, 2, &web)),
        behind(&[0x88, 0xa8, 0, 1, 0x81, 0, 0, 7, 0x86, 0xdd], &ip6(44, 1, &web)),
        // Cut off in the ports, and in the header.
        behind(&[0x86, 0xdd], &ip6(6, 1, &web[..3])),
        behind(&[0x86, 0xdd], &ip6(6, 1, &[])[..39]),
        behind(&[8, 0], &ip()),
        // IPv4 that says that it is IPv6.
        behind(&[0x86, 0xdd], &[ip(), ip()].concat()),
    ];
    let found = |pattern: &str| -> Vec<usize> {
        let taken = takers(pattern, 1, &frames);
        (0..frames.len()).filter(|at| !taken[*at].is_empty()).collect()
    };
    assert_eq!(found("ip6"), [0, 1, 2, 3]);
    assert_eq!(found("src ip6 host 2001:db8::1"), [0, 2, 3]);
    assert_eq!(found("src ip6 host != 2001:db8::1"), [1]);
    assert_eq!(found("dst ip6 net 2001:db8:0:1::/64"), [0, 1, 2, 3]);
    assert_eq!(found("src ip6 net 2001:db8:0:1::/64"), [] as [usize; 0]);
    assert_eq!(found("src and dst ip6 net 2001:db8::/47 and vlan"), [1, 2]);
    assert_eq!(found("ip6 net ::/0"), [0, 1, 2, 3]);
    assert_eq!(found("ip6 tcp"), [0, 3]);
    assert_eq!(found("dst ip6 tcp port 80"), [0]);
    assert_eq!(found("ip6 port 80 or 5000"), [0, 1]);
    assert_eq!(found("src ip6 port > 5000"), [] as [usize; 0]);
    // Ports behind an extension header are not seen.
    assert_eq!(found("ip6 proto 44 and not ip6 port 80"), [2]);
    assert_eq!(found("host 10.0.0.1 or ip6 udp"), [1, 5]);
    assert_eq!(found("ip6 or ip vers 4"), [0, 1, 2, 3, 5]);
}

/// Of a burst each output gets its packets in order, whether it gets originals or copies.
#[test]
fn no_output_gets_packets_out_of_order() {
    let mut rig = Rig::new("Dispatch", "all, dst udp port 80, all", 1, 3);
    let frames: Vec<TestPacket> =
        (0..40u16).map(|n| TestPacket::frame(&udp([1; 4], [2; 4], (n, 80 + n % 3), &[]))).collect();
    let out = rig.push(0, &frames);
    let of = |port: usize| -> Vec<TestPacket> {
        out.iter().filter(|out| out.exit == Exit::Port(port)).map(|out| bare(&out.packet)).collect()
    };
    let wanted: Vec<TestPacket> = frames.iter().step_by(3).cloned().collect();
    assert!(of(0) == frames && of(1) == wanted && of(2) == frames);
}

/// Without the headers that were marked.
fn bare(packet: &TestPacket) -> TestPacket {
    TestPacket { net: None, trans: None, ..packet.clone() }
}

#[test]
fn headers_are_marked_where_they_are() {
    for (between, net) in
        [(vec![8, 0], 14), (vec![0x81, 0, 0, 9, 8, 0], 18), (vec![0x91, 0, 0, 9, 0x88, 0xa8, 0, 1, 8, 0], 22)]
    {
        for config in ["all", "all, all"] {
            let outputs = config.split(',').count();
            let mut rig = Rig::new("Dispatch", config, 1, outputs);
            // What somebody said of the headers before does not count.
            let came =
                TestPacket { net: Some(3), trans: Some(5), ..TestPacket::frame(&behind(&between, &ip())) };
            for out in rig.push(0, &[came]) {
                assert_eq!(
                    (out.packet.mac, out.packet.net, out.packet.trans),
                    (Some(0), Some(net), Some(net + 20))
                );
            }
            for bytes in
                [behind(&between, &ip()[..19]), behind(&between, &[0x44; 40]), behind(&[8, 6], &[0; 28])]
            {
                for out in rig.push(0, &[TestPacket::frame(&bytes)]) {
                    assert_eq!((out.packet.mac, out.packet.net, out.packet.trans), (Some(0), None, None));
                }
            }
        }
    }
}

#[test]
fn wrong_configurations_of_a_dispatch() {
    assert!(mistakes("Dispatch", "all, tcp", 1).contains("2 patterns for 1 outputs"));
    assert!(mistakes("Dispatch", "vlan 4096, mpls 1048576, arp 5, ethertype", 4).lines().count() == 4);
    let six =
        "ip6 host 10.0.0.1, ip6 net ::1, ip6 ttl 5, ip6 tcp host ::1, host ::1, ip6 port > 70000, ip6 5";
    let told = mistakes("Dispatch", six, 7);
    assert_eq!(told.lines().count(), 7, "{told}");
    assert!(told.contains("`ip ttl` is not known of IPv6"), "{told}");
    let many: Vec<String> = (0..12).map(|n| format!("ip[{n}] & 1 = 1")).collect();
    assert!(mistakes("Dispatch", &many.join(", "), 12).contains("overlap in too many ways"));
    let many: Vec<String> = (0..16).map(|n| format!("vlan {n}")).collect();
    assert_eq!(mistakes("Dispatch", &many.join(", "), 16), "");
}

/// Headers as the oracle of expressions wants them, found by another parser.
fn headers(frame: &[u8]) -> (Option<usize>, Option<usize>) {
    let mut at = 12;
    for tags in 0..3 {
        match frame.get(at..at + 2) {
            Some([8, 0]) => break,
            Some([0x81, 0] | [0x88, 0xa8] | [0x91, 0]) if tags < 2 => at += 4,
            _ => return (None, None),
        }
    }
    let net = at + 2;
    match frame.get(net) {
        Some(first @ 0x45..=0x4f) if frame.len() >= net + 20 => {
            (Some(net), Some(net + 4 * usize::from(first & 15)))
        }
        _ => (None, None),
    }
}

/// Frames at random, also with tags, labels and tunnels.
fn frames(seed: u64) -> Vec<Vec<u8>> {
    let between: [&[u8]; 6] = [
        &[8, 0],
        &[0x81, 0, 0, 5, 8, 0],
        &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 1, 8, 0],
        &[0x88, 0x47, 0, 0, 0x51, 64],
        &[0x81, 0, 0, 5, 0x88, 0x48, 0, 6, 0x41, 64],
        &[0x81, 0, 0, 5, 0x81, 0, 0, 1, 0x81, 0, 0, 1],
    ];
    let random = random_frames(seed, 128).into_iter().enumerate();
    random
        .map(|(at, frame)| match frame.get(12..14) {
            // Some are IPv6, with what was an IPv4 header for the last bytes of addresses.
            Some([8, 0]) if at % 5 == 4 => {
                let next = [6, 17, 17, 44][at % 4];
                let address = |last: u8| [&[0x20, 1][..], &[0; 13], &[last]].concat();
                let ports = frame.get(34..).unwrap_or_default();
                let head = [0x60 | (at % 9 == 0) as u8, 0, 0, 0, 0, 0, next, 1];
                let tags: &[u8] = if at % 2 == 0 { &[0x86, 0xdd] } else { &[0x81, 0, 0, 5, 0x86, 0xdd] };
                let whole = [&frame[..12], tags, &head, &address(at as u8 % 3), &address(5), ports].concat();
                whole[..whole.len() - at % 4 * 3].to_vec()
            }
            Some([8, 0]) => {
                let mut frame = [&frame[..12], between[at % 6], &frame[14..]].concat();
                let to = frame.len() - 10 * usize::from(at % 7 == 0).min(frame.len() / 10);
                // Some are tunnels.
                if at % 3 == 0 && frame.get(23) == Some(&17) {
                    let port = if at % 2 == 0 { [0x12, 0xb5] } else { [0x17, 0xc1] };
                    frame.get_mut(36..38).into_iter().for_each(|place| place.copy_from_slice(&port));
                }
                frame.truncate(to);
                frame
            }
            _ => frame,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_go_where_the_expressions_say(
        chosen in proptest::collection::vec(proptest::sample::select(&[
            "all", "vlan", "vlan 5", "not vlan", "qinq 1", "mpls", "mpls 5 or 100", "arp", "tcp", "udp port 53",
            "dst net 192.168.0.0/16", "10.0.0.0/8", "icmp type echo", "vxlan", "vxlan 0", "geneve < 9 or syn",
            "ip frag", "not (src net 10.0.1.0/24 and tcp)", "ethertype 0x800", "ethertype != 0x800",
            "ip6", "ip6 tcp", "src ip6 host ::5", "not dst ip6 net 2001::/16", "ip6 port 53 or 80", "ip6 proto < 17",
            "ether host 02:00:00:00:00:01", "(vlan ? tcp : udp)", "ip[30:2] > 7", "false",
        ][..]), 1..5),
        seed in any::<u64>(),
    ) {
        let read = |text: &&str| {
            let text = Spanned::derived(*text, Span::NONE);
            expr::parse(&text, &NoNames, &mut Diagnostics::new()).expect("an expression").expr
        };
        let wanted: Vec<_> = chosen.iter().map(read).collect();
        let frames = frames(seed);
        let found = takers(&chosen.join(", "), chosen.len(), &frames);
        for (frame, found) in frames.iter().zip(found) {
            let (net, trans) = headers(frame);
            let from = |at: Option<usize>| at.and_then(|at| frame.get(at..)).unwrap_or_default();
            let headers = Headers { mac: frame, net: from(net), trans: from(trans) };
            let expected: Vec<usize> =
                (0..wanted.len()).filter(|at| wanted[*at].matches_frame(&headers)).collect();
            prop_assert_eq!(found, expected, "{:?}: {:02x?}", &chosen, frame);
        }
    }
}
