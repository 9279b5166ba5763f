use crate::testing::{Exit, Rig, TestPacket, differential};
use packet::anno;

#[test]
fn counter_counts_packets_and_bytes_and_starts_over() {
    let mut rig = Rig::new("Counter", "", 1, 1);
    let out = rig.push(0, &[TestPacket::frame(&[1; 60]), TestPacket::frame(&[2; 100])]);
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)));
    assert_eq!((rig.read("count").as_str(), rig.read("byte_count").as_str()), ("2", "160"));
    rig.write("reset_counts", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    differential("Counter", "", 1, 1);
}

#[test]
fn paint_sets_the_annotation_that_it_is_told() {
    let mut rig = Rig::new("Paint", "7", 1, 1);
    let out = rig.push_one(0, &TestPacket::frame(&[0; 60]));
    assert_eq!(out.packet.anno(anno::PAINT), 7);
    rig.write("color", "9").unwrap();
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[])).packet.anno(anno::PAINT), 9);
    assert!(rig.write("color", "256").is_err());
    let mut rig = Rig::new("Paint", "1, PAINT2", 1, 1);
    assert_eq!(rig.push_one(0, &TestPacket::frame(&[])).packet.anno(anno::PAINT2), 1);
    let mistakes = Rig::try_new("Paint", "300, ANNO 99, COLOUR 3", 1, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    differential("Paint", "3", 1, 1);
}

#[test]
fn discard_drops_and_counts() {
    let mut rig = Rig::new("Discard", "", 1, 0);
    let out = rig.push_one(0, &TestPacket::frame(&[0; 60]));
    assert_eq!(out.exit, Exit::Dropped("discarded".into()));
    rig.feed(0, &[TestPacket::frame(&[0; 60])]);
    assert_eq!(rig.task().1.len(), 1);
    assert_eq!(rig.read("count"), "2");
}
