//! Faults planted into the entries of flows are found by random chains with answers, which run modular and
//! with an entry for every flow: so these would notice such a mistake.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use runtime::fuzz::fuzz_both_ways;
use std::panic::{AssertUnwindSafe, catch_unwind};
use synth::template::Fault;

/// The most chains until a fault must have shown.
const MOST: usize = 600;

/// The number of chains until one does something else than its elements, with what is said then.
fn chains_until_found() -> Option<(usize, String)> {
    let mut runner = TestRunner::deterministic();
    let data = prop::collection::vec(any::<u8>(), 40..900);
    (1..=MOST).find_map(|number| {
        let data = data.new_tree(&mut runner).expect("bytes").current();
        let found = catch_unwind(AssertUnwindSafe(|| fuzz_both_ways(&data))).err()?;
        let said = found.downcast_ref::<String>().cloned().unwrap_or_default();
        Some((number, said))
    })
}

// One test: the fault is the process's.
#[test]
fn planted_faults_are_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = vec![];
    for fault in Fault::ALL {
        Fault::plant(Some(fault));
        match chains_until_found() {
            Some((number, said)) => {
                println!("{fault:?}: chain {number}: {}", said.lines().next().unwrap_or(""))
            }
            None => missed.push(fault),
        }
    }
    Fault::plant(None);
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found by {MOST} chains: {missed:?}");
}
