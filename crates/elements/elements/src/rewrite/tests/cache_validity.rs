//! What is guaranteed to a flow cache.

use super::super::flow::{FlowId, Kind, at};
use super::{ACK, INSIDE, REMOTE, SECOND_NS, octets, tcp, udp};
use crate::testing::Rig;
use ir::{Holder, Lasting, Merge, Table};
use packet::view::protocol;

const CONFIG: &str = "pattern 203.0.113.1 1024-65535# - - 0 0, UDP_TIMEOUT 80, REAP_INTERVAL 1";

/// What uses a line.
const HOLDER: Holder = Holder { entry: 0x12_3456, is_shared: false };

/// The line of the flow from inside.
fn line(table: &dyn Table, protocol: u8) -> Option<u64> {
    let [src, dst] = [INSIDE, REMOTE].map(|end| u32::from_be_bytes(octets(end.0)));
    let flow = FlowId { src, sport: INSIDE.1, dst, dport: REMOTE.1 };
    table.lookup(&Kind::Ports.key(flow, protocol, false))
}

/// Calls a function with the table and the UDP flow's line.
fn with_line<T: PartialEq + std::fmt::Debug>(
    rig: &mut Rig,
    mut what: impl FnMut(&mut dyn Table, u64) -> T,
) -> T {
    rig.table(0, |table| {
        let line = line(table, protocol::UDP).expect("a mapping");
        what(table, line)
    })
}

/// How many lines were asked for; each is answered with the time of a last packet, if there is one.
fn answer(rig: &mut Rig, last_ns: u64, is_held: bool) -> usize {
    rig.table(0, |table| {
        let mut asked = vec![];
        table.take_asked(&mut asked);
        for line in &asked {
            assert_eq!(line.holder, HOLDER);
            let own = table.record_load(line.record, at::LAST_NS, 8);
            table.record_store(line.record, at::LAST_NS, 8, own.max(last_ns));
        }
        asked.iter().for_each(|line| table.settle(line.record, is_held));
        asked.len()
    })
}

/// Held lines that are gone, counted from the mapping's first.
fn gone(rig: &mut Rig, first: u64) -> Vec<u64> {
    rig.table(0, |table| {
        let mut gone = vec![];
        table.take_gone(&mut gone);
        gone.iter().map(|line| line.record - gone[0].record + first).collect()
    })
}

#[test]
fn a_held_mapping_goes_when_it_is_due_by_what_its_cache_counted() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    let made_ns = with_line(&mut rig, |table, line| {
        table.hold(line, HOLDER);
        table.record_load(line, at::LAST_NS, 8)
    });
    assert_eq!(answer(&mut rig, 0, true), 0, "it is not due");
    // The first tick only starts the reaper's walk.
    rig.advance(79 * SECOND_NS);
    rig.advance(2 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "1", "its cache may have seen a packet");
    assert_eq!(answer(&mut rig, made_ns + 70 * SECOND_NS, true), 1);
    assert_eq!(rig.read("nmappings"), "1");
    rig.advance(60 * SECOND_NS);
    assert_eq!(answer(&mut rig, 0, true), 0, "not due before 150 s");
    rig.advance(10 * SECOND_NS);
    assert_eq!(answer(&mut rig, made_ns + 70 * SECOND_NS, true), 1);
    assert_eq!(rig.read("nmappings"), "0", "nobody used it for 80 s");
    assert_eq!(gone(&mut rig, 0), [0], "its cache is told");
}

#[test]
fn a_mapping_that_nobody_holds_goes_by_itself() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    with_line(&mut rig, |table, line| table.hold(line, HOLDER));
    rig.advance(79 * SECOND_NS);
    rig.advance(2 * SECOND_NS);
    assert_eq!(answer(&mut rig, 0, false), 1);
    assert_eq!(rig.read("nmappings"), "0");
    assert_eq!(gone(&mut rig, 0), Vec::<u64>::new(), "nobody is left to be told");
}

#[test]
fn a_mapping_whose_cache_has_ended_goes_at_the_next_tick() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    with_line(&mut rig, |table, line| table.hold(line, Holder { entry: 0, is_shared: true }));
    rig.advance(79 * SECOND_NS);
    rig.advance(2 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "1", "asked for, and nobody answers");
    rig.advance(1);
    assert_eq!(rig.read("nmappings"), "0");
}

/// Mappings that are due go in one order, whether a cache holds some of them or not.
#[test]
fn mappings_that_are_due_in_one_tick_go_behind_the_last_answer() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.push_one(0, &udp((INSIDE.0, INSIDE.1 + 1), REMOTE, b""));
    with_line(&mut rig, |table, line| table.hold(line, HOLDER));
    rig.advance(79 * SECOND_NS);
    rig.advance(2 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "2", "one is held, and the other one waits for its answer");
    assert_eq!(answer(&mut rig, 0, true), 1);
    assert_eq!(rig.read("nmappings"), "0");
}

#[test]
fn what_is_held_is_told_when_it_goes() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.write("clear", "").expect("cleared");
    assert_eq!(gone(&mut rig, 0), Vec::<u64>::new(), "nobody held it");
    for (held, told) in [(vec![0], vec![0]), (vec![64], vec![64]), (vec![0, 64], vec![0, 64])] {
        rig.push_one(0, &udp(INSIDE, REMOTE, b""));
        with_line(&mut rig, |table, line| held.iter().for_each(|at| table.hold(line + at, HOLDER)));
        rig.write("clear", "").expect("cleared");
        assert_eq!(gone(&mut rig, held[0]), told);
        assert_eq!(gone(&mut rig, 0), Vec::<u64>::new(), "once");
    }
}

#[test]
fn what_packets_change_is_merged_and_what_they_get_stays() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.push_one(0, &tcp(INSIDE, REMOTE, ACK, b""));
    for (protocol, seen) in [(protocol::UDP, Merge::SumTo(3)), (protocol::TCP, Merge::Or)] {
        for (offset, lasting) in [
            (at::LAST_NS, Lasting::Merged(Merge::Max)),
            (at::OPEN_NS, Lasting::Merged(Merge::Max)),
            (at::SEEN, Lasting::Merged(seen)),
            (at::FIN_NS, Lasting::Moving),
            (at::PAIR, Lasting::Fixed),
        ] {
            let is = rig.table(0, |table| table.lasting(line(table, protocol).expect("a mapping"), offset));
            assert_eq!(is, lasting, "protocol {protocol}, offset {offset}");
        }
    }
}
