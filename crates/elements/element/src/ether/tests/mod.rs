use crate::testing::{Exit, Rig, TestPacket};

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

/// Source, destination and EtherType of a frame, by an independent reader.
fn ethernet(frame: &[u8]) -> ([u8; 6], [u8; 6], u16) {
    let (header, _) = etherparse::Ethernet2Header::from_slice(frame).unwrap();
    (header.source, header.destination, header.ether_type.0)
}
