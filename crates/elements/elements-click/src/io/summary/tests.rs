use super::field::TABLE;
use crate::testing::{Exit, Out, Rig, TestPacket, random_frames};
use element::element::Progress;
use packet::anno;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn packets(config: &str) -> (Vec<TestPacket>, Rig) {
    let mut rig = Rig::new("FromIPSummaryDump", config, 0, 1);
    let mut packets = vec![];
    loop {
        let (progress, out) = rig.task();
        packets.extend(out.into_iter().map(|Out { packet, .. }| packet));
        if progress != Progress::Worked {
            return (packets, rig);
        }
    }
}

/// Packets that a text describes.
fn packets_of(text: &str, arguments: &str) -> Vec<TestPacket> {
    let (packets, mut rig) = packets(&format!("DATA \"{text}\"{arguments}"));
    assert_eq!(rig.warnings(), Vec::<String>::new(), "{text}");
    packets
}

/// The lines that packets become, without those that start with `!`, unless `header`.
fn lines(packets: &[TestPacket], arguments: &str, header: bool) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    let mut rig = Rig::new("ToIPSummaryDump", &format!("{}, {arguments}", path.display()), 1, 1);
    let out = rig.push(0, packets);
    assert!(out.iter().map(|out| &out.packet).eq(packets), "packets leave as they came");
    drop(rig);
    let text = std::fs::read_to_string(path).unwrap();
    let keep = |line: &&str| header || !line.starts_with('!') || line.starts_with("!bad");
    text.lines().filter(keep).map(str::to_string).collect()
}

fn udp(payload: &[u8]) -> TestPacket {
    let mut frame = vec![];
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 0x1a], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [192, 168, 1, 2], 64)
        .udp(1234, 53)
        .write(&mut frame, payload)
        .unwrap();
    TestPacket {
        net: Some(14),
        trans: Some(34),
        timestamp_ns: 996_033_261_451_094_000,
        ..TestPacket::frame(&frame)
    }
}

fn tcp() -> TestPacket {
    let mut packet = vec![];
    etherparse::PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 9)
        .tcp(80, 4000, 93_167_339, 480)
        .ack(93_178_192)
        .psh()
        .write(&mut packet, b"a \"b\"\n\xff")
        .unwrap();
    TestPacket::ip(&packet)
}

#[test]
fn fields_are_written_as_the_manual_shows() {
    let cases = [
        ("timestamp ts_sec ts_usec ts_usec1", "996033261.451094 996033261 451094 996033261451094"),
        ("ip_src ip_dst ip_ttl ip_proto ip_hl ip_len ip_id ip_tos", "10.0.0.1 192.168.1.2 64 U 20 62 0 0"),
        ("ip_fragoff ip_frag ip_dscp ip_ecn ip_capture_len", "0! ! 0 no 62"),
        ("sport dport udp_len payload_len wire_len count", "1234 53 42 34 76 1"),
        ("eth_src eth_dst eth_type", "02-00-00-00-00-1A 02-00-00-00-00-02 0800"),
        ("tcp_seq tcp_flags icmp_type none link direction aggregate", "- - - - 0 > 0"),
        ("src dst 'ip len' proto \"payload len\"", "10.0.0.1 192.168.1.2 62 U 34"),
    ];
    for (fields, expected) in cases {
        assert_eq!(lines(&[udp(&[7; 34])], &format!("FIELDS {fields}"), false), [expected], "{fields}");
    }
    // As in Click's own test of these fields.
    for (payload, expected) in [
        (&b""[..], "u3bJz@iaYsq6aMaMSJVq_b d41d8cd98f00b204e9800998ecf8427e"),
        (b"hi there\n", "sy@Uze03MHB84qQruJ_zma 12f6bb1941df66b8f138a446d4e8670c"),
    ] {
        let fields = "FIELDS payload_md5 payload_md5_hex";
        assert_eq!(lines(&[udp(payload)], fields, false), [expected]);
    }
    let fields = "CONTENTS tcp_seq tcp_ack tcp_flags tcp_window tcp_off tcp_urp payload";
    assert_eq!(lines(&[tcp()], fields, false), [r#"93167339 93178192 PA 480 20 0 "a \"b\"\n\377""#]);
    assert_eq!(lines(&[udp(&[])], "HEADER true", false), ["10.0.0.1 192.168.1.2"]);
}

#[test]
fn annotations_are_written() {
    let packet = udp(&[1; 10])
        .with_anno(anno::PAINT, 1)
        .with_anno(anno::AGGREGATE, 973)
        .with_anno(anno::EXTRA_PACKETS, 4)
        .with_anno(anno::FIRST_TIMESTAMP, 1_000_000_001);
    let fields = "FIELDS link direction aggregate count first_timestamp";
    assert_eq!(lines(&[packet], fields, false), ["1 < 973 5 1.000000001"]);
}

#[test]
fn headers_tell_what_the_lines_hold() {
    let header = lines(&[], "FIELDS ip_src tcp_flags, BANNER \"a b\"", true);
    assert_eq!(header, ["!IPSummaryDump 1.3", "!creator \"a b\"", "!data ip_src tcp_flags"]);
    let verbose = lines(&[], "VERBOSE true", true);
    assert!(verbose[1].starts_with("!host ") && verbose[2] == "!runtime 1.000000 (1970-01-01 00:00:01 UTC)");
    assert!(lines(&[udp(&[])], "HEADER false", true).iter().all(|line| !line.starts_with('!')));
}

#[test]
fn bad_packets_are_told_and_give_what_they_have() {
    let cut = |packet: &TestPacket, at: usize| {
        let mut packet = packet.clone();
        packet.bytes.truncate(at);
        packet
    };
    let options = "FIELDS ip_src sport dport tcp_seq, BAD_PACKETS true, CAREFUL_TRUNC false";
    let whole = tcp();
    let cases = [
        (whole.clone(), vec!["1.2.3.4 80 4000 93167339"]),
        (cut(&whole, 23), vec!["!bad truncated TCP/UDP header", "1.2.3.4 80 - -"]),
        (cut(&whole, 26), vec!["!bad truncated TCP header", "1.2.3.4 80 4000 -"]),
        (cut(&whole, 14), vec!["!bad truncated IP header capture", "- - - -"]),
        (cut(&whole, 2), vec!["!bad truncated IP header", "- - - -"]),
        (TestPacket::frame(&whole.bytes), vec!["!bad no IP header", "- - - -"]),
        (TestPacket::ip(&[0x65; 60]), vec!["!bad IP version 6", "- - - -"]),
        (udp(&[1; 4]), vec!["10.0.0.1 1234 53 -"]),
    ];
    for (packet, expected) in cases {
        assert_eq!(lines(&[packet], options, false), expected);
    }
    let careful = "FIELDS ip_len, BAD_PACKETS true";
    assert_eq!(lines(&[cut(&whole, 40)], careful, false), ["!bad truncated IP missing 7", "47"]);
    let known = cut(&whole, 40).with_anno(anno::EXTRA_LENGTH, 7);
    assert_eq!(lines(std::slice::from_ref(&known), careful, false), ["47"]);
    let ignored = "FIELDS ip_len, BAD_PACKETS true, EXTRA_LENGTH false";
    assert_eq!(lines(&[known], ignored, false)[0], "!bad truncated IP missing 7");
}

#[test]
fn fragments_and_icmp_have_their_fields() {
    let made = packets_of(
        "!data ip_proto ip_fragoff icmp_type icmp_code icmp_flowid icmp_seq icmp_nextmtu\n\
         I 0 echo 0 7 9 -\nI 0+ echo-reply 1 2 3 -\nI 16 8 - - - -\nI 0! unreachable 4 - - 1400\nI 0 99 5 - - -\n",
        "",
    );
    let fields =
        "FIELDS ip_fragoff ip_frag icmp_type icmp_type_name icmp_code icmp_flowid icmp_seq icmp_nextmtu";
    assert_eq!(
        lines(&made, fields, false),
        [
            "0 . 8 echo 0 7 9 -",
            "0+ F 0 echo-reply 1 2 3 -",
            "16 f - - - - - -",
            "0! ! 3 unreachable 4 - - 1400",
            "0 . 99 99 5 - - -",
        ]
    );
}

#[test]
fn packets_with_several_packets_in_them_become_several_lines() {
    let packet = TestPacket { timestamp_ns: 5_000_000_000, ..udp(&[1; 10]) }
        .with_anno(anno::EXTRA_PACKETS, 2)
        .with_anno(anno::FIRST_TIMESTAMP, 1_000_000_000);
    let fields = "MULTIPACKET true, FIELDS timestamp ip_len";
    assert_eq!(
        lines(std::slice::from_ref(&packet), fields, false),
        ["1.000000 38", "3.000000 38", "5.000000 38"]
    );
    assert_eq!(lines(&[packet], "MULTIPACKET true, FIELDS ip_id count", false), ["0 3"]);
}

#[test]
fn lines_become_packets_with_headers_and_annotations() {
    let text = "!data timestamp ip_src ip_dst sport dport ip_proto ip_len ip_id ip_ttl tcp_flags count direction \
                aggregate\n\
                996033261.451094 192.150.187.37 192.168.1.100 22 2943 T 132 48759 254 SA 3 < 973\n";
    let made = packets_of(text, "");
    assert_eq!(made.len(), 1);
    let packet = &made[0];
    assert_eq!((packet.mac, packet.net, packet.trans), (None, Some(0), Some(20)));
    assert_eq!((packet.bytes.len(), packet.anno(anno::EXTRA_LENGTH)), (40, 92));
    assert_eq!(packet.timestamp_ns, 996_033_261_451_094_000);
    assert_eq!((packet.anno(anno::EXTRA_PACKETS), packet.anno(anno::PAINT)), (2, 1));
    assert_eq!((packet.anno(anno::AGGREGATE), packet.anno(anno::DST_IP)), (973, 0xc0a8_0164));
    let ip = etherparse::Ipv4HeaderSlice::from_slice(&packet.bytes).unwrap();
    assert_eq!((ip.total_len(), ip.identification(), ip.ttl()), (132, 48759, 254));
    let tcp = etherparse::TcpHeaderSlice::from_slice(&packet.bytes[20..]).unwrap();
    assert!(tcp.syn() && tcp.ack() && !tcp.psh());
    assert_eq!((tcp.source_port(), tcp.destination_port(), tcp.data_offset()), (22, 2943, 5));
}

#[test]
fn with_checksum_packets_are_whole_and_right() {
    let text = "!data ip_src ip_dst sport dport ip_proto ip_len payload\n1.2.3.4 5.6.7.8 1 2 U 60 \\\"abc\\\"\n\
                1.2.3.4 5.6.7.8 1 2 T 61 \\\"abc\\\"\n1.2.3.4 5.6.7.8 - - I 50 -\n1.2.3.4 5.6.7.8 - - 99 24 -\n";
    let made = packets_of(text, ", CHECKSUM true");
    assert_eq!(made.iter().map(|packet| packet.bytes.len()).collect::<Vec<_>>(), [60, 61, 50, 24]);
    for packet in &made {
        let sliced = etherparse::SlicedPacket::from_ip(&packet.bytes).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!("IPv4") };
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
        let header = ip.header().to_header();
        match sliced.transport {
            Some(etherparse::TransportSlice::Udp(udp)) => {
                assert_eq!(udp.payload().len(), 4, "the header has options where the lengths leave room");
                let sum = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
                assert_eq!(udp.checksum(), sum);
                assert_eq!(&udp.payload()[..4], b"abc\0");
            }
            Some(etherparse::TransportSlice::Tcp(tcp)) => {
                assert_eq!(
                    tcp.checksum(),
                    tcp.calc_checksum_ipv4(header.source, header.destination).unwrap()
                );
            }
            Some(etherparse::TransportSlice::Icmpv4(icmp)) => {
                assert_eq!(icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload()));
            }
            _ => assert_eq!(packet.bytes[9], 99),
        }
    }
}

#[test]
fn defaults_come_from_arguments_and_bang_lines() {
    let flow = packets_of("!data ip_id\n1\n", ", FLOWID 1.2.3.4 5 6.7.8.9 10 U");
    let fields = "FIELDS ip_src sport ip_dst dport ip_proto ip_ttl udp_len";
    assert_eq!(lines(&flow, fields, false), ["1.2.3.4 5 6.7.8.9 10 U 100 8"]);
    let bang = packets_of(
        "!data src\n!flowid 1.2.3.4 5 - - \n!proto U\n!aggregate 7\n# note\n\n9.9.9.9\n",
        ", PROTO 6",
    );
    assert_eq!(bang.len(), 1);
    assert_eq!(bang[0].anno(anno::AGGREGATE), 7);
    assert_eq!(lines(&bang, fields, false), ["9.9.9.9 5 0.0.0.0 0 U 100 8"]);
    let fields_given = packets_of("7\n8\n", ", DEFAULT_FIELDS ip_id, DEFAULT_PROTO 17");
    assert_eq!(lines(&fields_given, "FIELDS ip_id ip_proto", false), ["7 U", "8 U"]);
    let unfragmented = packets_of("!data ip_frag ip_id\n! 7\n. 8\n", "");
    assert_eq!(lines(&unfragmented, "FIELDS ip_id ip_fragoff", false), ["7 0!", "8 0"]);
    let old = packets_of("!IPSummaryDump 1.0\n!data 'ip fragoff'\n3+\n", "");
    assert_eq!(lines(&old, "FIELDS ip_fragoff", false), ["24+"]);
}

#[test]
fn lengths_that_do_not_fit_the_headers_cut_or_fill_them() {
    let cut = packets_of("!data ip_len\n30\n", "");
    assert_eq!((cut[0].bytes.len(), cut[0].anno(anno::EXTRA_LENGTH)), (30, 0));
    let options = packets_of("!data ip_len payload_len tcp_flags\n72 8 S\n", "");
    assert_eq!(lines(&options, "FIELDS ip_hl tcp_off payload_len tcp_flags", false), ["20 44 8 S"]);
    let payload = packets_of("!data payload_len ip_proto\n1000 U\n", "");
    assert_eq!(lines(&payload, "FIELDS ip_len udp_len payload_len", false), ["1028 1008 1000"]);
    let ethernet = packets_of("!data eth_src eth_type ip_src wire_len\n1-2-3-4-5-6 0806 1.1.1.1 60\n", "");
    assert_eq!((ethernet[0].bytes.len(), ethernet[0].mac, ethernet[0].net), (14, Some(0), None));
    assert_eq!(ethernet[0].anno(anno::EXTRA_LENGTH), 46);
    assert_eq!(ethernet[0].bytes, [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 8, 6]);
}

#[test]
fn a_line_for_several_packets_becomes_them() {
    let text = "!data timestamp first_timestamp count ip_len ip_proto\n5.0 1.0 3 310 U\n";
    let packets = packets_of(text, ", MULTIPACKET true");
    let fields = "FIELDS timestamp count ip_len udp_len";
    assert_eq!(
        lines(&packets, fields, false),
        ["1.000000 1 103 83", "3.000000 1 103 83", "5.000000 1 104 84"]
    );
    assert_eq!(
        packets.iter().map(|packet| packet.anno(anno::EXTRA_LENGTH)).collect::<Vec<_>>(),
        [75, 75, 76]
    );
    assert_eq!(packets_of(text, "").len(), 1);
}

#[test]
fn timing_sampling_stopping_and_handlers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    let lines: String = (0..1000).map(|second| format!("{second}.5 {second}\n")).collect();
    std::fs::write(&path, format!("!data timestamp ip_id\n{lines}")).unwrap();
    let (packets, mut rig) = packets(&format!("{}, SAMPLE 0.25, STOP true", path.display()));
    assert!((180..320).contains(&packets.len()), "{}", packets.len());
    assert!(rig.host().stopped);
    assert_eq!((rig.read("sampling_prob"), rig.read("encap")), ("0.25".into(), "IP".into()));
    let mut rig = Rig::new("FromIPSummaryDump", &format!("{}, TIMING true, BURST 5", path.display()), 0, 1);
    assert_eq!(rig.task().1.len(), 1);
    assert_eq!(rig.task().0, Progress::Idle);
    rig.host().now_ns += 7_000_000_000;
    assert_eq!((rig.task().1.len(), rig.task().1.len()), (5, 2));
    rig.write("active", "false").unwrap();
    assert_eq!((rig.task().0, rig.read("active")), (Progress::Idle, "false".into()));
    assert!(rig.read("filepos").parse::<u64>().unwrap() > 0);
    assert_eq!(rig.read("filesize"), std::fs::metadata(&path).unwrap().len().to_string());
    rig.write("stop", "").unwrap();
    rig.task();
    assert!(rig.host().stopped);
}

#[test]
fn lines_that_make_no_sense_are_told_once_with_their_place() {
    let (packets, mut rig) =
        packets("DATA \"1.2.3.4\n!data ip_src nonsense ip_id\nx y z\n1.1.1.1 - x\n!proto q\n\"");
    assert_eq!(packets.len(), 1);
    let expected = [
        "<data>:1: there is no `!data` line in front of it",
        "<data>:2: `nonsense` is no field; it is left out",
        "<data>:5: `!proto` takes a protocol",
    ];
    assert_eq!(rig.warnings(), expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dump");
    std::fs::write(&path, format!("!data ip_id\n{}\n5\n!binary\n6\n", "x".repeat(1 << 20))).unwrap();
    let (packets, mut rig) = self::packets(&path.display().to_string());
    assert_eq!(packets.len(), 1);
    let warnings = rig.warnings();
    assert!(warnings.len() == 2 && warnings[0].contains(":2: the line is longer than"), "{warnings:?}");
    assert!(warnings[1].contains(":4: this is a binary dump"), "{warnings:?}");
}

#[test]
fn mistakes_in_configurations_are_collected() {
    let mistakes = |class: &str, config: &str| Rig::try_new(class, config, 0, 1).err().unwrap();
    let wrong =
        mistakes("FromIPSummaryDump", "/nonexistent/f, STOP 7, FIELDS ip_srk, FLOWID 1.2.3.4, COLOUR 1");
    assert_eq!(wrong.lines().count(), 5, "{wrong}");
    assert!(
        wrong.contains("did you mean `ip_src`") && wrong.contains("cannot open /nonexistent/f"),
        "{wrong}"
    );
    assert!(mistakes("FromIPSummaryDump", "").contains("FILENAME"));
    assert!(mistakes("FromIPSummaryDump", "f, DATA \"x\"").contains("exclude each other"));
    assert!(Rig::try_new("FromIPSummaryDump", "/nonexistent/f, ALLOW_NONEXISTENT true", 0, 1).is_ok());
    let wrong =
        Rig::try_new("ToIPSummaryDump", "f, FIELDS x ip_src y, BINARY true, HEADER 7", 1, 0).err().unwrap();
    assert_eq!(wrong.lines().count(), 4, "{wrong}");
    assert!(!Path::new("f").exists());
    assert!(Rig::try_new("ToIPSummaryDump", "f, FIELDS ''", 1, 0).is_err());
}

#[test]
fn without_an_output_packets_are_sent_and_pulled_ones_too() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("dump");
    let mut rig = Rig::new("ToIPSummaryDump", &format!("{}, HEADER false", path.display()), 1, 0);
    assert_eq!(rig.push(0, &[udp(&[])]), []);
    rig.feed(0, &[udp(&[]), udp(&[])]);
    assert_eq!(rig.task(), (Progress::Worked, vec![]));
    assert_eq!(rig.task(), (Progress::Idle, vec![]));
    rig.write("flush", "").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    let mut through = Rig::new("ToIPSummaryDump", &path.display().to_string(), 1, 1);
    through.feed(0, &[udp(&[])]);
    assert_eq!(through.task().1[0].exit, Exit::Port(0));
}

#[test]
fn a_full_disk_is_told_and_packets_are_dropped() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIP: this system has no /dev/full");
        return;
    }
    let mut rig = Rig::new("ToIPSummaryDump", "/dev/full, HEADER false", 1, 0);
    rig.push(0, &[udp(&[]), udp(&[])]);
    rig.advance(2_000_000_000);
    let warnings = rig.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("holds 0 whole packets, 2 packets were lost"),
        "{warnings:?}"
    );
    assert_eq!(rig.push_one(0, &udp(&[])).exit, Exit::Dropped("write-failed".into()));
    assert!(rig.write("flush", "").is_err() && rig.warnings().is_empty());
}

#[test]
fn random_packets_are_described_without_a_panic() {
    let names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    let fields = format!("BAD_PACKETS true, FIELDS {}", names.join(" "));
    for (net, trans) in [(Some(14), Some(34)), (Some(0), None), (None, None), (Some(-14), None)] {
        let packets: Vec<TestPacket> = random_frames(7, 200)
            .iter()
            .map(|frame| TestPacket { net, trans, ..TestPacket::frame(frame) })
            .collect();
        let lines = lines(&packets, &fields, false);
        assert_eq!(lines.iter().filter(|line| !line.starts_with('!')).count(), 200);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_read_again(
        addresses in any::<[u32; 2]>(), ports in any::<[u16; 2]>(), words in any::<[u32; 2]>(),
        flags in 0u16..512, ttl: u8, tos: u8, id: u16, tcp: bool, offset in 0u16..3, payload in 0u32..1400,
    ) {
        let fields = "ip_src ip_dst sport dport ip_proto ip_id ip_ttl ip_tos ip_fragoff tcp_flags tcp_seq tcp_ack \
                      payload_len";
        let [source, destination] = addresses.map(std::net::Ipv4Addr::from);
        let flags: String = (0..9).filter(|bit| flags & 1 << bit != 0).map(|bit| "FSRPAUECN".as_bytes()[bit] as char).collect();
        let flags = if flags.is_empty() { ".".to_string() } else { flags };
        let offset = offset * 8;
        let dash = |text: String, there: bool| if there { text } else { "-".into() };
        let line = format!(
            "{source} {destination} {} {} {} {id} {ttl} {tos} {offset} {} {} {} {payload}",
            dash(ports[0].to_string(), offset == 0), dash(ports[1].to_string(), offset == 0),
            if tcp { 'T' } else { 'U' }, dash(flags, tcp && offset == 0),
            dash(words[0].to_string(), tcp && offset == 0), dash(words[1].to_string(), tcp && offset == 0),
        );
        let packets = packets_of(&format!("!data {fields}\n{line}\n"), "");
        prop_assert_eq!(lines(&packets, &format!("FIELDS {fields}"), false), vec![line]);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "(!data( [a-z_]{2,10}){1,4}\n)?([-0-9.+!A-Za-z \n]{0,60}){0,4}") {
        let text = text.replace('"', "");
        for arguments in ["", ", CHECKSUM true, MULTIPACKET true, BURST 256"] {
            let config = format!("DATA \"{text}\"{arguments}, DEFAULT_FIELDS ip_len payload_len ip_hl tcp_off eth_type");
            let mut rig = Rig::new("FromIPSummaryDump", &config, 0, 1);
            for _ in 0..4 {
                rig.task();
            }
        }
    }
}

#[test]
fn options_are_read_and_written() {
    let text = "!data ip_src ip_proto ip_opt tcp_opt payload\n\
                1.2.3.4 T rr{2.3.4.5}+3 mss1460;sack1:18 hello\n1.2.3.4 T . nop;nop;ts7:9 -\n1.2.3.4 U rr{}+1 - -\n";
    let made = packets_of(text, ", CHECKSUM true");
    let lengths: Vec<(usize, Option<i32>)> =
        made.iter().map(|packet| (packet.bytes.len(), packet.trans)).collect();
    assert_eq!(lengths, [(20 + 20 + 20 + 16 + 5, Some(40)), (20 + 32, Some(20)), (20 + 8 + 8, Some(28))]);
    for packet in &made {
        assert_eq!(etherparse::SlicedPacket::from_ip(&packet.bytes).map(|_| ()), Ok(()));
    }
    let fields = "FIELDS ip_opt tcp_opt tcp_ntopt tcp_sack payload";
    assert_eq!(
        lines(&made, fields, false),
        [
            "rr{2.3.4.5}+3 mss1460;sack1-18 mss1460;sack1-18 sack1-18 \"hello\"",
            ". ts7:9 . . \"\"",
            "rr{}+1 - - - \"\"",
        ]
    );
    let mut cut = made[0].clone();
    cut.bytes.truncate(70);
    let bad = "FIELDS ip_opt tcp_opt, BAD_PACKETS true, CAREFUL_TRUNC false";
    assert_eq!(lines(&[cut.clone()], bad, false), ["!bad truncated TCP header", "rr{2.3.4.5}+3 -"]);
    cut.bytes.truncate(30);
    assert_eq!(lines(&[cut], bad, false), ["!bad truncated IP header capture", "- -"]);
}
