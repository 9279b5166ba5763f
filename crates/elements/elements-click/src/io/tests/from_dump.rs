use super::*;
use crate::testing::{Exit, Out, Rig};
use element::element::Progress;
use element::work::Host;
use packet::anno;
use shm::Packet;
use shm::pool::Pool;
use std::io::Write;

/// Runs the element's task until it has ended or idles; what left.
fn drain(rig: &mut Rig) -> Vec<Out> {
    let mut out = vec![];
    loop {
        let (progress, more) = rig.task();
        out.extend(more);
        if progress != Progress::Worked {
            return out;
        }
    }
}

/// First bytes of what left by output 0.
fn firsts(out: &[Out]) -> Vec<u8> {
    out.iter().filter(|out| out.exit == Exit::Port(0)).map(|out| out.packet.bytes[0]).collect()
}

fn ten_frames(folder: &tempfile::TempDir) -> PathBuf {
    let frames: Vec<Vec<u8>> = (0..10).map(|number| vec![number; 20 + usize::from(number)]).collect();
    let stamped: Vec<(u64, &[u8])> = (0..)
        .zip(&frames)
        .map(|(second, frame)| (100_000_000 + second * 1_000_000, frame.as_slice()))
        .collect();
    write(folder, "ten.pcap", &pcap(1, &stamped))
}

#[test]
fn every_frame_leaves_in_order_with_its_annotations() {
    let folder = folder();
    let file = ten_frames(&folder);
    let mut rig = Rig::new("FromDump", &format!("\"{}\"", file.display()), 0, 1);
    let (progress, out) = rig.task();
    assert_eq!((progress, firsts(&out)), (Progress::Worked, (0..10).collect()));
    for (number, out) in out.iter().enumerate() {
        assert_eq!(out.packet.bytes, vec![number as u8; 20 + number]);
        assert_eq!(out.packet.timestamp_ns, (100 + number as u64) * 1_000_000_000);
        assert_eq!(out.packet.anno(anno::EXTRA_LENGTH), 40);
        assert_eq!((out.packet.mac, out.packet.net), (Some(0), None));
    }
    assert_eq!(rig.read("packet_filepos"), (24 + 9 * 16 + (20..29).sum::<u64>()).to_string());
    assert_eq!(rig.read("filesize"), std::fs::metadata(&file).unwrap().len().to_string());
    assert_eq!(rig.read("filepos"), rig.read("filesize"));
    assert_eq!(rig.task(), (Progress::Finished, vec![]));
    assert_eq!((rig.read("count"), rig.read("encap")), ("10".into(), "ETHER".into()));
    assert_eq!(rig.read("filename"), file.display().to_string());
    rig.write("reset_counts", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    assert!(!rig.host().stopped && rig.warnings().is_empty());
}

#[test]
fn bursts_are_as_long_as_they_are_told_and_long_frames_are_chains() {
    let folder = folder();
    let long: Vec<u8> = (0..9216).map(|at| at as u8).collect();
    let frames: Vec<(u64, &[u8])> = vec![(1, &long), (2, &[]), (3, &long), (4, &[9])];
    let file = write(&folder, "long.pcap", &pcap(1, &frames));
    let mut rig = Rig::new("FromDump", &format!("{}, BURST 3", file.display()), 0, 1);
    let lengths = |out: &[Out]| -> Vec<usize> { out.iter().map(|out| out.packet.bytes.len()).collect() };
    let (_, out) = rig.task();
    assert_eq!(lengths(&out), [9216, 0, 9216]);
    assert!(out[0].packet.bytes == long && out[2].packet.bytes == long);
    assert_eq!(lengths(&rig.task().1), [1]);
}

#[test]
fn windows_begin_and_end_where_they_are_told() {
    let folder = folder();
    let file = ten_frames(&folder);
    let cases: [(&str, &[u8]); 9] = [
        ("START 103", &[3, 4, 5, 6, 7, 8, 9]),
        ("START 102.5, END 105", &[3, 4]),
        ("START_AFTER 7", &[7, 8, 9]),
        ("START_AFTER 2s, INTERVAL 3s", &[2, 3, 4]),
        ("END_AFTER 2", &[0, 1]),
        ("END_AFTER 0.5 min", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("END 50", &[]),
        ("INTERVAL 1.000001", &[0, 1]),
        ("START 0", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ];
    for (window, expected) in cases {
        let window = window.replace(" min", "min");
        let mut rig = Rig::new("FromDump", &format!("{}, {window}", file.display()), 0, 1);
        assert_eq!(firsts(&drain(&mut rig)), expected, "{window}");
        assert_eq!(rig.task().0, Progress::Finished, "{window}");
    }
}

#[test]
fn stop_ends_the_run_at_the_capture_s_end_and_at_the_window_s() {
    let folder = folder();
    let file = ten_frames(&folder);
    for window in ["", ", END_AFTER 3"] {
        let mut rig = Rig::new("FromDump", &format!("{}, STOP true{window}", file.display()), 0, 1);
        rig.task();
        assert!(!rig.host().stopped, "packets leave before the run ends");
        assert_eq!(rig.task().0, Progress::Finished);
        assert!(rig.host().stopped);
        assert_eq!(rig.read("active"), "false");
    }
}

#[test]
fn an_end_call_may_extend_the_window() {
    let folder = folder();
    let file = ten_frames(&folder);
    let config = format!("{}, END_AFTER 2, END_CALL extend_interval 3", file.display());
    let mut rig = Rig::new("FromDump", &config, 0, 1);
    // The end is reached at 2 and extended to 5, to 8, to 11.
    assert_eq!(firsts(&drain(&mut rig)), (0..10).collect::<Vec<_>>());
    let config = format!("{}, END_AFTER 2, END_CALL stop", file.display());
    let mut rig = Rig::new("FromDump", &config, 0, 1);
    assert_eq!(firsts(&drain(&mut rig)), [0, 1]);
    assert!(rig.host().stopped);
    let mut rig = Rig::new("FromDump", &format!("{}, END_CALL nonsense 3", file.display()), 0, 1);
    drain(&mut rig);
    assert_eq!(rig.warnings(), ["END_CALL nonsense: there is no write handler `nonsense`"]);
}

#[test]
fn timing_keeps_the_times_between_packets() {
    let folder = folder();
    let file = ten_frames(&folder);
    let mut rig = Rig::new("FromDump", &format!("{}, true", file.display()), 0, 1);
    assert_eq!(firsts(&drain(&mut rig)), [0]);
    rig.host().now_ns += 999_999_999;
    assert_eq!(rig.task().0, Progress::Idle);
    rig.host().now_ns += 2_000_000_001;
    assert_eq!(firsts(&drain(&mut rig)), [1, 2, 3]);
    rig.write("reset_timing", "").unwrap();
    assert_eq!(firsts(&drain(&mut rig)), [4]);
    let mut fast = Rig::new("FromDump", &format!("{}, TIMING true, ACCELERATION 1000", file.display()), 0, 1);
    drain(&mut fast);
    fast.host().now_ns += 500_000_000;
    assert_eq!(firsts(&drain(&mut fast)), [1, 2, 3, 4, 5]);
}

#[test]
fn sampling_picks_some_packets_and_says_how_often() {
    let folder = folder();
    let frames = vec![(0u64, &[1u8; 14][..]); 1000];
    let file = write(&folder, "many.pcap", &pcap(1, &frames));
    let mut rig = Rig::new("FromDump", &format!("{}, SAMPLE 0.25", file.display()), 0, 1);
    let count = drain(&mut rig).len();
    assert!((180..320).contains(&count), "{count}");
    assert_eq!((rig.read("sampling_prob"), rig.read("count")), ("0.25".into(), count.to_string()));
}

#[test]
fn an_inactive_source_waits() {
    let folder = folder();
    let file = ten_frames(&folder);
    let mut rig = Rig::new("FromDump", &format!("{}, ACTIVE false, BURST 4", file.display()), 0, 1);
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.write("active", "yes").unwrap();
    assert_eq!(firsts(&rig.task().1), [0, 1, 2, 3]);
    rig.write("active", "false").unwrap();
    assert_eq!(rig.task().0, Progress::Idle);
    assert!(rig.write("active", "perhaps").is_err());
    rig.write("stop", "").unwrap();
    rig.task();
    assert!(rig.host().stopped);
}

#[test]
fn force_ip_sorts_out_what_is_not_ip() {
    let folder = folder();
    let udp = udp_frame(&[7; 30]);
    let mut arp = udp.clone();
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut tagged = udp[..12].to_vec();
    tagged.extend([0x81, 0, 0, 5]);
    tagged.extend(&udp[12..]);
    let (cut, mut six) = (&udp[..33], udp[..14].to_vec());
    six[12..14].copy_from_slice(&[0x86, 0xdd]);
    six.extend([0x60; 40]);
    let mut short_header = udp.clone();
    short_header[14] = 0x44;
    let frames: Vec<(u64, &[u8])> =
        [&udp, &arp, &tagged, cut, &six, &short_header].map(|frame| (0, frame as &[u8])).to_vec();
    let file = write(&folder, "mixed.pcap", &pcap(1, &frames));
    let mut rig = Rig::new("FromDump", &format!("{}, FORCE_IP true", file.display()), 0, 1);
    let out = drain(&mut rig);
    let places: Vec<_> =
        out.iter().map(|out| (out.exit.clone(), out.packet.net, out.packet.trans)).take(3).collect();
    let kept = |net, trans| (Exit::Port(0), Some(net), Some(trans));
    assert_eq!(places, [kept(14, 34), kept(18, 38), kept(14, 54)]);
    assert_eq!(out[0].packet.anno(anno::DST_IP), 0x0a00_0002);
    assert_eq!(out[2].packet.anno(anno::DST_IP), 0);
    assert!(out[3..].iter().all(|out| out.exit == Exit::Dropped("not-ip".into())));
    assert_eq!((out.len(), rig.read("count")), (6, "3".into()));
    let mut rig = Rig::new("FromDump", &format!("{}, FORCE_IP true", file.display()), 0, 2);
    let out = drain(&mut rig);
    assert_eq!(out.iter().filter(|out| out.exit == Exit::Port(1)).count(), 3);
    assert!(out.iter().any(|out| out.exit == Exit::Port(1) && out.packet.bytes == arp));
}

#[test]
fn raw_ip_captures_have_network_headers() {
    let folder = folder();
    let udp = udp_frame(&[7; 30]);
    for link_type in [101, 12, 228] {
        let file = write(&folder, "raw.pcap", &pcap(link_type, &[(0, &udp[14..]), (0, &[0xf0; 40])]));
        let mut rig = Rig::new("FromDump", &file.display().to_string(), 0, 1);
        let out = drain(&mut rig);
        assert_eq!((out[0].packet.mac, out[0].packet.net, out[0].packet.trans), (None, Some(0), Some(20)));
        assert_eq!(out[0].packet.anno(anno::DST_IP), 0x0a00_0002);
        assert_eq!(out[1].exit, Exit::Dropped("not-ip".into()));
        assert_eq!(rig.read("encap"), "IP");
    }
    let mut cooked = vec![0; 14];
    cooked.extend([8, 0]);
    cooked.extend(&udp[14..]);
    let file = write(&folder, "sll.pcap", &pcap(113, &[(0, &cooked)]));
    let mut rig = Rig::new("FromDump", &format!("{}, FORCE_IP true", file.display()), 0, 1);
    assert_eq!(drain(&mut rig)[0].packet.net, Some(16));
    let file = write(&folder, "wireless.pcap", &pcap(105, &[]));
    let mistakes =
        Rig::try_new("FromDump", &format!("{}, FORCE_IP true", file.display()), 0, 1).err().unwrap();
    assert!(mistakes.contains("FORCE_IP knows nothing of packets of link type 802.11"), "{mistakes}");
}

#[test]
fn a_damaged_capture_gives_what_is_whole_and_tells_where_it_breaks() {
    let folder = folder();
    let good = pcap(1, &[(1, &[1; 20]), (2, &[2; 30]), (3, &[3; 40])]);
    let second_at = 24 + 16 + 20;
    let third_at = second_at + 16 + 30;
    for (cut_at, whole, place) in [(third_at + 20, 2, third_at), (second_at + 5, 1, second_at)] {
        let file = write(&folder, "cut.pcap", &good[..cut_at]);
        let mut rig = Rig::new("FromDump", &format!("{}, STOP true", file.display()), 0, 1);
        assert_eq!(drain(&mut rig).len(), whole);
        let warnings = rig.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&format!("damaged at byte {place}: ")), "{warnings:?}");
        assert!(warnings[0].contains(&format!("the {whole} whole frames")), "{warnings:?}");
        assert!(rig.host().stopped && rig.warnings().is_empty());
    }
    let mut wrong = good.clone();
    wrong[second_at + 8..second_at + 12].copy_from_slice(&[0x7f, 0, 0, 0]);
    let file = write(&folder, "wrong.pcap", &wrong);
    let mut rig = Rig::new("FromDump", &file.display().to_string(), 0, 1);
    assert_eq!(drain(&mut rig).len(), 1);
    assert!(rig.warnings()[0].contains("the length of a frame is impossible"));
}

#[test]
fn places_in_the_file_can_be_gone_to() {
    let folder = folder();
    let file = ten_frames(&folder);
    let third = 24 + 3 * 16 + 20 + 21 + 22;
    let mut rig = Rig::new("FromDump", &format!("{}, FILEPOS {third}, BURST 1", file.display()), 0, 1);
    assert_eq!(firsts(&rig.task().1), [3]);
    assert_eq!(rig.read("packet_filepos"), third.to_string());
    rig.write("filepos", "24").unwrap();
    assert_eq!(firsts(&rig.task().1), [0]);
    let refusal = rig.write("filepos", "30").unwrap_err();
    assert_eq!(refusal, "no frame starts at byte 30; the next one starts at 60");
    assert!(rig.write("filepos", "100000").unwrap_err().contains("ends in front of byte 100000"));
    let mistakes = Rig::try_new("FromDump", &format!("{}, FILEPOS 25", file.display()), 0, 1).err().unwrap();
    assert!(mistakes.contains("no frame starts at byte 25"), "{mistakes}");
}

#[test]
fn pcapng_is_read_but_its_places_are_not_known() {
    let folder = folder();
    let mut file: Vec<u8> = vec![];
    let block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len()) as u32;
        [&kind.to_le_bytes(), &len.to_le_bytes(), body, &len.to_le_bytes()].concat()
    };
    file.extend(block(
        0x0a0d_0d0a,
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
    ));
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0]));
    file.extend(block(6, &[0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 9, 8, 7, 6]));
    let path = write(&folder, "ng.pcapng", &file);
    let mut rig = Rig::new("FromDump", &path.display().to_string(), 0, 1);
    let out = drain(&mut rig);
    assert_eq!((out[0].packet.bytes.clone(), out[0].packet.timestamp_ns), (vec![9, 8, 7, 6], 5_000));
    assert_eq!((rig.read("filepos"), rig.read("packet_filepos")), ("-".into(), "-".into()));
    assert!(rig.write("filepos", "24").is_err());
}

#[test]
fn a_pool_without_slots_makes_the_source_wait() {
    let folder = folder();
    let frames = vec![(0u64, &[1u8; 14][..]); 3000];
    let file = write(&folder, "many.pcap", &pcap(1, &frames));
    let mut rig = Rig::new("FromDump", &file.display().to_string(), 0, 1);
    // The rig's pool has 2,048 slots; the test keeps them all for a while.
    let mut kept = vec![Packet::EMPTY; 4096];
    let got = rig.host().pool().alloc(&mut kept);
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.host().pool().free_all(&kept[..got]);
    assert_eq!(drain(&mut rig).len(), 3000);
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_all_at_once() {
    let wrong = "/nonexistent/x.pcap, perhaps, SAMPLE x, START 1, START_AFTER 2, END 1, INTERVAL 2, STOP true, \
                 END_CALL a.b, COLOUR 3";
    let mistakes = Rig::try_new("FromDump", wrong, 0, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 8, "{mistakes}");
    for part in ["cannot open /nonexistent/x.pcap", "START and START_AFTER", "no element `a`", "COLOUR"] {
        assert!(mistakes.contains(part), "{part}: {mistakes}");
    }
    let folder = folder();
    let mut junk = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
    junk.write_all(b"this is text, not a capture at all").unwrap();
    let mistakes = Rig::try_new("FromDump", &junk.path().display().to_string(), 0, 1).err().unwrap();
    assert!(mistakes.contains("neither pcap nor pcapng"), "{mistakes}");
    assert!(Rig::try_new("FromDump", "", 0, 1).err().unwrap().contains("FILENAME"));
}

#[test]
fn a_capture_whose_packets_are_pulled() {
    let folder = folder();
    let frames: Vec<Vec<u8>> = (0..5).map(|number| udp_frame(&[number; 20])).collect();
    let timed: Vec<(u64, &[u8])> = frames.iter().map(|frame| (7, frame.as_slice())).collect();
    let path = write(&folder, "in.pcap", &pcap(1, &timed));
    let config = format!("{}, STOP true", path.display());
    let mut rig = Rig::beside_queue("FromDump", &config, 1, false, &std::sync::Arc::new(())).unwrap();
    let bytes = |packets: Vec<TestPacket>| packets.into_iter().map(|packet| packet.bytes).collect::<Vec<_>>();
    assert_eq!(bytes(rig.pull(0, 3)), frames[..3]);
    assert_eq!(bytes(rig.pull(0, 64)), frames[3..]);
    assert!(rig.pull(0, 64).is_empty());
    assert!(rig.host().stopped);
}
