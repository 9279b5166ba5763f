//! What changes headers, and what refuses long packets.

use super::header::differential6;
use super::*;
use crate::testing::Rig;
use packet::Access;

#[test]
fn fields_are_set_and_leave_their_neighbours_alone() {
    let mut ip = udp6(SRC, DST, b"x");
    ip[..4].copy_from_slice(&[0x6a, 0xbc, 0xde, 0xf1]);
    let packet = TestPacket::ip(&ip);
    for (class, config, handler, next, front, later) in [
        ("SetIP6DSCP", "10", "dscp", "63", 0x62b_cdef1, 0x6ff_cdef1),
        ("SetIP6ECN", "ect2", "ecn", "0", 0x6aa_cdef1, 0x6a8_cdef1),
        ("SetIP6ECN", "ECT(1)", "ecn", "ce", 0x6a9_cdef1, 0x6ab_cdef1),
        ("SetIP6FlowLabel", "0x12345", "flowlabel", "1048575", 0x6ab_12345, 0x6ab_fffff),
    ] {
        let mut rig = Rig::new(class, config, 1, 1);
        let change = |front: u32| {
            let mut changed = packet.clone();
            changed.bytes[..4].copy_from_slice(&front.to_be_bytes());
            changed
        };
        let out = rig.push_one(0, &packet);
        assert_eq!((out.exit, out.packet), (Exit::Port(0), change(front)), "{class}({config})");
        assert_eq!(rig.read(handler), config);
        rig.write(handler, next).unwrap();
        assert_eq!(rig.push_one(0, &packet).packet, change(later), "{class}({next})");
        assert_eq!(rig.read(handler), next);
        assert!(rig.write(handler, "1048576").is_err(), "{class}");
        assert_eq!(rig.push_one(0, &TestPacket::ip(&ip[..39])).exit, dropped("no-ip6-header"));
        let unmarked = TestPacket { net: None, ..packet.clone() };
        assert_eq!(rig.push_one(0, &unmarked).exit, dropped("no-ip6-header"));
        differential6(class, config, 1);
    }
    let mut rig = Rig::new("SetIP6Hlim", "7", 1, 1);
    assert_eq!(rig.push_one(0, &packet).packet.bytes.u8(7), Some(7));
    rig.write("hopLimit", "255").unwrap();
    assert_eq!(rig.push_one(0, &packet).packet.bytes.u8(7), Some(255));
    assert_eq!(rig.read("hopLimit"), "255");
    for (class, config) in
        [("SetIP6DSCP", "64"), ("SetIP6ECN", "4"), ("SetIP6FlowLabel", "1048576"), ("SetIP6Hlim", "256")]
    {
        assert!(Rig::try_new(class, config, 1, 1).is_err() && Rig::try_new(class, "", 1, 1).is_err());
    }
}

#[test]
fn a_mirrored_packet_goes_back() {
    let ip = udp6(SRC, DST, b"x");
    let out = Rig::new("IP6Mirror", "", 1, 1).push_one(0, &TestPacket::ip(&ip));
    let mut back = ip.clone();
    back[8..24].copy_from_slice(&ip[24..40]);
    back[24..40].copy_from_slice(&ip[8..24]);
    back[40..42].copy_from_slice(&ip[42..44]);
    back[42..44].copy_from_slice(&ip[40..42]);
    assert_eq!((out.exit, &out.packet.bytes), (Exit::Port(0), &back));
    // Without ports, only the addresses are swapped.
    let message = icmp6(SRC, DST, 128, b"hello");
    let out = Rig::new("IP6Mirror", "", 1, 1).push_one(0, &TestPacket::ip(&message));
    let (src, dst, icmp) = right_icmp6(&out.packet.bytes);
    assert_eq!((src, dst, icmp), (address(DST), address(SRC), &message[40..]));
    let short = TestPacket::ip(&ip[..47]);
    let out = Rig::new("IP6Mirror", "", 1, 1).push_one(0, &short);
    assert_eq!((&out.packet.bytes[8..40], &out.packet.bytes[40..]), (&back[8..40], &ip[40..47]));
    let cut = TestPacket::ip(&ip[..39]);
    assert_eq!(Rig::new("IP6Mirror", "", 1, 1).push_one(0, &cut).exit, dropped("no-ip6-header"));
    differential6("IP6Mirror", "", 1);
}

#[test]
fn long_packets_are_refused() {
    let packets = [100, 101, 4000].map(|bytes| TestPacket::frame(&vec![1; bytes]));
    let mut rig = Rig::new("IP6Fragmenter", "100", 1, 2);
    assert_eq!(exits(&rig.push(0, &packets)), [Exit::Port(0), Exit::Port(1), Exit::Port(1)]);
    assert_eq!((rig.read("drops").as_str(), rig.read("fragments").as_str()), ("2", "0"));
    let mut rig = Rig::new("IP6Fragmenter", "100", 1, 1);
    assert_eq!(rig.push_one(0, &packets[1]).exit, dropped("too-big"));
    assert!(Rig::try_new("IP6Fragmenter", "", 1, 1).is_err());
    differential6("IP6Fragmenter", "60", 2);
}
