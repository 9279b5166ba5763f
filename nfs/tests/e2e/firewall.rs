//! The firewall, the one in Rust.

use crate::frames::{arp, ends, later_fragment, tcp, udp};
use crate::run::Setup;

const RULES: &str = "
[[rule]]
action = \"deny\"
to = \"10.9.0.0/16\"
[[rule]]
action = \"allow\"
interface = \"lan\"
from = \"10.0.0.0/8\"
protocol = \"tcp\"
to-port = \"80-443\"
[[rule]]
action = \"allow\"
from = \"fd00::/8\"
protocol = \"udp\"
to-port = 53
";

#[test]
fn it_decides_by_the_first_rule() {
    let frames = [
        tcp("10.0.0.1:1000", "10.9.0.1:80", "S", b""),
        tcp("10.0.0.1:1000", "192.0.2.1:80", "S", b""),
        tcp("10.0.0.1:1000", "192.0.2.1:79", "S", b""),
        tcp("11.0.0.1:1000", "192.0.2.1:80", "S", b""),
        udp("10.0.0.1:1000", "192.0.2.1:80", b""),
        udp("[fd00::1]:5", "[fd01::1]:53", b""),
        udp("[fd00::1]:5", "[fd01::1]:54", b""),
        later_fragment("10.0.0.1", "192.0.2.1"),
        arp("10.0.0.1", "10.0.0.2"),
        vec![0; 60],
    ];
    let mut frames = frames.to_vec();
    let mut wrong = frames[1].clone();
    wrong.truncate(30);
    frames.push(wrong);
    let setup = Setup::new("firewall", &["lan", "wan"], RULES).reading(&["rules"]);
    let outcome = setup.input("lan", &frames).run().sound();
    let expected = [&frames[1], &frames[5], &frames[8]].map(Clone::clone);
    assert_eq!(outcome.out("wan"), expected);
    let drops =
        [("denied-by-default", 4), ("denied-by-rule", 1), ("fragment", 1), ("malformed", 1), ("not-ip", 1)];
    assert_eq!(outcome.drops(), drops);
    assert_eq!((outcome.counter("allowed-by-rule"), outcome.counter("flows")), (2, 2));
    let hits: Vec<_> = outcome.handler("rules").lines().map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(hits, ["1", "1", "1"].map(Some));
}

#[test]
fn answers_come_back_and_nothing_else_does() {
    let frames = [tcp("10.0.0.1:1000", "192.0.2.1:80", "S", b""), udp("10.0.0.1:1000", "192.0.2.1:80", b"")];
    let run = |stateful: bool| {
        let rules = format!("stateful = {stateful}\n{RULES}");
        let setup = Setup::new("firewall", &["lan", "wan"], &rules).input("lan", &frames).mirror("wan");
        setup.run().sound()
    };
    let outcome = run(true);
    assert_eq!(ends(outcome.out("lan")), ["192.0.2.1:80 > 10.0.0.1:1000"]);
    assert_eq!(outcome.counter("allowed-by-state"), 1);
    assert_eq!(run(false).drops(), [("denied-by-default", 2)]);
    // Outside hosts cannot open a flow.
    let outside =
        [tcp("192.0.2.1:80", "10.0.0.1:1000", "S.", b""), tcp("10.0.0.9:1", "10.0.0.1:80", "S", b"")];
    let outcome = Setup::new("firewall", &["lan", "wan"], RULES).input("wan", &outside).run().sound();
    assert_eq!((outcome.out("lan").len(), outcome.drops()), (0, vec![("denied-by-default", 2)]));
}

#[test]
fn its_mistakes_are_told() {
    let config = "default = \"maybe\"
[[rule]]
from = \"10.0.0.1/8\"
[[rule]]
action = \"allow\"
from = \"10.0.0.0/8\"
to = \"::/0\"
to-port = 80
interface = \"dmz\"
";
    for nf in ["monitor", "scanner", "rate-limiter", "syn-filter", "firewall"] {
        Setup::new(nf, &["a", "b", "c"], "").refused(&["config:1: there is no interface across of 3"]);
    }
    Setup::new("firewall", &["lan", "wan"], config).refused(&[
        "config:1: `default`: `maybe` is none of `allow`, `deny`",
        "config:2: [[rule]] needs `action`",
        "config:4: `from` and `to` are of different families",
        "config:4: a rule with ports says which",
        "config:9: `interface`: there is no interface `dmz`, only lan, wan",
    ]);
}
