use crate::testing::{Exit, Rig, TestPacket, differential, dropped, mistakes};

mod ip_print;
mod print;
mod sample;
mod source;
mod timestamp;

fn packet(byte: u8, len: usize) -> TestPacket {
    TestPacket::frame(&vec![byte; len])
}
