use super::fuzz_forms;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// How many chains; `MILLRACE_CHAINS` says otherwise.
fn cases() -> u32 {
    std::env::var("MILLRACE_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

#[test]
fn chains_do_the_same_fused() {
    let config = ProptestConfig { cases: cases(), ..ProptestConfig::default() };
    let hits = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(config);
    let tried = runner.run(&prop::collection::vec(any::<u8>(), 40..600), |data| {
        hits.set(hits.get() + fuzz_forms(&data));
        Ok(())
    });
    tried.unwrap_or_else(|failed| panic!("{failed}"));
    assert!(hits.get() > u64::from(cases()) * 10, "the flow cache decided about {} packets only", hits.get());
}

/// The inputs that fuzzing starts from, and every one that it once found wrong.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    crate::replay::replay("chain_forms", 4, |data| {
        fuzz_forms(data);
    });
}
