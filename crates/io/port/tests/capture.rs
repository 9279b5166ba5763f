//! Capture files: round trips, every format, and every kind of damage.

use packet::anno::EXTRA_LENGTH;
use port::capture::{CaptureReader, CaptureWriter};
use port::{CaptureOptions, CapturePort, LINK_ETHERNET, LINK_RAW_IP, Port, PortError};
use proptest::prelude::*;
use shm::{HugePages, Packet, PacketBytes, PacketPool, PacketRegion, Pool, RegionOptions, SharedPool};
use std::io::Cursor;
use std::path::Path;

type Record = (u64, u32, Vec<u8>);

fn pool(slots: u32) -> PacketPool {
    let options = RegionOptions { huge_pages: HugePages::Never, ..RegionOptions::slots(slots) };
    PacketPool::Native(
        SharedPool::new(PacketRegion::create(options).expect("memory for a small region")).worker(),
    )
}

fn frame(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 13 + 2) as u8).collect()
}

fn word(value: u32, big: bool) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn half(value: u16, big: bool) -> [u8; 2] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

/// A pcap file in the given dialect.
fn pcap(records: &[Record], big: bool, nanoseconds: bool, link_type: u32) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(word(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, big));
    file.extend(half(2, big));
    file.extend(half(4, big));
    for value in [0, 0, 65_535, link_type] {
        file.extend(word(value, big));
    }
    for (timestamp_ns, original, bytes) in records {
        let fraction = (timestamp_ns % 1_000_000_000) as u32 / if nanoseconds { 1 } else { 1000 };
        for value in [(timestamp_ns / 1_000_000_000) as u32, fraction, bytes.len() as u32, *original] {
            file.extend(word(value, big));
        }
        file.extend(bytes);
    }
    file
}

fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let mut block = word(kind, big).to_vec();
    let padded = body.len().next_multiple_of(4);
    block.extend(word(padded as u32 + 12, big));
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(word(padded as u32 + 12, big));
    block
}

/// A pcapng file with an interface of nanosecond and one of microsecond timestamps.
fn pcapng(records: &[Record], big: bool) -> Vec<u8> {
    let mut header = word(0x1a2b_3c4d, big).to_vec();
    header.extend(half(1, big));
    header.extend([0; 2]);
    header.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &header, big);
    let mut interface = half(1, big).to_vec();
    interface.extend([0; 2]);
    interface.extend(word(0, big));
    file.extend(block(1, &interface, big));
    interface.extend(half(9, big));
    interface.extend(half(1, big));
    interface.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(block(1, &interface, big));
    file.extend(block(0x0bad_cafe, &[1, 2, 3], big));
    for (index, (timestamp_ns, original, bytes)) in records.iter().enumerate() {
        let nanoseconds = index % 2;
        let units = if nanoseconds == 1 { *timestamp_ns } else { timestamp_ns / 1000 };
        let mut body = Vec::new();
        for value in [nanoseconds as u32, (units >> 32) as u32, units as u32, bytes.len() as u32, *original] {
            body.extend(word(value, big));
        }
        body.extend(bytes);
        file.extend(block(6, &body, big));
    }
    file
}

/// All whole frames, and the error behind them.
fn read(file: Vec<u8>) -> (Vec<Record>, Option<PortError>) {
    let mut frames = Vec::new();
    let mut reader = match CaptureReader::from_stream("capture", Cursor::new(file)) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => {
                frames.push((frame.timestamp_ns, frame.original_bytes, frame.bytes.to_vec()));
            }
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(reader.next_frame().expect("the error is told once").is_none());
                return (frames, Some(error));
            }
        }
    }
}

fn records() -> Vec<Record> {
    let at = |n: u64| 1_700_000_000_000_000_000 + n * 1_000_001_000;
    [60, 0, 1, 1514, 9216, 262_144].iter().zip(0..).map(|(&n, i)| (at(i), n as u32 + 5, frame(n))).collect()
}

#[test]
fn every_dialect_gives_the_same_frames() {
    for big in [false, true] {
        for nanoseconds in [false, true] {
            let (frames, error) = read(pcap(&records(), big, nanoseconds, 1));
            assert!(
                error.is_none() && frames == records(),
                "big {big}, nanoseconds {nanoseconds}: {error:?}"
            );
        }
        let (frames, error) = read(pcapng(&records(), big));
        assert!(error.is_none() && frames == records(), "pcapng, big {big}: {error:?}");
    }
}

#[test]
fn simple_packets_and_interface_options_are_understood() {
    let mut header = word(0x1a2b_3c4d, false).to_vec();
    header.extend([1, 0, 0, 0]);
    header.extend([0xff; 8]);
    let mut file = block(0x0a0d_0d0a, &header, false);
    // Raw IP, at most 8 bytes of each packet, 1/1024 s units, one hour late.
    let mut interface = vec![101, 0, 0, 0, 8, 0, 0, 0];
    interface.extend([9, 0, 1, 0, 0x8a, 0, 0, 0, 14, 0, 8, 0]);
    interface.extend(3600u64.to_le_bytes());
    file.extend(block(1, &interface, false));
    let mut simple = word(100, false).to_vec();
    simple.extend(frame(8));
    file.extend(block(3, &simple, false));
    let mut enhanced = Vec::new();
    for value in [0, 0, 512, 3, 3] {
        enhanced.extend(word(value, false));
    }
    enhanced.extend(frame(3));
    file.extend(block(6, &enhanced, false));
    let reader = CaptureReader::from_stream("capture", Cursor::new(file.clone())).expect("a capture");
    assert_eq!(reader.link_type(), Some(LINK_RAW_IP));
    let (frames, error) = read(file);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(frames, [(0, 100, frame(8)), (3_600_500_000_000, 3, frame(3))]);
}

#[test]
fn a_capture_cut_off_anywhere_gives_what_is_whole() {
    let records: Vec<Record> = records().into_iter().take(4).collect();
    for file in [pcap(&records, false, false, 1), pcapng(&records, true)] {
        let mut whole = 0;
        for end in 0..file.len() {
            let (frames, error) = read(file[..end].to_vec());
            assert!(records.starts_with(&frames), "cut at {end}");
            assert!(frames.len() >= whole, "cut at {end}");
            whole = frames.len();
            match error {
                None => {}
                Some(PortError::DamagedCapture { offset, whole_frames, .. }) => {
                    assert!(offset <= end as u64);
                    assert_eq!(whole_frames, whole as u64);
                }
                Some(other) => panic!("cut at {end}: {other}"),
            }
        }
        assert_eq!(read(file).0.len(), 4);
    }
}

#[test]
fn damage_is_told_with_its_place() {
    let mut file = pcap(&records(), false, false, 1);
    let second = 24 + 16 + 60;
    file[second + 8..second + 12].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let (frames, error) = read(file);
    assert_eq!(frames.len(), 1);
    let message = error.expect("an impossible length").to_string();
    assert!(message.contains("at byte 100") && message.contains("the 1 whole frame"), "{message}");
    for (content, what) in [
        (&b""[..], "empty"),
        (&[7; 30], "neither pcap nor pcapng"),
        (&[0xd4, 0xc3, 0xb2, 0xa1], "within its header"),
    ] {
        let message = read(content.to_vec()).1.expect("no capture").to_string();
        assert!(message.contains(what), "{message}");
    }
    assert!(matches!(CaptureReader::open("/nonexistent.pcap"), Err(PortError::File { action: "open", .. })));
    assert!(CaptureReader::open("/").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_content_panics(
        pcapng_file in any::<bool>(), big in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let records: Vec<Record> = records().into_iter().take(4).collect();
        let mut file = if pcapng_file { pcapng(&records, big) } else { pcap(&records, big, true, 1) };
        for (at, value) in damage {
            // Most positions are in the headers, where damage has the most effects.
            let at = at.index(file.len().min(400));
            file[at] = value;
        }
        let _ = read(file);
    }
}

fn receive_all(port: &mut CapturePort, pool: &mut PacketPool) -> Vec<(u64, Vec<u8>)> {
    let mut vector = vec![Packet::EMPTY; 32];
    let mut seen = Vec::new();
    while !port.is_finished() {
        let got = port.receive(pool, &mut vector).packets;
        for packet in &vector[..got] {
            seen.push((packet.timestamp_ns, PacketBytes::new(packet).to_vec()));
        }
        pool.free_all(&vector[..got]);
    }
    assert_eq!(pool.in_use(), 0);
    seen
}

#[test]
fn a_port_copies_a_capture_faithfully() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    let records: Vec<Record> = records().into_iter().take(5).collect();
    std::fs::write(&from, pcap(&records, false, false, LINK_RAW_IP)).expect("room");
    let options =
        CaptureOptions { read: Some(from), write: Some(to.clone()), passes: 3, ..CaptureOptions::default() };
    let mut port = CapturePort::open("copy", &options).expect("two files");
    port.set_origin(5);
    assert_eq!(port.info().link_type, LINK_RAW_IP);
    let mut pool = pool(64);
    let mut vector = vec![Packet::EMPTY; 4];
    while !port.is_finished() {
        let got = port.receive(&mut pool, &mut vector).packets;
        for packet in &vector[..got] {
            let at = usize::from(EXTRA_LENGTH.offset);
            assert_eq!(packet.anno[at..at + 4], 5u32.to_ne_bytes());
            assert_eq!(packet.origin, 5);
        }
        let list: Vec<u16> = (0..got as u16).collect();
        assert_eq!(port.send(&mut pool, &mut vector, &list).packets, got);
    }
    port.flush().expect("room");
    assert_eq!(pool.in_use(), 0);
    assert_eq!((port.stats().rx_packets, port.stats().tx_packets), (15, 15));
    assert_eq!(port.stats().rx_bytes, port.stats().tx_bytes);
    assert!(port.take_warnings().is_empty());
    drop(port);
    let mut three_times = Vec::new();
    (0..3).for_each(|_| three_times.extend(records.clone()));
    assert_eq!(CaptureReader::open(&to).expect("a capture").link_type(), Some(LINK_RAW_IP));
    assert_eq!(read(std::fs::read(&to).expect("the file")).0, three_times);
}

#[test]
fn a_damaged_capture_is_a_finding_and_frames_too_long_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    let mut file = pcap(&records(), true, true, 1);
    file.extend([1, 2, 3]);
    std::fs::write(&path, file).expect("room");
    let options = CaptureOptions { read: Some(path), passes: 1, ..CaptureOptions::default() };
    let mut port = CapturePort::open("in", &options).expect("a file");
    assert_eq!(receive_all(&mut port, &mut pool(64)).len(), 5);
    assert_eq!(port.stats().rx_dropped.too_long, 1);
    let warnings = port.take_warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("in: ") && warnings[0].contains("damaged at byte"));
    assert!(port.take_warnings().is_empty());
    assert!(!port.can_send());
    assert_eq!(port.send(&mut pool(1), &mut [Packet::EMPTY], &[0]).packets, 0);
}

#[test]
fn an_empty_capture_read_without_end_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    std::fs::write(&path, pcap(&[], true, true, 1)).expect("room");
    let options = CaptureOptions { read: Some(path), ..CaptureOptions::default() };
    let mut port = CapturePort::open("in", &options).expect("a file");
    assert!(receive_all(&mut port, &mut pool(64)).is_empty());
}

/// Five frames, one of them of 9,216 bytes, and a port that receives them once from a file in the folder.
fn five_frames(folder: &Path) -> (Vec<Record>, CapturePort) {
    let path = folder.join("in.pcap");
    let records: Vec<Record> = records().into_iter().take(5).collect();
    std::fs::write(&path, pcap(&records, false, true, 1)).expect("room");
    let options = CaptureOptions { read: Some(path), passes: 1, ..CaptureOptions::default() };
    (records, CapturePort::open("in", &options).expect("a file"))
}

#[test]
fn a_short_pool_delays_frames_and_loses_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let (records, mut port) = five_frames(folder.path());
    // The frame of 9,216 bytes needs five slots, so the rest of the burst gives its slots back.
    let seen = receive_all(&mut port, &mut pool(5));
    assert_eq!(seen, records.iter().map(|(at, _, bytes)| (*at, bytes.clone())).collect::<Vec<_>>());
}

#[test]
fn a_frame_that_no_pool_of_that_size_can_hold_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, mut port) = five_frames(folder.path());
    assert_eq!(receive_all(&mut port, &mut pool(4)).len(), 4);
    assert_eq!(port.stats().rx_dropped.too_long, 1);
}

#[test]
fn a_full_disk_is_told_and_counted() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIP: there is no /dev/full");
        return;
    }
    let options = CaptureOptions { write: Some("/dev/full".into()), ..CaptureOptions::default() };
    let mut port = CapturePort::open("out", &options).expect("the device opens");
    let mut pool = pool(64);
    for _ in 0..1000 {
        let mut packets = [shm::write_frame(&mut pool, &frame(1000)).expect("a slot")];
        assert_eq!(port.send(&mut pool, &mut packets, &[0]).packets, 1);
    }
    let error = port.flush().err();
    let warnings = port.take_warnings();
    assert_eq!(warnings.len(), 1, "{error:?}");
    assert!(warnings[0].contains("the file holds 0 whole frames"), "{}", warnings[0]);
    let stats = port.stats();
    assert_eq!((stats.tx_packets, stats.tx_bytes, stats.tx_errors), (0, 0, 1000));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_disk_that_fills_up_leaves_a_readable_file() {
    let folder = tempfile::tempdir().expect("a folder");
    // A file system of half a megabyte needs root. Without root, only the case above is tested.
    let target = folder.path().join("small");
    std::fs::create_dir(&target).expect("a folder");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
        .arg(&target)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        eprintln!("SKIP: mounting a small file system needs root");
        return;
    }
    let path = target.join("out.pcap");
    let written = (|| {
        let mut writer = CaptureWriter::create(&path, LINK_ETHERNET)?;
        for n in 0..2000 {
            writer.write(n, 1000, &frame(1000))?;
        }
        writer.flush()
    })();
    let content = std::fs::read(&path).expect("the file");
    let unmounted = std::process::Command::new("umount").arg(&target).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    let Err(PortError::CaptureStopped { whole_frames, lost_frames, .. }) = written else {
        panic!("512 KiB hold no 2,000 frames of 1,000 bytes: {written:?}");
    };
    let (frames, error) = read(content);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(frames.len() as u64, whole_frames);
    assert!(whole_frames > 300 && lost_frames > 0, "{whole_frames} whole, {lost_frames} lost");
}

#[test]
fn reading_and_writing_one_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    let content = pcap(&records(), true, true, 1);
    std::fs::write(&path, &content).expect("room");
    let link = folder.path().join("link.pcap");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let options = CaptureOptions { read: Some(path.clone()), write: Some(link), ..CaptureOptions::default() };
    assert!(matches!(CapturePort::open("both", &options), Err(PortError::SameFile { .. })));
    assert_eq!(std::fs::read(&path).expect("the file"), content);
}
