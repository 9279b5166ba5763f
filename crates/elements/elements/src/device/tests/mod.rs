//! Packets in, packets out. `etherparse` builds the frames.

mod dispatch;
mod peel;
mod switch;

use crate::testing::{Exit, Rig, TestPacket, dropped};
use etherparse::PacketBuilder;

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A frame with UDP over IPv4.
fn udp(src: [u8; 4], dst: [u8; 4], ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    let builder = PacketBuilder::ethernet2(A, B).ipv4(src, dst, 64).udp(ports.0, ports.1);
    builder.write(&mut bytes, payload).expect("a frame");
    bytes
}

/// The mistakes of a configuration.
fn mistakes(class: &str, config: &str, outputs: usize) -> String {
    Rig::try_new(class, config, 1, outputs).err().unwrap_or_default()
}

/// A frame that came in by a port.
fn from(origin: u16, bytes: &[u8]) -> TestPacket {
    TestPacket { origin, ..TestPacket::frame(bytes) }
}
