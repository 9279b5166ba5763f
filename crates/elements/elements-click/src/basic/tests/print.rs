use super::*;

#[test]
fn print_shows_length_and_bytes_as_click_does() {
    let printed = |config: &str, packet: &TestPacket| {
        let mut rig = Rig::new("Print", config, 1, 1);
        let out = rig.push_one(0, packet);
        assert_eq!((out.exit, &out.packet), (Exit::Port(0), packet));
        rig.host().printed.clone()
    };
    let bytes: Vec<u8> = (0x40..0x60).collect();
    let mut packet = TestPacket::frame(&bytes);
    packet.timestamp_ns = 12_000_034_999;
    let hex = "40414243 44454647 48494a4b 4c4d4e4f 50515253 54555657";
    assert_eq!(printed("", &packet), [format!("  32 | {hex}")]);
    assert_eq!(printed("in, 5", &packet), ["in:   32 | 40414243 44".to_string()]);
    assert_eq!(printed("in, CONTENTS NONE, TIMESTAMP true", &packet), ["in: 12.000034:   32"]);
    assert_eq!(printed("MAXLENGTH 9, CONTENTS ascii", &packet), ["  32 |  @ABCDEFG H"]);
    assert_eq!(
        printed("\"a label\", 0, CPU true, HEADROOM true", &packet),
        ["a label(0):   32 (h128 t2080)".to_string()]
    );
    assert!(printed("MAXLENGTH -1", &packet)[0].ends_with("5c5d5e5f"));
    let annos = &printed("PRINTANNO true, CONTENTS false", &packet)[0];
    assert_eq!(*annos, format!("  32 | {}", "00".repeat(48)));
    assert_eq!(printed("", &TestPacket::frame(&[])), ["   0"]);
    assert!(printed("ACTIVE false", &packet).is_empty());
    assert_eq!(mistakes("Print", "CONTENTS octal, COLOR 1", 1, 1).len(), 2);
}

#[test]
fn print_is_switched_by_its_handler() {
    let mut rig = Rig::new("Print", "", 1, 1);
    rig.write("active", "false").unwrap();
    assert_eq!(rig.read("active"), "false");
    rig.push_one(0, &packet(1, 4));
    assert!(rig.host().printed.is_empty());
    assert!(rig.write("active", "2").is_err() && rig.write("passive", "1").is_err());
}
