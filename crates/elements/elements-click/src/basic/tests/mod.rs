use crate::testing::{Exit, Rig, TestPacket, differential, dropped, mistakes};

mod frame_source;
mod ip6_print;
mod ip_print;
mod print;
mod resize;
mod sample;
mod timestamp;

fn packet(byte: u8, len: usize) -> TestPacket {
    TestPacket::frame(&vec![byte; len])
}
