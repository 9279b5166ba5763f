//! Packets in, packets out, for elements that read and write captures.

mod dpdk_info;
mod from_dump;
mod replay_unqueue;
mod to_dump;

use crate::testing::TestPacket;
use element::testing::capture::{pcap, udp_frame};
use port::capture::CaptureReader;
use std::path::{Path, PathBuf};

/// A folder for one test's files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
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

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn stamped(bytes: &[u8], timestamp_ns: u64) -> TestPacket {
    TestPacket { timestamp_ns, ..TestPacket::frame(bytes) }
}
