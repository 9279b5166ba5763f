//! Checks, marks and addresses.

use super::*;
use crate::testing::Rig;

fn bare(bytes: &[u8]) -> TestPacket {
    TestPacket { mac: None, ..TestPacket::frame(bytes) }
}

/// Runs odd packets and lets the rig compare evaluator and machine code.
pub(super) fn differential6(class: &str, config: &str, outputs: usize) {
    let mut rig = Rig::new(class, config, 1, outputs);
    rig.push(0, &odd_packets());
    crate::testing::differential(class, config, 1, outputs);
}

#[test]
fn a_good_packet_gets_its_annotations_and_loses_its_padding() {
    let ip = udp6(SRC, DST, b"hello");
    let mut rig = Rig::new("CheckIP6Header", "OFFSET 14", 1, 1);
    let mut padded = frame6(&ip);
    padded.bytes.extend([9; 7]);
    let out = rig.push_one(0, &padded);
    assert_eq!((out.exit, &out.packet.bytes[14..]), (Exit::Port(0), &ip[..]));
    assert_eq!((out.packet.net, out.packet.trans), (Some(14), Some(54)));
    let mut long = udp6(SRC, DST, &[1; 4000]);
    long.extend([9; 7]);
    let out = Rig::new("CheckIP6Header", "", 1, 1).push_one(0, &bare(&long));
    assert_eq!((out.exit, out.packet.bytes.len()), (Exit::Port(0), 4048));
}

#[test]
fn extension_headers_are_followed_if_that_is_asked_for() {
    // Destination options, an atomic fragment, UDP; and padding.
    let udp = udp6(SRC, DST, b"hello");
    let mut extended = udp[..40].to_vec();
    extended[6] = 60;
    extended.extend([44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 7]);
    extended.extend(&udp[40..]);
    extended[5] += 16;
    let mut padded = frame6(&extended);
    padded.bytes.extend([9; 5]);
    for (config, trans) in [("OFFSET 14, PROCESS_EH true", 70), ("OFFSET 14", 54)] {
        let out = Rig::new("CheckIP6Header", config, 1, 1).push_one(0, &padded);
        assert_eq!((out.exit, &out.packet.bytes[14..]), (Exit::Port(0), &extended[..]), "{config}");
        assert_eq!((out.packet.net, out.packet.trans), (Some(14), Some(trans)), "{config}");
    }
    let mut rig = Rig::new("CheckIP6Header", "PROCESS_EH true", 1, 2);
    let out = rig.push(0, &[bare(&udp), bare(&extended[..45])]);
    assert_eq!((out[0].packet.trans, exits(&out)), (Some(40), vec![Exit::Port(0), Exit::Port(1)]));
    // Options that reach beyond the packet.
    extended[41] = 9;
    assert_eq!(rig.push_one(0, &bare(&extended)).packet.trans, Some(40));
    differential6("CheckIP6Header", "PROCESS_EH true", 2);
}

#[test]
fn each_fault_has_its_reason() {
    let good = udp6(SRC, DST, b"hello");
    let mut version = good.clone();
    version[0] = 0x45;
    let cases = [
        (good[..39].to_vec(), "tiny-packet"),
        (vec![], "tiny-packet"),
        (version, "bad-ip6-version"),
        (good[..good.len() - 1].to_vec(), "bad-payload-length"),
        (udp6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", DST, b""), "bad-source-address"),
        (udp6("::", DST, b""), "bad-source-address"),
        (udp6("2001:db8::9", DST, b""), "bad-source-address"),
    ];
    let mut rig = Rig::new("CheckIP6Header", ":: 2001:db8::9", 1, 1);
    for (bytes, reason) in &cases {
        let out = rig.push_one(0, &bare(bytes));
        assert_eq!((out.exit, &out.packet.bytes), (dropped(reason), bytes));
    }
    assert_eq!(rig.read("drops"), "7");
    let mut rig = Rig::new("CheckIP6Header", ":: 2001:db8::9", 1, 2);
    for (bytes, _) in &cases {
        assert_eq!(rig.push_one(0, &bare(bytes)).exit, Exit::Port(1));
    }
    // Half of an address is not the address, and without a list there is one bad one.
    assert_eq!(rig.push_one(0, &bare(&udp6("2001:db9::9", DST, b""))).exit, Exit::Port(0));
    assert_eq!(rig.push_one(0, &bare(&udp6("2001:db8::8", DST, b""))).exit, Exit::Port(0));
    let mut rig = Rig::new("CheckIP6Header", "", 1, 1);
    assert_eq!(rig.push_one(0, &bare(&udp6("::", DST, b""))).exit, Exit::Port(0));
    assert_eq!(rig.push_one(0, &bare(&cases[4].0)).exit, dropped("bad-source-address"));
    let mistakes = Rig::try_new("CheckIP6Header", "1.2.3.4, x, y", 1, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    differential6("CheckIP6Header", "", 1);
    differential6("CheckIP6Header", ":: 2001:db8::1, 14", 2);
}

#[test]
fn the_hop_limit_falls() {
    let with_limit = |limit: u8| {
        let mut ip = udp6(SRC, DST, b"x");
        ip[7] = limit;
        TestPacket::ip(&ip)
    };
    let mut rig = Rig::new("DecIP6HLIM", "", 1, 2);
    let out = rig.push(0, &[with_limit(0), with_limit(1), with_limit(2), with_limit(255)]);
    assert_eq!(exits(&out), [Exit::Port(1), Exit::Port(1), Exit::Port(0), Exit::Port(0)]);
    assert_eq!((&out[0].packet, &out[1].packet), (&with_limit(0), &with_limit(1)));
    assert_eq!((&out[2].packet, &out[3].packet), (&with_limit(1), &with_limit(254)));
    assert_eq!(rig.read("drops"), "2");
    let mut rig = Rig::new("DecIP6HLIM", "", 1, 1);
    assert_eq!(rig.push_one(0, &with_limit(1)).exit, dropped("hop-limit-expired"));
    let short = TestPacket::ip(&with_limit(9).bytes[..39]);
    let unmarked = TestPacket { net: None, ..with_limit(9) };
    assert_eq!(exits(&rig.push(0, &[short, unmarked])), [dropped("no-ip6-header"), dropped("no-ip6-header")]);
    assert!(Rig::try_new("DecIP6HLIM", "1", 1, 1).is_err());
    differential6("DecIP6HLIM", "", 2);
}

#[test]
fn headers_are_marked() {
    let out = Rig::new("MarkIP6Header", "14", 1, 1).push_one(0, &bare(&[1; 20]));
    assert_eq!((out.exit, out.packet.net, out.packet.trans), (Exit::Port(0), Some(14), Some(54)));
    let out = Rig::new("MarkIP6Header", "", 1, 1).push_one(0, &bare(&[1; 20]));
    assert_eq!((out.packet.net, out.packet.trans), (Some(0), Some(40)));
    assert!(Rig::try_new("MarkIP6Header", "-1", 1, 1).is_err());
    differential6("MarkIP6Header", "14", 1);
}

#[test]
fn addresses_go_to_annotations_and_back() {
    let ip = udp6(SRC, DST, b"x");
    let out = Rig::new("GetIP6Address", "24", 1, 1).push_one(0, &bare(&ip));
    assert_eq!(annotation(&out.packet), address(DST));
    assert_eq!(
        Rig::new("GetIP6Address", "24", 1, 1).push_one(0, &bare(&ip[..39])).exit,
        dropped("short-packet")
    );
    let out = Rig::new("SetIP6Address", "2001:db8::99", 1, 1).push_one(0, &bare(&[]));
    assert_eq!(annotation(&out.packet), address("2001:db8::99"));
    for (config, at) in [("8", 8), ("src", 8), ("DST", 24)] {
        let mut rig = Rig::new("StoreIP6Address", config, 1, 2);
        let packet = TestPacket::ip(&ip);
        assert_eq!(rig.push_one(0, &packet).packet, packet, "no annotation, no change");
        let out = rig.push_one(0, &with_annotation(packet.clone(), "2001:db8::99"));
        assert_eq!(
            (out.exit, &out.packet.bytes[at..at + 16]),
            (Exit::Port(0), &address("2001:db8::99").octets()[..])
        );
        let short = with_annotation(TestPacket::ip(&ip[..20]), "2001:db8::99");
        assert_eq!(rig.push_one(0, &short).exit, Exit::Port(1));
        let mut rig = Rig::new("StoreIP6Address", &format!("::, {config}"), 1, 1);
        assert_eq!(rig.push_one(0, &packet).packet.bytes[at..at + 16], [0; 16]);
        assert_eq!(rig.push_one(0, &short).exit, dropped("out-of-range"));
    }
    for (class, config) in
        [("GetIP6Address", ""), ("SetIP6Address", "1.2.3.4"), ("StoreIP6Address", ":: , nowhere")]
    {
        assert!(Rig::try_new(class, config, 1, 1).is_err(), "{class}");
    }
    differential6("GetIP6Address", "24", 1);
    differential6("SetIP6Address", "::1", 1);
    differential6("StoreIP6Address", "dst", 2);
    differential6("StoreIP6Address", "::7, 8", 1);
}
