use super::*;

#[test]
fn packets_are_changed_at_both_ends() {
    let frame = TestPacket::frame(b"ABCDEF");
    for (config, expected) in [
        ("", &b"ABCDEF"[..]),
        ("HEAD -2", b"CDEF"),
        ("TAIL -2", b"ABCD"),
        ("-1, -1", b"BCDE"),
        ("-9", b""),
        ("0, -9", b""),
        ("TAIL 2", b"ABCDEF\0\0"),
    ] {
        let out = Rig::new("Resize", config, 1, 1).push_one(0, &frame);
        assert_eq!((out.exit, &out.packet.bytes[..]), (Exit::Port(0), expected), "{config}");
    }
    let out = Rig::new("Resize", "+4, -2", 1, 1).push_one(0, &frame);
    assert_eq!((out.packet.bytes.len(), &out.packet.bytes[4..]), (8, &b"ABCD"[..]));
    let mut rig = Rig::new("Resize", "0, 3000", 1, 1);
    assert_eq!(rig.push_one(0, &frame).packet.bytes.len(), 3006);
    rig.starve(true);
    assert_eq!(rig.push_one(0, &frame).exit, dropped("no-room"));
    assert_eq!([rig.read("head"), rig.read("tail")], ["0", "3000"]);
    assert_eq!(mistakes("Resize", "5000, 99999", 1, 1).len(), 2);
}
