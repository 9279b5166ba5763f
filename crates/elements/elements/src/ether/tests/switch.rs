use crate::testing::{Exit, Out, Rig, TestPacket, dropped};

/// A frame from one station to another; stations are numbered, 255 is everybody.
fn frame(from: u8, to: u8) -> TestPacket {
    let mut bytes = [0; 60];
    bytes[..6].copy_from_slice(&if to == 255 { [255; 6] } else { [2, 0, 0, 0, 0, to] });
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    TestPacket::frame(&bytes)
}

fn ports(out: &[Out]) -> Vec<usize> {
    let port = |out: &Out| match &out.exit {
        Exit::Port(port) => *port,
        Exit::Dropped(reason) => panic!("dropped: {reason}"),
    };
    let mut ports: Vec<usize> = out.iter().map(port).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn a_switch_learns_where_stations_are() {
    let mut rig = Rig::new("EtherSwitch", "", 3, 3);
    assert_eq!(ports(&rig.push(0, &[frame(1, 2)])), [1, 2], "unknown: to all others");
    let out = rig.push(2, &[frame(2, 1)]);
    assert_eq!((ports(&out), out[0].packet.clone()), (vec![0], frame(2, 1)), "unchanged, to whom it is for");
    assert_eq!(ports(&rig.push(0, &[frame(1, 2), frame(1, 255), frame(1, 3)])), [1, 1, 2, 2, 2]);
    assert_eq!(rig.push(2, &[frame(3, 2)])[0].exit, dropped("same-port"));
    assert_eq!(rig.read("table"), "02-00-00-00-00-01 0\n02-00-00-00-00-02 2\n02-00-00-00-00-03 2");
    // A station that moved is where it sent from last; the same burst knows it.
    assert_eq!(ports(&rig.push(1, &[frame(2, 9), frame(1, 3)])), [0, 2, 2]);
    assert_eq!(ports(&rig.push(2, &[frame(3, 2)])), [1]);
    assert_eq!(rig.push(0, &[TestPacket::frame(&[2; 11])])[0].exit, dropped("short-frame"));
}

#[test]
fn what_was_learned_is_forgotten() {
    let mut rig = Rig::new("EtherSwitch", "TIMEOUT 10", 2, 2);
    rig.push(0, &[frame(1, 255)]);
    rig.advance(9_000_000_000);
    assert_eq!(rig.push(0, &[frame(2, 1)])[0].exit, dropped("same-port"));
    rig.advance(1_000_000_000);
    assert_eq!(ports(&rig.push(0, &[frame(2, 1)])), [1], "unknown again");
    assert_eq!(rig.read("table"), "02-00-00-00-00-02 0");
    assert_eq!(rig.read("timeout"), "10");
    rig.write("timeout", "0").unwrap();
    assert_eq!(ports(&rig.push(0, &[frame(1, 2)])), [1], "a hub");
    assert!(rig.write("timeout", "x").is_err());
}

#[test]
fn a_group_is_no_source_and_one_port_is_no_way_on() {
    let mut rig = Rig::new("EtherSwitch", "", 1, 1);
    let mut group = frame(1, 2);
    group.bytes[6] = 3;
    assert_eq!(rig.push(0, &[group])[0].exit, dropped("no-other-port"));
    assert_eq!(rig.read("table"), "");
}

#[test]
fn the_table_is_bounded() {
    let mut rig = Rig::new("EtherSwitch", "", 2, 2);
    for block in 0..300u16 {
        let flood: Vec<TestPacket> = (0..64)
            .map(|at| {
                let mut packet = frame(1, 255);
                packet.bytes[8..10].copy_from_slice(&block.to_be_bytes());
                packet.bytes[11] = at;
                packet
            })
            .collect();
        assert_eq!(rig.push(0, &flood).len(), 64);
    }
    assert_eq!(rig.read("table").lines().count(), 1 << 14);
}

#[test]
fn arguments_are_checked() {
    let mistakes = Rig::try_new("EtherSwitch", "5, TIMEOUT x", 2, 2).err().unwrap();
    assert_eq!(mistakes.lines().count(), 2, "{mistakes}");
}
