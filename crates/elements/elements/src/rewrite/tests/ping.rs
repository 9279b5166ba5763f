//! `ICMPPingRewriter`.

use super::{EXTERNAL, INSIDE, REMOTE, echo, expect, expect_drop, udp};
use crate::testing::{Exit, Rig};

#[test]
fn pings_and_their_answers_are_translated() {
    let mut rig = Rig::new("ICMPPingRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, drop", 2, 2);
    for (host, id) in [("10.0.0.5", 1024), ("10.0.0.6", 1025)] {
        for payload in [b"".as_slice(), b"payload"] {
            let out = rig.push_one(0, &echo(host, REMOTE.0, 7, false, payload));
            expect(&out, 0, (EXTERNAL, id), (REMOTE.0, id));
            let out = rig.push_one(1, &echo(REMOTE.0, EXTERNAL, id, true, payload));
            expect(&out, 1, (REMOTE.0, 7), (host, 7));
        }
    }
    let table = rig.read("table");
    assert!(
        table.contains("(10.0.0.5, 198.51.100.7, 7) => (203.0.113.1, 198.51.100.7, 1024) [*0 1] i0 exp300"),
        "{table}"
    );
    assert!(
        table.contains("(198.51.100.7, 203.0.113.1, 1024) => (198.51.100.7, 10.0.0.5, 7) [0 *1] i0 exp300"),
        "{table}"
    );
}

#[test]
fn requests_from_both_sides_with_one_identifier_are_kept_apart() {
    let mut rig = Rig::new("ICMPPingRewriter", "keep 0 0, keep 0 0", 2, 1);
    rig.push_one(0, &echo("10.0.0.5", "10.0.0.6", 7, false, b""));
    rig.push_one(1, &echo("10.0.0.6", "10.0.0.5", 7, false, b""));
    assert_eq!(rig.read("nmappings"), "2");
}

#[test]
fn answers_that_nobody_asked_for_are_dropped_or_passed() {
    let mut rig = Rig::new("ICMPPingRewriter", "pattern 203.0.113.1 - - - 0 0, pass 1", 2, 2);
    let answer = echo(REMOTE.0, EXTERNAL, 9, true, b"");
    expect_drop(&rig.push_one(0, &answer), "no-mapping");
    let out = rig.push_one(1, &answer);
    assert_eq!((out.exit, out.packet), (Exit::Port(1), answer));
    expect_drop(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), "not-icmp-echo");
    let mut timestamp = echo(INSIDE.0, REMOTE.0, 9, false, b"");
    timestamp.bytes[20] = 13;
    expect_drop(&rig.push_one(0, &timestamp), "not-icmp-echo");
    assert_eq!(rig.push_one(1, &timestamp).exit, Exit::Port(1));
}

#[test]
fn a_message_that_becomes_all_zero_has_a_checksum_that_is_right() {
    // Echo reply, identifier 0 and sequence 0: the sum of nothing. The receiver's sum must be all ones.
    let mut rig = Rig::new("ICMPPingRewriter", "pattern 203.0.113.1 5 - - 0 0", 1, 1);
    let mut request = echo(INSIDE.0, REMOTE.0, 0, false, b"");
    request.bytes[26..28].fill(0);
    request.bytes[22..24].copy_from_slice(&0xf7ff_u16.to_be_bytes());
    expect(&rig.push_one(0, &request), 0, (EXTERNAL, 5), (REMOTE.0, 5));
    let mut answer = echo(REMOTE.0, EXTERNAL, 5, true, b"");
    answer.bytes[26..28].fill(0);
    answer.bytes[22..24].copy_from_slice(&0xfffa_u16.to_be_bytes());
    let out = rig.push_one(0, &answer);
    assert_eq!(out.packet.bytes[20..28], [0, 0, 0xff, 0xff, 0, 0, 0, 0]);
}
