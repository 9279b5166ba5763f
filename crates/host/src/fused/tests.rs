use super::fuzz_forms;
use proptest::prelude::*;

/// How many chains; `MILLRACE_CHAINS` says otherwise.
fn cases() -> u32 {
    std::env::var("MILLRACE_CHAINS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn chains_do_the_same_fused(data in prop::collection::vec(any::<u8>(), 40..600)) {
        fuzz_forms(&data);
    }
}

/// The inputs that fuzzing starts from, and every one that it once found wrong.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    crate::replay::replay("chain_forms", 4, fuzz_forms);
}
