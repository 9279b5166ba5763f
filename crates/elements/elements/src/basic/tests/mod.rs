use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};

mod count;
pub(crate) mod cramped;
mod cut;
mod grow;
mod paint;
mod pass;
mod switch;
mod tee;

/// A packet of so many bytes, all the same.
fn packet(byte: u8, len: usize) -> TestPacket {
    TestPacket::frame(&vec![byte; len])
}

#[test]
fn discard_drops_and_counts() {
    let mut rig = Rig::new("Discard", "", 1, 0);
    let out = rig.push_one(0, &TestPacket::frame(&[0; 60]));
    assert_eq!(out.exit, Exit::Dropped("discarded".into()));
    rig.feed(0, &[TestPacket::frame(&[0; 60])]);
    assert_eq!(rig.task().1.len(), 1);
    assert_eq!(rig.read("count"), "2");
    rig.write("reset_counts", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    rig.write("active", "false").unwrap();
    rig.feed(0, &[TestPacket::frame(&[0; 60])]);
    assert_eq!(rig.task().1.len(), 0);
    assert_eq!(rig.read("active"), "false");
    assert!(rig.write("active", "perhaps").is_err());
}
