use super::*;
use etherparse::PacketBuilder;

#[test]
fn ip6print_shows_the_header_and_the_bytes_as_click_does() {
    let printed = |config: &str, packet: &TestPacket| {
        let mut rig = Rig::new("IP6Print", config, 1, 1);
        let out = rig.push_one(0, packet);
        assert_eq!((out.exit, &out.packet), (Exit::Port(0), packet));
        rig.host().printed.clone()
    };
    let mut bytes = vec![];
    let (src, dst) = ([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0xff; 16]);
    PacketBuilder::ipv6(src, dst, 64).udp(1, 2).write(&mut bytes, b"hi").unwrap();
    let packet = TestPacket::ip(&bytes);
    let fields = "2001:db8::1 -> ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff plen 10, next 17, hlim 64";
    assert_eq!(printed("", &packet), [fields]);
    assert_eq!(printed("six, ACTIVE true", &packet), [format!("six: {fields}")]);
    let hex = "\n  60000000 000a1140 20010db8 00000000 00000000 00000001\n  ffff";
    assert_eq!(printed("CONTENTS true, NBYTES 26", &packet), [format!("{fields}{hex}")]);
    assert!(printed("CONTENTS true", &packet)[0].ends_with("6869"));
    assert_eq!(printed("x", &TestPacket::ip(&bytes[..39])), ["x: truncated-ip6 (39)"]);
    assert!(printed("", &TestPacket { net: None, ..packet.clone() }).is_empty());
    let mut rig = Rig::new("IP6Print", "ACTIVE false", 1, 1);
    rig.push_one(0, &packet);
    assert_eq!((rig.host().printed.len(), rig.read("active").as_str()), (0, "false"));
    rig.write("active", "true").unwrap();
    rig.push_one(0, &packet);
    assert_eq!(rig.host().printed.len(), 1);
    assert_eq!(mistakes("IP6Print", "CONTENTS octal, COLOR 1", 1, 1).len(), 2);
}
