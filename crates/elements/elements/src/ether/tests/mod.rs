use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
use element::testing::arp::ethernet;

mod arp;
mod header;
mod neighbours;
mod switch;
mod vlan;

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xbb];
const C: [u8; 6] = [2, 0, 0, 0, 0, 0xcc];
/// The same as texts.
const A_TEXT: &str = "02-00-00-00-00-AA";
const B_TEXT: &str = "02-00-00-00-00-BB";
const C_TEXT: &str = "02-00-00-00-00-CC";

/// A frame with a UDP packet, by an independent writer.
fn udp_frame(src: [u8; 6], dst: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![];
    let builder =
        etherparse::PacketBuilder::ethernet2(src, dst).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(7, 9);
    builder.write(&mut frame, b"payload").unwrap();
    frame
}

/// Its IP packet.
fn udp_packet() -> TestPacket {
    TestPacket::ip(&udp_frame(A, B)[14..])
}
