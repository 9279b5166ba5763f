use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex};

use pcap_file::pcap::PcapReader;

use super::*;
use crate::TrafficSpec;
use port::file::OutputSink;

/// A disk of limited size that accepts a few bytes at a time.
#[derive(Debug)]
struct SmallDisk {
    room_bytes: usize,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.bytes.lock().expect("whole");
        let free = self.room_bytes - held.len();
        if free == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(free).min(700);
        held.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl OutputSink for SmallDisk {
    fn cut(&mut self, len_bytes: u64) -> io::Result<()> {
        self.bytes.lock().expect("whole").truncate(len_bytes as usize);
        Ok(())
    }
}

fn count_frames(bytes: &[u8]) -> u64 {
    let mut reader = PcapReader::new(bytes).expect("a readable header");
    let mut frames = 0;
    while let Some(packet) = reader.next_packet() {
        assert_eq!(packet.expect("a whole record").data.len(), 60);
        frames += 1;
    }
    frames
}

#[test]
fn a_full_disk_leaves_whole_frames() {
    // Around the file header, around the first records, and after several pieces of the buffer.
    for room_bytes in [24, 25, 40, 99, 100, 101, 176, 1_000_000, 1_048_600, 2_100_003, 3_000_001] {
        let bytes = Arc::default();
        let disk = SmallDisk { room_bytes, bytes: Arc::clone(&bytes) };
        let mut frames = TrafficSpec::default().frames().expect("valid");
        let mut quiet = |_| {};
        let output = OutputFile::begun(Path::new("capture.part"), disk);
        let error = write_frames(output, Resolution::Nanoseconds, &mut frames, 100_000, &mut quiet);
        let error = error.expect_err("the disk is full");
        let whole = (room_bytes as u64 - 24) / 76;
        let bytes = bytes.lock().expect("whole");
        assert_eq!(count_frames(&bytes), whole, "room {room_bytes}");
        assert_eq!(bytes.len() as u64, 24 + whole * 76);
        let text = error.to_string();
        assert!(text.contains(&format!("after {whole} frames")), "{text}");
        assert!(text.contains("capture.part"), "{text}");
    }
}

#[test]
fn a_capture_reads_back_as_it_was_made() {
    let folder = tempfile::tempdir().expect("folder");
    for (resolution, step_ns) in [(Resolution::Nanoseconds, 1), (Resolution::Microseconds, 1_000)] {
        let path = folder.path().join("made.pcap");
        fs::write(&path, "an older capture").expect("written");
        let spec = TrafficSpec {
            size: "imix".parse().expect("valid"),
            rate_pps: 1_234_567,
            start_ns: 1_700_000_000_000_000_000,
            ..TrafficSpec::default()
        };
        let mut frames = spec.frames().expect("valid");
        let mut told = 0;
        let summary =
            write_capture(&path, resolution, &mut frames, 70_000, &mut |done| told = done).expect("written");
        assert_eq!((summary.frames, summary.flows(), told), (70_000, 1_000, 65_536));
        assert!(!folder.path().join("made.pcap.part").exists());
        let file = fs::File::open(&path).expect("there");
        let mut reader = PcapReader::new(file).expect("a readable header");
        let mut bytes = 0;
        for (timestamp_ns, frame) in spec.frames().expect("valid").take(70_000) {
            let packet = reader.next_packet().expect("there").expect("whole");
            assert_eq!(packet.timestamp.as_nanos() as u64, timestamp_ns / step_ns * step_ns);
            assert_eq!(packet.data, frame);
            bytes += frame.len() as u64;
        }
        assert!(reader.next_packet().is_none());
        assert_eq!(bytes, summary.bytes);
    }
}

#[test]
fn a_folder_or_missing_path_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    for path in [folder.path().to_owned(), folder.path().join("no/such/folder.pcap")] {
        let mut frames = TrafficSpec::default().frames().expect("valid");
        let error = write_capture(&path, Resolution::Nanoseconds, &mut frames, 1, &mut |_| {});
        assert!(error.expect_err("refused").to_string().starts_with("cannot create"));
    }
}

#[test]
fn the_full_device_is_told() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIP: this machine has no /dev/full");
        return;
    }
    let mut frames = TrafficSpec::default().frames().expect("valid");
    let full = Path::new("/dev/full");
    let error = write_capture(full, Resolution::Nanoseconds, &mut frames, 10, &mut |_| {});
    let text = error.expect_err("no room").to_string();
    assert!(text.contains("after 0 frames") && text.contains("No space left"), "{text}");
}
