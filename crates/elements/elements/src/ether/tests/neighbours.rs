//! The table of neighbours and a worker's copy of it.

use super::super::arp_resolved::{FIRST_BYTES, Resolved, UNTIL_NS};
use super::super::neighbours::{Answer, Known, Limits, Neighbours};
use super::*;
use ir::Table;
use proptest::prelude::*;
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;

fn table(limits: Limits) -> Neighbours {
    let neighbours = Neighbours::default();
    neighbours.set_limits(limits);
    neighbours
}

#[test]
fn an_unknown_neighbour_is_asked_for_ten_times_a_second_and_then_less() {
    let neighbours = table(Limits { timeout_ns: 0, ..Limits::default() });
    let asked = |from_ns: u64, to_ns: u64| {
        let times = (from_ns..to_ns).step_by(10_000_000);
        times.filter(|now_ns| neighbours.ask(1, *now_ns, 0) == (Answer::Unknown { query: true })).count()
    };
    assert_eq!(asked(SECOND, 2 * SECOND), 10);
    assert_eq!(asked(2 * SECOND, 12 * SECOND), 5);
}

#[test]
fn a_known_neighbour_is_polled_and_expires() {
    let neighbours = table(Limits::default());
    let minute = 60 * SECOND;
    neighbours.insert(1, A, SECOND);
    let known = |until_ns| Known { mac: A, until_ns };
    let until = SECOND + minute;
    assert_eq!(neighbours.ask(1, SECOND, minute), Answer::Known { known: known(until), query: false });
    let next = until + SECOND / 10;
    assert_eq!(neighbours.ask(1, until, minute), Answer::Known { known: known(next), query: true });
    assert_eq!(neighbours.ask(1, until + 1, minute), Answer::Known { known: known(next), query: false });
    let end = SECOND + 5 * minute;
    assert!(matches!(neighbours.ask(1, end, minute), Answer::Known { .. }));
    assert_eq!(neighbours.known(1, end + 1), None);
    assert!(matches!(neighbours.ask(1, end + 1, minute), Answer::Unknown { .. }));
    assert!(neighbours.text(end + 2).ends_with("0.0.0.1 0 FF-FF-FF-FF-FF-FF 0.000000"));
    let forever = table(Limits { timeout_ns: 0, ..Limits::default() });
    forever.insert(1, A, 0);
    assert_eq!(forever.ask(1, u64::MAX, 0), Answer::Known { known: known(u64::MAX), query: false });
}

#[test]
fn the_oldest_entry_makes_room() {
    let neighbours = table(Limits { entries: 2, ..Limits::default() });
    for ip in 1..=3 {
        neighbours.insert(ip, A, u64::from(ip) * SECOND);
    }
    let known: Vec<bool> = (1..=3).map(|ip| neighbours.known(ip, 4 * SECOND).is_some()).collect();
    assert_eq!(known, [false, true, true]);
    neighbours.tick(1_000 * SECOND);
    assert_eq!(neighbours.count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32, u8),
    Delete(u32),
    Clear,
    Refresh,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u32..40, any::<u8>()).prop_map(|(ip, last)| Step::Insert(ip, last)),
        3 => (0u32..40).prop_map(Step::Delete),
        1 => Just(Step::Clear),
        2 => Just(Step::Refresh),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_copy_that_follows_holds_what_the_table_holds(steps in steps(), bulk in 0u32..3000) {
        let neighbours = table(Limits { timeout_ns: 0, ..Limits::default() });
        let mut copy = Resolved::new(B, 1).unwrap();
        let mut model = HashMap::new();
        for step in steps {
            match step {
                Step::Insert(ip, last) => {
                    neighbours.insert(ip, [2, 0, 0, 0, 0, last], 7);
                    model.insert(ip, last);
                }
                Step::Delete(ip) => {
                    neighbours.delete(ip, 7);
                    model.remove(&ip);
                }
                Step::Clear => {
                    neighbours.clear();
                    model.clear();
                }
                Step::Refresh => copy.refresh(&neighbours, 7, 0),
            }
        }
        // More changes than the log holds.
        for ip in 100..100 + bulk {
            neighbours.insert(ip, [2, 0, 0, 0, 0, 1], 7);
            model.insert(ip, 1);
        }
        copy.refresh(&neighbours, 7, 0);
        for ip in 0..100 + bulk + 1 {
            let record = copy.lookup(&[u64::from(ip)]);
            let last = record.map(|record| (copy.record_load(record, FIRST_BYTES, 8) >> 16) as u8);
            prop_assert_eq!(last, model.get(&ip).copied());
            if let Some(record) = record {
                prop_assert_eq!(copy.record_load(record, FIRST_BYTES, 8) & 0xffff, 0x0200);
                prop_assert_eq!(copy.record_load(record, UNTIL_NS, 8), u64::MAX);
            }
        }
        let keys: Vec<u64> = (0..100).flat_map(|ip| [ip % 41, 0]).collect();
        let list: Vec<u16> = (0..100).collect();
        let mut records = [9; 100];
        copy.lookup_batch(&keys, 2, &list, &mut records);
        for (ip, record) in records.iter().enumerate() {
            prop_assert_eq!(*record, copy.lookup(&[ip as u64 % 41]).unwrap_or(0));
        }
    }
}
