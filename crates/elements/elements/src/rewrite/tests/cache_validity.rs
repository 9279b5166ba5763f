//! What is promised to a flow cache.

use super::super::flow::at;
use super::{INSIDE, REMOTE, SECOND_NS, udp};
use crate::testing::Rig;
use ir::Lasting;

const CONFIG: &str = "pattern 203.0.113.1 1024-65535# - - 0 0, UDP_TIMEOUT 80, REAP_INTERVAL 1";

fn enable_cache(rig: &mut Rig) {
    rig.table(0, |table| table.set_cache_validity(2 * SECOND_NS));
}

/// Records that went early, counted from the first of them.
fn gone(rig: &mut Rig) -> Vec<u64> {
    rig.table(0, |table| {
        let mut gone = vec![];
        table.take_gone(&mut gone);
        gone.iter().map(|record| record - gone[0]).collect()
    })
}

#[test]
fn the_reaper_waits_for_the_end_of_leases() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    let lease = rig.table(0, |table| table.cache_validity()).expect("a lease");
    // An eighth of the shortest timeout that a mapping can have, and at most this.
    assert_eq!((lease.ns, lease.misses, lease.gone), (2 * SECOND_NS, false, Some(0)));
    enable_cache(&mut rig);
    // Whoever remembers the mapping may have used it two seconds after its last note.
    rig.advance(81 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "1");
    rig.advance(10 * SECOND_NS);
    rig.advance(10 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "0");
    assert_eq!(gone(&mut rig), Vec::<u64>::new(), "nobody can remember it any more");
}

#[test]
fn what_goes_early_is_told() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    enable_cache(&mut rig);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.write("clear", "").expect("cleared");
    assert_eq!(gone(&mut rig), [0, 64], "both lines of the mapping");
    assert_eq!(gone(&mut rig), Vec::<u64>::new(), "once");
    // One that was not used for longer than a lease has nobody who remembers it.
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.advance(3 * SECOND_NS);
    rig.write("clear", "").expect("cleared");
    assert_eq!(gone(&mut rig), Vec::<u64>::new());
}

#[test]
fn times_may_lag_and_what_is_written_to_packets_stays() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    for (offset, lasting) in
        [(at::LAST_NS, Lasting::Time), (at::PAIR, Lasting::Fixed), (at::SEEN, Lasting::Moving)]
    {
        assert_eq!(rig.table(0, |table| table.lasting(offset)), lasting);
    }
}
