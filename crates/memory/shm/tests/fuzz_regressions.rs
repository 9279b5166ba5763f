//! Replays what fuzzing of a hostile NF starts from, and what it once found wrong; and any bytes.

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
