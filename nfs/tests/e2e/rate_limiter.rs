//! The rate limiter.

use crate::frames::{arp, ends, udp};
use crate::run::Setup;

#[test]
fn what_is_too_fast_is_dropped_by_source() {
    // 8 kbit/s with bursts of 3 frames of 1,000 bytes: during the run only the burst is passed.
    let config = "rate-bps = 8_000\nburst-bytes = 3000\n[[class]]\nfrom = \"10.2.0.0/16\"\n";
    let mut frames = vec![];
    for at in 0..10 {
        for source in ["10.0.0.1", "10.0.0.2", "10.2.0.1"] {
            frames.push(udp(&format!("{source}:{at}"), "192.0.2.1:9", &[0; 958]));
        }
    }
    frames.push(arp("10.0.0.1", "10.0.0.2"));
    let outcome = Setup::new("rate-limiter", &["0", "1"], config).input("0", &frames).run().sound();
    let passed = ends(&outcome.out("1")[..16]);
    let of = |source: &str| passed.iter().filter(|ends| ends.starts_with(source)).count();
    assert_eq!((of("10.0.0.1"), of("10.0.0.2"), of("10.2.0.1")), (3, 3, 10));
    assert_eq!(outcome.drops(), [("too-fast", 14)]);
    assert_eq!((outcome.counter("passed"), outcome.counter("passed-unlimited")), (17, 11));
}

#[test]
fn what_is_too_fast_leaves_later_and_in_order() {
    // 8 Mbit/s: a packet of 1,000 bytes per millisecond, 2 at once, 20 ms of queue.
    let config = "mode = \"shape\"\nrate-bps = 8_000_000\nburst-bytes = 2000\nmost-delay-ms = 20";
    let frames: Vec<_> = (0..30).map(|at| udp(&format!("10.0.0.1:{at}"), "192.0.2.1:9", &[0; 958])).collect();
    let outcome = Setup::new("rate-limiter", &["0", "1"], config).input("0", &frames).run().sound();
    let sent = outcome.out("1").len() as u64;
    // The burst and the queue, and packets that found room because the machine was slow.
    assert!((22..=30).contains(&sent), "{sent} packets");
    assert!(outcome.counter("delayed") >= 15 && outcome.counter("held") == 0, "{outcome:?}");
    let mut ports = ends(outcome.out("1"))
        .iter()
        .map(|ends| ends[9..].split(' ').next().unwrap_or("").to_string())
        .collect::<Vec<_>>();
    let order: Vec<u16> = ports.drain(..).map(|port| port.parse().expect("a port")).collect();
    assert!(order.is_sorted(), "{order:?}");
    if sent < 30 {
        assert_eq!(outcome.drops(), [("queue-full", 30 - sent)]);
    }
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("rate-limiter", &["0", "1"], "mode = \"stop\"\n").refused(&[
        "config:1: `mode`: `stop` is none of `police`, `shape`",
        "config:1: nothing is limited: set `rate-bps`",
    ]);
}
