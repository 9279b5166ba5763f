//! Replays the inputs that fuzzing starts from, and every one that it once found wrong: the files in
//! `fuzz/seeds/packet_views` and `fuzz/regressions/packet_views`.

mod harness;

use std::path::Path;

#[test]
fn packet_views_holds_on_all_seeds_and_regressions() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut replayed = 0;
    for folder in ["seeds/packet_views", "regressions/packet_views"].map(|name| fuzz.join(name)) {
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("a folder that can be read").path();
            println!("replaying {}", path.display());
            harness::packet_views(&std::fs::read(&path).expect("a file that can be read"));
            replayed += 1;
        }
    }
    assert!(replayed >= 14, "only {replayed} files below {}: the seeds are gone", fuzz.display());
}

#[test]
fn the_seeds_are_the_frames_that_their_names_say() {
    let seed = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/packet_views").join(name);
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
