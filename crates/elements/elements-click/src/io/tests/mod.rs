//! Packets in, packets out, for elements that read and write captures.

mod dpdk_info;
mod from_dump;
mod to_dump;

use crate::testing::TestPacket;
use port::capture::CaptureReader;
use std::path::{Path, PathBuf};

/// A folder for one test's files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

/// A pcap file in the other byte order than this machine's writer uses, with microseconds: the readers'
/// input does not come from our own writer.
fn pcap(link_type: u32, frames: &[(u64, &[u8])]) -> Vec<u8> {
    let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    file.extend(link_type.to_be_bytes());
    for (time_us, frame) in frames {
        file.extend(((time_us / 1_000_000) as u32).to_be_bytes());
        file.extend(((time_us % 1_000_000) as u32).to_be_bytes());
        file.extend((frame.len() as u32).to_be_bytes());
        file.extend((frame.len() as u32 + 40).to_be_bytes());
        file.extend(*frame);
    }
    file
}

/// The frames of a capture: timestamp, length on the wire, bytes.
fn frames_of(path: &Path) -> Vec<(u64, u32, Vec<u8>)> {
    let mut reader = CaptureReader::open(path).expect("a capture");
    let mut frames = vec![];
    while let Some(frame) = reader.next_frame().expect("whole frames") {
        frames.push((frame.timestamp_ns, frame.original_bytes, frame.bytes.to_vec()));
    }
    frames
}

/// A UDP packet over Ethernet.
fn udp_frame(payload: &[u8]) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1234, 53);
    let mut frame = vec![];
    builder.write(&mut frame, payload).expect("a frame");
    frame
}

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn stamped(bytes: &[u8], timestamp_ns: u64) -> TestPacket {
    TestPacket { timestamp_ns, ..TestPacket::frame(bytes) }
}
