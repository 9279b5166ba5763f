//! Packets in, packets out.

use super::record_timestamp::PassTimes;
use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
use element::testing::exits;
use element::testing::ip::udp;
use packet::anno::{AGGREGATE, EXTRA_LENGTH, EXTRA_PACKETS};
use std::sync::Arc;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn packet(len: usize) -> TestPacket {
    TestPacket::frame(&vec![0xee; len])
}

fn number_at(packet: &TestPacket, at: usize) -> u64 {
    u64::from_ne_bytes(packet.bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn packets_are_numbered_in_their_order() {
    let mut rig = Rig::new("NumberPacket", "", 1, 1);
    let out = rig.push(0, &[packet(64), packet(40), packet(3000)]);
    for (number, (out, len)) in out.iter().zip([64, 48, 3000]).enumerate() {
        assert_eq!((number_at(&out.packet, 40), out.packet.bytes.len()), (number as u64, len));
        assert!(out.packet.bytes[..40].iter().all(|byte| *byte == 0xee));
    }
    assert_eq!(number_at(&rig.push_one(0, &packet(64)).packet, 40), 3);
    assert_eq!(rig.read("count"), "4");
    let mut rig = Rig::new("NumberPacket", "0, NET_ORDER true", 1, 1);
    let out = rig.push(0, &[packet(8), packet(9)]);
    assert_eq!(out[1].packet.bytes, [0, 0, 0, 0, 0, 0, 0, 1, 0xee]);
    rig.starve(true);
    assert_eq!(rig.push_one(0, &packet(0)).packet.bytes.len(), 8, "it grows in its slot");
    let mut rig = Rig::new("NumberPacket", "4000", 1, 1);
    rig.starve(true);
    assert_eq!(rig.push_one(0, &packet(60)).exit, dropped("no-room"));
    assert_eq!(mistakes("NumberPacket", "-1, NET_ORDER 3", 1, 1).len(), 2);
}

#[test]
fn a_packet_that_is_lengthened_has_the_right_ip_length() {
    let mut rig = Rig::new("NumberPacket", "", 1, 1);
    let out = rig.push_one(0, &TestPacket::ip(&udp(b""))).packet;
    assert_eq!((out.bytes.len(), &out.bytes[2..4]), (48, &[0, 48][..]));
}

#[test]
fn numbers_are_counted_and_checked() {
    let mut number = Rig::new("NumberPacket", "", 1, 1);
    let numbered: Vec<TestPacket> =
        number.push(0, &vec![packet(64); 4]).into_iter().map(|out| out.packet).collect();
    let again = [numbered.clone(), vec![numbered[1].clone()]].concat();
    let mut rig = Rig::new("CheckNumberPacket", "COUNT 3", 1, 2);
    let ports = [0, 0, 0, 1, 0].map(Exit::Port);
    assert_eq!(exits(&rig.push(0, &again)), ports);
    assert_eq!(rig.push_one(0, &packet(47)).exit, Exit::Port(1));
    assert_eq!((rig.read("max"), rig.read("min")), ("[1] : 2".into(), "[0] : 1".into()));
    assert_eq!((rig.read("dump"), rig.read("count")), ("0: 1\n1: 2\n2: 1".into(), "3".into()));
    rig.write("count", "4").unwrap();
    assert_eq!(rig.push_one(0, &numbered[3]).exit, Exit::Port(0));
    assert_eq!(rig.read("dump"), "0: 1\n1: 2\n2: 1\n3: 1");
    assert!(rig.write("count", "1000000000").is_err());

    let mut rig = Rig::new("CheckNumberPacket", "40", 1, 1);
    assert_eq!((rig.read("max"), rig.read("min")), ("[-1] : -1".into(), "[-1] : 2147483647".into()));
    assert_eq!(rig.push_one(0, &numbered[0]).exit, dropped("out-of-scope"));
    assert_eq!(rig.push_one(0, &packet(0)).exit, dropped("short-packet"));
    assert_eq!(mistakes("CheckNumberPacket", "x, 99999999", 1, 1).len(), 2);
}

/// An element beside a recorder of the name `rec`, or that recorder, with the times that both share.
fn beside(class: &str, config: &str, outputs: usize, times: &Arc<PassTimes>) -> Rig {
    let name = if class == "RecordTimestamp" { "e" } else { "rec" };
    Rig::with_state(class, config, (1, outputs), name, times).unwrap()
}

#[test]
fn times_between_two_elements_are_measured() {
    let times = Arc::<PassTimes>::default();
    let mut record = beside("RecordTimestamp", "", 1, &times);
    let mut number = Rig::new("NumberPacket", "", 1, 1);
    let numbered: Vec<TestPacket> =
        number.push(0, &vec![packet(64); 5]).into_iter().map(|out| out.packet).collect();
    for packet in &numbered[..4] {
        record.push_one(0, packet);
        record.advance(10 * US);
    }
    assert_eq!((record.read("recorded"), record.read("missed")), ("4".into(), "0".into()));
    let mut services = element::testing::TestServices::default();
    services.classes.insert("rec".into(), "RecordTimestamp");
    services.classes.insert("other".into(), "Counter");
    let class = element::find(crate::CLASSES, "TimestampDiff").unwrap();
    let shape = element::configure::Shape { inputs: 1, outputs: 1 };
    for (config, message) in
        [("other", "is a Counter"), ("nobody", "no element"), ("", "RECORDER"), ("rec, N -1", "N:")]
    {
        let mistakes =
            element::testing::configure(class, "e", config, shape, (0, 1), &mut services).err().unwrap();
        assert!(mistakes.contains(message), "{config}: {mistakes}");
    }
    let mut diff =
        Rig::with_named("TimestampDiff", "rec, MAXDELAY 2", (1, 2), ("rec", "RecordTimestamp"), &times);
    diff.advance(100 * US);
    let out = diff.push(0, &numbered);
    let ports = [0, 0, 0, 0, 1].map(Exit::Port);
    assert_eq!(exits(&out), ports);
    assert_eq!(diff.read("dump"), "0: 100\n1: 90\n2: 80\n3: 70");
    for (handler, value) in [
        ("average", "85"),
        ("avg 2", "75"),
        ("min", "70"),
        ("max", "100"),
        ("max 1", "90"),
        ("perc00", "70"),
        ("perc 100", "100"),
        ("perc 0", "70"),
        ("perc 100 3", "70"),
        ("median", "90"),
        ("perc100", "100"),
        ("perc25", "80"),
        ("index", "3"),
        ("last", "70"),
        ("average 99", "0"),
        ("perc99 99", "0"),
    ] {
        assert_eq!(diff.read(handler), value, "{handler}");
    }
    assert_eq!(diff.read("stddev").parse::<f64>().unwrap().round(), 11.0);
    diff.advance(3 * MS);
    assert_eq!(diff.push_one(0, &numbered[0]).exit, Exit::Port(0));
    assert_eq!(diff.host().printed, ["e: packet 0 took 3 ms, more than 2 ms"]);
    assert_eq!(diff.read("index"), "3");
    assert_eq!(diff.push_one(0, &packet(10)).exit, Exit::Port(1));
}

#[test]
fn a_recorder_goes_by_the_packets_numbers() {
    let times = Arc::<PassTimes>::default();
    let mut record = beside("RecordTimestamp", "OFFSET 0, N 4, NET_ORDER true", 1, &times);
    let numbered = |number: u64| TestPacket::frame(&number.to_be_bytes());
    let now_ns = record.host().now_ns;
    record.push(0, &[numbered(2), numbered(4), numbered(u64::MAX), packet(7)]);
    assert_eq!(*times.lock(), [0, 0, now_ns]);
    assert!(times.is_net_order());
    assert_eq!((record.read("recorded"), record.read("missed")), ("1".into(), "3".into()));
    let mut dynamic = beside("RecordTimestamp", "OFFSET 0, N 4, NET_ORDER true, DYNAMIC true", 1, &times);
    dynamic.push_one(0, &numbered(1000));
    assert_eq!(times.lock().len(), 1001);
    assert_eq!(mistakes("RecordTimestamp", "N 0, OFFSET x, COUNTER nobody", 1, 1).len(), 3);
}

fn aggregate(aggregate: u64) -> TestPacket {
    packet(60).with_anno(AGGREGATE, aggregate)
}

/// What a handler writes to a file.
fn written(rig: &mut Rig, handler: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    rig.write(handler, path.to_str().unwrap()).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn aggregates_are_counted() {
    let mut rig = Rig::new("AggregateCounter", "BANNER \"!who\"", 1, 1);
    rig.push(0, &[1, 1, 0, 0, 0, 2, 3, 2].map(aggregate));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let head = "!who\n!num_nonzero 4\n";
    assert_eq!(text(written(&mut rig, "write_text_file")), format!("{head}0 3\n1 2\n2 2\n3 1\n"));
    assert_eq!(
        text(written(&mut rig, "write_pdf_file")),
        format!("{head}0 0.375\n1 0.25\n2 0.25\n3 0.125\n")
    );
    assert!(text(written(&mut rig, "write_ip_file")).ends_with("0.0.0.3 1\n"));
    let binary = written(&mut rig, "write_file");
    assert!(binary.ends_with(&[3u32, 1].map(u32::to_ne_bytes).concat()));
    assert_eq!(
        (rig.read("nagg"), rig.read("count"), rig.read("banner")),
        ("4".into(), "8".into(), "!who".into())
    );
    rig.write("reaggregate_counts", "").unwrap();
    rig.write("banner", "").unwrap();
    assert_eq!(text(written(&mut rig, "write_ascii_file")), "!num_nonzero 3\n1 1\n2 2\n3 1\n");
    rig.write("clear", "").unwrap();
    assert_eq!(rig.read("nagg"), "0");
    assert!(rig.write("write_text_file", "/no/such/folder/file").unwrap_err().contains("/no/such"));
    rig.write("stop", "").unwrap();
    rig.advance(MS * 100);
    assert!(rig.host().stopped);
    assert_eq!(rig.read("active"), "false");
}

#[test]
fn a_packet_counts_as_its_annotations_say() {
    let counted = |config: &str| {
        let mut rig = Rig::new("AggregateCounter", config, 1, 1);
        let annotated = TestPacket { net: Some(14), ..aggregate(7) };
        rig.push_one(0, &annotated.with_anno(EXTRA_PACKETS, 4).with_anno(EXTRA_LENGTH, 100));
        rig.read("count")
    };
    for (config, count) in [
        ("", "5"),
        ("MULTIPACKET false", "1"),
        ("BYTES true", "160"),
        ("BYTES true, EXTRA_LENGTH false", "60"),
        ("BYTES true, IP_BYTES true, EXTRA_LENGTH false", "46"),
    ] {
        assert_eq!(counted(config), count, "{config}");
    }
}

#[test]
fn a_frozen_counter_knows_no_new_aggregates() {
    let mut rig = Rig::new("AggregateCounter", "AGGREGATE_FREEZE 2", 2, 2);
    let ports = |rig: &mut Rig, input, aggregates: &[u64]| -> Vec<Exit> {
        let packets: Vec<TestPacket> = aggregates.iter().map(|at| aggregate(*at)).collect();
        exits(&rig.push(input, &packets))
    };
    assert_eq!(ports(&mut rig, 1, &[5]), [Exit::Port(1)], "input 1 adds none");
    assert_eq!(ports(&mut rig, 0, &[5, 6, 5, 7, 6, 7]), [0, 0, 0, 1, 0, 1].map(Exit::Port));
    assert_eq!(ports(&mut rig, 1, &[5, 7]), [0, 1].map(Exit::Port));
    assert_eq!(
        (rig.read("freeze"), rig.read("nagg"), rig.read("count")),
        ("true".into(), "2".into(), "5".into())
    );
    rig.write("freeze", "false").unwrap();
    assert_eq!(ports(&mut rig, 0, &[7]), [Exit::Port(0)]);
    rig.write("active", "false").unwrap();
    assert_eq!(ports(&mut rig, 0, &[7]), [Exit::Port(1)]);
    rig.write("active", "true").unwrap();
    rig.feed(1, &[aggregate(7), aggregate(8)]);
    assert_eq!(rig.pull(1, 8).len(), 2);
    assert_eq!(rig.read("nagg"), "3");
}

#[test]
fn limits_call_and_stop() {
    let mut rig = Rig::new("AggregateCounter", "AGGREGATE_CALL 1 other.value a b, COUNT_STOP 3", 1, 1);
    assert_eq!(rig.read("aggregate_call"), "1 other.value a b");
    rig.push(0, &[1, 1].map(aggregate));
    assert!(rig.host().handlers.is_empty());
    rig.push(0, &[2].map(aggregate));
    assert_eq!(rig.host().handlers["other.value"], "a b");
    assert!(rig.host().stopped);
    assert_eq!((rig.read("aggregate_call"), rig.read("active")), (String::new(), "false".into()));
    rig.write("count_call", "9 x.y").unwrap();
    assert_eq!(rig.read("count_call"), "9 x.y");
    rig.write("count_call", "").unwrap();
    assert!(rig.write("count_call", "9").is_err() && rig.write("aggregate_call", "x y.z").is_err());
    assert_eq!(mistakes("AggregateCounter", "COUNT_STOP 1, COUNT_FREEZE 2, AGGREGATE_CALL x", 1, 1).len(), 2);
}

#[test]
fn a_recorder_takes_the_byte_order_of_its_counter() {
    let order = Arc::<super::number_packet::NumberOrder>::default();
    let config = "OFFSET 0, COUNTER rec";
    let mut record = Rig::with_named("RecordTimestamp", config, (1, 1), ("rec", "NumberPacket"), &order);
    order.set(true);
    record.push_one(0, &TestPacket::frame(&3u64.to_be_bytes()));
    assert_eq!((record.read("recorded"), record.read("missed")), ("1".into(), "0".into()));
}

/// The aggregates of packets behind an element.
fn aggregates(out: &[element::testing::Out]) -> Vec<u64> {
    out.iter().map(|out| out.packet.anno(AGGREGATE)).collect()
}

#[test]
fn fields_of_ip_packets_become_aggregates() {
    let (udp, tcp) = (TestPacket::ip(&udp(b"ab")), TestPacket::ip(&element::testing::ip::tcp(b"abcd")));
    let field = |config: &str, packet: &TestPacket| {
        let out = Rig::new("AggregateIP", config, 1, 2).push_one(0, packet);
        (out.exit == Exit::Port(0)).then(|| out.packet.anno(AGGREGATE))
    };
    let word = |packet: &TestPacket, at: usize| {
        u64::from(u32::from_be_bytes(packet.bytes[at..at + 4].try_into().unwrap()))
    };
    assert_eq!(field("ip src", &udp), Some(word(&udp, 12)));
    assert_eq!(field("ip dst/8", &udp), Some(u64::from(udp.bytes[16])));
    assert_eq!(field("ip dst/8, UNSHIFT_IP_ADDR true", &udp), Some(u64::from(udp.bytes[16]) << 24));
    assert_eq!(field("ip vers, INCREMENTAL true", &udp.clone().with_anno(AGGREGATE, 5)), Some(5 << 4 | 4));
    assert_eq!(field("dport", &udp), Some(word(&udp, 20) & 0xffff));
    assert_eq!(field("tcp seq", &tcp), Some(word(&tcp, 24)));
    assert_eq!(field("tcp[13] & 0x18", &tcp), Some(u64::from(tcp.bytes[33]) >> 3 & 3));
    assert_eq!(field("data[0:4]", &tcp), Some(u64::from(u32::from_be_bytes(*b"abcd"))));
    assert_eq!(field("data{4:6}", &tcp), Some(0b00_0101), "of 0x61 0x62");
    // Too short, another protocol, a later fragment, no IP packet.
    assert_eq!(
        (field("data[0:4]", &udp), field("tcp seq", &udp), field("seq", &tcp).is_some()),
        (None, None, true)
    );
    let mut later = tcp.clone();
    later.bytes[7] = 1;
    assert_eq!((field("sport", &later), field("ip src", &later).is_some()), (None, true));
    assert_eq!(field("ip src", &packet(64)), None);
    assert_eq!(Rig::new("AggregateIP", "sport", 1, 1).push_one(0, &later).exit, dropped("no-field"));
    let mut rig = Rig::new("AggregateIP", "ip src/8", 1, 1);
    assert_eq!([rig.read("header"), rig.read("bit_offset"), rig.read("bit_length")], ["ip", "96", "8"]);
    assert_eq!(mistakes("AggregateIP", "ip src, INCREMENTAL true", 1, 1).len(), 1);
    assert_eq!(mistakes("AggregateIP", "ip srk, INCREMENTAL 7", 1, 1).len(), 2);
}

#[test]
fn lengths_and_paints_become_aggregates() {
    let long = TestPacket { net: Some(14), ..packet(64) }.with_anno(EXTRA_LENGTH, 100);
    for (config, length) in [("", 164), ("IP true", 150)] {
        assert_eq!(
            aggregates(&Rig::new("AggregateLength", config, 1, 1).push(0, std::slice::from_ref(&long))),
            [length]
        );
    }
    assert_eq!(
        Rig::new("AggregateLength", "IP true", 1, 1).push_one(0, &packet(1)).exit,
        dropped("no-ip-header")
    );
    assert_eq!(Rig::new("AggregateLength", "IP true", 1, 2).push_one(0, &packet(1)).exit, Exit::Port(1));
    let painted = packet(64).with_anno(packet::anno::PAINT, 0xab).with_anno(AGGREGATE, 3);
    for (config, value) in [("", 0xab), ("4", 0xb), ("4, INCREMENTAL true", 0x3b)] {
        assert_eq!(
            aggregates(&Rig::new("AggregatePaint", config, 1, 1).push(0, std::slice::from_ref(&painted))),
            [value]
        );
    }
    assert_eq!(mistakes("AggregatePaint", "9", 1, 1).len(), 1);
}

#[test]
fn aggregates_are_filtered_by_the_first_filter_that_has_them() {
    let mut rig = Rig::new("AggregateFilter", "drop 5, 1 3-7 20, allow 0-9", 1, 2);
    assert!(rig.warnings().is_empty());
    let packets =
        [5, 3, 7, 8, 0, 10, 20, u32::MAX].map(|number| packet(64).with_anno(AGGREGATE, number.into()));
    let [zero, one] = [Exit::Port(0), Exit::Port(1)];
    let none = dropped("no-filter");
    let expected = [dropped("denied"), one.clone(), one.clone(), zero.clone(), zero, none.clone(), one, none];
    assert_eq!(exits(&rig.push(0, &packets)), expected);
    let out = Rig::new("AggregateFilter", "drop 1, allow all", 1, 1).push(0, &packets);
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)));
    let wrong = mistakes("AggregateFilter", "allow, 2 1, allow 5-4, fly 3, allow 4294967296", 1, 2);
    assert_eq!(wrong.len(), 5, "{wrong:?}");
}

#[test]
fn the_first_packet_of_each_aggregate_passes() {
    let mut rig = Rig::new("AggregateFirst", "", 1, 2);
    let packets = [1, 2, 1, 3, 2].map(|number| packet(64).with_anno(AGGREGATE, number));
    let expected = [0, 0, 1, 0, 1].map(Exit::Port);
    assert_eq!(exits(&rig.push(0, &packets)), expected);
    rig.write("clear", "").unwrap();
    assert_eq!(exits(&rig.push(0, &packets)), expected);
    assert_eq!(Rig::new("AggregateFirst", "", 1, 1).push(0, &packets)[2].exit, dropped("not-first"));
}

#[test]
fn pairs_of_addresses_are_numbered_in_both_directions() {
    let of = |a: u8, b: u8, second: u64| {
        let mut packet = TestPacket::ip(&udp(b""));
        packet.bytes[12..20].copy_from_slice(&[10, 0, 0, a, 10, 0, 0, b]);
        packet.timestamp_ns = second * 1000 * MS;
        packet
    };
    let seen = |out: &[element::testing::Out]| -> Vec<(u64, u64)> {
        out.iter().map(|out| (out.packet.anno(AGGREGATE), out.packet.anno(packet::anno::PAINT))).collect()
    };
    let mut rig = Rig::new("AggregateIPAddrPair", "TIMEOUT 10, REAP 60", 1, 1);
    let out =
        rig.push(0, &[of(2, 1, 1), of(1, 2, 2), of(1, 3, 3), of(1, 2, 12), of(2, 1, 30), of(3, 1, 100)]);
    assert_eq!(seen(&out), [(1, 0), (1, 1), (2, 0), (1, 1), (3, 0), (4, 0)]);
    rig.write("clear", "").unwrap();
    assert_eq!(seen(&rig.push(0, &[of(1, 3, 101)])), [(5, 0)]);
    assert_eq!(rig.push_one(0, &packet(60)).exit, dropped("no-ip-header"));
}
