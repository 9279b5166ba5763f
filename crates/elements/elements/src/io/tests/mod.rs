//! Packets in, packets out, for elements that read and write files and ports.

mod device;

use crate::testing::TestPacket;
use element::testing::capture::{pcap, udp_frame};
use std::path::{Path, PathBuf};

/// A folder for one test's files.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}
