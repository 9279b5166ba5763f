use crate::testing::{Exit, Rig, TestPacket};

mod count;
pub(crate) mod cramped;
mod cut;
mod ip_print;
mod paint;
mod pass;
mod source;
mod switch;
mod tee;

/// A packet of so many bytes, all the same.
fn packet(byte: u8, len: usize) -> TestPacket {
    TestPacket::frame(&vec![byte; len])
}

fn dropped(reason: &str) -> Exit {
    Exit::Dropped(reason.into())
}

/// The mistakes of a configuration: their lines.
fn mistakes(class: &str, config: &str, inputs: usize, outputs: usize) -> Vec<String> {
    match Rig::try_new(class, config, inputs, outputs) {
        Ok(_) => panic!("{class}({config}) has no mistakes"),
        Err(mistakes) => mistakes.lines().map(str::to_string).collect(),
    }
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
