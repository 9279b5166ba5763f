//! Elements that change, compare and number by timestamps: packets in, packets out.

use crate::testing::{Exit, Rig, TestPacket, dropped, mistakes};
use element::testing::exits;
use element::testing::ip::{ping, tcp, udp, with_byte, with_bytes};
use packet::anno::{AGGREGATE, FIRST_TIMESTAMP, PAINT};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn at(timestamp_ns: u64) -> TestPacket {
    TestPacket { timestamp_ns, ..TestPacket::frame(&[0xee; 60]) }
}

fn times(rig: &mut Rig, packets: &[TestPacket]) -> Vec<u64> {
    rig.push(0, packets).iter().map(|out| out.packet.timestamp_ns).collect()
}

#[test]
fn timestamps_are_adjusted_and_zero_is_no_time() {
    let mut rig = Rig::new("AdjustTimestamp", "-1", 1, 1);
    let negative = (100 * MS).wrapping_sub(SECOND);
    assert_eq!(
        times(&mut rig, &[at(100 * MS), at(SECOND), at(5 * SECOND), at(0)]),
        [negative, 0, 4 * SECOND, 0]
    );
    rig.write("time", "+1.5").unwrap();
    assert_eq!((times(&mut rig, &[at(negative)]), rig.read("time")), (vec![600 * MS], "1.500000".into()));
    assert!(rig.write("time", "soon").is_err());
    assert_eq!(times(&mut Rig::new("AdjustTimestamp", "2, ALL true", 1, 1), &[at(0)]), [2 * SECOND]);
    let mut packet = at(7);
    FIRST_TIMESTAMP.store(&mut packet.anno, 3 * SECOND);
    let out = Rig::new("AdjustTimestamp", "-1, FIRST true", 1, 1).push_one(0, &packet).packet;
    assert_eq!((FIRST_TIMESTAMP.load(&out.anno), out.timestamp_ns), (2 * SECOND, 7));
    assert_eq!(mistakes("AdjustTimestamp", "", 1, 1).len(), 1);
}

#[test]
fn timestamps_are_made_relative() {
    let mut rig = Rig::new("SetTimestampDelta", "", 1, 1);
    assert_eq!(times(&mut rig, &[at(0), at(5 * SECOND), at(7 * SECOND)]), [0, 0, 2 * SECOND]);
    assert_eq!([rig.read("first"), rig.read("type")], ["5.000000", "FIRST"]);
    rig.write("reset", "").unwrap();
    assert_eq!(times(&mut rig, &[at(9 * SECOND)]), [0]);
    let now_ns = rig.host().now_ns;
    assert_eq!(times(&mut Rig::new("SetTimestampDelta", "TYPE NOW", 1, 1), &[at(now_ns - MS)]), [MS]);
    let mut packet = at(5 * SECOND);
    FIRST_TIMESTAMP.store(&mut packet.anno, 3 * SECOND);
    assert_eq!(times(&mut Rig::new("SetTimestampDelta", "TYPE RANGE", 1, 1), &[packet]), [2 * SECOND]);
    assert_eq!(mistakes("SetTimestampDelta", "TYPE LAST", 1, 1).len(), 1);
}

#[test]
fn packets_outside_of_the_time_are_told_apart() {
    let seconds = |all: &[u64]| -> Vec<TestPacket> { all.iter().map(|at_s| at(at_s * SECOND)).collect() };
    let ports =
        |config: &str, packets: &[TestPacket]| exits(&Rig::new("TimeFilter", config, 1, 2).push(0, packets));
    let (inside, outside) = (Exit::Port(0), Exit::Port(1));
    for config in ["2, 4", "START 2, INTERVAL 2", "START_AFTER 1, END_AFTER 3", "START_AFTER 1, INTERVAL 2"] {
        let found = ports(config, &seconds(&[1, 2, 3, 4, 5, 3]));
        let expected = [&outside, &inside, &inside, &outside, &outside, &inside];
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{config}");
    }
    let mut rig = Rig::new("TimeFilter", "2, 4", 1, 1);
    let out = rig.push(0, &seconds(&[1, 4]));
    assert_eq!(exits(&out), [dropped("too-early"), dropped("too-late")]);
    assert_eq!(
        [rig.read("start"), rig.read("end"), rig.read("interval")],
        ["2.000000", "4.000000", "2.000000"]
    );
    rig.write("extend_interval", "1").unwrap();
    assert_eq!(exits(&rig.push(0, &seconds(&[4, 5]))), [Exit::Port(0), dropped("too-late")]);
    rig.write("interval", "9").unwrap();
    rig.write("start", "3").unwrap();
    assert_eq!([rig.read("start"), rig.read("end")], ["3.000000", "11.000000"]);
    for config in ["1, START_AFTER 2", "END 1, INTERVAL 2", "STOP true, END_CALL stop", "soon"] {
        assert_eq!(mistakes("TimeFilter", config, 1, 1).len(), 1, "{config}");
    }
}

#[test]
fn the_end_calls_a_handler_once_with_the_time() {
    let mut rig = Rig::new("TimeFilter", "0, 1, END_CALL s.run $t", 1, 1);
    rig.push(0, &[at(SECOND / 2)]);
    assert!(rig.host().handlers.is_empty());
    rig.push(0, &[at(1_250 * MS), at(2 * SECOND)]);
    assert_eq!(rig.host().handlers["s.run"], "1.250000");
    // Armed again by a new end.
    rig.write("end", "3").unwrap();
    rig.push(0, &[at(4 * SECOND)]);
    assert_eq!(rig.host().handlers["s.run"], "4.000000");
    let mut rig = Rig::new("TimeFilter", "END 1, STOP true", 1, 1);
    rig.push(0, &[at(1)]);
    assert!(!rig.host().stopped);
    rig.push(0, &[at(SECOND)]);
    assert!(rig.host().stopped);
}

/// The packet of some bytes of IP, and a time.
fn ip(bytes: &[u8], timestamp_ns: u64) -> TestPacket {
    TestPacket { timestamp_ns, ..TestPacket::ip(bytes) }
}

/// The same packet back: addresses and ports exchanged.
fn reply(bytes: &[u8]) -> Vec<u8> {
    let mut back = bytes.to_vec();
    back[12..16].copy_from_slice(&bytes[16..20]);
    back[16..20].copy_from_slice(&bytes[12..16]);
    back[20..22].copy_from_slice(&bytes[22..24]);
    back[22..24].copy_from_slice(&bytes[20..22]);
    back
}

fn marks(rig: &mut Rig, packets: &[TestPacket]) -> Vec<(u64, u64)> {
    let out = rig.push(0, packets);
    assert!(out.iter().all(|out| out.exit == Exit::Port(0)), "{out:?}");
    out.iter().map(|out| (AGGREGATE.load(&out.packet.anno), PAINT.load(&out.packet.anno))).collect()
}

#[test]
fn flows_are_numbered_with_both_directions() {
    let mut rig = Rig::new("AggregateIPFlows", "ICMP true", 1, 2);
    let one = udp(b"abc");
    let two = with_byte(one.clone(), 21, 99);
    let all = [ip(&one, 1), ip(&two, 2), ip(&reply(&one), 3), ip(&reply(&two), 4), ip(&one, 5)];
    assert_eq!(marks(&mut rig, &all), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 0)]);
    assert_eq!(rig.read("flows"), "2");
    // An error about a packet of a flow.
    let error = with_bytes(ping(&one), 20, &[3, 1]);
    assert_eq!(marks(&mut rig, &[ip(&error, 6)]), [(1, 2)]);
    for other in [ip(&ping(b""), 7), TestPacket::frame(&[0; 60])] {
        assert_eq!(rig.push_one(0, &other).exit, Exit::Port(1));
    }
    // A flow without packets for 60 s has ended, and another one begins.
    assert_eq!(marks(&mut rig, &[ip(&reply(&one), 62 * SECOND)]), [(3, 0)]);
    rig.write("clear", "").unwrap();
    assert_eq!(marks(&mut rig, &[ip(&one, 62 * SECOND)]), [(4, 0)]);
    let mut rig = Rig::new("AggregateIPFlows", "", 1, 1);
    assert_eq!(rig.push_one(0, &ip(&error, 1)).exit, dropped("no-flow"));
}

#[test]
fn a_tcp_flow_ends_with_both_sides_or_a_reset() {
    const FLAGS: usize = 33;
    let mut rig = Rig::new("AggregateIPFlows", "", 1, 1);
    let with = |flags: u8, at_s: u64| ip(&with_byte(tcp(b""), FLAGS, flags), at_s * SECOND);
    let back = |flags: u8, at_s: u64| ip(&with_byte(reply(&tcp(b"")), FLAGS, flags), at_s * SECOND);
    let (fin, syn, rst, ack) = (1, 2, 4, 16);
    assert_eq!(marks(&mut rig, &[with(syn, 1), with(fin, 2), with(syn, 3)]), [(1, 0); 3]);
    assert_eq!(
        marks(&mut rig, &[with(fin, 4), back(fin, 5), with(ack, 6), back(syn, 7)]),
        [(1, 0), (1, 1), (1, 0), (2, 0)]
    );
    assert_eq!(marks(&mut rig, &[with(rst, 8), with(ack, 37), with(ack, 68)]), [(2, 1), (2, 1), (3, 0)]);
}

#[test]
fn fragments_wait_for_the_first_and_keep_their_order() {
    let first = with_byte(udp(b"0123456789abcdef"), 6, 0x20);
    let later = with_byte(with_byte(udp(b"0123456789abcdef"), 6, 0), 7, 3);
    let other = with_byte(later.clone(), 5, 77);
    let whole = udp(b"x");
    let mut rig = Rig::new("AggregateIPFlows", "", 1, 1);
    assert!(rig.push(0, &[ip(&later, 1), ip(&other, 2), ip(&whole, 3)]).is_empty());
    assert_eq!(rig.read("held"), "3");
    // The packets behind the unknown fragment stay.
    assert_eq!(marks(&mut rig, &[ip(&first, 4)]), [(1, 0)]);
    assert_eq!(rig.read("held"), "3");
    // Its first fragment never comes.
    let out = rig.push(0, &[ip(&later, 40 * SECOND)]);
    let gone = out.iter().filter(|out| out.exit == dropped("no-first-fragment")).count();
    assert_eq!((gone, out.len() > 2, rig.read("held")), (1, true, "1".into()));
    // Only first fragments belong to flows.
    let mut rig = Rig::new("AggregateIPFlows", "FRAGMENTS false", 1, 1);
    let out = rig.push(0, &[ip(&later, 1), ip(&first, 2)]);
    assert_eq!(exits(&out), [dropped("no-flow"), Exit::Port(0)]);
}
