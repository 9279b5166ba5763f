//! Captures, read and written by others than the binary.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub time: Duration,
    pub original_bytes: u32,
    pub bytes: Vec<u8>,
}

/// Reads a whole capture; every record must be whole.
pub fn read(path: &Path) -> Vec<Frame> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = PcapReader::new(BufReader::new(file)).expect("a capture's header");
    assert_eq!(reader.header().datalink, DataLink::ETHERNET);
    let mut frames = vec![];
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        frames.push(Frame {
            time: record.timestamp,
            original_bytes: record.orig_len,
            bytes: record.data.into_owned(),
        });
    }
    frames
}

/// The bytes of all frames of a capture.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    read(path).into_iter().map(|frame| frame.bytes).collect()
}

/// Writes a capture with a microsecond between frames.
pub fn write<'a>(path: &Path, frames: impl IntoIterator<Item = &'a [u8]>) {
    let header = PcapHeader {
        ts_resolution: TsResolution::NanoSecond,
        datalink: DataLink::ETHERNET,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(File::create(path).expect("made"), header).expect("written");
    for (at, frame) in frames.into_iter().enumerate() {
        let time = Duration::from_micros(1_000_000_000_000 + at as u64);
        writer.write_packet(&PcapPacket::new(time, frame.len() as u32, frame)).expect("written");
    }
}

/// Fields of every frame as tshark reads them, with all checksums checked; nothing where there is no
/// tshark.
pub fn tshark(path: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|", "-r"]).arg(path);
    for option in ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"] {
        command.args(["-o", option]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        eprintln!("SKIP: tshark is not installed, so it does not confirm {}", path.display());
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8_lossy(&output.stdout);
    Some(lines.lines().map(|line| line.split('|').map(str::to_string).collect()).collect())
}
