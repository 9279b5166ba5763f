use crate::testing::{Exit, Rig, TestPacket, differential, dropped};
use element::testing::ip::*;
use etherparse::PacketBuilder;
use packet::anno;

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
