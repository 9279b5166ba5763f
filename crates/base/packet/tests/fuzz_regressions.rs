//! Replays the inputs that fuzzing starts from, and every one that it once found wrong: the files in
//! `fuzz/seeds/packet_views` and `fuzz/regressions/packet_views`.

mod harness;

#[test]
fn packet_views_holds_on_all_seeds_and_regressions() {
    testkit::replay::replay("packet_views", 14, harness::packet_views);
}

#[test]
fn the_seeds_are_the_frames_that_their_names_say() {
    let seed = |name: &str| {
        let path = testkit::workspace::root().join("fuzz/seeds/packet_views").join(name);
        std::fs::read(path).expect("a seed")
    };
    let layers = |name: &str| packet::parse::frame(&seed(name), 0);
    let qinq = layers("qinq-ipv6-extensions-udp");
    assert_eq!((qinq.vlan_count, qinq.net, qinq.trans), (2, Some(22), Some(22 + 40 + 32)));
    assert_eq!((qinq.ip_proto, qinq.is_fragment, qinq.error), (Some(17), false, None));
    assert_eq!(layers("ipv4-tcp-options").trans, Some(34));
    assert!(layers("ipv4-first-fragment").is_first_fragment);
    let last = layers("ipv4-last-fragment");
    assert!(last.is_fragment && !last.is_first_fragment && last.trans.is_none());
    let later = layers("ipv6-later-fragment");
    assert!(later.is_fragment && !later.is_first_fragment && later.trans.is_none());
    assert_eq!(layers("ipv6-auth-tcp").ip_proto, Some(6));
    assert_eq!(layers("three-tags").error.map(packet::Error::reason), Some("too_many_headers"));
    assert_eq!((layers("llc").net, layers("llc").ethertype), (None, 0x26));
}
