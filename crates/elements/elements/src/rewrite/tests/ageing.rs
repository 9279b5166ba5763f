//! Timeouts.

use super::{ACK, EXTERNAL, FIN, INSIDE, REMOTE, RST, SECOND_NS, SYN, tcp, udp};
use crate::testing::Rig;

const CONFIG: &str = "pattern 203.0.113.1 1024-65535# - - 0 0, TCP_TIMEOUT 1000, TCP_DONE_TIMEOUT 100, \
                      TCP_NODATA_TIMEOUT 200, UDP_TIMEOUT 60, UDP_STREAMING_TIMEOUT 120";
const EXT: (&str, u16) = (EXTERNAL, 1024);

/// Seconds until the mapping is gone, ticking once a second.
fn life_s(rig: &mut Rig) -> u64 {
    (1..5000)
        .find(|_| {
            rig.advance(SECOND_NS);
            rig.read("nmappings") == "0"
        })
        .expect("gone at last")
}

/// Asserts that a mapping lives for that long, and at most a round of the walk longer.
#[track_caller]
fn expect_life(rig: &mut Rig, seconds: u64) {
    let life_s = life_s(rig);
    assert!((seconds..=seconds + 11).contains(&life_s), "{life_s} s instead of {seconds} s");
}

#[test]
fn udp_lives_for_its_timeout_after_the_last_packet() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    expect_life(&mut rig, 60);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.advance(50 * SECOND_NS);
    rig.push_one(0, &udp(REMOTE, (EXTERNAL, 1025), b""));
    expect_life(&mut rig, 60);
}

#[test]
fn streaming_udp_has_a_timeout_of_its_own() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    for _ in 0..3 {
        rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    }
    // No reply: not streaming.
    expect_life(&mut rig, 60);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.push_one(0, &udp(REMOTE, (EXTERNAL, 1025), b""));
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    expect_life(&mut rig, 120);
}

#[test]
fn tcp_timeouts_follow_payload_and_end() {
    let mut rig = Rig::new("IPRewriter", CONFIG, 1, 1);
    let out = |flags, payload: &[u8]| tcp(INSIDE, REMOTE, flags, payload);
    let back = |port, flags, payload: &[u8]| tcp(REMOTE, (EXTERNAL, port), flags, payload);
    // Payload from one side only.
    rig.push(0, &[out(SYN, b""), back(EXT.1, SYN | ACK, b""), out(ACK, b"data")]);
    expect_life(&mut rig, 200);
    // From both.
    rig.push(0, &[out(ACK, b"data"), back(1025, ACK, b"data")]);
    expect_life(&mut rig, 1000);
    // FIN from one side, then from the other.
    rig.push(0, &[out(ACK, b"data"), back(1026, ACK, b"data")]);
    rig.advance(SECOND_NS);
    rig.push_one(0, &out(FIN | ACK, b""));
    rig.advance(SECOND_NS);
    rig.push_one(0, &out(ACK, b""));
    rig.advance(150 * SECOND_NS);
    assert_eq!(rig.read("nmappings"), "1", "half closed");
    rig.push_one(0, &back(1026, FIN | ACK, b""));
    expect_life(&mut rig, 100);
    // RST ends both directions at once.
    rig.push(0, &[out(ACK, b"data"), back(1027, ACK, b"data")]);
    rig.advance(SECOND_NS);
    rig.push_one(0, &back(1027, RST, b""));
    expect_life(&mut rig, 100);
    // Payload or SYN after the end opens it again.
    rig.push(0, &[out(ACK, b"data"), back(1028, ACK, b"data")]);
    rig.advance(SECOND_NS);
    rig.push_one(0, &out(RST, b""));
    rig.advance(SECOND_NS);
    rig.push_one(0, &out(SYN, b""));
    expect_life(&mut rig, 1000);
}

#[test]
fn udp_rewriter_uses_udp_timeouts_for_tcp() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 0, TIMEOUT 30, STREAMING_TIMEOUT 90";
    let mut rig = Rig::new("UDPRewriter", config, 1, 1);
    rig.push_one(0, &tcp(INSIDE, REMOTE, SYN, b""));
    expect_life(&mut rig, 30);
    rig.push(0, &[tcp(INSIDE, REMOTE, SYN, b""), tcp(REMOTE, (EXTERNAL, 1025), SYN, b"")]);
    rig.push_one(0, &tcp(INSIDE, REMOTE, FIN, b""));
    expect_life(&mut rig, 90);
}

#[test]
fn a_guarantee_outlives_a_shorter_timeout() {
    let mut rig = Rig::new("IPRewriter", "keep 0 0, UDP_TIMEOUT 1, UDP_GUARANTEE 40", 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    expect_life(&mut rig, 40);
}

#[test]
fn nothing_is_reaped_when_the_interval_is_zero() {
    let mut rig = Rig::new("IPRewriter", "keep 0 0, UDP_TIMEOUT 1, REAP_INTERVAL 0", 1, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    for _ in 0..100 {
        rig.advance(10 * SECOND_NS);
    }
    assert_eq!(rig.read("nmappings"), "1");
}

#[test]
fn many_mappings_go_in_small_portions() {
    let mut rig = Rig::new("IPRewriter", "keep 0 0, UDP_TIMEOUT 100, SEED 1", 1, 1);
    for n in 0..10_000u16 {
        rig.push_one(0, &udp(("10.0.0.1", n + 1), REMOTE, b""));
    }
    rig.advance(SECOND_NS);
    let mut left = 10_000i64;
    let mut most = 0;
    for _ in 0..1_200 {
        rig.advance(SECOND_NS / 10);
        let now: i64 = rig.read("nmappings").parse().unwrap();
        most = most.max(left - now);
        left = now;
    }
    assert_eq!(left, 0);
    assert!(most <= 110, "{most} in one tick of a round of 100");
}
