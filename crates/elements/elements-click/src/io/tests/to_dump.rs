use super::*;
use crate::testing::{Exit, Rig};
use element::element::Progress;
use element::work::NodeCounter;
use packet::anno;
use std::process::Command;

#[test]
fn packets_stand_in_the_file_with_their_times_and_lengths() {
    let folder = folder();
    let path = folder.path().join("out.pcap");
    let mut rig = Rig::new("ToDump", &path.display().to_string(), 1, 0);
    rig.host().now_ns = 5_000_000_007;
    let cut = stamped(&[2; 60], 1_000_000_123).with_anno(anno::EXTRA_LENGTH, 40);
    let out = rig.push(0, &[cut, stamped(&[3; 5000], 9), stamped(&[], 0)]);
    assert_eq!(out, []);
    assert_eq!((rig.read("count"), rig.read("filename")), ("3".into(), path.display().to_string()));
    rig.write("reset_counts", "").unwrap();
    assert_eq!(rig.read("count"), "0");
    drop(rig);
    let expected = [(1_000_000_123, 100, vec![2; 60]), (9, 5000, vec![3; 2000]), (5_000_000_007, 0, vec![])];
    assert_eq!(frames_of(&path), expected);
}

#[test]
fn lengths_and_encapsulation_are_as_told() {
    let folder = folder();
    for (arguments, link_type, captured, original) in [
        ("30", 1, 30, 100),
        ("SNAPLEN 0, ENCAP IP", 101, 60, 100),
        ("20, FDDI, EXTRA_LENGTH false", 10, 20, 60),
        ("ENCAP SLL, UNBUFFERED true, NANO false", 113, 60, 100),
    ] {
        let path = folder.path().join("out.pcap");
        let mut rig = Rig::new("ToDump", &format!("{}, {arguments}", path.display()), 1, 0);
        rig.push(0, &[stamped(&[2; 60], 1).with_anno(anno::EXTRA_LENGTH, 40)]);
        if arguments.contains("UNBUFFERED") {
            assert_eq!(frames_of(&path).len(), 1);
        }
        drop(rig);
        assert_eq!(CaptureReader::open(&path).unwrap().link_type(), Some(link_type));
        assert_eq!(frames_of(&path), [(1, original, vec![2; captured])], "{arguments}");
    }
}

#[test]
fn with_an_output_packets_go_on_and_are_written_as_they_were() {
    let folder = folder();
    let path = folder.path().join("out.pcap");
    let mut rig = Rig::new("ToDump", &path.display().to_string(), 1, 1);
    let packet = stamped(&[2; 60], 1);
    let out = rig.push_one(0, &packet);
    assert_eq!((out.exit, out.packet), (Exit::Port(0), packet));
    drop(rig);
    assert_eq!(frames_of(&path).len(), 1);
}

#[test]
fn pulled_packets_are_written() {
    let folder = folder();
    let path = folder.path().join("out.pcap");
    let mut rig = Rig::new("ToDump", &path.display().to_string(), 1, 0);
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.feed(0, &vec![stamped(&[4; 64], 3); 40]);
    assert_eq!((rig.task(), rig.task()), ((Progress::Worked, vec![]), (Progress::Worked, vec![])));
    // What is held back is written once a second.
    rig.advance(1_000_000_000);
    assert_eq!(frames_of(&path).len(), 40);
}

#[test]
fn a_full_disk_is_told_with_the_number_of_packets_and_the_others_are_dropped() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIP: this system has no /dev/full");
        return;
    }
    let mut rig = Rig::new("ToDump", "/dev/full, UNBUFFERED true", 1, 0);
    let warnings = rig.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("the file holds 0 whole frames"), "{warnings:?}");
    let out = rig.push(0, &[stamped(&[1; 60], 1), stamped(&[2; 60], 1)]);
    assert!(out.len() == 2 && out.iter().all(|out| out.exit == Exit::Dropped("write-failed".into())));
    assert_eq!(rig.read("count"), "0");
    rig.feed(0, &[stamped(&[1; 60], 1)]);
    let (progress, out) = rig.task();
    assert_eq!((progress, out[0].exit.clone()), (Progress::Worked, Exit::Dropped("write-failed".into())));
    assert!(rig.warnings().is_empty(), "it is told once");
    let mut through = Rig::new("ToDump", "/dev/full, UNBUFFERED true", 1, 1);
    through.push_one(0, &stamped(&[1; 60], 1));
    assert_eq!(through.push_one(0, &stamped(&[1; 60], 1)).exit, Exit::Port(0));
}

#[test]
fn packets_are_sent_when_they_are_in_the_file() {
    let folder = folder();
    let path = folder.path().join("out.pcap");
    let mut rig = Rig::new("ToDump", &path.display().to_string(), 1, 0);
    assert_eq!(rig.push(0, &vec![stamped(&[1; 60], 1); 100]), []);
    let accounts = |rig: &mut Rig| {
        [NodeCounter::Held, NodeCounter::Released, NodeCounter::Sent]
            .map(|a| rig.host().node_counters[a as usize])
    };
    assert_eq!(accounts(&mut rig), [100, 0, 0]);
    rig.advance(50_000_000);
    assert_eq!((accounts(&mut rig), frames_of(&path).len()), ([100, 100, 100], 100));
}

#[test]
fn mistakes_are_collected() {
    let mistakes = Rig::try_new("ToDump", "f, x, ETHR, USE_ENCAP_FROM a b, Y 3", 1, 0).err().unwrap();
    assert_eq!(mistakes.lines().count(), 5, "{mistakes}");
    assert!(mistakes.contains("did you mean `ETHER`"), "{mistakes}");
    assert!(!Path::new("f").exists(), "a configuration with mistakes leaves no file");
    let mistakes = Rig::try_new("ToDump", "/nonexistent/folder/f", 1, 0).err().unwrap();
    assert!(mistakes.contains("cannot create /nonexistent/folder/f"), "{mistakes}");
    let both = Rig::try_new("ToDump", "f, ENCAP IP, USE_ENCAP_FROM a", 1, 0).err().unwrap();
    assert!(both.contains("exclude each other"), "{both}");
}

#[test]
fn tshark_reads_what_is_written() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIP: tshark is not installed (apt install tshark)");
        return;
    }
    let folder = folder();
    let path = folder.path().join("out.pcap");
    let mut rig = Rig::new("ToDump", &path.display().to_string(), 1, 0);
    rig.push(
        0,
        &[stamped(&udp_frame(&[1; 10]), 1_700_000_000_123_456_789), stamped(&udp_frame(&[2; 20]), 1)],
    );
    drop(rig);
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "udp.dstport", "-e", "udp.length"];
    let output = Command::new("tshark").arg("-r").arg(&path).args(fields).output().expect("tshark runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "1700000000.123456789\t53\t18\n0.000000001\t53\t28\n", "{output:?}");
}

#[test]
fn what_from_dump_read_is_what_to_dump_writes() {
    let folder = folder();
    let frames: Vec<(u64, &[u8])> = vec![(7_000_001, &[1; 60]), (8_000_002, &[2; 1500])];
    let input = write(&folder, "in.pcap", &pcap(1, &frames));
    let output = folder.path().join("out.pcap");
    let mut source = Rig::new("FromDump", &input.display().to_string(), 0, 1);
    let packets: Vec<TestPacket> = source.task().1.into_iter().map(|out| out.packet).collect();
    let mut sink = Rig::new("ToDump", &output.display().to_string(), 1, 0);
    sink.push(0, &packets);
    drop(sink);
    assert_eq!(frames_of(&input), frames_of(&output));
}
