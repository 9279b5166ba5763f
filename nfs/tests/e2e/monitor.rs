//! The monitor.

use crate::frames::{arp, later_fragment, ping, tcp, udp};
use crate::run::Setup;

#[test]
fn it_counts_and_passes_everything_on() {
    let mut frames = vec![
        udp("10.0.0.1:1", "10.0.0.2:2", b"x"),
        udp("10.0.0.1:1", "10.0.0.2:2", &[0; 1000]),
        udp("[fd00::1]:1", "[fd00::2]:2", b""),
        tcp("10.0.0.1:1", "10.0.0.2:2", "S", b""),
        ping("10.0.0.1", "10.0.0.2", 1),
        arp("10.0.0.1", "10.0.0.2"),
        later_fragment("10.0.0.1", "10.0.0.2"),
        vec![0; 14],
    ];
    let mut wrong = udp("10.0.0.1:1", "10.0.0.2:2", b"cut off");
    wrong.truncate(20);
    frames.push(wrong);
    let outcome = Setup::new("monitor", &["lan", "wan"], "top = 2")
        .input("lan", &frames)
        .reading(&["top"])
        .run()
        .sound();
    assert_eq!(outcome.out("wan"), frames);
    for (counter, expected) in [
        ("packets", 9),
        ("bytes", frames.iter().map(Vec::len).sum::<usize>() as u64),
        ("ipv4", 6),
        ("ipv6", 1),
        ("arp", 1),
        ("other", 1),
        ("udp", 4),
        ("tcp", 1),
        ("icmp", 1),
        ("fragments", 1),
        ("malformed", 1),
        ("flows", 5),
        ("larger", 1),
    ] {
        assert_eq!(outcome.counter(counter), expected, "{counter}");
    }
    let top = "nf: 10.0.0.1 1 > 10.0.0.2 2 protocol 17: 2 packets, 1085 bytes";
    assert!(outcome.stderr.contains(top), "{}", outcome.stderr);
    let largest = outcome.handler("top");
    assert!(
        top.ends_with(largest.lines().next().expect("a line")) && largest.lines().count() == 2,
        "{largest}"
    );
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("monitor", &["0", "1"], "top = 9999\ntip = 1").refused(&[
        "config:1: `top`: 9999 is not",
        "config:2: the configuration has no key `tip`: did you mean `top`?",
    ]);
}
