//! The wheel against a sorted map, and its edges one by one.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const TICK_NS: u64 = 10;

#[derive(Debug, Clone)]
enum Op {
    Insert { in_ns: u64, again_ns: Option<u64> },
    Cancel(usize),
    Reschedule(usize, u64),
    Advance { by_ns: u64, budget: usize },
}

fn span_ns() -> impl Strategy<Value = u64> {
    // From within a tick to many turns of the finest wheels, and now and then far out.
    prop_oneof![4 => 0..200u64, 4 => 0..200_000u64, 1 => 0..1u64 << 50]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (span_ns(), prop::option::of(span_ns()))
            .prop_map(|(in_ns, again_ns)| Op::Insert { in_ns, again_ns }),
        1 => any::<prop::sample::Index>().prop_map(|i| Op::Cancel(i.index(1 << 16))),
        1 => (any::<prop::sample::Index>(), span_ns())
            .prop_map(|(i, in_ns)| Op::Reschedule(i.index(1 << 16), in_ns)),
        2 => (span_ns(), 0..40usize).prop_map(|(by_ns, budget)| Op::Advance { by_ns, budget }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_sorted_map(
        ops in prop::collection::vec(op(), 1..200),
        start_ns in prop_oneof![Just(0u64), 0..1u64 << 60],
    ) {
        let mut wheel = TimerWheel::new(TICK_NS, 64, start_ns).expect("valid");
        // Token: timer, deadline, and what it answers when it fires.
        let mut model: BTreeMap<u32, (TimerId, u64, Option<u64>)> = BTreeMap::new();
        let mut now_ns = start_ns;
        for (token, op) in ops.iter().enumerate() {
            let token = token as u32;
            let nth = |model: &BTreeMap<u32, _>, n: usize| {
                model.keys().nth(n % model.len().max(1)).copied()
            };
            match *op {
                Op::Insert { in_ns, again_ns } => match wheel.insert(now_ns + in_ns, token) {
                    Ok(timer) => {
                        model.insert(token, (timer, now_ns + in_ns, again_ns));
                    }
                    Err(error) => {
                        prop_assert_eq!(error, TableError::TimersFull { capacity: 64 });
                        prop_assert_eq!(model.len(), 64);
                    }
                },
                Op::Cancel(n) => {
                    let Some(token) = nth(&model, n) else { continue };
                    let (timer, ..) = model.remove(&token).expect("listed");
                    prop_assert_eq!(wheel.cancel(timer), Some(token));
                    prop_assert_eq!(wheel.cancel(timer), None);
                    prop_assert!(!wheel.reschedule(timer, now_ns));
                }
                Op::Reschedule(n, in_ns) => {
                    let Some(token) = nth(&model, n) else { continue };
                    let entry = model.get_mut(&token).expect("listed");
                    prop_assert!(wheel.reschedule(entry.0, now_ns + in_ns));
                    entry.1 = now_ns + in_ns;
                }
                Op::Advance { by_ns, budget } => {
                    now_ns += by_ns;
                    let mut fired = 0;
                    let advanced = wheel.advance(now_ns, budget, |token| {
                        fired += 1;
                        let entry = model.get_mut(&token).expect("in the model");
                        assert!(entry.1 <= now_ns, "never early");
                        if let Some(again_ns) = entry.2.take() {
                            entry.1 = now_ns + again_ns;
                            return Some(entry.1);
                        }
                        model.remove(&token);
                        None
                    });
                    prop_assert_eq!(advanced.fired, fired);
                    prop_assert!(fired <= budget);
                    if advanced.complete {
                        // Late by less than a tick; or started anew in this very call.
                        for &(_, deadline_ns, again) in model.values() {
                            let due = deadline_ns.div_ceil(TICK_NS) <= now_ns / TICK_NS;
                            prop_assert!(!due || again.is_none(), "{deadline_ns} at {now_ns}");
                        }
                    }
                }
            }
            prop_assert_eq!(wheel.len(), model.len());
        }
        // Everything fires in the end, in small bites.
        for _ in 0..10_000 {
            if wheel.is_empty() {
                break;
            }
            wheel.advance(u64::MAX, 3, |token| {
                assert!(model.remove(&token).is_some());
                None
            });
        }
        prop_assert!(wheel.is_empty() && model.is_empty());
    }
}

fn fired_at(wheel: &mut TimerWheel, now_ns: u64) -> Vec<u32> {
    let mut fired = Vec::new();
    wheel.advance(now_ns, usize::MAX, |token| {
        fired.push(token);
        None
    });
    fired
}

#[test]
fn fires_in_order_and_never_early() {
    let mut wheel = TimerWheel::new(1_000, 16, 0).expect("valid");
    for (token, deadline_ns) in [(1, 64_000_000), (2, 999), (3, 1_001), (4, 64_000), (5, 63_000)] {
        wheel.insert(deadline_ns, token).expect("room");
    }
    assert_eq!(fired_at(&mut wheel, 999), [0_u32; 0]);
    assert_eq!(fired_at(&mut wheel, 1_000), [2]);
    assert_eq!(fired_at(&mut wheel, 1_999), [0_u32; 0]);
    assert_eq!(fired_at(&mut wheel, 63_999), [3, 5]);
    assert_eq!(fired_at(&mut wheel, 63_999_999), [4]);
    assert_eq!(fired_at(&mut wheel, 64_000_000), [1]);
}

#[test]
fn overdue_fires_at_next_call_once() {
    let mut wheel = TimerWheel::new(10, 4, 1_000).expect("valid");
    wheel.insert(5, 7).expect("room");
    let mut calls = 0;
    // Answers with the past: must not loop.
    let advanced = wheel.advance(1_000, 100, |_| {
        calls += 1;
        Some(0)
    });
    assert_eq!((calls, advanced), (1, Advanced { fired: 1, complete: true }));
    assert_eq!(fired_at(&mut wheel, 1_000), [7]);
    assert!(wheel.is_empty());
}

#[test]
fn time_does_not_run_backwards() {
    let mut wheel = TimerWheel::new(10, 4, 1_000).expect("valid");
    wheel.insert(2_000, 1).expect("room");
    assert_eq!(fired_at(&mut wheel, 0), [0_u32; 0]);
    assert_eq!(fired_at(&mut wheel, 2_000), [1]);
}

#[test]
fn budget_bounds_one_call() {
    let mut wheel = TimerWheel::new(10, 100, 0).expect("valid");
    for token in 0..100 {
        wheel.insert(50_000, token).expect("room");
    }
    let mut calls = 0;
    let mut fired = 0;
    loop {
        calls += 1;
        let advanced = wheel.advance(60_000, 10, |_| None);
        assert!(advanced.fired <= 10);
        fired += advanced.fired;
        if advanced.complete {
            break;
        }
    }
    assert_eq!(fired, 100);
    // Each timer is moved to a finer wheel at most twice from there, and fires.
    assert!((10..=31).contains(&calls), "{calls}");
}

#[test]
fn stale_name_does_not_cancel_its_successor() {
    let mut wheel = TimerWheel::new(10, 1, 0).expect("valid");
    let first = wheel.insert(100, 1).expect("room");
    assert_eq!(wheel.insert(100, 2), Err(TableError::TimersFull { capacity: 1 }));
    assert_eq!(fired_at(&mut wheel, 100), [1]);
    let second = wheel.insert(200, 2).expect("room");
    assert_eq!(wheel.cancel(first), None);
    assert_eq!(wheel.cancel(second), Some(2));
}

#[test]
fn furthest_deadline() {
    let mut wheel = TimerWheel::new(1, 2, u64::MAX - 2).expect("valid");
    wheel.insert(u64::MAX, 1).expect("room");
    assert_eq!(fired_at(&mut wheel, u64::MAX - 1), [0_u32; 0]);
    assert_eq!(fired_at(&mut wheel, u64::MAX), [1]);
}
