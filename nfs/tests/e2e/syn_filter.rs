//! The filter against SYN floods.

use crate::frames::{ends, tcp, udp};
use crate::run::Setup;

#[test]
fn half_open_connections_of_a_server_are_limited() {
    let config = "half-open = 10\nsource-syns-per-s = 0\n";
    let mut frames = vec![
        tcp("203.0.113.1:1", "10.0.0.1:80", "S", b""),
        tcp("203.0.113.1:1", "10.0.0.1:80", ".", b""), // Finishes its connection: from now on it is trusted.
    ];
    for source in 1..=30 {
        frames.push(tcp(&format!("198.51.100.{source}:5"), "10.0.0.1:80", "S", b""));
    }
    frames.push(tcp("198.51.100.1:5", "10.0.0.1:80", "S", b"")); // A retransmission: no further connection.
    frames.push(tcp("203.0.113.1:2", "10.0.0.1:80", "S", b""));
    frames.push(tcp("198.51.100.99:5", "10.0.0.2:80", "S", b"")); // Another server.
    frames.push(tcp("198.51.100.2:5", "10.0.0.1:80", "R", b"")); // Two half-open connections are removed.
    frames.push(tcp("198.51.100.3:5", "10.0.0.1:80", "R", b""));
    frames.push(tcp("198.51.100.98:5", "10.0.0.1:80", "S", b""));
    let outcome = Setup::new("syn-filter", &["0", "1"], config).input("0", &frames).run().sound();
    assert_eq!(outcome.drops(), [("half-open-limit", 20)]);
    let passed = ends(outcome.out("1"));
    assert_eq!(passed[12..14], ["198.51.100.1:5 > 10.0.0.1:80", "203.0.113.1:2 > 10.0.0.1:80"]);
    assert_eq!(passed.last().map(String::as_str), Some("198.51.100.98:5 > 10.0.0.1:80"));
    assert_eq!((outcome.counter("completed"), outcome.counter("destinations-under-attack")), (1, 1));
    assert_eq!(outcome.counter("half-open"), 11);
}

#[test]
fn servers_that_refuse_have_nothing_half_open() {
    let config = "half-open = 1\nprotect = [\"10.0.0.0/8\"]\n";
    let frames = [
        tcp("203.0.113.1:1", "10.0.0.1:80", "S", b""),
        tcp("10.0.0.1:80", "203.0.113.1:1", "R.", b""),
        tcp("203.0.113.2:1", "10.0.0.1:80", "S", b""),
        tcp("203.0.113.3:1", "10.0.0.1:80", "S", b""),
        tcp("203.0.113.3:1", "192.0.2.1:80", "S", b""), // This server is not protected.
        tcp("203.0.113.3:2", "192.0.2.1:80", "S", b""),
    ];
    let outcome = Setup::new("syn-filter", &["0", "1"], config).input("0", &frames).run().sound();
    assert_eq!((outcome.drops(), outcome.out("1").len()), (vec![("half-open-limit", 1)], 5));
}

#[test]
fn sources_that_are_too_fast_are_blocked() {
    let config = "source-syns-per-s = 5\nblock-s = 60\n";
    let mut frames: Vec<_> =
        (1..=20).map(|port| tcp(&format!("203.0.113.1:{port}"), "10.0.0.1:80", "S", b"")).collect();
    frames.push(udp("203.0.113.1:1", "10.0.0.1:53", b"")); // All packets of a blocked source are dropped.
    frames.push(udp("203.0.113.2:1", "10.0.0.1:53", b""));
    let mut wrong = tcp("203.0.113.2:1", "10.0.0.1:80", "S", b"");
    wrong[46] = 0;
    frames.push(wrong);
    let outcome = Setup::new("syn-filter", &["0", "1"], config).input("0", &frames).run().sound();
    assert_eq!(outcome.drops(), [("blocked-source", 15), ("malformed", 1), ("source-too-fast", 1)]);
    assert_eq!((outcome.out("1").len(), outcome.counter("sources-blocked")), (6, 1));
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("syn-filter", &["0", "1"], "half-open = 0\nprotect = [\"10.0.0.0/8\", \"ten\"]\n").refused(&[
        "config:1: `half-open`: 0 is not a whole number",
        "config:2: `protect`: `ten` is no prefix",
    ]);
}
