//! Interfaces and the states of their neighbours.

use super::table::{Ask, CAPACITY, Fact};
use super::{Address, Interface, NeighbourTable, Refusal, Report};
use packet::MacAddr;
use proptest::prelude::*;
use std::net::IpAddr;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 3];

#[test]
fn prefixes_say_who_is_a_neighbour() {
    let station = |text: &str| Interface::new("s", vec![Address::read(text).unwrap()]);
    let may = |own: &str, ip: &str| station(own).subscribe(ip.parse().unwrap());
    assert_eq!(may("10.0.0.1/31", "10.0.0.0"), Ok(()));
    assert_eq!(may("10.0.0.1/32", "10.0.0.2"), Err(Refusal::NotOnLink));
    assert_eq!(may("10.0.0.1/30", "10.0.0.3"), Err(Refusal::NotOnLink));
    assert_eq!(may("fd00::1/127", "fd00::"), Ok(()));
    assert_eq!(may("fd00::1/64", "fd00::1"), Err(Refusal::Own));
    assert_eq!(may("fd00::1/1", "ff02::1"), Err(Refusal::NotOnLink));
    assert_eq!(may("10.0.0.1/8", "::ffff:10.0.0.2"), Err(Refusal::NotOnLink));
}

fn ip(number: u32) -> IpAddr {
    IpAddr::from((0x0a00_0000 + number).to_be_bytes())
}

#[test]
fn the_table_is_bounded_and_so_is_what_it_asks() {
    let mut table = NeighbourTable::new(Default::default());
    table.turn(SECOND, &mut |_| true);
    for number in 0..CAPACITY as u32 {
        table.subscribe(ip(number)).unwrap();
    }
    assert_eq!(table.subscribe(ip(9_999)), Err(Refusal::Full));
    let mut asked = 0;
    for ms in 0..1000 {
        table.turn(SECOND + ms * MS, &mut |_| {
            asked += 1;
            true
        });
    }
    // 100 at once and 200 a second.
    assert!((290..=301).contains(&asked), "{asked}");
    // A neighbour without subscribers is evicted for a new one.
    table.unsubscribe(ip(5));
    table.subscribe(ip(9_999)).unwrap();
    assert_eq!((table.count(), table.failures().1, table.has(ip(5))), (CAPACITY, 1, false));
    // All entries are removed without subscribers.
    (0..10_000).for_each(|number| table.unsubscribe(ip(number)));
    (0..100).for_each(|turn| table.turn((50 + turn) * SECOND, &mut |_| true));
    assert_eq!((table.count(), table.unresolved()), (0, 0));
}

#[test]
fn subscribers_hear_of_every_change() {
    let mut table = NeighbourTable::new(Default::default());
    let (neighbour, mut now_ns) = (ip(2), SECOND);
    let fact = |mac: [u8; 6]| Fact { ip: neighbour, mac: Some(MacAddr(mac)), answers: true, overrides: true };
    table.subscribe(neighbour).unwrap();
    assert_eq!((table.report(neighbour), table.unresolved()), (None, 1));
    table.hear(fact(PEER), now_ns);
    assert_eq!((table.take_events(), table.unresolved()), (vec![neighbour], 0));
    assert_eq!(table.report(neighbour), Some(Report::Known(MacAddr(PEER))));
    table.hear(fact(PEER), now_ns);
    assert!(!table.has_events());
    table.hear(fact(OTHER), now_ns);
    assert_eq!(table.take_events(), vec![neighbour]);
    // It does not reply any more.
    let mut asked: Vec<Ask> = vec![];
    for _ in 0..60 {
        now_ns += SECOND;
        table.turn(now_ns, &mut |ask| {
            asked.push(ask);
            true
        });
    }
    assert_eq!((table.take_events(), table.report(neighbour)), (vec![neighbour], Some(Report::Unreachable)));
    let (probes, others) = asked.split_at(3);
    assert!(probes.iter().all(|ask| ask.to == Some(MacAddr(OTHER))), "{asked:?}");
    assert!(others.iter().all(|ask| ask.to.is_none()) && (1..=5).contains(&others.len()), "{asked:?}");
    table.delete(neighbour);
    assert_eq!((table.take_events(), table.report(neighbour)), (vec![neighbour], None));
    table.unsubscribe(neighbour);
    table.delete(neighbour);
    assert_eq!((table.has_events(), table.report(neighbour)), (false, Some(Report::Gone)));
}

#[derive(Clone, Debug)]
enum Step {
    Subscribe(u8),
    Unsubscribe(u8),
    Hear(u8, u8, bool, bool),
    Pass(u16, bool),
    Delete(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6u8).prop_map(Step::Subscribe),
        (0..6u8).prop_map(Step::Unsubscribe),
        (0..8u8, 0..3u8, any::<bool>(), any::<bool>()).prop_map(|(ip, mac, a, o)| Step::Hear(ip, mac, a, o)),
        (1..20_000u16, any::<bool>()).prop_map(|(ms, room)| Step::Pass(ms, room)),
        (0..6u8).prop_map(Step::Delete),
    ]
}

proptest! {
    /// A subscriber that reads the report after each change has the table's current report.
    #[test]
    fn news_keep_subscribers_up_to_date(steps in prop::collection::vec(step(), 1..200)) {
        let mut table = NeighbourTable::new(Default::default());
        let mut now_ns = SECOND;
        let mut subscribed = [0u32; 6];
        let mut known: [Option<Report>; 6] = [None; 6];
        for step in steps {
            match step {
                Step::Subscribe(number) => {
                    table.subscribe(ip(number.into())).unwrap();
                    subscribed[usize::from(number)] += 1;
                    known[usize::from(number)] = table.report(ip(number.into()));
                }
                Step::Unsubscribe(number) => if subscribed[usize::from(number)] > 0 {
                    table.unsubscribe(ip(number.into()));
                    subscribed[usize::from(number)] -= 1;
                },
                Step::Hear(number, mac, answers, overrides) => {
                    let mac = (mac > 0).then_some(MacAddr([2, 0, 0, 0, 0, mac]));
                    table.hear(Fact { ip: ip(number.into()), mac, answers, overrides }, now_ns);
                }
                Step::Pass(ms, room) => {
                    now_ns += u64::from(ms) * MS;
                    table.turn(now_ns, &mut |_| room);
                }
                Step::Delete(number) => {
                    table.delete(ip(number.into()));
                }
            }
            for events in table.take_events() {
                let IpAddr::V4(ip) = events else { unreachable!() };
                known[usize::from(ip.octets()[3])] = table.report(events);
            }
            let mut unresolved = 0;
            for number in 0..6u8 {
                let report = table.report(ip(number.into()));
                unresolved += usize::from(report.is_none());
                if subscribed[usize::from(number)] > 0 {
                    prop_assert!(report != Some(Report::Gone));
                    prop_assert_eq!(known[usize::from(number)], report);
                }
            }
            prop_assert_eq!(unresolved, table.unresolved());
        }
    }
}
