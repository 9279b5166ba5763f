//! Replays the seeds of the fuzzing of a hostile NF, inputs that once failed, and random bytes.

mod peer;

use proptest::prelude::*;

#[test]
fn hostile_peer_holds_on_all_seeds_and_regressions() {
    testkit::replay::replay("hostile_peer", 5, peer::hostile_peer);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        peer::hostile_peer(&bytes);
    }
}
